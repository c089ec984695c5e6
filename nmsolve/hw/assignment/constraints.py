"""What a user demands of an assignment: ``constraints.json`` with ``pin``, ``forbid``, ``together`` and ``memory``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import numpy as np

from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: No file of constraints is longer (bytes).
LARGEST_FILE = 2**24


class AssignConstraints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Demands.

    Operators are named by their labels, by patterns of them (``*``, ``?``; ``@in`` and ``@out`` only by name), or by type:
    ``kind:Softmax``. Places are units
    (``npu/2``) or processors (``npu``), one or a list.

    Attributes
    ----------
    pin : operators -> the places where they may be
    forbid : operators -> the places where they may not be
    together : lists of operators that share a unit
    memory : memory, or all parts of one -> bytes instead of those of the machine
    """

    pin: dict[str, str | list[str]] = {}
    forbid: dict[str, str | list[str]] = {}
    together: list[list[str]] = []
    memory: dict[str, int] = {}
    where: str = "constraints"


def read_constraints(path: str | Path) -> AssignConstraints:
    """Return the demands of a file.

    Raises
    ------
    InputError : not JSON, an unknown key, a wrong type (with its path)
    """
    found = decode_json(read_limited(path, LARGEST_FILE), AssignConstraints, path)
    return msgspec.structs.replace(found, where=str(path))


def allowed_units(
    constraints: AssignConstraints, machine: ProcessorMachine, labels: Sequence[str], kinds: Sequence[str]
) -> BoolArray:
    """Return (L, J) where pins and prohibitions let every operator be.

    Raises
    ------
    InputError : operators or places that do not exist, or an operator that its demands leave no place (both are named)
    """
    units = machine.units
    allowed = np.ones((len(labels), units.count), bool)
    said: dict[int, list[str]] = {}
    for key, table in (("pin", constraints.pin), ("forbid", constraints.forbid)):
        for pattern, places in table.items():
            where = f"{constraints.where}: $.{key}[{pattern!r}]"
            chosen = _places(machine, [places] if isinstance(places, str) else places, where)
            for i in matching(pattern, labels, kinds, where):
                allowed[i] &= chosen if key == "pin" else ~chosen
                said.setdefault(i, []).append(f"{key} {pattern!r}")
    for i in np.flatnonzero(~allowed.any(axis=1)).tolist():
        raise DoesNotFitError(
            f"operator {labels[i]!r} has no place left after " + " and ".join(said[i]), constraints.where,
            "demands that agree",
        )  # fmt: skip
    return allowed


def together_of(
    constraints: AssignConstraints, labels: Sequence[str], kinds: Sequence[str]
) -> IntArray | None:
    """Return (L,) a number of the set of operators that share a unit, -1 alone; overlapping sets are one. None: no sets."""
    if not constraints.together:
        return None
    number = np.full(len(labels), -1, np.int64)
    for k, patterns in enumerate(constraints.together):
        where = f"{constraints.where}: $.together[{k}]"
        own = sorted({i for pattern in patterns for i in matching(pattern, labels, kinds, where)})
        if len(own) < 2:
            raise InputError(f"{len(own)} operators", where, "at least two")
        number[np.isin(number, [n for n in number[own].tolist() if n >= 0])] = k
        number[own] = k
    return number


def require_common_unit(
    constraints: AssignConstraints, together: IntArray | None, possible: BoolArray, labels: Sequence[str]
) -> None:
    """Raise InputError if operators that must share a unit (L,) have none (L, J) where all can run; two of them are named."""
    for number in np.unique(together[together >= 0]).tolist() if together is not None else []:
        own = np.flatnonzero(together == number)
        left = possible[own[0]].copy()
        for i in own[1:].tolist():
            left &= possible[i]
            if not left.any():
                raise DoesNotFitError(
                    f"operators {labels[int(own[0])]!r} and {labels[i]!r} must share a unit, and none can run both "
                    f"with all before them", f"{constraints.where}: $.together[{number}]", "demands that agree",
                )  # fmt: skip


def capacities(constraints: AssignConstraints, machine: ProcessorMachine) -> FloatArray:
    """Return (M,) bytes of every memory: the machine's, or what the constraints say."""
    units = machine.units
    out = units.capacity.copy()
    for name, size in constraints.memory.items():
        own = [m for m, other in enumerate(units.memories) if name in (other, other.split("/")[0])]
        where = f"{constraints.where}: $.memory[{name!r}]"
        if not own:
            raise InputError("no such memory", where, "one of " + ", ".join(units.memories))
        if not 0 <= size < 2**62:
            raise InputError(f"{size} bytes", where, "0 to 2^62")
        out[own] = size
    return out


def matching(pattern: str, labels: Sequence[str], kinds: Sequence[str], where: str) -> list[int]:
    """Return the operators that a name, a pattern or ``kind:TYPE`` means; at least one."""
    kind = pattern.removeprefix("kind:")
    own = [i for i, label in enumerate(labels) if label == pattern]
    if not own:  # patterns do not mean @in and @out
        words = labels if kind == pattern else kinds
        own = [i for i, word in enumerate(words) if fnmatchcase(word, kind) and not labels[i].startswith("@")]
    if not own:
        raise InputError(
            f"no operator is called {pattern!r}", where, "a label, a pattern of labels, or kind:TYPE"
        )
    return own


def _places(machine: ProcessorMachine, names: Sequence[str], where: str) -> BoolArray:
    """Return (J,) the units that names of units and processors mean."""
    units, chosen = machine.units, np.zeros(machine.units.count, bool)
    owners = [machine.processors[k].name for k in machine.owner.tolist()]
    for name in names:
        own = [j for j, unit in enumerate(units.names) if name in (unit, owners[j])]
        if not own:
            known: Mapping[str, None] = dict.fromkeys([*owners, *units.names])
            raise InputError(f"no unit or processor is called {name!r}", where, "one of " + ", ".join(known))
        chosen[own] = True
    return chosen
