"""Networks that NetPyNE saved as JSON (Dura-Bernal et al., eLife 8:e44494, 2019; ``saveJson``, read as of version 1.0 and 1.1).

``net.cells`` has every cell with its number, its tags and the connections that end at it; ``simData`` has all spikes.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.formats.populations import SECOND, Neurons, assembled
from nmsolve.model.formats.recording import Recording
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import IntArray


class _Conn(msgspec.Struct, gc=False):
    """A connection; ``preGid`` is text where a stimulator of the cell's own stands in for a cell."""

    preGid: int | str
    gapJunction: bool | str | None = None


class _Tags(msgspec.Struct, gc=False):
    pop: str
    cellType: str | None = None
    cellModel: str | None = None


class _Cell(msgspec.Struct):
    gid: int
    tags: _Tags
    conns: list[_Conn] = []


class _Net(msgspec.Struct):
    cells: list[_Cell]


class _Config(msgspec.Struct):
    duration: float | None = None


class _Data(msgspec.Struct):
    spkid: list[float] | None = None


class _File(msgspec.Struct):
    net: _Net
    simConfig: _Config | None = None
    simData: _Data | None = None


def load(path: Path) -> LogicGraph:
    """Read a saved network: directed, every cell multicasts once per step (:func:`recording` has what was measured).

    Ids are ``population/number``, by rising number of the cell; kinds are cell types (or models, of artificial cells).
    Stimulators that belong to single cells, and gap junctions, send no spikes from cell to cell and are left out.

    Raises
    ------
    InputError : not such a file; a cell twice; a connection from a cell that is not there; each with its JSON path
    """
    return _graph(_read(path), path)


def recording(path: Path) -> Recording:
    """Return the spikes of all cells in ``simData``, over ``simConfig.duration``.

    Raises
    ------
    InputError : as :func:`load`; no spikes were saved, or of unknown cells
    """
    file = _read(path)
    if file.simData is None or file.simData.spkid is None:
        raise InputError("no spikes were saved", f"{path}: $.simData.spkid", "saveDataInclude with simData")
    _, called, place = _populations(file.net.cells, path)
    spikes = np.zeros(len(called), np.int64)
    for k, number in enumerate(file.simData.spkid):
        if number not in place:
            raise InputError(
                f"there is no cell {number:g}", f"{path}: $.simData.spkid[{k}]", "the gid of a cell"
            )
        spikes[place[int(number)]] += 1
    duration = None if file.simConfig is None else file.simConfig.duration
    seconds = None if duration is None else np.full(len(spikes), duration / SECOND)
    return Recording(path, called, spikes, seconds)


def _read(path: Path) -> _File:
    file = decode_json(read_limited(path), _File, path)
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
    ends: list[tuple[IntArray, IntArray]] = []
    for k, cell in enumerate(cells):
        try:
            source = [
                place[conn.preGid]
                for conn in cell.conns
                if not conn.gapJunction and not isinstance(conn.preGid, str)
            ]
        except KeyError as error:
            where = f"{path}: $.net.cells[{k}].conns"
            raise InputError(f"there is no cell {error.args[0]}", where, "the gid of a cell") from None
        ends.append((np.array(source, np.int64), np.full(len(source), place[cell.gid])))
    return assembled(path.stem, neurons, ends)
