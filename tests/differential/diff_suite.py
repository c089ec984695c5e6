"""What the tests of the suite run: a fixed number of cases of a seed, chosen so that CI spends about a minute on all."""

from __future__ import annotations

from diff_cases import make_case
from diff_checks import check_case
from diff_routed_checks import check_routed_case
from diff_routes import make_routed_case
from run import SPAN


def run_cases(seed: int, first: int, last: int) -> None:
    """Cases ``first`` to ``last`` of a seed, the very first one through the command line, too; fails with all that disagrees."""
    wrong = []
    for number in range(seed * SPAN + first, seed * SPAN + last + 1):
        found, _ = check_case(make_case(number), command=number == seed * SPAN)
        wrong += [f"case {number}: {f.who}: {f.kind}: {f.text}" for f in found]
    assert not wrong, "\n".join(wrong)


def run_routed_cases(seed: int, first: int, last: int) -> None:
    """The same for mapping and routes together."""
    wrong = []
    for number in range(seed * SPAN + first, seed * SPAN + last + 1):
        found, _ = check_routed_case(make_routed_case(number))
        wrong += [f"case {number}: {f.who}: {f.kind}: {f.text}" for f in found]
    assert not wrong, "\n".join(wrong)
