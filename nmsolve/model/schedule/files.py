"""Any file that states a scheduling problem."""

from __future__ import annotations

from pathlib import Path

from nmsolve.model.errors import InputError
from nmsolve.model.schedule.statement import Stated

#: Kinds of files by extension, for people.
FORMS = {
    ".json": "tasks.json, or a workflow in WfFormat", ".sm": "PSPLIB, one mode", ".mm": "PSPLIB, several modes",
    ".rcp": "Patterson", ".fjs": "flexible job shop", ".txt": "MPLIB",
}  # fmt: skip


def load_schedule(path: str | Path) -> Stated:
    """Read a problem; the extension says the kind of file.

    Raises
    ------
    InputError : unknown extension, damaged file, or a problem that cannot be solved (:class:`DoesNotFitError`)
    """
    from nmsolve.model.schedule import fjsp, mplib, psplib, wfcommons

    path = Path(path)
    readers = {
        ".sm": psplib.load_psplib, ".mm": psplib.load_psplib, ".rcp": psplib.load_patterson, ".fjs": fjsp.load_fjsp,
        ".txt": mplib.load_mplib, ".json": wfcommons.load_workflow,
    }  # fmt: skip
    read = readers.get(path.suffix.lower())
    if read is None:
        known = ", ".join(f"{ending} ({text})" for ending, text in FORMS.items())
        raise InputError(f"unknown kind of file {path.suffix!r}", str(path), known)
    return read(path)
