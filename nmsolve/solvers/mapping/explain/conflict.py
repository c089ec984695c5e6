"""A smallest conflict: limits that together forbid every mapping, each of which is needed for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.explain.limits import Limit, limits_of
from nmsolve.solvers.mapping.explain.model import Answer, has_mapping
from nmsolve.solvers.mapping.explain.words import reason
from nmsolve.solvers.search.budget import Budget

#: No single question gets more than this part of the time that is left.
PATIENCE = 0.5


@dataclass(frozen=True, eq=False)
class Conflict:
    """Limits that no mapping obeys together.

    Attributes
    ----------
    limits : in the order of the problem's statement
    needed : those of them that were proved necessary: without any one there is a mapping of all the others
    without : for each of ``needed`` a mapping (n,) that obeys all the others
    text : why, in words, as far as counting can say
    """

    limits: tuple[Limit, ...]
    needed: tuple[Limit, ...]
    without: tuple[IntArray, ...]
    text: str

    @property
    def minimal(self) -> bool:
        """True if every limit was proved necessary."""
        return len(self.needed) == len(self.limits)

    @property
    def certificate(self) -> dict[str, Any]:
        """Plain data for :func:`nmsolve.solvers.mapping.recheck.conflict.recheck_conflict`."""
        return {
            "limits": [{"kind": x.kind, "name": x.name} for x in self.limits],
            "without": [
                {"kind": x.kind, "name": x.name, "core": core.tolist()}
                for x, core in zip(self.needed, self.without, strict=True)
            ],
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """What was found: ``status`` is ``feasible`` (with ``core``, a mapping), ``infeasible`` (with ``conflict``) or
    ``unknown``."""

    status: str
    core: IntArray | None = None
    conflict: Conflict | None = None


def explain(problem: MappingProblem, seconds: float = 60.0, seed: int = 0) -> Explanation:
    """Find a mapping of ``problem``, or a smallest set of its limits that forbids one.

    CP-SAT is given every limit as an assumption and names some that suffice for its proof. Then each is dropped
    in turn: if the others still forbid every mapping it is not needed (and the assumptions of that proof take the place
    of the set), if they allow one it is. What is left is minimal, unless time ran out: then limits of which
    neither was proved are kept. A migration budget is not a limit here.

    Parameters
    ----------
    seconds : wall time, approximately; a signal ends it with what is known
    """
    budget = Budget(max(seconds, 1e-9))
    with budget.ctrl_c():
        return _explained(problem, budget, seed)


def _explained(problem: MappingProblem, budget: Budget, seed: int) -> Explanation:
    def ask(limits: tuple[Limit, ...], part: float = PATIENCE) -> Answer:
        left = 0.0 if budget.interrupted else part * budget.left()  # counting takes none
        return has_mapping(problem, limits, left, seed, lambda: budget.interrupted)

    every = limits_of(problem)
    first = ask(every, 0.8)
    if first.status != "infeasible":
        return Explanation(first.status, first.core)
    kept = _ordered(every, first.needed)
    needed: dict[Limit, IntArray] = {}
    for x in every:
        if x not in kept:
            continue
        others = tuple(other for other in kept if other is not x)
        answer = ask(others)
        if answer.status == "infeasible":
            kept = _ordered(others, answer.needed)
        elif answer.core is not None:
            needed[x] = answer.core
    necessary = tuple(x for x in kept if x in needed)
    witnesses = tuple(np.array(needed[x]) for x in necessary)
    return Explanation("infeasible", None, Conflict(kept, necessary, witnesses, reason(problem, kept)))


def _ordered(limits: tuple[Limit, ...], chosen: tuple[Limit, ...]) -> tuple[Limit, ...]:
    return tuple(x for x in limits if x in chosen)
