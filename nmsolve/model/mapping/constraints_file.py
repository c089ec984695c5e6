"""``constraints.json``: side constraints in the user's own node ids and board coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import KINDS, SLICES, SideConstraint
from nmsolve.model.mapping.slices import populations

#: A population in place of all, each by itself.
EVERY = "*"


class ConstraintEntry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One side constraint as in the file.

    Attributes
    ----------
    kind : ``pin``, ``region``, ``forbid``, ``together``, ``apart``, ``slices``
    nodes : node ids
    population : instead of ``nodes`` those of a population (:func:`nmsolve.model.mapping.slices.populations`); ``*`` in
        ``slices``: a constraint for every population
    name : for messages; ``<kind> <position>`` if not given, for ``slices`` the population
    most : most neurons of the nodes on a core; for ``slices``
    core : [row, col] of the board; for ``pin``
    rectangle : [top, left, bottom, right] of the board, bottom and right excluded; for ``region`` and ``forbid``
    chips : chip numbers (as in ``mapping.json``), instead of ``rectangle``
    cores : any cores, [row, col] of the board each, instead of ``rectangle``
    at : a side of the board (north, south, east, west, edge) or a port that the machine names, instead of ``rectangle``
    """

    kind: str
    nodes: list[int | str] = []
    name: str = ""
    core: tuple[int, int] | None = None
    rectangle: tuple[int, int, int, int] | None = None
    chips: list[int] | None = None
    cores: list[tuple[int, int]] | None = None
    at: str | None = None
    population: str | None = None
    most: int | None = None


class ConstraintsFile(msgspec.Struct, forbid_unknown_fields=True):
    """The content of ``constraints.json``."""

    constraints: list[ConstraintEntry]


def load_constraints(path: str | Path, graph: LogicGraph, machine: Machine) -> tuple[SideConstraint, ...]:
    """Read side constraints for ``graph`` on ``machine``.

    Whether they contradict each other is not looked at here (:mod:`nmsolve.model.mapping.fit` does that).

    Raises
    ------
    InputError : with its JSON path: unknown kind or node, a core, rectangle or chip that is not on the board, a
        name twice, a key that does not belong to the kind
    """
    return constraints_of(decode_json(read_limited(path), ConstraintsFile, path), graph, machine, str(path))


def constraints_of(
    content: ConstraintsFile, graph: LogicGraph, machine: Machine, path: str
) -> tuple[SideConstraint, ...]:
    """Return the constraints of a file's ``content``; as :func:`load_constraints`, with ``path`` in errors."""
    out: list[SideConstraint] = []
    names: dict[str, int] = {}
    for i, entry in enumerate(content.constraints):
        where = f"{path}: $.constraints[{i}]"
        if entry.kind not in KINDS:
            raise InputError(f"unknown kind {entry.kind!r}", f"{where}.kind", "one of " + ", ".join(KINDS))
        cores, most = _cores(entry, machine, where), _most(entry, where)
        for population, nodes in _nodes(entry, graph, where):
            name = entry.name or (population if entry.kind == SLICES else "") or f"{entry.kind} {i}"
            if entry.name and entry.population == EVERY:
                name = f"{entry.name} {population}"
            if name in names:
                raise InputError(
                    f"constraint {names[name]} has the same name {name!r}", f"{where}.name", "unique names"
                )
            names[name] = i
            out.append(SideConstraint(name, entry.kind, nodes, cores, entry.at or "", most))
    return tuple(out)


def _nodes(entry: ConstraintEntry, graph: LogicGraph, where: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return the node indices of every constraint that the entry states, each with its population ("": none)."""
    if entry.population is None:
        return [("", _listed(entry, graph, where))]
    if entry.nodes:
        raise InputError("nodes and a population", where, "one of the two")
    found, named = populations(graph), entry.population
    if named == EVERY and entry.kind == SLICES and found:
        return list(found.items())
    least = 2 if entry.kind in ("together", "apart") else 1
    if named not in found or len(found[named]) < least:
        some = ", ".join(list(found)[:8]) + (", ..." if len(found) > 8 else "")
        what = (
            "one of " + some if found else "nodes (no node of the graph has a kind, or an id such as L4E/17)"
        )
        raise InputError(f"no population {named!r} of {least} nodes or more", f"{where}.population", what)
    return [(named, found[named])]


def _most(entry: ConstraintEntry, where: str) -> int:
    """Return the limit of ``slices``, 0 for other kinds."""
    if (entry.most is not None) != (entry.kind == SLICES):
        what = f"{entry.kind} {'with' if entry.kind != SLICES else 'without'} most"
        raise InputError(what, where, "most: neurons per core, for kind 'slices' alone")
    if entry.most is not None and not 1 <= entry.most < 2**31:
        raise InputError(f"the limit is {entry.most}", f"{where}.most", "a whole number >= 1, below 2^31")
    return entry.most or 0


def _listed(entry: ConstraintEntry, graph: LogicGraph, where: str) -> tuple[int, ...]:
    """Return indices of the nodes that the entry lists; several different ones where the kind is about several."""
    least = 2 if entry.kind in ("together", "apart") else 1
    if len(entry.nodes) < least:
        raise InputError(f"{len(entry.nodes)} nodes", f"{where}.nodes", f"at least {least}")
    seen: dict[int | str, int] = {}
    for k, v in enumerate(entry.nodes):
        if v not in graph.index_of:
            raise InputError(f"no node has id {v!r}", f"{where}.nodes[{k}]", f"a node of {graph.name}")
        if v in seen:
            raise InputError(f"node {v!r} is listed twice", f"{where}.nodes[{k}]", "every node once")
        seen[v] = k
    return tuple(graph.index_of[v] for v in entry.nodes)


def _cores(entry: ConstraintEntry, machine: Machine, where: str) -> tuple[int, ...]:
    """Return core numbers that the entry names, in the one way its kind allows."""
    many = ["rectangle", "chips", "cores", "at"]
    given = [key for key in ("core", *many) if getattr(entry, key) is not None]
    wanted = {"pin": ["core"], "region": many, "forbid": many}.get(entry.kind, [])
    if (wanted and len(given) != 1) or any(key not in wanted for key in given):
        found = " and ".join(given) or "no cores"
        raise InputError(f"{entry.kind} with {found}", where, " or ".join(wanted) or "nodes only")
    if entry.core is not None:
        return (_core(entry.core, machine, f"{where}.core"),)
    if entry.rectangle is not None:
        return _rectangle(entry.rectangle, machine, f"{where}.rectangle")
    if entry.at is not None:
        try:
            return machine.at(entry.at)
        except InputError as error:
            raise InputError(error.what, f"{where}.at", error.expected) from None
    if entry.cores is not None:
        if not entry.cores:
            raise InputError("no cores", f"{where}.cores", "at least one [row, column]")
        return tuple(sorted({_core(at, machine, f"{where}.cores[{k}]") for k, at in enumerate(entry.cores)}))
    if entry.chips is not None:
        for k, chip in enumerate(entry.chips):
            if not 0 <= chip < machine.n_chips:
                raise InputError(f"no chip {chip}", f"{where}.chips[{k}]", f"0..{machine.n_chips - 1}")
        return tuple(np.flatnonzero(np.isin(machine.chip_of, entry.chips)).tolist())
    return ()


def _core(at: tuple[int, int], machine: Machine, where: str) -> int:
    row, col = at
    if not (0 <= row < machine.rows and 0 <= col < machine.cols):
        raise InputError(
            f"core [{row}, {col}] is outside the board",
            where,
            f"[0..{machine.rows - 1}, 0..{machine.cols - 1}]",
        )
    return row * machine.cols + col


def _rectangle(corners: tuple[int, int, int, int], machine: Machine, where: str) -> tuple[int, ...]:
    top, left, bottom, right = corners
    if not (0 <= top < bottom <= machine.rows and 0 <= left < right <= machine.cols):
        raise InputError(
            f"the rectangle {list(corners)} is empty or outside the board",
            where,
            f"0 <= top < bottom <= {machine.rows} and 0 <= left < right <= {machine.cols}",
        )
    rows, cols = np.arange(top, bottom), np.arange(left, right)
    return tuple((rows[:, None] * machine.cols + cols).ravel().tolist())


def save_constraints(
    constraints: Sequence[SideConstraint], graph: LogicGraph, machine: Machine, path: str | Path
) -> None:
    """Write a file that :func:`load_constraints` reads."""
    content = ConstraintsFile([stated(c, graph, machine) for c in constraints])
    write_atomic(path, msgspec.json.encode(content))


def stated(constraint: SideConstraint, graph: LogicGraph, machine: Machine) -> ConstraintEntry:
    """Return the entry of a file that means this constraint."""
    nodes = [graph.node_id(u) for u in constraint.nodes]
    entry = ConstraintEntry(constraint.kind, nodes, constraint.name, most=constraint.most or None)
    cores = np.array(sorted(constraint.cores), np.int64)
    if not len(cores):
        return entry
    row, col = np.divmod(cores, machine.cols)
    if constraint.kind == "pin":
        entry.core = (int(row[0]), int(col[0]))
        return entry
    if constraint.at and machine.at(constraint.at) == constraint.cores:
        entry.at = constraint.at
        return entry
    corners = (int(row.min()), int(col.min()), int(row.max()) + 1, int(col.max()) + 1)
    if np.array_equal(_rectangle(corners, machine, constraint.name), cores):
        entry.rectangle = corners
        return entry
    chips = np.unique(machine.chip_of[cores])
    if np.array_equal(np.flatnonzero(np.isin(machine.chip_of, chips)), cores):
        entry.chips = chips.tolist()
    else:
        entry.cores = list(zip(row.tolist(), col.tolist(), strict=True))
    return entry
