"""A mapping together with the routes of its messages: what it is, whether it is legal, what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nmsolve.hw.detours import link_weights
from nmsolve.hw.energy import step_value
from nmsolve.hw.routes import route
from nmsolve.hw.routing.numbering import channel_graph, number_channels
from nmsolve.hw.scores import CEILING_SLACK, objective_value
from nmsolve.model.errors import InputError
from nmsolve.model.features import Feature, takes_of
from nmsolve.model.links import link_ends
from nmsolve.model.mapping.features import FEATURES
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import TogetherReduction
from nmsolve.model.mapping.routes import tree_complaint
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Objectives that depend on the routes; the others are functions of the mapping alone.
ROUTED = tuple(name for name, aim in OBJECTIVES.items() if aim.charges in ("trees", "load"))


@dataclass(frozen=True)
class Message:
    """One message: a multicast row with all its targets (``edge`` -1), or one edge of another row.

    ``row`` and ``edge`` are positions in the graph's ``source`` and ``targets``.
    """

    row: int
    edge: int
    source: int
    targets: tuple[int, ...]
    rate: float


@dataclass(frozen=True, eq=False)
class JointProblem:
    """Choose cores and routes at once. A solution is (n + M * L,) int64: cores, then link l used by message m (0, 1).

    ``mapping`` holds no ``together`` constraint. Every message may take any tree of healthy links from its source's core
    to the cores of its targets, without turns that ``mapping.turns`` prohibits. All trees together leave an order of links that
    every route climbs, one channel per link: no ring of messages can wait for each other (M1.9).
    """

    mapping: MappingProblem

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """Messages with traffic and a target, in order of rows and edges."""
        graph, out = self.mapping.graph, []
        for i in range(graph.rows):
            part = range(int(graph.indptr[i]), int(graph.indptr[i + 1]))
            s, targets = int(graph.source[i]), graph.targets
            if graph.multicast[i]:
                others = tuple(int(targets[k]) for k in part if targets[k] != s)
                if others and graph.rate[i] > 0:
                    out.append(Message(i, -1, s, others, float(graph.rate[i])))
                continue
            for k in part:
                if graph.weights[k] > 0 and targets[k] != s:
                    out.append(Message(i, k, s, (int(targets[k]),), float(graph.weights[k])))
        return tuple(out)

    @cached_property
    def link(self) -> IntArray:
        """(L,) numbers of the healthy directed links, ``4 * core + direction``."""
        out: IntArray = np.flatnonzero(np.isfinite(link_weights(self.mapping.machine))).astype(np.int64)
        return out

    @cached_property
    def ends(self) -> IntArray:
        """(L, 2) cores that every healthy link leaves and reaches."""
        out: IntArray = np.stack([self.link // 4, link_ends(self.mapping.machine)[self.link]], axis=1)
        return out

    @cached_property
    def rate(self) -> FloatArray:
        """(M,) traffic of every message."""
        return np.array([m.rate for m in self.messages])

    @cached_property
    def meeting(self) -> IntArray:
        """(T, 2) places of two links of which the second leaves the core that the first reaches."""
        before, after = np.nonzero(self.ends[:, 1][:, None] == self.ends[:, 0][None, :])
        return np.stack([before, after], axis=1).astype(np.int64)

    @cached_property
    def may_follow(self) -> BoolArray:
        """(T,) whether a message may go on so: it does not turn back, and the turn is not prohibited."""
        before, after = self.link[self.meeting[:, 0]], self.link[self.meeting[:, 1]]
        allowed = self.ends[self.meeting[:, 0], 0] != self.ends[self.meeting[:, 1], 1]
        if self.mapping.turns is not None:
            allowed &= self.mapping.turns.allowed[after // 4, before % 4, after % 4]
        return np.asarray(allowed)

    def order(self, used: BoolArray) -> tuple[IntArray, IntArray]:
        """Return numbers (L,) of links that grow along the routes (-1: unused), or all -1 and the places of links in a ring."""
        before, after = self.meeting[
            (used[:, self.meeting[:, 0]] & used[:, self.meeting[:, 1]]).any(axis=0)
        ].T
        return number_channels(channel_graph(before, after, np.asarray(used.any(axis=0))))

    @property
    def size(self) -> int:
        """Length of a solution."""
        return self.mapping.n + len(self.messages) * len(self.link)

    def split(self, solution: IntArray) -> tuple[IntArray, BoolArray]:
        """Return cores (n,) and used links (M, L)."""
        n = self.mapping.n
        return solution[:n], solution[n:].reshape(len(self.messages), len(self.link)).astype(bool)

    def join(self, core: IntArray, used: BoolArray) -> IntArray:
        """Pack cores (n,) and used links (messages, links) into one solution; the inverse of :meth:`split`."""
        return np.concatenate([np.asarray(core, np.int64), used.ravel().astype(np.int64)])

    def link_cost(self, name: str) -> FloatArray:
        """Return (L,) what a unit of traffic pays on every link under ``multicast-hops`` or ``energy``."""
        return link_weights(self.mapping.machine, OBJECTIVES[name].quantity)[self.link]

    def remote(self, core: IntArray) -> FloatArray:
        """Return (M,) distinct cores of targets other than the source's."""
        return np.array(
            [len({int(core[t]) for t in m.targets} - {int(core[m.source])}) for m in self.messages], float
        )

    def value(self, name: str, core: IntArray, used: BoolArray) -> float:
        """Return the objective ``name`` of a mapping (n,) with its routes (T, links)."""
        if name not in ROUTED:
            return objective_value(
                replace(self.mapping, objective=name, ceilings=()), np.ascontiguousarray(core)
            )
        if len(self.messages) == 0:
            return 0.0
        if name == "max-link":
            return float((self.rate @ used).max(initial=0.0))
        total = float(self.rate @ (used @ self.link_cost(name)))
        step = step_value(self.mapping.machine, OBJECTIVES[name].quantity)
        return total + step * float(self.rate @ self.remote(core))

    def given_routes(self, core: IntArray) -> BoolArray:
        """Return (M, L) the links of the machine's own routes (XY, or round dead links)."""
        used = np.zeros((len(self.messages), len(self.link)), bool)
        number = {int(v): k for k, v in enumerate(self.link)}
        for m, message in enumerate(self.messages):
            for q in {int(core[t]) for t in message.targets}:
                for v in route(self.mapping.machine, int(core[message.source]), q):
                    used[m, number[v]] = True
        return used

    def complaint(self, core: IntArray, used: BoolArray) -> str | None:
        """Say what is wrong with cores (n,) and used links (messages, links); None if they are legal.

        That is a message whose links are no tree to all its targets, a prohibited turn, a ring, or a broken ceiling.
        """
        for m, message in enumerate(self.messages):
            pairs = [(int(a), int(b)) for a, b in self.ends[used[m]]]
            goals = {int(core[t]) for t in message.targets}
            wrong = tree_complaint(pairs, int(core[message.source]), goals)
            if wrong is not None:
                return f"message {m} of node {self.mapping.graph.node_id(message.source)!r}: {wrong}"
        for before, after in self.meeting[~self.may_follow]:
            bad = np.flatnonzero(used[:, before] & used[:, after])
            if len(bad):
                a, b, c = int(self.ends[before, 0]), int(self.ends[before, 1]), int(self.ends[after, 1])
                return f"message {bad[0]} takes the prohibited turn from core {a} over core {b} to core {c}"
        ring = self.order(used)[1]
        if len(ring):
            cores = " -> ".join(str(int(self.ends[k, 0])) for k in (*ring, ring[0]))
            return f"messages can wait for each other in a ring of links: core {cores}"
        for name, most in self.mapping.ceilings:
            value = self.value(name, core, used)
            if value > most * (1 + CEILING_SLACK):
                return f"{name} is {value:.10g}, the ceiling is {most:.10g}"
        return None


def _of_mapping(feature: Feature[MappingProblem]) -> Feature[JointProblem]:
    words = feature.words
    return Feature(
        words if isinstance(words, str) else lambda joint: words(joint.mapping),
        lambda joint: feature.has(joint.mapping),
        feature.rare,
    )


#: ``takes(cases, *limits)``: which joint problems an engine takes (:mod:`nmsolve.model.mapping.features`).
takes = takes_of(
    {name: _of_mapping(feature) for name, feature in FEATURES.items()}
    | {
        "fixed": Feature(
            "objectives for which messages compete for links, or routes do not count",
            lambda joint: joint.mapping.aim.charges != "trees",
        )
    },
)


def require_links(problem: MappingProblem) -> None:
    """Raise InputError where the machine has no links, or the objective is none of the joint model's."""
    if problem.aim.charges in ("power", "reward", "own"):
        after = ", then `nmsolve route --objective reward`" if problem.objective == "reward" else ""
        raise InputError(
            f"objective {problem.objective} with free routes", "--route joint", f"the machine's routes{after}"
        )
    if problem.machine.distance_matrix is not None:
        raise InputError("routes on a machine given by a distance matrix", problem.machine.name, "a mesh")


class JointChecker:
    """Implements :class:`nmsolve.solvers.search.checker.Checker` for mappings with routes."""

    def __init__(self, reduction: TogetherReduction) -> None:
        self.reduction = reduction
        self.problem = JointProblem(reduction.reduced)
        self.size = self.problem.size

    @cached_property
    def lattice(self) -> float:
        """1 where all figures are whole numbers, else 0."""
        problem = self.problem.mapping
        if problem.objective == "energy" or not problem.graph.integral:
            return 0.0
        weights = link_weights(problem.machine)
        return float(bool((weights[self.problem.link] % 1 == 0).all()))

    def lift(self, solution: IntArray) -> IntArray:
        """Return ``solution`` (size,) as it is; :meth:`complaint` lifts the cores."""
        return solution

    def complaint(self, lifted: IntArray) -> str | None:
        """Return the first broken rule of the mapping, else of the routes, or None; ``lifted`` (size,)."""
        if lifted.shape != (self.size,):
            return f"the solution has shape {lifted.shape}"
        core, used = self.problem.split(lifted)
        if core.min() < 0 or core.max() >= self.problem.mapping.cores:
            return "the mapping names an unknown core"
        broken = check_mapping(self.reduction.original, self.reduction.lift(core))
        return broken[0].text if broken else self.problem.complaint(core, used)

    def score(self, lifted: IntArray) -> float:
        """Return the objective of the mapping with its routes; ``lifted`` (size,)."""
        core, used = self.problem.split(lifted)
        return self.problem.value(self.problem.mapping.objective, core, used)
