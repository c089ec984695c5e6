"""The explorable network of an assignment: operators by processor, what each takes there and elsewhere, tensors moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.hw.assignment.evaluate import jobs_of, moves_of
from nmsolve.report.explore_network import Amount, Network, Part, Row, Sent
from nmsolve.report.figures import amount, percent

if TYPE_CHECKING:
    from nmsolve.hw.assignment.reasons import Share
    from nmsolve.kinds.assignment.report import AssignReport, OperatorPart
    from nmsolve.model.assignment.assignment import Assignment
    from nmsolve.model.assignment.problem import AssignProblem
    from nmsolve.model.types import IntArray


def assign_network(problem: AssignProblem, answer: Assignment, report: AssignReport) -> Network:
    """Return the network of an assignment, without ``@in`` and ``@out``; all figures are those of the problem and the report."""
    shown = np.array([i for i, label in enumerate(problem.labels) if not label.startswith("@")], np.int64)
    node = np.full(problem.count, len(shown))
    node[shown] = np.arange(len(shown))
    job, time, energy = jobs_of(problem, answer)
    flows = problem.flows
    use = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    weights = np.bincount(flows.targets, np.where(flows.kept, flows.bytes, 0)[use], problem.count)
    makes = np.bincount(flows.source, flows.bytes, problem.count)
    figures = [
        Amount("time", "ps", time[shown]), Amount("energy", "pJ", energy[shown]), Amount("weights", "bytes", weights[shown]),
        Amount("makes", "bytes", makes[shown]),
    ]  # fmt: skip
    notes = [_notes(problem, report.operators[i], int(job[i]), i, report.unit) for i in shown.tolist()]
    return Network(
        problem.name, "operator", "processor", [problem.labels[i] for i in shown], [problem.kinds[i] for i in shown],
        answer.unit[shown], figures, notes, _sent(problem, answer, node), _parts(problem, report), _places(problem),
    )  # fmt: skip


def _notes(problem: AssignProblem, said: OperatorPart, job: int, operator: int, unit: str) -> list[Row]:
    """Return where the figures of an operator come from, what it runs as one with, and what other processors would change."""
    rows: list[Row] = [("figures from", said.origin, "")] if said.origin else []
    if job != operator:
        rows.append(("runs as one with", problem.labels[job], ""))
    for other in said.alternatives:
        change = ("+" if other.change > 0 else "") + amount(other.change, unit)
        rows.append((f"instead on {other.unit}", "not allowed" if other.broken else change, ""))
    return rows


def _sent(problem: AssignProblem, answer: Assignment, node: IntArray) -> Sent:
    """Return the tensors, and the moves of those that are brought to another site; ``node`` (L,): number in the drawing."""
    flows, moves = problem.flows, moves_of(problem, answer.unit)
    costs = [Amount("time", "ps", flows.time[moves]), Amount("energy", "pJ", flows.energy[moves])]
    return Sent(
        flows.names, node[flows.source], flows.indptr, node[flows.targets], flows.bytes.astype(float), *moves, costs,
    )  # fmt: skip


def _places(problem: AssignProblem) -> list[str]:
    """Return the names of the sites: those of their units."""
    units = problem.units
    own = [
        [name for name, site in zip(units.names, units.site, strict=True) if site == k]
        for k in range(units.sites)
    ]
    return [", ".join(names) or f"site {k}" for k, names in enumerate(own)]


def _parts(problem: AssignProblem, report: AssignReport) -> list[Part]:
    units = problem.units
    most = max((u.work for u in report.units), default=0)
    parts = []
    for j, u in enumerate(report.units):
        site = int(units.site[j])
        memory = report.memories[int(units.memory[site])]
        rows: list[Row] = [
            ("operators", u.operators, ""), ("run", u.run, "ps"), ("of it launches", u.launches, "ps"),
            ("interrupts", u.interrupts, "ps"),
            ("transfer to it", u.transfer, "ps"), ("load", u.work, "ps"), ("energy", u.energy, "pJ"),
            (f"most in memory {memory.name}", memory.peak, "bytes"), ("at", memory.at, ""),
        ]  # fmt: skip
        if memory.limit is not None:
            rows.append(("limit", memory.limit, "bytes"))
        parts.append(
            Part(u.name, site, rows, _binds(u, most, memory.peak / memory.limit if memory.limit else None))
        )
    return parts


def _binds(u: Share, most: int, full: float | None) -> str:
    """Say what takes the time of a processor, and how full its memory is."""
    words = []
    if u.operators and u.work == most:
        words.append("No processor works longer.")
    if (spent := u.run + u.transfer + u.interrupts) > 0:
        words.append(
            f"Running is {percent(u.run / spent)} of its time, moving tensors to it {percent(u.transfer / spent)}."
        )
    if full is not None:
        words.append(f"Its memory is {percent(full)} full.")
    return " ".join(words)
