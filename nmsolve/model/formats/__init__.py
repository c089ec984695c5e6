"""Graph files: one module per format, chosen by the file's extension. Other packages may add formats (:mod:`.foreign`).

Every format module has ``load(path) -> LogicGraph``, or of formats that hold large networks ``stream(path) -> Network`` (with
which :func:`convert` needs little memory), or both, where only some files can be streamed. With the names of options in
``OPTIONS`` they take a :class:`GraphReading`, too. Most have ``save(graph, path) -> None``. They raise :class:`InputError` only.
What a file says about its machine is kept in ``graph.meta`` (see :mod:`nmsolve.model.formats.implied`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from nmsolve.model import plugins
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import PACKED
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading, as_multicast, network_as_multicast
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.network import graph as graph_of

#: extension -> (module in this package, what it is)
FORMATS: dict[str, tuple[str, str]] = {
    ".json": ("json_graph", "node-link JSON as NetworkX writes it, or nmsolve's column form"),
    ".graph": ("metis", "METIS graph"),
    ".hgr": ("hmetis", "hMETIS hypergraph"),
    ".mtx": ("matrix_market", "Matrix Market coordinate or array"),
    ".dat": ("qaplib", "QAPLIB instance: traffic and distances"),
    ".npz": ("npz", "NumPy archive, written by nmsolve or compressed sparse rows"),
    ".nmz": ("nmz", "nmsolve's store: any size, any part of it without the rest"),
    ".snn": ("axon", "binary hypergraph of AxonFlow and AxonCUDA, one source each"),
    ".axh": ("axon", "binary hypergraph of AxonCUDA"),
    ".txt": ("edge_list", "edge list: source target [weight]"),
    ".edges": ("edge_list", "edge list"),
    ".csv": ("edge_list", "edge list, comma-separated"),
    ".tsv": ("edge_list", "edge list, tab-separated"),
}

#: The same for what is only read.
READ_ONLY: dict[str, tuple[str, str]] = {
    ".h5": ("sonata", "SONATA edges (needs the extra sonata)"),
    ".nir": ("nir_graph", "Neuromorphic Intermediate Representation (needs the extra nir)"),
    ".yaml": ("sanafe", "network of SANA-FE 2.x (needs the extra sanafe, but for flow style)"),
    ".yml": ("sanafe", "network of SANA-FE 2.x"),
    ".net": ("sanafe", "network of SANA-FE 1.x"),
}

#: Files of code; NetPyNE's among them.
PICKLED = (".pkl", ".pickle", ".dpk")
#: Formats that are binary; the others may be packed: ``.mtx.gz``.
BINARY = (".npz", ".nmz", ".snn", ".axh", ".h5", ".nir")
#: Extensions that no other package may take.
OWN = (*FORMATS, *READ_ONLY, PACKED, ".onnx")


class Rates(NamedTuple):
    """Recordings of spikes, milliseconds of a step, and the seconds that were recorded if the files do not say."""

    recordings: tuple[Path, ...]
    step: float = 1000.0
    seconds: float | None = None


@plain_arguments
def load_graph(
    path: str | Path,
    nodes: str | Path | None = None,
    multicast: bool = False,
    *,
    pattern: bool = False,
    absolute: bool = False,
) -> LogicGraph:
    """Read a graph; the format is chosen by the extension.

    Parameters
    ----------
    nodes : node table beside an edge list (:mod:`.node_table`)
    multicast : every node sends one message per step to all its targets, which an edge list cannot say
        (:func:`nmsolve.model.formats.reading.as_multicast`)
    pattern, absolute : of a matrix (``.mtx``, ``.npz`` of SciPy), as for negative or complex entries: every stored entry
        weighs 1, or its absolute value

    Raises
    ------
    InputError : unknown extension, anything wrong with the files (with line or JSON path), or an option without a use for them
    """
    return read_graph(path, GraphReading(pattern, absolute, None if nodes is None else str(nodes), multicast))


def read_graph(path: str | Path, reading: GraphReading = AS_IT_IS) -> LogicGraph:
    """Read a graph as ``reading`` says; else as :func:`load_graph`."""
    module = _module(path)
    given = _obeyed(module, path, reading)
    whole = getattr(module, "load", None) or (lambda *asked: graph_of(module.stream(*asked)))
    graph: LogicGraph = whole(Path(path), *given)
    if Path(path).suffix.lower() == PACKED and graph.name == Path(path).stem:
        graph = replace(graph, name=Path(graph.name).stem)
    return as_multicast(graph) if reading.multicast else graph


def _obeyed(module: Any, path: str | Path, reading: GraphReading) -> tuple[GraphReading, ...]:
    """Return the options that the format takes beside the path. InputError for one that it has no use for."""
    options: tuple[str, ...] = getattr(module, "OPTIONS", ())
    reading.require((*options, "multicast"), Path(path))
    return (reading,) if options else ()


@plain_arguments
def save_graph(graph: LogicGraph, path: str | Path) -> None:
    """Write a graph; the format is chosen by the extension. An existing file survives any failure.

    Raises
    ------
    InputError : unknown extension, a graph the format cannot express, or a file that cannot be written
    """
    write = writer(path)
    say_lost(graph, path)
    write(graph, Path(path))


#: What formats cannot say of nodes, by module.
LACKS = {
    "edge_list": ("sizes", "kinds", "multicast"), "matrix_market": ("names", "sizes", "kinds", "multicast"),
    "qaplib": ("names", "sizes", "kinds", "multicast"), "metis": ("names", "kinds", "multicast"),
    "hmetis": ("names", "kinds"), "axon": ("names", "sizes", "kinds"),
}  # fmt: skip
#: Formats that have one message per node, by module.
NO_NETS = ("edge_list", "matrix_market", "metis")


def say_lost(graph: LogicGraph, path: str | Path) -> None:
    """Warn of what a graph says of its nodes and the format of ``path`` cannot.

    Raises
    ------
    InputError : unknown extension
    """
    lacks = LACKS.get(_name(path))
    if lacks is None:
        return
    has = {
        "names": any(isinstance(i, str) for i in graph.ids or ()),
        "sizes": len(graph.resources) > 1 or bool((graph.sizes != 1).any()),
        "kinds": graph.kinds is not None,
        "multicast": bool(graph.multicast.any()),
    }
    lost = [what for what in lacks if has[what]]
    if lost:
        what = f"{', '.join(lost)} of nodes are not written"
        doubtful(what, str(path), "a format that has them, such as .json")


def writer(path: str | Path) -> Callable[[LogicGraph, Path], None]:
    """Return what writes the format of this name, to be asked for before much is done for the file.

    Raises
    ------
    InputError : unknown extension, or a format that is only read
    """
    save: Callable[[LogicGraph, Path], None] | None = getattr(_module(path), "save", None)
    if save is None:
        raise InputError("this format can be read but not written", str(path), "one of " + ", ".join(FORMATS))
    return partial(_without_nets, save) if _name(path) in NO_NETS else save


def _without_nets(save: Callable[[LogicGraph, Path], None], graph: LogicGraph, path: Path) -> None:
    if not graph.one_row_per_node:
        raise InputError("the graph has nets", str(path), "a graph without nets, or an .hgr file")
    save(graph, path)


def convert(
    source: str | Path,
    target: str | Path,
    workers: int = 1,
    rates: Rates | None = None,
    reading: GraphReading = AS_IT_IS,
) -> tuple[int, int]:
    """Read one format, write another, with measured ``rates`` if given; returns nodes and connections.

    Into ``.nmz``, formats that can are streamed: only the columns of their nodes are held in memory.

    Raises
    ------
    InputError : as :func:`load_graph` and :func:`save_graph`
    """
    from nmsolve.model.formats.spikes import network_with_rates, with_rates
    from nmsolve.model.network import store

    module, into, write = _module(source), _module(target), writer(target)
    network = None
    if into is not module and Path(target).suffix.lower() == ".nmz" and hasattr(module, "stream"):
        given = _obeyed(module, source, reading)
        network = module.stream(Path(source), *given)
        network = network_as_multicast(network) if network is not None and reading.multicast else network
    if network is not None and rates is not None:
        network = network_with_rates(network, rates.recordings, rates.step, rates.seconds)
    if network is not None:
        return network.n, store(network, Path(target), workers)
    whole = bool(rates or reading.options()) or into is not module or not hasattr(module, "open_graph")
    graph = read_graph(source, reading) if whole else module.open_graph(Path(source))
    if rates is not None:
        graph = with_rates(graph, rates.recordings, step=rates.step, seconds=rates.seconds)
    say_lost(graph, target)
    write(graph, Path(target))
    return graph.n, graph.m


def load_instance(path: str | Path) -> tuple[LogicGraph, Machine | None]:
    """Read a graph and the machine its file implies, or None if it implies none.

    A QAPLIB file always implies one (the mesh, or the distance matrix); a JSON file does by ``graph.mesh``.
    """
    from nmsolve.model.formats.implied import implied_machine

    graph = load_graph(path)
    return graph, implied_machine(graph, str(path))


def extensions() -> list[str]:
    """Return the extensions of graph files in memory: ours that are also written, then those of other packages."""
    return [*FORMATS, *_of_others()]


def _of_others() -> list[str]:
    offered = dict.fromkeys(f".{one.name.lower()}" for one in plugins.offered(plugins.FORMATS))
    return [extension for extension in offered if extension not in OWN]


def _name(path: str | Path) -> str:
    """Return the name of the module of a format of ours, else nothing. InputError as :func:`_module`."""
    return str(getattr(_module(path), "__name__", "")).rpartition(".")[2]


def _module(path: str | Path) -> Any:
    """Return the module of a format, or what stands for one of another package.

    Raises
    ------
    InputError : unknown extension, one that two packages offer, or one of ours that a package offers
    """
    known = FORMATS | READ_ONLY
    extension = Path(path).suffix.lower()
    inner = Path(Path(path).stem).suffix.lower()
    if extension == PACKED and inner in known and inner not in BINARY:
        extension = inner
    entry = plugins.entry_of(plugins.FORMATS, extension[1:], [e[1:] for e in OWN])
    if extension in known:
        return importlib.import_module(f"nmsolve.model.formats.{known[extension][0]}")
    if entry is not None:
        from nmsolve.model.formats.foreign import Foreign

        return Foreign(entry)
    if extension in PICKLED:
        raise InputError("pickles are never opened", str(path), "JSON (NetPyNE: simConfig.saveJson = True)")
    if extension == ".onnx":
        wanted = "a graph of neurons; `nmsolve assign` and `nmsolve pipeline` take ONNX models"
        raise InputError("an ONNX model has operators, not neurons", str(path), wanted)
    import difflib

    every = [*known, *_of_others()]
    close = difflib.get_close_matches(extension, every, n=1, cutoff=0.4)
    hint = f" (did you mean {close[0]}?)" if close else ""
    what = f"unknown extension {extension!r}{hint}" if extension else "the file name has no extension"
    raise InputError(what, str(path), "one of " + ", ".join(every))
