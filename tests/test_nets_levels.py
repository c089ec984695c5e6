"""Clusters, coarse levels and the level of whole cores."""

from __future__ import annotations

import numpy as np
import pytest
from nets_support import PLAN, level_with, some_problem, sweeper_of

from nmsolve.heuristics.mapping.nets import search
from nmsolve.heuristics.mapping.nets.levels import (
    Messages,
    coarsen,
    grouped,
    in_order,
    level_of,
    numbering,
    on_level,
    overlap,
)
from nmsolve.heuristics.mapping.nets.state import empty_tables, new_work
from nmsolve.heuristics.mapping.nets.sweep import Sweeper
from nmsolve.heuristics.mapping.nets.whole import sampled, trade, whole_cores
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.scores import objective_value
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping


def test_clusters_stay_within_limits_cores_and_kinds():
    """None is too large or spans cores or kinds, who must be apart stays alone, for any number of threads."""
    constraints = (
        SideConstraint("a", "apart", (0, 1, 2)),
        SideConstraint("p", "region", (3, 4, 5, 6), (0, 1)),
    )
    problem = some_problem(21, n=80, capacity=100, constraints=constraints)
    messages, vertices = Messages.of(problem), numbering(problem, 1)
    level = level_of(problem, messages, vertices, PLAN, [])
    core = np.random.default_rng(0).integers(0, 3, problem.n)
    label, n = grouped(problem, messages, level, PLAN, core)
    assert sorted(set(label.tolist())) == list(range(n))
    assert n < 70
    of_node = label[vertices.label]
    limit = min(5 * problem.sizes.mean(), 0.1 * 100)
    assert max(np.bincount(of_node, weights=problem.sizes[:, 0])) <= max(limit, 2)
    for c in range(n):
        members = np.flatnonzero(label == c)
        assert len(set(core[members].tolist())) == 1
        assert len(set(vertices.domain_of[members].tolist())) == 1
    assert all((of_node == of_node[u]).sum() == 1 for u in (0, 1, 2))
    one, two = (grouped(problem, messages, level, PLAN._replace(workers=w), core)[0] for w in (1, 2))
    assert np.array_equal(one, two)


def test_coarse_levels_cost_what_their_nodes_cost():
    """Total sizes are kept, and a mapping costs the same on every level."""
    graph = generate("snn", nodes=2000, synapses=40_000, layers=4, directed=1)
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 3)), "multicast-hops", node_limit=250)
    messages, nodes = Messages.of(problem), in_order(problem)
    finest = level_of(problem, messages, numbering(problem, 2), PLAN, [])
    levels = coarsen(problem, messages, finest, PLAN, nodes)
    assert len(levels) >= 3
    value = objective_value(problem, nodes)
    for level in levels:
        assert level.vertices.sizes.sum() == problem.sizes.sum()
        with sweeper_of(problem, level, on_level(level.vertices, nodes)) as sweeper:
            assert sweeper.cost == pytest.approx(value)


def test_structure_is_told_from_noise():
    """A network that is random below its populations has clusters that share little more than chance; a local one has."""
    found = []
    for graph in (
        generate("microcircuit", scale=0.02),
        generate("snn", nodes=2000, synapses=40_000, layers=4, directed=1),
    ):
        problem = MappingProblem(
            graph, Machine("m", (1, 1), (4, 4)), "multicast-hops", node_limit=graph.n // 12
        )
        messages = Messages.of(problem)
        level = level_of(problem, messages, numbering(problem, 0), PLAN, [])
        label, _ = grouped(problem, messages, level, PLAN)
        found.append(overlap(level.lists, label, graph.rows))
    assert 0.8 < found[0] < search.STRUCTURE < found[1] / 2


@pytest.mark.parametrize("objective", ["multicast-hops", "energy"])
def test_whole_cores_trade_places_at_the_evaluators_price(objective):
    """The level of whole cores costs what the nodes cost; trades keep the checker content and know their change."""
    constraints = (SideConstraint("f", "forbid", (5, 6, 7), (0, 1)), SideConstraint("a", "apart", (0, 1, 2)))
    problem = some_problem(41, objective, capacity=5, n=60, chips=(2, 1), constraints=constraints)
    nodes, rate = in_order(problem), Messages.of(problem).rate
    label = np.arange(problem.n)
    fine = sweeper_of(problem, level_with(problem, label, problem.n), nodes)
    whole, allowed = whole_cores(fine.tables, nodes, sampled(rate, 1))
    t = empty_tables(problem, whole.vertices, whole.source, rate)
    t = t._replace(room=t.room._replace(domains=allowed))
    with Sweeper(t, whole.lists, whole.source, 0, 1) as sweeper:
        assert sweeper.put(on_level(whole.vertices, nodes))
        assert sweeper.cost == pytest.approx(objective_value(problem, nodes))
    tenant = np.full(problem.cores, -1, np.int32)
    tenant[t.room.core] = np.arange(len(t.room.core))
    rows = [np.zeros(len(rate), np.int32) for _ in range(2)]
    change = 0.0
    for heat in (1000.0, 0.0):
        worse = np.zeros(500)
        lists = whole.lists
        change += trade(
            t, new_work(t), lists.data, lists.at, *rows, tenant, heat, len(worse), new_rng(3), worse
        )
        moved = t.room.core[whole.vertices.label].astype(np.int64)
        assert not check_mapping(problem, moved)
        assert objective_value(problem, moved) - objective_value(problem, nodes) == pytest.approx(change)
        assert (worse > 0).any()
    assert change < 0


def test_sampled_messages_stand_for_all():
    """A thousand carry the traffic of all 50,000, nearly; where there are fewer, all are taken."""
    rate = np.random.default_rng(0).random(50_000)
    some = sampled(rate, 4)
    assert (some > 0).sum() == 1000
    assert some.sum() == pytest.approx(rate.sum(), rel=0.1)
    assert np.array_equal(sampled(rate[:900], 4), rate[:900])
