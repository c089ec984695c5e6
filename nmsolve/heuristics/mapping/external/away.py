"""The finest level spread over other machines: each holds its part of the connections, and proposes for the nodes of its part.

A block is cut into as many parts of its nodes as there are machines, at whole strides. Batches, random numbers and the order in
which moves are accepted are those of threads, so answers do not depend on how many machines there are. Who moved is sent to all
with the next question. A machine that is lost costs the time to spread the connections over those that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.external.arcs import RUN, Arcs, Batch
from nmsolve.heuristics.mapping.external.propose import Drawing
from nmsolve.model.engine import RemoteLost, Remotes
from nmsolve.model.types import AnyArray, Int32Array

#: Parts of a block begin at multiples of this, which all strides divide.
GRAIN = 16 * RUN
#: Times that connections are spread, for lost machines, before the run goes on alone.
ATTEMPTS = 8


@dataclass
class Away:
    """Connections in the memory of other machines.

    Attributes
    ----------
    hire : returns a new ``Holder`` on every machine that there is, or None
    blocks : reads the connections of the level, in blocks
    known : (cores, volume, domain, apart_ptr) of the nodes, which never change
    weight : of all connections, each at both ends; 0 before they have been spread
    """

    hire: Callable[[], Remotes | None]
    blocks: Callable[[], Iterable[Arcs]]
    known: tuple[Any, ...]
    weight: float = 0.0
    _remotes: Remotes | None = None
    _shape: list[tuple[int, int]] = field(default_factory=list)
    _attempts: int = 0

    @property
    def machines(self) -> int:
        """Number of machines at work; 0: the run is alone."""
        return 0 if self._remotes is None else len(self._remotes)

    def spread(self) -> int:
        """Hire machines and give each its part of the connections; return how many there are, 0 if it cannot be done."""
        while self._attempts < ATTEMPTS:
            self._attempts += 1
            self._remotes = None  # those that still live forget what they hold before others take it
            self._remotes = self.hire()
            if self._remotes is None:
                return 0
            try:
                self._give(self._remotes)
            except RemoteLost:
                continue
            return len(self._remotes)
        self._remotes = None
        return 0

    def draws(self, draw: Drawing, cut: bool) -> Iterator[Batch]:
        """Yield one batch of nodes after the other, as they draw from where all are when it is made; all of a sweep.

        It ends early if no machine is left.
        """
        s = draw.s
        begin = ("begin_sweep", s.pos, s.price, draw.temperature, draw.key, draw.stride)
        return self._pass(begin, ("draw", cut), s.pos, draw.stride)

    def proposals(
        self, label: Int32Array, filled: AnyArray, pos: Int32Array, limit: float, stride: int, key: int
    ) -> Iterator[Batch]:
        """Yield one batch of nodes after the other, as they would cluster (see ``Clusters``).

        It ends early if no machine is left.
        """
        return self._pass(
            ("begin_round", label, filled, pos, limit, stride, key), ("propose",), label, stride
        )

    def _pass(
        self, begin: tuple[Any, ...], question: tuple[Any, ...], now: AnyArray, stride: int
    ) -> Iterator[Batch]:
        """Yield all batches. ``now`` (n,) is where the nodes are; who takes a batch changes it before the next is asked for."""
        none_moved = np.empty(0, np.int64), np.empty(0, np.int32)
        to, moved, fresh = np.empty(0, np.int32), none_moved, False
        for number, (first, nodes) in enumerate(self._shape):
            to = now[first : first + nodes].astype(np.int32)
            for offset in range(0, min(stride, nodes), RUN):
                while True:
                    try:
                        if self._remotes is None:
                            return
                        if not fresh:
                            self._remotes.ask(*begin)()
                            moved, fresh = none_moved, True
                        answers = self._remotes.ask(*question, number, offset, *moved)()
                        break
                    except RemoteLost:
                        fresh = False
                        self.spread()
                for (who, where), _, _ in answers:
                    to[who - first] = where
                yield Batch(first, nodes, offset, to, sum(a[1] for a in answers), sum(a[2] for a in answers))
                who, where = (np.concatenate(x) for x in zip(*(a[0] for a in answers), strict=True))
                went = now[who] == where
                moved = who[went], where[went]

    def _give(self, remotes: Remotes) -> None:
        """Send every machine what it has to know, and its part of every block: one block is read while the last is sent."""
        remotes.ask("know", *self.known)()
        shape, weight, sent = [], 0.0, None
        for number, arcs in enumerate(self.blocks()):
            shape.append((arcs.first, arcs.nodes))
            weight += float(arcs.weight[arcs.indptr[0] : arcs.indptr[-1]].sum(dtype=np.float64))
            begun = remotes.ask_each("take", [(number, *part) for part in cut_up(arcs, len(remotes))])
            if sent is not None:
                sent()
            sent = begun
        if sent is not None:
            sent()
        self._shape, self.weight = shape, weight


def cut_up(arcs: Arcs, count: int) -> list[Arcs]:
    """Cut a block into ``count`` parts of about as many nodes, at multiples of :data:`GRAIN`; the last ones may be empty."""
    grains = -(-arcs.nodes // GRAIN)
    ends = [min(arcs.nodes, GRAIN * (grains * k // count)) for k in range(count)] + [arcs.nodes]
    out = []
    for a, z in pairwise(ends):
        begin, end = arcs.indptr[a], arcs.indptr[z]
        row = arcs.indptr[a : z + 1] - begin
        out.append(Arcs(arcs.first + a, row, arcs.neighbour[begin:end], arcs.weight[begin:end]))
    return out
