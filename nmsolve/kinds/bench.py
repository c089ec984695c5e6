"""What a benchmark has to know of a kind of problem: how it is stated, run and checked, and which suites there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.model.bound import Result

#: Instances that are shipped.
INSTANCES = Path(__file__).parents[1] / "benchmarks" / "instances"
#: Checks of an answer, and the names of those that were left out for lack of time.
Checked = tuple[list["CheckPart"], list[str]]
#: Writes the files of a generated instance, whose names begin with this path; returns the options that state it.
Maker = Callable[[Path], Mapping[str, Any]]


def in_time(time: TimeLeft, what: str, checks: Callable[[], list[CheckPart]]) -> Checked:
    """Return checks of an answer; none if no time is left for them, with ``what`` was not checked."""
    from nmsolve.kinds.time_left import CHECKS, OutOfTime

    try:
        return time.optional(checks, CHECKS), []
    except OutOfTime:
        return [], [what]


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
    check: Callable[[Result[Any], TimeLeft], Checked]
    constant: float = 0.0


@dataclass(frozen=True)
class Bench:
    """How a kind of problem is benchmarked.

    Attributes
    ----------
    state : makes :class:`Stated`; its parameters are the options of an instance, the first the file
    registry : path of the table of engines, ``module:name`` below ``nmsolve``
    suites : of every built-in suite instance -> :data:`Maker`, or the folder of its files
    is_instance : whether a file or folder beside others is an instance
    """

    state: Callable[..., Stated]
    registry: str
    suites: Mapping[str, Mapping[str, Maker] | Path]
    is_instance: Callable[[Path], bool] = lambda path: False

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The options of an instance."""
        return signature(self.state).parameters

    def load(self, options: Mapping[str, Any]) -> Stated:
        """Return the problem that ``options`` state; text is converted to what they take.

        Raises
        ------
        InputError : unknown options, wrong values or files, a problem that cannot be stated
        """
        types, given = get_type_hints(self.state, include_extras=True), {}
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
        return self.state(**given)
