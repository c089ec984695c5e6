"""Assignments: a model and processors in; a processor for every operator, a proof, programs and a page out."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds import values as opt
from nmsolve.kinds.assignment.options import AssignOptions
from nmsolve.kinds.assignment.programs import PARTS, PROGRAMS
from nmsolve.kinds.assignment.statement import (
    AssignInputs,
    Given,
    require_threshold,
    state_problem,
    stated_inputs,
)
from nmsolve.kinds.kind import OF_GRAPHS, Explainable
from nmsolve.kinds.loading import Held
from nmsolve.kinds.run import Asked, Keep
from nmsolve.kinds.whole import WholeKind
from nmsolve.kinds.whole_report import closing_words
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import OBJECTIVES
from nmsolve.model.errors import InputError
from nmsolve.model.quantities import counted
from nmsolve.report.figures import amount

if TYPE_CHECKING:
    from nmsolve.kinds.assignment.options import ExplainAssignOptions
    from nmsolve.kinds.assignment.report import AssignReport
    from nmsolve.kinds.check_fields import Again
    from nmsolve.kinds.check_whole import FileChecks
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.kinds.verbs import GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.model.assignment.assignment import Assignment
    from nmsolve.model.bound import Bound, Result, Stage
    from nmsolve.solvers.assignment.limits import AssignLimits
    from nmsolve.solvers.bounding import Bounded
    from nmsolve.solvers.multi_objective import Objectives
    from nmsolve.solvers.run import Options

#: Re-checks that take a moment, which every run does; `nmsolve verify --bound` does all.
QUICK = ("min-cut",)
#: CPU seconds that writing programs takes: for any model, and for every operator.
PROGRAMS_TAKE = 0.3, 5e-4


class AssignKind(WholeKind):
    """Operators of a model on unlike processors; strategies of a cost network."""

    name, noun, source = "assign", "assignment", "model"
    method_tables = (
        "check.assignment.recheck:RECHECKS",
        "check.assignment.recheck:WORDS",
    )
    answer = "assignment.json"
    files = (
        "assignment.json", "certificates.json", "events.jsonl", "report.json", "report.html", "better.json",
        *(f"{PROGRAMS}/{part}" for part in PARTS),
    )  # fmt: skip
    options, inputs, units = AssignOptions, AssignInputs, OBJECTIVES
    reports = "kinds.assignment.report:AssignReport"
    unchecked = ("assignment", "bounds")
    both = "latency,energy"
    no_score = ("chips", "placement", "memory", *OF_GRAPHS)
    no_gap = ("chips", "placement", "balance", *OF_GRAPHS)

    @property
    def free(self) -> Collection[str]:
        """All that are recomputed: they use no ceilings."""
        from nmsolve.check.assignment.recheck import RECHECKS

        return RECHECKS.keys()

    def asked(self, o: AssignOptions, stays: bool) -> Asked:
        """Return objectives, front and model."""
        names = self.objectives_in(o.objective)
        front = None if o.pareto is None else self.front_names(o)
        inputs = stated_inputs(o, front or names, o.threshold)
        if stays:
            names = names[-1:]
            inputs = msgspec.structs.replace(inputs, objective=names[0])
        else:
            require_threshold(o.threshold, front or names, opt.names(o.engines))
        return Asked(inputs, names, front)

    def on_front(
        self, given: Given, inputs: AssignInputs | None, names: tuple[str, str]
    ) -> tuple[Given, AssignInputs | None]:
        """Return them with the first objective; the makespan needs control flow that was left whole."""
        if given.own is None:
            raise InputError("a cost network has one objective, its cost", "pareto", "an answer of a model")
        apart = given.own.objective != "makespan" if inputs is None else not inputs.whole
        if "makespan" in names and apart and given.stated is not None:
            wanted = 'an answer of assign(..., objective="makespan")'
            raise InputError(
                "the problem of the answer has its control flow taken apart", "objectives", wanted
            )
        named = inputs and msgspec.structs.replace(inputs, objective=names[0])
        return _changed(given, objective=names[0]), named

    def state(self, inputs: AssignInputs) -> Given:
        """Load model and processors."""
        return state_problem(inputs)

    def loaded(self, o: AssignOptions, inputs: AssignInputs) -> Given:
        """Load model and processors; before the search all that is read for the programs, too."""
        from nmsolve.kinds.assignment.programs import unbound_model

        twice = bool(o.bind) and o.pareto is None and o.model.suffix.lower() == ".onnx"
        if twice:
            with suppress(ImportError):  # what reads the model says what is missing
                import sympy  # noqa: F401 -- once: the two processes that read it are copies of this one, which needs it, too
        given = self.state(inputs)
        return replace(given, unbound=unbound_model(o.model)) if twice else given

    def is_source(self, path: Path) -> bool:
        """Return whether it is a model, or a cost network."""
        from nmsolve.model.formats.iopddl import is_iopddl

        return path.suffix.lower() == ".onnx" or (path.is_file() and is_iopddl(path))

    def require(self, o: AssignOptions, given: Given, asked: Asked) -> None:
        """Refuse what a cost network does not have, and to execute programs where nothing can."""
        if given.own is not None:
            if o.run:
                from nmsolve.hw.assignment.runtime import require_runtime

                require_runtime("--run")
            return
        several = {"--pareto": asked.front is not None, "--objective": len(asked.names) > 1}
        for option, value in {"--run": o.run, "--write-model": o.write_model is not None, **several}.items():
            if value:
                raise InputError("a cost network has one objective and no programs", option, "a .onnx model")

    def read(self, path: Path, given: Given) -> Any:
        """Read assignment.json, strategies, what was written by hand, or by onnx-mlir."""
        from nmsolve.kinds.assignment.check import read_any_answer

        return read_any_answer(path, given)

    def write_solution(self, path: Path, given: Given, solution: Any) -> None:
        """Write an assignment or strategies."""
        from nmsolve.kinds.assignment.check import write_answer

        write_answer(path, given.problem, solution)

    def models(self, given: Given) -> tuple[Any, Any]:
        """Return CP-SAT's and the MIP's."""
        from nmsolve.solvers.assignment.exact import models

        return models(given.operators)

    def solve(self, problem: Any, **how: Any) -> Result[Any]:
        """Search."""
        from nmsolve.solvers.assignment.api import solve_assignment, solve_network

        return (solve_network if isinstance(problem, CostNetwork) else solve_assignment)(problem, **how)

    def bound(self, problem: Any, solution: Any, **how: Any) -> Bounded[Any]:
        """Raise the bound."""
        from nmsolve.solvers.assignment.api import bound_assignment, bound_strategies
        from nmsolve.solvers.run import Options

        raised: Any = bound_strategies if isinstance(problem, CostNetwork) else bound_assignment
        found: Bounded[Any] = raised(problem, solution, Options(**how))
        return found

    def objectives(
        self, given: Given, options: Options, first: Assignment | None, known: tuple[Bound, ...] = ()
    ) -> Objectives[Assignment]:
        """Return all of them."""
        from nmsolve.solvers.assignment.api import assign_objectives

        return assign_objectives(given.operators, options, first, known)

    def restated(self, given: Given, stage: Stage) -> Given:
        """Return the same operators."""
        return _changed(given, objective=stage.objective, ceilings=stage.ceilings)

    def front(self, given: Given) -> FrontKind:
        """Return assignment.json per point."""
        from nmsolve.kinds.assignment.front import AssignFront

        return AssignFront(given.operators)

    def _units(self, asked: Asked, given: Given) -> Sequence[str]:
        return super()._units(asked, given) if given.own is not None else ()

    def build_report(
        self, o: AssignOptions, given: Given, result: Result[Any], inputs: dict[str, Any], left: Sequence[str]
    ) -> AssignReport:
        """Return units, memories and reasons."""
        from nmsolve.kinds.assignment.report import build_assign_report

        return build_assign_report(given, result, inputs, left)

    def files_take(self, given: Given) -> float:
        """Return what writing the programs takes."""
        return (
            0.0 if given.stated is None else PROGRAMS_TAKE[0] + PROGRAMS_TAKE[1] * given.stated.problem.count
        )

    def complete(
        self, o: AssignOptions, given: Given, result: Result[Any], report: AssignReport, time_left: TimeLeft, keep: Keep
    ) -> None:  # fmt: skip
        """Write the programs, run them if asked for, and check the assignment and its quick bounds."""
        from nmsolve.kinds.assignment.check import AssignBounds, result_checks
        from nmsolve.kinds.assignment.programs import program_checks, written_programs
        from nmsolve.kinds.check_whole import bound_checks

        problem, solution = given.problem, result.solution
        if solution is None:
            return keep(report)
        report = msgspec.structs.replace(report, programs=written_programs(o, given, solution))
        keep(report)
        quick = [b for b in result.bounds if b.method in QUICK]
        left = [] if len(quick) == len(result.bounds) else ["other bounds"] if quick else ["bounds"]

        def checks() -> Iterator[list[CheckPart]]:
            yield [*result_checks(problem, solution, result), *program_checks(report.programs)]
            yield bound_checks(AssignBounds(problem), solution, result.scores, quick)

        self.keep_checks(report, time_left, keep, checks, (["bounds"], left))

    def after(
        self, o: AssignOptions, given: Given, result: Result[Any], run: str, time_left: TimeLeft, code: int
    ) -> int:
        """Note in the library which processor every operation got, for the rules of later runs, unless it is read-only."""
        from nmsolve.hw.assignment.library import Library

        found = result.solution
        if (
            o.library is not None
            and found is not None
            and given.stated is not None
            and os.access(o.library, os.W_OK)
        ):
            with Library(o.library, write=True) as library:
                given.stated.record(library, found.unit)
        return code

    def render(
        self, given: Given, result: Result[Any], report: AssignReport, command: str, plain: bool
    ) -> str:
        """Return the page."""
        from nmsolve.kinds.assignment.page import render_assign_html

        return render_assign_html(given, result, report, command, plain)

    def words(self, report: AssignReport) -> Iterator[str]:
        """Yield units, memories, objective and checks."""
        from nmsolve.kinds.assignment.report import assign_words

        if report.units:
            heads = " ".join(
                f"{name:>12}" for name in ("run", "launches", "interrupts", "transfer", "load", "energy")
            )
            yield f"\n{'unit':16} {'operators':>9} {heads}"
        for u in report.units:
            times = " ".join(
                f"{amount(v, 'ps'):>12}" for v in (u.run, u.launches, u.interrupts, u.transfer, u.work)
            )
            yield f"{u.name:16} {u.operators:9,} {times} {amount(u.energy, 'pJ'):>12}"
        for m in report.memories:
            if m.limit is not None:
                yield f"memory {m.name}: at most {m.peak:,} of {m.limit:,.0f} bytes, at {m.at}"
        name, unit = report.objective_name, report.unit
        yield from closing_words(
            report, assign_words(report), lambda k, v: amount(v, unit if k == name else OBJECTIVES.get(k, ""))
        )

    def drawings(
        self, given: Given, solution: Any, report: AssignReport
    ) -> Mapping[str, tuple[Any, tuple[Any, ...]]]:
        """Return ``network``, ``costs`` of the processors, ``memory``, ``schedule``."""
        from nmsolve.kinds.assignment.pictures import assign_drawings

        return {} if given.own is None else assign_drawings(given.own, solution, report)

    def answer_checks(
        self, given: Given, solution: Any, objective: object, scores: Mapping[str, Any]
    ) -> tuple[list[CheckPart], dict[str, float]]:
        """Check by both evaluators."""
        from nmsolve.kinds.assignment.check import answer_checks

        return answer_checks(given.problem, solution, objective, scores)

    def file_checks(
        self, path: Path, report: dict[str, Any], given: Given, inputs: AssignInputs, o: VerifyOptions
    ) -> FileChecks:
        """Check the assignment by both evaluators, and its bounds."""
        from nmsolve.kinds.assignment.check import AssignBounds, read_answer
        from nmsolve.kinds.check_whole import said_values, whole_file_checks

        answer = read_answer(path, given.problem)
        found = self.answer_checks(given, answer, *said_values(report))
        return whole_file_checks(
            report, inputs.before, self.a, "model, machine and options", path.parent / self.proofs,
            AssignBounds(given.problem), (answer, *found), o,
        )  # fmt: skip

    def rewritten(
        self, report: Mapping[str, Any], given: Given, inputs: AssignInputs, solution: Any,
        values: Mapping[str, float], bounds: Sequence[Bound] | None,
    ) -> Again:  # fmt: skip
        """Return the report but for its programs."""
        from nmsolve.kinds.assignment.report import build_assign_report
        from nmsolve.kinds.check_fields import as_written, claimed_result, inputs_again

        objective = "cost" if given.own is None else given.own.objective
        result = claimed_result(report, solution, (objective, values[objective]), values, bounds or ())
        stated = inputs_again(report, inputs)
        if "whole" in stated:
            stated["whole"] = "makespan" in (objective, *(held.objective for held in inputs.before))
        again = build_assign_report(given, result, stated)
        return as_written(again, bounds, ("programs", "inputs.strict"))

    def shown(self, name: str, value: float) -> str:
        """Return the value with its unit."""
        return amount(value, self.units.get(name, ""))

    def front_inputs(
        self, path: Path, inputs: dict[str, Any], objectives: tuple[str, str]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return those that state the problem; control flow is left whole for the makespan alone."""
        found, options = super().front_inputs(path, inputs, objectives)
        return found | ({"whole": "makespan" in objectives} if "whole" in found else {}), options

    def inputs_for(self, path: Path, o: ScoreOptions | GapOptions) -> AssignInputs:
        """Return those of the report beside it, but for what options say."""
        named: dict[str, Any] = {
            "model": opt.whole(o.graph), "machine": opt.text_or_file(o.machine), "bind": o.bind, "library": opt.whole(o.library),
            "constraints": opt.whole(getattr(o, "constraints", None)), "objective": getattr(o, "objective", None),
        }  # fmt: skip
        found, other = self.inputs_with(path, named, "model", "MODEL.onnx")
        stated: AssignInputs = found
        return msgspec.structs.replace(stated, whole=stated.objective == "makespan") if other else stated

    def again(self, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return the objectives in order."""
        before = msgspec.convert(inputs.get("before", []), list[Held])
        last = msgspec.convert(inputs.get("objective", "latency"), str)
        return {"objective": ",".join([*(held.objective for held in before), last])}

    def explained(self, o: ExplainAssignOptions) -> Explainable:
        """Return pins and limits of a model on processors."""
        from nmsolve.hw.assignment.constraints import read_constraints
        from nmsolve.hw.assignment.machine_file import load_processors
        from nmsolve.model.formats.onnx import load_onnx
        from nmsolve.model.operators.binding import parse_bindings
        from nmsolve.solvers.assignment.limits import assign_limits

        inputs = stated_inputs(o)
        if inputs.machine is None or not inputs.model.lower().endswith(".onnx"):
            wanted = "a .onnx model and --machine"
            raise InputError("limits are those of a model on processors", inputs.model, wanted)
        machine, bindings = load_processors(inputs.machine), parse_bindings(inputs.bind)
        graph = load_onnx(inputs.model, strict=inputs.strict, bindings=bindings)
        constraints = None if inputs.constraints is None else read_constraints(inputs.constraints)
        limits = assign_limits(graph, machine, bindings, constraints)
        return explainable(limits, Path(inputs.model).stem, machine.name)


def _changed(given: Given, **change: Any) -> Given:
    """Return the same with another objective or ceilings."""
    own = replace(given.operators, **change)
    # the checker takes the terms from the problem's objective, so that it needs the last stage's
    return replace(
        given, own=own, stated=None if given.stated is None else replace(given.stated, problem=own)
    )


def explainable(limits: AssignLimits, model: str, machine: str) -> Explainable:
    """Return the pins and limits of a model on processors, by their names."""
    from nmsolve.model.assignment.files import write_assignment

    def found(answer: Assignment) -> str:
        return f"an assignment to {counted(len(set(answer.unit.tolist())), 'unit')}"

    def write(path: Path, answer: Assignment) -> None:
        write_assignment(path, limits.restricted(limits.every).stated(), answer)

    return Explainable(
        limits, {"model": model, "machine": machine}, f"{model} on {machine}", "assigned", "assignment",
        "program, which tries all assignments,", found, write,
    )  # fmt: skip


KIND = AssignKind()
