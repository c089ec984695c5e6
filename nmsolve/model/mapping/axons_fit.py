"""Limits on axon tables of a problem: which can bind, which a mapping breaks, and why they cannot suffice, by counting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.model.graph import READERS, Rows
from nmsolve.model.mapping.axons import AXON_WORDS, AXONS_IN, AXONS_OUT, BIG, axon_usage, most_entries
from nmsolve.model.mapping.axons_crowd import crowd
from nmsolve.model.mapping.groups import Groups, make_groups
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def axon_misfit(problem: MappingProblem) -> list[str]:
    """Return nodes (or ``together`` groups) whose messages alone exceed a table, totals that exceed all tables, and a crowd.

    A message needs an entry for every core it reaches, and reaches at least as many cores as its targets fill: their sizes
    over what a core holds, rounded up. It takes this number of incoming entries wherever its targets are, and as many
    outgoing ones where its source is. Crowds are in :mod:`nmsolve.model.mapping.axons_crowd`.
    """
    stated = problem.axon_limits
    bounds = most_axons(problem) if stated else (0, 0)
    if all(bound <= stated[name] for name, bound in zip(_NAMES, bounds, strict=True) if name in stated):
        return []
    groups = make_groups(problem)
    received, sent, least = _needs(problem, len(groups.mask_of))
    out = []
    for name, need, verb in ((AXONS_IN, received, "receives"), (AXONS_OUT, sent, "sends")):
        if name in stated:
            out += _alone(groups, need, stated[name], name, verb)
    usable = int(problem.machine.usable.sum())
    for name in stated if not out else ():
        if least > stated[name] * usable:
            out.append(
                f"the messages must reach {least} cores, counted for each message, because a core cannot hold all of"
                f" its targets; the {usable} usable cores have {stated[name] * usable} {name} ({stated[name]} each)"
            )
    found = crowd(problem, received, stated[AXONS_IN]) if AXONS_IN in stated and not out else None
    if found is not None:
        nodes, s, messages = found
        out.append(
            f"{s} of the {nodes} nodes that most messages reach must share one of {usable} cores; any {s} of them receive"
            f" at least {messages} distinct messages, and a core has {stated[AXONS_IN]} {AXONS_IN}"
        )
    return out


_NAMES = (AXONS_IN, AXONS_OUT)


def _alone(groups: Groups, need: IntArray, limit: int, name: str, verb: str) -> list[str]:
    """Return groups that need more entries than any core has, the worst by name."""
    over = np.flatnonzero(need > limit)
    if not len(over):
        return []
    g = int(over[np.argmax(need[over])])
    more = f"; {len(over) - 1} more need too many" if len(over) > 1 else ""
    if len(groups.members(g)) > 1:
        verb = verb.removesuffix("s")
    what = "distinct messages" if name == AXONS_IN else "messages to cores, at least,"
    return [f"{groups.label(g)} {verb} {need[g]} {what} and a core has {limit} {name}{more}"]


def _needs(problem: MappingProblem, count: int) -> tuple[IntArray, IntArray, int]:
    """Return distinct messages that every group receives, entries that those it sends need at least, and their total."""
    group, graph = problem.group_of, problem.graph
    share = problem.sizes[:, :] / np.maximum(problem.capacity.max(axis=0, initial=1), 1)
    received, sent, total = np.zeros(count, np.int64), np.zeros(count, np.int64), 0
    for rows in graph.blocks(READERS):
        received += _distinct(rows, group, count)
        fan = _least_cores(rows, share)
        np.add.at(sent, group[rows.source], fan)
        total += int(fan.sum())
    return received, sent, total


def _distinct(rows: Rows, group: IntArray, count: int) -> IntArray:
    """Return (count,) messages of a block that reach each group."""
    if count == len(group):  # no groups: the targets of a row are distinct
        return np.bincount(rows.targets, minlength=count)
    row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))
    return np.bincount(np.unique(row * count + group[rows.targets]) % count, minlength=count)


def _least_cores(rows: Rows, share: IntArray) -> IntArray:
    """(rows,) number of cores that the targets of each message fill at least; 1 where nothing is limited, 0 without any."""
    out = (np.diff(rows.indptr) > 0).astype(np.int64)
    full = np.flatnonzero(out)
    for r in range(share.shape[1]):
        if len(full):
            filled = np.add.reduceat(share[rows.targets, r], rows.indptr[full])
            out[full] = np.maximum(out[full], np.ceil(filled - 1e-6).astype(np.int64))
    return out


def most_axons(problem: MappingProblem) -> tuple[int, int]:
    """Return numbers of incoming and of outgoing entries that no core exceeds in any mapping within the capacities."""
    return most_entries(problem.graph, problem.machine, problem.sizes, problem.capacity, problem.inner)


def without_axons(problem: MappingProblem) -> MappingProblem:
    """Return the problem with unlimited axon tables."""
    stated = problem.axon_limits
    capacity = {r: limit for r, limit in problem.machine.capacity.items() if r not in stated}
    return replace(problem, machine=replace(problem.machine, capacity=capacity), inner=None)


def idle_limits(problem: MappingProblem) -> str | None:
    """Return the stated limits that were dropped because they cannot bind, in words; None if there are none."""
    kept = problem.axons
    idle = [
        f"{name} {limit}"
        for name, limit in problem.axon_limits.items()
        if kept is None or (kept.most_in if name == AXONS_IN else kept.most_out) == BIG
    ]
    return f"{' and '.join(idle)} cannot bind: no core can hold nodes that need more" if idle else None


def axon_overflows(problem: MappingProblem, core: IntArray) -> list[str]:
    """Describe the cores of a mapping (n,) whose tables need more entries than the machine has."""
    stated = problem.axon_limits
    if not stated:
        return []
    usage = dict(
        zip((AXONS_IN, AXONS_OUT), axon_usage(problem.graph, problem.cores, core, problem.inner), strict=True)
    )
    return [
        f"core {p} needs {usage[name][p]} {name} ({AXON_WORDS[name]}), its limit is {problem.machine.limits(name)[p]}"
        for name in stated
        for p in np.flatnonzero(usage[name] > problem.machine.limits(name)).tolist()
    ]
