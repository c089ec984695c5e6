"""report.json: what a run claims, in one documented object (docs/files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from nmsolve.hw.energy import states_all
from nmsolve.hw.machine_file import TICK
from nmsolve.hw.magnitude import uncomputable
from nmsolve.hw.step_time import has_step_time, step_costs, step_loads
from nmsolve.kinds.contributions import NOT_RUN, found_words
from nmsolve.kinds.parts import (
    BoundPart,
    CheckPart,
    EnginePart,
    MemoryPart,
    ObjectivePart,
    RulePart,
    among,
    ended,
    package_behind,
    parts_of,
    proved_by,
    rests_on,
    rule_words,
)
from nmsolve.model.bound import Result
from nmsolve.model.host.memory import own_peak
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.quantities import counted
from nmsolve.model.types import IntArray
from nmsolve.report.figures import below, number, percent

#: A core that takes this many times what an even spread would is one that steps wait for.
WAITS = 2.0


class GraphPart(msgspec.Struct, frozen=True):
    """Which graph, and how large."""

    name: str
    hash: str
    nodes: int
    edges: int


class MachinePart(msgspec.Struct, frozen=True):
    """Which machine, and how large."""

    name: str
    hash: str
    rows: int
    cols: int
    chips: int


class RoutingPart(msgspec.Struct, frozen=True):
    """Routes of the mapping: by which rule (``chosen``: optimised), of how many flows, with what loads.

    ``prohibited``: prohibited turns, null where turns are not restricted.
    """

    rule: str
    flows: int
    objectives: list[ObjectivePart]
    prohibited: int | None


class TickPart(msgspec.Struct, frozen=True):
    """On a chip that runs in real time: ns of a step and between two steps, and whether the one fits in the other."""

    step: float
    tick: float
    fits: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The object in report.json. ``inputs`` holds the paths and options that ``verify`` needs, ``left_out`` the scores that
    cannot be computed on this machine, with the reasons."""

    version: str
    status: str
    stop_reason: str
    method: str | None = None
    contributions: list[str] = []
    objective_name: str
    objective: float | None
    bound: float | None
    bound_scope: str | None
    gap: float | None
    placement_bound: float | None
    placement_gap: float | None
    scores: dict[str, float]
    tick: TickPart | None
    left_out: dict[str, str]
    wall_seconds: float
    cpu_seconds: float
    memory: MemoryPart
    seed: int
    graph: GraphPart
    machine: MachinePart
    engines: list[EnginePart]
    bounds: list[BoundPart]
    checks: list[CheckPart]
    not_checked: list[str]
    rules: list[RulePart] = []
    routing: RoutingPart | None
    inputs: dict[str, Any]


def build_report(
    problem: MappingProblem,
    result: Result,
    checks: list[CheckPart],
    inputs: dict[str, Any],
    not_checked: Sequence[str] = (),
    routing: RoutingPart | None = None,
) -> Report:
    """Put a result into the shape of report.json; ``not_checked`` names what was left out of the checks, ``routing`` says
    what routes were added to the mapping."""
    graph, machine = problem.graph, problem.machine
    return Report(
        **ended(result),
        objective_name=result.objective_name,
        objective=result.objective,
        bound=result.bound,
        bound_scope=None if result.bound is None else "full",
        gap=result.gap,
        placement_bound=result.placement_bound,
        placement_gap=result.placement_gap,
        scores=dict(result.scores),
        tick=tick_part(machine, result.scores),
        left_out=uncomputable(machine) if result.scores else {},
        memory=MemoryPart(result.memory_budget, max(result.memory_peak, own_peak())),
        graph=GraphPart(graph.name, graph.hash, graph.n, graph.m),
        machine=MachinePart(machine.name, machine.hash, machine.rows, machine.cols, machine.n_chips),
        **parts_of(result),
        checks=checks,
        not_checked=list(not_checked),
        routing=routing,
        inputs=inputs,
    )


def tick_part(machine: Machine, scores: Mapping[str, float]) -> TickPart | None:
    """Return how a step compares with the machine's tick; None where it has no tick, or the step time is not known."""
    if "step-time" not in scores or not states_all(machine, {TICK: "ns"}):
        return None
    step, tick = scores["step-time"], machine.figures[TICK].value
    return TickPart(step, tick, step <= tick) if tick > 0 else None


def tick_words(tick: TickPart | None) -> list[str]:
    """Say whether a step fits in the tick, and by what factor; nothing without a tick."""
    if tick is None:
        return []
    has = f"the tick of {tick.tick:,.0f} ns"
    if tick.fits:
        return [
            f"A mean step takes {tick.step:,.0f} ns and fits in {has}: {percent(tick.step / tick.tick)} of it."
        ]
    slower = f"{tick.step / tick.tick:,.3g} times slower than in real time"
    return [f"A mean step takes {tick.step:,.0f} ns and does not fit in {has}: the network runs {slower}."]


def in_words(report: Report) -> list[str]:
    """Describe the gap in sentences that claim exactly what is proved."""
    name = report.objective_name
    if report.status == "infeasible":
        return [f"{proved_by(report)}: no mapping meets all limits and constraints."]
    if report.objective is None:
        return ["No feasible mapping was found in the time given; one may still exist."]
    budget = report.inputs.get("migration_budget")
    more = () if budget is None else (f"at most {counted(budget, 'node')} moved",)
    within = among("mappings", report.inputs, "limits", lambda _, value: number(value), *more)
    package = package_behind(report.bounds)
    rests = [rests_on(package)] if package else []
    if report.status == "optimal":
        claim = "Optimal, if that package is right" if package else "Proved optimal"
        return [f"{within}{claim}: no mapping of this problem has a lower value of {name}.", *rests]
    words = []
    if report.bound is None or report.gap is None or not report.bound > 0:
        words.append(
            "No useful lower bound was found, so the distance to the optimum is unknown. More time may help (nmsolve gap)."
        )
    else:
        words.append(
            f"{within}No mapping has {name} below {below(report.bound)}; this one has {number(report.objective)}. "
            f"A better one could save at most {percent(report.gap)}."
        )
        words += rests
    if report.placement_gap is not None and report.placement_bound:
        words.append(
            f"If nodes that share a core stay together, moving whole cores gives no less than {below(report.placement_bound)}, "
            f"and could save at most {percent(report.placement_gap)}. Other parts may do better than that."
        )
    return words


def waiting_words(problem: MappingProblem, core: IntArray | None) -> list[str]:
    """Say by how much a step waits for its slowest core while others have nothing to do; nothing if it waits for none, where the
    machine's times are not known, or where the objective weighs them.
    """
    graph, machine = problem.graph, problem.machine
    weighed = problem.aim.charges in ("time", "power")
    if weighed or core is None or graph.on_disk or not has_step_time(graph, machine):
        return []
    aside, loads = step_costs(machine).aside, step_loads(graph, machine, core)
    busy = np.maximum(loads.sending, loads.receiving) if aside else loads.sending + loads.receiving
    idle = int((machine.usable & (busy == 0)).sum())
    even = float(max(loads.sending.sum(), loads.receiving.sum()) if aside else busy.sum()) / int(
        machine.usable.sum()
    )
    if idle == 0 or busy.max() < WAITS * even:
        return []
    return [
        f"A step waits {busy.max():,.0f} ns for core {int(busy.argmax())} while {idle} of {int(machine.usable.sum())} cores "
        f"have nothing to do; the same work spread evenly would take each {even:,.0f} ns (--objective step-time)."
    ]


def routing_words(routing: RoutingPart) -> str:
    """Return the routes' figures with their bounds, in one line."""
    parts = []
    for o in routing.objectives:
        known = ""
        if o.proved:
            known = " (proved best)"
        elif o.bound is not None:
            known = f" (at least {number(o.bound)}, gap {percent(o.gap)})"
        parts.append(f"{o.name} {number(o.value)}{known}")
    return f"{counted(routing.flows, 'flow')}, " + ", ".join(parts)


def run_words(report: Report) -> Iterator[str]:
    """Yield what is printed at the end of a run: engines, objective with its gap, checks."""
    asked = [e for e in report.engines if e.offers or e.bound is not None or e.status]
    engines = [e for e in asked if not e.status.startswith(NOT_RUN)]
    if engines:
        yield f"\n{'engine':16} {'CPU s':>8} {'accepted':>9} {'its best':>16} {'its bound':>16}  ended"
    for e in engines:
        figures = f"{e.cpu_seconds:8.2f} {e.incumbents:9} {number(e.best):>16} {number(e.bound):>16}"
        yield f"{e.engine:16} {figures}  {e.status}"
    if len(engines) < len(asked):
        yield f"not run: {counted(len(asked) - len(engines), 'engine')}; report.json says why"
    yield (
        f"\n{report.status}: {report.objective_name} {number(report.objective)}, bound {number(report.bound)}, "
        f"gap {percent(report.gap)} (stopped: {report.stop_reason}, {report.wall_seconds:.1f} s, {_memory(report)})"
    )
    yield from found_words(report)
    yield from in_words(report)
    yield from rule_words(report.rules, number)
    if report.routing is not None:
        yield f"routes ({report.routing.rule}): {routing_words(report.routing)}"
    failed = [c for c in report.checks if not c.ok]
    if report.checks or report.not_checked:
        words = [f"{len(failed)} FAILED"] if failed else ["all passed"] if not report.not_checked else []
        words += [f"not done for lack of time: {', '.join(report.not_checked)}"] if report.not_checked else []
        yield "independent checks: " + "; ".join(words)
    for c in failed:
        yield f"  FAILED {c.name}: {c.text}"


def _memory(report: Report) -> str:
    """Return the memory used, and the budget if there is one."""
    peak = f"peak memory {-(-report.memory.peak // 2**20)}"
    return f"{peak} MiB" if report.memory.budget is None else f"{peak} of {report.memory.budget // 2**20} MiB"
