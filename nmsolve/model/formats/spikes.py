"""Recorded spikes as the rates of a graph: text (``id,time``), and HDF5 of three kinds (:mod:`.spikes_hdf5`).

A recording says which neuron fired how often in how many seconds; of a graph it needs only the ids of the nodes.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import input_file
from nmsolve.model.formats.recording import Recording
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Connections, Network
from nmsolve.model.types import FloatArray, IntArray

#: What text files may be called, HDF5 files, and what NetPyNE saves.
TEXT, HDF5, NETPYNE = (".csv", ".tsv", ".txt"), (".h5", ".hdf5", ".nwb", ".nix"), ".json"
#: Milliseconds of a second, and of a step if nothing else is said.
SECOND = 1000.0
#: Most bytes of a line of text, and most names of neurons in a message.
LONGEST_LINE, SHOWN = 10_000, 3
#: A time in text.
NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def with_rates(
    graph: LogicGraph, recording: str | Path, *, step: float = SECOND, seconds: float | None = None
) -> LogicGraph:
    """Return the graph with the rates that were measured.

    Every message of a node has its spikes per step as its rate, and as the weight of each of its connections, whatever their
    weights were. Nodes that the recording does not have never fire, with a warning that says how many they are.

    Parameters
    ----------
    recording : ``.csv`` (id, seconds), SONATA spikes, NWB units, NIX of Neo (``.h5``, ``.nwb``, ``.nix``), NetPyNE's ``.json``
    step : milliseconds
    seconds : how long was recorded, if the file does not say

    Raises
    ------
    InputError : not such a file; neurons that are no nodes; a node with several messages; an undirected graph; no time
    """
    if graph.on_disk:
        raise InputError("a graph on disk gets no rates", graph.name, "a graph in memory")
    if not graph.directed or len(np.unique(graph.source)) < graph.rows:
        raise InputError("who fires is not clear", graph.name, "a directed graph with one message per node")
    rate = node_rates(graph.ids, graph.n, read_spikes(Path(recording)), step, seconds)[graph.source]
    return dataclasses.replace(graph, rate=rate, weights=np.repeat(rate, np.diff(graph.indptr)))


def network_with_rates(network: Network, recording: Path, step: float, seconds: float | None) -> Network:
    """Return the network with rates as :func:`with_rates` gives them, still in blocks.

    Raises
    ------
    InputError : as :func:`with_rates`
    """
    if not network.directed or (network.messages is not None and network.messages.max(initial=0) > 1):
        raise InputError("who fires is not clear", network.name, "a directed graph with one message per node")
    rate = node_rates(network.ids, network.n, read_spikes(recording), step, seconds)
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
    if path.suffix.lower() in TEXT:
        return _of_text(path)
    if path.suffix.lower() in HDF5:
        from nmsolve.model.formats.spikes_hdf5 import read

        return read(path)
    if path.suffix.lower() == NETPYNE:
        from nmsolve.model.formats.netpyne import recording

        return recording(path)
    raise InputError(
        f"unknown extension {path.suffix!r} of a recording",
        str(path),
        "one of " + ", ".join((*TEXT, *HDF5, NETPYNE)),
    )


def node_rates(
    ids: Sequence[str | int] | None, n: int, recording: Recording, step: float, seconds: float | None
) -> FloatArray:
    """Return (n,) spikes per step of ``step`` milliseconds.

    Raises
    ------
    InputError : neurons that are no nodes, no time or one that is not > 0
    """
    where = str(recording.path)
    for value, what in ((step, "step"), (seconds, "time of recording")):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InputError(f"the {what} is {value:g}", where, "a number > 0")
    at = _places(ids, n, recording)
    if seconds is not None:
        time = np.full(len(at), float(seconds))
    elif recording.seconds is not None:
        time = recording.seconds
    else:
        raise InputError(
            "the file does not say how long was recorded", where, "the seconds (--recorded of convert)"
        )
    if not (np.isfinite(time) & (time > 0)).all():
        raise InputError(f"{time.min():g} seconds were recorded", where, "a time > 0")
    silent = n - len(at)
    if silent:
        doubtful(f"{silent} of {n} nodes are not in it and taken as silent", where, "every node")
    rate = np.zeros(n)
    rate[at] = recording.spikes / time * (step / SECOND)
    return rate


def _places(ids: Sequence[str | int] | None, n: int, recording: Recording) -> IntArray:
    """Return (trains,) the node of every train; numbers of a single population also fit nodes without one."""
    index = {str(v): i for i, v in enumerate(range(n) if ids is None else ids)}
    if len(index) < n:
        raise InputError(
            "nodes differ only as text and number", str(recording.path), "ids that differ as text"
        )
    names = recording.names
    if not any(name in index for name in names):  # SANA-FE's group.number
        other = tuple("/".join(name.rsplit(".", 1)) for name in names)
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


def _of_text(path: Path) -> Recording:
    """Read lines ``id,time``, perhaps after a line of names; the time in seconds is checked and not used."""
    spikes: Counter[str] = Counter()
    with input_file(path) as file:
        separator = ""
        for number, line in enumerate(_lines(file, path), 1):
            if not line.strip() or line.startswith(("#", "%")):
                continue
            separator = separator or next((c for c in ",;\t" if c in line), " ")
            name, _, time = line.partition(separator)
            name, time = name.strip().strip('"'), time.strip().split(separator)[0]
            if not NUMBER.fullmatch(time):
                if not spikes and time and number == 1 and not time[0].isdigit():
                    continue  # names of columns
                raise InputError(
                    f"found {line.strip()[:40]!r}", f"{path}:{number}", "an id and a time in seconds"
                )
            spikes[name] += 1
    if not spikes:
        raise InputError("there are no spikes", str(path), "lines of id,time")
    return Recording(path, tuple(spikes), np.array(list(spikes.values()), np.int64), None)


def _lines(file: BinaryIO, path: Path) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise InputError("a line does not end", str(path), f"lines below {LONGEST_LINE} bytes")
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise InputError("not UTF-8 text", str(path), "lines of id,time") from None
