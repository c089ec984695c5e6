"""The kinds of problems, by the names of their commands; each is loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmsolve.kinds.kind import Kind

#: Folders by names, in the order in which they are asked whose an answer is: a mapping's file may have any name.
FOLDERS = {
    "pipeline": "pipeline",
    "schedule": "schedule",
    "assign": "assignment",
    "route": "routing",
    "map": "mapping",
}


def kind(name: str) -> Kind:
    """Return the kind of problem of a command."""
    found: Kind = import_module(f"nmsolve.kinds.{FOLDERS[name]}.kind").KIND
    return found


def kinds() -> Iterator[Kind]:
    """Yield every kind, mappings last."""
    return map(kind, FOLDERS)


def kind_of(path: Path, source: Path | None = None) -> tuple[Kind, Path]:
    """Return of which kind the answer is that ``path``, a file or the folder of a run, is about, and its file.

    ``source`` : the file of the problem, which tells of which kind a file of any name is
    """
    return next((one, found) for one in kinds() if (found := one.answer_of(path, source)) is not None)


def run_command(name: str, o: Any) -> int:
    """Run the command of a kind with its options; return the exit code."""
    return kind(name).run(o)
