"""Every engine and bound has a reason to be here: ``tests/data/engines.toml`` says which, and where to see it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from nmsolve.solvers.assignment.registry import REGISTRY as ASSIGNMENT
from nmsolve.solvers.mapping.joint.registry import REGISTRY as JOINT
from nmsolve.solvers.mapping.registry import REGISTRY as MAPPING
from nmsolve.solvers.pipeline.registry import REGISTRY as PIPELINE
from nmsolve.solvers.routing.registry import REGISTRY as ROUTING
from nmsolve.solvers.schedule.registry import REGISTRY as SCHEDULE

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
#: Engines of this package, by problem. Those of other packages give their own reasons.
REGISTRIES = {
    problem: {name for name, entry in registry.items() if entry.plugin is None}
    for problem, registry in {
        "mapping": MAPPING, "joint": JOINT, "routing": ROUTING, "pipeline": PIPELINE, "assignment": ASSIGNMENT,
        "schedule": SCHEDULE,
    }.items()
}  # fmt: skip
REASONS = tomllib.loads((HERE / "data" / "engines.toml").read_text("utf-8"))
WITHOUT: dict[str, list[str]] = REASONS.pop("without_evidence")
#: This many engines had no evidence when the file was made. The number only falls.
MOST_WITHOUT = 11
#: What an entry states, by its reason; ``as`` may come with a row.
KEYS = {"best": {"page", "row"}, "published": {"page", "row"}, "requirement": {"number"}}
ENTRIES = [(problem, name, entry) for problem, entries in REASONS.items() for name, entry in entries.items()]
Entry = dict[str, str]


def around(page: str, row: str) -> str:
    """Return what stands around the one line with these words: the heading above and the paragraph; of a table the line itself,
    its head and the paragraph before it."""
    text = (DOCS / page).read_text("utf-8")
    lines = [line for line in text.splitlines() if row in line]
    assert len(lines) == 1, f"{page} has {len(lines)} lines with {row!r}"
    above, below = text.split(lines[0])
    *earlier, begun = above.split("\n\n")
    heading = re.findall(r"^#+ .*$", above, re.MULTILINE)[-1]
    if lines[0].startswith("|"):
        return "\n".join((heading, earlier[-1], begun.partition("\n")[0], lines[0]))
    return "\n".join((heading, begun, lines[0], below.partition("\n\n")[0]))


def test_every_engine_has_one_entry_and_none_is_left_over() -> None:
    assert set(REASONS) | set(WITHOUT) == set(REGISTRIES)
    for problem, engines in REGISTRIES.items():
        named = [*REASONS.get(problem, {}), *WITHOUT.get(problem, [])]
        assert sorted(named) == sorted(engines), problem


def test_the_list_of_engines_without_evidence_only_gets_shorter() -> None:
    """Whoever shortens it lowers the number, too."""
    assert sum(map(len, WITHOUT.values())) == MOST_WITHOUT


@pytest.mark.parametrize(("problem", "name", "entry"), ENTRIES, ids=[f"{p}-{n}" for p, n, _ in ENTRIES])
def test_a_reason_can_be_seen_where_its_entry_says(problem: str, name: str, entry: Entry) -> None:
    assert entry.keys() - {"why", "as"} == KEYS[entry["why"]], f"{problem}: {name}"
    if entry["why"] == "requirement":
        stated = "\n".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
        known = set(re.findall(r"\bM[1-5]\.\d+\b", stated))
        assert set(entry["number"].split(", ")) <= known, f"{problem}: {name}"
        return
    called = re.escape(entry.get("as", name))
    assert re.search(rf"(?<![\w-]){called}(?![\w-])", around(entry["page"], entry["row"])), (
        f"{problem}: {name}"
    )
