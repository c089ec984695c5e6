"""Bounds of ``tree`` recomputed: each case's least cost under its multipliers and prices, and that the cases leave nothing out.

The problem is stated anew as a sum of tables (:mod:`.network`). Bytes cost what multipliers say, and what memories hold is given
back: for multipliers >= 0 that is no more than the objective. For tensors that are *apart* users pay prices and makers earn what
is paid beyond the transfer (:mod:`.cut`); for *light* ones no bytes are counted. All in whole parts of a ps or pJ.

Cases are a tree of decisions: operator by operator, which units are left. At every operator all its units are in some case, or
are like a unit in some case: the problem is the same with the two exchanged, and no decision before tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmsolve.check.assignment.elimination import NEVER
from nmsolve.check.assignment.tables import NetworkTables, StatedTables
from nmsolve.check.rechecked import compared
from nmsolve.model import clock
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import CertificateError

#: Most parts of a ps or pJ, and most cases.
MOST_PARTS, MOST_CASES = 1 << 20, 2000


def check(problem: AssignProblem | CostNetwork, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute the bound; about ``seconds`` are used before it gives up.

    Raises
    ------
    CertificateError : the certificate is damaged, about another problem, or takes too large tables
    """
    end = clock.now() + seconds
    c = bound.certificate
    parts = c.get("parts")
    if type(parts) is not int and not (isinstance(parts, float) and parts.is_integer()):
        raise CertificateError("parts are not a whole number")
    if not 1 <= parts <= MOST_PARTS:
        raise CertificateError(f"{parts} parts")
    cases = c.get("cases")
    if (
        not isinstance(cases, list)
        or not 1 <= len(cases) <= MOST_CASES
        or not all(isinstance(x, dict) for x in cases)
    ):
        raise CertificateError("no list of cases")
    stated: NetworkTables
    if isinstance(problem, CostNetwork):
        stated = NetworkTables(problem, int(parts))
    elif problem.objective in ("latency", "energy"):
        charged = {(m, position) for case in cases for m, position, _ in _rows(case, "multipliers", 3)}
        stated = StatedTables(problem, int(parts), _rows(c, "apart", 2), _rows(c, "light", 2), charged)
    else:
        raise CertificateError("the objective is no sum")
    paths = [_path(stated, case) for case in cases]
    _require_all(stated, paths)
    least = NEVER
    for number, (case, path) in enumerate(zip(cases, paths, strict=True)):
        if clock.now() > end:
            return BoundCheck(
                False, math.nan, f"only {number} of {len(cases)} cases were recomputed in {seconds:g} s"
            )
        least = min(least, stated.least(path, _rows(case, "multipliers", 3), _rows(case, "prices", 4)))
    whole = -(-least // int(parts))
    # more than everything costs: no solution keeps the limits
    proved = math.inf if least >= NEVER or whole > stated.most else whole
    text = "one case proves" if len(cases) == 1 else f"{len(cases)} cases prove"
    return compared(bound, proved, f"{text} {proved:,}")


def _rows(where: Mapping[str, Any], name: str, wide: int) -> list[list[int]]:
    """Return rows of whole numbers >= 0."""
    rows = where.get(name)
    if isinstance(rows, np.ndarray) and not rows.size:  # so an empty list is read from a file
        return []
    if not isinstance(rows, list):
        raise CertificateError(f"{name} are no list of rows")
    for row in rows:
        if (
            not isinstance(row, list)
            or len(row) != wide
            or not all(type(x) is int and 0 <= x <= 2**62 for x in row)
        ):
            raise CertificateError(f"{name} are not rows of {wide} whole numbers from 0 on")
    return rows


def _path(stated: NetworkTables, case: Mapping[str, Any]) -> list[tuple[int, frozenset[int]]]:
    """Return the decisions of a case: a variable, and the places that are left to it."""
    path = case.get("path")
    if isinstance(path, np.ndarray) and not path.size:
        return []
    if not isinstance(path, list):
        raise CertificateError("a case without a path")
    out = []
    for step in path:
        fine = (
            isinstance(step, list) and len(step) == 2 and type(step[0]) is int and isinstance(step[1], list)
        )
        if not fine or not step[1] or not all(type(x) is int for x in step[1]):
            raise CertificateError("a step of a path is no operator with units")
        out.append((stated.variable(step[0]), frozenset(step[1])))
    return out


def _require_all(stated: NetworkTables, paths: Sequence[list[tuple[int, frozenset[int]]]]) -> None:
    """Raise unless the cases hold or mirror every solution."""
    todo = [
        (paths, 0, tuple[frozenset[int], ...]())
    ]  # cases with the same first decisions, how many, and what these leave
    while todo:
        paths, depth, told = todo.pop()
        if any(len(path) == depth for path in paths):
            continue
        variable = paths[0][depth][0]
        if any(path[depth][0] != variable for path in paths):
            raise CertificateError("cases that decide different operators next")
        parts: dict[frozenset[int], list[list[tuple[int, frozenset[int]]]]] = {}
        for path in paths:
            parts.setdefault(path[depth][1], []).append(path)
        inside = frozenset[int]().union(*parts)
        for j in stated.places(variable) - inside:
            if not any(
                stated.alike(j, k) and all((j in some) == (k in some) for some in told) for k in inside
            ):
                raise CertificateError(f"no case has operator {variable} on unit {j}")
        todo += [(own, depth + 1, (*told, some)) for some, own in parts.items()]
