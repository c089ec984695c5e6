"""Kinds whose problem is stated by files and options alone: one way to run, write, draw and continue them."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import (
    BETTER,
    FRONT_FILES,
    Answer,
    as_json,
    event_lines,
    explained,
    finish,
    prepare_folder,
    write_models,
)
from nmsolve.kinds.earlier import stated_options
from nmsolve.kinds.kind import OF_GRAPHS, Kind, Pictures, Start, refuse, refuse_of_mappings
from nmsolve.kinds.loading import POINT, inputs_of, read_object, require_types
from nmsolve.kinds.patience import LONG_PAGE, OutOfTime, Patience, search_time
from nmsolve.kinds.progress import watching
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run, require_one_run
from nmsolve.model.lookup import named

if TYPE_CHECKING:
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.mapping.options import DrawOptions, GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.kinds.mapping.report import CheckPart
    from nmsolve.model.bound import Bound, Result, Stage
    from nmsolve.solvers.bounding import Bounded
    from nmsolve.solvers.multi_objective import Objectives
    from nmsolve.solvers.run import Options

FRONT = "pareto.json"
#: Takes the report of a run each time that more is known.
Keep = Callable[[Any], None]


class Asked(NamedTuple):
    """What the options of a command ask for.

    Attributes
    ----------
    inputs : what states the problem, as its report keeps it
    names : objectives, in order; empty: the problem's own
    front : the two objectives of a front, or None
    """

    inputs: Any
    names: tuple[str, ...] = ()
    front: tuple[str, str] | None = None


class Searched(NamedTuple):
    """What a search found.

    Attributes
    ----------
    given, inputs : the problem that the result is about, and what states it
    earlier : of several objectives in order, the problems that were solved before
    better : where a given answer was kept, a better one met on the way, or None
    """

    given: Any
    inputs: Any
    result: Result[Any]
    earlier: Sequence[Stage] = ()
    better: Any = None


class StatedKind(Kind):
    """A kind whose problem is stated by files and options: routes, pipelines, assignments, schedules.

    What is stated, ``given``, has the ``problem`` and what it was made from.

    Attributes
    ----------
    inputs : the struct that states a problem, ``inputs`` of reports
    source : which of its fields names the file
    page : name of the page
    reports : where the struct of its reports is, ``module:name`` below ``nmsolve``
    units : of objectives, where they have any
    free : methods of which a recomputed bound holds under all ceilings
    unchecked : what a report names before the checks are done
    both : the objectives of a front from Python if none are named
    no_gap : options of ``nmsolve gap`` that are for other kinds
    """

    inputs: ClassVar[type[msgspec.Struct]]
    source: ClassVar[str]
    page: ClassVar[str] = "report.html"
    report: ClassVar[str] = "report.json"
    units: ClassVar[Mapping[str, str]] = {}
    reports: ClassVar[str]
    unchecked: ClassVar[Sequence[str]]
    both: ClassVar[str]
    no_gap: ClassVar[Sequence[str]] = OF_GRAPHS

    # what a kind says of itself

    @property
    def free(self) -> Collection[str]:
        """Methods of which a recomputed bound holds under all ceilings."""
        return ()

    @property
    def shape(self) -> type[msgspec.Struct]:
        """The struct of its reports."""
        found: type[msgspec.Struct] = named(self.reports)
        return found

    @abstractmethod
    def asked(self, o: Any, stays: bool) -> Asked:
        """Return what options ask for; ``stays``: a given answer is kept. InputError for what does not belong together."""

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
    def write_solution(self, path: Path, given: Any, solution: Any) -> None:
        """Write the file of an answer."""

    @abstractmethod
    def models(self, given: Any) -> tuple[Any, Any]:
        """Return the exact models of ``--write-model``."""

    @abstractmethod
    def solve(self, problem: Any, **how: Any) -> Result[Any]:
        """Search for the best answer."""

    @abstractmethod
    def bound(self, problem: Any, solution: Any, **how: Any) -> Bounded[Any]:
        """Raise the bound of an answer."""

    @abstractmethod
    def objectives(
        self, given: Any, options: Options, first: Any, known: tuple[Bound, ...] = ()
    ) -> Objectives[Any]:
        """Return what can be minimised, for fronts and for objectives in order."""

    @abstractmethod
    def front(self, given: Any) -> FrontKind:
        """Return how points of a front are written and checked."""

    @abstractmethod
    def build_report(
        self, o: Any, given: Any, result: Result[Any], inputs: dict[str, Any], left: Sequence[str]
    ) -> Any:
        """Return the report before any check; ``left``: what is not checked."""

    @abstractmethod
    def complete(
        self, o: Any, given: Any, result: Result[Any], report: Any, patience: Patience, keep: Keep
    ) -> None:
        """Check the answer and do what else takes time; ``keep`` each report that says more than the one before."""

    @abstractmethod
    def render(self, given: Any, result: Result[Any], report: Any, command: str, plain: bool) -> str:
        """Return the page; ``command`` checks what is shown."""

    @abstractmethod
    def words(self, report: Any) -> Iterator[str]:
        """Yield what the report says, for people."""

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

    def require(self, o: Any, given: Any, asked: Asked) -> None:
        """Refuse early what must not wait for the end of the search."""

    def beside(self, o: Any, folder: Path, given: Any, result: Result[Any], report: Any) -> None:
        """Write files for other tools, as far as they were asked for, with the answer."""

    def after(self, o: Any, given: Any, result: Result[Any], run: str, patience: Patience, code: int) -> int:
        """Do what comes after the answer ``run`` has its files, e.g. remember it; return the exit code."""
        return code

    def search_time(self, o: Any, limit: float) -> float:
        """Return seconds of a limit that are for searching."""
        return search_time(limit, LONG_PAGE)

    def refined(self, o: Any, given: Any, result: Result[Any], patience: Patience) -> Result[Any]:
        """Return the result of a search, improved for what the search does not know."""
        return result

    def recorded(self, o: Any, given: Any, inputs: Any) -> Any:
        """Return the inputs as the report in the output folder keeps them."""
        return inputs

    def alone(self, o: Any) -> bool:
        """Return whether the output folder is this run's own."""
        return True

    def rows(self, result: Result[Any]) -> Sequence[tuple[str, Bound]]:
        """Return the bounds of a result as certificates have them: with the name of the objective, "" if the problem has one."""
        return [("", bound) for bound in result.bounds]

    def known(self, rows: Sequence[tuple[str, Bound]]) -> Any:
        """Return such bounds of an earlier run as a search takes them."""
        return [bound for _, bound in rows]

    @property
    def of_models(self) -> str:
        """Name of the files of ``--write-model``, before their endings."""
        return self.name

    @property
    def none(self) -> str:
        """What is not there where a problem is proved infeasible."""
        return f"{self.noun} exists"

    # what follows from these

    def run(self, o: Any, start: Start | None = None) -> int:
        """Run the command; see :meth:`Kind.run`."""
        limit, how = opt.seconds(o.time_limit), opt.search(o)
        stays = start is not None and start.stays
        asked = self.asked(o, stays)
        with explained(self.name):
            given = self.loaded(o, asked.inputs)
            self.require(o, given, asked)
        first, known = self._first(o, start, given)
        for warning in getattr(getattr(given, "graph", None), "warnings", ()):
            print(f"warning: {warning}", file=sys.stderr)
        prepare_folder(o.out, (*self.files, *FRONT_FILES), o)
        inputs = self.recorded(o, given, asked.inputs)
        if o.write_model is not None:
            with explained(self.name):
                write_models(self.of_models, lambda: self.models(given), o.write_model)
        with Patience(clock.end(limit)) as patience:
            if asked.front is not None:
                return self._front(o, asked.front, given, inputs, first, patience)
            run, seconds = new_run(), self.search_time(o, limit)
            keep = partial(self.write_unchecked, o, given, inputs, run)  # of several in order the first
            with watching(o.json, self._units(asked, given), o.out) as observers, explained(self.name):
                told = {"observers": observers, "known": known, "keep": keep, **how}
                found = self.search(given, inputs, asked, first, stays, seconds, told)
            given, inputs, result, earlier, better = found
            if better is None:
                result = self.refined(o, given, result, patience)
            report = self.write(o, given, result, inputs, patience, run, earlier, better)
            words, files = self.words(report), (self.page, self.report)
            code = finish(o, result, report, words, files, self.name, self.none)
            return self.after(o, given, result, run, patience, code)

    def _units(self, asked: Asked, given: Any) -> Sequence[str]:
        return [self.units[name] for name in asked.names if name in self.units]

    def _first(self, o: Any, start: Start | None, given: Any) -> tuple[Any, Any]:
        """Return the answer to begin with, and what an earlier run proved of this problem."""
        path = o.warm_start if start is None else start.answer
        if path is None:
            return None, self.known(())
        first = self.read(path / self.answer if path.is_dir() else path, given)
        about = given.problem.content_hash
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

    def _front(
        self, o: Any, names: tuple[str, str], given: Any, inputs: Any, first: Any, patience: Patience
    ) -> int:
        """Compute the front of two objectives; return the exit code."""
        from nmsolve.kinds.pareto import run_front
        from nmsolve.solvers.run import Options

        objectives = self.objectives(given, Options(**opt.search(o)), first)
        limit = opt.seconds(o.time_limit)
        return run_front(
            o, self.front(given), objectives, names, limit, patience, msgspec.to_builtins(inputs)
        )

    # files

    def write(
        self, o: Any, given: Any, result: Result[Any], inputs: Any, patience: Patience, run: str,
        earlier: Sequence[Stage] = (), better: Any = None,
    ) -> Any:  # fmt: skip
        """Write answer, certificates, events and report, then what :meth:`complete` finds, and the page; return the report.

        Once ``patience`` is lost, checks and pictures that are not done are left out. The files are signed ``run``.
        """
        report = self.write_unchecked(o, given, inputs, run, result, earlier, better)
        with Answer(o.out, self.files, run, alone=self.alone(o)).added() as files:

            def keep(more: Any) -> None:
                nonlocal report
                report = more
                files[self.report] = as_json(report)

            with suppress(OutOfTime):
                self.complete(o, given, result, report, patience, keep)
            command = f"nmsolve verify {o.out} --bound"
            files[self.page] = patience.page(lambda: self.render(given, result, report, command, o.plain))
        return report

    def write_unchecked(
        self, o: Any, given: Any, inputs: Any, run: str, result: Result[Any], earlier: Sequence[Stage] = (),
        better: Any = None,
    ) -> Any:  # fmt: skip
        """Write answer, certificates, events and a report that says what is not checked yet; return the report."""
        from nmsolve.check.certificates import certificates_text
        from nmsolve.model.files import write_atomic

        solution = result.solution
        with Answer(o.out, self.files, run, alone=self.alone(o)).found() as folder:
            if solution is not None:
                self.write_solution(folder / self.answer, given, solution)
            if better is not None:
                self.write_solution(folder / BETTER, given, better)
            left = [] if solution is None else self.unchecked
            report = self.build_report(o, given, result, msgspec.to_builtins(inputs), left)
            self.beside(o, folder, given, result, report)
            proofs = certificates_text(given.problem.content_hash, self.rows(result), earlier, self.free)
            write_atomic(folder / self.proofs, proofs)
            write_atomic(folder / "events.jsonl", event_lines(result.events))
            write_atomic(folder / self.report, as_json(report))
        return report

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
        """Raise the bound of an answer, of a run or of another tool; options that are given go before those of the report."""
        self._refuse(o, self.no_gap)
        told = msgspec.to_builtins(self.inputs_for(path, o))
        search = ("time_limit", "gap", "seed", "workers", "cluster", "engines", "memory", "out", "json")
        given = {k: getattr(o, k) for k in search} | {"strict": o.strict or None}
        options = stated_options(self, told, given, path)
        return self.run(options, Start(path, stays=True))

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
        from nmsolve.kinds.rewritten import inputs_again

        return inputs_again({"inputs": inputs}, self.read_inputs(path)[1]), ("strict",)
