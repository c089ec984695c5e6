"""What the functions take: graphs, machines, constraints, mappings as objects or files, and files that state them again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from nmsolve.hw.machine_write import save_machine
from nmsolve.hw.machines import load_machine
from nmsolve.kinds.loading import beside_earlier
from nmsolve.kinds.python.answers import Answer
from nmsolve.kinds.values import chip_grid, text_or_file
from nmsolve.model.errors import InputError
from nmsolve.model.formats import save_graph
from nmsolve.model.formats.implied import implied_machine
from nmsolve.model.formats.in_memory import GraphLike, Named, named_graph
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading, as_multicast
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.any_file import read_any_mapping
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.constraints_file import ConstraintsFile, constraints_of, load_constraints, stated
from nmsolve.model.mapping.idle import say_idle
from nmsolve.model.types import AnyArray, IntArray

#: A machine, the name of one, or its file.
MachineLike: TypeAlias = Machine | str | Path
#: A file of side constraints, or each of them: as an object, or as an entry of such a file.
ConstraintsLike: TypeAlias = str | Path | Sequence[SideConstraint | Mapping[str, Any]]
#: A mapping: an answer, a file or folder, node -> core (a number, or row and column), or the core of every node in order.
MappingLike: TypeAlias = Answer[IntArray] | str | Path | Mapping[Any, Any] | Sequence[int] | AnyArray

#: Where an answer keeps what stated its problem, if that has no file of its own.
FOLDER = "inputs"
#: Graphs with more edges than this are kept as arrays, not as text.
TEXT_EDGES = 1_000_000


@dataclass(frozen=True, eq=False)
class Source:
    """What a problem was stated from.

    Attributes
    ----------
    named : the graph, what its nodes are called, its file
    machine : the machine without the networks of ``occupied``
    spec : name or file of the machine; None if it came as an object, or from the graph
    implied : the graph states the machine
    constraints, path : side constraints, and their file
    occupied : folders of earlier runs whose networks hold a part of the machine
    reading : how the graph's file is read
    """

    named: Named
    machine: Machine
    spec: str | None = None
    chips: str | None = None
    implied: bool = False
    constraints: tuple[SideConstraint, ...] = ()
    path: Path | None = None
    occupied: tuple[Path, ...] = ()
    reading: GraphReading = AS_IT_IS
    board: Machine = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "board", beside_earlier(self.machine, self.occupied))

    def files(self, folder: Path) -> dict[str, Any]:
        """Return ``graph``, ``machine``, ``chips``, ``constraints``, ``occupied`` and options of reading as commands name them.

        What has no file gets one in ``folder``.

        Raises
        ------
        InputError : something cannot be written as a file
        """
        spec, path = self.spec, self.path
        if spec is None and not self.implied:
            save_machine(self.machine, _into(folder, "machine.toml"))
            spec = str(folder / FOLDER / "machine.toml")
        if path is None and self.constraints:
            path = _into(folder, "constraints.json")
            entries = [stated(c, self.named.graph, self.machine) for c in self.constraints]
            path.write_bytes(msgspec.json.format(msgspec.json.encode(ConstraintsFile(entries))) + b"\n")
        return {
            "graph": graph_file(self.named, folder), "machine": spec, "chips": self.chips,
            "constraints": path, "occupied": list(self.occupied), **self.reading.options(),
        }  # fmt: skip


def graph_file(named: Named, folder: Path) -> Path:
    """Return the file of a graph; in ``folder`` if it has none."""
    if named.path is not None:
        return named.path
    graph = named.graph
    if graph.on_disk:
        raise InputError("a graph on disk without its path", graph.name, "the path in place of the object")
    path = _into(folder, "graph.json" if graph.m <= TEXT_EDGES else "graph.npz")
    save_graph(graph, path)
    return path


def _into(folder: Path, name: str) -> Path:
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    return (folder / FOLDER / name).resolve()


def source_of(
    graph: GraphLike | Named, machine: MachineLike | None, chips: str | tuple[int, int] | None = None,
    constraints: ConstraintsLike = (), occupied: Sequence[str | Path] = (), memory: int | None = None,
    reading: GraphReading = AS_IT_IS, multicast: bool = False,
) -> Source:  # fmt: skip
    """Return graph, machine and constraints, loaded.

    Parameters
    ----------
    chips : rows and columns of chips, as a pair or as text (``3x4``)
    memory : most bytes; a .nmz graph that is too large for it stays on disk
    reading : how the graph's file is read
    multicast : every node of a graph in memory sends one message per step to all its targets, too

    Raises
    ------
    InputError : anything wrong with one of them, or no machine: neither given nor stated by the graph
    """
    named = graph if isinstance(graph, Named) else _loaded(graph, memory, reading)
    if multicast:  # its file says something else
        named = named._replace(graph=as_multicast(named.graph), path=None)
    grid, spec = grid_text(chips), machine_text(machine)
    board = implied_machine(named.graph, str(named.path or named.graph.name)) if machine is None else None
    if machine is not None:
        board = source_machine(machine, chips)
    if board is None:
        what = "a preset, mesh:RxC, a machine.toml or a Machine"
        raise InputError("no machine given", named.graph.name, what)
    say_idle(named.graph, board)
    path = Path(constraints).resolve() if isinstance(constraints, str | Path) else None
    return Source(
        named, board, spec, grid, machine is None, _constraints(constraints, named.graph, board), path,
        tuple(Path(run).resolve() for run in occupied), GraphReading(**reading.options()),
    )  # fmt: skip


def source_machine(machine: MachineLike, chips: str | tuple[int, int] | None = None) -> Machine:
    """Return the machine that a name, a file or an object is."""
    if isinstance(machine, Machine):
        if chips is not None:
            raise InputError(
                "chips beside a machine as an object", machine.name, "machine.with_chips(rows, columns)"
            )
        return machine
    if not isinstance(machine, str | Path):
        what = f"the machine is a {type(machine).__name__}"
        raise InputError(what, "machine", "a preset, mesh:RxC, a machine.toml or a Machine")
    return load_machine(str(machine), chips=chip_grid(grid_text(chips)))


def machine_text(machine: MachineLike | None) -> str | None:
    """Return the name of a machine, or its file by the whole path; None for an object, which has neither."""
    return None if isinstance(machine, Machine) or machine is None else text_or_file(str(machine))


def grid_text(chips: str | tuple[int, int] | None) -> str | None:
    """Return chips as options have them: ``3x4``."""
    if isinstance(chips, tuple | list):
        return "x".join(map(str, chips))
    if chips is not None and not isinstance(chips, str):
        raise InputError(f"chips are {chips!r}", "chips", "(rows, columns), or text such as 3x4")
    return chips


def _loaded(graph: GraphLike, memory: int | None, reading: GraphReading) -> Named:
    from nmsolve.solvers.mapping.memory_estimate import load_within

    if not isinstance(graph, str | Path):
        return named_graph(graph)
    return named_graph(load_within(graph, memory, reading))._replace(path=Path(graph).resolve())


def _constraints(given: ConstraintsLike, graph: LogicGraph, machine: Machine) -> tuple[SideConstraint, ...]:
    """Return the constraints of a file, or those given; entries name nodes by their ids."""
    if isinstance(given, str | Path):
        return load_constraints(given, graph, machine)
    if not isinstance(given, Sequence):
        what = f"the constraints are a {type(given).__name__}"
        raise InputError(what, "constraints", "a file, or a list of entries or objects")
    entries = [c for c in given if not isinstance(c, SideConstraint)]
    try:
        content = msgspec.convert({"constraints": entries}, ConstraintsFile)
    except msgspec.ValidationError as error:
        raise InputError(f"invalid constraints ({error})", "", "entries as in constraints.json") from None
    objects = [c for c in given if isinstance(c, SideConstraint)]
    return (
        *(replace(c, cores=tuple(sorted(set(c.cores)))) for c in objects),  # as a file has them
        *constraints_of(content, graph, machine, "constraints"),
    )


def core_of(given: MappingLike, named: Named, machine: Machine, where: str = "mapping") -> IntArray:
    """Return (n,) the core of every node, as ``given`` has it.

    Raises
    ------
    InputError : unknown or missing nodes, no such core, a wrong file
    """
    core: Any = getattr(given, "core", None)
    if isinstance(given, str | Path):
        path = Path(given)
        path = path / "mapping.json" if path.is_dir() else path
        return read_any_mapping(path, named.graph, machine, other_faults=True)
    if isinstance(given, Mapping):
        core = [_place(given, node, machine, where) for node in named.nodes]
        known = set(named.nodes)
        strange = next((v for v in given if v not in known), None)
        if strange is not None:
            raise InputError(f"no node is called {strange!r}", where, f"nodes of {named.graph.name}")
    elif core is None:
        core = given
    found = np.asarray(core)
    if found.shape != (named.graph.n,) or found.dtype.kind not in "iu":
        what = f"{found.dtype} of shape {found.shape}"
        raise InputError(what, where, f"{named.graph.n} core numbers, one per node, or node -> core")
    if len(found) and not 0 <= found.min() <= found.max() < machine.size:
        raise InputError(
            f"core {found.min() if found.min() < 0 else found.max()}", where, f"0..{machine.size - 1}"
        )
    return np.ascontiguousarray(found, np.int64)


def _place(given: Mapping[Any, Any], node: Hashable, machine: Machine, where: str) -> int:
    """Return the core number of a node."""
    if node not in given:
        raise InputError(f"node {node!r} has no core", where, "a core for every node")
    place = given[node]
    if (
        isinstance(place, tuple | list)
        and len(place) == 2
        and all(isinstance(v, int | np.integer) for v in place)
    ):
        row, col = place
        if not (0 <= row < machine.rows and 0 <= col < machine.cols):
            raise InputError(
                f"node {node!r} is on core {place}",
                where,
                f"row, column within {machine.rows} x {machine.cols}",
            )
        return int(row * machine.cols + col)
    if not isinstance(place, int | np.integer) or isinstance(place, bool):
        raise InputError(f"node {node!r} is on core {place!r}", where, "a core number, or its row and column")
    return int(place)
