"""``nmsolve compare``: figures of two mappings, the page with its slider, and what cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_support import Opened, chromium
from command_support import run_here

EXAMPLE = Path(__file__).parent.parent / "examples" / "first.json"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two mappings of the example, one of them poor, one on another board, and one of another network."""
    out = tmp_path_factory.mktemp("compared")
    for name, words in (("best", ()), ("poor", ("--engines", "first-fit")), ("wide", ("-m", "mesh:2x4"))):
        run_here("map", EXAMPLE, *words, "-t", "3", "-o", out / name)
    run_here("generate", "mesh-comm", "--nodes", "4", "--side", "2", "--out", out / "other.json")
    run_here("map", out / "other.json", "-t", "3", "-o", out / "other")
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


def test_figures_of_both_are_recomputed(runs: Path) -> None:
    """Those of the reports, their change, and the nodes that moved; also for bare mappings without a report."""
    page = runs / "page.html"
    (row,) = map(
        json.loads,
        run_here("compare", runs / "poor", runs / "best", "-o", page, "--json").stdout.splitlines(),
    )
    reports = [json.loads((runs / name / "report.json").read_text()) for name in ("poor", "best")]
    for s in row["scores"]:
        one, other = (r["scores"][s["name"]] for r in reports)
        assert (s["one"], s["other"]) == (one, other)
        assert s["change"] is None if not one else s["change"] == pytest.approx((other - one) / one)
    places = [json.loads((runs / name / "mapping.json").read_text()) for name in ("poor", "best")]
    cores = [list(zip(p["row"], p["col"], strict=True)) for p in places]
    assert row["moved"] == sum(a != b for a, b in zip(*cores, strict=True)) and page.exists()
    said = run_here("compare", runs / "best", runs / "best", "-o", page).stdout
    assert "0 of 6 nodes sit on another core" in said and "the same" in said


@pytest.mark.parametrize(
    ("other", "line"), [("other", "two mappings of one network"), ("wide", "boards of one shape")]
)
def test_what_cannot_be_compared_is_refused(runs: Path, other: str, line: str, tmp_path: Path) -> None:
    said = run_here("compare", runs / "best", runs / other, "-o", tmp_path / "page.html", code=2).stderr
    assert line in said and not (tmp_path / "page.html").exists()
    assert (
        "no such folder"
        in run_here("compare", runs / "best", runs / "poor", "-o", tmp_path / "no" / "x.html", code=2).stderr
    )


def test_answers_of_other_kinds_are_called_what_they_are(runs: Path, tmp_path: Path) -> None:
    """Not by what a mapping's report would have."""
    tasks = EXAMPLE.with_name("tasks.json")
    run_here("schedule", tasks, "-t", "8", "-o", tmp_path)
    told = run_here("compare", runs / "best", tmp_path, "-o", tmp_path / "page.html", code=2).stderr
    assert "this is a schedule; expected a mapping" in told and not (tmp_path / "page.html").exists()
    (tmp_path / "plan.json").write_text("{}")
    told = run_here("compare", tmp_path / "plan.json", runs / "best", code=2).stderr
    assert "plan.json: this is a plan; expected a mapping" in told
    told = run_here("score", tmp_path / "plan.json", code=2).stderr
    assert "plan.json: this is a plan, and no pipeline-report.json is beside it" in told


def test_the_slider_parts_the_two_mappings(runs: Path, browser: Any, tmp_path: Path) -> None:
    """Left of it the pointer finds the first mapping, right of it the second; a node has a core in each."""
    run_here("compare", runs / "poor", runs / "best", "-o", tmp_path / "page.html")
    page = Opened(browser, tmp_path / "page.html")
    assert page.page.evaluate("explorer.board.all.length") == 2
    x, y = page.of_core(1)
    for split, side in (("100", 0), ("0", 1)):
        page.part("split").fill(split)
        page.part("board").click(position={"x": x, "y": y})
        assert page.page.evaluate("explorer.board.all.indexOf(explorer.board.m)") == side
        home = "(k) => ((w) => w.kind === 'core' ? w.core : explorer.board.all[k].core[w.node])(explorer.state.chosen)"
        assert page.page.evaluate(home, side) == 1
    page.page.evaluate("explorer.choose({kind: 'node', node: 2}, true)")
    assert (
        "core, left" in page.part("panel").inner_text() and "core, right" in page.part("panel").inner_text()
    )
    page.close()
