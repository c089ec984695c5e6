"""``--quiet``: a command that searches prints its answer's path, and on standard error what went wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from nmsolve.kinds import registry
from nmsolve.kinds.answer import INFEASIBLE, INTERNAL, INTERRUPTED, UNKNOWN
from nmsolve.model.errors import InputError

#: What is said of an exit code.
SAID = {
    INTERNAL: "an independent check failed: see report.json",
    INFEASIBLE: "no answer exists (proved)",
    UNKNOWN: "no answer was found in time",
    INTERRUPTED: "interrupted before an answer was found",
}


def run_quietly(run: Callable[[], int], name: str | None, o: Any) -> int:
    """Run a command with nothing printed, then print the path of its answer; return the exit code.

    Parameters
    ----------
    name : of its kind; None: the output folder tells
    o : its options

    Raises
    ------
    InputError : JSON was asked for as well
    """
    if o.json:
        raise InputError("JSON is printed, and --quiet prints nothing", "--quiet", "--json or --quiet")
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        code = run()
    path = _answer(name, o.out or o.run, getattr(o, "pareto", None) is not None)
    if code in SAID:
        print(f"error: {SAID[code]}", file=sys.stderr)
    if path.exists():
        print(path)
    return code


def _answer(name: str | None, folder: Path, front: bool) -> Path:
    """Return the file of the answer in an output folder, of a ``front`` that of all its points."""
    kind = registry.kind(name) if name is not None else registry.kind_of(folder)[0]
    return folder / ("pareto.json" if front else kind.answer)
