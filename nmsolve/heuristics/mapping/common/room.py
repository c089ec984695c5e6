"""Who fits where: capacities, allowed cores and ``apart`` of a mapping that is being made or changed."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numba as nb
import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, Int32Array, IntArray


class Room(NamedTuple):
    """Sizes, limits and side constraints as in ``MappingProblem``, and a mapping that changes in place.

    ``load`` (P, resources) is what the nodes take of each core, ``core`` (n,) where they are (-1: nowhere yet).
    """

    sizes: IntArray
    capacity: IntArray
    load: IntArray
    domain_of: Int32Array
    domains: BoolArray
    apart_ptr: IntArray
    apart: Int32Array
    core: IntArray


class Places(Protocol):
    """The part of a kernel's state that the functions here read and change: that of a :class:`Room`."""

    @property
    def sizes(self) -> IntArray: ...
    @property
    def capacity(self) -> IntArray: ...
    @property
    def load(self) -> IntArray: ...
    @property
    def domain_of(self) -> Int32Array: ...
    @property
    def domains(self) -> BoolArray: ...
    @property
    def apart_ptr(self) -> IntArray: ...
    @property
    def apart(self) -> Int32Array: ...
    @property
    def core(self) -> IntArray: ...


def empty_room(
    sizes: IntArray,
    capacity: IntArray,
    domain_of: Int32Array,
    domains: BoolArray,
    apart: tuple[IntArray, Int32Array],
) -> Room:
    """Nobody is anywhere. Tables are copied, because numba compiles anew for read-only ones."""
    return Room(
        sizes=np.array(sizes),
        capacity=np.array(capacity),
        load=np.zeros(capacity.shape, np.int64),
        domain_of=np.array(domain_of),
        domains=np.array(domains),
        apart_ptr=np.array(apart[0]),
        apart=np.array(apart[1]),
        core=np.full(len(sizes), -1, np.int64),
    )


def room_of(problem: MappingProblem) -> Room:
    """The empty room of a problem."""
    return empty_room(problem.sizes, problem.capacity, problem.domain_of, problem.domains, problem.apart)


@nb.njit(cache=True, nogil=True, inline="always")
def fits(s: Places, u: int, p: int, without: int) -> bool:
    """True if node ``u`` may go to core ``p`` once node ``without`` (-1: nobody) has left it."""
    if not s.domains[s.domain_of[u], p]:
        return False
    for r in range(s.sizes.shape[1]):
        spare = s.capacity[p, r] - s.load[p, r]
        if without >= 0:
            spare += s.sizes[without, r]
        if s.sizes[u, r] > spare:
            return False
    clear = True
    for e in range(s.apart_ptr[u], s.apart_ptr[u + 1]):
        v = s.apart[e]
        clear = clear and (s.core[v] != p or v == without)
    return clear


@nb.njit(cache=True, nogil=True, inline="always")
def put(s: Places, u: int, p: int) -> None:
    """Move node ``u`` to core ``p`` (from another, or from nowhere); rules are not asked."""
    q = s.core[u]
    for r in range(s.sizes.shape[1]):
        if q >= 0:
            s.load[q, r] -= s.sizes[u, r]
        s.load[p, r] += s.sizes[u, r]
    s.core[u] = p


@nb.njit(cache=True, nogil=True)
def nearest(s: Places, u: int, wish: int, cols: int) -> int:
    """The core nearest to ``wish`` on the board that takes ``u``, other than its present one; or -1."""
    best, least = -1, 1 << 62
    for p in range(s.load.shape[0]):
        away = abs(p // cols - wish // cols) + abs(p % cols - wish % cols)
        if p != s.core[u] and away < least and fits(s, u, p, -1):
            best, least = p, away
    return best
