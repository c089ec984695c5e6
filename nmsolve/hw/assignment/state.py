"""A model and a machine become an assignment problem (M3.6, M3.7)."""

from __future__ import annotations

from collections.abc import Mapping
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
from nmsolve.hw.assignment.estimates import Estimate, Estimates, earlier_runs, measured_links, verdicts
from nmsolve.hw.assignment.evaluate import Terms, terms_of
from nmsolve.hw.assignment.flatten import program_of
from nmsolve.hw.assignment.fusion import groups_of, savings
from nmsolve.hw.assignment.library import Library
from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.roofline import OperatorWork, arithmetic, why_not
from nmsolve.hw.assignment.steps import Path, Program, Step
from nmsolve.model.assignment.problem import MOST, AssignProblem, Complexity, Flows, Groups, Units
from nmsolve.model.bound import Ceilings
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.operators.classes import CONTROL, operator_class
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.types import BoolArray, FloatArray, IntArray, starts


@dataclass(frozen=True, eq=False)
class StatedAssignment:
    """A problem with what it was made from.

    Attributes
    ----------
    problem : the problem
    estimates : where its costs come from
    operators : (L,) per operator its number in the model, or operator, body, operator in the body, ...; () for ``@in``, ``@out``
    tensors : (T,) per tensor its number, or operator, body, number in the body, ...; () for what control flow tells
    terms : T, A, S and O of every operator on every unit, and what fusion saves
    left_out : operators that are done before the run, by every program that uses what they make: constants and weight carriers;
        and operators that no output needs, which no program holds
    origin : (L, J) where the time of an operator on a unit comes from: ``assumed``, ``fitted``, ``measured``, "" where it cannot
    """

    problem: AssignProblem
    estimates: Estimates
    origin: tuple[tuple[str, ...], ...]

    @property
    def program(self) -> Program:
        """The steps and flows that operators and tensors are, in the same order."""
        return self.estimates.program

    @property
    def machine(self) -> ProcessorMachine:
        """The machine, with links as measured."""
        return self.estimates.machine

    @property
    def fits(self) -> Mapping[tuple[str, str], float]:
        """The regressions that times come from: (type of operator, processor) -> median relative error."""
        return self.estimates.fits

    def record(self, library: Library, unit: IntArray) -> None:
        """Write into a library which processors the operators got (L,), for the next run.

        Raises
        ------
        InputError : the file cannot be written
        """
        library.record(*verdicts(self.estimates, self.problem.time, unit))

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
        """Paths of operators that are done before the run, or never."""
        return self.program.left_out


def state_assignment(
    graph: OperatorGraph,
    machine: ProcessorMachine,
    *,
    bindings: Mapping[str, int] | None = None,
    library: Library | None = None,
    objective: str = "latency",
    constraints: AssignConstraints | None = None,
    ceilings: Ceilings = (),
) -> StatedAssignment:
    """Return the problem: every operator on one unit, at what the library knows it to cost, else at its roofline.

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
    machine = measured_links(machine, library)
    estimates = Estimates(program, machine, library)
    inside = estimates
    if objective == "makespan" and any(
        step.operator is not None and step.operator.bodies for step in program.steps
    ):
        inside = Estimates(program_of(graph, bindings), machine, library)
    _require_processors(inside)
    time, energy, origin = _run_costs(estimates, None if inside is estimates else inside)
    time, energy = time[:, machine.owner], energy[:, machine.owner]
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
        scalar=np.array(
            [_is_scalar(*pair, machine) for pair in zip(program.steps, estimates.works, strict=True)]
        ),
        time=whole[0],
        energy=whole[1],
        flows=flows,
        groups=_groups(estimates, whole[0], whole[1]),
        units=units,
        together=together,
        objective=objective,
        ceilings=ceilings,
        complexity=_complexities(estimates, inside, possible),
        earlier=earlier_runs(estimates) if library is not None and library.has_verdicts else None,
    )
    names = tuple(
        tuple(row[k] if fine else "" for k, fine in zip(machine.owner.tolist(), able, strict=True))
        for row, able in zip(origin, possible.tolist(), strict=True)
    )
    return StatedAssignment(problem, estimates, names)


def _run_costs(
    estimates: Estimates, inside: Estimates | None
) -> tuple[FloatArray, FloatArray, list[tuple[str, ...]]]:
    """Return (L, P) ps and pJ of all runs of every step on every processor, -1 where it cannot run, and where times come from.

    ``inside``: the program with its control flow opened, where that stays whole.
    """
    steps, count = estimates.program.steps, len(estimates.machine.processors)
    time, energy = np.full((len(steps), count), -1.0), np.full((len(steps), count), -1.0)
    origin = []
    for i, step in enumerate(steps):
        names = []
        for k in range(count):
            if inside is not None and step.operator is not None and step.operator.bodies:
                own = _whole_control(step, inside, k)
            else:
                own = estimates.of(i, k)
                runs = step.runs + step.turns
                own = None if own is None else Estimate(own.time * runs, own.energy * runs, own.origin)
            if own is not None:
                time[i, k], energy[i, k] = own.time, own.energy
            names.append("" if own is None else own.origin)
        origin.append(tuple(names))
    return time, energy, origin


def _complexities(estimates: Estimates, inside: Estimates, possible: BoolArray) -> Complexity:
    """Return what the arithmetic of all runs of every step takes on every unit; of control flow that stays whole, of its bodies.

    ``inside``: the program with its control flow opened.
    """
    machine, steps = estimates.machine, estimates.program.steps
    out = np.zeros((2, len(steps), len(machine.processors)))
    for i, step in enumerate(steps):
        own = [(step, estimates.works[i])]
        if inside is not estimates and step.operator is not None and step.operator.bodies:
            pairs = zip(inside.program.steps, inside.works, strict=True)
            own = [(inner, work) for inner, work in pairs if inner.path[: len(step.path)] == step.path]
        for inner, work in own:
            for k, p in enumerate(machine.processors):
                if work is not None and why_not(p, work) is None:
                    out[:, i, k] += np.array(arithmetic(p, work)) * inner.runs
    return Complexity(*(_whole(np.where(possible, table[:, machine.owner], 0.0)) for table in out))


def _whole_control(step: Step, inside: Estimates, k: int) -> Estimate | None:
    """Return what control flow costs that stays whole: all that its bodies hold on one processor, the control itself on a host.

    On an accelerator every run of a body is a round trip to the first host, which decides what comes next.
    """
    machine = inside.machine
    p = machine.processors[k]
    host = next(n for n, q in enumerate(machine.processors) if q.host)
    home, there = machine.sites_of(machine.processors[host].name)[0], machine.sites_of(p.name)[0]
    trip = (
        0.0 if p.host else p.interrupt + machine.ways.latency[home, there] + machine.ways.latency[there, home]
    )
    time = energy = 0.0
    for i, inner in enumerate(inside.program.steps):
        if inner.path[: len(step.path)] != step.path:
            continue
        control = inner.operator is not None and bool(inner.operator.bodies)
        own = inside.of(i, host if control else k)
        if own is None:
            return None
        time += own.time * (inner.runs + inner.turns) + (inner.turns * trip if control else 0.0)
        energy += own.energy * (inner.runs + inner.turns)
    return Estimate(time, energy, "assumed")


def _require_processors(estimates: Estimates) -> None:
    """Raise InputError for operators that no processor can run, with what is in the way: widths first."""
    program, machine = estimates.program, estimates.machine
    reasons: dict[str, list[str]] = {}
    for step, work in zip(program.steps, estimates.works, strict=True):
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


def _groups(estimates: Estimates, time: IntArray, energy: IntArray) -> Groups:
    """Return the groups that gain on some unit: the saved part of what their members cost there (L, J).

    The part is measured, if the library has the group, else that of the rooflines.
    """
    program, works, machine = estimates.program, estimates.works, estimates.machine
    first = [int(np.flatnonzero(machine.owner == k)[0]) for k in range(len(machine.processors))]
    members, gains = [], []
    for group in groups_of(program, works, time[:, first] >= 0):
        own = np.array(group.members)
        possible = (time[own] >= 0).all(axis=0)
        gain = []
        parts = savings(group, works, machine)
        for k in range(len(machine.processors)):
            measured = estimates.saved(group.members, k)
            parts[0][k] = parts[0][k] if measured is None else measured
        for part, table in zip(parts, (time, energy), strict=True):
            gain.append(
                np.where(possible, np.floor(part[machine.owner] * table[own].sum(axis=0)), 0).astype(np.int64)
            )
        if any(g.any() for g in gain):
            members.append(own)
            gains.append(gain)
    shape = (len(members), machine.units.count)
    return Groups(
        indptr=starts([len(own) for own in members]),
        members=np.concatenate([np.zeros(0, np.int64), *members]),
        time=np.array([g[0] for g in gains], np.int64).reshape(shape),
        energy=np.array([g[1] for g in gains], np.int64).reshape(shape),
    )


def flows_of(program: Program, machine: ProcessorMachine) -> Flows:
    """Return the tensors of a program with the time and energy of bringing them from site to site.

    ``time = runs * (latency + bytes / bandwidth)`` summed over the links of the way; what control flow tells a site costs the way
    there and back and the interruption of what runs there; what stands is brought before the run, for nothing. A scalar that a
    host made outside control flow goes to an accelerator with the start of a kernel, in no time of its own.
    """
    ways, sites = machine.ways, machine.units.sites
    held = sum(f.held for f in program.flows)
    if held >= MOST:
        raise InputError(
            f"the tensors are {held:.3g} bytes",
            program.name,
            f"less than {MOST:.3g}: smaller numbers in --bind",
        )
    runs = np.array([0.0 if f.kept else f.runs for f in program.flows])[:, None, None]
    moved = np.array([f.moved for f in program.flows], np.float64)[:, None, None]
    control = np.array([f.control for f in program.flows], bool)[:, None, None]
    stop = np.zeros(sites)
    np.maximum.at(
        stop, machine.units.site, np.array([p.interrupt for p in machine.processors])[machine.owner]
    )
    away = ~np.eye(sites, dtype=bool)
    round_trip = (ways.latency + ways.latency.T + stop) * away
    hosts = np.zeros(sites, bool)
    hosts[machine.units.site[machine.units.host]] = True
    accelerators = np.zeros(sites, bool)
    accelerators[machine.units.site[~machine.units.host]] = True
    passed = np.array([f.parameter for f in program.flows], bool)[:, None, None] & np.outer(
        hosts, accelerators
    )
    time = runs * np.where(control, round_trip, np.where(passed, 0.0, ways.latency + moved * ways.per_byte))
    energy = runs * moved * ways.energy
    users = [sorted(f.users.items()) for f in program.flows]
    return Flows(
        names=tuple(f.name for f in program.flows),
        source=np.array([f.source for f in program.flows], np.int64),
        indptr=starts([len(u) for u in users]),
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


def _is_scalar(step: Step, work: OperatorWork | None, machine: ProcessorMachine) -> bool:
    """Return whether an operator is scalar on this machine (M3.1).

    It is by its tensors (see ``classes``), or it works on whole numbers that no accelerator can handle: indices and places.
    """
    if step.operator is None or step.graph is None or work is None:
        return False
    if operator_class(step.graph, step.operator) == "scalar":
        return True
    wide = {width for p in machine.processors if not p.host for width in p.rates}
    whole = all(width.startswith("int") for width in work.needed)
    return bool(work.needed) and whole and not work.macs and not work.needed <= wide


def _whole(costs: FloatArray) -> IntArray:
    """Return whole ps or pJ, to the nearest; those that a problem refuses as too large stay so."""
    return np.rint(np.minimum(costs, MOST)).astype(np.int64)
