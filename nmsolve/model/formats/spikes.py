"""Recorded spikes as the rates of a graph: text (:mod:`.spikes_text`), and HDF5 of three kinds (:mod:`.spikes_hdf5`).

A recording says which neuron fired how often in how many seconds; of a graph it needs only the ids of the nodes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import SHOWN, InputError, doubtful, shortened
from nmsolve.model.files import extension
from nmsolve.model.formats import spikes_text
from nmsolve.model.formats.recording import Recording
from nmsolve.model.formats.text import decimal
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Connections, Network
from nmsolve.model.types import FloatArray, IntArray

#: HDF5 files, and what NetPyNE saves.
HDF5, NETPYNE = (".h5", ".hdf5", ".nwb", ".nix"), ".json"
#: Milliseconds of a second, and of a step if nothing else is said.
SECOND = 1000.0
#: Units are doubted if the last spike is in less than this part of the recorded time.
EARLY = 0.002


@plain_arguments
def with_rates(
    graph: LogicGraph,
    recording: str | Path | Sequence[str | Path],
    *,
    step: float = SECOND,
    seconds: float | None = None,
) -> LogicGraph:
    """Return the graph with the rates that were measured.

    Every message of a node has its spikes per step as its rate, and as the weight of each of its connections, whatever their
    weights were. Nodes that no recording has never fire, with a warning that says how many they are.

    Parameters
    ----------
    recording : text with names of columns or (id, seconds), SONATA spikes, NWB units, NIX of Neo (``.h5``, ``.nwb``, ``.nix``),
        NetPyNE's ``.json``; or several of different neurons
    step : milliseconds
    seconds : how long was recorded, if the file does not say

    Raises
    ------
    InputError : not such a file; neurons that are no nodes, or in two recordings; spikes over a longer time than was recorded;
        a node with several messages; an undirected graph; no time
    """
    files = [recording] if isinstance(recording, str | Path) else recording
    if not isinstance(files, Sequence) or not all(isinstance(one, str | Path) for one in files):
        raise InputError(f"the recording is {shortened(repr(recording))}", "with_rates", "a file, or several")
    if graph.on_disk:
        raise InputError("a graph on disk gets no rates", graph.name, "a graph in memory")
    if not graph.directed or len(np.unique(graph.source)) < graph.rows:
        raise InputError("who fires is not clear", graph.name, "a directed graph with one message per node")
    rate = node_rates(graph.ids, graph.n, [read_spikes(Path(one)) for one in files], step, seconds)[
        graph.source
    ]
    return dataclasses.replace(graph, rate=rate, weights=np.repeat(rate, np.diff(graph.indptr)))


def network_with_rates(
    network: Network, recordings: Sequence[Path], step: float, seconds: float | None
) -> Network:
    """Return the network with rates as :func:`with_rates` gives them, still in blocks.

    Raises
    ------
    InputError : as :func:`with_rates`
    """
    if not network.directed or (network.messages is not None and network.messages.max(initial=0) > 1):
        raise InputError("who fires is not clear", network.name, "a directed graph with one message per node")
    rate = node_rates(network.ids, network.n, list(map(read_spikes, recordings)), step, seconds)
    if network.messages is not None:
        rate = np.repeat(rate, network.messages)
    blocks = _weighted(network.blocks, rate)
    return dataclasses.replace(network, rate=rate, blocks=blocks, unit=None)


def _weighted(blocks: Iterator[Connections], rate: FloatArray) -> Iterator[Connections]:
    row = 0
    for block in blocks:
        rows = len(block.indptr) - 1
        yield block._replace(weight=np.repeat(rate[row : row + rows], np.diff(block.indptr)))
        row += rows


def read_spikes(path: Path) -> Recording:
    """Return what was recorded; the extension says how.

    Raises
    ------
    InputError : unknown extension, no such file, damaged, no spikes in it
    """
    kind = extension(path)
    if kind in spikes_text.TEXT:
        return spikes_text.read(path)
    if path.suffix.lower() in HDF5:
        from nmsolve.model.formats.spikes_hdf5 import read

        return read(path)
    if kind == NETPYNE:
        from nmsolve.model.formats.netpyne import recording

        return recording(path)
    raise InputError(
        f"unknown extension {path.suffix!r} of a recording",
        str(path),
        "one of " + ", ".join((*spikes_text.TEXT, *HDF5, NETPYNE)),
    )


def node_rates(
    ids: Sequence[str | int] | None,
    n: int,
    recordings: Sequence[Recording],
    step: float,
    seconds: float | None,
) -> FloatArray:
    """Return (n,) spikes per step of ``step`` milliseconds.

    Raises
    ------
    InputError : neurons that are no nodes, or there twice; no time, one that is not > 0, or spikes over a longer time
    """
    where = ", ".join(str(recording.path) for recording in recordings[:SHOWN])
    for value, what in ((step, "step"), (seconds, "time of recording")):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InputError(f"the {what} is {value:g}", where, "a number > 0")
    index = {str(v): i for i, v in enumerate(range(n) if ids is None else ids)}
    if len(index) < n:
        raise InputError("nodes differ only as text and number", where, "ids that differ as text")
    rate, heard = np.zeros(n), np.zeros(n, bool)
    for recording in recordings:
        at = _places(index, recording)
        again = at[heard[at]] if len(np.unique(at)) == len(at) else at[:0]
        if len(again) or len(np.unique(at)) < len(at):
            twice = again[0] if len(again) else at[np.argmax(np.bincount(at)[at])]
            what = f"two trains are of node {list(index)[twice]!r}"
            raise InputError(what, str(recording.path), "every neuron once, in one recording")
        heard[at] = True
        rate[at] = recording.spikes / _recorded(recording, seconds) * (step / SECOND)
    silent = n - int(heard.sum())
    if silent:
        doubtful(f"nodes that are not in it count as silent: {silent} of {n}", where, "every node")
    return rate


def _recorded(recording: Recording, seconds: float | None) -> FloatArray:
    """Return (trains,) the seconds that were recorded: those given, else those of the file; no spike may be outside."""
    where, stated = str(recording.path), recording.seconds
    if seconds is None and stated is None:
        raise InputError(
            "the file does not say how long was recorded", where, "the seconds (--recorded of convert)"
        )
    if stated is not None and not (np.isfinite(stated) & (stated > 0)).all():
        raise InputError(f"{stated.min():g} seconds were recorded", where, "a time > 0")
    if seconds is None:
        assert stated is not None
        return stated
    if stated is not None and len(stated) and not np.allclose(stated, seconds, rtol=1e-6):
        doubtful(f"{stated[0]:g} s are in the file, {seconds:g} s count", where, "one time of recording")
    if recording.span is not None:
        _check_span(*recording.span, seconds, where)
    return np.full(len(recording.spikes), float(seconds))


def _check_span(first: float, last: float, seconds: float, where: str) -> None:
    """Refuse spikes over a longer time than was recorded; warn of those before its beginning, after its end, or all near it."""
    room = seconds * (1 + 1e-9)
    within = f"times of {seconds:g} s (a column time_ms has milliseconds, time_s seconds)"
    if last - first > room:
        raise InputError(
            f"spikes from {first:g} s to {last:g} s, but {seconds:g} s were recorded", where, within
        )
    if first < 0 or last > room:
        what = f"spikes from {first:g} s to {last:g} s: the {seconds:g} s of the recording do not begin at 0"
        doubtful(what, where, within)
    elif last < EARLY * seconds:
        doubtful(f"the last spike is at {last:g} s, but {seconds:g} s were recorded", where, within)


def _places(index: dict[str, int], recording: Recording) -> IntArray:
    """Return (trains,) the node of every train; numbers of a single population also fit nodes without one."""
    names = recording.names
    for spelled in (_slashed, _whole):
        if not any(name in index for name in names):
            other = tuple(map(spelled, names))
            names = other if any(name in index for name in other) else names
    if len({name.rpartition("/")[0] for name in names}) == 1:
        short = tuple(name.rpartition("/")[2] for name in names)
        names = short if all(name in index for name in short) else names
    strange = [name for name in names if name not in index]
    if strange:
        shown = ", ".join(repr(name[:60]) for name in strange[:SHOWN])
        more = f" and {len(strange) - SHOWN} more" if len(strange) > SHOWN else ""
        example = next(iter(index))
        raise InputError(
            f"no node is called {shown}{more}",
            str(recording.path),
            f"a recording of this network, as {example!r}",
        )
    return np.array([index[name] for name in names], np.int64)


def _slashed(name: str) -> str:
    """Return SANA-FE's ``group.number`` as ``group/number``."""
    return "/".join(name.rsplit(".", 1))


def _whole(name: str) -> str:
    """Return a whole number that is written as NumPy and pandas write floats (``3.0``, ``3.000e+00``) without its point."""
    value = decimal(name)
    return str(int(value)) if value is not None and value.is_integer() else name
