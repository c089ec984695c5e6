"""Resources that do not suffice: of one node, of a set of cores, or in total."""

from __future__ import annotations

import math

import numpy as np

from nmsolve.model.machine import Machine
from nmsolve.model.mapping.groups import Groups, make_groups, quoted
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray

#: With more distinct sets of allowed cores than this, sets are not compared with each other.
MOST_MASKS = 512


def overflows(problem: MappingProblem) -> list[str]:
    """Return every way in which sizes exceed capacities, one line each; see the functions below."""
    if not problem.resources:
        return []
    groups = make_groups(problem)
    limit, room = problem.capacity.max(axis=0), problem.capacity.sum(axis=0)
    large = too_large_nodes(groups, limit)
    return large + _total(groups, limit, room, bool(large)) + _regions(groups) + _halves(groups, limit, room)


def too_large_nodes(groups: Groups, limit: IntArray) -> list[str]:
    """Return nodes (or ``together`` groups) that no core can hold, the largest of each resource by name."""
    out = []
    for r, name in enumerate(groups.problem.resources):
        size = groups.sizes[:, r]
        over = np.flatnonzero(size > limit[r])
        if len(over):
            g = int(over[np.argmax(size[over])])
            more = f"; {len(over) - 1} more are too large" if len(over) > 1 else ""
            single = len(groups.members(g)) == 1
            verb = "needs" if single else "need"
            if single and limit[r] > 0:
                more = f": split it into {-(-size[g] // limit[r])} nodes or more{more}"
            out.append(f"{groups.label(g)} {verb} {size[g]} {name}, {_a_core(groups)} holds {limit[r]}{more}")
    return out


def _a_core(groups: Groups) -> str:
    return "a core" if groups.problem.alike else "the largest core"


def _total(groups: Groups, limit: IntArray, room: IntArray, hopeless: bool) -> list[str]:
    """Return totals above what all usable cores hold, with the smallest machine of the kind that would do."""
    problem = groups.problem
    usable = int(problem.machine.usable.sum())
    needs = groups.sizes.sum(axis=0, dtype=object)
    out = []
    for r, name in enumerate(problem.resources):
        if needs[r] > room[r]:
            each = f"{limit[r]} each" if problem.alike else f"the largest {limit[r]}"
            out.append(
                f"the nodes need {needs[r]} {name} in total, the {usable} usable cores hold {room[r]} ({each})"
            )
    if out and not hopeless and problem.alike:
        advice = _smallest_machine(problem.machine, *_cores_needed(groups.sizes, limit))
        out = [f"{line}; {advice}" for line in out]
    return out


def _cores_needed(sizes: IntArray, limit: IntArray) -> tuple[int, int]:
    """Return the number of cores that no packing can undercut, and a number that surely suffices (largest first, next fit).

    Every size must fit a core.
    """
    useful = limit > 0
    if not useful.any():
        return 1, 1
    sizes, limit = sizes[:, useful], limit[useful]
    least = max(-(-int(s) // int(c)) for s, c in zip(sizes.sum(axis=0, dtype=object), limit, strict=True))
    least = max(least, int((sizes > limit // 2).sum(axis=0).max()))
    order = np.argsort(-(sizes / limit).max(axis=1), kind="stable")
    filled = np.vstack([np.zeros((1, sizes.shape[1])), np.cumsum(sizes[order], axis=0)])
    bins = begin = 0
    while begin < len(order):
        ends = [
            np.searchsorted(filled[:, r], filled[begin, r] + limit[r], side="right") - 1
            for r in range(len(limit))
        ]
        begin = max(begin + 1, int(min(ends)))
        bins += 1
    return max(1, least), max(bins, least)


def _smallest_machine(machine: Machine, least: int, enough: int) -> str:
    """Return advice: the smallest machine of this kind with at least this many cores."""
    if machine.distance_matrix is not None:
        return f"at least {least} such cores are needed"
    if machine.n_chips == 1 and machine.name.startswith("mesh"):
        return _advice("near-square mesh", _mesh(least), _mesh(enough))
    per_chip = machine.cores[0] * machine.cores[1]
    low, high = (_chips(machine, -(-cores // per_chip)) for cores in (least, enough))
    return _advice("machine of the kind", low, high)


def _advice(kind: str, low: str, high: str) -> str:
    if low == high:
        return f"the smallest {kind} that holds them is {low}"
    return f"no {kind} smaller than {low} holds them, {high} surely does"


def _chips(machine: Machine, count: int) -> str:
    rows = math.isqrt(count)
    while count % rows:
        rows -= 1
    larger = machine.with_chips(rows, count // rows)
    return f"one with {larger.n_chips} chip{'s' * (count > 1)} (--chips {rows}x{count // rows})"


def _mesh(cores: int) -> str:
    cols = math.isqrt(cores - 1) + 1
    return f"mesh:{-(-cores // cols)}x{cols}"


def _regions(groups: Groups) -> list[str]:
    """Return sets of cores (pins, regions) that cannot hold all the groups that may be nowhere else."""
    out = []
    counts = groups.masks.sum(axis=1)
    need = np.zeros((len(groups.masks), groups.sizes.shape[1]))
    np.add.at(need, groups.mask_of, groups.sizes)
    inside = _contained(groups.masks)
    need, room = inside @ need, groups.masks.astype(np.int64) @ groups.problem.capacity
    for d in range(1, len(groups.masks)):
        over = np.flatnonzero(need[d] > room[d])
        if len(over) and counts[d] > 0:
            r = int(over[0])
            rows = np.flatnonzero(inside[d])
            names = _names(groups, rows)
            out.append(
                f"{_where(groups, d)} would have to hold {int(need[d, r])} {groups.problem.resources[r]} because of"
                f" {quoted(names) or 'their size'}, the limit is {int(room[d, r])}"
            )
    return out


def _contained(masks: BoolArray) -> BoolArray:
    """Return (D, D): does row d's set of cores contain row e's? Only equality where there are too many rows."""
    if len(masks) > MOST_MASKS:
        return np.eye(len(masks), dtype=bool)
    as_float = masks.astype(np.float32)
    inside: BoolArray = (1.0 - as_float) @ as_float.T == 0
    return inside


def _names(groups: Groups, rows: IntArray) -> list[str]:
    """Return constraints that confine the groups with those rows of masks."""
    problem = groups.problem
    confined = np.isin(groups.mask_of, rows)
    return [
        c.name
        for c in problem.constraints
        if c.kind in ("pin", "region", "forbid") and confined[problem.group_of[list(c.nodes)]].any()
    ]


def _where(groups: Groups, d: int) -> str:
    cores = np.flatnonzero(groups.masks[d])
    if len(cores) == 1:
        return f"core {[int(v) for v in divmod(int(cores[0]), groups.problem.machine.cols)]}"
    corners = [[int(v) for v in divmod(int(p), groups.problem.machine.cols)] for p in (cores[0], cores[-1])]
    return f"the {len(cores)} usable cores from {corners[0]} to {corners[1]}"


def _halves(groups: Groups, limit: IntArray, room: IntArray) -> list[str]:
    """More groups than cores of which no two fit on one core."""
    problem = groups.problem
    usable = int(problem.machine.usable.sum())
    out = []
    for r, name in enumerate(groups.problem.resources):
        size = groups.sizes[:, r]
        halves = size[(size > limit[r] // 2) & (size <= limit[r])]
        enough = int((problem.capacity[problem.machine.usable, r] >= halves.min(initial=limit[r])).sum())
        if len(halves) > enough and int(size.sum(dtype=object)) <= room[r]:
            half = f"half a core's {limit[r]}" if problem.alike else f"half the largest core's {limit[r]}"
            out.append(
                f"{len(halves)} nodes need more than {half} {name} each, so each needs a core of its own,"
                f" and {enough} are {'usable' if enough == usable else 'large enough'}"
            )
    return out
