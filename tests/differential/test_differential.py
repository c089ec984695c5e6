"""Random tiny problems: the package against a reference written from the documentation (``run.py`` runs any number)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from diff_bridge import problem_of
from diff_cases import make_case
from diff_checks import check_case
from diff_reference import Reference
from diff_suite import run_cases

from nmsolve.model.machine import Machine


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_random_problems_agree_with_the_reference(first: int) -> None:
    """Evaluator, verification, bounds and re-checks, exact models, heuristics, `explain` and the command line."""
    run_cases(11, first, first + 11)


def test_a_wrong_distance_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite can fail: links between chips that are too cheap by a tenth are found at once."""
    right = Machine.line_weights
    monkeypatch.setattr(Machine, "line_weights", lambda self, axis: right(self, axis) * 0.9)
    case = next(c for c in map(make_case, range(100)) if c["objective"] == "hops" and not c["constraints"])
    found, _ = check_case(case)
    assert any(f.who == "hw.scores" for f in found)


def test_cases_are_a_function_of_their_seed_and_survive_json() -> None:
    """Equal seeds, equal cases; replayed from a file the problem is the same."""
    for seed in range(30):
        case = make_case(seed)
        assert make_case(seed) == case
        back = json.loads(json.dumps(case))
        assert problem_of(back).hash == problem_of(case).hash
        assert Reference(back).usable == Reference(case).usable


def test_the_reference_shares_nothing_with_the_package() -> None:
    """Neither the cases nor the reference import anything of it."""
    here = Path(__file__).resolve().parent
    for name in ("diff_reference.py", "diff_cases.py", "diff_unlike.py"):
        assert "nmsolve" not in (here / name).read_text().replace("nmsolve map", "")
