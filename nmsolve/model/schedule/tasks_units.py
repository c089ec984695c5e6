"""The units of ``tasks.json`` and the sets of units that processes name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.schedule.build import MOST_UNITS, whole
from nmsolve.model.schedule.problem import NEVER, Units
from nmsolve.model.schedule.tasks_file import Mesh, TasksFile, Unit, UnitSet
from nmsolve.model.types import IntArray, repeat_of

POWER = ("idle", "off", "off_time", "wake_time", "switch_energy")


def units_of(file: TasksFile, machine: Units | None, path: str) -> tuple[Units, IntArray]:
    """Return the units, and (U,) the energy per tick of each at work.

    Parameters
    ----------
    machine : names, distances and memories of a machine's cores; memory and power of the file fill what these lack

    Raises
    ------
    InputError : units twice or none, names twice, distances that do not fit
    """
    if machine is not None:
        if file.units is not None or file.hops is not None:
            raise InputError(
                "the file has units of its own and a machine is given", f"{path}: $.units", "one of the two"
            )
        return _completed(machine, file)
    units = _listed(file, path)
    names = [u.name for u in units]
    if (k := repeat_of(names)) is not None:
        raise InputError(
            f"two units are called {names[k]!r}", f"{path}: $.units[{k}].name", "every name once"
        )
    power = [file.power if u.power is None else u.power for u in units]
    memory = [file.memory if u.memory is None else u.memory for u in units]
    return Units(
        tuple(names), whole([NEVER if m is None else m for m in memory]), _hops(file, units, path),
        *(whole([getattr(p, key) for p in power]) for key in POWER),
    ), whole([p.on for p in power])  # fmt: skip


def _listed(file: TasksFile, path: str) -> list[Unit]:
    if isinstance(file.units, Mesh):
        rows, cols = file.units.mesh
        if rows * cols <= MOST_UNITS:
            return [Unit(f"{r},{c}", (r, c)) for r in range(rows) for c in range(cols)]
        raise InputError(f"{rows * cols:,} units", f"{path}: $.units.mesh", f"at most {MOST_UNITS:,}")
    if not file.units:
        raise InputError("the file has no units", f"{path}: $.units", "units, or a machine (--machine)")
    if len(file.units) > MOST_UNITS:
        raise InputError(f"{len(file.units):,} units", f"{path}: $.units", f"at most {MOST_UNITS:,}")
    return file.units


def _hops(file: TasksFile, units: Sequence[Unit], path: str) -> IntArray:
    """Return (U, U): as listed, or between places of a mesh, or one hop between any two units."""
    count = len(units)
    if file.hops is not None:
        if len(file.hops) != count or any(len(row) != count for row in file.hops):
            raise InputError(
                f"hops of {len(file.hops)} rows", f"{path}: $.hops", f"{count} rows of {count} numbers"
            )
        hops = whole([n for row in file.hops for n in row]).reshape(count, count)
        if hops.diagonal().any() or (hops + np.eye(count, dtype=np.int64) == 0).any():
            raise InputError(
                "hops of a unit to itself, or none between two", f"{path}: $.hops", "0 on the diagonal only"
            )
        return hops
    placed = [k for k, u in enumerate(units) if u.at is not None]
    if not placed:
        return 1 - np.eye(count, dtype=np.int64)
    if len(placed) < count:
        k = min(set(range(count)) - set(placed))
        raise InputError(
            f"unit {units[k].name!r} has no place",
            f"{path}: $.units[{k}].at",
            "a place for every unit or none",
        )
    at = np.array([u.at for u in units], np.int64)
    apart: IntArray = np.abs(at[:, None] - at).sum(axis=2)
    same = np.argwhere((apart == 0) & ~np.eye(count, dtype=bool))
    if len(same):
        a, b = (units[int(k)].name for k in same[0])
        raise InputError(f"units {a!r} and {b!r} are at the same place", f"{path}: $.units", "a place each")
    return apart


def _completed(machine: Units, file: TasksFile) -> tuple[Units, IntArray]:
    """Return a machine's units with the file's memory and power where the machine does not say them."""
    memory = machine.memory
    if file.memory is not None:
        memory = np.where(memory >= NEVER, file.memory, memory)
    idle, off, off_time, wake_time, switch = (
        found if found.any() else np.full(machine.count, getattr(file.power, key))
        for key, found in ((key, getattr(machine, key)) for key in POWER)
    )
    units = replace(
        machine,
        memory=memory,
        idle=idle,
        off=off,
        off_time=off_time,
        wake_time=wake_time,
        switch_energy=switch,
    )
    return units, np.full(machine.count, file.power.on)


class SetNumbers:
    """Numbers of the unit sets that processes name; each set gets one when it is first named."""

    def __init__(self, units: Units, named: dict[str, list[str]], path: str) -> None:
        """``named`` are the file's own names for sets."""
        self.path, self.names = path, units.names
        self.number = {name: k for k, name in enumerate(units.names)}
        self.members: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._known: dict[str | tuple[str, ...], int] = {}
        for name, listed in named.items():
            if name in self.number or name == "each":
                raise InputError(
                    f"{name!r} is a set and a unit, or the word for all units",
                    f"{path}: $.unit_sets",
                    "other names",
                )
            self._known[name] = self.of(listed, f"$.unit_sets.{name}")

    def of(self, stated: UnitSet, where: str) -> int:
        """Return the number of a set.

        Raises
        ------
        InputError : an unknown name, a name twice, no unit at all
        """
        key = stated if isinstance(stated, str) else tuple(stated)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.intern(
                self._units((key,) if isinstance(key, str) else key, where)
            )
        return found

    def intern(self, members: tuple[int, ...]) -> int:
        """Return the number of the set of these units, ascending."""
        found = self._numbers.get(members)
        if found is None:
            found = self._numbers[members] = len(self.members)
            self.members.append(members)
        return found

    def each(self) -> list[int]:
        """Return the sets of one unit, all units in order."""
        return [self.intern((u,)) for u in range(len(self.names))]

    def _units(self, names: tuple[str, ...], where: str) -> tuple[int, ...]:
        unknown = next((name for name in names if name not in self.number), None)
        if unknown is not None:
            import difflib

            near = difflib.get_close_matches(unknown, self.names, n=1, cutoff=0.6)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise InputError(f"unknown unit {unknown!r}{hint}", f"{self.path}: {where}", self._known_units())
        if len(set(names)) < len(names) or not names:
            what = "a unit twice in one set" if names else "a set without units"
            raise InputError(what, f"{self.path}: {where}", "different units, at least one")
        return tuple(sorted(self.number[name] for name in names))

    def _known_units(self) -> str:
        shown = [*self.names[:12], "..."] if len(self.names) > 12 else self.names
        return "units " + ", ".join(shown)

    def text(self, number: int) -> str:
        """Return a set for people."""
        return "{" + ", ".join(self.names[u] for u in self.members[number]) + "}"
