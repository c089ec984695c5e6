"""The end of every run: its files, written twice, the last lines of output, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.parts import proved_by
from nmsolve.kinds.progress import event_to_json
from nmsolve.kinds.values import fraction
from nmsolve.model import clock
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.file_set import file_set, new_run, settle, signed
from nmsolve.model.files import made_folder, write_atomic
from nmsolve.model.stop import unbroken

if TYPE_CHECKING:
    from nmsolve.model.bound import Event, Result


#: A better answer than the one given to ``nmsolve gap``, found on the way.
BETTER = "better.json"
#: Options that name files to write, and options that name answers.
OUTPUTS = ("out", "target", "page", "write_model", "write_onnx", "scratch", "library")
ANSWERS = ("mapping", "warm_start", "routes", "one", "other")
#: No path is longer.
LONGEST_PATH = 4096
#: Exit codes (docs/files.md).
OK, INTERNAL, FEASIBLE, INFEASIBLE, UNKNOWN, INTERRUPTED = 0, 1, 3, 4, 5, 130


def prepare_folder(folder: Path, names: Sequence[str] = (), asked: object = None) -> None:
    """Make the output folder before the search.

    Parameters
    ----------
    names : patterns of the names of files that will be written or removed there
    asked : options of the command: none of the files that they name may be lost

    Raises
    ------
    InputError : the answer could not be written to it, or would replace an input
    """
    require_inputs_kept((folder / name for name in names), asked)
    made_folder(folder)
    _require_writable(folder)
    settle(folder)


def require_inputs_kept(outputs: Iterable[Path], asked: object) -> None:
    """Refuse outputs that would replace a file which an option names; an answer that a run has signed may be improved in place.

    Parameters
    ----------
    outputs : paths; the name of the last part may be a pattern
    asked : options of a command, a dataclass

    Raises
    ------
    InputError : naming the option and the file
    """
    wanted = [(path.parent.resolve(), path.name) for path in outputs]
    for option, path in _inputs_of(asked):
        if option in ANSWERS and signed(path):
            continue
        # Files are replaced by renaming: what a link elsewhere leads to is safe, what lies in the folder itself is not.
        for place in {path.resolve(), path.parent.resolve() / path.name}:
            if any(place.parent == folder and fnmatchcase(place.name, name) for folder, name in wanted):
                words = option.rstrip("_").replace("_", "-")
                what = f"an output would replace this input ({words})"
                raise InputError(what, str(place), "another place for it, or another name of the input")


def _inputs_of(asked: object) -> Iterator[tuple[str, Path]]:
    """Yield the options that name existing files, each with a file."""
    for option, value in vars(asked).items() if asked is not None else ():
        if option in OUTPUTS:
            continue
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, (str, Path)) and len(str(one)) < LONGEST_PATH and os.path.isfile(one):
                yield option, Path(one)


def prepare_file(path: Path, asked: object = None) -> None:
    """Check that a file can be written, and is none of those that the options ``asked`` name.

    Raises
    ------
    InputError : its folder is missing or read-only, it is a folder itself, or an input
    """
    require_inputs_kept([path], asked)
    if path.is_dir():
        raise InputError("it is a folder", str(path), "a file")
    if not path.absolute().parent.is_dir():
        raise InputError("there is no such folder", str(path.parent), "a folder that can be written")
    _require_writable(path.absolute().parent)


def _require_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("the folder cannot be written", str(folder), "a folder that can be written")


#: Of a front.
FRONT_FILES = (
    "pareto.json", "pareto-certificates.json", "pareto.svg", "pareto.html", "point-*.json", "reference.json", "earlier.json",
)  # fmt: skip
#: Names of what runs of map, pipeline, assign, schedule, and fronts leave in their folders.
OF_RUNS = (
    "mapping.json", "plan.json", "assignment.json", "schedule.json", "report.json", "report.html", "pipeline-report.json",
    "pipeline.html", "certificates.json", "events.jsonl", "better.json", "reference.json", "earlier.json", "processors.json",
    "cores.json", "routes.json", "flow-routes.json", "route-certificates.json", "route-events.jsonl", "route-report.json",
    "route.html", "trace.json", "pareto.json", "pareto-certificates.json", "pareto.svg", "pareto.html", "point-*.json",
    "placement/*.json", "placement/*.jsonl", "placement/report.html",
)  # fmt: skip


class Answer:
    """The files of one run in a folder, written twice: what was found, then with checks and pictures.

    The files of each go appear all at once and are signed with the run's id. What happens in between costs no more than checks
    and page.

    Parameters
    ----------
    out : an existing folder
    names : patterns of the names that files of such an answer may have; those of an earlier run vanish with the first go
    run : id of the run; a new one if not given
    alone : the folder is this run's: what runs of other kinds have left there vanishes, too
    """

    def __init__(
        self, out: Path, names: Sequence[str], run: str | None = None, *, alone: bool = False
    ) -> None:
        self._out, self._names, self._run = out, names, run or new_run()
        self._others = OF_RUNS if alone else ()

    @contextmanager
    def found(self) -> Iterator[Path]:
        """The first go: a folder to write into. A second Ctrl-C waits for its end."""
        with unbroken(), file_set(self._out, self._names, self._run, self._others) as folder:
            yield folder

    @contextmanager
    def added(self) -> Iterator[dict[str, str | bytes]]:
        """The second go: name -> content of files to add, as far as the block gets before time is up or the end is asked for."""
        files: dict[str, str | bytes] = {}
        try:
            yield files
        except KeyboardInterrupt:
            print("no time was left for the page", file=sys.stderr)
        if files:
            with file_set(self._out, (), self._run) as folder:
                for name, content in files.items():
                    write_atomic(folder / name, content)


def hint(command: str = "") -> str:
    """Return which command to turn to where nothing fits."""
    return f"; `nmsolve explain{command and ' ' + command}` names a smallest set of limits that conflict"


@contextmanager
def explained(command: str | None) -> Iterator[None]:
    """Add a hint at ``explain`` to what is shown to be impossible before any search; None: none.

    Raises
    ------
    DoesNotFitError : the one raised inside, with the hint
    """
    try:
        yield
    except DoesNotFitError as error:
        if command is None:
            raise
        raise DoesNotFitError(error.what + hint(command), error.where, error.expected) from None


def say_infeasible(what: str, result: Result[Any], command: str = "") -> None:
    """Say after a proof of infeasibility that none of ``what`` exists and whose proof it is, with the same hint."""
    if result.status == "infeasible":
        print(f"{proved_by(result)}: no {what}{hint(command)}", file=sys.stderr)


def write_models(name: str, make: Callable[[], tuple[Any, Any]], folder: Path) -> None:
    """Write the exact models of ``--write-model``, which ``make`` builds, and say where they are. No time limit counts that.

    Raises
    ------
    InputError : the problem cannot be stated exactly, or the folder cannot be written
    """
    from nmsolve.solvers.search.write_model import write_model

    began = clock.now()
    for path in write_model(name, *make(), folder):
        print(f"wrote {path}", file=sys.stderr)
    clock.skip(clock.now() - began)


def as_json(report: msgspec.Struct) -> bytes:
    """Return a report as its file holds it."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2)


def event_lines(events: Iterable[Event]) -> str:
    """Return the file ``events.jsonl``."""
    return "".join(json.dumps(event_to_json(e)) + "\n" for e in events)


def last_words(
    out: Path, report: msgspec.Struct, json_too: bool, words: Iterable[str], files: Sequence[str]
) -> None:
    """Print what was found to standard output; with JSON, the report there and the text to standard error.

    ``files`` : page and report; the first that exists is printed last.
    """
    if json_too:
        print(json.dumps({"type": "result", **msgspec.to_builtins(report), "out": str(out)}), flush=True)
    stream = sys.stderr if json_too else sys.stdout
    for line in words:
        print(line, file=stream)
    print(f"report: {next(out / name for name in files if (out / name).exists())}", file=stream)


def finish(
    o: Any, result: Result[Any], report: Any, words: Iterable[str], files: Sequence[str], command: str | None, none: str
) -> int:  # fmt: skip
    """Say what a run found and wrote, and return its exit code.

    ``none`` : what does not exist where the problem is proved infeasible, e.g. ``plan exists``, "" to say nothing; ``command``
    of ``nmsolve explain`` says why
    """
    last_words(o.out, report, o.json, words, files)
    if (o.out / BETTER).exists():
        print(f"better: {o.out / BETTER}", file=sys.stderr)
    if none:
        say_infeasible(none, result, command or "")
    return exit_code(result, report, fraction(o.gap))


def tell(json_only: bool, rows: Iterable[Mapping[str, Any]], lines: Iterable[str]) -> int:
    """Print what a command found that writes no files: typed JSON, an object per line, or lines for people; the exit code."""
    for line in map(json.dumps, rows) if json_only else lines:
        print(line, flush=True)
    return OK


def exit_code(
    result: Result[Any],
    report: Any,
    wanted_gap: float | None,
) -> int:
    """The exit code of a finished run (docs/files.md): do the independent checks agree, was an answer found, and is its gap the
    one that was asked for?"""
    if not all(c.ok for c in report.checks):
        return INTERNAL
    if result.status == "infeasible":
        return INFEASIBLE
    if result.solution is None:
        return INTERRUPTED if result.stop_reason == "interrupt" else UNKNOWN
    if wanted_gap is not None and (result.gap is None or result.gap > wanted_gap):
        return FEASIBLE
    return OK
