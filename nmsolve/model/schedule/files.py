"""Any file that states a scheduling problem."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited
from nmsolve.model.schedule.build import MOST_BYTES
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


def _is_workflow(path: Path) -> bool:
    """Whether a JSON file is a workflow, by its top-level keys; a file that is no JSON is none."""
    try:
        return bool(msgspec.json.decode(read_limited(path, MOST_BYTES), type=_Top).workflow)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


class _Top(msgspec.Struct):
    workflow: msgspec.Raw = msgspec.Raw()
