"""What docs/tour.md and docs/schedule.md print of `nmsolve schedule` are facts of the example, and they print the same."""

from __future__ import annotations

import re
from pathlib import Path

import nmsolve
from nmsolve.hw.schedule.evaluate import objective
from nmsolve.solvers.schedule.registry import RULES

ROOT = Path(__file__).parent.parent


def printed(page: str) -> str:
    text = (ROOT / page).read_text("utf-8")
    found = re.search(r"```\n\$ nmsolve schedule examples/tasks.json(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_both_pages_print_the_same_run() -> None:
    assert printed("docs/tour.md") == printed("docs/schedule.md")


def test_the_rules_and_the_bound_of_the_example_are_those_printed() -> None:
    """Rules and counting give the same values on every host; the optimum lies between."""
    problem = nmsolve.load_tasks(ROOT / "examples" / "tasks.json")
    engines = [*RULES, "schedule-counting"]
    found = nmsolve.schedule(problem, objective="energy", engines=engines, time_limit=3600.0)
    said = printed("docs/tour.md")
    best = {e.engine: e.best for e in found.engines}
    for rule in RULES:
        assert f"The rule {rule} gives {best[rule]:,.0f} units" in said
    least = re.search(r"The energy is ([\d,]+) units, proved", said)
    assert least is not None and found.bound is not None and found.objective is not None
    assert found.bound <= int(least[1].replace(",", "")) <= found.objective
    assert found.solution is not None and objective(problem.problem, found.solution) > 0
