"""Recorded spikes in HDF5: SONATA spike reports, units of Neurodata Without Borders, spike trains that Neo keeps in NIX.

* SONATA (Dai et al., PLoS Computational Biology 16:e1007696, 2020): ``/spikes/<population>/node_ids``, ``timestamps``.
* NWB 2 (Ruebel et al., eLife 11:e78362, 2022): ``/units`` with ``id``, ``spike_times_index``, perhaps ``obs_intervals`` (seconds)
  and a column ``unit_name``.
* NIX 1.5 (Stoewer et al., Frontiers in Neuroinformatics 8:27, 2014) as Neo's ``NixIO`` uses it: ``multi_tags`` of the type
  ``neo.spiketrain``, whose ``positions`` are times; ``t_start`` and ``t_stop`` in the metadata.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.contained import Reply, one_reply
from nmsolve.model.errors import InputError
from nmsolve.model.formats.hdf5 import opened, package
from nmsolve.model.formats.recording import Recording
from nmsolve.model.network import BLOCK
from nmsolve.model.types import FloatArray, IntArray

#: Seconds of the units that Neo writes.
UNITS = {"s": 1.0, "second": 1.0, "ms": 1e-3, "millisecond": 1e-3, "us": 1e-6, "microsecond": 1e-6}
#: No file has more trains than this.
MOST_TRAINS = 10_000_000


def read(path: Path) -> Recording:
    """Read any of the three kinds, told apart by what is in the file.

    Raises
    ------
    InputError : h5py is not installed; none of these kinds; damaged; a train without a name; no trains
    """
    package("h5py", "sonata", path)
    names, arrays = one_reply(partial(_read, path), path)
    if not names:
        raise InputError("there are no spike trains", str(path), "at least one")
    seconds = arrays.get("seconds")
    return Recording(path, tuple(map(str, names)), arrays["spikes"], seconds)


def _read(path: Path) -> Reply:
    with opened(path, "sonata") as file:
        if "spikes" in file:
            names, spikes, seconds = _sonata(file["spikes"], path)
        elif "units" in file:
            names, spikes, seconds = _nwb(file["units"], path)
        elif _text(file.attrs.get("format", "")) == "nix":
            names, spikes, seconds = _nix(file["data"], path)
        else:
            raise InputError("there are no spikes", str(path), "/spikes (SONATA), /units (NWB) or a NIX file")
    for name in names:
        name.encode()  # what is no UTF-8 is damage
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two trains are called {twice[:60]!r}", str(path), "one train for each neuron")
    arrays: dict[str, Any] = {"spikes": spikes}
    if seconds is not None:
        arrays["seconds"] = seconds
    return Reply(names, arrays)


def _sonata(group: Any, path: Path) -> tuple[list[str], IntArray, None]:
    """Return names ``population/number`` and spikes; these files do not say how long was recorded."""
    names: list[str] = []
    counts = [np.zeros(0, np.int64)]
    for population, report in sorted(group.items()):
        data = report.get("node_ids")
        if data is None or data.ndim != 1 or data.dtype.kind not in "iu":
            raise InputError(
                "the list of whole numbers 'node_ids' is missing",
                f"{path}: spikes/{population}",
                "SONATA spikes",
            )
        numbers, spikes = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for begin in range(0, len(data), BLOCK):
            fresh, times = np.unique(data[begin : begin + BLOCK].astype(np.int64), return_counts=True)
            both = np.concatenate([numbers, fresh])
            numbers, of = np.unique(both, return_inverse=True)
            spikes = np.bincount(of, np.concatenate([spikes, times])).astype(np.int64)
        names += [f"{population}/{number}" for number in numbers.tolist()]
        counts.append(spikes)
    return names, np.concatenate(counts), None


def _nwb(units: Any, path: Path) -> tuple[list[str], IntArray, FloatArray | None]:
    """Return names (``unit_name``, else ``id``), spikes, and the seconds of ``obs_intervals`` if there are any."""
    where = f"{path}: units"
    ends, times = _ends(units, "spike_times", where), units["spike_times"]
    spikes = np.diff(ends, prepend=0)
    named = units["unit_name"] if "unit_name" in units else units["id"]
    if named.shape != spikes.shape or (len(ends) and ends[-1] > len(times)):
        raise InputError("its columns have different lengths", where, "one row per unit")
    names = [_text(v) for v in named[:]]
    if "obs_intervals" not in units:
        return names, spikes, None
    last, table = _ends(units, "obs_intervals", where), units["obs_intervals"]
    if (
        len(last) != len(spikes)
        or table.ndim != 2
        or table.shape[1] != 2
        or (len(last) and last[-1] > len(table))
    ):
        raise InputError("obs_intervals do not fit the units", where, "(intervals, 2), one run per unit")
    length = np.concatenate([[0.0], np.cumsum(np.diff(table[:].astype(np.float64), axis=1)[:, 0])])
    return names, spikes, length[last] - length[last - np.diff(last, prepend=0)]


def _ends(units: Any, column: str, where: str) -> IntArray:
    """Return (units,) where each unit's values end in a column."""
    index = units.get(f"{column}_index")
    if index is None or index.ndim != 1 or index.dtype.kind not in "iu" or len(index) > MOST_TRAINS:
        raise InputError(f"the list of whole numbers '{column}_index' is missing", where, "units of NWB 2")
    ends: IntArray = index[:].astype(np.int64)
    if (np.diff(ends, prepend=0) < 0).any():
        raise InputError(f"{column}_index falls", where, "rising whole numbers")
    return ends


def _nix(blocks: Any, path: Path) -> tuple[list[str], IntArray, FloatArray]:
    """Return names, spikes and seconds of Neo's trains; trains of one name in several segments are added up."""
    total: dict[str, list[float]] = {}
    for block in blocks.values():
        for tag in block.get("multi_tags", {}).values():
            if _text(tag.attrs.get("type", "")) != "neo.spiketrain":
                continue
            said = tag["metadata/properties"]
            seconds = _seconds(said["t_stop"], path) - _seconds(said["t_start"], path)
            train = total.setdefault(_name(said, tag), [0, 0.0])
            train[0] += tag["positions/data"].shape[0]
            train[1] += seconds
    spikes = np.array([train[0] for train in total.values()], np.int64)
    return list(total), spikes, np.array([train[1] for train in total.values()], np.float64)


def _name(said: Any, tag: Any) -> str:
    """Return what a train is called: PyNN's population and index, else Neo's name, else that of NIX."""
    if "source_population" in said and "source_index" in said:
        return f"{_text(said['source_population'][0])}/{int(said['source_index'][0])}"
    return _text(said["neo_name"][0]) if "neo_name" in said else _text(tag.attrs["name"])


def _seconds(value: Any, path: Path) -> float:
    unit = _text(value.attrs.get("unit", "s"))
    if unit not in UNITS:
        raise InputError(f"a time in {unit[:20]!r}", f"{path}: {value.name}", ", ".join(UNITS))
    return float(value[0]) * UNITS[unit]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
