"""Networks that NetPyNE saved as JSON (Dura-Bernal et al., eLife 8:e44494, 2019; ``saveJson``, read as of version 1.0 and 1.1).

``net.cells`` has every cell with its number, its tags and the connections that end at it; ``simData`` has all spikes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.formats.populations import SECOND, Neurons, assembled, left_out
from nmsolve.model.formats.recording import Recording
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import IntArray
from nmsolve.model.unknown_members import Known, name_unknown_members


class _Conn(msgspec.Struct, gc=False):
    """A connection; ``preGid`` is text where a stimulator of the cell's own stands in for a cell.

    Gap junctions have a ``pointer``, or a mechanism with ``pointerParams``; before version 1.0.3 ``gapJunction``.
    """

    preGid: int | str
    synMech: Any = None
    gapJunction: bool | str | None = None
    pointer: Any = None


class _Tags(msgspec.Struct, gc=False):
    pop: str
    cellType: str | None = None
    cellModel: str | None = None


class _Cell(msgspec.Struct):
    gid: int
    tags: _Tags
    conns: list[_Conn | list[Any]] = []


class _Mechanism(msgspec.Struct):
    pointerParams: Any = None


class _Rule(msgspec.Struct):
    synMech: Any = None
    gapJunction: bool | str | None = None


class _Params(msgspec.Struct, frozen=True):
    connParams: dict[str, _Rule] | list[Any] = {}
    subConnParams: dict[str, Any] | list[Any] = {}
    synMechParams: dict[str, _Mechanism] | list[Any] = {}


class _Net(msgspec.Struct):
    cells: list[_Cell] = []
    params: _Params = _Params()


class _Config(msgspec.Struct, frozen=True):
    duration: float | None = None
    compactConnFormat: list[str] | bool | None = None
    saveCellConns: bool = True


class _Data(msgspec.Struct):
    """Spikes; NetPyNE writes an empty object where nothing was recorded."""

    spkid: list[float] | dict[str, Any] | None = None
    spkt: list[float] | dict[str, Any] | None = None


class _File(msgspec.Struct):
    net: _Net = msgspec.field(default_factory=_Net)
    simConfig: _Config = _Config()
    simData: _Data | None = None


#: Members that NetPyNE writes and that are not read.
NOT_READ: Known = {
    _File: ("netpyne_version", "netpyne_changeset", "netParams_version"), _Net: ("pops", "recXElectrode"),
    _Cell: None, _Params: None, _Config: None, _Data: None,
}  # fmt: skip


def load(path: Path) -> LogicGraph:
    """Read a saved network: directed, every cell multicasts once per step (:func:`recording` has what was measured).

    Ids are ``population/number``, by rising number of the cell; kinds are cell types (or models, of artificial cells).
    Stimulators that belong to single cells, and gap junctions, send no spikes from cell to cell and are left out with a warning.

    Raises
    ------
    InputError : not such a file; a cell twice; a connection from a cell that is not there; saved without connections; each with
        its JSON path
    """
    return _graph(_read(path), path)


def recording(path: Path) -> Recording:
    """Return the spikes of all cells in ``simData``, over ``simConfig.duration``.

    Raises
    ------
    InputError : as :func:`load`; no spikes were saved, or of unknown cells
    """
    file = _read(path)
    data = file.simData
    if data is None or not isinstance(data.spkid, list):
        raise InputError("no spikes were saved", f"{path}: $.simData.spkid", "saveDataInclude with simData")
    _, called, place = _populations(file.net.cells, path)
    spikes = np.zeros(len(called), np.int64)
    for k, number in enumerate(data.spkid):
        if number not in place:
            raise InputError(
                f"there is no cell {number:g}", f"{path}: $.simData.spkid[{k}]", "the gid of a cell"
            )
        spikes[place[int(number)]] += 1
    duration, times = (
        file.simConfig.duration,
        data.spkt if isinstance(data.spkt, list) and data.spkt else [0.0],
    )
    if duration is not None and not 0 <= min(times) <= max(times) <= duration:
        what = f"spikes from {min(times):g} to {max(times):g} ms in a simulation of {duration:g} ms"
        doubtful(what, f"{path}: $.simData.spkt", "times within $.simConfig.duration")
    seconds = None if duration is None else np.full(len(spikes), duration / SECOND)
    return Recording(path, called, spikes, seconds)


def _read(path: Path) -> _File:
    data = read_limited(path)
    file = decode_json(data, _File, path)
    name_unknown_members(data, _File, path, NOT_READ)
    if not file.net.cells:
        raise InputError("there are no cells", f"{path}: $.net.cells", "saveDataInclude with netCells")
    return file


def _populations(cells: list[_Cell], path: Path) -> tuple[list[Neurons], tuple[str, ...], dict[int, int]]:
    """Return the populations by name, what all cells are called, and where each is by its number."""
    members: dict[str, list[int]] = {}
    kinds: dict[str, dict[str, None]] = {}
    seen: set[int] = set()
    for k, cell in enumerate(cells):
        if cell.gid in seen:
            raise InputError(
                f"cell {cell.gid} is there twice", f"{path}: $.net.cells[{k}].gid", "every cell once"
            )
        seen.add(cell.gid)
        members.setdefault(cell.tags.pop, []).append(cell.gid)
        kinds.setdefault(cell.tags.pop, {})[cell.tags.cellType or cell.tags.cellModel or cell.tags.pop] = None
    place: dict[int, int] = {}
    called: list[str] = []
    neurons = []
    for name in sorted(members, key=lambda p: min(members[p])):
        kind = next(iter(kinds[name])) if len(kinds[name]) == 1 else name
        neurons.append(Neurons(name, len(members[name]), kind))
        for k, number in enumerate(sorted(members[name])):
            place[number] = len(place)
            called.append(f"{name}/{k}")
    return neurons, tuple(called), place


def _graph(file: _File, path: Path) -> LogicGraph:
    cells = file.net.cells
    neurons, _, place = _populations(cells, path)
    if not any(cell.conns for cell in cells):
        _without_connections(file, path)
    junctions = _junctions(file.net.params)
    ends: list[tuple[IntArray, IntArray]] = []
    stimulators = gaps = 0
    for k, cell in enumerate(cells):
        where = f"{path}: $.net.cells[{k}].conns"
        conns = _long(cell.conns, file.simConfig, where)
        gap = [bool(c.gapJunction or c.pointer or str(c.synMech) in junctions) for c in conns]
        gaps += sum(gap)
        spiking = [c.preGid for c, is_gap in zip(conns, gap, strict=True) if not is_gap]
        stimulators += sum(isinstance(number, str) for number in spiking)
        try:
            source = [place[number] for number in spiking if not isinstance(number, str)]
        except KeyError as error:
            raise InputError(f"there is no cell {error.args[0]}", where, "the gid of a cell") from None
        ends.append((np.array(source, np.int64), np.full(len(source), place[cell.gid])))
    left_out(stimulators, "stimulators of single cells (NetStim) are no cells", f"{path}: $.net.cells")
    left_out(gaps, "they are gap junctions", f"{path}: $.net.cells")
    return assembled(path.stem, neurons, ends)


def _junctions(params: _Params) -> set[str]:
    """Return the mechanisms that are gap junctions: connections in the compact form do not say so themselves."""
    mechanisms = params.synMechParams if isinstance(params.synMechParams, dict) else {}
    rules = params.connParams.values() if isinstance(params.connParams, dict) else ()
    return {name for name, mechanism in mechanisms.items() if mechanism.pointerParams is not None} | {
        str(rule.synMech) for rule in rules if rule.gapJunction
    }


def _without_connections(file: _File, path: Path) -> None:
    """Refuse a network that has connections which were not saved; warn if no cell has any."""
    where, config = f"{path}: $.net.cells", file.simConfig
    if not config.saveCellConns:
        raise InputError("the file was saved without connections", where, "simConfig.saveCellConns = True")
    if file.net.params.connParams or file.net.params.subConnParams:
        raise InputError(
            "no cell has connections, though $.net.params has rules for them",
            where,
            "a file saved after createNetwork()",
        )
    doubtful("no cell has connections", where, "cells with conns")


def _long(conns: list[_Conn | list[Any]], config: _Config, where: str) -> list[_Conn]:
    """Return connections, those in the compact form as objects: its list of values goes by ``simConfig.compactConnFormat``."""
    names = config.compactConnFormat if isinstance(config.compactConnFormat, list) else None
    out: list[_Conn] = []
    for k, conn in enumerate(conns):
        if isinstance(conn, _Conn):
            out.append(conn)
        elif names is None or "preGid" not in names:
            raise InputError(
                f"connections are lists, and {names or 'nothing'} says what is in them", f"{where}[{k}]",
                "$.simConfig.compactConnFormat with preGid",
            )  # fmt: skip
        elif len(conn) != len(names):
            raise InputError(
                f"found {len(conn)} values", f"{where}[{k}]", f"{len(names)}: {', '.join(names)}"
            )
        else:
            values = dict(zip(names, conn, strict=True))
            try:
                out.append(msgspec.convert(values, _Conn))
            except msgspec.ValidationError as error:
                raise InputError(
                    str(error), f"{where}[{k}]", "values as simConfig.compactConnFormat names them"
                ) from None
    return out
