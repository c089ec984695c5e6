"""What one run of an operator costs on a processor, from the best source there is: measured, fitted, assumed (M3.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmsolve.hw.assignment.library import Library
from nmsolve.hw.assignment.library_rows import COPY, Key, family_of, key_of
from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.roofline import OperatorWork, bytes_touched, roofline, why_not, widths_of
from nmsolve.hw.assignment.steps import Program, Step
from nmsolve.hw.assignment.tiling import extent_of
from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.classes import CONTROL
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.sizes import bytes_of
from nmsolve.model.types import IntArray


class Estimate(NamedTuple):
    """ps and pJ of one run, and where the time comes from: ``measured``, ``fitted`` or ``assumed``."""

    time: float
    energy: float
    origin: str


class Estimates:
    """Costs of the steps of a program on the processors of a machine.

    Attributes
    ----------
    works : (L,) what one run of every step does, None for ``@in`` and ``@out``
    fits : the regressions that were used: (type, processor) -> median relative error
    """

    def __init__(self, program: Program, machine: ProcessorMachine, library: Library | None) -> None:
        self.program, self.machine, self.library = program, machine, library
        self.works = [work_of(step, program) for step in program.steps]
        self.fits: dict[tuple[str, str], float] = {}
        self._keys: dict[int, Key] = {}

    def of(self, i: int, k: int) -> Estimate | None:
        """Return what step ``i`` costs on processor ``k``, None if it cannot run there."""
        work, p = self.works[i], self.machine.processors[k]
        if work is None:
            return Estimate(0.0, 0.0, "assumed")
        if why_not(p, work) is not None:
            return None
        time, energy = roofline(p, [work])
        if self.library is None or work.kind in CONTROL or not self.program.steps[i].runs:
            return Estimate(time, energy, "assumed")
        key = self.key(i)
        entry = self.library.find(key, p.library, p.threads)
        if entry is not None:
            return Estimate(entry.time, energy if entry.energy is None else entry.energy, entry.origin)
        fit = self.library.fit(key, p.library, p.threads)
        fitted = None if fit is None else fit.time(work.macs, work.elements, work.bytes)
        if fit is None or fitted is None:
            return Estimate(time, energy, "assumed")
        self.fits[family_of(key), p.library] = fit.error
        return Estimate(fitted, energy, "fitted")

    def key(self, i: int) -> Key:
        """Return the key of a step's operation in the library."""
        if i not in self._keys:
            step = self.program.steps[i]
            assert step.graph is not None and step.operator is not None
            self._keys[i] = key_of(step.graph, step.operator, self.program.bindings)
        return self._keys[i]

    def saved(self, members: Sequence[int], k: int) -> float | None:
        """Return the part of its time that a fused group saves on processor ``k`` as the library has it, None if it says nothing.

        A group whose operators are all measured, but not as one, saves nothing that anybody has seen.
        """
        p = self.machine.processors[k]
        if self.library is None or not p.fuses:
            return None
        keys = [self.key(i) for i in members]
        found = self.library.find_fused(keys, p.library, p.threads)
        if found is not None:
            return found.saved
        entries = [self.library.find(key, p.library, p.threads) for key in keys]
        return 0.0 if all(e is not None and e.origin == "measured" for e in entries) else None


def work_of(step: Step, program: Program) -> OperatorWork | None:
    """Return what one run of a step does; of control flow itself nothing but to start; None for ``@in`` and ``@out``.

    Raises
    ------
    InputError : work or size that is not known
    """
    graph, operator, cost = step.graph, step.operator, step.cost
    if graph is None or operator is None or cost is None:
        return None
    where = f"{graph.name}: {operator.kind} {operator.name!r}"
    if operator.kind in CONTROL:
        return OperatorWork(operator.kind, "", frozenset(), 0, 0, 0)
    width, needed = widths_of(graph, operator)

    def number(figure: object, what: str) -> int:
        if isinstance(figure, int):
            return figure
        return 0 if not step.runs else bind(figure, program.bindings, what, where)  # type: ignore[arg-type]

    held, streamed = (
        number(cost.weight_bytes, "the weights"),
        number(cost.input_bytes, "the size of the inputs"),
    )
    written, macs = number(cost.output_bytes, "the size of the results"), number(cost.macs, "the work")
    extent = extent_of(graph, operator, macs)
    if extent is not None and not held:  # both operands flow
        held = _bytes(graph, operator.inputs[1]) if len(operator.inputs) > 1 else 0
        streamed -= held
    return OperatorWork(
        operator.kind, width, needed, macs, number(cost.elements, "the work"),
        bytes_touched(operator.kind, held + streamed, written), extent, streamed, held,
    )  # fmt: skip


def _bytes(graph: OperatorGraph, tensor: int) -> int:
    size = bytes_of(graph.tensors[tensor]) if tensor >= 0 else 0
    return size if isinstance(size, int) else 0


def measured_links(machine: ProcessorMachine, library: Library | None) -> ProcessorMachine:
    """Return the machine with the copies that the library has measured in place of its links' figures (T, an affine fit).

    A link says under which name the library knows it; links without one, or without enough copies, stay as they are.
    """
    if library is None or not any(link.library for link in machine.links):
        return machine
    links = []
    for link in machine.links:
        fit = library.fit(Key(COPY, "{}", "", "[]"), link.library) if link.library else None
        if fit is not None and fit.coefficients[3] > 0:
            link = replace(link, latency=fit.coefficients[0], bandwidth=1e12 / fit.coefficients[3])
        links.append(link)
    return replace(machine, links=tuple(links))


def verdicts(
    estimates: Estimates, time: IntArray, unit: IntArray
) -> tuple[list[tuple[Key, str]], list[tuple[Key, str]]]:
    """Return which processor every operation got, and which could have run it for less and did not get it (M3.8).

    Parameters
    ----------
    time : (L, J) of the problem, -1 where an operator cannot run
    unit : (L,) of the answer
    """
    got, failed = [], []
    owner = estimates.machine.owner
    for i, work in enumerate(estimates.works):
        if work is None or work.kind in CONTROL:
            continue
        key, own = estimates.key(i), int(owner[unit[i]])
        got.append((key, estimates.machine.processors[own].library))
        better = {int(owner[j]) for j in np.flatnonzero((time[i] >= 0) & (time[i] < time[i, unit[i]]))} - {
            own
        }
        failed += [(key, estimates.machine.processors[k].library) for k in sorted(better)]
    return got, failed


def earlier_runs(estimates: Estimates) -> IntArray:
    """Return (L, J) how often an operation like this one got a unit's processor, less how often it failed to get it."""
    library, machine = estimates.library, estimates.machine
    out = np.zeros((len(estimates.works), len(machine.processors)), np.int64)
    for i, work in enumerate(estimates.works if library is not None else []):
        if work is None or work.kind in CONTROL or library is None:
            continue
        for k, p in enumerate(machine.processors):
            verdict = library.verdict(estimates.key(i), p.library)
            out[i, k] = verdict.got - verdict.failed
    return out[:, machine.owner]
