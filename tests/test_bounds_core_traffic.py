"""The core-traffic bound: never above the optimum, its certificate checked by other code, tampering found."""

from __future__ import annotations

import numpy as np
import pytest
from exact_support import optimum

from nmsolve.check.certificates import certificate_from_json, certificate_to_json
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.core_traffic import core_traffic_bounds, refuses_core_traffic

ENERGY = {"message": Figure(1.5), "router": Figure(0.5), "link_x": Figure(1.0), "link_y": Figure(2.0)}
OBJECTIVES = ("hops", "multicast-hops", "cut", "connectivity", "energy")


def small(seed: int) -> MappingProblem:
    """A random problem with several nodes per core on a machine of any kind."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 6))
    i, j = np.nonzero(rng.random((n, n)) < 0.5)
    graph = LogicGraph.from_edges(
        n, i, j, rng.integers(0, 9, len(i)).astype(float), multicast=rng.random(n) < 0.6,
        sizes=rng.integers(1, 3, (n, 1)),
    )  # fmt: skip
    kind = int(rng.integers(4))
    machine = Machine("m", (1, 1), (2, 2), energy=ENERGY if rng.random() < 0.5 else {})
    if kind == 1:
        machine = Machine("m", (1, 2), (1, 2), crossing_weight=3.0, faulty_cores=(2,))
    if kind == 2:
        machine = Machine("m", (1, 1), (1, 4), torus=True)
    if kind == 3:
        machine = Machine("m", (1, 1), (2, 2), faulty_links=((0, 1),))
    objective = OBJECTIVES[int(rng.integers(len(OBJECTIVES)))]
    return MappingProblem(graph, machine, objective, (), int(rng.integers(2, 4)))


def test_never_above_the_optimum_and_rechecked():
    tried = above_zero = 0
    for seed in range(120):
        problem = small(seed)
        if refuses_core_traffic(problem) is not None:
            continue
        best = optimum(problem)
        for bound in list(core_traffic_bounds(problem, BoundContext(lambda best=best: best), 60))[-1:]:
            tried += 1
            above_zero += bound.value > 0
            assert bound.value <= best * (1 + 1e-9) + 1e-9, f"seed {seed}: {bound.value} above {best}"
            read = Bound(
                bound.value, "cover", "full", certificate_from_json(certificate_to_json(bound.certificate))
            )
            assert check_bound(problem, read).ok, f"seed {seed}: {check_bound(problem, read).text}"
            more = Bound(bound.value * 1.01 + 1.01, "cover", "full", read.certificate)
            assert not check_bound(problem, more).ok
    assert tried > 60 and above_zero == tried


def test_a_tampered_certificate_is_refused():
    problem = next(
        p
        for p in map(small, range(50))
        if refuses_core_traffic(p) is None and list(core_traffic_bounds(p, BoundContext(lambda: 50.0)))
    )
    bound = list(core_traffic_bounds(problem, BoundContext(lambda: 50.0)))[-1]
    for price in (
        [1.0],
        "x",
        np.full(problem.n, np.inf),
        np.full(problem.n, 1e300),
        bound.certificate["price"] * 3,
    ):
        assert not check_bound(
            problem, Bound(bound.value, "cover", "full", {"method": "cover", "price": price})
        ).ok
    assert not check_bound(problem, Bound(bound.value, "cover", "full", {"method": "cover"})).ok


@pytest.mark.parametrize("n", [40])
def test_beats_the_fan_out_bound_on_a_random_network(n):
    from nmsolve.solvers.mapping.bounds.nets import fan_out_bound

    rng = np.random.default_rng(1)
    source = np.repeat(np.arange(n), 5)
    graph = LogicGraph.from_edges(
        n, source, rng.integers(0, n, 5 * n), np.ones(5 * n), multicast=np.ones(n, bool), rate=np.ones(n)
    )
    problem = MappingProblem(graph, Machine("m", (1, 1), (2, 4)), "multicast-hops", (), 5)
    found = list(core_traffic_bounds(problem, BoundContext(lambda: 3.0 * n), 120))[-1].value
    assert found > fan_out_bound(problem).value + n
