"""The speed of a core, for the times of layers and tensors: a machine's figures, or those of an assumed core."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine


@dataclass(frozen=True)
class EnergyFigures:
    """What a machine takes, in pJ; power in mW, of all cores and chips, whatever they do.

    Attributes
    ----------
    mac, element : of a multiply-accumulate operation, and of an element of an operation without MACs
    byte : of a byte from one core to another
    offchip : of a byte from or to off-chip memory
    core, chips : mW of a core, and of all chips besides
    """

    mac: float
    element: float
    byte: float
    offchip: float
    core: float
    chips: float


@dataclass(frozen=True)
class CoreFigures:
    """One core of a machine.

    Attributes
    ----------
    mac_rate : multiply-accumulate operations per second
    element_rate : elements per second of operations without MACs (sums, maxima, copies)
    bandwidth : bytes per second that a core, and so a stage, takes in, and as many that it gives out
    tile_channels, tile_rows : the part of a layer's result that a core computes in one piece; cores share layers by such tiles
    memory : bytes of a core, None: no limit
    offchip : bytes per second of off-chip memory, for all cores together; None: there is none
    sync : ns in which the cores of a group meet before a layer; then what they exchange for it counts, too. None: neither does
    assumed : they are of no machine
    border : groups take in and give out through a side of cores at a time, not through one core
    energy : what the machine takes, None where figures for that are missing; then ``no_energy`` names these
    """

    mac_rate: float
    element_rate: float
    bandwidth: float
    tile_channels: int
    tile_rows: int
    memory: float | None = None
    offchip: float | None = None
    sync: float | None = None
    assumed: bool = False
    border: bool = False
    energy: EnergyFigures | None = None
    no_energy: str = ""

    def __post_init__(self) -> None:
        for name in ("mac_rate", "element_rate", "bandwidth"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} is {value}", "figures of a core", "a finite number > 0")
        if self.sync is not None and not (math.isfinite(self.sync) and self.sync >= 0):
            raise InputError(f"sync is {self.sync}", "figures of a core", "a finite number of ns >= 0")
        if self.tile_channels < 1 or self.tile_rows < 1:
            raise InputError(
                f"tiles of {self.tile_channels} channels, {self.tile_rows} rows",
                "figures of a core",
                "1 or more",
            )


#: A core where no machine says what its cores can do. Not the figures of a chip but round ones: at 1 GHz 64 MACs, 16 elements
#: and 32 bytes per cycle, tiles of 16 channels by 16 rows. They serve to compare cuts; as times they mean little. Energies are
#: those of Horowitz (ISSCC 2014, 45 nm, 0.9 V) for 32-bit floats: a multiplication of 3.7 pJ and an addition of 0.9 pJ; 64 bits
#: out of a memory of 1 MiB, 100 pJ, and into another one; 64 bits of DRAM, 1.3 to 2.6 nJ. The static power is a round number,
#: about a tenth of what the MACs take at full rate.
ASSUMED = CoreFigures(
    64e9, 16e9, 32e9, 16, 16, assumed=True, energy=EnergyFigures(4.6, 0.9, 25.0, 243.75, 30.0, 0.0)
)

#: Keys under ``[figures]`` of a machine, with how the unit must begin if a file gives one.
KEYS = {
    "mac_rate": "MACs/s",
    "element_rate": "elements/s",
    "bandwidth": "bytes/s",
    "tile_channels": "channels",
    "tile_rows": "rows",
}
#: The same for figures that a machine may leave out.
OPTIONAL = {"offchip_bandwidth": "bytes/s (of all cores)", "group_sync": "ns", "group_border": "1 or 0"}
#: Figures of energy, in the order of :class:`EnergyFigures`: all of them, or the energy of plans is not known.
ENERGY = {
    "energy_mac": "pJ",
    "energy_element": "pJ",
    "energy_byte": "pJ",
    "energy_offchip_byte": "pJ",
    "power_core": "mW",
    "power_chip": "mW",
}


def machine_figures(machine: Machine | None) -> CoreFigures:
    """Return the figures of a machine's cores. None, or a plain mesh that states nothing about its cores: ``ASSUMED``.

    Memory is the capacity ``bytes``.

    Raises
    ------
    InputError : a machine with some figures lacks those needed (all that are missing are listed), or gives another unit
    """
    if machine is None or not (machine.figures or machine.capacity):
        return ASSUMED
    missing = [f"{key} ({unit})" for key, unit in KEYS.items() if key not in machine.figures]
    if missing:
        raise InputError(
            "the speed of its cores is not given: no " + ", ".join(missing),
            machine.name,
            "these keys under [figures] of a machine file, or --cores N alone for assumed cores",
        )
    for key, unit in KEYS.items():
        stated = machine.figures[key].unit
        if stated and not stated.startswith(unit):
            raise InputError(f"the unit of {key} is {stated!r}", machine.name, f"{unit} (of one core)")
    for key, unit in (OPTIONAL | ENERGY).items():
        given = machine.figures.get(key)
        if given is not None and given.unit and not given.unit.startswith(unit.split()[0]):
            raise InputError(f"the unit of {key} is {given.unit!r}", machine.name, unit)
        if given is not None and not (math.isfinite(given.value) and given.value >= 0):
            raise InputError(f"{key} is {given.value:g}", machine.name, "a finite number >= 0")
    offchip, sync, border = (machine.figures.get(key) for key in OPTIONAL)
    value = {key: machine.figures[key].value for key in KEYS}
    if "bytes" in machine.core_capacity or "bytes" in machine.held:
        raise InputError(
            "its cores have different amounts of memory",
            machine.name,
            "one amount: a plan treats all cores alike",
        )
    memory = machine.capacity.get("bytes")
    no_energy = ", ".join(f"{key} ({unit})" for key, unit in ENERGY.items() if key not in machine.figures)
    energy = None
    if not no_energy:
        mac, element, byte, off, core, chip = (machine.figures[key].value for key in ENERGY)
        energy = EnergyFigures(mac, element, byte, off, core, chip * machine.n_chips)
    return CoreFigures(
        value["mac_rate"], value["element_rate"], value["bandwidth"], int(value["tile_channels"]), int(value["tile_rows"]),
        None if memory is None else float(memory), None if offchip is None else offchip.value,
        None if sync is None else sync.value, border=border is not None and border.value > 0,
        energy=energy, no_energy=no_energy,
    )  # fmt: skip
