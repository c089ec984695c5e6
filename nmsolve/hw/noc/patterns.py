"""Traffic patterns of the literature (Dally and Towles, Principles and Practices of Interconnection Networks, 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nmsolve.hw.noc.config import RouterConfig
from nmsolve.hw.noc.traffic import Traffic
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray

#: Names of patterns.
PATTERNS = (
    "uniform", "bit-complement", "bit-reverse", "shuffle", "transpose", "tornado", "neighbour", "hotspot",
)  # fmt: skip


def pattern(
    machine: Machine,
    name: str,
    load: float,
    config: RouterConfig,
    *,
    hotspots: Sequence[int] = (),
    share: float = 0.5,
) -> Traffic:
    """Return traffic in which every usable core sends ``load`` flits per cycle.

    ``uniform``: to all usable cores alike, itself included (as BookSim does). ``bit-complement``: to the core with all
    bits of the number inverted (the number of cores must be a power of two; so too for ``bit-reverse`` and ``shuffle``, which
    reverse the bits or turn them left by one). ``transpose``: row and column exchanged (square boards). ``tornado``: half way
    round in both directions. ``neighbour``: one core to the right and down, round the edges. ``hotspot``: ``share`` of the
    packets to ``hotspots`` in equal parts, the rest uniform.

    Raises
    ------
    InputError : unknown name, a board the pattern is not defined on, a load that is not possible
    """
    if name not in PATTERNS:
        raise InputError(f"unknown traffic pattern {name!r}", "", "one of " + ", ".join(PATTERNS))
    if name in ("uniform", "hotspot"):
        return matrix(machine, _spread(machine, name, hotspots, share), load, config, name)
    goal = _PERMUTATIONS[name](machine)
    weights = machine.usable & machine.usable[goal]
    core = np.flatnonzero(weights).astype(np.int32)
    _check_load(load)
    every = np.arange(len(core) + 1, dtype=np.int64)
    rate = np.full(len(core), load / config.packet_flits)
    return Traffic(core, every, goal[core].astype(np.int32), rate, name)


def matrix(
    machine: Machine, rates: FloatArray, load: float, config: RouterConfig, name: str = "matrix"
) -> Traffic:
    """Return traffic in proportion to a matrix from row to column; the busiest core sends ``load`` flits per cycle.

    Raises
    ------
    InputError : not (P, P) finite numbers >= 0 with one > 0; a load that is not possible
    """
    size = machine.size
    if rates.shape != (size, size) or not np.isfinite(rates).all() or rates.min() < 0 or not rates.any():
        raise InputError(
            f"rates have shape {rates.shape}", name, f"{size} x {size} numbers >= 0, not all of them 0"
        )
    _check_load(load)
    source, target = np.nonzero(rates)
    scale = load / config.packet_flits / rates.sum(1).max()
    every = np.arange(len(source) + 1, dtype=np.int64)
    return Traffic(
        source.astype(np.int32), every, target.astype(np.int32), rates[source, target] * scale, name
    )


def _check_load(load: float) -> None:
    if not 0 <= load <= 1:
        raise InputError(
            f"a load of {load} flits per core and cycle", "traffic", "0 to 1: a core sends one flit per cycle"
        )


def _spread(machine: Machine, name: str, hotspots: Sequence[int], share: float) -> FloatArray:
    """Return rates of uniform and hotspot traffic."""
    usable = machine.usable.astype(np.float64)
    rates: FloatArray = np.outer(usable, usable) / usable.sum()
    if name == "uniform":
        return rates
    if not hotspots or not 0 <= share <= 1:
        raise InputError(
            f"{len(hotspots)} hotspots, share {share}", "traffic", "hotspots, and a share from 0 to 1"
        )
    for core in hotspots:
        if not 0 <= core < machine.size or not machine.usable[core]:
            raise InputError(f"hotspot core {core}", machine.name, "a usable core")
    rates *= 1 - share
    for core in hotspots:
        rates[:, core] += usable * share / len(hotspots)
    return rates


def _bits(machine: Machine, name: str) -> int:
    bits = machine.size.bit_length() - 1
    if machine.size != 1 << bits:
        raise InputError(f"{name} on {machine.size} cores", machine.name, "a power of two")
    return bits


def _bit_complement(machine: Machine) -> IntArray:
    return np.arange(machine.size) ^ ((1 << _bits(machine, "bit-complement")) - 1)


def _bit_reverse(machine: Machine) -> IntArray:
    bits = _bits(machine, "bit-reverse")
    core = np.arange(machine.size)
    return np.asarray(sum((core >> k & 1) << (bits - 1 - k) for k in range(bits)) + 0 * core)


def _shuffle(machine: Machine) -> IntArray:
    bits = _bits(machine, "shuffle")
    core = np.arange(machine.size)
    return (core << 1 | core >> max(bits - 1, 0)) & (machine.size - 1)


def _transpose(machine: Machine) -> IntArray:
    if machine.rows != machine.cols:
        raise InputError(
            f"transpose on {machine.rows} x {machine.cols} cores", machine.name, "a square board"
        )
    r, c = np.divmod(np.arange(machine.size), machine.cols)
    return c * machine.cols + r


def _tornado(machine: Machine) -> IntArray:
    r, c = np.divmod(np.arange(machine.size), machine.cols)
    down, right = (machine.rows + 1) // 2 - 1, (machine.cols + 1) // 2 - 1
    goal: IntArray = (r + down) % machine.rows * machine.cols + (c + right) % machine.cols
    return goal


def _neighbour(machine: Machine) -> IntArray:
    r, c = np.divmod(np.arange(machine.size), machine.cols)
    goal: IntArray = (r + 1) % machine.rows * machine.cols + (c + 1) % machine.cols
    return goal


_PERMUTATIONS: dict[str, Callable[[Machine], IntArray]] = {
    "bit-complement": _bit_complement,
    "bit-reverse": _bit_reverse,
    "shuffle": _shuffle,
    "transpose": _transpose,
    "tornado": _tornado,
    "neighbour": _neighbour,
}
