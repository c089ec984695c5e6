"""Compile the kernels of mapping, by running the engines on problems that take no time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nmsolve.check.mapping.bounds.free_grid import Effort, least_cost
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.check.mapping.verify import verify
from nmsolve.heuristics.mapping.multilevel.coarsen import NEIGHBOURS, thinned
from nmsolve.heuristics.mapping.multilevel.cycle import Cycle, Style
from nmsolve.heuristics.mapping.multilevel.graph import finest_graph
from nmsolve.heuristics.mapping.multilevel.levels import groups_of
from nmsolve.heuristics.mapping.multilevel.lines import lines_of
from nmsolve.heuristics.mapping.multilevel.moves import balance, border, new_state
from nmsolve.heuristics.mapping.multilevel.pack import first_fit, make_feasible
from nmsolve.heuristics.mapping.multilevel.sections import Sections
from nmsolve.heuristics.mapping.multilevel.threads import ALONE
from nmsolve.heuristics.mapping.multilevel.tree import tree_of
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.cost import core_distance
from nmsolve.hw.machines import load_machine
from nmsolve.kinds.mapping.warm_files import stored
from nmsolve.learn.mapping.reward import measure_once
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph, node_kinds
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import make_problem, solve
from nmsolve.solvers.mapping.branch_bound.best_first import compile_kernels

#: Seconds for one engine on one small problem.
EACH = 0.12
#: Seconds of engines whose phases take parts of the time, and of those that end by themselves but have to be reached.
LONGER = {"links": 2.0, "tree-search": 2.0, "tree-partitions": 5.0}


def warm_engine(name: str, until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Run one engine on a small problem of each kind it takes, its answers checked; the labels of these problems."""
    if name == "branch-bound":
        compile_kernels()  # of the best-first search, which a run on a tiny problem never reaches
    if name == "multilevel":
        _pack()  # what only mappings need that no repair can save
        _thin()  # what only dense networks need
        _combine()  # what only networks that separate need
    if name == "spread":  # re-checks of demands that it chooses late in its time
        least_cost(np.array([[0, 1], [1, 0]]), np.array([1, 1, 2, 2]), 2**50, Effort())
    if name == "m1-policy":
        measure_once()  # the rewards that only training asks for
    taken = []
    with TemporaryDirectory() as folder:
        for label, problem in _problems(Path(folder)):
            try:
                until_compiled(partial(_run, problem, name))
            except InputError:  # it refuses this kind of problem
                continue
            taken.append(label)
    return taken


def _pack() -> None:
    """Pack a few nodes from scratch, and unpack what lies on one core: a run finds few of these mappings to mend."""
    problem = make_problem(_graph(12, False), load_machine("mesh:2x2"), balance=0.0)
    g, board = finest_graph(problem), lines_of(problem, core_distance(problem))
    first_fit(g, board, new_rng(1), 0.3)
    assert make_feasible(g, board, np.zeros(problem.n, np.int32), new_rng(1)) is not None


def _thin() -> None:
    """Take a sample of a network in which every node has enough neighbours for one."""
    n = 2 * NEIGHBOURS + 1
    u, v = np.triu_indices(n, 1)
    problem = make_problem(LogicGraph.from_edges(n, u, v), load_machine("mesh:2x2"), balance=0.2)
    assert len(thinned(finest_graph(problem), new_rng(1)).neighbour) < n * (n - 1)


def _combine() -> None:
    """Make two mappings of a small graph from scratch, and one within both; one level by level, on a tree of cores; and one that
    does not fit, and is mended.
    """
    problem = make_problem(_graph(600, False), load_machine("mesh:2x2"), balance=0.2)
    cycle = Cycle(finest_graph(problem), tree_of(problem), lambda: False)
    one, other = (cycle.from_scratch(Style(join=join), 1, ALONE) for join in (False, True))
    assert one is not None and other is not None
    assert cycle.within(one.pos, other.pos, 1, ALONE) is not None
    board = tree_of(make_problem(_graph(600, False), load_machine("tree:2:2,1:9"), balance=0.2)).boards[-1]
    top = groups_of(board.distance)
    assert top is not None
    assert Sections(cycle.graph, board, top, lambda: False).mapping(1, 0.0, ALONE) is not None
    crowded = new_state(cycle.graph, np.zeros(problem.n, np.int32), board.room)
    balance(cycle.graph, board, crowded, border(cycle.graph, crowded.pos, ALONE), ALONE)


def warm_free_routes(until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Return the joint problem with routes, without the engines that run in a child process; their names."""
    from nmsolve.model.mapping.reduce import merge_together
    from nmsolve.solvers.mapping.joint.api import solve_joint
    from nmsolve.solvers.mapping.joint.climbing import climbs_of
    from nmsolve.solvers.mapping.joint.problem import JointProblem
    from nmsolve.solvers.mapping.joint.registry import REGISTRY

    names = [name for name, entry in REGISTRY.items() if not entry.child]
    problem = make_problem(_graph(8, True), load_machine("mesh:2x2"), balance=0.2, objective="multicast-hops")
    for name in names:
        limit = LONGER.get(name, EACH)
        until_compiled(partial(solve_joint, problem, time_limit=limit, engines=[name], seed=1))
    climbs_of(JointProblem(merge_together(problem).reduced), "hops")  # best trees rarely close a ring
    return names


def _run(problem: MappingProblem, name: str) -> None:
    """Run one engine on one problem, its answer checked and its bounds recomputed."""
    result = solve(problem, time_limit=LONGER.get(name, EACH), engines=[name], seed=1)
    for bound in result.bounds:
        check_bound(problem, bound, result.core)
    if result.core is not None:
        verify(problem.graph, problem.machine, (), result.core, node_limit=problem.node_limit)


def _problems(folder: Path) -> list[tuple[str, MappingProblem]]:
    """One small problem for each form a kernel can take its arguments in; graphs on disk are put in ``folder``."""
    mesh, chips = load_machine("mesh:4x4"), load_machine("mesh:2x2,1x2")
    place = np.arange(12)
    # Broken numbers, because tabu has kernels of its own for them.
    matrix = Machine("matrix", (1, 1), (1, 12), distance_matrix=0.3 * np.abs(place[:, None] - place[None, :]))
    one, many, casts = _graph(12, False), _graph(40, False), _graph(40, True)
    pinned = [SideConstraint("one", "pin", nodes=(0,), cores=(0,))]
    large = [generate("snn", nodes=1500, synapses=12000, layers=3, directed=directed) for directed in (0, 1)]
    lying = [stored(graph, folder / f"{k}.nmz") for k, graph in enumerate(large)]
    return [
        ("one node per core", make_problem(one, mesh)),
        ("one node per core, any distances", make_problem(one, matrix, constraints=pinned)),
        ("many nodes per core", make_problem(many, mesh, balance=0.2)),
        ("many nodes per core, two chips", make_problem(many, chips, balance=0.2)),
        ("connectivity", make_problem(casts, mesh, balance=0.2, objective="connectivity")),
        ("multicast hops", make_problem(casts, mesh, balance=0.2, objective="multicast-hops")),
        ("link loads", make_problem(casts, mesh, balance=0.2, objective="max-link")),
        ("step time", make_problem(casts, _timed(_few_axons(mesh)), balance=0.2, objective="step-time")),
        ("step energy", make_problem(casts, _timed(_few_axons(mesh)), balance=0.2, objective="step-energy")),
        ("reward", make_problem(casts, mesh, balance=0.2, objective="reward")),
        (
            "hardly any room",
            MappingProblem(_blocks(), Machine("tight", (1, 1), (2, 3), capacity={"neurons": 10})),
        ),
        (
            "no room",
            MappingProblem(_large_nodes(), Machine("full", (1, 1), (1, 2), capacity={"neurons": 10})),
        ),
        (
            "kinds",
            MappingProblem(
                _kinds(), Machine("kinds", (1, 1), (2, 3), capacity={"neurons": 9}, kinds_per_core=1)
            ),
        ),
        ("limited axon tables", make_problem(casts, _few_axons(mesh), balance=0.2, objective="hops")),
        (
            "limited axon tables, multicast hops",
            make_problem(casts, _few_axons(mesh), balance=0.2, objective="multicast-hops"),
        ),
        *(
            (f"{objective}, {where}", make_problem(graphs[directed], mesh, balance=0.2, objective=objective))
            for where, graphs in (("large", large), ("on disk", lying))
            for directed, objective in ((0, "hops"), (0, "cut"), (1, "connectivity"), (1, "multicast-hops"))
        ),
        ("migration budget", make_problem(one, mesh, migration=Migration.of(place, 4))),
        (
            "migration budget, multicast hops",
            make_problem(
                casts,
                mesh,
                balance=0.2,
                objective="multicast-hops",
                migration=Migration.of(np.arange(40) // 3, 4),
            ),
        ),
    ]


def _few_axons(machine: Machine) -> Machine:
    """Return the machine with axon tables so small that a first mapping exceeds them."""
    return replace(machine, capacity={"axons_in": 5, "axons_out": 5})


def _timed(machine: Machine) -> Machine:
    """Return the machine with the times and energies of a chip that has them all."""
    chip = load_machine("loihi1")
    return replace(machine, figures=chip.figures, energy=chip.energy)


def _blocks() -> LogicGraph:
    """Return a ring of nodes that fill six cores of ten units exactly, if they are packed well."""
    size = np.array([6, 2, 2, 6, 2, 2, 4, 3, 3, 4, 3, 3, 5, 5, 5, 5])
    u = np.arange(len(size))
    return LogicGraph.from_edges(len(u), u, (u + 1) % len(u), sizes=size[:, None])


def _kinds() -> LogicGraph:
    """Return a ring of nodes of three kinds in turn, which fill six cores of nine nodes but for one place on each."""
    u = np.arange(48)
    return LogicGraph.from_edges(len(u), u, (u + 1) % len(u), kinds=node_kinds((u % 3).tolist()))


def _large_nodes() -> LogicGraph:
    """Return nodes that two cores of ten units together could hold, but of which each holds no two large ones."""
    return LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3], sizes=np.array([[6], [6], [6], [1]]))


def _graph(n: int, multicast: bool) -> LogicGraph:
    """Return a ring with chords."""
    u = np.arange(n)
    flags = np.full(n, multicast)
    return LogicGraph.from_edges(
        n, np.r_[u, u], np.r_[(u + 1) % n, (u + 5) % n], np.r_[u % 3 + 1.0, u % 2 + 1.0], multicast=flags
    )
