"""Machines whose cores lie in groups of groups: as far from each other as the level says on which their groups part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.types import FloatArray, IntArray

#: With more distances than this a machine is not worked through level by level.
MOST_LEVELS = 8


@dataclass(frozen=True)
class Region:
    """A group of cores.

    Attributes
    ----------
    cores : (k,) int64, ascending
    parts : the groups that it falls into; none if it is one core
    distance : of any two cores in different parts
    """

    cores: IntArray
    parts: tuple[Region, ...] = ()
    distance: float = 0.0


def groups_of(distance: FloatArray) -> Region | None:
    """Return all cores as a group of groups, or None if a machine of these distances (K, K) has not two levels or more.

    It is such a machine if to be at most so far from each other is an equivalence, however far (an ultrametric).
    """
    if len(distance) == 0 or len(np.unique(distance[0])) > MOST_LEVELS + 1:
        return None
    values = np.unique(distance)
    if not 2 < len(values) <= MOST_LEVELS + 1:
        return None
    groups = []
    for far in values[::-1]:
        within = distance <= far
        first = within.argmax(axis=1)
        if (within != (first[:, None] == first[None, :])).any():
            return None
        groups.append(first)
    every = np.arange(len(distance), dtype=np.int64)
    return _region(every, 0, groups, values[::-1]) if (groups[-1] == every).all() else None


def _region(cores: IntArray, depth: int, groups: list[IntArray], values: FloatArray) -> Region:
    """Return the group of these cores, which are one at this depth; groups of the next depth lie ``values[depth]`` apart."""
    if len(cores) == 1:
        return Region(cores)
    group = groups[depth + 1][cores]
    parts = tuple(_region(cores[group == number], depth + 1, groups, values) for number in np.unique(group))
    return Region(cores, parts, float(values[depth])) if len(parts) > 1 else parts[0]
