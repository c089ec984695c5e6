"""Bounds that begin with predicted multipliers, beside their usual start.

The usual start runs to its end, which takes T and gives a bound B. Every other start is followed from the same moment; its time
includes features and prediction. Values are those of the ascent, which a certificate confirms up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time

import numpy as np
from scipy.sparse import csr_array

from nmsolve.kinds.mapping.learned.suite import Row, Suite
from nmsolve.learn.checkpoint import DUALS, Checkpoint
from nmsolve.learn.duals.model import first_arrays
from nmsolve.model.generators import GENERATORS
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.ascent import SpectralAscent
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, Duals
from nmsolve.solvers.mapping.bounds.core_traffic import core_traffic_bounds, traffic_nets, volume_of
from nmsolve.solvers.mapping.bounds.learned import duals_model, predictor
from nmsolve.solvers.mapping.bounds.pairs import never
from nmsolve.solvers.mapping.bounds.partition_placement import partition_placement_form
from nmsolve.solvers.mapping.bounds.parts import parts_form
from nmsolve.solvers.mapping.bounds.training_graphs import ROOMS, several

#: Nodes of the graphs; and, for the usual start, most steps and CPU seconds.
SIZES, STEPS, LONG = (64, 256), 300, 4.0
#: Part of B that counts as reached, and the part of T in which it has to be.
ENOUGH, SOON = 0.9, 0.1
#: Parts of B whose times are compared.
LEVELS = (0.95, 0.99)

#: (best value, CPU seconds) after every step.
Trace = list[tuple[float, float]]
Multipliers = tuple[FloatArray, float]


@dataclass(frozen=True)
class Run:
    """An ascent: what it reached when, and its best multipliers."""

    trace: Trace
    found: Multipliers

    def at(self, seconds: float) -> float:
        """Return the best value after ``seconds``; 0 before the first step has ended."""
        return max([v for v, t in self.trace if t <= seconds] or [0.0])

    def when(self, value: float, never_after: float) -> float:
        """Return the seconds until ``value`` was reached; ``never_after`` if it was not."""
        return min([t for v, t in self.trace if v >= value] or [never_after])


def compare(suite: Suite) -> Iterator[Row]:
    """Yield, for every bound and size, how much higher the bound is at T/10 than from the usual start, as a part of B.

    Further rivals are other figures of the learned start: how much higher its bound is at T, by how much it is beyond 90 % of B
    at T/10 (also of the usual start, which often is, too), which part it closes of the way that the usual start has left, and
    which part of the time to 95 and 99 % of B is saved.
    """
    warmed: set[str] = set()
    for family, graph in suite.cases():
        for bound in DUALS:
            for nodes in SIZES:
                problem = graph_of(bound, family, nodes, graph)
                if bound not in warmed:  # compiles what a first call compiles
                    warmed.add(bound)
                    follow(bound, graph_of(bound, family, 64, 0), predictor(duals_model(bound)), 3, 1.0)
                yield from _rows(bound, problem, nodes, family, graph, suite)


def graph_of(bound: str, family: str, nodes: int, graph: int) -> MappingProblem:
    """Return a graph on a mesh that suits a bound: one node per core, or as many in turn as in training."""
    kind = f"mesh-{family}" if f"mesh-{family}" in GENERATORS else family
    rooms = ROOMS[bound]
    return several(kind, nodes, graph, rooms[graph % len(rooms)])


def _rows(
    bound: str, problem: MappingProblem, nodes: int, family: str, graph: int, suite: Suite
) -> Iterator[Row]:
    usual = follow(bound, problem, None, STEPS, suite.seconds or LONG)
    best, whole = usual.trace[-1]
    if not best > 0:
        return
    model = duals_model(bound)
    learned = predictor(model)
    runs = {"usual": usual, "learned": follow(bound, problem, learned, STEPS, whole)}
    nothing = first_arrays(np.zeros((2, len(model.arrays["mean"]))), 0)
    starts: dict[str, Duals] = {
        "untrained": predictor(Checkpoint(model.method, nothing, {})),
        "constant": by_load(learned),
        "perfect": lambda *_: usual.found,
    }
    for name, duals in starts.items():
        runs[name] = follow(bound, problem, duals, STEPS, 2 * SOON * whole)
    cases = [(name, 1, run) for name, run in runs.items()]
    for seed in range(1, suite.seeds + 1):
        cases.append(
            ("random", seed, follow(bound, problem, shuffled(learned, seed), STEPS, 2 * SOON * whole))
        )
    title, base = f"{bound}, n = {nodes}", usual.at(SOON * whole)
    left = max(best - base, 1e-3 * best)
    times = {level: [run.when(level * best, whole) for run in list(runs.values())[:2]] for level in LEVELS}
    saved = times[LEVELS[-1]][0] - times[LEVELS[-1]][1]
    for name, seed, run in cases:
        gain = (run.at(SOON * whole) - base) / best
        if name != "usual":
            yield Row(title, family, graph, seed, name, gain, saved if name == "learned" else None)
    yield Row(title, family, graph, 1, "learned, at T", runs["learned"].at(whole) / best - 1)
    for name in ("usual", "learned"):
        beyond = runs[name].at(SOON * whole) / best - ENOUGH
        yield Row(title, family, graph, 1, f"{name}: beyond 90 % of B", beyond)
    closed = float(np.clip((runs["learned"].at(SOON * whole) - base) / left, -1.0, 1.0))
    yield Row(title, family, graph, 1, "learned: of the way from there to B", closed)
    for level, (before, after) in times.items():
        yield Row(title, family, graph, 1, f"learned: time to {100 * level:.0f} % of B", 1 - after / before)


def by_load(duals: Duals) -> Duals:
    """Return what predicts only as much as the load of a node says: a fit of the prediction by load and its root."""

    def fitted(traffic: csr_array, hint: FloatArray, lines: int) -> Multipliers | None:
        found = duals(traffic, hint, lines)
        if found is None:
            return None
        load = np.asarray(traffic.sum(axis=1)).ravel()
        columns = np.column_stack([np.ones(len(load)), load, np.sqrt(load)])
        return columns @ np.linalg.lstsq(columns, found[0], rcond=None)[0], found[1]

    return fitted


def shuffled(duals: Duals, seed: int) -> Duals:
    """Return what predicts the same multipliers in random order."""
    rng = np.random.default_rng(seed)

    def mixed(traffic: csr_array, hint: FloatArray, lines: int) -> Multipliers | None:
        found = duals(traffic, hint, lines)
        return None if found is None else (rng.permutation(found[0]), found[1])

    return mixed


def follow(bound: str, problem: MappingProblem, duals: Duals | None, steps: int, seconds: float) -> Run:
    """Run an ascent for ``steps`` and CPU ``seconds`` at most; steps that ended later do not count."""
    if bound == "cover":
        return _cover(problem, duals, steps, seconds)
    ascent = _spectral(bound, problem, duals)
    began, trace = process_time(), Trace()
    for _ in range(steps):
        best, over, found = ascent(duals)
        spent = process_time() - began
        if trace and spent > seconds:
            break
        trace.append((best, spent))
        if over:
            break
    return Run(trace, found)


#: One step of an ascent: its best value, whether it is exhausted, and its best multipliers.
Step = Callable[[Duals | None], tuple[float, bool, Multipliers]]


def _spectral(bound: str, problem: MappingProblem, duals: Duals | None) -> Step:
    form = partition_placement_form(problem) if bound == "joint" else parts_form(problem)
    assert form is not None
    ascent = SpectralAscent(form, 0, duals)

    def step(_: Duals | None) -> tuple[float, bool, Multipliers]:
        ascent.advance(np.inf, never)
        return ascent.best, ascent.exhausted, (ascent.best_shift, ascent.best_rho)

    return step


def _cover(problem: MappingProblem, duals: Duals | None, steps: int, seconds: float) -> Run:
    """Follow the core-traffic bound: every gain is a certified bound, and most of its time is spent between them."""
    nets = traffic_nets(problem)
    price = volume_of(nets)
    began, trace = process_time(), Trace()
    context = UNLIMITED._replace(duals=duals, should_stop=lambda: process_time() - began > seconds)
    for bound in core_traffic_bounds(problem, context, steps):
        if trace and process_time() - began > seconds:
            break
        trace.append((bound.value, process_time() - began))
        price = np.asarray(bound.certificate["price"])
    trace.append((trace[-1][0] if trace else 0.0, process_time() - began))
    return Run(trace, (price - volume_of(nets), 0.0))
