"""report.json of an assignment: what a run claims, in one documented object (docs/files.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.hw.assignment.reasons import Share
from nmsolve.kinds.assignment.programs import ProgramsPart, program_words
from nmsolve.kinds.assignment.statement import COMMAND
from nmsolve.kinds.parts import among, by_word, proved_words, rule_words
from nmsolve.kinds.whole_report import WholeReport, whole_parts
from nmsolve.model.assignment.problem import OBJECTIVES
from nmsolve.report.figures import amount, percent

if TYPE_CHECKING:
    from nmsolve.hw.assignment.machine import ProcessorMachine
    from nmsolve.kinds.assignment.statement import Given
    from nmsolve.model.assignment.assignment import Assignment
    from nmsolve.model.assignment.problem import AssignProblem
    from nmsolve.model.bound import Result


class ModelPart(msgspec.Struct, frozen=True):
    """Which network: ``nodes`` are operators (of a cost network its nodes), ``edges`` tensors (its pairs).

    ``problem`` is the hash of all that decides what the problem is, ``hash`` that of the operators alone.
    """

    name: str
    hash: str
    problem: str
    nodes: int
    edges: int


class ProcessorsPart(msgspec.Struct, frozen=True):
    """Which machine; empty names for a cost network, which needs none."""

    name: str
    hash: str
    units: list[str]
    memories: dict[str, float | None]


class UsePart(msgspec.Struct, frozen=True):
    """Most bytes that a memory holds, at which operator, and its limit."""

    name: str
    peak: int
    at: str
    limit: float | None


class AlternativePart(msgspec.Struct, frozen=True):
    """Another unit for an operator: ``change`` of the objective, made of ``run`` and ``transfer`` where it is a sum."""

    unit: str
    change: int
    run: int
    transfer: int
    broken: str


class OperatorPart(msgspec.Struct, frozen=True):
    """One operator: where it runs, what that costs (``terms``: docs/assign.md), where the figures come from, and what the best
    other units would cost with everything else kept."""

    name: str
    kind: str
    scalar: bool
    unit: str
    terms: dict[str, int]
    origin: str
    alternatives: list[AlternativePart]


class AssignReport(WholeReport, frozen=True, kw_only=True):
    """The object in report.json: the keys that ``map`` has, and what is said of assignments.

    ``unit``: of objective and bound; ``inputs`` holds what ``verify`` needs to state the problem again; ``programs``: what was
    written to run, and how it ran, null without.
    """

    command: str = COMMAND
    graph: ModelPart
    machine: ProcessorsPart
    units: list[Share]
    memories: list[UsePart]
    operators: list[OperatorPart]
    programs: ProgramsPart | None = None


def build_assign_report(
    given: Given, result: Result[Any], inputs: Mapping[str, Any], not_checked: Sequence[str] = ()
) -> AssignReport:
    """Return the report of a run without checks; all figures are recomputed from the answer."""
    from nmsolve.solvers.assignment.registry import RULES

    parts: dict[str, Any] = {"units": [], "memories": [], "operators": []}
    if given.own is not None and result.solution is not None:
        parts = _parts(given, given.own, result.solution)
    common = whole_parts(result, "" if given.own is None else given.own.unit, RULES, inputs, not_checked)
    return AssignReport(graph=_model(given), machine=_machine(given), **common, **parts)


def _model(given: Given) -> ModelPart:
    from nmsolve.model.assignment.files import model_hash

    if given.own is None:
        network = given.network
        assert network is not None
        own = network.content_hash
        return ModelPart(network.name, own, own, network.count, len(network.ends))
    p = given.own
    return ModelPart(p.name, model_hash(p), p.content_hash, p.count - 2, p.flows.count)


def _machine(given: Given) -> ProcessorsPart:
    if given.own is None or given.machine is None:
        return ProcessorsPart("", "", [], {})
    units = given.own.units
    limits = {
        name: None if most == float("inf") else float(most)
        for name, most in zip(units.memories, units.capacity.tolist(), strict=True)
    }
    return ProcessorsPart(given.machine.name, machine_hash(given.machine), list(units.names), limits)


def machine_hash(machine: ProcessorMachine) -> str:
    """Return the hexadecimal SHA-256 of what a machine can do; names of sources do not count."""
    from hashlib import sha256

    parts = (machine.processors, machine.memories, machine.links)
    return sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def _parts(given: Given, problem: AssignProblem, answer: Assignment) -> dict[str, Any]:
    """Return units, memories and operators."""
    from nmsolve.hw.assignment.reasons import alternatives, memory_over_time, shares

    terms = terms_of(given)
    held = memory_over_time(problem, answer)
    units = shares(problem, answer, *_told(given))
    memories = []
    for m, name in enumerate(problem.units.memories):
        most, top = float(problem.units.capacity[m]), int(held[m].argmax())
        memories.append(
            UsePart(name, int(held[m, top]), problem.labels[top], None if most == float("inf") else most)
        )
    operators = []
    for i, rows in enumerate(alternatives(problem, answer)):
        j = int(answer.unit[i])
        operators.append(
            OperatorPart(
                problem.labels[i], problem.kinds[i], bool(problem.scalar[i]), problem.units.names[j],
                {name: int(table[i, j]) for name, table in terms.items()}, origin_of(given, i, j),
                [AlternativePart(problem.units.names[a.unit], *a[1:]) for a in rows],
            )
        )  # fmt: skip
    return {"units": units, "memories": memories, "operators": operators}


def _told(given: Given) -> tuple[Any, Any]:
    """Return (L, J) ps that starting every operator takes, and (T,) which tensors are what control flow tells; None by hand."""
    if given.stated is None:
        return None, None
    import numpy as np

    program, machine = given.stated.program, given.stated.machine
    each = np.array([p.launch for p in machine.processors])[machine.owner]
    runs = np.array([0.0 if step.operator is None else step.runs for step in program.steps])
    return np.rint(np.outer(runs, each)).astype(np.int64), np.array([f.control for f in program.flows], bool)


def terms_of(given: Given) -> dict[str, Any]:
    """Return (L, J) the terms T, A, S and O of cost and benefit and what fusion saves, by name; none of problems by hand."""
    if given.stated is None:
        return {}
    terms = given.stated.terms
    return {
        name: getattr(terms, name) for name in ("transfer", "accumulated", "speed", "complexity", "fusion")
    }


def origin_of(given: Given, operator: int, unit: int) -> str:
    """Return where the figures of an operator on a unit come from."""
    return "" if given.stated is None else str(given.stated.origin[operator][unit])


def assign_words(report: AssignReport) -> list[str]:
    """Describe in sentences what is proved, where the time goes, and what rules lose."""
    from nmsolve.check.assignment.recheck import RECHECKS

    name, unit = report.objective_name, report.unit
    within = among("assignments", report.inputs, "", lambda k, v: amount(v, OBJECTIVES[k]))
    about, word = f"{within}The {name} is", by_word(report, RECHECKS)
    words = [proved_words(report, "assignment", about, lambda v: amount(v, unit), word)]
    if report.objective is None:
        return words
    if report.units:
        share = [f"{u.operators:,} on {u.name}" for u in report.units if u.operators]
        words.append(f"Of {report.graph.nodes:,} operators, {', '.join(share)}.")
        run, moved = sum(u.run for u in report.units), sum(u.transfer for u in report.units)
        stopped = sum(u.interrupts for u in report.units)
        told = f", control flow that interrupts accelerators {amount(stopped, 'ps')}" if stopped else ""
        if run + moved:
            words.append(
                f"Running takes {amount(run, 'ps')} in all, moving tensors {amount(moved, 'ps')} "
                f"({percent(moved / (run + moved + stopped))}){told}."
            )
    return words + rule_words(report.rules, lambda v: amount(v, unit)) + program_words(report.programs)
