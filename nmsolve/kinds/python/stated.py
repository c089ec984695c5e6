"""Answers of problems that a file and options state (:class:`nmsolve.kinds.stated.StatedKind`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from nmsolve.kinds.earlier import stated_options
from nmsolve.kinds.python.answers import Answer, drawn, values_of
from nmsolve.kinds.python.how import left, silent
from nmsolve.kinds.stated import StatedKind
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.kinds.whole import WholeKind
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.report import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.model.bound import Stage
    from nmsolve.solvers.run import RunOptions

S = TypeVar("S")
AnswerT = TypeVar("AnswerT", bound="StatedAnswer[Any]")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class StatedAnswer(Answer[S]):
    """An answer with the problem that was stated for it.

    Attributes
    ----------
    given : the stated problem, and what it was made from
    inputs : what the command is given for the same problem; None if a part of it came as an object
    better : a better answer that :func:`nmsolve.gap` met on its way, else None
    earlier : of several objectives, the problems that were solved before, with their bounds
    """

    kind: ClassVar[StatedKind]
    given: Any
    inputs: Any = None
    better: S | None = None
    earlier: Sequence[Stage] = ()

    @property
    def problem(self) -> Any:
        """The problem that objective and bound are about."""
        return self.given.problem

    @cached_property
    def report(self) -> Any:
        """The object in the report (docs/files.md)."""
        return self.kind.build_report(None, self.given, self, {}, [])

    def bounded(self: AnswerT, how: RunOptions, objective: str | None = None) -> AnswerT:
        """Return this answer with the bounds that a run finds; it stays as it is."""
        if objective is not None:
            raise InputError(
                "what an answer states already", "gap", "the answer, and of a mapping an objective"
            )
        if self.solution is None:
            raise InputError(f"no {self.kind.noun} was found", "gap", f"an answer with {self.kind.a}")
        known = self.kind.known(self.kind.rows(self))
        with TimeLeft():
            found = self.kind.bound(self.problem, self.solution, **how, known=known)
        return replace(self, **values_of(found.result), better=found.better)

    def recomputed(self) -> Mapping[str, float]:
        """Return every objective by name, recomputed; {} without a solution."""
        if self.solution is None:
            return {}
        return self.kind.answer_checks(self.given, self.solution, None, {})[1]

    def stated(self, folder: Path) -> tuple[Any, Any]:
        """Return options and inputs that state the problem for the command; what has no file gets one in ``folder``.

        Raises
        ------
        InputError : a part of the problem has no form as a file
        """
        if self.inputs is None:
            wanted = f"{self.kind.name}(PATH, ...), whose answer can be saved"
            raise InputError("what states the problem came as an object", "save", wanted)
        told = msgspec.to_builtins(self.inputs)
        return stated_options(self.kind, told, {"out": folder}, folder / self.kind.report), self.inputs

    def point(self, solution: Any) -> Any:
        """Return a solution of a front of this problem as users get it."""
        return solution

    def _require_files(self) -> None:
        self.stated(Path())

    def _write(self, folder: Path) -> None:
        """Write what the command writes."""
        o, inputs = self.stated(folder)
        with TimeLeft() as time_left:
            self.kind.write(o, self.given, self, inputs, time_left, new_run(), self.earlier, self.better)

    def plot(self, kind: str = "convergence") -> Figure:
        """Return a picture.

        Parameters
        ----------
        kind : ``convergence``; where there is an answer also the pictures of its page, as ``nmsolve draw`` names them

        Raises
        ------
        InputError : another kind, or nothing to draw
        """
        kinds: dict[str, Any] = {"convergence": partial(pictures.convergence.figure, *self._search())}
        more = {} if self.solution is None else self.kind.drawings(self.given, self.solution, self.report)
        return drawn(kind, kinds, more)

    def _search(self) -> tuple[Any, ...]:
        """Return events, seconds and what is minimised, for the picture of the search."""
        return self.events, self.wall_seconds, self.objective_name


def solved(
    kind: WholeKind, given: Any, inputs: Any, names: Sequence[str], first: Any, how: RunOptions
) -> dict[str, Any]:
    """Search for the best answer, or by several objectives in order. Return the arguments of a :class:`StatedAnswer`."""
    earlier: Sequence[Stage] = ()
    with TimeLeft():
        if len(names) > 1:
            given, inputs, result, earlier = kind.in_order(
                given, inputs, names, first, left(how), how, silent
            )
        else:
            result = kind.solve(given.problem, warm_start=first, **how)
    return {**values_of(result), "given": given, "inputs": inputs, "earlier": earlier}
