"""Any file that states a scheduling problem."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.files import extension, input_file, read_limited
from nmsolve.model.schedule.problem import Units
from nmsolve.model.schedule.statement import Stated

#: Kinds of files by extension, for people; ``.txt`` and names without an extension are told apart by their first lines.
FORMS = {
    ".json": "tasks.json, or a workflow in WfFormat", ".sm": "PSPLIB, one mode", ".mm": "PSPLIB, several modes",
    ".rcp": "Patterson", ".rcmp": "several projects, MPLIB", ".fjs": "flexible job shop", ".jsp": "job shop",
    ".txt": "MPLIB or job shop",
}  # fmt: skip


@plain_arguments
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
    from nmsolve.model.schedule import projects, psplib, shops, tasks, wfcommons

    ending = extension(path)
    if ending == ".json":
        return (
            wfcommons.load_workflow(path, machine)
            if _is_workflow(path)
            else tasks.load_tasks(path, machine, checked)
        )
    readers = {
        ".sm": psplib.load_psplib, ".mm": psplib.load_psplib, ".rcp": projects.load_patterson, ".rcmp": projects.load_mplib,
        ".fjs": shops.load_fjsp, ".jsp": shops.load_job_shop,
    }  # fmt: skip
    kind = (_text_kind(path) or ".jsp") if ending in (".txt", "") else ending
    if kind not in readers:
        known = ", ".join(f"{name} ({text})" for name, text in FORMS.items())
        raise InputError(f"unknown kind of file {path.suffix!r}", str(path), known)
    if machine is not None:
        raise InputError(
            f"a machine is given, but {FORMS[kind]} files have resources of their own",
            str(path),
            "no machine",
        )
    return readers[kind](path)


def is_schedule_file(path: Path) -> bool:
    """Return whether a file states a scheduling problem: by its extension, its top-level keys, or its first lines.

    Raises
    ------
    InputError : no such file
    """
    ending = extension(path)
    if ending == ".json":
        found = _keys(path)
        return bool(found.tasks or found.workflow)
    return _text_kind(path) is not None if ending == ".txt" else ending in FORMS


def _text_kind(path: Path) -> str | None:
    """Return the extension that a text has elsewhere: ``.rcmp`` if it begins with one number, ``.jsp`` with jobs and machines and
    a row of a job; None for anything else, e.g. edge lists, which have two or three columns."""
    with input_file(path) as file:
        lines = file.read(2**16).split(b"\n")
    rows = [words for line in lines if (words := line.partition(b"#")[0].split())]
    rows = [words for words in rows if all(w.isdigit() and len(w) < 10 for w in words)]
    if rows and len(rows[0]) == 1:
        return ".rcmp"
    if len(rows) < 2 or len(rows[0]) not in (2, 6) or len(rows[1]) < 4:
        return None
    return ".jsp" if len(rows[1]) in (int(rows[0][1]), 2 * int(rows[0][1])) else None


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
