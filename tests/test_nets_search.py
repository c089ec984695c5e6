"""The engine for net objectives at scale: better answers, all rules kept, limits of time and memory."""

from __future__ import annotations

import numpy as np
import pytest
from nets_support import OBJECTIVES, Clock, no_pairs, some_problem

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.nets import incidence, search
from nmsolve.heuristics.mapping.nets.levels import in_order
from nmsolve.heuristics.mapping.nets.search import NETS, PartOfTime, refine_nets
from nmsolve.hw.scores import objective_value
from nmsolve.model.errors import NmsolveError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_engine_improves_and_obeys_all_constraints(objective):
    """Every offer is legal (Clock) and better than the one before."""
    constraints = (
        SideConstraint("a", "apart", (0, 1, 2, 3)),
        SideConstraint("p", "pin", (4,), (7,)),
        SideConstraint("f", "forbid", tuple(range(10, 30)), (0, 1, 2)),
    )
    problem = some_problem(31, objective, capacity=5, n=60, constraints=constraints)
    context = Clock(problem, 3000)
    refine_nets(problem, context, no_pairs)
    assert len(context.values) >= 2
    assert context.values[-1] < 0.93 * context.values[0]
    assert context.values == sorted(context.values, reverse=True)


def test_pairwise_start_is_used_where_there_is_structure():
    """It gets part of the time, a problem of pairs, and keeps its best answer to itself."""
    graph = generate("snn", nodes=1500, synapses=15_000, layers=3, directed=1)
    problem = MappingProblem(graph, Machine("m", (1, 1), (4, 4)), "multicast-hops", node_limit=110)
    seen = []

    def pairwise(as_pairs, part):
        assert isinstance(part, PartOfTime)
        assert as_pairs.objective == "hops"
        assert part.incumbent()[0] is None
        assert 0 < part.time_left() < 1.5
        seen.append(in_order(as_pairs)[::-1].copy())
        assert part.offer(seen[0])
        assert not part.offer(seen[0].copy())
        assert part.incumbent()[0] is seen[0]

    context = Clock(problem, 4000, seconds=4.0)
    refine_nets(problem, context, pairwise)
    assert len(seen) == 1
    assert context.values[-1] < 0.9 * context.values[0]
    refine_nets(problem, Clock(problem, 4000), pairwise)  # 0.35 s would go to loading its kernels
    assert len(seen) == 1


def test_the_first_mapping_is_breadth_first_where_that_is_better_than_the_files_order():
    problem = some_problem(7, n=60)
    ring = np.random.default_rng(1).permutation(60)
    graph = LogicGraph.from_edges(60, ring, np.roll(ring, 1), multicast=True)
    problem = MappingProblem(graph, problem.machine, "multicast-hops", node_limit=10)
    context = Clock(problem, 0)
    refine_nets(problem, context, no_pairs)
    in_file, breadth_first = (
        objective_value(problem, core) for core in (in_order(problem), first_fit(problem))
    )
    assert context.values == [breadth_first] and breadth_first < in_file


def test_stops_at_once_when_asked():
    """The first mapping is offered whatever the time; afterwards nothing is begun."""
    problem = some_problem(7, n=60)
    context = Clock(problem, 0)
    refine_nets(problem, context, no_pairs)
    assert len(context.values) == 1


def test_too_little_memory_is_said_in_one_line():
    """What the tables take and what is left, before anything is allocated."""
    problem = some_problem(7, n=60)
    with pytest.raises(NmsolveError, match=r"^its tables take 64 MiB, 1 MiB of --memory are left$"):
        refine_nets(problem, Clock(problem, 100, memory=1 << 20), no_pairs)


def test_lists_go_to_a_file_where_memory_is_short(monkeypatch):
    """Same answer with lists in a scratch file, in several blocks."""
    monkeypatch.setattr(incidence, "BLOCK", 64)
    problem = some_problem(33, capacity=5, n=60)
    values, much = [], 1 << 30
    tables = much - search._list_memory(problem, Clock(problem, 1, memory=much))
    for memory in (None, tables + 100):
        context = Clock(problem, 2000, memory=memory)
        refine_nets(problem, context, no_pairs)
        values.append(context.values)
    assert values[0] == values[1]


def test_refusals():
    """Objectives without route trees, boards that wrap, and graphs of both kinds of message."""
    problem, refuses_nets = some_problem(7), takes(NETS)
    assert refuses_nets(problem) is None
    assert "route tree" in refuses_nets(MappingProblem(problem.graph, problem.machine, "cut"))
    torus = Machine("t", (1, 1), (4, 4), torus=True)
    assert "torus" in refuses_nets(MappingProblem(problem.graph, torus, "multicast-hops"))
    mixed = LogicGraph.from_edges(
        4, [0, 1], [1, 2], multicast=np.array([True, False, True, True]), rate=np.ones(4)
    )
    assert "mix multicast and unicast" in refuses_nets(
        MappingProblem(mixed, Machine("m", (1, 1), (2, 2)), "multicast-hops")
    )
    assert refuses_nets(MappingProblem(mixed, Machine("m", (1, 1), (2, 2)), "connectivity")) is None
