"""Placements of one problem by the policy of method M1, which is asked again from its own answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from nmsolve.learn.mapping.allocate import allocate, by_priority
from nmsolve.learn.mapping.board import Spread, board_of, ranks
from nmsolve.learn.mapping.exchange import exchanges
from nmsolve.learn.mapping.features import node_features, smooth_axes, traffic_of
from nmsolve.learn.mapping.policy import Seen, Size, draw, gaussians, likely, probabilities
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Part of the way to its neighbours that a node goes before all are spread evenly.
PULLED = 0.7
#: Most steps of the start.
MOST_STEPS = 32
#: Lines of a processor on which a vector counts as it is: on larger ones it is as much shorter, as part of a side.
SIDE = 8.0
#: Weight of the neighbours where the mean leaves two cores equal, as in a corner.
RATHER = 0.1


@dataclass(frozen=True)
class Wish:
    """What the policy answers from one placement.

    Attributes
    ----------
    seen : what the network saw
    mean, log_deviation : (n, 2) of the Gaussians, rows and columns of the board
    """

    seen: Seen
    mean: FloatArray
    log_deviation: FloatArray

    @property
    def toward(self) -> FloatArray:
        """(n, 2) where a node would rather be, of cores equally near: by its mean, and a little by where its neighbours are."""
        return np.asarray(self.mean + RATHER * self.seen.pull)


class Rounds:
    """A problem as the policy sees it, made once.

    Parameters
    ----------
    chip : (n,) the processor of every node
    poll : called now and then, as rounds of large problems take long; what it raises ends them
    """

    def __init__(
        self, problem: MappingProblem, size: Size, chip: IntArray, poll: Callable[[], None] = lambda: None
    ) -> None:
        self.problem, self.size, self._poll = problem, size, poll
        self.board, self.traffic = board_of(problem, chip), traffic_of(problem.graph)
        features = node_features(problem.graph, size.mean)
        self.order = by_priority(features[:, -1])
        poll()
        self._axes = np.zeros((problem.n, 2))
        for nodes in self.board.chips:
            self._axes[nodes] = smooth_axes(self.traffic, nodes).T
            poll()
        self._even = Spread(self.board)
        board = self.board
        self._bound = np.maximum((np.array(board.span) - 1) / 2, 0.5)
        self._middle = board.corner + (np.array(board.span) - 1) / 2
        self._limits = board.may, board.kind, board.size, board.capacity
        self._side = float(np.mean(board.span))
        self._fixed = np.concatenate([features, np.log(self.traffic.load)[:, None]], axis=1)
        steps = np.arange(-size.reach, size.reach + 1)
        self.moves = np.stack([a.ravel() for a in np.meshgrid(steps, steps, indexing="ij")], axis=1)
        self._far = np.abs(self.moves).sum(axis=1)

    @property
    def _cols(self) -> int:
        return len(self.board.across)

    def start(self, degrees: float = 0.0) -> IntArray:
        """Return (n,) cores: nodes spread evenly by the smoothest axes of their traffic, turned by an angle. Then all go toward
        their neighbours and are spread evenly again, as often as a processor has lines: on large boards axes alone are far off.
        """
        turn = np.deg2rad(degrees)
        at = np.empty((self.problem.n, 2))
        for nodes in self.board.chips:
            x, y = (ranks(axis) / len(nodes) - 0.5 for axis in self._axes[nodes].T)
            at[nodes, 1] = np.cos(turn) * x + np.sin(turn) * y
            at[nodes, 0] = np.cos(turn) * y - np.sin(turn) * x
        core = self._nearest(self._even(at))
        for _ in range(min(MOST_STEPS, round(self._side))):
            self._poll()
            place = self._place(core)
            core = self._nearest(self._even(place + PULLED * self._pull(place)))
        return core

    def _place(self, core: IntArray) -> FloatArray:
        """Return (n, 2) rows and columns of cores (n,)."""
        return np.stack(np.divmod(core, self._cols), axis=1).astype(np.float64)

    def _pull(self, place: FloatArray) -> FloatArray:
        """Return (n, 2) the way from places (n, 2) to the mean place of a node's neighbours."""
        t = self.traffic
        near = np.asarray(t.mean @ place) + np.where(t.load > 1e-6, 0.0, 1.0)[:, None] * place
        return near - place

    def _nearest(self, place: FloatArray) -> IntArray:
        """Return (n,) the cores nearest to places (n, 2), conflicts settled."""
        return np.asarray(self.settled(likely(place, self.board.corner, self.board.span)[None], place)[0])

    def settled(self, wish: IntArray, toward: FloatArray) -> IntArray:
        """Return (B, n) cores from wishes (B, n, 2), conflicts settled (M1.6); ``toward`` (n, 2) decides between equal ones."""
        core = np.ascontiguousarray(wish[..., 0] * self._cols + wish[..., 1])
        return np.asarray(
            allocate(
                core, np.ascontiguousarray(toward, np.float64), self.order, self._cols,
                self.size.distance == "euclidean", *self._limits,
            )
        )  # fmt: skip

    def seen(self, core: IntArray) -> Seen:
        """Return what the network sees of a placement (n,)."""
        self._poll()
        t, b = self.traffic, self.board
        own, both, target, cost = exchanges(
            core, self.size.reach, t.indptr, t.other, t.weight, b.across, b.down, *self._limits
        )
        place = self._place(core)
        pull = self._pull(place)
        spread, away = self._even(place + PULLED * pull) - place, place - self._middle
        load, side = t.load, self._side
        held, best = self._held(core), both.min(axis=1)
        state = [
            cost / load / side, np.arcsinh(best / load), np.abs(pull).sum(axis=1) / side,
            np.abs(away).max(axis=1) / side, np.abs(spread).sum(axis=1) / side,
        ]  # fmt: skip
        features = np.concatenate([self._fixed, np.stack(state, axis=1)], axis=1)
        far = np.broadcast_to(self._far / 2, own.shape)
        stay = np.broadcast_to(self._far == 0, own.shape)
        barred = target < 0
        target = np.where(barred, self.problem.cores, target)
        theirs = held(best[:, None])[target, 0]
        sides = [_soft(own / load[:, None]), _soft(both / load[:, None]), _soft(both)]
        less = [_soft(both - best[:, None]), _soft(both - theirs)]
        nearby = np.stack([*sides, np.minimum(sides[-1], 0.0), *less, far, stay], axis=2)
        middle, scale = self._middle, SIDE / side
        single = [
            features,
            nearby,
            barred,
            self.moves,
            place,
            scale * pull,
            scale * spread,
            scale * away,
            middle,
        ]
        features, nearby, out, moves, place, pull, spread, away, middle = (
            a.astype(np.float32) for a in single
        )
        return Seen(
            lambda a: a - t.mean @ a, held, lambda share: wanted(share, target, self.room), features, nearby, target,
            out, moves, place, pull, spread, away, middle, np.broadcast_to(self._bound, place.shape).astype(np.float32),
        )  # fmt: skip

    @property
    def room(self) -> AnyArray:
        """(cores + 1,) about how many nodes a core holds, at least 1."""
        return np.asarray(np.maximum(np.append(self.board.held, 1.0), 1.0), np.float32)

    def _held(self, core: IntArray) -> Callable[[AnyArray], AnyArray]:
        mean = held_by(core, self.problem.cores)
        return lambda a: mean @ a

    def asked(self, arrays: Mapping[str, AnyArray], core: IntArray) -> Wish:
        """Return the policy's answer from a placement (n,)."""
        seen = self.seen(core)
        mean, log_deviation = gaussians(arrays, seen)
        return Wish(seen, mean.astype(np.float64), log_deviation.astype(np.float64))

    def agreed(self, core: IntArray) -> IntArray:
        """Return (n, 2) rows and columns after all exchanges that are the best one for both nodes, with one node per core."""
        t, b = self.traffic, self.board
        _, both, target, _ = exchanges(
            core, self.size.reach, t.indptr, t.other, t.weight, b.across, b.down, *self._limits
        )
        both = np.where(target < 0, np.inf, both)
        best, node = both.argmin(axis=1), np.arange(len(core))
        wish = np.where(both[node, best] < 0, target[node, best], core)
        holder = np.full(self.problem.cores, -1)
        holder[core] = node
        there = holder[wish]
        agree = (there < 0) | (wish[there] == core)
        return np.stack(np.divmod(np.where(agree, wish, core), self._cols), axis=1)

    def wished(self, wish: Wish) -> IntArray:
        """Return (n,) every node's most probable core."""
        return np.asarray(likely(wish.mean, self.board.corner, self.board.span) @ (self._cols, 1))

    def greedy(self, wish: Wish) -> IntArray:
        """Return (n,), every node's most probable core, conflicts settled."""
        return np.asarray(
            self.settled(likely(wish.mean, self.board.corner, self.board.span)[None], wish.toward)[0]
        )

    def drawn(self, wish: Wish, times: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return cores drawn by their probability (times, n, 2), rows and columns, and what conflicts make of them (times, n)."""
        corner, span = self.board.corner, self.board.span
        parts = [
            corner[:, k]
            + draw(
                probabilities(wish.mean[:, k], wish.log_deviation[:, k], corner[:, k], span[k]), times, rng
            )
            for k in (0, 1)
        ]
        picked = np.stack(parts, axis=-1)
        return picked, self.settled(picked, wish.toward)


def held_by(core: IntArray, cores: int) -> csr_array:
    """Return (cores + 1, n) the mean over the nodes on every core; the last row is empty."""
    order = np.argsort(core, kind="stable")
    number = np.bincount(core, minlength=cores + 1)
    share = (1.0 / number[core[order]]).astype(np.float32)
    return csr_array((share, order, np.concatenate([[0], np.cumsum(number)])), shape=(cores + 1, len(core)))


def wanted(share: AnyArray, target: IntArray, room: AnyArray) -> AnyArray:
    """Return (C + 1,) how many nodes want a core, in parts of what it holds; shares and cores (n, K)."""
    return np.bincount(target.ravel(), share.ravel(), len(room)).astype(np.float32) / room


def _soft(values: FloatArray) -> FloatArray:
    """Values of any size on a scale that grows with their logarithm."""
    return np.asarray(np.sign(values) * np.log1p(2 * np.abs(values)))
