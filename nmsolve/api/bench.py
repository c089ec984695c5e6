"""``nmsolve.bench``: methods compared at equal time, every run kept."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from nmsolve.benchmarks.options import BenchOptions
from nmsolve.benchmarks.pages import PICTURES, markdown
from nmsolve.benchmarks.run import Measured, measure, write_tables
from nmsolve.benchmarks.runner import BenchTask
from nmsolve.benchmarks.store import Key, Outcome
from nmsolve.benchmarks.summary import Table
from nmsolve.hw.machine_write import save_machine
from nmsolve.kinds.answer import prepare_folder
from nmsolve.kinds.python.answers import drawn, table
from nmsolve.kinds.python.inputs import FOLDER, MachineLike, grid_text
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.formats import save_graph
from nmsolve.model.formats.in_memory import GraphLike, named_graph
from nmsolve.model.machine import Machine
from nmsolve.model.quantities import seconds
from nmsolve.model.quantities import workers as number_of_workers
from nmsolve.report import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Suites, files and folders; or graphs by name.
SuitesLike: TypeAlias = "str | Path | Sequence[str | Path] | Mapping[str, GraphLike]"


class BenchHow(TypedDict, total=False):
    """``set``: options of the problem's command, e.g. ``{"cores": 16}``; ``page``: file for the tables as Markdown; ``on_run``:
    called with key and outcome of every run that is done."""

    set: Mapping[str, object]
    page: str | Path | None
    on_run: Callable[[Key, Outcome], None]


@dataclass(frozen=True, repr=False)
class Benchmark:
    """What a benchmark came to.

    Attributes
    ----------
    measured : runs, tables and curves
    """

    measured: Measured

    def __repr__(self) -> str:
        """Return how many runs there are, in a line."""
        missing = f", {self.measured.head.missing} missing" if self.measured.head.missing else ""
        return f"Benchmark({len(self.runs)} runs{missing}; {self.measured.head.command})"

    @property
    def runs(self) -> Mapping[Key, Outcome]:
        """Every run: its key (suite, instance, method, seed, ...) -> objective, bound, status, seconds."""
        return self.measured.runs

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the report, with ``title``, ``head`` and ``rows`` of text, suite by suite."""
        return tuple(t for s in self.measured.summaries for t in (*s.quality, *s.times))

    @property
    def text(self) -> str:
        """The report as Markdown."""
        return markdown(self.measured.head, self.measured.summaries)

    def save(self, folder: str | Path) -> Path:
        """Write table.md and report.html. Return the folder. InputError if it cannot be written."""
        out = Path(folder)
        prepare_folder(out)
        write_tables(out, self.measured)
        return out

    def to_dataframe(self) -> Any:
        """Return a row per run. BackendError without pandas."""
        keys, runs = list(self.runs), list(self.runs.values())
        columns = {k: [getattr(key, k) for key in keys] for k in ("suite", "instance", "method", "seed")}
        return table(
            columns
            | {
                k: [getattr(r, k) for r in runs]
                for k in ("status", "objective", "bound", "wall", "cpu", "text")
            }
        )

    def plot(self, kind: str = "objective") -> Figure:
        """Return a picture of the first suite: ``objective`` or ``time`` (performance profiles), ``gap`` (over time).

        Raises
        ------
        InputError : another kind, or nothing to draw
        """
        curves = self.measured.summaries[0].curves
        kinds = {
            name: partial(pictures.step_lines.figure, curves[name], title, x, y, ratio=ratio)
            for name, (title, x, y, ratio, _) in PICTURES.items()
            if curves[name]
        }
        return drawn(kind, kinds)


@plain_arguments
def bench(
    suites: SuitesLike,
    methods: str | Sequence[str] | None = None,
    *,
    seeds: int = 10,
    time_limit: float | str = 60.0,
    workers: int | str = 1,
    only: str | None = None,
    machine: MachineLike | None = None,
    chips: str | tuple[int, int] | None = None,
    balance: float | None = None,
    objective: str | None = None,
    problem: str | None = None,
    out: str | Path | None = None,
    **options: Unpack[BenchHow],
) -> Benchmark:
    """Run methods on suites of instances, each run in a process of its own, and compare them.

    Parameters
    ----------
    suites : qaplib, mesh, snn, routes, pipelines, assignments, schedules, files or folders; or graphs by name
    methods : auto (if not given), engines, engines joined by + to run together, or peers: other tools that are installed
    seeds : every method runs with seeds 1 to ``seeds``
    time_limit : seconds of a run
    workers : runs at the same time, one core each; ``all``: on every core of this machine
    only : only these instances, e.g. ``sko*,nug12``
    machine, chips, balance, objective : of folders and graphs
    problem : what folders hold: the name of the command that solves it
    out : folder of runs and tables; runs that it holds are not repeated. None: nothing is kept
    options : as in :class:`BenchHow`

    Raises
    ------
    InputError : anything wrong with these, before any run; or another benchmark uses the folder
    """
    limit, workers = seconds(time_limit, "time_limit"), number_of_workers(workers, "workers")
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return bench(
                suites, methods, seeds=seeds, time_limit=limit, workers=workers, only=only, machine=machine,
                chips=chips, balance=balance, objective=objective, problem=problem, out=folder, **options,
            )  # fmt: skip
    if not 1 <= seeds <= 10_000:
        raise InputError(f"{seeds} seeds", "bench", "1 to 10,000")
    folder_of_runs = Path(out)
    prepare_folder(folder_of_runs)
    page, heard = options.get("page"), options.get("on_run")
    o = BenchOptions(
        _names(suites, folder_of_runs), methods if methods is None or isinstance(methods, str) else ",".join(methods), seeds,
        repr(limit), workers, only, _machine(machine, folder_of_runs), grid_text(chips), balance, objective,
        problem, [f"{k}={v}" for k, v in options.get("set", {}).items()], folder_of_runs,
        None if page is None else Path(page),
    )  # fmt: skip

    def tell(task: BenchTask, outcome: Outcome) -> None:
        if heard is not None:
            heard(task.key, outcome)

    return Benchmark(measure(o, lambda _: None, tell))


def _names(suites: SuitesLike, folder: Path) -> list[str]:
    """Return what the command is given; graphs are written into a folder."""
    if isinstance(suites, str | Path):
        return [str(suites)]
    if not isinstance(suites, Mapping):
        return [str(suite) for suite in suites]
    graphs = folder / FOLDER / "graphs"
    graphs.mkdir(parents=True, exist_ok=True)
    for name, graph in suites.items():
        if not re.fullmatch(r"[\w-][\w.-]*", name):
            raise InputError(f"an instance is called {name!r}", "bench", "letters, digits, - and .")
        save_graph(named_graph(graph).graph, graphs / f"{name}.json")
    return [str(graphs)]


def _machine(machine: MachineLike | None, folder: Path) -> str | None:
    """Return name or file of a machine."""
    if not isinstance(machine, Machine):
        return None if machine is None else str(machine)
    path = folder / FOLDER / "machine.toml"
    path.parent.mkdir(exist_ok=True)
    save_machine(machine, path)
    return str(path)
