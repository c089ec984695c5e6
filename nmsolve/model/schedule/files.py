"""Any file that states a scheduling problem."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nmsolve.model.errors import InputError
from nmsolve.model.files import input_file, read_limited
from nmsolve.model.schedule.problem import Units
from nmsolve.model.schedule.statement import Stated

#: Kinds of files by extension, for people.
FORMS = {
    ".json": "tasks.json, or a workflow in WfFormat", ".sm": "PSPLIB, one mode", ".mm": "PSPLIB, several modes",
    ".rcp": "Patterson", ".fjs": "flexible job shop", ".txt": "MPLIB",
}  # fmt: skip


def load_schedule(path: str | Path, machine: Units | None = None, checked: bool = True) -> Stated:
    """Read a problem; the extension says the kind of file.

    Parameters
    ----------
    machine : units for a file that has none: tasks.json without units, and workflows
    checked : a problem that counting shows to have no schedule is refused

    Raises
    ------
    InputError : unknown extension, damaged file, a machine where the file has its own resources, or a problem that cannot be
        solved (:class:`DoesNotFitError`)
    """
    try:
        return _loaded(Path(path), machine, checked)
    except InputError as error:
        if error.where.startswith(str(path)):
            raise
        raise type(error)(error.what, f"{path}", error.expected) from None  # of the problem as a whole


def _loaded(path: Path, machine: Units | None, checked: bool) -> Stated:
    from nmsolve.model.schedule import fjsp, mplib, psplib, tasks, wfcommons

    ending = path.suffix.lower()
    if ending == ".json":
        return (
            wfcommons.load_workflow(path, machine)
            if _is_workflow(path)
            else tasks.load_tasks(path, machine, checked)
        )
    readers = {
        ".sm": psplib.load_psplib, ".mm": psplib.load_psplib, ".rcp": psplib.load_patterson, ".fjs": fjsp.load_fjsp,
        ".txt": mplib.load_mplib,
    }  # fmt: skip
    if ending not in readers:
        known = ", ".join(f"{name} ({text})" for name, text in FORMS.items())
        raise InputError(f"unknown kind of file {path.suffix!r}", str(path), known)
    if machine is not None:
        raise InputError(
            f"a machine is given, but {FORMS[ending]} files have resources of their own",
            str(path),
            "no machine",
        )
    return readers[ending](path)


def is_schedule_file(path: Path) -> bool:
    """Return whether a file states a scheduling problem: by its extension, its top-level keys, or its first line.

    Edge lists are called ``.txt``, too: they begin with two or three columns, MPLIB files with one number.

    Raises
    ------
    InputError : no such file
    """
    ending = path.suffix.lower()
    if ending == ".json":
        found = _keys(path)
        return bool(found.tasks or found.workflow)
    if ending == ".txt":
        with input_file(path) as file:
            first = file.read(4096).lstrip().split(b"\n", 1)[0].split()
        return len(first) == 1 and first[0].isdigit()
    return ending in FORMS


def _is_workflow(path: Path) -> bool:
    return bool(_keys(path).workflow)


def _keys(path: Path) -> _Top:
    """Return what tells such JSON files from others; nothing of a file that is no JSON."""
    try:
        return msgspec.json.decode(read_limited(path), type=_Top)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Top()


class _Top(msgspec.Struct):
    """Parts that are not looked at (a type ``Raw | None`` would skip them)."""

    tasks: msgspec.Raw = msgspec.Raw()
    workflow: msgspec.Raw = msgspec.Raw()
