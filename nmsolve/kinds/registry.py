"""The kinds of problems, by the names of their commands; each is loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
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

#: What ``nmsolve info`` asks about files that are no graphs: each takes the path and whether JSON is wanted, and returns None if
#: the file is not of its kind; ``module:function`` below ``nmsolve``.
DESCRIBED = ("kinds.pipeline.info:about", "kinds.schedule.info:about")
#: What makes problems that are no graphs, by the name in ``nmsolve generate``: ``module:name`` below ``nmsolve``.
GENERATORS = {
    "tasks": "model.schedule.generate:GENERATOR",
    "assignment": "model.assignment.generate:GENERATOR",
}

#: What compiles kernels ahead of time, beside the engines for mapping: ``module:function`` below ``nmsolve`` by name. Each gets
#: what repeats a run that still compiles, and returns what it did.
WARM = {
    "assignments": "kinds.assignment.warm:warm_assignment",
    "files": "kinds.warm.files:warm_files",
    "free routes": "kinds.mapping.warm:warm_free_routes",
    "pipelines": "kinds.pipeline.warm:warm_pipeline",
    "routing": "kinds.routing.warm:warm_routing",
    "schedules": "kinds.schedule.warm:warm_schedule",
    "simulation": "kinds.simulation.warm:warm_simulation",
}


def kind(name: str) -> Kind:
    """Return the kind of problem of a command."""
    found: Kind = import_module(f"nmsolve.kinds.{FOLDERS[name]}.kind").KIND
    return found


def options_of(name: str) -> Any:
    """Return the module of a kind's options, which loads nothing heavy.

    It has ``OPTIONS`` of the command, ``EXPLAIN`` of ``nmsolve explain``, and ``OBJECTIVE_TABLE``.
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
