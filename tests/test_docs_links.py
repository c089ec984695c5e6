"""Links of the documentation lead to files and headings that are there, the site has every page, and quoted errors exist."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

import nmsolve

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb"), *ROOT.glob("*/README.md")}
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def text_of(page: Path) -> str:
    """The page without its blocks of code; of a notebook the cells of text."""
    text = page.read_text("utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """Headings as repositories and the site name them."""
    found: dict[str, int] = {}
    out = set()
    for heading in re.findall(r"^#+ +(.*?)\s*$", text_of(page), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.replace("`", "").replace("*", "").lower()).replace(" ", "-")
        out.add(slug if slug not in found else f"{slug}-{found[slug]}")
        found[slug] = found.get(slug, 0) + 1
    return out


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), f"{page}: {target}"
        if anchor and goal.suffix in (".md", ".ipynb"):
            assert anchor in anchors(goal), f"{page}: {target}; there are {sorted(anchors(goal))}"


def test_the_site_has_every_page() -> None:
    """Each page of the docs is in the navigation once."""
    listed = re.findall(r":? ([\w\-/]+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text(), re.M)
    there = [str(p.relative_to(ROOT / "docs")) for p in PAGES if (ROOT / "docs") in p.parents]
    assert sorted(listed) == sorted(there)


def test_the_reference_has_every_public_function_and_error() -> None:
    named = re.findall(r"^::: nmsolve\.(\w+)$", (ROOT / "docs" / "reference.md").read_text(), re.M)
    offered = {name: getattr(nmsolve, name) for name in nmsolve.__all__}
    assert sorted(named) == sorted(
        name
        for name, what in offered.items()
        if inspect.isroutine(what) or (inspect.isclass(what) and issubclass(what, nmsolve.NmsolveError))
    )


def test_tutorials_run_whenever_the_site_is_built() -> None:
    """They have no output of an earlier run, neither in their files nor in a cache, whose key would leave out our code."""
    assert re.search(
        r"mkdocs-jupyter: {execute: true, allow_errors: false, .*cache: false}",
        (ROOT / "mkdocs.yml").read_text(),
    )
    books = [json.loads(p.read_text("utf-8")) for p in PAGES if p.suffix == ".ipynb"]
    cells = [cell for book in books for cell in book["cells"] if cell["cell_type"] == "code"]
    assert len(books) >= 3 and len(cells) >= 12
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    for book in books:  # without it a picture is but its name; a semicolon would leave it out
        text = "\n".join("".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code")
        assert text.startswith("%matplotlib inline\n") and re.search(r"\.plot\(.*\)$", text, re.M)


def test_errors_that_are_explained_are_errors_that_exist() -> None:
    """What docs/faq.md quotes stands in the code, where strings may be broken over lines."""
    code = "\n".join(p.read_text("utf-8") for p in (ROOT / "nmsolve").rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "faq.md").read_text(), re.M)
    quoted = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    assert len(quoted) > 10 and [text for text in quoted if text not in code] == []
