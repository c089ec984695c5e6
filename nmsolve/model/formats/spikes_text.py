"""Recorded spikes as text: one spike a line, columns by their names; two columns without names are ``id``, ``seconds``.

Read as written by bmtk (SONATA text: ``timestamps population node_ids``, in milliseconds), by NEST (``sender time_ms``; by
version 2 ``.gdf`` without names, in milliseconds), by SANA-FE (``neuron,timestep``) and by pandas.
"""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError, doubtful, listed, name_unread
from nmsolve.model.files import PACKED, text_pieces
from nmsolve.model.formats.delimited import Rows, first_lines, separator
from nmsolve.model.formats.recording import UNITS, Recording
from nmsolve.model.formats.text import decimal
from nmsolve.model.types import FloatArray, IntArray

#: Extensions; those of NEST have milliseconds where no name says the unit.
TEXT, NEST = (".csv", ".tsv", ".txt", ".dat", ".gdf"), (".dat", ".gdf")
#: Names of columns, in lower case, without separators and units.
NEURON = {
    "id", "ids", "neuron", "neurons", "neuronid", "neuronids", "neuronindex", "nid", "node", "nodes", "nodeid", "nodeids", "gid",
    "gids", "sender", "senders", "cell", "cells", "cellid", "cellids", "cellgid", "unit", "unitid", "sourceid", "sourceindex",
    "i", "spkid",
}  # fmt: skip
TIME = {"time", "times", "t", "timestamp", "timestamps", "spiketime", "spiketimes", "spkt"}
POPULATION = {"population", "populations", "pop", "popname", "populationname", "group"}
#: Steps of a chip: ``--recorded`` is a number of steps, too.
STEP = {"timestep", "timesteps", "step", "steps"}
#: Names of times in milliseconds where no unit is said: those of SONATA, NetPyNE and, beside a sender, NEST.
IN_MS, SENDER = {"timestamp", "timestamps", "spkt"}, {"sender", "senders"}
#: What a comment about units has.
UNIT_WORD = re.compile(r"\b(ms|msec|[uµμ]s|milli ?seconds?|micro ?seconds?|seconds?|units?)\b", re.IGNORECASE)
#: A name in a comment, perhaps with its unit in brackets.
NAME = re.compile(r'"[^"]*"|[^,;\t "]+(?: *[\[(][^\])]*[\])])?')
NAMES = "names of columns such as id,time or timestamps population node_ids"


class _Layout(NamedTuple):
    """Where columns are in rows of ``width``, and the seconds of a unit of time."""

    width: int
    neuron: int
    time: int
    population: int | None
    unit: float


def read(path: Path) -> Recording:
    """Read a recording; how long was recorded, text does not say.

    Raises
    ------
    InputError : no spikes; columns that are missing, unclear or of something else; a row of another length or a time that is no
        number, with its line; two columns without names of which the first has the times
    """
    lines, above = first_lines(next(text_pieces(path), b""), path, most=1)
    comments = [text.strip("#% ") for _, text in above]
    found, layout, names = _Spikes(str(path)), None, None
    rows = (
        Rows(path, separator([line.text for line in lines]), lines[0].begin, lines[0].number)
        if lines
        else None
    )
    for numbers, batch in rows.batches() if rows is not None else ():
        if layout is None:
            where = f"{path}:{numbers[0]}"
            names = _names(batch[0], comments, where)
            layout = _unnamed(batch[0], path, where) if names is None else _layout(names, where)
            _warn_of_units(comments, names, str(path))
            if names is batch[0]:
                del numbers[0], batch[0]
        found.add(layout, numbers, batch)
    if layout is None or not found.times:
        raise InputError("there are no spikes", str(path), f"a spike a line, after {NAMES}")
    of, at = np.frombuffer(found.neurons, np.int64), np.frombuffer(found.times)
    if names is None:
        _check_order(list(map(str, found.index)), of, at, str(path))
    _warn_of_doubles(of, at, str(path))
    called = tuple(key if isinstance(key, str) else "/".join(filter(None, key)) for key in found.index)
    span = (float(at.min()) * layout.unit, float(at.max()) * layout.unit)
    return Recording(path, called, np.bincount(of, minlength=len(called)), None, span)


@dataclass
class _Spikes:
    """Spikes in the order of the file: places of their neurons in ``index``, whose keys may be (population, neuron); times."""

    path: str
    index: dict[str | tuple[str, str], int] = field(default_factory=dict)
    neurons: array[int] = field(default_factory=lambda: array("q"))
    times: array[float] = field(default_factory=lambda: array("d"))

    def add(self, layout: _Layout, numbers: list[int], rows: list[list[str]]) -> None:
        """Add the spikes of rows; ``numbers`` are those of their lines."""
        for number, row in zip(numbers, rows, strict=True) if {*map(len, rows)} - {layout.width} else ():
            if len(row) != layout.width:
                what = f"{len(row)} columns, {' '.join(row)[:60]!r}"
                raise InputError(
                    what, f"{self.path}:{number}", f"{layout.width} as above: a neuron and a time"
                )
        texts = [row[layout.time] for row in rows]
        try:
            times = [] if "".join(texts).strip("0123456789+-.eE") else list(map(float, texts))
        except ValueError:
            times = []
        if len(times) < len(texts) or math.inf in times or -math.inf in times:
            bad = next(k for k, text in enumerate(texts) if decimal(text) in (None, math.inf, -math.inf))
            raise InputError(f"found {texts[bad][:40]!r}", f"{self.path}:{numbers[bad]}", "a time")
        self.times.extend(times)
        index, place = self.index, layout.neuron
        if layout.population is None:
            self.neurons.extend([index.setdefault(row[place], len(index)) for row in rows])
        else:
            group = layout.population
            self.neurons.extend([index.setdefault((row[group], row[place]), len(index)) for row in rows])


def _warn_of_units(comments: list[str], names: list[str] | None, where: str) -> None:
    """Name comments that may state a unit: only names of columns do."""
    for comment in comments:
        if UNIT_WORD.search(comment) and not (names and all(name in comment for name in names)):
            doubtful(
                f"the comment {comment[:60]!r} is not read",
                where,
                "a unit in the name of its column: time_ms",
            )


def _names(row: list[str], comments: list[str], where: str) -> list[str] | None:
    """Return the names of columns: the first row, if no field is a number, or the last comment that has them; else None."""
    if len(row) > 1 and not any(decimal(field) is not None for field in row):
        return row
    for comment in reversed(comments):
        words = [word.strip(' "') for word in NAME.findall(comment)]
        found = {_role(word)[0] for word in words}
        if {"neuron", "time"} <= found or {"neuron", "step"} <= found:
            if len(words) == len(row):
                return words
            doubtful(f"the comment {comment[:60]!r} has not the names of {len(row)} columns", where, NAMES)
            return None
    return None


def _role(name: str) -> tuple[str, float | None]:
    """Return what a column is, ``neuron``, ``time``, ``population``, ``step`` or "", and the seconds of the unit in its name."""
    words = re.findall(r"[^\W_]+", name.lower())
    joined = "".join(words)
    for role, known in (("neuron", NEURON), ("population", POPULATION), ("step", STEP)):
        if joined in known:
            return role, None
    unit = UNITS.get(words[-1]) if len(words) > 1 else None
    if unit is not None:
        words = words[: -2 if words[-2] == "in" else -1]
        joined = "".join(words)
    elif joined in IN_MS:
        unit = UNITS["ms"]
    return ("time" if joined in TIME else ""), unit


def _layout(names: list[str], where: str) -> _Layout:
    """Return where the columns of these names are.

    Raises
    ------
    InputError : no column of neurons or of times, two of either, or NEST's samples of potentials
    """
    roles = [_role(name) for name in names]
    places: dict[str, list[int]] = {"neuron": [], "time": [], "population": [], "step": []}
    odd = []
    for k, (name, (role, _)) in enumerate(zip(names, roles, strict=True)):
        if role:
            places[role].append(k)
        elif name or k:  # the index that pandas writes has no name
            odd.append(name)
    shown = ",".join(names)[:80]
    times = places["time"] or places["step"]
    for what, found in (("neuron", places["neuron"]), ("time", [*places["time"], *places["step"]])):
        if len(found) != 1:
            few = "no column is" if not found else f"{len(found)} columns are"
            raise InputError(f"{few} the {what}: {shown!r}", where, NAMES)
    if len(places["population"]) > 1:
        raise InputError(f"two columns are the population: {shown!r}", where, NAMES)
    neuron = places["neuron"][0]
    sender = names[neuron].lower() in SENDER
    if odd and sender:
        raise InputError(f"{listed('column', odd)} of no spike recorder", where, "sender and time_ms of NEST")
    name_unread("column", odd, where, NAMES)
    unit = roles[times[0]][1]
    if unit is None:
        unit = UNITS["ms"] if sender else 1.0
    population = places["population"][0] if places["population"] else None
    return _Layout(len(names), neuron, times[0], population, unit)


def _unnamed(row: list[str], path: Path, where: str) -> _Layout:
    """Return the layout of two columns without names: neuron and time."""
    if len(row) != 2:
        raise InputError(f"{len(row)} columns without names, {' '.join(row)[:60]!r}", where, NAMES)
    return _Layout(
        2, 0, 1, None, UNITS["ms"] if path.name.lower().removesuffix(PACKED).endswith(NEST) else 1.0
    )


def _check_order(names: list[str], of: IntArray, times: FloatArray, where: str) -> None:
    """Refuse columns without names of which the first has the times; warn if it may have them.

    Parameters
    ----------
    names : (trains,) values of the first column
    of : (spikes,) places in ``names``
    times : (spikes,) values of the second column
    """
    values = [decimal(name) for name in names]
    if any(value is None for value in values):
        return
    first = np.array(values, np.float64)
    expected = "a first line with names of columns, such as time,id"
    if (first % 1).any() or (first < 0).any():
        odd = names[int(np.flatnonzero((first % 1 != 0) | (first < 0))[0])]
        raise InputError(f"which column is the time? The first one has {odd[:40]!r}", where, expected)
    rises = (np.diff(first[of]) >= 0).all() and not (np.diff(times) >= 0).all()
    if rises and not (times % 1).any() and len(first) > len(np.unique(times)):
        doubtful("the first of two columns without names rises as times do: read as neurons", where, expected)


def _warn_of_doubles(of: IntArray, times: FloatArray, where: str) -> None:
    order = np.lexsort((times, of))
    doubles = int(((np.diff(of[order]) == 0) & (np.diff(times[order]) == 0)).sum())
    if doubles:
        what = f"{doubles} of {len(times)} spikes repeat another of the same neuron and time, and count"
        doubtful(what, where, "a neuron once at any time")
