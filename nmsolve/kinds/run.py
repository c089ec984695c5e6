"""Kinds whose command makes one search and writes one folder: how it runs, and what it writes."""

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
from nmsolve.kinds.kind import Kind, Start
from nmsolve.kinds.progress import watching
from nmsolve.kinds.time_left import CHECKS, OutOfTime, TimeLeft, search_time
from nmsolve.model.file_set import new_run
from nmsolve.model.stop import MANY_PICTURES, Reserve
from nmsolve.report.figures import amount, below, percent

if TYPE_CHECKING:
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.model.bound import Bound, Result, Stage
    from nmsolve.solvers.multi_objective import Objectives
    from nmsolve.solvers.run import Options

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


class RunKind(Kind):
    """A kind whose command searches once and writes what it found.

    What is stated, ``given``, has the ``problem`` and what it was made from.

    Attributes
    ----------
    units : of objectives, where they have any
    pictures_take : what the pictures of its page take
    """

    units: ClassVar[Mapping[str, str]] = {}
    pictures_take: ClassVar[Reserve] = MANY_PICTURES

    # what a kind says of itself

    @property
    def free(self) -> Collection[str]:
        """Methods of which a recomputed bound holds under all ceilings."""
        return ()

    @property
    @abstractmethod
    def unchecked(self) -> Sequence[str]:
        """What a report names before the checks are done."""

    @abstractmethod
    def asked(self, o: Any, stays: bool) -> Asked:
        """Return what options ask for; ``stays``: a given answer is kept. InputError for what does not belong together."""

    @abstractmethod
    def loaded(self, o: Any, inputs: Any) -> Any:
        """Load the files and state the problem of a run. InputError for a wrong file or options that do not belong together."""

    @abstractmethod
    def first(self, o: Any, start: Start | None, given: Any) -> tuple[Any, Any]:
        """Return the answer to begin with, or None, and what an earlier run proved of this problem."""

    @abstractmethod
    def search(
        self, given: Any, inputs: Any, asked: Asked, first: Any, stays: bool, seconds: float, how: dict[str, Any]
    ) -> Searched:  # fmt: skip
        """Return the best answer, or with ``stays`` the first one with its bound and a better one met on the way."""

    @abstractmethod
    def write_solution(self, path: Path, given: Any, solution: Any) -> None:
        """Write the file of an answer."""

    @abstractmethod
    def models(self, given: Any) -> tuple[Any, Any]:
        """Return the exact models of ``--write-model``."""

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
        self, o: Any, given: Any, result: Result[Any], report: Any, time_left: TimeLeft, keep: Keep
    ) -> None:
        """Check the answer and do what else takes time; ``keep`` each report that says more than the one before."""

    @abstractmethod
    def render(self, given: Any, result: Result[Any], report: Any, command: str, plain: bool) -> str:
        """Return the page; ``command`` checks what is shown."""

    @abstractmethod
    def words(self, report: Any) -> Iterator[str]:
        """Yield what the report says, for people."""

    # what only some kinds have

    def require(self, o: Any, given: Any, asked: Asked) -> None:
        """Refuse early what must not wait for the end of the search."""

    def beside(self, o: Any, folder: Path, given: Any, result: Result[Any], report: Any) -> None:
        """Write files for other tools, as far as they were asked for, with the answer."""

    def after(self, o: Any, given: Any, result: Result[Any], run: str, time_left: TimeLeft, code: int) -> int:
        """Do what comes after the answer ``run`` has its files, e.g. remember it; return the exit code."""
        return code

    def files_take(self, given: Any) -> float:
        """Return CPU seconds that the files of an answer take which nothing can cut short, beyond what the search measures."""
        return 0.0

    def search_time(self, o: Any, given: Any, limit: float) -> float:
        """Return seconds of a limit that are for searching."""
        return search_time(limit, self.pictures_take, self.files_take(given))

    def refined(self, o: Any, found: Searched, time_left: TimeLeft) -> Searched:
        """Return what a search found, improved for what the search does not know."""
        return found

    def recorded(self, o: Any, given: Any, inputs: Any) -> Any:
        """Return the inputs as the report in the output folder keeps them."""
        return inputs

    def alone(self, o: Any) -> bool:
        """Return whether the output folder is this run's own."""
        return True

    def rows(self, result: Result[Any]) -> Sequence[tuple[str, Bound]]:
        """Return the bounds of a result as certificates have them: with the name of the objective, "" if the problem has one."""
        return [("", bound) for bound in result.bounds]

    @property
    def of_models(self) -> str:
        """Name of the files of ``--write-model``, before their endings."""
        return self.name

    @property
    def explain(self) -> str | None:
        """The words after ``nmsolve explain`` for problems like this; None: what states the problem refers to it."""
        return self.name

    def about(self, given: Any) -> str:
        """Return the hash of the problem, by which certificates name it."""
        found: str = given.problem.content_hash
        return found

    def none(self, given: Any) -> str:
        """Return what is not there where a problem is proved infeasible; "": say nothing of it."""
        return f"{self.noun} exists"

    def two_sides(self, result: Result[Any]) -> str:
        """Return what was found beside a given answer and what no answer can beat, in a sentence."""
        name, value, better = result.objective_name, result.objective, result.better_objective
        if better is None or value is None or better >= value:
            return f"{self.a.capitalize()} as good in {name}, and better in what comes next, was found ({BETTER})."
        unit = self.units.get(name, "")
        most = (
            ""
            if result.bound is None
            else f"; no {self.noun} is below {below(min(result.bound, better), unit)}"
        )
        change = f" (-{percent((value - better) / abs(value))})" if value else ""
        return f"{self.a.capitalize()} with {name} {amount(better, unit)}{change} was found ({BETTER}){most}."

    # what follows from these

    def run(self, o: Any, start: Start | None = None) -> int:
        """Run the command; see :meth:`Kind.run`."""
        opt.search(o)  # refuses wrong options before anything is read
        stays = start is not None and start.stays
        asked = self.asked(o, stays)
        with explained(self.explain):
            if start is not None and start.before:
                asked = asked._replace(inputs=msgspec.structs.replace(asked.inputs, before=start.before))
            given = self.loaded(o, asked.inputs)
            self.require(o, given, asked)
        first, known = self.first(o, start, given)
        for warning in getattr(getattr(given, "graph", None), "warnings", ()):
            print(f"warning: {warning}", file=sys.stderr)
        inputs = self.recorded(o, given, asked.inputs)
        held = () if start is None else start.stages(self.proofs)
        return self.search_stated(o, asked, given, inputs, first, known, stays, held)

    def search_stated(
        self, o: Any, asked: Asked, given: Any, inputs: Any, first: Any, known: Any, stays: bool,
        held: Sequence[Stage] = (),
    ) -> int:  # fmt: skip
        """Search a stated problem from ``first``, write what was found and say it; return the exit code.

        Parameters
        ----------
        inputs : as the report keeps them
        known : bounds from before
        stays : only bounds of ``first`` are raised
        held : problems of an earlier run whose objectives are held here, with their bounds
        """
        limit, how = opt.seconds(o.time_limit), opt.search(o)
        prepare_folder(o.out, (*self.files, *FRONT_FILES), o)
        if o.write_model is not None:
            with explained(self.explain):
                write_models(self.of_models, lambda: self.models(given), o.write_model)
        with TimeLeft(clock.end(limit)) as time_left:
            if asked.front is not None:
                return self._front(o, asked.front, given, inputs, first, time_left)
            run, seconds = new_run(), self.search_time(o, given, limit)
            keep = partial(self.write_unchecked, o, given, inputs, run)  # of several in order the first
            with watching(o.json, self._units(asked, given), o.out) as observers, explained(self.explain):
                told = {"observers": observers, "known": known, "keep": keep, **how}
                found = self.search(given, inputs, asked, first, stays, seconds, told)
            if found.better is None:
                found = self.refined(o, found, time_left)
            given, inputs, result, earlier, better = found
            report = self.write(o, given, result, inputs, time_left, run, earlier or held, better)
            words, files = self.words(report), (self.page, self.report)
            code = finish(o, result, report, words, files, self.explain, self.none(given))
            return self.after(o, given, result, run, time_left, code)

    def _units(self, asked: Asked, given: Any) -> Sequence[str]:
        return [self.units[name] for name in asked.names if name in self.units]

    def _front(
        self, o: Any, names: tuple[str, str], given: Any, inputs: Any, first: Any, time_left: TimeLeft
    ) -> int:
        """Compute the front of two objectives; return the exit code."""
        from nmsolve.kinds.pareto import run_front
        from nmsolve.solvers.run import Options

        objectives = self.objectives(given, Options(**opt.search(o)), first)
        limit = opt.seconds(o.time_limit)
        return run_front(
            o, self.front(given), objectives, names, limit, time_left, msgspec.to_builtins(inputs)
        )

    # files

    def keep_checks(
        self, report: Any, time_left: TimeLeft, keep: Keep, checks: Callable[[], Iterator[list[CheckPart]]],
        left: Sequence[Sequence[str]] = ((),),
    ) -> Any:  # fmt: skip
        """Make checks part by part, and ``keep`` the report after each; return the last one.

        Parameters
        ----------
        left : what is not checked yet after each part

        Raises
        ------
        OutOfTime : no time is left for the next part
        """
        done: list[CheckPart] = []
        for found, rest in zip(time_left.each(checks, CHECKS), left, strict=False):
            done = done + found
            report = msgspec.structs.replace(report, checks=done, not_checked=list(rest))
            keep(report)
        return report

    def write(
        self, o: Any, given: Any, result: Result[Any], inputs: Any, time_left: TimeLeft, run: str,
        earlier: Sequence[Stage] = (), better: Any = None,
    ) -> Any:  # fmt: skip
        """Write answer, certificates, events and report, then what :meth:`complete` finds, and the page; return the report.

        Once no time is left, checks and pictures that are not done are left out. The files are signed ``run``.
        """
        report = self.write_unchecked(o, given, inputs, run, result, earlier, better)
        with Answer(o.out, self.files, run, alone=self.alone(o)).added() as files:

            def keep(more: Any) -> None:
                nonlocal report
                report = more
                files[self.report] = as_json(report)

            with suppress(OutOfTime):
                self.complete(o, given, result, report, time_left, keep)
            files[self.page] = self.page_of(o, given, result, report, time_left)
        return report

    def page_of(self, o: Any, given: Any, result: Result[Any], report: Any, time_left: TimeLeft) -> str:
        """Return the page, without pictures if time is up."""
        command = f"nmsolve verify {o.out} --bound"
        return time_left.page(lambda: self.render(given, result, report, command, o.plain))

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
            if better is not None:
                words = [*report.contributions, self.two_sides(result)]
                report = msgspec.structs.replace(report, contributions=words)
            self.beside(o, folder, given, result, report)
            proofs = certificates_text(self.about(given), self.rows(result), earlier, self.free)
            write_atomic(folder / self.proofs, proofs)
            write_atomic(folder / "events.jsonl", event_lines(result.events))
            write_atomic(folder / self.report, as_json(report))
        return report
