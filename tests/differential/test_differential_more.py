"""More of ``test_differential.py``, in a file of its own: two processes share the files of the tests between them."""

from __future__ import annotations

import pytest
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


def test_a_sum_of_rounded_costs_is_claimed_with_a_margin() -> None:
    """Branching on trees claimed 242418.99969958025 where the least cost is 242418.9996987747."""
    assert not check_routed_case(make_routed_case(1000039))[0]
