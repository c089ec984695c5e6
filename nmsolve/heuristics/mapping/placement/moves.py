"""Which kinds of moves an annealing tries: one, a fixed mix, or what a bandit has seen pay for its work."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.bandit import Bandit
from nmsolve.heuristics.mapping.placement.data import PlacementData
from nmsolve.heuristics.mapping.placement.directed import (
    ARMS,
    BORDER,
    DIRECTED_STATS,
    WINDOW,
    Aims,
)
from nmsolve.model.types import FloatArray, IntArray

#: No kind is drawn less often than this by the bandit.
FLOOR = 0.02
#: What a slice counts for after one more slice.
DISCOUNT = 0.9
#: Nominal ns that finding a goal adds to a proposal, by kind, and of a neighbour entry read for it.
AIMED, READ = (0.0, 0.0, 6.0, 6.0, 12.0, 6.0, 6.0), 1.5
#: Nodes of a cluster for the kind "community", at most, and rounds of joining.
CLUSTER, ROUNDS = 8, 8


class Moves:
    """The shares of the kinds of moves, and what every kind has done.

    Parameters
    ----------
    data : the problem
    wanted : kinds that may be drawn, among :data:`.directed.ARMS`; those that the board has no use for are left out
    learns : a bandit sets the shares after every slice; else all kinds have equal shares

    Attributes
    ----------
    aims : for the kernels
    tally : (arms, DIRECTED_STATS) sums over all slices
    """

    def __init__(self, data: PlacementData, wanted: tuple[str, ...], learns: bool, seed: int) -> None:
        self.aims = new_aims(data)
        useful = [a for a in wanted if a != ARMS[BORDER] or len(self.aims.borders)]
        self._arms = np.array([ARMS.index(a) for a in useful or [ARMS[WINDOW]]])
        self._bandit = Bandit([ARMS[a] for a in self._arms], seed, FLOOR, DISCOUNT) if learns else None
        self.tally = np.zeros((len(ARMS), DIRECTED_STATS))
        self._shares = np.full(len(self._arms), 1 / len(self._arms))

    def ends(self) -> FloatArray:
        """Return (arms,) float64 cumulative shares of all kinds."""
        share = np.zeros(len(ARMS))
        share[self._arms] = self._shares
        ends: FloatArray = np.cumsum(share)
        ends[self._arms[-1] :] = 1.0
        return ends

    def learn(self, stats: FloatArray, work: FloatArray) -> None:
        """Take note of a slice: ``stats`` (arms, DIRECTED_STATS) and its ``work`` (arms,) in nominal ns."""
        self.tally += stats
        if self._bandit is None:
            return
        for k, arm in enumerate(self._arms):
            if stats[arm, 0] > 0:
                self._bandit.learn(k, float(stats[arm, 6]), float(work[arm]))
        self._shares = np.array(self._bandit.probabilities())

    def summary(self) -> str:
        """Return one line for the events: share of proposals, accepted ones and improvement of every kind tried."""
        total = max(1.0, float(self.tally[:, 0].sum()))
        parts = [
            f"{ARMS[a]} {100 * row[0] / total:.3g}%/{row[1]:.0f}/{row[6]:.6g}"
            for a, row in enumerate(self.tally)
            if row[0]
        ]
        return "arms (share/accepted/gain): " + ", ".join(parts)


def aim_work(stats: FloatArray) -> FloatArray:
    """Return (arms,) nominal ns that finding goals took in ``stats`` (arms, DIRECTED_STATS)."""
    work: FloatArray = stats[:, 0] * np.array(AIMED) + READ * stats[:, 5]
    return work


def flat(stats: FloatArray) -> FloatArray:
    """Return (5,) proposals, accepted ones, entries, change of cost and lines moved of all kinds together.

    Accepted moves and lines moved tell how far moves at random still go: those of the window alone, if it was drawn.
    """
    out: FloatArray = stats[:, :5].sum(axis=0)
    if stats[WINDOW, 0] > 0:
        out[1], out[4] = stats[WINDOW, 1], stats[WINDOW, 4]
    return out


def new_aims(data: PlacementData) -> Aims:
    """Return what moves are aimed by on this problem."""
    group = clusters(data)
    members = np.argsort(group, kind="stable").astype(np.int32)
    first = np.r_[0, np.cumsum(np.bincount(group))].astype(np.int64)
    return Aims(
        np.array(data.indptr), np.array(data.indices), data.weights.astype(np.float32), members, first,
        group.astype(np.int32), _borders(data),
    )  # fmt: skip


def clusters(data: PlacementData) -> IntArray:
    """Return (n,) the cluster of every node: the two with the densest traffic for one another join.

    That ends after :data:`ROUNDS` rounds; no cluster has more than :data:`CLUSTER` nodes.
    """
    from scipy.sparse import csr_array

    group = np.arange(data.n)
    traffic = csr_array((data.weights, data.indices, data.indptr), shape=(data.n, data.n)).tocoo()
    for _ in range(ROUNDS):
        count = int(group.max()) + 1
        between = csr_array(
            (traffic.data, (group[traffic.row], group[traffic.col])), shape=(count, count)
        ).tocoo()
        size = np.bincount(group)
        a, b = between.row, between.col
        # Density of a pair; equal ones are told apart by their numbers, so that choices are mutual.
        value = (
            between.data
            / (size[a] * size[b])
            * (1 + 1e-9 * ((np.minimum(a, b) * 7919 + np.maximum(a, b)) % 1009))
        )
        keep = (a != b) & (size[a] + size[b] <= CLUSTER)
        a, b, value = a[keep], b[keep], value[keep]
        order = np.argsort(value, kind="stable")
        choice = np.full(count, -1)
        choice[a[order]] = b[order]  # the last one, the heaviest, stays
        mate = np.arange(count)
        has = np.flatnonzero(choice >= 0)
        mutual = has[choice[choice[has]] == has]
        mate[mutual] = np.minimum(mutual, choice[mutual])
        _, group = np.unique(mate[group], return_inverse=True)
    return group


def _borders(data: PlacementData) -> IntArray:
    """Return (B, 2) axis and line after which a step costs more than the cheapest one of its axis."""
    found = []
    if data.separable:
        for axis, line in enumerate((data.dx, data.dy)):
            step = np.diagonal(line, 1)
            found += [(axis, int(i)) for i in np.flatnonzero(step > 1.001 * step.min(initial=np.inf))]
    return np.array(found, np.int64).reshape(-1, 2)
