"""A model and a machine become an assignment problem (M3.6, M3.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.hw.assignment.constraints import (
    AssignConstraints,
    allowed_units,
    capacities,
    require_common_unit,
    together_of,
)
from nmsolve.hw.assignment.costs import Terms, terms_of
from nmsolve.hw.assignment.flatten import Path, Program, Step, branch_share, program_of
from nmsolve.hw.assignment.fusion import groups_of, savings
from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.roofline import Work, bytes_touched, roofline, why_not, widths_of
from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups, Units
from nmsolve.model.bound import Ceilings
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.classes import CONTROL, operator_class
from nmsolve.model.operators.costs import OperatorCost
from nmsolve.model.operators.graph import Operator, OperatorGraph
from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class StatedAssignment:
    """A problem with what it was made from.

    Attributes
    ----------
    problem : the problem
    program : the steps and flows that its operators and tensors are, in the same order
    operators : (L,) per operator its number in the model, or operator, body, operator in the body, ...; () for ``@in``, ``@out``
    tensors : (T,) per tensor its number, or operator, body, number in the body, ...; () for what control flow tells
    terms : T, A, S and O of every operator on every unit
    left_out : operators that are done before the run, by every program that uses what they make: constants and weight carriers
    origin : (L, J) where the time of an operator on a unit comes from: ``assumed``, ``fitted``, ``measured``, "" where it cannot
    machine : the machine
    """

    problem: AssignProblem
    program: Program
    machine: ProcessorMachine
    origin: tuple[tuple[str, ...], ...]

    @property
    def operators(self) -> tuple[Path, ...]:
        """(L,) paths of the operators."""
        return tuple(step.path for step in self.program.steps)

    @property
    def tensors(self) -> tuple[Path, ...]:
        """(T,) paths of the tensors."""
        return tuple(flow.path for flow in self.program.flows)

    @cached_property
    def terms(self) -> Terms:
        """Terms of cost and benefit, (L, J) each."""
        return terms_of(self.problem)

    @property
    def left_out(self) -> tuple[Path, ...]:
        """Paths of operators that are done before the run."""
        return self.program.left_out


def state_assignment(
    graph: OperatorGraph,
    machine: ProcessorMachine,
    *,
    bindings: Mapping[str, int] | None = None,
    objective: str = "latency",
    constraints: AssignConstraints | None = None,
    ceilings: Ceilings = (),
) -> StatedAssignment:
    """Return the problem: every operator on one unit, at the cost of :mod:`nmsolve.hw.assignment.roofline`.

    ``@in`` and ``@out`` are on the first host (a pin of them may say another). Control flow is opened, its bodies' operators
    cost what all their runs do; for ``makespan`` it stays whole.

    Raises
    ------
    InputError : a symbol without a value, operators that no processor can run (with the width or type), demands that make no
        sense, weights that fit in no memory
    """
    constraints = constraints or AssignConstraints()
    program = program_of(graph, bindings, whole=objective == "makespan")
    labels = tuple(step.label for step in program.steps)
    kinds = tuple(step.operator.kind if step.operator else step.label for step in program.steps)
    works = _works(program)
    _require_processors(program, works, machine)
    run = [_costs_of(step, work, program, machine) for step, work in zip(program.steps, works, strict=True)]
    time, energy = (np.array([costs[k] for costs in run])[:, machine.owner] for k in (0, 1))
    allowed = allowed_units(constraints, machine, labels, kinds)
    _place_ends(program, machine, constraints, time, energy)
    possible = (time >= 0) & allowed
    _require_places(labels, kinds, possible, constraints)
    together = together_of(constraints, labels, kinds)
    require_common_unit(constraints, together, possible, labels)
    units = machine.units
    units = Units(
        units.names, units.host, units.site, units.memory, units.memories, capacities(constraints, machine), units.channel,
        units.channels,
    )  # fmt: skip
    flows = flows_of(program, machine)
    _require_memory(flows, units, program.name)
    whole = [_whole(np.where(possible, table, -1)) for table in (time, energy)]
    problem = AssignProblem(
        name=program.name,
        labels=labels,
        kinds=kinds,
        scalar=np.array([_is_scalar(step) for step in program.steps]),
        time=whole[0],
        energy=whole[1],
        flows=flows,
        groups=_groups(program, works, machine, whole[0], whole[1]),
        units=units,
        together=together,
        objective=objective,
        ceilings=ceilings,
    )
    origin = tuple(tuple("assumed" if fine else "" for fine in row) for row in possible.tolist())
    return StatedAssignment(problem, program, machine, origin)


def work_of(
    graph: OperatorGraph, operator: Operator, cost: OperatorCost, bindings: Mapping[str, int]
) -> Work:
    """Return what one run of an operator does; of control flow itself nothing but to start.

    Raises
    ------
    InputError : work or size that is not known
    """
    where = f"{graph.name}: {operator.kind} {operator.name!r}"
    if operator.kind in CONTROL:
        return Work(operator.kind, "", frozenset(), 0, 0, 0)
    width, needed = widths_of(graph, operator)

    def number(figure: object, what: str) -> int:
        return figure if isinstance(figure, int) else bind(figure, bindings, what, where)  # type: ignore[arg-type]

    read = number(cost.weight_bytes, "the weights") + number(cost.input_bytes, "the size of the inputs")
    written = number(cost.output_bytes, "the size of the results")
    return Work(
        operator.kind, width, needed, number(cost.macs, "the work"), number(cost.elements, "the work"),
        bytes_touched(operator.kind, read, written),
    )  # fmt: skip


def _works(program: Program) -> list[Work | None]:
    """Return (L,) what one run of every step does, None for ``@in`` and ``@out``."""
    return [
        None
        if step.operator is None or step.graph is None or step.cost is None
        else work_of(step.graph, step.operator, step.cost, program.bindings)
        for step in program.steps
    ]


def _costs_of(
    step: Step, work: Work | None, program: Program, machine: ProcessorMachine
) -> tuple[list[float], list[float]]:
    """Return ps and pJ of all runs of a step on every processor, -1 where it cannot run."""
    count = len(machine.processors)
    if work is None or step.operator is None or step.graph is None or step.cost is None:
        return [0.0] * count, [0.0] * count
    if step.operator.bodies and not step.turns:
        return _whole_control(step.graph, step.operator, step.cost, program, machine)
    times, energies = [], []
    for p in machine.processors:
        if why_not(p, work) is not None:
            times.append(-1.0)
            energies.append(-1.0)
            continue
        time, energy = roofline(p, [work])
        times.append(time * (step.runs + step.turns) if step.operator.kind in CONTROL else time * step.runs)
        energies.append(energy * step.runs)
    return times, energies


def _whole_control(
    graph: OperatorGraph, operator: Operator, cost: OperatorCost, program: Program, machine: ProcessorMachine
) -> tuple[list[float], list[float]]:
    """Return ps and pJ of control flow that stays whole: all of its bodies on one processor, the control itself on a host.

    On an accelerator every run of a body is a round trip to the first host, which decides what comes next.
    """
    where = f"{graph.name}: {operator.kind} {operator.name!r}"
    trips = bind(cost.trips, program.bindings, "how often the body runs", where)
    host = next(p for p in machine.processors if p.host)
    ways, home = machine.ways, machine.sites_of(host.name)[0]
    times, energies = [], []
    for p in machine.processors:
        there = machine.sites_of(p.name)[0]
        trip = 0.0 if p.host else p.interrupt + ways.latency[home, there] + ways.latency[there, home]
        time, energy = host.launch, 0.0
        for b, body in enumerate(operator.bodies):
            runs = branch_share(graph, operator, b) if operator.kind == "If" else float(trips)
            inner = _body_costs(body, cost.bodies[b], program, machine, p.name)
            if inner is None:
                time = -1.0
                break
            time += runs * (inner[0] + trip + host.launch)
            energy += runs * inner[1]
        times.append(time)
        energies.append(energy if time >= 0 else -1.0)
    return times, energies


def _body_costs(
    body: OperatorGraph,
    costs: tuple[OperatorCost, ...],
    program: Program,
    machine: ProcessorMachine,
    name: str,
) -> tuple[float, float] | None:
    """Return ps and pJ of one run of a body on a processor, None if it cannot run one of its operators."""
    k = next(k for k, p in enumerate(machine.processors) if p.name == name)
    time = energy = 0.0
    for operator, cost in zip(body.operators, costs, strict=True):
        if operator.kind == "Constant":
            continue
        if operator.bodies:
            times, energies = _whole_control(body, operator, cost, program, machine)
            own = (times[k], energies[k])
        else:
            work = work_of(body, operator, cost, program.bindings)
            own = (
                (-1.0, -1.0)
                if why_not(machine.processors[k], work)
                else roofline(machine.processors[k], [work])
            )
        if own[0] < 0:
            return None
        time, energy = time + own[0], energy + own[1]
    return time, energy


def _require_processors(program: Program, works: Sequence[Work | None], machine: ProcessorMachine) -> None:
    """Raise InputError for operators that no processor can run, with what is in the way: widths first."""
    reasons: dict[str, list[str]] = {}
    for step, work in zip(program.steps, works, strict=True):
        if work is None or work.kind in CONTROL:
            continue
        why = [why_not(p, work) for p in machine.processors]
        if all(why):
            widths = sorted({w for w in why if w and w.startswith("width")})
            reasons.setdefault(widths[0] if widths else str(why[0]), []).append(step.label)
    for reason, labels in sorted(reasons.items(), key=lambda item: not item[0].startswith("width")):
        names = ", ".join(repr(label) for label in labels[:5]) + (" ..." if len(labels) > 5 else "")
        raise InputError(
            f"no processor of {machine.name!r} supports {reason} of {len(labels)} operators: {names}", program.name,
            "a processor that does",
        )  # fmt: skip


def _place_ends(
    program: Program,
    machine: ProcessorMachine,
    constraints: AssignConstraints,
    time: FloatArray,
    energy: FloatArray,
) -> None:
    """Put ``@in`` and ``@out`` on the first host, unless a pin names them."""
    host = int(np.flatnonzero(machine.units.host)[0])
    for i in (0, len(program.steps) - 1):
        if program.steps[i].label not in constraints.pin:
            for table in (time, energy):
                table[i] = -1
                table[i, host] = 0


def _require_places(
    labels: tuple[str, ...], kinds: tuple[str, ...], possible: np.ndarray, constraints: AssignConstraints
) -> None:
    """Raise InputError for an operator whose demands leave only units that cannot run it."""
    for i in np.flatnonzero(~possible.any(axis=1)).tolist():
        raise DoesNotFitError(
            f"operator {labels[i]!r} ({kinds[i]}) may only be where it cannot run", constraints.where,
            "a unit that supports it",
        )  # fmt: skip


def _groups(
    program: Program,
    works: Sequence[Work | None],
    machine: ProcessorMachine,
    time: IntArray,
    energy: IntArray,
) -> Groups:
    """Return the groups that gain on some unit: the saved part of what their members cost there (L, J)."""
    first = [int(np.flatnonzero(machine.owner == k)[0]) for k in range(len(machine.processors))]
    members, gains = [], []
    for group in groups_of(program, works, time[:, first] >= 0):
        own = np.array(group.members)
        possible = (time[own] >= 0).all(axis=0)
        gain = []
        for part, table in zip(savings(group, works, machine), (time, energy), strict=True):
            gain.append(
                np.where(possible, np.floor(part[machine.owner] * table[own].sum(axis=0)), 0).astype(np.int64)
            )
        if any(g.any() for g in gain):
            members.append(own)
            gains.append(gain)
    shape = (len(members), machine.units.count)
    return Groups(
        indptr=np.concatenate([[0], np.cumsum([len(own) for own in members])]).astype(np.int64),
        members=np.concatenate([np.zeros(0, np.int64), *members]),
        time=np.array([g[0] for g in gains], np.int64).reshape(shape),
        energy=np.array([g[1] for g in gains], np.int64).reshape(shape),
    )


def flows_of(program: Program, machine: ProcessorMachine) -> Flows:
    """Return the tensors of a program with the time and energy of bringing them from site to site.

    ``time = runs * (latency + bytes / bandwidth)`` summed over the links of the way; what control flow tells a site costs the way
    there and back and the interruption of what runs there; what stands is brought before the run, for nothing.
    """
    ways, sites = machine.ways, machine.units.sites
    runs = np.array([0.0 if f.kept else f.runs for f in program.flows])[:, None, None]
    moved = np.array([f.moved for f in program.flows], np.float64)[:, None, None]
    control = np.array([f.control for f in program.flows], bool)[:, None, None]
    stop = np.zeros(sites)
    np.maximum.at(
        stop, machine.units.site, np.array([p.interrupt for p in machine.processors])[machine.owner]
    )
    away = ~np.eye(sites, dtype=bool)
    round_trip = (ways.latency + ways.latency.T + stop) * away
    time = runs * np.where(control, round_trip, ways.latency + moved * ways.per_byte)
    energy = runs * moved * ways.energy
    users = [sorted(f.users.items()) for f in program.flows]
    return Flows(
        names=tuple(f.name for f in program.flows),
        source=np.array([f.source for f in program.flows], np.int64),
        indptr=np.concatenate([[0], np.cumsum([len(u) for u in users])]).astype(np.int64),
        targets=np.array([i for u in users for i, _ in u], np.int64),
        since=np.array([f.since for f in program.flows], np.int64),
        until=np.array([last for u in users for _, last in u], np.int64),
        bytes=np.array([f.held for f in program.flows], np.int64),
        kept=np.array([f.kept for f in program.flows], bool),
        time=_whole(time),
        energy=_whole(energy),
    )


def _require_memory(flows: Flows, units: Units, name: str) -> None:
    """Raise DoesNotFitError if weights cannot all be held, however they are spread, or a tensor is larger than any memory."""
    weights, room = int(flows.bytes[flows.kept].sum()), float(units.capacity.sum())
    if weights > room:
        raise DoesNotFitError(
            f"the weights are {weights:,} bytes", name, f"at most {room:,.0f}, what all memories hold"
        )
    largest = int(flows.bytes.max(initial=0))
    if largest > units.capacity.max():
        t = int(flows.bytes.argmax())
        raise DoesNotFitError(
            f"tensor {flows.names[t]!r} is {largest:,} bytes",
            name,
            f"at most {units.capacity.max():,.0f}, the largest memory",
        )


def _is_scalar(step: Step) -> bool:
    if step.operator is None or step.graph is None:
        return False
    return operator_class(step.graph, step.operator) == "scalar"


def _whole(costs: FloatArray) -> IntArray:
    """Return whole ps or pJ, to the nearest."""
    return np.rint(costs).astype(np.int64)
