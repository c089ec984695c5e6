"""Where there are more connections than pairs of cores, scores come from sums between cores: the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hw_reference import ENERGY, draws, times

from nmsolve.check.mapping.verify import recompute
from nmsolve.hw.routes import LinkLoads, hottest_links, route, working_links
from nmsolve.hw.scores import objective_value, score
from nmsolve.hw.summed import summed
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.axons import axon_usage
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem

PRICES = {key: Figure(value, "pJ") for key, value in ENERGY.items()}
BOARDS = [
    Machine(name="mesh", chips=(1, 1), cores=(5, 5), energy=PRICES, figures=times(True) | draws()),
    Machine(
        name="torus",
        chips=(1, 2),
        cores=(4, 3),
        torus=True,
        crossing_weight=3.0,
        energy=PRICES,
        figures=times(False) | draws(),
    ),
    Machine(
        name="dead",
        chips=(1, 1),
        cores=(3, 3),
        faulty_links=((0, 1), (1, 0), (4, 5)),
        energy=PRICES,
        figures=times(True) | draws(),
    ),
]


def dense(machine: Machine, seed: int, multicast: bool = False) -> tuple[LogicGraph, np.ndarray]:
    """Many connections on few cores, some of weight 0, and a random mapping."""
    rng = np.random.default_rng(seed)
    n, m = 60, 12 * machine.size**2
    weight = rng.integers(0, 5, m).astype(float)
    kind = rng.random(n) < 0.3 if multicast else None
    graph = LogicGraph.from_edges(n, rng.integers(0, n, m), rng.integers(0, n, m), weight, multicast=kind)
    return graph, rng.integers(0, machine.size, n)


@pytest.mark.parametrize("machine", BOARDS, ids=lambda b: b.name)
@pytest.mark.parametrize("multicast", [False, True])
def test_scores_are_the_objectives_one_by_one(machine: Machine, multicast: bool) -> None:
    """Every score is its objective's own value, the verifier's value, and the axon tables' largest use."""
    graph, core = dense(machine, 1, multicast)
    rows = next(iter(graph.blocks()))
    assert (summed(rows, core, machine.size) is None) == multicast
    found, walked = score(graph, machine, core), recompute(graph, machine, core)
    for name in OBJECTIVES:
        wanted = objective_value(MappingProblem(graph, machine, name), core)
        assert found[name] == pytest.approx(wanted, rel=1e-12), name
    for name, value in walked.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name
    came, went = axon_usage(graph, machine.size, core)
    assert (found["axons-in"], found["axons-out"]) == (came.max(), went.max())


@pytest.mark.parametrize("machine", BOARDS, ids=lambda b: b.name)
def test_what_each_message_puts_on_a_link_is_its_traffic_over_routes_that_cross_it(machine: Machine) -> None:
    """More links than one number has bits; the hottest ones with their largest messages."""
    graph, core = dense(machine, 2)
    links = working_links(machine)
    share = np.zeros((graph.rows, 4 * machine.size))
    crossing = {(p, q): route(machine, p, q) for p in range(machine.size) for q in range(machine.size)}
    for u, v, w in zip(
        graph.edge_source.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True
    ):
        share[u, crossing[int(core[u]), int(core[v])]] += w
    walked = LinkLoads(graph, machine, core)
    assert np.array_equal(walked.add(next(iter(graph.blocks())), links), share[:, links])
    assert np.allclose(walked.loads, share.sum(axis=0))
    for hot in hottest_links(graph, machine, core, count=4, messages=3):
        assert hot.load == pytest.approx(share[:, hot.link].sum())
        order = sorted(range(graph.rows), key=lambda u: (-share[u, hot.link], u))[:3]
        assert hot.messages == tuple((u, share[u, hot.link]) for u in order if share[u, hot.link] > 0)
