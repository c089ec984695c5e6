"""A small population for tabu search: members are crossed, their children searched, the best and most different ones stay.

Memetic search in the manner of Benlic and Hao (2015), with two differences: crossing is by permitted swaps, so that side
constraints hold throughout, and the second parent is first turned and mirrored onto the first by whatever symmetry of the
board brings them closest, because two good placements on a mesh are often each other's mirror image.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nmsolve.heuristics.mapping.placement.data import PlacementData
from nmsolve.heuristics.mapping.placement.tabu_kernel import Dense
from nmsolve.model.types import AnyArray, Int32Array

#: Members, and how many take part in the contest for each parent.
MEMBERS, CONTEST = 12, 2


@dataclass
class Population:
    """Seats (P,) int32 with their costs.

    Attributes
    ----------
    nodes : number of real nodes, the first entries of a seat
    symmetries : (S, P) int32 permutations of the seats that change no cost and keep every side constraint
    """

    nodes: int
    symmetries: Int32Array
    rng: np.random.Generator
    seats: list[Int32Array] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """True once there are enough members to cross."""
        return len(self.seats) >= MEMBERS

    def parents(self) -> tuple[Int32Array, Int32Array]:
        """Return two different members (seats,), each the best of a random few; the second aligned with the first."""
        first = min(self.rng.choice(len(self.seats), CONTEST, replace=False), key=lambda i: self.costs[i])
        rest = [i for i in range(len(self.seats)) if i != first]
        second = min(self.rng.choice(rest, CONTEST, replace=False), key=lambda i: self.costs[i])
        return self.seats[first], self.aligned(self.seats[second], self.seats[first])

    def aligned(self, seat: Int32Array, to: Int32Array) -> Int32Array:
        """Return ``seat`` (seats,) under the symmetry that agrees with ``to`` on most nodes."""
        images = self.symmetries[:, seat]
        alike = (images[:, : self.nodes] == to[: self.nodes]).sum(axis=1)
        out: Int32Array = images[int(np.argmax(alike))]
        return out

    def add(self, seat: Int32Array, cost: float) -> bool:
        """Add a member (seats,), instead of the worst if there are enough; False if it is worse, or a copy of another."""
        for i, known in enumerate(self.costs):
            if known == cost and (self.aligned(seat, self.seats[i]) == self.seats[i])[: self.nodes].all():
                return False
        if not self.full:
            self.seats.append(seat.copy())
            self.costs.append(cost)
            return True
        worst = int(np.argmax(self.costs))
        if cost >= self.costs[worst]:
            return False
        self.seats[worst], self.costs[worst] = seat.copy(), cost
        return True


def board_symmetries(data: PlacementData, dense: Dense) -> Int32Array:
    """Return (S, P) int32: mirrors and turns of the board as permutations of the usable cores, identity first.

    Only those that keep every distance and the set of cores allowed to every node.
    """
    free = data.free
    number = np.full(data.cores, -1, np.int64)
    number[free] = np.arange(len(free))
    grid = np.arange(data.cores).reshape(data.rows, data.cols)
    images: list[AnyArray] = [grid]
    if data.separable:
        images += [grid[::-1], grid[:, ::-1], grid[::-1, ::-1]]
        if data.rows == data.cols:
            images += [image.T for image in images[:4]]
    out = []
    for image in images:
        to = number[image.ravel()[free]]
        if (to >= 0).all() and _keeps(dense, to):
            out.append(to.astype(np.int32))
    return np.array(out)


def _keeps(dense: Dense, to: AnyArray) -> bool:
    """Return True if the permutation ``to`` of the seats changes no distance and no node's allowed seats."""
    same = np.array_equal(dense.dist[np.ix_(to, to)], dense.dist)
    return same and np.array_equal(dense.can[:, to], dense.can)
