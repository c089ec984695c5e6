"""The limits of a mapping problem, for the loop that looks for a smallest conflict (:mod:`nmsolve.solvers.search.conflict`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.conflict import impossible
from nmsolve.model.mapping.broken import CUT_OFF
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.groups import Groups, make_groups
from nmsolve.model.mapping.limits import limits_of, restricted
from nmsolve.model.mapping.overflow import too_large_nodes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.explain.model import has_mapping
from nmsolve.solvers.search import conflict
from nmsolve.solvers.search.conflict import Answer, Explanation, Limit, Limits, whole_list


class MappingLimits(Limits[IntArray]):
    """Solutions are (n,) core numbers. A migration budget is no limit here."""

    def __init__(self, problem: MappingProblem) -> None:
        self.problem, self.every = problem, limits_of(problem)

    def ask(
        self, limits: tuple[Limit, ...], seconds: float, seed: int, should_stop: Callable[[], bool]
    ) -> Answer[IntArray]:
        """Ask first fit, then CP-SAT, with every limit as an assumption: it names some that suffice for its proof."""
        return has_mapping(self.problem, limits, seconds, seed, should_stop)

    def reason(self, limits: tuple[Limit, ...]) -> str:
        """By counting places or capacity against what the confined nodes need, else by the checks of
        :mod:`nmsolve.model.mapping.fit`; if neither sees it, the line says that only search does."""
        alone = restricted(self.problem, limits)
        if not alone.machine.usable.any():
            return "no core is left: all are " + " or ".join(x.kind for x in limits)
        groups = make_groups(alone)
        large = too_large_nodes(groups, alone.capacity.max(axis=0))
        if large:
            return large[0]
        if groups.masks[groups.mask_of].any(axis=1).all():
            confined = groups.mask_of > 0
            for items in (confined, np.ones(len(confined), bool)):
                text = _overfull(alone, groups, items, limits) if items.any() else None
                if text is not None:
                    return text
        texts = explain_misfit(alone)
        return texts[0] if texts else "counting does not show it; trying every distribution does (CP-SAT)"

    def written(self, solution: IntArray) -> dict[str, Any]:
        """Return the core of every node of ``solution`` (n,)."""
        return {"core": solution.tolist()}

    def complaint(self, limits: tuple[Limit, ...], entry: Mapping[str, Any]) -> str | None:
        """By :func:`nmsolve.model.mapping.solution.check_mapping`."""
        core = np.array(whole_list(entry, "core"), np.int64)
        broken = check_mapping(restricted(self.problem, limits), core)
        return broken[0].text if broken else None

    def impossible(self, limits: tuple[Limit, ...], seconds: float) -> bool | None:
        """By a model with one Boolean per node and core."""
        return impossible(restricted(self.problem, limits), seconds)


def explain(problem: MappingProblem, seconds: float = 60.0, seed: int = 0) -> Explanation[IntArray]:
    """Find a smallest conflict of a mapping problem (:func:`nmsolve.solvers.search.conflict.smallest_conflict`)."""
    return conflict.smallest_conflict(MappingLimits(problem), seconds, seed)


def recheck_conflict(problem: MappingProblem, certificate: Mapping[str, Any], seconds: float = 30.0) -> bool:
    """:func:`nmsolve.solvers.search.conflict.recheck_conflict` of a mapping problem."""
    return conflict.recheck_conflict(MappingLimits(problem), certificate, seconds)


def _overfull(
    problem: MappingProblem, groups: Groups, items: BoolArray, limits: Sequence[Limit]
) -> str | None:
    """Return ``region 'a' leaves 3 cores x 2 nodes = 6 places for 7 nodes``, if these are too few; else None."""
    open_to = groups.masks[np.unique(groups.mask_of[items])].any(axis=0)
    cores = int(open_to.sum())
    for r, name in enumerate(problem.resources):
        need = int(groups.sizes[items, r].sum(dtype=object))
        limit, held = int(problem.capacity[:, r].max()), int(problem.capacity[open_to, r].sum())
        if need <= held:
            continue
        nodes = int(items[problem.group_of].sum())
        who = _and(
            [x.words for x in limits if x.kind in ("pin", "region", "forbid", "faulty", "taken", CUT_OFF)]
        )
        verb = "leaves" if who and who.count("'") == 2 and "cores" not in who else "leave"
        start = f"{who} {verb} " if who else "there are "
        unit = "node" if name == "nodes" and limit == 1 else name
        room = f"{start}{cores} core{'s' * (cores != 1)} x {limit} {unit} = {cores * limit}"
        if held < cores * limit:
            room = f"{start}{cores} core{'s' * (cores != 1)} with {held} {unit} together"
        if name == "nodes":
            return f"{room} place{'s' * (cores * limit != 1)} for {nodes} nodes"
        return f"{room} for {nodes} nodes that need {need}"
    return None


def _and(words: list[str]) -> str:
    if len(words) > 6:
        words = [*words[:5], f"{len(words) - 5} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
