"""Machines by name: presets, those of other packages, plain meshes, TOML files."""

from __future__ import annotations

import difflib
import math
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.hw.foreign_machines import foreign_machine
from nmsolve.hw.machine_file import LARGEST_FILE, machine_from_table, presets_in
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, read_table
from nmsolve.model.machine import Machine
from nmsolve.model.plugins import MACHINES, offered

#: More cores than this are taken for a mistake (the largest published mesh, SpiNNaker with a million cores, has 1,036,800).
MOST_CORES = 2**20

#: A tree is a table of the distances of all cores.
MOST_IN_TREE = 4096
_TREE = re.compile(
    r"tree:(\d{1,5}(?::\d{1,5}){0,7}),(\d{1,9}(?:\.\d{1,9})?(?::\d{1,9}(?:\.\d{1,9})?){0,7})", re.ASCII
)
_MESH = re.compile(r"mesh:(\d{1,18})x(\d{1,18})(?:,(\d{1,18})(?:x(\d{1,18}))?)?", re.ASCII)


@plain_arguments
def load_machine(spec: str | Path, chips: tuple[int, int] | None = None) -> Machine:
    """Return the machine that ``spec`` names.

    Parameters
    ----------
    spec : the name of a preset (:func:`list_presets`) or of a machine of another package; ``mesh:RxC`` (a plain mesh of R rows
        and C columns), ``mesh:RxC,AxB`` (A rows, B columns of such chips) or ``mesh:RxC,K`` (K chips in the squarest grid);
        ``tree:A:B:C,a:b:c`` (groups of A cores, a from each other, B such groups in a larger one, b from each other, ...);
        or the path of a TOML file (``docs/machines.md``), or of an architecture of SANA-FE (``.yaml``, ``.yml``)
    chips : rows and columns of chips instead of the machine's own; all of them healthy and free

    Raises
    ------
    InputError : unknown preset (with the nearest name), no such file, wrong content, no core or too many
    """
    machine = _load(str(spec).strip())
    if chips is not None:
        if len(chips) != 2 or min(chips) < 1:
            raise InputError(f"chips are {tuple(chips)}", machine.name, "two whole numbers >= 1")
        _check_size(machine.name, chips[0] * chips[1] * machine.cores[0] * machine.cores[1])
        machine = machine.with_chips(*chips)
    return machine


def list_presets() -> list[str]:
    """Return names of the presets, sorted."""
    return presets_in()


def _load(spec: str) -> Machine:
    if spec.lower().startswith("mesh:"):
        return _mesh(spec)
    if spec.lower().startswith("tree:"):
        return _tree(spec)
    if spec.lower().endswith((".yaml", ".yml")):
        from nmsolve.hw.sanafe.read import read_architecture

        return read_architecture(spec)
    names = list_presets()
    other = foreign_machine(spec)
    if other is None and spec.lower() in names:
        return machine_from_table(_preset(spec, spec), spec)
    if spec.lower() in presets_in("processors") if other is None else other.unlike:
        where = spec if other is None else other.where
        raise InputError(
            "it has unlike processors", where, "a machine of cores (`nmsolve assign` takes this one)"
        )
    if other is None and not (spec.lower().endswith(".toml") or "/" in spec or os.path.isfile(spec)):
        every = [*names, *(one.name for one in offered(MACHINES))]
        near = difflib.get_close_matches(spec.lower(), every, n=1, cutoff=0.4)
        hint = f"{near[0]} (the nearest), or " if near else ""
        raise InputError(
            f"unknown machine {spec!r}",
            "",
            f"{hint}one of {', '.join(every)}, mesh:RxC[,chips], tree:A:B,a:b or a TOML file",
        )
    table, where = other or (read_table(read_limited(spec, LARGEST_FILE), spec), spec)
    if "preset" in table:
        table = _on_preset(table, where)
    cells = 1
    for key in ("chips", "cores"):
        pair = table.get(key, (1, 1))
        if isinstance(pair, list) and all(isinstance(v, int) and v > 0 for v in pair):
            for v in pair:
                cells *= v
    _check_size(where, cells)
    return machine_from_table(table, where if other is None else spec.lower())


def _preset(name: object, where: str) -> dict[str, object]:
    """Return the table of a preset of ours or of another package."""
    names = list_presets()
    other = foreign_machine(name) if isinstance(name, str) else None
    if other is not None:
        return other.table
    if not isinstance(name, str) or name.lower() not in names:
        raise InputError(f"unknown preset {name!r}", where, "one of " + ", ".join(names))
    file = resources.files("nmsolve.hw") / "presets" / f"{name.lower()}.toml"
    return read_table(file.read_bytes(), name)


def _on_preset(table: dict[str, object], where: str) -> dict[str, object]:
    """Return the preset's table with the entries of ``table`` put over it (tables entry by entry).

    What the preset says of single cores ends where ``table`` has another number of cores, or another capacity of all of them.
    """
    name = table["preset"]
    out = dict(_preset(name, f"{where}: $.preset"))
    if "preset" in out:
        raise InputError(f"{name!r} rests on a preset itself", f"{where}: $.preset", "one that does not")
    capacity = table.get("capacity")
    stated = set(capacity) if isinstance(capacity, dict) else set()
    single: Any = out.pop("core", [])
    rest = [
        {**one, "capacity": {r: c for r, c in one["capacity"].items() if r not in stated}} for one in single
    ]
    if "cores" not in table:
        out["core"] = rest
    for key, value in table.items():
        old = out.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            out[key] = {**old, **value}
        elif key != "preset":
            out[key] = value
    return out


def _mesh(spec: str) -> Machine:
    match = _MESH.fullmatch(spec.lower().replace(" ", ""))
    if match is None:
        raise InputError(f"cannot read {spec!r}", "", "mesh:RxC, mesh:RxC,AxB or mesh:RxC,K (whole numbers)")
    rows, cols = int(match[1]), int(match[2])
    chips = (1, 1)
    if match[3] is not None:
        chips = (int(match[3]), int(match[4])) if match[4] is not None else squarest(int(match[3]))
    if min(rows, cols, *chips) < 1:
        raise InputError(f"{spec} has no core", "", "at least one row, column and chip")
    _check_size(spec, rows * cols * chips[0] * chips[1])
    return Machine(spec.lower().replace(" ", ""), chips, (rows, cols))


def _tree(spec: str) -> Machine:
    match = _TREE.fullmatch(spec.lower().replace(" ", ""))
    members = [int(text) for text in match[1].split(":")] if match else []
    distances = [float(text) for text in match[2].split(":")] if match else []
    if not members or len(members) != len(distances):
        expected = "tree:A:B:C,a:b:c, as many distances as levels, e.g. tree:4:8:2,1:10:100"
        raise InputError(f"cannot read {spec!r}", "", expected)
    size = math.prod(members)
    if size < 1:
        raise InputError(f"{spec} has no core", "", "groups of at least one")
    if size > MOST_IN_TREE:
        raise InputError(f"the machine has {size} cores", spec, f"a tree of at most {MOST_IN_TREE}")
    core = np.arange(size)
    matrix = np.full((size, size), distances[-1])
    for level in reversed(range(len(members) - 1)):
        group = core // math.prod(members[: level + 1])
        matrix[group[:, None] == group[None, :]] = distances[level]
    np.fill_diagonal(matrix, 0.0)
    return Machine(spec.lower().replace(" ", ""), (1, 1), (1, size), distance_matrix=matrix)


def squarest(count: int) -> tuple[int, int]:
    """Return rows and columns, rows <= columns, whose product is ``count`` and that differ least; (0, 0) for 0."""
    if count < 1:
        return 0, 0
    if count > MOST_CORES:
        return 1, count  # no machine has as many; trying divisors would take minutes
    rows = math.isqrt(count)
    while count % rows:
        rows -= 1
    return rows, count // rows


def _check_size(where: str, cells: int) -> None:
    if cells > MOST_CORES:
        raise InputError(f"the machine has {cells} cores", where, f"at most {MOST_CORES}")
