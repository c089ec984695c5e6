"""Bounds of ``min-cut`` recomputed from the prices of transfers, in whole numbers and with nothing but the problem.

Tensors with one maker and the same users move together. Say bringing them to a site costs m if their maker is at another (0 at
the site itself), and user u pays a price of y(u) if it is there. The users there pay at most Y = sum of y(u), and nothing if none
is there; so what they pay, less max(0, Y - m), is never more than the transfer costs. The maker earns max(0, Y - m).

Members of fused groups save s(i) each on a unit. If the savings of each group add up to what fusing it gains, groups without
common members gain no more than all operators on that unit save.

So what operators cost, each for itself with prices and savings, adds up to no more than the objective, and the sum of the least
that each may cost is a lower bound. It knows no limits of memory and no ceilings, and holds under all.
"""

from __future__ import annotations

from typing import Any

from nmsolve.check.assignment.network import classes_of
from nmsolve.check.rechecked import compared
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import CertificateError


def check(problem: AssignProblem | CostNetwork, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute the bound; ``seconds`` are not needed, as the work is linear in the problem and the certificate.

    Raises
    ------
    CertificateError : the certificate is damaged, or about another problem
    """
    if isinstance(problem, CostNetwork) or problem.objective not in ("latency", "energy"):
        raise CertificateError("prices of transfers bound sums of an assignment")
    proved = proved_by(problem, bound.certificate.get("prices"), bound.certificate.get("savings"))
    return compared(bound, proved, f"prices of transfers prove {proved:,}")


def proved_by(problem: AssignProblem, prices: Any, savings: Any) -> int:
    """Return the bound that prices (rows of tensor, user, site, price) and savings (rows of operator, unit, saving) prove."""
    classes = classes_of(problem.together, problem.count)
    run = (problem.energy if problem.objective == "energy" else problem.time).tolist()
    units, site = range(problem.units.count), problem.units.site.tolist()
    cost = [[sum(run[i][j] for i in own) for j in units] for own in classes]
    possible = [[all(run[i][j] >= 0 for i in own) for j in units] for own in classes]
    where = {i: c for c, own in enumerate(classes) for i in own}
    _transfers(problem, prices, cost, where, site)
    _fusion(problem, savings, cost, possible, where)
    least = 0
    for row, allowed in zip(cost, possible, strict=True):
        if not any(allowed):
            raise CertificateError("no unit can run operators that must share one")
        least += min(c for c, a in zip(row, allowed, strict=True) if a)
    return least


def _transfers(
    problem: AssignProblem, prices: Any, cost: list[list[int]], where: dict[int, int], site: list[int]
) -> None:
    """Add to ``cost`` what users pay and take off what makers earn."""
    flows = problem.flows
    alike: dict[tuple[int, ...], list[int]] = {}
    for t in range(flows.count):
        alike.setdefault((int(flows.source[t]), *flows.users(t).tolist()), []).append(t)
    move = flows.energy if problem.objective == "energy" else flows.time
    paid: dict[tuple[tuple[int, ...], int], int] = {}
    once: set[tuple[tuple[int, ...], int, int]] = set()
    for t, user, s, price in _rows(prices, (flows.count, problem.count, problem.units.sites)):
        ends = int(flows.source[t]), *flows.users(t).tolist()
        if user not in ends[1:] or (ends, user, s) in once:
            raise CertificateError(f"operator {user} does not use tensor {t}, or pays twice at site {s}")
        once.add((ends, user, s))
        paid[ends, s] = paid.get((ends, s), 0) + price
        for j, at in enumerate(site):
            cost[where[user]][j] += price if at == s else 0
    for (ends, s), whole in paid.items():
        dear = [sum(int(move[t, origin, s]) for t in alike[ends]) for origin in range(problem.units.sites)]
        for j, at in enumerate(site):
            cost[where[ends[0]]][j] -= max(0, whole - dear[at])


def _fusion(
    problem: AssignProblem,
    savings: Any,
    cost: list[list[int]],
    possible: list[list[bool]],
    where: dict[int, int],
) -> None:
    """Take savings off ``cost``; those of a group's members are at least its gain wherever all of them can run."""
    groups, saved = problem.groups, dict[tuple[int, int], int]()
    for i, j, amount in _rows(savings, (problem.count, problem.units.count)):
        if (i, j) in saved:
            raise CertificateError(f"operator {i} saves twice on unit {j}")
        saved[i, j] = amount
        cost[where[i]][j] -= amount
    gain = (groups.energy if problem.objective == "energy" else groups.time).tolist()
    for k in range(groups.count):
        own = groups.of(k).tolist()
        for j in range(problem.units.count):
            enough = sum(saved.get((i, j), 0) for i in own) >= gain[k][j]
            if not enough and all(possible[where[i]][j] for i in own):
                raise CertificateError(f"members of group {k} save less on unit {j} than fusing it gains")


def _rows(rows: Any, limits: tuple[int, ...]) -> list[list[int]]:
    """Return rows of whole numbers, the first of each below their limits and the last one any, all at least 0."""
    if not isinstance(rows, list):
        raise CertificateError("prices or savings are no list of rows")
    for row in rows:
        fine = isinstance(row, list) and len(row) == len(limits) + 1
        if not fine or not all(type(x) is int and 0 <= x <= 2**62 for x in row):
            raise CertificateError("a row that is not made of whole numbers from 0 on")
        if any(x >= most for x, most in zip(row, limits, strict=False)):
            raise CertificateError(f"a row about what does not exist: {row}")
    return rows
