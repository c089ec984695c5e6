"""More of ``test_differential.py``, in a file of its own: two processes share the files of the tests between them."""

from __future__ import annotations

import diff_cases
import pytest
from diff_bridge import problem_of
from diff_cases import make_case
from diff_checks import check_case
from diff_routed_checks import check_routed_case
from diff_routes import make_routed_case
from diff_suite import run_cases, run_routed_cases


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_more_random_problems_agree_with_the_reference(first: int) -> None:
    """As in ``test_differential.py``, with another seed."""
    run_cases(12, first, first + 11)


def test_random_mappings_with_routes_agree_with_the_reference() -> None:
    """Both joint models, the tree engines and the bounds, with rules of turns and dead links."""
    run_routed_cases(13, 0, 6)


def test_a_sum_of_rounded_costs_is_claimed_with_a_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branching on trees claimed 242418.99969958025 where the least cost is 242418.9996987747 (on like cores)."""
    monkeypatch.setattr(diff_cases, "UNLIKE", 0.0)
    assert not check_routed_case(make_routed_case(1000039))[0]


@pytest.mark.parametrize("kind", ["one per core, some too small", "held", "no energy"])
def test_cases_of_every_kind_agree(kind: str) -> None:
    """Cores that are not alike; no energy beside dead links where links cost nothing."""
    drawn = [case for case in map(make_case, range(300)) if kind in case["classes"]]
    assert len(drawn) >= 3
    assert not [found for case in drawn[:2] for found in check_case(case)[0]]
    if kind != "no energy":
        assert any(not problem_of(case).alike for case in drawn)


def test_a_network_beside_others_agrees_through_the_command_line() -> None:
    """`--occupied`: the other network is mapped first, from files."""
    drawn = (case for case in map(make_case, range(300)) if "held" in case["classes"])
    found, counts = next(
        done for done in (check_case(case, command=True) for case in drawn) if done[1]["command"]
    )
    assert not found and counts["command"] == 1


def test_the_symmetry_of_a_whole_board_is_not_that_of_one_with_dead_links() -> None:
    """Branching on trees looked at one core of two rows of which one link is dead: "optimal" 2.25, where 2.1 is possible."""
    case = make_routed_case(0) | {
        "n": 2,
        "rows": [{"source": 0, "targets": [], "weights": [], "multicast": False, "rate": 0},
                 {"source": 1, "targets": [0], "weights": [1.0], "multicast": False, "rate": 1.0}],
        "directed": True, "sizes": {"neurons": [1, 1]}, "objective": "energy", "constraints": [], "balance": 0,
        "migration": None, "ceilings": [], "turns": None,
        "machine": {"chips": [2, 1], "cores": [1, 2], "torus": False, "link_weight": 1, "crossing_weight": 2.5, "capacity": {},
                    "faulty_cores": [], "taken_cores": [], "faulty_links": [[0, 1], [1, 0]], "energy": {}, "distances": None,
                    "core_capacity": {}, "held": {}},
    }  # fmt: skip
    case.pop("kinds", None)  # of five nodes
    assert not check_routed_case(case)[0]
