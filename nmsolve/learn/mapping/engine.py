"""The engine ``m1-policy``: method M1 as published, with a trained policy; communities first if there are several processors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from nmsolve.heuristics.mapping.published.communities import communities_to_chips
from nmsolve.heuristics.mapping.published.m2.topology import Stopped
from nmsolve.learn.checkpoint import Checkpoint, sized
from nmsolve.learn.mapping.allocate import allocate, by_priority
from nmsolve.learn.mapping.features import node_features, traffic_of
from nmsolve.learn.mapping.numbering import axes_of
from nmsolve.learn.mapping.policy import Size, core_probabilities, draw, gaussians
from nmsolve.learn.mapping.processor import processor, view
from nmsolve.learn.placer import Placer
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Placements that one run tries: the most probable one first, then draws.
SAMPLES = 256
#: Turns of the plane in which nodes are numbered, in degrees; draws take them in turn.
TURNS = tuple(range(0, 360, 45))
#: Draws of one turn at a time.
AT_ONCE = 8


def m1_model() -> tuple[Checkpoint, Size]:
    """Return the trained policy and its sizes; InputError as of :func:`.checkpoint.sized`."""
    return sized("m1", Size)


def _too_many(problem: MappingProblem) -> str | None:
    """Return that a processor may get more nodes than the policy was trained for."""
    try:
        most = m1_model()[1].nodes
    except InputError:
        return None
    usable = np.bincount(problem.machine.chip_of[problem.machine.usable], minlength=1)
    found = min(problem.n, int(usable.max()))
    return (
        None
        if found <= most
        else f"{found} nodes may be on one processor, its policy was trained for {most} at most"
    )


class M1Policy(Placer):
    """The most probable placement, then :data:`SAMPLES` - 1 others; what breaks a rule that M1 does not know is repaired."""

    name = "m1-policy"
    refuses = takes(f"{ANY} -several -matrix -lone", _too_many)

    def wishes(self, problem: MappingProblem, context: Context) -> Iterator[tuple[str, IntArray]]:
        """Return what :func:`placements` yields with the model of the package or of the user."""
        return placements(problem, *m1_model(), context)


def placements(
    problem: MappingProblem, model: Checkpoint, size: Size, context: Context
) -> Iterator[tuple[str, IntArray]]:
    """Yield :data:`SAMPLES` placements (n,) and where they come from, not necessarily legal; the most probable one first."""

    def poll() -> None:
        if context.should_stop():
            raise Stopped

    chips = [np.zeros(problem.n, np.int64)]
    if problem.machine.n_chips > 1:
        chips = communities_to_chips(problem, context.seed, poll)
    drafts = [_Draft(problem, model, size, chip, poll) for chip in chips]
    for draft in drafts:
        yield "most probable", draft.greedy(TURNS[0])
    rng, made, turn = np.random.default_rng(context.seed), len(drafts), 0
    while made < SAMPLES:
        degrees, draft = TURNS[turn % len(TURNS)], drafts[turn // len(TURNS) % len(drafts)]
        poll()
        if 0 < turn < len(TURNS):
            made += 1
            yield "most probable, turned", draft.greedy(degrees)
        for core in draft.drawn(degrees, min(AT_ONCE, SAMPLES - made), rng):
            made += 1
            yield "drawn", core
        turn += 1


class _Draft:
    """Placements of all nodes, every one on a given processor (n,)."""

    def __init__(
        self,
        problem: MappingProblem,
        model: Checkpoint,
        size: Size,
        chip: IntArray,
        poll: Callable[[], None],
    ) -> None:
        self._model, self._size, self._poll = model, size, poll
        features = node_features(problem.graph, size.mean)
        self._weight = features[:, -1]
        self._parts = []
        for c in np.unique(chip).tolist():
            poll()
            place = processor(problem.machine, c, size.nodes, size.distance)
            nodes = np.flatnonzero(chip == c)[
                : len(place.cores)
            ]  # those without a core are left to the repair
            traffic = traffic_of(problem.graph, nodes)
            self._parts.append((place, nodes, traffic, features[nodes], axes_of(traffic)))
        self._first = np.zeros(problem.n, np.int64)
        self._known: dict[float, list[FloatArray]] = {}

    def _probabilities(self, degrees: float) -> list[FloatArray]:
        """Return P(node, core), (k, c), for every processor."""
        if degrees not in self._known:
            bound, out = self._size.bound, []
            for place, _, traffic, features, axes in self._parts:
                self._poll()
                seen = view(place, self._size.nodes, axes, traffic, features, degrees)
                mean, log_deviation = gaussians(
                    self._model.arrays, seen.laplacian[None], seen.features[None], bound
                )
                row = seen.row
                out.append(core_probabilities(mean[0, row], log_deviation[0, row], len(place.cores), bound))
            self._known[degrees] = out
        return self._known[degrees]

    def greedy(self, degrees: float) -> IntArray:
        """Return (n,), every node's most probable core, conflicts settled (M1.6)."""
        return np.asarray(self._settled([p.argmax(axis=1)[None] for p in self._probabilities(degrees)])[0])

    def drawn(self, degrees: float, times: int, rng: np.random.Generator) -> IntArray:
        """Return (times, n), cores drawn by their probability, conflicts settled."""
        return self._settled([draw(p, times, rng) for p in self._probabilities(degrees)])

    def _settled(self, wishes: list[IntArray]) -> IntArray:
        out = np.tile(self._first, (len(wishes[0]), 1))
        for (place, nodes, *_), wish in zip(self._parts, wishes, strict=True):
            at = allocate(np.ascontiguousarray(wish), by_priority(self._weight[nodes]), place.near)
            out[:, nodes] = place.cores[at]
        return out
