"""Messages as ``spread`` sees them: each may be crossed between any two of its terminals, and all crossings share its rate.

A route tree is at least as long as the way between any two of its terminals, so what is led through a message may be as much
as its rate. On a mesh it may be more: the distance of two cores is a sum over lines between rows or columns (and the step),
each of which the tree crosses if the message lies on both sides. So it suffices that no split of the terminals into two sides
parts more than the rate. docs/bounds.md, "spread", has the proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.nets import message_rows

#: Most pairs of terminals of all messages together.
MAX_PAIRS = 4_000_000
#: Most terminals of a message all of whose splits are looked at, and most steps of one look at all such messages.
WIDEST, SPLITS = 16, 2e8


class Messages(NamedTuple):
    """Messages in the order of the graph; one that is charged edge by edge is a message of two terminals per target.

    Attributes
    ----------
    start, node : terminals as CSR, rising in every message
    first : (M + 1,) the number of every message's first pair: of its first and second terminal, first and third, and so on
    rate : (M,) above 0
    widest : splits are looked at up to this many terminals; 0: of no message
    """

    start: IntArray
    node: IntArray
    first: IntArray
    rate: FloatArray
    widest: int

    @property
    def owner(self) -> Int32Array:
        """Return (pairs,) the message of every pair."""
        return np.repeat(np.arange(len(self.rate), dtype=np.int32), np.diff(self.first))

    def ends(self) -> IntArray:
        """Return (pairs, 2) the lower and the higher node of every pair."""
        out = np.empty((int(self.first[-1]), 2), np.int64)
        many = np.diff(self.start)
        for size in np.unique(many).tolist():
            which = np.flatnonzero(many == size)
            low, high = np.triu_indices(size, 1)
            at = (self.first[which][:, None] + np.arange(len(low))).ravel()
            begin = self.start[which][:, None]
            out[at, 0], out[at, 1] = self.node[begin + low].ravel(), self.node[begin + high].ravel()
        return out

    def by_node(self, n: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return CSR over nodes: where each begins, its messages, and its place among the terminals of each."""
        many = np.diff(self.start)
        message = np.repeat(np.arange(len(many)), many)
        place = np.arange(len(self.node)) - self.start[message]
        order = np.argsort(self.node, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self.node, minlength=n))]).astype(np.int64)
        return indptr, message[order], place[order]


def pairs_of_messages(problem: MappingProblem) -> int:
    """Return an upper limit for the number of pairs of terminals."""
    many = np.diff(problem.graph.indptr).astype(np.int64)
    return int(np.where(message_rows(problem), many * (many + 1) // 2, many).sum())


def messages_of(problem: MappingProblem) -> Messages:
    """Return the messages of a net objective."""
    graph, whole = problem.graph, message_rows(problem)
    terminals, rates = list[list[int]](), list[float]()
    for i in range(graph.rows):
        part, source = slice(graph.indptr[i], graph.indptr[i + 1]), int(graph.source[i])
        targets = graph.targets[part].tolist()
        if whole[i]:
            groups = [({source, *targets}, float(graph.rate[i]))]
        else:
            weight = dict[int, float]()
            for t, w in zip(targets, graph.weights[part].tolist(), strict=True):
                weight[t] = weight.get(t, 0.0) + w
            groups = [({source, t}, weight[t]) for t in sorted(weight)]
        for nodes, rate in groups:
            if len(nodes) > 1 and rate > 0:
                terminals.append(sorted(nodes))
                rates.append(rate)
    many = np.array([len(nodes) for nodes in terminals], np.int64)
    start, first = (np.concatenate([[0], np.cumsum(count)]) for count in (many, many * (many - 1) // 2))
    node = np.array([u for nodes in terminals for u in nodes], np.int64)
    return Messages(start, node, first, np.array(rates), 0 if problem.machine.torus else _widest(many))


def _widest(many: IntArray) -> int:
    """Return up to how many terminals splits are looked at, for messages of this many (M,)."""
    steps = np.cumsum(np.bincount(np.minimum(many, WIDEST + 1), minlength=WIDEST + 2) * _steps())
    return int(np.flatnonzero(steps[: WIDEST + 1] <= SPLITS).max())


def _steps() -> FloatArray:
    """Return (WIDEST + 2,) the steps of all splits of this many terminals."""
    many = np.arange(WIDEST + 2)
    return many * 2.0 ** (many - 1)


@plain
def pair_number(first: int, many: int, i: int, j: int) -> int:
    """The number of the pair of the i-th and the j-th of this many terminals; ``first`` is that of the message's first pair."""
    low, high = min(i, j), max(i, j)
    return first + low * many - low * (low + 1) // 2 + high - low - 1


@kernel
def carried(start: IntArray, first: IntArray, flow: FloatArray, widest: int) -> FloatArray:
    """(M,) the most that a split of every message's terminals parts of what is led between them, ``flow`` (pairs,) >= 0.

    Splits are passed so that one terminal changes sides at a time; ``pull`` is what joins each to the first side less what joins
    it to the other. Of messages with more than ``widest`` terminals: all of it.
    """
    out = np.zeros(len(start) - 1)
    weight, side, pull = np.zeros((WIDEST, WIDEST)), np.ones(WIDEST), np.zeros(WIDEST)
    for m in range(len(out)):
        many = start[m + 1] - start[m]
        if many > widest or many == 2:
            for pair in range(first[m], first[m + 1]):
                out[m] += flow[pair]
            continue
        pair = first[m]
        weight[:], side[:], pull[:] = 0.0, 1.0, 0.0
        for i in range(many):
            for j in range(i + 1, many):
                weight[i, j] = weight[j, i] = flow[pair]
                pair += 1
        for i in range(many):
            pull[i] = weight[i].sum()
        parted = 0.0
        for split in range(1, 1 << (many - 1)):
            i = 0
            while (split >> i) & 1 == 0:
                i += 1
            parted += side[i] * pull[i]
            side[i] = -side[i]
            twice = 2.0 * side[i]
            for j in range(WIDEST):
                pull[j] += twice * weight[i, j]
            out[m] = max(out[m], parted)
    return out
