"""The limits of an assignment, one by one, for :mod:`nmsolve.solvers.search.conflict`: does any assignment keep some of them?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from nmsolve.check.assignment.conflict import impossible
from nmsolve.hw.assignment.constraints import (
    AssignConstraints,
    allowed_units,
    capacities,
    matching,
    together_of,
)
from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.state import state_assignment
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.problem import AssignProblem, Groups
from nmsolve.model.errors import CertificateError
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.assignment.data import assign_data
from nmsolve.solvers.assignment.exact import cpsat_model
from nmsolve.solvers.search.conflict import Answer, Limit, Limits, whole_list
from nmsolve.solvers.search.cpsat import decide, new_solver

#: Most variables of the model that is asked.
MAX_VARIABLES = 300_000


@dataclass(frozen=True, eq=False)
class Bare:
    """Where operators may be, and what is in the way, without costs.

    Attributes
    ----------
    problem : the operators and tensors; its own limits do not count
    allowed : (L, J) where every operator may be
    together : (L,) numbers of operators that share a unit, -1 alone
    capacity : (M,) bytes of memories
    """

    problem: AssignProblem
    allowed: BoolArray
    together: IntArray
    capacity: FloatArray

    def nowhere(self) -> list[int]:
        """Return the operators of the first class that has no place, [] if all have one."""
        for number in (-1, *np.unique(self.together[self.together >= 0]).tolist()):
            own = np.flatnonzero(self.together == number)
            if number < 0:
                alone = own[~self.allowed[own].any(axis=1)]
                if len(alone):
                    return [int(alone[0])]
            elif not self.allowed[own].all(axis=0).any():
                return [int(i) for i in own]
        return []

    def stated(self) -> AssignProblem:
        """Return the problem with these limits; only where every operator has a place."""
        p, flows = self.problem, self.problem.flows
        none = np.zeros((0, p.units.count), np.int64)
        return replace(
            p,
            time=np.where(self.allowed, 0, -1),
            energy=np.where(self.allowed, 0, -1),
            flows=replace(flows, time=flows.time * 0, energy=flows.energy * 0),
            groups=Groups(np.zeros(1, np.int64), np.zeros(0, np.int64), none, none),
            units=replace(p.units, capacity=self.capacity),
            together=self.together if (self.together >= 0).any() else None,
        )


class AssignLimits(Limits[Assignment]):
    """Limits: every pin, every prohibition, every set of operators that share a unit, the bytes of every memory.

    What processors can run is no limit: nothing can lift it.

    Parameters
    ----------
    free : the problem without any of them
    constraints : pins, prohibitions, sets and memories as they are asked for
    machine : its memories, where ``constraints`` say nothing of them
    """

    def __init__(
        self, free: AssignProblem, constraints: AssignConstraints, machine: ProcessorMachine
    ) -> None:
        self.free, self._able = free, free.time >= 0
        self._places: dict[Limit, BoolArray] = {}
        self._sets: dict[Limit, BoolArray] = {}
        self._memories: dict[Limit, tuple[int, float]] = {}
        for key, table in (("pin", constraints.pin), ("forbid", constraints.forbid)):
            for pattern, places in table.items():
                limit = Limit(
                    key, pattern, f"{key} {pattern!r} {'to' if key == 'pin' else 'on'} {_list(places)}"
                )
                self._places[limit] = self._mask(key, pattern, places, machine, constraints.where)
        for k, names in enumerate(constraints.together):
            limit = Limit("together", str(k), f"that {_list(names)} share a unit")
            alone = AssignConstraints(together=[names], where=constraints.where)
            number = together_of(alone, free.labels, free.kinds)
            assert number is not None
            self._sets[limit] = number >= 0
        for m, most in enumerate(capacities(constraints, machine).tolist()):
            if np.isfinite(most):
                name = machine.units.memories[m]
                self._memories[Limit("memory", name, f"memory {name}, {most:,.0f} bytes")] = (m, most)
        self.every = (*self._sets, *self._places, *self._memories)

    def _mask(
        self, key: str, pattern: str, places: str | list[str], machine: ProcessorMachine, where: str
    ) -> BoolArray:
        """Return (L, J) where one pin or prohibition lets operators be."""
        labels, kinds = self.free.labels, self.free.kinds
        pinned = AssignConstraints(pin={pattern: places}, where=where)
        allowed = allowed_units(pinned, machine, labels, kinds)
        if key == "forbid":
            own = matching(pattern, labels, kinds, where)
            allowed[own] = ~allowed[own]
        return allowed

    def restricted(self, limits: tuple[Limit, ...]) -> Bare:
        """Return what these limits leave."""
        allowed = self._able.copy()
        together = np.full(self.free.count, -1, np.int64)
        capacity = np.full(len(self.free.units.memories), np.inf)
        for k, limit in enumerate(limits):
            if limit in self._places:
                allowed &= self._places[limit]
            elif limit in self._sets:
                own = self._sets[limit]
                met = np.unique(together[own & (together >= 0)])
                together[np.isin(together, met)] = k
                together[own] = k
            else:
                m, most = self._memories[limit]
                capacity[m] = most
        return Bare(self.free, allowed, together, capacity)

    def ask(
        self, limits: tuple[Limit, ...], seconds: float, seed: int, should_stop: Callable[[], bool]
    ) -> Answer[Assignment]:
        """Places by counting; memories by CP-SAT."""
        bare = self.restricted(limits)
        if bare.nowhere() or _too_small(bare):
            return Answer("infeasible", None, limits)
        problem = bare.stated()
        if not np.isfinite(bare.capacity).any():
            return Answer("feasible", _first(problem))
        data = assign_data(problem)
        if seconds <= 0 or data.size > MAX_VARIABLES:
            return Answer("unknown")
        built, solver = cpsat_model(data), new_solver(seconds, seed=seed)
        status = decide(solver, built.model, should_stop)
        if status == "INFEASIBLE":
            return Answer("infeasible", None, limits)
        if status not in ("OPTIMAL", "FEASIBLE"):
            return Answer("unknown")
        found = Assignment.unpacked(problem, built.mapping(solver.boolean_value))
        return (
            Answer("unknown")
            if assignment_complaint(problem, found) is not None
            else Answer("feasible", found)
        )

    def reason(self, limits: tuple[Limit, ...]) -> str:
        """Return what counting places and bytes shows."""
        bare = self.restricted(limits)
        own = bare.nowhere()
        if own:
            named = ", ".join(repr(self.free.labels[i]) for i in own[:4]) + (" ..." if len(own) > 4 else "")
            return f"{named} {'has' if len(own) == 1 else 'have'} no place left"
        return _too_small(bare) or "counting does not show it; trying every assignment does (CP-SAT)"

    def written(self, solution: Assignment) -> dict[str, Any]:
        """Unit of every operator."""
        return {"unit": solution.unit.tolist()}

    def complaint(self, limits: tuple[Limit, ...], entry: Mapping[str, Any]) -> str | None:
        """By :func:`nmsolve.model.assignment.assignment.assignment_complaint`."""
        bare = self.restricted(limits)
        if bare.nowhere():
            return "an operator has no place"
        unit = np.array(whole_list(entry, "unit"), np.int64)
        if unit.shape != (self.free.count,):
            raise CertificateError(f"without: {len(unit)} units for {self.free.count} operators")
        answer = Assignment(unit, np.zeros(0, bool), np.arange(self.free.count))
        return assignment_complaint(bare.stated(), answer)

    def impossible(self, limits: tuple[Limit, ...], seconds: float) -> bool | None:
        """By trying every assignment, those that break a rule cut off early."""
        bare = self.restricted(limits)
        return impossible(bare.problem, bare.allowed, bare.together, bare.capacity, seconds)


def assign_limits(
    graph: OperatorGraph,
    machine: ProcessorMachine,
    bindings: Mapping[str, int] | None,
    constraints: AssignConstraints | None,
) -> AssignLimits:
    """Return the limits of a model on a machine.

    Raises
    ------
    InputError : a symbol without a value, an operator that no processor supports, demands that name nothing
    """
    constraints = constraints or AssignConstraints()
    unlimited = replace(machine, memories=tuple(replace(m, capacity=np.inf) for m in machine.memories))
    named = [name for name in ("@in", "@out") if name in constraints.pin]
    ends: dict[str, str | list[str]] = {name: list(machine.units.names) for name in named}
    free = AssignConstraints(pin=ends)  # pins of the ends move them from the host, elsewhere they only forbid
    stated = state_assignment(graph, unlimited, bindings=bindings, constraints=free)
    return AssignLimits(stated.problem, msgspec.structs.replace(constraints), machine)


def _first(problem: AssignProblem) -> Assignment:
    """Return the assignment with every operator on the first unit that all of its class may use."""
    able = problem.time >= 0
    for number in np.unique(problem.together) if problem.together is not None else ():
        if number >= 0:
            own = problem.together == number
            able[own] = able[own].all(axis=0)
    return Assignment(able.argmax(axis=1), np.zeros(0, bool), np.arange(problem.count))


def _too_small(bare: Bare) -> str:
    """Return what does not fit however it is spread, "" if nothing shows: weights, or one tensor."""
    flows, units = bare.problem.flows, bare.problem.units
    weights, room = int(flows.bytes[flows.kept].sum()), float(bare.capacity.sum())
    if weights > room:
        return f"the weights are {weights:,} bytes, all memories hold {room:,.0f}"
    memory = units.memory[units.site]
    for t in range(flows.count):
        users = flows.users(t).tolist()
        maker = [] if flows.kept[t] else [int(flows.source[t])]
        for i in (*maker, *users):
            most = float(bare.capacity[memory[bare.allowed[i]]].max(initial=0.0))
            if flows.bytes[t] > most:
                return (
                    f"tensor {flows.names[t]!r} is {int(flows.bytes[t]):,} bytes, operator {bare.problem.labels[i]!r} "
                    f"may only be where there are {most:,.0f}"
                )
    return ""


def _list(names: str | list[str]) -> str:
    shown = [names] if isinstance(names, str) else names
    return ", ".join(shown[:4]) + (" ..." if len(shown) > 4 else "")
