"""``nmsolve resume`` and ``nmsolve gap``: earlier answers of any kind, made better or bounded."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.answer import OK
from nmsolve.kinds.earlier import run_again
from nmsolve.kinds.loading import read_object
from nmsolve.kinds.registry import FOLDERS, kind_of, listed
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import settle

if TYPE_CHECKING:
    from nmsolve.cli.commands import ResumeOptions
    from nmsolve.kinds.verbs import GapOptions


def run_resume(o: ResumeOptions) -> int:
    """Run the earlier command once more from where it ended; its exit code, 0 where nothing is left to do.

    Raises
    ------
    InputError : not the folder of a run that can be gone on with, or anything wrong with what it names
    """
    settle(o.run)
    kind, answer = kind_of(o.run)
    beside = answer.parent / kind.report
    if not o.run.is_dir() or not beside.exists():
        first, *more = FOLDERS
        wanted = f"the output folder of {listed(f'`{name}`' for name in (f'nmsolve {first}', *more))} (a front has none)"
        what = "the folder holds no report of a run" if o.run.is_dir() else "there is no such folder"
        raise InputError(what, str(o.run), wanted)
    report = read_object(beside)
    if _proved(report):
        print(f"nothing is left to do: the run proved its problem {report['status']}")
        return OK
    given = {f.name: getattr(o, f.name) for f in fields(o) if f.name != "run"}
    return run_again(kind, answer, given | {"out": o.out or o.run})


def _proved(report: dict[str, Any]) -> bool:
    """Return whether a run proved its problem, and what it minimised before in order."""
    inputs, status = report.get("inputs"), report.get("status")
    before = inputs.get("before") if isinstance(inputs, dict) else None
    held = before if isinstance(before, list) else []
    earlier = all(not isinstance(b, dict) or b.get("status") == "optimal" for b in held)
    return status == "infeasible" or (status == "optimal" and earlier)


def run_gap(o: GapOptions) -> int:
    """Raise the bound of an answer of any kind; return the exit code. InputError for anything wrong."""
    kind, answer = kind_of(o.mapping, o.graph)
    return kind.gap(answer, o)
