"""Engines and re-checks measure the distance of two cores by different code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.mapping.distances import core_distances, line_costs, step_cost
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.cost import core_distance
from nmsolve.hw.energy import line_values, step_value
from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem

MACHINES = {
    "mesh": Machine("mesh", (1, 1), (3, 4), link_weight=0.3),
    "row": Machine("row", (1, 1), (1, 5), torus=True),
    "chips": Machine("chips", (2, 3), (2, 2), crossing_weight=2.7),
    "torus": Machine("torus", (2, 1), (2, 3), torus=True, crossing_weight=0.1),
    "energy": Machine(
        "energy", (1, 2), (2, 2), crossing_weight=3.0,
        energy={k: Figure(v) for k, v in {"message": 5.0, "router": 1.1, "link_x": 3.0, "link_y": 4.2, "crossing": 7.0}.items()},
    ),
    "dead links": Machine("dead", (1, 1), (3, 3), faulty_links=((0, 1), (4, 3), (4, 5)), faulty_cores=(8,)),
    "cut off": Machine("cut", (1, 1), (2, 3), faulty_links=((0, 1), (0, 3), (1, 0), (3, 0))),
    "matrix": Machine("matrix", (1, 1), (1, 3), distance_matrix=np.array([[0, 1, 2.5], [3, 0, 1], [1, 1, 0]])),
}  # fmt: skip


def agree(machine: Machine, objective: str) -> None:
    graph = LogicGraph.from_edges(2, [0, 1], [1, 0], np.ones(2))
    problem = MappingProblem(graph, machine, objective, (), 1)
    ours, theirs = core_distances(problem), core_distance(problem)
    assert ours.separable == theirs.separable and ours.symmetric == theirs.symmetric
    assert np.allclose(ours.dense(), theirs.dense(), rtol=1e-12, atol=0)
    for part in ("x", "y", "wrap_x", "wrap_y", "step"):
        assert np.array_equal(getattr(ours, part), getattr(theirs, part)) or not ours.separable
    if machine.distance_matrix is None and objective != "cut":
        assert step_cost(machine, objective) == step_value(machine, objective)
        for axis in (0, 1):
            assert np.array_equal(line_costs(machine, objective, axis), line_values(machine, objective, axis))


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.booleans(),
    st.sampled_from((1.0, 0.3, 5e-9)),
    st.sampled_from((1.0, 2.7, 1e9)),
    st.sampled_from(("hops", "energy", "cut")),
)
@settings(max_examples=80, deadline=None)
def test_boards_agree(chips, cores, torus, link, crossing, objective) -> None:
    """Whatever the machine, both say the same."""
    agree(Machine("m", chips, cores, torus=torus, link_weight=link, crossing_weight=crossing), objective)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("objective", ["hops", "energy", "cut"])
def test_named_machines_agree(name: str, objective: str) -> None:
    """Energy tables, dead links and given distances, too."""
    agree(MACHINES[name], objective)


def test_presets_agree() -> None:
    """The chips that users name."""
    for preset in ("loihi1", "spinnaker1", "truenorth"):
        agree(load_machine(preset), "energy")


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("objective", ["hops", "energy"])
def test_a_bound_from_distances_that_are_too_dear_is_refused(name: str, objective: str) -> None:
    """What the nearest two cores are apart is proved, a tenth more is not."""
    machine = MACHINES[name]
    graph = LogicGraph.from_edges(2, [0, 1], [1, 0], np.ones(2))
    problem = MappingProblem(graph, machine, objective, (), 1)
    d = core_distance(problem).dense()[np.ix_(np.flatnonzero(machine.usable), np.flatnonzero(machine.usable))]
    least = float((d + d.T)[~np.eye(len(d), dtype=bool)].min()) / (1 + 1e-9)
    assert check_bound(problem, Bound(least, "star")).ok
    assert not check_bound(problem, Bound(1.1 * least, "star")).ok
