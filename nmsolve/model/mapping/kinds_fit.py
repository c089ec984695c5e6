"""Why kinds of nodes cannot be kept apart as a machine wants it (``kinds_per_core``), found by counting."""

from __future__ import annotations

import numpy as np

from nmsolve.model.mapping.groups import make_groups, quoted
from nmsolve.model.mapping.kinds import KindSets, merged_kinds
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray

#: Most kinds that a message lists.
LISTED = 12


def kinds_misfit(problem: MappingProblem) -> list[str]:
    """Return reasons why no mapping keeps the limit on kinds per core, one line each; empty if none was found.

    ``together`` groups of too many kinds; kinds whose nodes may not be on as many cores as they take; pins that bring too many
    kinds to one core; and cores that all kinds take in total. A kind takes at least the cores that hold its nodes by size,
    and one for each of its nodes above half a core. (Nodes of no core are found before: too large, or rules that conflict.)
    """
    sets, most = problem.kinds, problem.machine.kinds_per_core
    if sets is None or most is None:
        return []
    return (
        _crowded_groups(problem, sets, most) or _confined(problem, sets, most) or _total(problem, sets, most)
    )


def _crowded_groups(problem: MappingProblem, sets: KindSets, most: int) -> list[str]:
    groups, merged = make_groups(problem), merged_kinds(sets, problem.group_of)
    over = np.flatnonzero(np.diff(merged.ptr)[merged.of] > most)
    out = []
    for g in over[:1].tolist():
        kinds = [sets.names[k] for k in merged.of_set(int(merged.of[g]))]
        more = f" (and {len(over) - 1} more groups)" if len(over) > 1 else ""
        limit = f"a core takes {most} kind{'s' * (most > 1)} (kinds_per_core)"
        out.append(f"{groups.label(g)} are of kinds {quoted(kinds)}{more}, {limit}")
    return out


def _confined(problem: MappingProblem, sets: KindSets, most: int) -> list[str]:
    out = []
    node, kind = sets.pairs()
    need = cores_needed(problem, sets, _reached(problem, node, kind, sets.number))
    for k in range(sets.number):
        allowed = int(problem.domains[np.unique(problem.domain_of[node[kind == k]])].any(axis=0).sum())
        if need[k] > allowed:
            out.append(
                f"kind {sets.names[k]!r} needs at least {need[k]} cores, its nodes may be on {allowed}"
            )
    for d in np.flatnonzero(problem.domains.sum(axis=1) == 1).tolist():
        here = np.unique(kind[problem.domain_of[node] == d])
        if len(here) > most:
            names = quoted([sets.names[k] for k in here.tolist()])
            p = int(problem.domains[d].argmax())
            limit = f"its limit is {most} (kinds_per_core)"
            out.append(f"core {p} would have to hold nodes of {len(here)} kinds ({names}), {limit}")
    return out


def _reached(problem: MappingProblem, node: IntArray, kind: IntArray, count: int) -> IntArray:
    """Return (count, R) the largest capacity of a core that some node of each kind may be on."""
    largest = np.stack([problem.capacity[mask].max(axis=0, initial=0) for mask in problem.domains])
    out = np.zeros((count, problem.capacity.shape[1]), np.int64)
    np.maximum.at(out, kind, largest[problem.domain_of[node]])
    return out


def cores_needed(problem: MappingProblem, sets: KindSets, limit: IntArray) -> IntArray:
    """Return (kinds,) cores that no mapping can undercut for the nodes of each kind alone.

    ``limit`` (kinds, R) is what one of them holds. Nodes of several kinds (merged ones) count for none of them.
    """
    single: BoolArray = (np.diff(sets.ptr) == 1)[sets.of]
    kind = sets.items[sets.ptr[sets.of[single]]]
    need = np.ones(sets.number, np.int64)
    for r in range(problem.sizes.shape[1]):
        size, room = problem.sizes[single, r], limit[:, r]
        total, large = np.zeros(sets.number, np.int64), np.zeros(sets.number, np.int64)
        np.add.at(total, kind, size)
        np.add.at(large, kind, size > room[kind] // 2)
        need = np.maximum(need, np.where(room > 0, np.maximum(-(-total // np.maximum(room, 1)), large), 1))
    return need


def _total(problem: MappingProblem, sets: KindSets, most: int) -> list[str]:
    usable = int(problem.machine.usable.sum())
    limit = np.broadcast_to(problem.capacity.max(axis=0, initial=0), (sets.number, problem.sizes.shape[1]))
    need = cores_needed(problem, sets, limit)
    if need.sum() <= usable * most:
        return []
    order = np.argsort(-need, kind="stable").tolist()
    listed = ", ".join(f"kind {sets.names[k]!r} {need[k]}" for k in order[:LISTED])
    listed += f" and {len(order) - LISTED} more kinds" if len(order) > LISTED else ""
    least = -(-int(need.sum()) // most)
    each = "one kind" if most == 1 else f"{most} kinds"
    return [
        f"with {each} per core the nodes need at least {least} cores: {listed}; {problem.machine.name} has {usable} usable"
    ]
