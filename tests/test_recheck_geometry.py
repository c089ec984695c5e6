"""What re-checks take for the distance of two cores is compared with a board built by other code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw import cost
from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.certificates import check_bound
from nmsolve.solvers.mapping.recheck.geometry import disagreement

MACHINES = {
    "mesh": Machine("mesh", (1, 1), (3, 4), link_weight=0.3),
    "chips": Machine("chips", (2, 3), (2, 2), crossing_weight=2.7),
    "torus": Machine("torus", (2, 1), (2, 3), torus=True, crossing_weight=0.1),
    "energy": Machine(
        "energy", (1, 2), (2, 2), crossing_weight=3.0,
        energy={k: Figure(v) for k, v in {"message": 5.0, "router": 1.1, "link_x": 3.0, "link_y": 4.2, "crossing": 7.0}.items()},
    ),
    "dead links": Machine("dead", (1, 1), (3, 3), faulty_links=((0, 1), (4, 3), (4, 5)), faulty_cores=(8,)),
    "matrix": Machine("matrix", (1, 1), (1, 3), distance_matrix=np.array([[0, 1, 2.5], [3, 0, 1], [1, 1, 0]])),
}  # fmt: skip


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.booleans(),
    st.sampled_from((1.0, 0.3, 5e-9)),
    st.sampled_from((1.0, 2.7, 1e9)),
    st.sampled_from(("hops", "energy")),
)
@settings(max_examples=80, deadline=None)
def test_boards_agree(chips, cores, torus, link, crossing, quantity) -> None:
    """Whatever the machine, the closed form and the walker's board say the same."""
    machine = Machine("m", chips, cores, torus=torus, link_weight=link, crossing_weight=crossing)
    assert disagreement(machine, quantity) is None


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("quantity", ["hops", "energy"])
def test_named_machines_agree(name: str, quantity: str) -> None:
    """Energy tables, dead links and given distances, too."""
    assert disagreement(MACHINES[name], quantity) is None


def test_presets_agree() -> None:
    """The chips that users name."""
    for preset in ("loihi1", "spinnaker1", "truenorth"):
        assert disagreement(load_machine(preset), "energy") is None


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("quantity", ["hops", "energy"])
def test_a_mistake_in_the_shared_distances_is_found(name: str, quantity: str, monkeypatch) -> None:
    """A line or a matrix that is a tenth too dear makes every certificate prove too much; no bound passes then."""
    from nmsolve.hw import energy
    from nmsolve.solvers.mapping.recheck import geometry

    machine = MACHINES[name]
    right, lines = cost.machine_distance, energy.line_values
    disagreement.cache_clear()

    def wrong_distance(m: Machine, q: str) -> cost.CoreDistance:
        form = right(m, q)
        return form._replace(matrix=form.matrix * 1.1)

    monkeypatch.setattr(geometry, "machine_distance", wrong_distance)
    monkeypatch.setattr(geometry, "line_values", lambda m, q, axis: lines(m, q, axis) * 1.1)
    assert disagreement(machine, quantity) is not None
    graph = LogicGraph.from_edges(2, [0, 1], [1, 0], np.ones(2))
    objective = "energy" if quantity == "energy" else "hops"
    found = check_bound(MappingProblem(graph, machine, objective, (), 1), Bound(0.01, "star"))
    assert not found.ok and "mistake in nmsolve" in found.text
    disagreement.cache_clear()
