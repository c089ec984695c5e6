"""The kinds of problems, by the names of their commands; each is loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.model.lookup import named

if TYPE_CHECKING:
    from nmsolve.kinds.bench import Bench
    from nmsolve.kinds.kind import Kind

#: Folders by names.
FOLDERS = {
    "map": "mapping",
    "route": "routing",
    "pipeline": "pipeline",
    "assign": "assignment",
    "schedule": "schedule",
}
#: In which order kinds are asked whose an answer is: a mapping's file may have any name.
ASKED = ("pipeline", "schedule", "assign", "route", "map")
#: How each is benchmarked: ``module:name`` below ``nmsolve``.
BENCHES = {name: f"kinds.{folder}.bench:BENCH" for name, folder in FOLDERS.items()}

#: What ``nmsolve info`` asks about a file, in this order: each takes the path and the command's options, and returns None if the
#: file is not of its kind; ``module:function`` below ``nmsolve``.
DESCRIBED = ("kinds.pipeline.info:about", "kinds.schedule.info:about", "kinds.mapping.info:about")
#: What makes problems that are no graphs, by the name in ``nmsolve generate``: ``module:name`` below ``nmsolve``.
GENERATORS = {
    "tasks": "model.schedule.generate:GENERATOR",
    "assignment": "model.assignment.generate:GENERATOR",
}
#: Commands about problems of one kind beside its own: options and function, ``module:name`` below ``nmsolve``.
COMMANDS = {
    "simulate": ("kinds.simulation.options:SimulateOptions", "kinds.simulation.run:run_simulate"),
    "compare": ("kinds.mapping.options:CompareOptions", "kinds.mapping.compare:run_compare"),
    "export": ("kinds.mapping.options:ExportOptions", "kinds.mapping.export:run_export"),
    "bench learn": ("kinds.mapping.options:BenchLearnOptions", "kinds.mapping.learned.run:run_bench_learn"),
    "faults": ("kinds.mapping.options:FaultOptions", "kinds.mapping.faults:run_faults"),
    "profile": ("kinds.assignment.options:ProfileOptions", "kinds.assignment.profile:run_profile"),
    "train m1": ("kinds.mapping.options:TrainM1Options", "kinds.mapping.train:run_train_m1"),
    "train m5": ("kinds.pipeline.options:TrainM5Options", "kinds.pipeline.train:run_train_m5"),
    "train duals": ("kinds.mapping.options:TrainDualsOptions", "kinds.mapping.train:run_train_duals"),
}

#: What compiles kernels ahead of time, beside the engines for mapping: ``module:function`` below ``nmsolve`` by name. Each gets
#: what repeats a run that still compiles, and returns what it did.
WARM = {
    "assignments": "kinds.assignment.warm:warm_assignment",
    "files": "kinds.mapping.warm_files:warm_files",
    "free routes": "kinds.mapping.warm:warm_free_routes",
    "pipelines": "kinds.pipeline.warm:warm_pipeline",
    "routing": "kinds.routing.warm:warm_routing",
    "schedules": "kinds.schedule.warm:warm_schedule",
    "simulation": "kinds.simulation.warm:warm_simulation",
}
#: The same of engines: their table, and what compiles the kernels of one, whose name it gets first.
WARM_ENGINES = ("solvers.mapping.registry:REGISTRY", "kinds.mapping.warm:warm_engine")
#: Compiles what checks and scores the answers of every engine: done before what would compile it too, at the same time.
WARM_FIRST = "first-fit"
#: What hardly needs those kernels: begun with it.
WARM_APART = ("pipelines", "simulation", "schedules")
#: What takes longest to compile of all the others: begun first.
WARM_SLOW = (
    "external", "routing", "multilevel", "nets", "branch-bound", "assignments", "spread", "anneal", "files",
    "free routes",
)  # fmt: skip
#: Engines of other tools, which benchmarks compare with: a module below ``nmsolve``.
OTHER_TOOLS = "heuristics.mapping.published.backends.peers"


def listed(names: Iterable[str]) -> str:
    """Return names in a row: ``a, b or c``."""
    *most, last = names
    return f"{', '.join(most)} or {last}"


def kind(name: str) -> Kind:
    """Return the kind of problem of a command."""
    found: Kind = import_module(f"nmsolve.kinds.{FOLDERS[name]}.kind").KIND
    return found


def options_of(name: str) -> Any:
    """Return the module of a kind's options, which loads nothing heavy.

    It has ``OPTIONS`` of the command, ``EXPLAIN`` of ``nmsolve explain``, ``OBJECTIVE_TABLE``, ``BENCHED`` (what instances are)
    and, where its machines are no chips, ``MACHINES`` (what lists their presets).
    """
    return import_module(f"nmsolve.kinds.{FOLDERS[name]}.options")


def kinds() -> Iterator[Kind]:
    """Yield every kind, mappings last."""
    return map(kind, ASKED)


def bench(name: str) -> Bench:
    """Return how problems of a command are benchmarked."""
    found: Bench = named(BENCHES[name])
    return found


def kind_of(path: Path, source: Path | None = None) -> tuple[Kind, Path]:
    """Return of which kind the answer is that ``path``, a file or the folder of a run, is about, and its file.

    ``source`` : the file of the problem, which tells of which kind a file of any name is
    """
    return next((one, found) for one in kinds() if (found := one.answer_of(path, source)) is not None)


def run_command(name: str, o: Any) -> int:
    """Run the command of a kind with its options; return the exit code."""
    return kind(name).run(o)
