"""Why limits conflict, in words, as far as counting can tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.groups import Groups, make_groups
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray
from nmsolve.solvers.mapping.explain.limits import Limit, restricted


def reason(problem: MappingProblem, limits: Sequence[Limit]) -> str:
    """One line that says why no mapping obeys ``limits``.

    By counting places or capacity against what the confined nodes need, else by the checks of
    :mod:`nmsolve.model.mapping.fit`; if neither sees it, the line says that only search does.
    """
    alone = restricted(problem, limits)
    if not alone.machine.usable.any():
        return "no core is left: all are " + " or ".join(x.kind for x in limits)
    groups = make_groups(alone)
    if groups.masks[groups.mask_of].any(axis=1).all():
        confined = groups.mask_of > 0
        for items in (confined, np.ones(len(confined), bool)):
            text = _overfull(alone, groups, items, limits) if items.any() else None
            if text is not None:
                return text
    texts = explain_misfit(alone)
    return texts[0] if texts else "counting does not show it; trying every distribution does (CP-SAT)"


def _overfull(
    problem: MappingProblem, groups: Groups, items: BoolArray, limits: Sequence[Limit]
) -> str | None:
    """``region 'a' leaves 3 cores x 2 nodes = 6 places for 7 nodes``, if these are too few; else None."""
    open_to = groups.masks[np.unique(groups.mask_of[items])].any(axis=0)
    cores = int(open_to.sum())
    for r, name in enumerate(problem.resources):
        need = int(groups.sizes[items, r].sum(dtype=object))
        limit, held = int(problem.capacity[:, r].max()), int(problem.capacity[open_to, r].sum())
        if need <= held:
            continue
        nodes = int(items[problem.group_of].sum())
        who = _and([x.words for x in limits if x.kind in ("pin", "region", "forbid", "faulty", "taken")])
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
