"""Energy of cores: events counted one by one in plain Python."""

from dataclasses import replace

import numpy as np
import pytest

from nmsolve.hw.machines import load_machine
from nmsolve.hw.routing.compute import compute_energy
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure


def small() -> LogicGraph:
    """Node 0 sends a multicast of rate 3 to 1 and 2, node 1 two single messages, node 2 nothing."""
    graph = LogicGraph.from_edges(3, [0, 0, 1, 1], [1, 2, 0, 2], [1.0, 1.0, 2.0, 5.0])
    return replace(graph, multicast=np.array([True, False, False]), rate=np.array([3.0, 5.0, 0.0]))


def test_every_event_on_its_core_at_the_price_of_loihi():
    loihi = load_machine("loihi1")
    energy = compute_energy(small(), loihi, [4, 4, 9])
    events = {4: 3.0 + 2.0, 9: 3.0 + 5.0}  # arrivals at nodes 1 and 0; at node 2
    for core, count in events.items():
        assert energy.synapses[core] == pytest.approx(35.5 * count)
    assert energy.neurons[[4, 9]] == pytest.approx([2 * (51.2 + 21.6), 51.2 + 21.6])
    assert energy.spikes[[4, 9]] == pytest.approx([69.3 * (3.0 + 5.0), 0.0])
    assert energy.total == pytest.approx(35.5 * 13 + 72.8 * 3 + 69.3 * 8)
    assert sum(energy.by_part.values()) == pytest.approx(energy.by_core.sum())
    assert energy.missing == ()


def test_nodes_that_hold_many_neurons():
    graph = replace(small(), resources=("neurons",), sizes=np.array([[10], [20], [30]]))
    energy = compute_energy(graph, load_machine("loihi1"), [0, 1, 1])
    assert energy.neurons[[0, 1]] == pytest.approx([72.8 * 10, 72.8 * 50])


def test_a_machine_without_figures_has_no_such_energy():
    assert compute_energy(small(), load_machine("spinnaker1"), [0, 1, 2]) is None


def test_parts_without_a_figure_are_named():
    loihi = load_machine("loihi1")
    some = replace(loihi, figures={"energy_spike_out": loihi.figures["energy_spike_out"]})
    energy = compute_energy(small(), some, [0, 1, 2])
    assert energy.missing == ("synapses", "neurons")
    assert energy.total == energy.spikes.sum() > 0


def test_a_core_that_does_not_exist():
    with pytest.raises(InputError, match="unknown core"):
        compute_energy(small(), load_machine("loihi1"), [0, 1, 999])


def test_a_figure_in_another_unit_is_refused():
    loihi = load_machine("loihi1")
    wrong = replace(loihi, figures={"energy_synaptic_op": Figure(0.0355, "nJ")})
    with pytest.raises(
        InputError, match=r"loihi1: energy_synaptic_op: the figure is 0\.0355 nJ; expected pJ"
    ):
        compute_energy(small(), wrong, [0, 1, 2])
