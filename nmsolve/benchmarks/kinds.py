"""What a benchmark has to know of a problem: how it is stated, run and checked, and which suites there are. One record each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from nmsolve.model.errors import InputError
from nmsolve.model.formats import extensions
from nmsolve.model.lookup import named

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.report import CheckPart
    from nmsolve.kinds.patience import Patience
    from nmsolve.model.bound import Result

#: Checks of an answer, and the names of those that were left out for lack of time.
Checked = tuple[list["CheckPart"], list[str]]
#: Writes the files of a generated instance, whose names begin with this path; returns the options that state it.
Maker = Callable[[Path], Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Stated:
    """A problem that is ready to be run.

    Attributes
    ----------
    problem : as engines see it, to ask whether they refuse it
    hash : of its content
    objective : what is minimised, a number >= 0
    sizes : for the table of instances, by word: ``{"nodes": 64, "cores": 16}``
    solve : takes ``time_limit``, ``started``, ``seed``, ``engines`` and ``workers`` by name
    check : checks a result by code that did not find it
    constant : part of best known values that no solution changes
    """

    problem: Any
    hash: str
    objective: str
    sizes: Mapping[str, int]
    solve: Callable[..., Result[Any]]
    check: Callable[[Result[Any], Patience], Checked]
    constant: float = 0.0


@dataclass(frozen=True)
class Kind:
    """A kind of problem. Paths are ``module:name`` below ``nmsolve``.

    Attributes
    ----------
    state : path of the function that makes :class:`Stated`; its parameters are the options of an instance, the first the file
    registry : path of the table of engines
    suites : path of the table of every built-in suite, instance -> :data:`Maker`; a folder's name where files are shipped
    is_instance : whether a file or folder beside others is an instance
    """

    state: str
    registry: str
    suites: Mapping[str, str]
    is_instance: Callable[[Path], bool] = lambda path: False

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The options of an instance."""
        return signature(named(self.state)).parameters

    def load(self, options: Mapping[str, Any]) -> Stated:
        """Return the problem that ``options`` state; text is converted to what they take.

        Raises
        ------
        InputError : unknown options, wrong values or files, a problem that cannot be stated
        """
        types, given = get_type_hints(named(self.state), include_extras=True), {}
        for name, value in options.items():
            if name not in self.parameters:
                known = ", ".join(list(self.parameters)[1:])
                raise InputError(f"this problem has no option {name!r}", "--set", f"one of {known}")
            try:
                given[name] = msgspec.convert(value, types[name], strict=False, dec_hook=lambda to, v: to(v))
            except msgspec.ValidationError as error:
                raise InputError(
                    f"{name} is {value!r}", "--set", str(error).removeprefix("Expected ")
                ) from None
        found: Stated = named(self.state)(**given)
        return found


#: By the name of the command that solves such problems.
KINDS: dict[str, Kind] = {
    "map": Kind(
        "benchmarks.mappings:state", "solvers.mapping.registry:REGISTRY",
        {"qaplib": "instances", "mesh": "benchmarks.mappings:MESH", "snn": "benchmarks.mappings:SNN",
         "peers": "benchmarks.mappings:PEERS"},
        lambda path: path.suffix.lower() in extensions() and path.is_file(),
    ),
    "route": Kind(
        "benchmarks.routes:state", "solvers.routing.registry:REGISTRY", {"routes": "benchmarks.routes:ROUTES"},
        lambda path: (path / "mapping.json").is_file(),
    ),
    "pipeline": Kind(
        "benchmarks.pipelines:state", "solvers.pipeline.registry:REGISTRY",
        {"pipelines": "benchmarks.pipelines:PIPELINES"},
        lambda path: path.suffix.lower() in (".onnx", ".json") and path.is_file(),
    ),
    "assign": Kind(
        "benchmarks.assignments:state", "solvers.assignment.registry:REGISTRY",
        {"assignments": "benchmarks.assignments:ASSIGNMENTS"},
        lambda path: path.is_file() and (path.name.endswith((".onnx", ".json.gz")) or "iopddl" in path.name),
    ),
    "schedule": Kind(
        "benchmarks.schedules:state", "solvers.schedule.registry:REGISTRY", {"schedules": "benchmarks.schedules:SCHEDULES"},
        lambda path: path.suffix.lower() in (".json", ".sm", ".mm", ".rcp", ".fjs", ".txt") and path.is_file(),
    ),
}  # fmt: skip
