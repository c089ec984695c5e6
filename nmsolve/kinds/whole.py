"""Kinds whose objectives are whole numbers, and whose answers are checked from their own files alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from nmsolve.kinds.kind import OF_GRAPHS, Scores, refuse_of_mappings
from nmsolve.kinds.run import Asked, Searched
from nmsolve.kinds.stated import StatedKind
from nmsolve.model.errors import InputError
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.check_fields import Again
    from nmsolve.kinds.check_whole import FileChecks
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.verbs import ScoreOptions, VerifyOptions
    from nmsolve.model.bound import Bound, Result, Stage


class WholeKind(StatedKind):
    """A stated kind whose objectives are whole numbers: pipelines, assignments, schedules.

    Attributes
    ----------
    no_score : options of ``nmsolve score`` that are for other kinds
    """

    no_score: ClassVar[Sequence[str]] = OF_GRAPHS

    # what a kind says of itself

    @abstractmethod
    def restated(self, given: Any, stage: Stage) -> Any:
        """Return the same with a stage's objective and ceilings."""

    @abstractmethod
    def file_checks(
        self, path: Path, report: dict[str, Any], given: Any, inputs: Any, o: VerifyOptions
    ) -> FileChecks:
        """Check the answer of a run, what the ``report`` says of it, and its bounds. InputError for a file of something else."""

    @abstractmethod
    def rewritten(
        self, report: Mapping[str, Any], given: Any, inputs: Any, solution: Any, values: Mapping[str, float],
        bounds: Sequence[Bound] | None,
    ) -> Again:  # fmt: skip
        """Return the report written again; ``values``: objectives as recomputed, ``bounds``: None where these are not read."""

    def shown(self, name: str, value: float) -> str:
        """Return what stands behind the value of an objective on the terminal."""
        return self.units.get(name, "")

    # what follows from these

    def search(
        self, given: Any, inputs: Any, asked: Asked, first: Any, stays: bool, seconds: float, how: dict[str, Any]
    ) -> Searched:  # fmt: skip
        """Return what was found; several objectives are minimised in order."""
        if len(asked.names) > 1:
            return Searched(*self.in_order(given, inputs, asked.names, first, seconds, how))
        return super().search(given, inputs, asked, first, stays, seconds, how)

    def in_order(
        self, given: Any, inputs: Any, names: Sequence[str], first: Any, seconds: float, how: Mapping[str, Any],
        say: Callable[[str], None] | None = None,
    ) -> tuple[Any, Any, Result[Any], Sequence[Stage]]:  # fmt: skip
        """Minimise several objectives in order: problem, inputs and result are those of the last, with the stages before.

        ``say`` is told what each came to; standard error if not given. ``inputs`` may be None.
        """
        from nmsolve.kinds.in_order import run_in_order, to_errors
        from nmsolve.solvers.run import Options

        options, known = {k: v for k, v in how.items() if k != "known"}, tuple(how.get("known", ()))
        objectives = self.objectives(given, Options(**options), first, known)
        inputs, stage, result, earlier = run_in_order(
            objectives, inputs, names, seconds, self.units, say or to_errors
        )
        return self.restated(given, stage), inputs, result, earlier

    def inputs_with(self, path: Path, named: Mapping[str, Any], what: str, wanted: str) -> tuple[Any, bool]:
        """Return the inputs of the report beside an answer, but for those that are ``named`` with a value; and whether the
        objective is another one than there.

        Raises
        ------
        InputError : there is neither a report nor the file of the problem, ``what``
        """
        stated = {k: v for k, v in named.items() if v is not None}
        beside = self.stated_beside(path)
        if beside is not None:
            inputs = self.read_inputs(beside)[1]
            other = stated.get("objective", inputs.objective) != inputs.objective
            return msgspec.structs.replace(inputs, **stated, **({"before": ()} if other else {})), other
        if self.source not in stated:
            raise InputError(
                f"no {what} given", str(path), f"--graph {wanted}, or a report.json beside the {self.noun}"
            )
        return self.inputs(**stated), True

    def score(self, path: Path, o: ScoreOptions) -> Scores:
        """Return every objective of an answer; see :meth:`Kind.score`."""
        self._refuse(o, self.no_score)
        given = self.state(self.inputs_for(path, o))
        checks, values = self.answer_checks(given, self.read(path, given), None, {})
        if not values:
            raise InputError(f"the {self.noun} breaks a rule: {checks[0].text}", str(path), "a legal one")
        row: dict[str, Any] = {"type": "scores", "graph": given.problem.name, "scores": values}
        machine = getattr(given, "machine", None)
        if machine is not None:
            row["machine"] = machine if isinstance(machine, str) else machine.name
        return Scores(
            row, [f"{k:16} {number(v):>24}   {self.shown(k, v)}".rstrip() for k, v in values.items()]
        )

    def verify(self, path: Path, o: VerifyOptions) -> list[CheckPart]:
        """Return every check of an answer where its files are; ``--graph`` says where the problem's file is now."""
        from nmsolve.kinds.check_whole import whole_checks

        refuse_of_mappings(path, o)
        report, inputs = self.run_at(path)
        given = self.state(self._moved(inputs, o.graph))
        found = self.file_checks(path, report, given, inputs, o)
        if not found.values:
            return found.checks
        again = self.rewritten(report, given, inputs, found.solution, found.values, found.bounds)
        write = partial(self._write_at, given, found.solution)
        return found.checks + whole_checks(path, report, again, write, self.files, found, o.graph)

    def _write_at(self, given: Any, solution: Any, path: Path) -> None:
        self.write_solution(path, given, solution)
