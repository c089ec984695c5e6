"""Networks made from a few numbers and a seed: the same arguments always give the same graph.

``generate("microcircuit", scale=0.05)`` is how the command line and the benchmarks make one, and
:func:`generate_file` writes one that may be larger than memory. :data:`GENERATORS` says which kinds there are and what
their parameters mean.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmsolve.model.errors import InputError
from nmsolve.model.generators.steps import SECOND
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Network, graph, store


@dataclass(frozen=True)
class Parameter:
    """One parameter of a generator: its default also says its type (int, float); ``least`` is the smallest value."""

    name: str
    default: int | float
    text: str
    least: float
    most: float = float("inf")


@dataclass(frozen=True)
class Generator:
    """A kind of network: ``module.function(**parameters)`` makes one."""

    text: str
    module: str
    function: str
    parameters: tuple[Parameter, ...]

    def load(self) -> Callable[..., LogicGraph | Network]:
        """Return the function itself (its module is imported now)."""
        module = importlib.import_module(f"nmsolve.model.generators.{self.module}")
        function: Callable[..., LogicGraph | Network] = getattr(module, self.function)
        return function


@dataclass(frozen=True)
class FileGenerator:
    """What makes problems of a kind that are no graphs: ``write(path, options)`` writes files, and returns lines about them."""

    text: str
    parameters: tuple[Parameter, ...]
    write: Callable[[Path, Mapping[str, str]], list[str]]


_SEED = Parameter("seed", 1, "seed of the random numbers", 0)
_STEP = Parameter("step", SECOND, "milliseconds of a step: rates are spikes per step", 1e-3, 10**6)


def _mesh(text: str, function: str, nodes: int) -> Generator:
    return Generator(
        text,
        "mesh",
        function,
        (
            Parameter("nodes", nodes, "number of nodes", 2, 10**6),
            Parameter(
                "side", 0, "rows and columns of the mesh; 0: the smallest that holds all nodes", 0, 2048
            ),
            _SEED,
        ),
    )


GENERATORS: dict[str, Generator] = {
    "microcircuit": Generator(
        "cortical microcircuit of Potjans and Diesmann (2014), from the published table",
        "microcircuit",
        "microcircuit",
        (
            Parameter("scale", 0.05, "fraction of the 77,169 neurons", 1e-3, 1.0),
            _SEED,
            Parameter("kinds", 0, "1: every population is a kind of nodes; 0: no kinds", 0, 1),
            _STEP,
        ),
    ),
    "layered": Generator(
        "layered network of 2^k clusters of neurons, after the synthetic family of Jin et al. (ASPLOS 2023)",
        "layered",
        "layered",
        (
            Parameter("exponent", 12, "k: there are 2^k clusters", 2, 24),
            Parameter("layers", 8, "number of layers (at most 2^k)", 2, 2**20),
            Parameter("fan", 16, "clusters of the next layer that each cluster sends to", 1, 2**20),
            Parameter("neurons", 4096, "neurons per cluster", 1, 2**20),
            Parameter("synapses", 256, "inputs per neuron", 1, 2**20),
            _SEED,
        ),
    ),
    "reservoir": Generator(
        "spatial reservoir: local random fan-out in the unit square, a few long-range synapses",
        "reservoir",
        "reservoir",
        (
            Parameter("nodes", 16384, "number of neurons", 2, 2**24),
            Parameter("fan", 100.0, "mean fan-out (Poisson)", 0.0, 10**5),
            Parameter("sigma", 0.05, "standard deviation of a local synapse's length", 0.0, 10.0),
            Parameter("far", 0.05, "fraction of synapses that go anywhere", 0.0, 1.0),
            _SEED,
            _STEP,
        ),
    ),
    "snn": Generator(
        "traffic of a layered spiking network (the snn20k, snn100k and, with sigma 0.02, snn1m instances)",
        "spiking",
        "snn",
        (
            Parameter("nodes", 20000, "number of neurons, rounded to square layers", 4, 10**8),
            Parameter("synapses", 600000, "number of synapses", 1, 10**9),
            Parameter("layers", 8, "number of layers", 1, 10**4),
            Parameter(
                "sigma", 0.06, "standard deviation of where a synapse lands, in sides of a layer", 0.0, 10.0
            ),
            Parameter("directed", 0, "1: directed, every neuron multicasts; 0: undirected traffic", 0, 1),
            _SEED,
        ),
    ),
    "mesh-geo": _mesh("points in the plane: nearest neighbours and a few far ones", "geometric", 1000),
    "mesh-layered": _mesh("ten layers with local feed-forward edges", "feed_forward", 1000),
    "mesh-rnd": _mesh("eight random targets per node", "random_targets", 1000),
    "mesh-comm": _mesh("communities of eight with feed-forward links", "communities", 256),
}


def generate(kind: str, **options: int | float | str) -> LogicGraph:
    """Make a network in memory.

    Parameters
    ----------
    kind : a key of :data:`GENERATORS`
    options : its parameters; text is converted, as the command line needs it; the rest keep their defaults

    Raises
    ------
    InputError : unknown kind or parameter, a value of the wrong type or out of its range
    """
    made = _make(kind, options)
    return graph(made) if isinstance(made, Network) else made


def generate_file(
    kind: str, path: Path, workers: int = 1, **options: int | float | str
) -> tuple[str, int, int]:
    """Make a network and write it to a graph file; returns its name, nodes and connections.

    Large networks (``microcircuit``, ``layered``, ``reservoir``, ``snn``) are written to an ``.nmz`` file block by block and
    never held in memory; it holds the graph that :func:`generate` gives. ``workers`` threads compress.

    Raises
    ------
    InputError : as :func:`generate`, or a file that cannot be written
    """
    from nmsolve.model.formats import writer

    write = writer(path)
    made = _make(kind, options)
    if isinstance(made, Network):
        if path.suffix.lower() == ".nmz":
            return made.name, made.n, store(made, path, workers)
        made = graph(made)
    write(made, path)
    return made.name, made.n, made.m


def _make(kind: str, options: dict[str, int | float | str]) -> LogicGraph | Network:
    """Return the network of the generator ``kind``, its parameters checked."""
    _require("unknown kind", kind, list(GENERATORS))
    generator = GENERATORS[kind]
    return generator.load()(**checked_values(kind, generator.parameters, options))


def checked_values(
    kind: str, parameters: Sequence[Parameter], options: Mapping[str, int | float | str]
) -> dict[str, int | float]:
    """Return the values of all parameters of a kind: those given, converted and checked, and defaults.

    Raises
    ------
    InputError : an unknown parameter, a value of the wrong type or out of its range
    """
    known = {p.name: p for p in parameters}
    for name in options:
        _require(f"{kind} has no parameter", name, list(known))
    return {name: _value(kind, p, options.get(name, p.default)) for name, p in known.items()}


def _value(kind: str, parameter: Parameter, given: int | float | str) -> int | float:
    number = type(parameter.default)
    wanted = ("a whole number" if number is int else "a number") + f" >= {parameter.least:g}"
    if parameter.most < float("inf"):
        wanted = wanted.replace(">=", "from") + f" to {parameter.most:g}"
    try:
        value = number(given)
    except (ValueError, OverflowError):
        value = None
    fits = value is not None and parameter.least <= value <= parameter.most
    if value is None or not fits or (not isinstance(given, str) and value != given):
        raise InputError(f"{kind}: {parameter.name} is {given}", "", wanted)
    return value


def _require(what: str, word: str, known: list[str]) -> None:
    """Refuse a word that is not known, with the nearest that is."""
    if word not in known:
        close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise InputError(f"{what} {word!r}{hint}", "", "one of " + ", ".join(known))
