"""The architecture file of SANA-FE: a tile with one core for every core of the machine, or its tiles where it has them."""

from __future__ import annotations

from nmsolve.hw.energy import UNIT_ENERGY, has_energy, stated
from nmsolve.model.machine import Machine
from nmsolve.model.tiles import tile_grid, tile_shape

#: SANA-FE needs the room of a link's buffer (messages) for its times; this one where the machine has no figure ``link_buffer``.
LINK_BUFFER = 16
#: Figures by our name and SANA-FE's: of the unit that computes neurons.
SOMA = (("neuron_access", "access_neuron"), ("neuron_update", "update_neuron"), ("spike_out", "spike_out"))
PJ, NS = 1e-12, 1e-9


def message_and_hops(machine: Machine) -> dict[str, float]:
    """pJ of sending a ``message`` and of a hop along a row (``x``) and a column (``y``); Jin et al.'s units count as pJ."""
    tiled = tile_shape(machine) != (1, 1)
    if not has_energy(machine):
        weight = machine.crossing_weight if tiled else machine.link_weight
        hop = UNIT_ENERGY["router"] + UNIT_ENERGY["link"] * weight
        return {"message": UNIT_ENERGY["router"], "x": hop, "y": hop}
    value = {name: figure.value for name, figure in machine.energy.items()}
    router = value.get("router", 0.0)
    hop = router + (value.get("crossing", 0.0) if tiled else 0.0)
    return {
        "message": value.get("message", 0.0) + router,
        "x": hop + value.get("link_x", 0.0),
        "y": hop + value.get("link_y", 0.0),
    }


def architecture(machine: Machine, neurons: int) -> dict[str, object]:
    """The file as nested tables, in joules and seconds; ``neurons``: room of a core. Figures the machine does not have are 0."""
    down, across = tile_grid(machine)
    name = "".join(c if c.isalnum() else "_" for c in machine.name)
    chip = {
        "topology": "mesh",
        "width": across,
        "height": down,
        "link_buffer_size": int(stated(machine, "link_buffer", "messages") or LINK_BUFFER),
        "sync_model": "fixed",
        "latency_sync": 0.0,
    }
    tile = {
        "name": f"tile[0..{down * across - 1}]",
        "attributes": _hops(machine),
        "core": [_core(machine, neurons)],
    }
    return {"architecture": {"name": name, "attributes": chip, "tile": [tile]}}


def _hops(machine: Machine) -> dict[str, float]:
    energy, latency = message_and_hops(machine), {name: f.value * NS for name, f in machine.latency.items()}
    out = {}
    for way, axis in (("north", "y"), ("east", "x"), ("south", "y"), ("west", "x")):
        out[f"energy_{way}_hop"] = energy[axis] * PJ
        between = latency.get("crossing", 0.0) if tile_shape(machine) != (1, 1) else 0.0
        out[f"latency_{way}_hop"] = latency.get("router", 0.0) + latency.get(f"link_{axis}", 0.0) + between
    return out


def _core(machine: Machine, neurons: int) -> dict[str, object]:
    def joules(name: str) -> float:
        return (stated(machine, f"energy_{name}", "pJ") or 0.0) * PJ

    def seconds(name: str) -> float:
        return (stated(machine, f"latency_{name}", "ns") or 0.0) * NS

    soma: dict[str, object] = {"model": "leaky_integrate_fire"}
    for ours, theirs in SOMA:
        soma |= {f"energy_{theirs}": joules(ours), f"latency_{theirs}": seconds(ours)}
    synapse: dict[str, object] = {
        "model": "current_based",
        "energy_process_spike": joules("synaptic_op"),
        "latency_process_spike": seconds("synaptic_op"),
    }
    rows, cols = tile_shape(machine)
    router = machine.latency["router"].value * NS if "router" in machine.latency else 0.0
    out: dict[str, object] = {
        "energy_message_out": message_and_hops(machine)["message"] * PJ,
        "latency_message_out": router + seconds("axon_out"),
    }
    return {
        "name": f"core[0..{rows * cols - 1}]",
        "attributes": {"buffer_position": "soma", "max_neurons_supported": neurons},
        "axon_in": _unit("in", {"energy_message_in": 0.0, "latency_message_in": seconds("axon_in")}),
        "synapse": _unit("synapse", synapse),
        "dendrite": _unit("dendrite", {"model": "accumulator", "energy_update": 0.0, "latency_update": 0.0}),
        "soma": _unit("soma", soma),
        "axon_out": _unit("out", out),
    }


def _unit(name: str, attributes: dict[str, object]) -> list[dict[str, object]]:
    return [{"name": name, "attributes": attributes}]
