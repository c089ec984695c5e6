"""Kinds whose problem is stated by files and options alone, as the reports of their answers say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from nmsolve.kinds.answer import BETTER
from nmsolve.kinds.earlier import stated_options
from nmsolve.kinds.kind import OF_GRAPHS, Pictures, Start, refuse, refuse_of_mappings
from nmsolve.kinds.loading import POINT, Held, inputs_of, read_object, require_types
from nmsolve.kinds.run import Asked, RunKind, Searched
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run
from nmsolve.model.lookup import named

if TYPE_CHECKING:
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.verbs import DrawOptions, GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.model.bound import Bound, Result
    from nmsolve.solvers.bounding import Bounded

FRONT = "pareto.json"


class StatedKind(RunKind):
    """A kind whose problem is stated by files and options: routes, pipelines, assignments, schedules.

    Attributes
    ----------
    inputs : the struct that states a problem, ``inputs`` of reports
    source : which of its fields names the file
    reports : where the struct of its reports is, ``module:name`` below ``nmsolve``
    both : the objectives of a front from Python if none are named
    no_gap : options of ``nmsolve gap`` that are for other kinds
    """

    inputs: ClassVar[type[msgspec.Struct]]
    source: ClassVar[str]
    reports: ClassVar[str]
    both: ClassVar[str]
    no_gap: ClassVar[Sequence[str]] = OF_GRAPHS

    # what a kind says of itself

    @property
    def shape(self) -> type[msgspec.Struct]:
        """The struct of its reports."""
        found: type[msgspec.Struct] = named(self.reports)
        return found

    def objectives_in(self, text: str, option: str = "--objective") -> tuple[str, ...]:
        """Return objectives in order. InputError for a name that is unknown, or there twice."""
        from nmsolve.kinds.registry import options_of
        from nmsolve.solvers.multi_objective import objective_names

        return objective_names(text, named(options_of(self.name).OBJECTIVE_TABLE), option)

    def front_names(self, o: Any, option: str = "--pareto") -> tuple[str, str]:
        """Return the two objectives of a front. InputError for others, or options that a front does not take."""
        from nmsolve.kinds.pareto import require_front

        return require_front(o, self.objectives_in(o.pareto or "", option))

    def on_front(self, given: Any, inputs: Any, names: tuple[str, str]) -> tuple[Any, Any]:
        """Return a stated problem and its ``inputs`` (or None) as a front of two objectives has them.

        Raises
        ------
        InputError : it has no such front
        """
        return given, inputs

    def front_options(self, both: str, points: int) -> Any:
        """Return options of a front and nothing else, to be looked at."""
        return self.options(Path(), pareto=both, points=points)

    @abstractmethod
    def state(self, inputs: Any) -> Any:
        """Load the files and state the problem. InputError for a wrong file or options that do not belong together."""

    @abstractmethod
    def is_source(self, path: Path) -> bool:
        """Return whether a file states problems of this kind and of no other."""

    @abstractmethod
    def read(self, path: Path, given: Any) -> Any:
        """Return the answer in a file, whatever objective and limits it was made for. InputError for any other file."""

    @abstractmethod
    def solve(self, problem: Any, **how: Any) -> Result[Any]:
        """Search for the best answer."""

    @abstractmethod
    def bound(self, problem: Any, solution: Any, **how: Any) -> Bounded[Any]:
        """Raise the bound of an answer."""

    @abstractmethod
    def drawings(self, given: Any, solution: Any, report: Any) -> Mapping[str, tuple[Any, tuple[Any, ...]]]:
        """Return what a page draws of an answer: by name, a drawing and its arguments."""

    @abstractmethod
    def answer_checks(
        self, given: Any, solution: Any, objective: object, scores: Mapping[str, Any]
    ) -> tuple[list[CheckPart], dict[str, float]]:
        """Check rules and objectives against what is said of them; the objectives as recomputed, none if a rule is broken."""

    @abstractmethod
    def inputs_for(self, path: Path, o: ScoreOptions | GapOptions) -> Any:
        """Return what states the problem of an answer: the report beside it, but for what options say. InputError without any."""

    # what only some kinds have

    def loaded(self, o: Any, inputs: Any) -> Any:
        """Return the stated problem of a run: options say how much of it may be in memory."""
        return self.state(inputs)

    def known(self, rows: Sequence[tuple[str, Bound]]) -> Any:
        """Return such bounds of an earlier run as a search takes them."""
        return [bound for _, bound in rows]

    # what follows from these

    def first(self, o: Any, start: Start | None, given: Any) -> tuple[Any, Any]:
        """Return the answer to begin with, and what an earlier run proved of this problem."""
        path = o.warm_start if start is None else start.answer
        if path is None:
            return None, self.known(())
        first = self.read(path / self.answer if path.is_dir() else path, given)
        about = self.about(given)
        return first, self.known(() if start is None else start.known(self.proofs, about))

    def search(
        self, given: Any, inputs: Any, asked: Asked, first: Any, stays: bool, seconds: float, how: dict[str, Any]
    ) -> Searched:  # fmt: skip
        """Return the best answer, or with ``stays`` the first one with its bound and a better one met on the way."""
        if not stays or first is None:
            result = self.solve(given.problem, time_limit=seconds, warm_start=first, **how)
            return Searched(given, inputs, result)
        found = self.bound(given.problem, first, time_limit=seconds, **how)
        return Searched(given, inputs, found.result, better=found.better)

    def read_inputs(self, report: Path) -> tuple[dict[str, Any], Any]:
        """Return a report, and the part of it that states the problem. InputError for a file of another command."""
        content = read_object(report)
        return content, inputs_of(content, report, self.inputs, self.name)

    def inputs_beside(self, path: Path) -> Any:
        """Return what the report beside an answer, or the front of a point, states. InputError without one, or of another run."""
        beside = self.stated_beside(path) or path.parent / self.report
        if not beside.exists():
            what = f"this is {self.a}, and no {self.report} is beside it"
            raise InputError(what, str(path), f"the output folder of `nmsolve {self.name}`")
        require_one_run(path.parent, [path.name, beside.name, self.proofs])
        return self.read_inputs(beside)[1]

    def is_run(self, folder: Path) -> bool:
        """Return whether a folder holds what the command wrote for one answer."""
        report = folder / self.report
        if self.report != StatedKind.report:  # a mapping may be there as well, which the folder is about then
            return report.exists() and not (folder / "mapping.json").exists()
        return self._tells(report) if report.exists() else (folder / self.answer).exists()

    def _tells(self, beside: Path) -> bool:
        """Return whether a report or a pareto.json is what this command wrote."""
        if beside.name == self.report != StatedKind.report:
            return self.is_run(beside.parent)
        return bool(read_object(beside).get("command") == self.name)

    def answer_of(self, path: Path, source: Path | None = None) -> Path | None:
        """Return the answer that is meant; see :meth:`Kind.answer_of`."""
        if path.is_dir():
            return path / self.answer if self.is_run(path) else None
        own = path.name == self.answer or self.stated_beside(path) is not None
        return path if own or (source is not None and self.is_source(source)) else None

    def stated_beside(self, path: Path) -> Path | None:
        """Return the file beside an answer that states its problem: the report, of a point of a front pareto.json; or None."""
        point = POINT.fullmatch(path.name) is not None
        beside = path.parent / (FRONT if point else self.report)
        if not (point or path.name in (self.answer, BETTER)) or not beside.exists():
            return None
        return beside if self._tells(beside) else None

    # verbs

    def again(self, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return nothing: options are called as in reports."""
        return {}

    def gap(self, path: Path, o: GapOptions) -> int:
        """Raise the bound of an answer, of a run or of another tool; options that are given go before those of the report.

        Objectives that the run minimised first stay held, with their proofs.
        """
        self._refuse(o, self.no_gap)
        inputs = self.inputs_for(path, o)
        told = msgspec.to_builtins(inputs)
        search = ("time_limit", "gap", "seed", "workers", "cluster", "engines", "memory", "out", "json")
        given = {k: getattr(o, k) for k in search} | {"strict": o.strict or None}
        options = stated_options(self, told, given, path)
        before: tuple[Held, ...] = getattr(inputs, "before", ())
        if not (path.parent / self.proofs).exists():
            before = tuple(Held(b.objective, b.value) for b in before)
        return self.run(options, Start(path, stays=True, before=before))

    def _refuse(self, o: ScoreOptions | GapOptions, names: Sequence[str]) -> None:
        """Refuse options that are for other answers."""
        refuse({f"--{k}": getattr(o, k) for k in names}, "an option for other answers")

    def run_at(self, path: Path) -> tuple[dict[str, Any], Any]:
        """Return the report beside the answer of a run, and its inputs.

        Raises
        ------
        InputError : none is beside it, files of different runs, or a run without an answer
        """
        folder, beside = path.parent, self.stated_beside(path)
        if beside is not None and beside.name == FRONT:
            raise InputError("it is a point of a front", str(path), f"the front, `nmsolve verify {beside}`")
        require_one_run(folder, [self.answer, self.report, self.proofs])
        if not (folder / self.report).exists():
            wanted = f"the output folder of `nmsolve {self.name}`"
            raise InputError(f"no {self.report} beside the {self.noun}", str(folder), wanted)
        report, inputs = self.read_inputs(folder / self.report)
        require_types(report, self.shape, folder / self.report)
        if not path.exists() and report.get("objective") is None:
            what = f"the run found no {self.noun} ({report.get('status')})"
            raise InputError(what, str(path), "a run with one")
        return report, inputs

    def _moved(self, inputs: Any, source: Path | None) -> Any:
        return inputs if source is None else msgspec.structs.replace(inputs, **{self.source: str(source)})

    def pictures(self, path: Path, o: DrawOptions) -> Pictures:
        """Return the pictures of the page of a run."""
        beside = path.parent / self.report
        report, inputs = self.read_inputs(beside)
        given = self.state(inputs)
        try:
            said = msgspec.convert(report, self.shape)
        except msgspec.ValidationError as error:
            what = f"not a report of {self.a} ({error})"
            raise InputError(what, str(beside), "the one of this run") from None
        drawings = self.drawings(given, self.read(path, given), said)
        return {name: partial(draw.figure, *what) for name, (draw, what) in drawings.items()}

    def front_of(self, path: Path, objectives: Sequence[str], first: str, o: VerifyOptions) -> FrontKind:
        """Return the front; see :meth:`Kind.front_of`."""
        refuse_of_mappings(path, o)
        return self.front(self.state(self._moved(self.read_inputs(path)[1], o.graph)))

    def front_inputs(
        self, path: Path, inputs: dict[str, Any], objectives: tuple[str, str]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return those that state the problem."""
        from nmsolve.kinds.check_fields import inputs_again

        return inputs_again({"inputs": inputs}, self.read_inputs(path)[1]), ("strict",)
