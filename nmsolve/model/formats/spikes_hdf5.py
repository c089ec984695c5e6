"""Recorded spikes in HDF5: SONATA spike reports, units of Neurodata Without Borders, spike trains that Neo keeps in NIX.

* SONATA (Dai et al., PLoS Computational Biology 16:e1007696, 2020): ``/spikes/<population>/node_ids``, ``timestamps``, whose
  ``units`` are milliseconds if nothing is said; before version 0.1 ``/spikes/gids``, ``timestamps`` of a single population.
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
from nmsolve.model.errors import InputError, doubtful, name_unread
from nmsolve.model.formats.hdf5 import column, members, opened, package, text
from nmsolve.model.formats.recording import UNITS, Recording
from nmsolve.model.network import BLOCK
from nmsolve.model.types import FloatArray, IntArray, repeat_of

#: Columns of units in NWB: what is read, and what says nothing about how often they fire.
NWB = (
    "id", "unit_name", "spike_times", "spike_times_index", "obs_intervals", "obs_intervals_index", "electrodes",
    "electrodes_index", "electrode_group", "waveform_mean", "waveform_sd", "waveforms", "waveforms_index",
    "waveforms_index_index",
)  # fmt: skip
#: No file has more trains than this.
MOST_TRAINS = 10_000_000
#: Seconds by which rounding may move a spike out of the recorded time.
ROUNDING = 1e-6


def read(path: Path) -> Recording:
    """Read any of the three kinds, told apart by what is in the file.

    Raises
    ------
    InputError : h5py is not installed; none of these kinds; damaged; a train without a name; no trains
    """
    package("h5py", "sonata", path)
    value, arrays = one_reply(partial(_read, path), path)
    if not value["names"]:
        raise InputError("there are no spike trains", str(path), "at least one")
    seconds = arrays.get("seconds")
    span = None if value["span"] is None else (value["span"][0], value["span"][1])
    return Recording(path, tuple(map(str, value["names"])), arrays["spikes"], seconds, span)


def _read(path: Path) -> Reply:
    span = None
    with opened(path, "sonata") as file:
        if "spikes" in file:
            (names, spikes, span), seconds = _sonata(members(file["spikes"], f"{path}: spikes"), path), None
        elif "units" in file:
            names, spikes, seconds = _nwb(file["units"], path)
        elif text(file.attrs.get("format")) == "nix":
            names, spikes, seconds = _nix(file["data"], path)
        else:
            raise InputError("there are no spikes", str(path), "/spikes (SONATA), /units (NWB) or a NIX file")
    if (k := repeat_of(names)) is not None:
        raise InputError(f"two trains are called {names[k][:60]!r}", str(path), "one train for each neuron")
    arrays: dict[str, Any] = {"spikes": spikes}
    if seconds is not None:
        arrays["seconds"] = seconds
    return Reply({"names": names, "span": span}, arrays)


def _sonata(groups: dict[str, Any], path: Path) -> tuple[list[str], IntArray, tuple[float, float] | None]:
    """Return names ``population/number``, spikes, and the seconds of the first and last; how long was recorded is not there."""
    old = [name for name in ("gids", "node_ids", "timestamps") if name in groups]
    reports = {"": groups} if old else {k: members(v, f"{path}: spikes/{k}") for k, v in groups.items()}
    names: list[str] = []
    counts = [np.zeros(0, np.int64)]
    ends: list[float] = []
    for population, report in reports.items():
        where = f"{path}: spikes/{population}".rstrip("/")
        numbers, spikes = _counted(report, where)
        names += [f"{population}/{number}" if population else str(number) for number in numbers.tolist()]
        counts.append(spikes)
        ends += _ends_of(report["timestamps"], where) if spikes.sum() else []
    return names, np.concatenate(counts), (min(ends), max(ends)) if ends else None


def _counted(report: dict[str, Any], where: str) -> tuple[IntArray, IntArray]:
    """Return the nodes of a spike report, and how often each fired; none at all where the report is empty."""
    key = "gids" if "gids" in report and "node_ids" not in report else "node_ids"
    odd = (name for name in report if name not in (key, "timestamps"))
    name_unread("member", odd, where, f"{key} and timestamps")
    if all(
        getattr(report.get(name), "shape", ()) is None for name in (key, "timestamps")
    ):  # nothing was written
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    data, times = column(report, key), column(report, "timestamps", "iuf")
    if data is None or times is None:
        missing = f"whole numbers {key!r}" if data is None else "numbers 'timestamps'"
        raise InputError(f"the list of {missing} is missing", where, "SONATA spikes")
    if len(data) != len(times):
        raise InputError(f"{len(data)} {key} have {len(times)} timestamps", where, "a time for each")
    numbers, spikes = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for begin in range(0, len(data), BLOCK):
        fresh, often = np.unique(data[begin : begin + BLOCK].astype(np.int64), return_counts=True)
        both = np.concatenate([numbers, fresh])
        numbers, of = np.unique(both, return_inverse=True)
        spikes = np.bincount(of, np.concatenate([spikes, often])).astype(np.int64)
    return numbers, spikes


def _ends_of(times: Any, where: str) -> list[float]:
    """Return the seconds of the first and the last of these times, which may be in any order."""
    said = text(times.attrs.get("units", "ms"))
    if said not in UNITS:
        raise InputError(f"timestamps in {str(said)[:20]!r}", f"{where}/timestamps", ", ".join(UNITS))
    ends = []
    for begin in range(0, len(times), BLOCK):
        part = times[begin : begin + BLOCK]
        if not np.isfinite(part).all():
            raise InputError("a time is no number", f"{where}/timestamps", "times of spikes")
        ends += [float(part.min()) * UNITS[said], float(part.max()) * UNITS[said]]
    return [min(ends), max(ends)]


def _nwb(units: Any, path: Path) -> tuple[list[str], IntArray, FloatArray | None]:
    """Return names (``unit_name``, else ``id``), spikes, and the seconds of ``obs_intervals`` if there are any."""
    where = f"{path}: units"
    odd = (name for name in members(units, where) if name not in NWB)
    name_unread("column", odd, where, "columns of units that the core of NWB 2 has")
    ends, times = _ends(units, "spike_times", where), column(units, "spike_times", "iuf")
    spikes = np.diff(ends, prepend=0)
    named = column(units, "unit_name", "OSiu") if "unit_name" in units else column(units, "id", "OSiu")
    if named is None or named.shape != spikes.shape or times is None or (len(ends) and ends[-1] > len(times)):
        raise InputError("its columns have different lengths", where, "one row per unit")
    names = [text(v) or str(v) for v in named[:]]
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
    intervals = table[:].astype(np.float64)
    length = np.concatenate([[0.0], np.cumsum(np.diff(intervals, axis=1)[:, 0])])
    first = last - np.diff(last, prepend=0)
    outside, seconds = 0, times[:].astype(np.float64)
    for k in range(len(spikes)):
        mine, fired = intervals[first[k] : last[k]], seconds[ends[k] - spikes[k] : ends[k]]
        inside = (fired[:, None] >= mine[:, 0] - ROUNDING) & (fired[:, None] <= mine[:, 1] + ROUNDING)
        outside += int((~inside.any(axis=1)).sum())
    _warn_of_outside(outside, where, "times in obs_intervals")
    return names, spikes, length[last] - length[first]


def _warn_of_outside(spikes: int, where: str, expected: str) -> None:
    if spikes:
        doubtful(f"{spikes} of the spikes are outside of what was recorded, and count", where, expected)


def _ends(units: Any, name: str, where: str) -> IntArray:
    """Return (units,) where each unit's values end in a column."""
    index = column(units, f"{name}_index")
    if index is None or len(index) > MOST_TRAINS:
        raise InputError(f"the list of whole numbers '{name}_index' is missing", where, "units of NWB 2")
    ends: IntArray = index[:].astype(np.int64)
    if (np.diff(ends, prepend=0) < 0).any():
        raise InputError(f"{name}_index falls", where, "rising whole numbers")
    return ends


def _nix(blocks: Any, path: Path) -> tuple[list[str], IntArray, FloatArray]:
    """Return names, spikes and seconds of Neo's trains; trains of one name in several segments are added up."""
    total: dict[str, list[float]] = {}
    outside = 0
    for block in blocks.values():
        for tag in block.get("multi_tags", {}).values():
            if text(tag.attrs.get("type")) != "neo.spiketrain":
                continue
            said, times = tag["metadata/properties"], tag["positions"]
            begin, end = _seconds(said["t_start"], path), _seconds(said["t_stop"], path)
            train = total.setdefault(_name(said, tag), [0, 0.0])
            train[0] += times["data"].shape[0]
            train[1] += end - begin
            fired = times["data"][:] * _unit(times, path)
            outside += int(((fired < begin - ROUNDING) | (fired > end + ROUNDING)).sum())
    _warn_of_outside(outside, str(path), "times from t_start to t_stop")
    spikes = np.array([train[0] for train in total.values()], np.int64)
    return list(total), spikes, np.array([train[1] for train in total.values()], np.float64)


def _name(said: Any, tag: Any) -> str:
    """Return what a train is called: PyNN's population and index, else Neo's name, else that of NIX."""
    if "source_population" in said and "source_index" in said:
        return f"{text(said['source_population'][0])}/{int(said['source_index'][0])}"
    return text(said["neo_name"][0] if "neo_name" in said else tag.attrs["name"]) or ""


def _seconds(value: Any, path: Path) -> float:
    return float(value[0]) * _unit(value, path)


def _unit(value: Any, path: Path) -> float:
    """Return the seconds of the unit of a value of NIX."""
    unit = text(value.attrs.get("unit", "s"))
    if unit not in UNITS:
        raise InputError(f"a time in {str(unit)[:20]!r}", f"{path}: {value.name}", ", ".join(UNITS))
    return UNITS[unit]
