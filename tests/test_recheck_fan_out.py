"""The re-check of the fan-out bound against the same sum written message by message, and against the bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.mapping.bounds.counting import recheck_fan_out
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.cost import core_distance
from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.formats import save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import open_graph
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound

ENERGY = {"message": Figure(7.0), "router": Figure(2.0), "link_x": Figure(3.0), "link_y": Figure(4.0)}


def some_problem(seed: int, objective: str, matrix: bool) -> MappingProblem:
    """Messages of 0 to 20 targets; two resources; equal sizes or different ones; some multicast, some not."""
    rng = np.random.default_rng(seed)
    n, m = 30, 150
    sizes = rng.integers(1, rng.choice([2, 5]), (n, 2))
    graph = LogicGraph.from_edges(
        n, rng.integers(0, n, m) // rng.integers(1, 4), rng.integers(0, n, m), rng.integers(0, 9, m) / 4,
        multicast=rng.random(n) < rng.choice([0.0, 0.5, 1.0]), rate=rng.integers(0, 6, n) / 2,
        resources=("neurons", "bytes"), sizes=sizes,
    )  # fmt: skip
    capacity = {"neurons": int(rng.integers(12, 30)), "bytes": int(rng.integers(12, 30))}
    if matrix:
        machine = Machine(
            "matrix",
            (1, 1),
            (1, 12),
            capacity=capacity,
            distance_matrix=rng.integers(0, 7, (12, 12)).astype(float),
        )
    else:
        machine = Machine("mesh", (1, 2), (3, 2), capacity=capacity, energy=ENERGY, crossing_weight=3.0)
    return MappingProblem(graph, machine, objective)


def by_hand(problem: MappingProblem) -> float:
    """Every message with sorted lists: its targets on the nearest cores, as many on each as fit."""
    graph, machine, nets = problem.graph, problem.machine, problem.uses_nets
    d = core_distance(problem).dense()
    d = np.minimum(d, d.T)
    others = [sorted(d[p, q] for q in range(len(d)) if q != p) for p in range(len(d))]
    near = [min(min(d[p, p], others[p][0]) for p in range(len(d)))]
    near += [min(row[k] for row in others) for k in range(len(d) - 1)]
    quantity = "energy" if problem.objective == "energy" else "hops"
    step = step_value(machine, quantity)
    links = [float(v) for axis in (0, 1) for v in line_values(machine, quantity, axis)]
    total = 0.0
    for i in range(graph.rows):
        edges = range(graph.indptr[i], graph.indptr[i + 1])
        targets = [int(graph.targets[k]) for k in edges]
        own, other = fitting(problem, targets, int(graph.source[i])), max(1, fitting(problem, targets, None))
        if not nets or (problem.objective != "connectivity" and not graph.multicast[i]):
            for k, w in enumerate(sorted((float(graph.weights[k]) for k in edges), reverse=True)):
                total += w * near[min(0 if k < own else 1 + (k - own) // other, len(near) - 1)]
            continue
        remote = min(-(-max(0, len(targets) - own) // other), len(near) - 1)
        cost = float(remote)
        if problem.objective != "connectivity":
            away = [max(0.0, near[k] - (step if k else 0.0)) for k in range(len(near))]
            if machine.distance_matrix is not None:
                cost = step * remote + sum(away[1 : remote + 1])
            else:
                cost = step * remote + max(remote * min(links), away[remote])
        total += float(graph.rate[i]) * cost
    return total


def fitting(problem: MappingProblem, targets: list[int], beside: int | None) -> int:
    """The most of ``targets`` that fit on the largest core, where node ``beside`` is already."""
    best = len(targets)
    for r in range(problem.sizes.shape[1]):
        room = int(problem.capacity[:, r].max()) - (0 if beside is None else int(problem.sizes[beside, r]))
        count = 0
        for size in sorted(int(problem.sizes[t, r]) for t in targets):
            room -= size
            count += room >= 0
        best = min(best, count)
    return best


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["hops", "multicast-hops", "connectivity", "energy"]),
    st.booleans(),
)
def test_it_is_the_sum_over_messages(seed: int, objective: str, matrix: bool) -> None:
    """Equal to the sum by hand, and the bound says the same."""
    problem = some_problem(seed, objective, matrix)
    found = recheck_fan_out(problem, {})
    assert found == pytest.approx(by_hand(problem), rel=1e-12, abs=1e-9)
    bound = fan_out_bound(problem)
    assert bound.value <= found * (1 + 1e-9) + 1.0  # rounded up to a whole number at most
    assert check_bound(problem, bound).ok
    assert not check_bound(problem, replace(bound, value=1.01 * bound.value + 1.0)).ok


def test_a_core_dearer_than_its_neighbour() -> None:
    """Where a matrix charges messages inside a core, a neighbour may cost less, also when all targets fit on one core."""
    graph = LogicGraph.from_edges(3, [0, 1], [1, 2], [2.0, 3.0])
    machine = Machine("matrix", (1, 1), (1, 2), distance_matrix=np.array([[5.0, 1.0], [1.0, 5.0]]))
    problem = MappingProblem(graph, machine, "hops")
    assert fan_out_bound(problem).value == recheck_fan_out(problem, {}) == 5.0


def test_on_disk_it_is_the_same(tmp_path: Path) -> None:
    """Connections read block by block."""
    problem = some_problem(7, "multicast-hops", False)
    save_graph(problem.graph, tmp_path / "g.nmz")
    stored = MappingProblem(open_graph(tmp_path / "g.nmz"), problem.machine, problem.objective)
    assert recheck_fan_out(stored, {}) == pytest.approx(recheck_fan_out(problem, {}), rel=1e-12)
    assert recheck_fan_out(problem, {}) > 0
