"""Which instances a benchmark runs on: shipped files, generated networks, or a folder of graph files."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.model.errors import InputError
from nmsolve.model.formats.text import decimal

if TYPE_CHECKING:
    from nmsolve.model.mapping.problem import MappingProblem

#: Seed of all generated instances.
INSTANCE_SEED = 1
BEST_KNOWN = "best_known.csv"


@dataclass(frozen=True)
class Network:
    """A generated instance: its kind with parameters, and what it is mapped onto (None: what the kind implies)."""

    kind: str
    parameters: tuple[tuple[str, str], ...]
    machine: str | None = None
    balance: float | None = None
    objective: str = "hops"


def _network(
    kind: str, machine: str | None, balance: float | None, objective: str, **parameters: int | float
) -> Network:
    return Network(kind, tuple((k, str(v)) for k, v in parameters.items()), machine, balance, objective)


#: Loihi 1 with unlimited axon tables.
ANY_AXONS = str(Path(__file__).parent / "instances" / "loihi1_any_axons.toml")
#: One node per core on square meshes: the published way to place networks that are already split.
MESH = {
    "comm-64": _network("mesh-comm", None, None, "hops", nodes=64),
    "geo-100": _network("mesh-geo", None, None, "hops", nodes=100),
    "layered-100": _network("mesh-layered", None, None, "hops", nodes=100),
    "rnd-100": _network("mesh-rnd", None, None, "hops", nodes=100),
    "comm-256": _network("mesh-comm", None, None, "hops", nodes=256),
    "geo-1000": _network("mesh-geo", None, None, "hops", nodes=1000, side=32),
    "layered-1000": _network("mesh-layered", None, None, "hops", nodes=1000, side=32),
    "rnd-1000": _network("mesh-rnd", None, None, "hops", nodes=1000, side=32),
    "comm-1024": _network("mesh-comm", None, None, "hops", nodes=1024, side=32),
}
#: Spiking networks with many neurons per core: the whole problem, hops, multicast and cut.
SNN = {
    "snn-2k-hops": _network("snn", "mesh:4x4", 0.03, "hops", nodes=2000, synapses=60000, layers=8),
    "snn-2k-multicast": _network(
        "snn", "mesh:4x4", 0.03, "multicast-hops", nodes=2000, synapses=60000, layers=8, directed=1
    ),
    "snn-2k-cut": _network("snn", "mesh:4x4", 0.03, "cut", nodes=2000, synapses=60000, layers=8),
    "reservoir-4k-hops": _network("reservoir", "mesh:8x8", 0.03, "hops", nodes=4096, fan=20),
    "microcircuit-hops": _network("microcircuit", ANY_AXONS, None, "hops", scale=0.05),
    "microcircuit-multicast": _network("microcircuit", ANY_AXONS, None, "multicast-hops", scale=0.05),
    "snn-20k-hops": _network("snn", "mesh:8x8", 0.03, "hops", nodes=20000, synapses=600000, layers=8),
}
ABOUT = {
    "qaplib": "twelve instances of QAPLIB, shipped with the package",
    "mesh": "generated, one node per core of a square mesh",
    "snn": "generated spiking networks, many neurons per core",
}


@dataclass(frozen=True)
class Instance:
    """One problem of a suite, loaded.

    Attributes
    ----------
    path : graph file that the runs read; for generated instances where :func:`load_suite` wrote it
    machine, chips, balance, objective : as the command line takes them
    best_known : objective that is known to be possible, or None
    """

    suite: str
    name: str
    path: Path
    machine: str | None
    chips: str | None
    balance: float | None
    objective: str
    best_known: float | None
    problem: MappingProblem


@dataclass(frozen=True)
class Statement:
    """How the graphs of a folder are to be mapped; a built-in suite states that itself."""

    machine: str | None = None
    chips: str | None = None
    balance: float | None = None
    objective: str | None = None


def load_suite(suite: str, only: str | None, statement: Statement, keep: Path) -> list[Instance]:
    """Load (or generate) and check every instance of a suite.

    Parameters
    ----------
    suite : a name in :data:`ABOUT`, or a folder
    only : pattern such as ``sko*`` for instance names, several separated by commas; None for all
    keep : folder for generated graph files

    Raises
    ------
    InputError : unknown suite, nothing left to run, a wrong file, a problem that cannot be stated
    """
    if suite in ("mesh", "snn"):
        _nothing_stated(suite, statement)
        networks = MESH if suite == "mesh" else SNN
        return [
            _generated(suite, name, networks[name], keep) for name in _chosen(list(networks), only, suite)
        ]
    if suite == "qaplib":
        _nothing_stated(suite, statement)
        with resources.as_file(resources.files("nmsolve.cli.bench") / "instances") as folder:
            return _folder(suite, folder, only, statement)
    if not Path(suite).is_dir():
        near = difflib.get_close_matches(suite, ABOUT, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(
            f"no suite or folder {suite!r}", "", hint + "one of " + ", ".join(ABOUT) + ", or a folder"
        )
    return _folder(Path(suite).resolve().name, Path(suite), only, statement)


def _nothing_stated(suite: str, statement: Statement) -> None:
    if statement != Statement():
        raise InputError(
            f"suite {suite} has its own machines and objectives", "", "these options only for folders"
        )


def _chosen(names: Sequence[str], only: str | None, where: str) -> list[str]:
    patterns = ["*"] if only is None else [p.strip() for p in only.split(",")]
    out = [n for n in names if any(fnmatchcase(n, p) for p in patterns)]
    if not out:
        what = "no graph files" if not names else f"no instance is called {only!r}"
        raise InputError(what, where, ", ".join(names) or "files with a known extension")
    return out


def _generated(suite: str, name: str, network: Network, keep: Path) -> Instance:
    from nmsolve.cli.answer import prepare_folder
    from nmsolve.model.formats import save_graph
    from nmsolve.model.generators import generate

    graph = generate(network.kind, seed=INSTANCE_SEED, **dict(network.parameters))
    prepare_folder(keep)
    path = keep / f"{name}.npz"
    save_graph(graph, path)
    stated = Statement(network.machine, None, network.balance, network.objective)
    return _instance(suite, name, path, stated, None)


def _folder(suite: str, folder: Path, only: str | None, statement: Statement) -> list[Instance]:
    """Every graph file of a folder in order of name, with ``best_known.csv`` beside them if there is one."""
    from nmsolve.model.formats import FORMATS

    beside = [p for p in sorted(folder.iterdir()) if p.name != BEST_KNOWN and p.is_file()]
    files = {p.stem: p for p in beside if p.suffix.lower() in FORMATS}
    known = _best_known(folder / BEST_KNOWN) if (folder / BEST_KNOWN).exists() else {}
    return [
        _instance(suite, name, files[name], statement, known.get(name))
        for name in _chosen(list(files), only, str(folder))
    ]


def _instance(suite: str, name: str, path: Path, statement: Statement, best_known: float | None) -> Instance:
    from nmsolve.cli.loading import instance
    from nmsolve.solvers.mapping.api import make_problem

    loaded, machine = instance(path, statement.machine, statement.chips)
    objective = statement.objective or "hops"
    problem = make_problem(loaded, machine, objective=objective, balance=statement.balance)
    constant = loaded.meta.get("constant")
    if best_known is not None and isinstance(constant, int | float):
        best_known -= constant  # QAPLIB's cost has a part that no mapping changes
    return Instance(
        suite, name, path.resolve(), statement.machine, statement.chips, statement.balance, objective, best_known, problem
    )  # fmt: skip


def _best_known(path: Path) -> dict[str, float]:
    """``best_known`` of every instance, from a table with columns ``name`` (or ``instance``) and ``best_known``.

    Raises
    ------
    InputError : a column is missing, a name appears twice, or a value is not a number >= 0 (with its line)
    """
    from nmsolve.model.files import read_limited

    try:
        text = read_limited(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not a text file", str(path), "a table separated by commas") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        head, *rows = [(reader.line_num, row) for row in reader] or [(1, [])]
    except csv.Error as error:
        raise InputError(str(error), f"{path}:{reader.line_num}", "a table separated by commas") from None
    return _values(path, [c.strip() for c in head[1]], rows)


def _values(path: Path, head: list[str], rows: Sequence[tuple[int, list[str]]]) -> dict[str, float]:
    """The two columns that count, from (line, cells) of every row below the ``head``."""
    name = next((head.index(c) for c in ("name", "instance") if c in head), None)
    if name is None or "best_known" not in head:
        raise InputError("a column is missing", f"{path}:1", "columns name and best_known")
    value, out = head.index("best_known"), {}
    for line, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        where = f"{path}:{line}"
        if len(row) <= max(name, value):
            raise InputError(f"{len(row)} columns", where, f"{len(head)}, as in the first line")
        key, text = row[name].strip(), row[value].strip()
        if key in out:
            raise InputError(f"{key} is listed twice", where, "every instance once")
        found = decimal(text)
        if found is None or not 0 <= found < float("inf"):
            raise InputError(f"the best known value of {key} is {text!r}", where, "a number >= 0")
        out[key] = found
    return out
