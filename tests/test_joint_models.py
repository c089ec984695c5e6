"""Exact models of link loads, ceilings and free routes: the twins agree with each other and with trying everything."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from exact_support import Recorder

from nmsolve.hw.scores import broken_ceiling, objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.exact.model import CpSat, Mip

ENERGY = {"message": Figure(1.5), "router": Figure(0.5), "link_x": Figure(1.0), "link_y": Figure(2.0)}


def small(seed: int) -> MappingProblem:
    """A random problem of 4 or 5 nodes with objective max-link, or another under a ceiling, on any mesh."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 6))
    i, j = np.nonzero(rng.random((n, n)) < 0.5)
    graph = LogicGraph.from_edges(
        n, i, j, rng.integers(0, 9, len(i)).astype(float), multicast=rng.random(n) < 0.5
    )
    machine = [
        Machine("m", (1, 1), (2, 2), energy=ENERGY),
        Machine("m", (1, 2), (2, 1), crossing_weight=3.0),
        Machine("m", (1, 1), (1, 4), torus=True),
        Machine("m", (1, 1), (2, 2), faulty_links=((0, 1), (3, 2))),
    ][seed % 4]
    rules = (
        (SideConstraint("a", "forbid", (0,), (0,)), SideConstraint("b", "apart", (1, 2)))
        if seed % 3 == 0
        else ()
    )
    return MappingProblem(graph, machine, "max-link", rules, 2)


def feasible(problem: MappingProblem) -> list[np.ndarray]:
    """Every legal mapping."""
    out = []
    for cores in itertools.product(range(problem.cores), repeat=problem.n):
        core = np.array(cores)
        if not check_mapping(problem, core):
            out.append(core)
    return out


def proved(engine: CpSat | Mip, problem: MappingProblem) -> tuple[float, float]:
    """Best value and bound of an engine's run to the end."""
    recorder = Recorder(problem)
    engine.run(problem, recorder)
    return recorder.value, max(b.value for b in recorder.bounds)


@pytest.mark.parametrize("engine", [CpSat(), Mip()])
def test_a_ceiling_on_what_costs_the_same_everywhere_is_kept(engine):
    graph = LogicGraph.from_edges(2, [0], [1], [0.3])
    problem = MappingProblem(graph, Machine("m", (1, 1), (2, 2)), "hops", (), 1, ceilings=(("cut", 0.2),))
    assert proved(engine, problem) == (np.inf, np.inf)
    loose = replace(problem, ceilings=(("cut", 0.3),))
    assert proved(engine, loose) == pytest.approx((0.3, 0.3), rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_max_link_and_ceilings_agree_with_trying_everything(seed):
    problem = small(seed)
    mappings = feasible(problem)
    best = min(objective_value(problem, c) for c in mappings)
    assert proved(CpSat(), problem) == pytest.approx((best, best))
    if seed < 4:
        assert proved(Mip(), problem) == pytest.approx((best, best))
    other = ("hops", "multicast-hops", "cut", "connectivity")[seed % 4]
    under = replace(problem, objective=other, ceilings=(("max-link", best),))
    cheapest = min(objective_value(under, c) for c in mappings if broken_ceiling(under, c) is None)
    assert proved(CpSat(), under) == pytest.approx((cheapest, cheapest))
    turned = replace(problem, ceilings=((other, cheapest),))
    hottest = min(objective_value(turned, c) for c in mappings if broken_ceiling(turned, c) is None)
    assert proved(CpSat(), turned) == pytest.approx((hottest, hottest))
    if seed < 2:
        assert proved(Mip(), turned) == pytest.approx((hottest, hottest))
