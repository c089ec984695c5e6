"""Small mapping problems of every kind, their optimum by trying all mappings, and a context that only records."""

from __future__ import annotations

import itertools

import numpy as np
from brute_support import costs_of, fitting
from search_fakes import QuietContext

from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping

#: Every kind of problem the exact models must honour.
KINDS = (
    "mesh",
    "spare-cores",
    "several-per-core",
    "two-resources",
    "torus",
    "chips",
    "faults",
    "dead-link",
    "matrix",
    "cut",
    "energy",
    "thirds",
    "constraints",
    "connectivity",
    "multicast-hops",
    "multicast-energy",
)


class Recorder(QuietContext):
    """A context that checks and keeps what an engine offers; it never asks to stop unless told."""

    def __init__(self, problem: MappingProblem, start: np.ndarray | None = None, bound: float = 0.0) -> None:
        super().__init__()
        self.problem, self.low = problem, bound
        self.best, self.value = start, np.inf if start is None else objective_value(problem, start)
        self.offers: list[np.ndarray] = []
        self.stop = False

    def time_left(self) -> float:
        return 0.0 if self.stop else 30.0

    def should_stop(self) -> bool:
        return self.stop

    def offer(self, core: np.ndarray, move: str = "") -> bool:
        broken = check_mapping(self.problem, core)
        if broken:
            raise AssertionError(broken[0].text)
        self.offers.append(core.copy())
        value = objective_value(self.problem, core)
        if value >= self.value:
            return False
        self.best, self.value = core.copy(), value
        return True


def optimum(problem: MappingProblem) -> float:
    """Least objective over all mappings (inf if none is feasible), by trying every one."""
    usable = np.flatnonzero(problem.machine.usable).tolist()
    every = fitting(problem, np.array(list(itertools.product(usable, repeat=problem.n)), np.int64))
    cost = costs_of(problem, every)
    for k in np.argsort(cost, kind="stable"):
        if not check_mapping(problem, every[k]):
            return float(cost[k])
    return np.inf


def random_graph(rng: np.random.Generator, n: int, multicast: bool = False, **more: object) -> LogicGraph:
    """A dense random directed graph with whole weights."""
    i, j = np.nonzero(rng.random((n, n)) < 0.6)
    w = rng.integers(0, 9, len(i)).astype(float)
    flags = rng.random(n) < 0.7 if multicast else None
    return LogicGraph.from_edges(n, i, j, w, multicast=flags, **more)  # type: ignore[arg-type]


def small_problem(kind: str, seed: int) -> MappingProblem:
    """A random problem of one of ``KINDS`` with at most a few thousand mappings."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    mesh = Machine("mesh", (1, 1), (2, 3))
    graph = random_graph(rng, 5)
    if kind == "mesh":
        return MappingProblem(random_graph(rng, 5), Machine("mesh", (1, 1), (1, 5)), node_limit=1)
    if kind == "spare-cores":
        return MappingProblem(random_graph(rng, 4), mesh, node_limit=1)
    if kind == "several-per-core":
        return MappingProblem(random_graph(rng, 6), Machine("mesh", (1, 1), (2, 2)), node_limit=2)
    if kind == "two-resources":
        limits = {"neurons": 6, "synapses": 7}
        g = random_graph(rng, 5, resources=("neurons", "synapses"), sizes=rng.integers(1, 4, (5, 2)))
        return MappingProblem(g, Machine("mesh", (1, 1), (2, 2), capacity=limits))
    if kind == "torus":
        return MappingProblem(
            random_graph(rng, 4), Machine("torus", (1, 1), (2, 4), torus=True), node_limit=1
        )
    if kind == "chips":
        chips = Machine("chips", (1, 2), (2, 2), crossing_weight=3.0)
        return MappingProblem(random_graph(rng, 4), chips, node_limit=2)
    if kind == "faults":
        m = Machine("faults", (1, 1), (2, 3), faulty_cores=(4,), taken_cores=(0,))
        return MappingProblem(random_graph(rng, 4), m, node_limit=2)
    if kind == "dead-link":
        m = Machine("dead", (1, 1), (2, 3), faulty_links=((1, 4), (0, 1), (1, 0)))
        return MappingProblem(random_graph(rng, 4), m, node_limit=1)
    if kind == "matrix":
        d = rng.integers(0, 6, (5, 5)).astype(float)
        return MappingProblem(
            random_graph(rng, 4), Machine("matrix", (1, 1), (1, 5), distance_matrix=d), node_limit=2
        )
    if kind == "cut":
        return MappingProblem(random_graph(rng, 6), Machine("mesh", (1, 1), (1, 3)), "cut", node_limit=3)
    if kind == "energy":
        figures = {
            "message": Figure(1.7),
            "router": Figure(0.6),
            "link_x": Figure(3.0),
            "link_y": Figure(4.2),
        }
        return MappingProblem(graph, Machine("e", (1, 1), (2, 2), energy=figures), "energy", node_limit=2)
    if kind == "thirds":
        i, j = np.nonzero(rng.random((4, 4)) < 0.7)
        g = LogicGraph.from_edges(4, i, j, rng.random(len(i)))
        m = Machine("thirds", (1, 2), (2, 1), link_weight=1 / 3, crossing_weight=float(np.pi))
        return MappingProblem(g, m, node_limit=2)
    if kind == "constraints":
        rules = (
            SideConstraint("a", "pin", (0,), (1,)),
            SideConstraint("b", "region", (1, 2), (0, 1, 3)),
            SideConstraint("c", "forbid", (3,), (0, 3, 4)),
            SideConstraint("d", "apart", (0, 1, 4)),
        )
        return MappingProblem(graph, mesh, "hops", rules, node_limit=2)
    net = random_graph(rng, 4, multicast=True)
    limit = int(rng.integers(1, 3))
    if kind == "connectivity":
        return MappingProblem(net, Machine("mesh", (1, 1), (2, 2)), "connectivity", node_limit=2)
    if kind == "multicast-hops":
        chips = Machine("chips", (1, 2), (2, 2), crossing_weight=2.0)
        return MappingProblem(net, chips, "multicast-hops", node_limit=limit)
    figures = {"message": Figure(1.5), "router": Figure(0.5), "link_x": Figure(1.0), "link_y": Figure(2.0)}
    return MappingProblem(net, Machine("e", (1, 1), (2, 3), energy=figures), "energy", node_limit=limit)
