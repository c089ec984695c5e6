"""What predicted multipliers are worth to bounds, on graphs that they were not trained on; a table of docs/learning.md.

``python bench/duals.py joint [--graphs 5] [--nodes 256] [--kinds mesh-geo,mesh-rnd] [--steps 100]``. Every graph has its ascent
without a prediction, to its end or ``--steps``; that takes T and gives a bound B. The table has what part of B each start has
reached at T/10, features and prediction included: the trained network, the same untrained (predicts 0), the mean effect of load
alone, random multipliers of the trained ones' size, and the final multipliers of the same graph (what a perfect
prediction would give). All times are CPU seconds; values are those of the ascent (checks of certificates are in the tests).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time

import numpy as np
from scipy.sparse import csr_array

from nmsolve.learn.duals.train import Settings
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.ascent import Spectral, SpectralAscent
from nmsolve.solvers.mapping.bounds.core_traffic import core_traffic_bounds, traffic_nets, volume_of
from nmsolve.solvers.mapping.bounds.guide import UNGUIDED, Duals
from nmsolve.solvers.mapping.bounds.learned import predicted, problem_of
from nmsolve.solvers.mapping.bounds.pairs import dense_traffic, never, pair_form
from nmsolve.solvers.mapping.bounds.partition_placement import partition_placement_form
from nmsolve.solvers.mapping.bounds.parts import parts_form
from nmsolve.solvers.mapping.bounds.projection import DiagonalAscent
from nmsolve.solvers.mapping.bounds.spectrum import distance_spectrum

#: Most CPU seconds of one ascent of the core-traffic bound.
LONG = 4.0

Trace = list[tuple[float, float]]


class Race:
    """One graph: an ascent can be begun from any start as often as wanted."""

    def __init__(self, method: str, problem: MappingProblem) -> None:
        self.method = method
        if method == "projection":
            form = pair_form(problem)
            self.data = (
                dense_traffic(form),
                form.plain_distances().sum(axis=1),
                distance_spectrum(form),
            )
        elif method == "cover":
            self.problem = problem
        else:
            made = partition_placement_form(problem) if method == "joint" else parts_form(problem)
            assert made is not None
            self.spectral: Spectral = made

    def run(
        self, duals: Duals | None, steps: int, seconds: float = np.inf
    ) -> tuple[Trace, tuple[FloatArray, float]]:
        """Return (best value, CPU seconds) after every step that ended in time, and the best multipliers."""
        if self.method == "cover":
            return self._cover(duals, steps, seconds)
        began, trace = process_time(), Trace()
        projection = self.method == "projection"
        one = DiagonalAscent(*self.data) if projection else None
        many = None if projection else SpectralAscent(self.spectral, 0, duals)
        for step in range(steps):
            if one is not None:
                one.advance(np.inf)
                if step == 0 and duals is not None:
                    found = duals("projection", csr_array(one.traffic), one.first_slope, len(one.mu))
                    if found is not None:
                        one.jump(found[0])
                best, over, now = one.best, one.exhausted, (one.best_shift, 0.0)
            else:
                assert many is not None
                many.advance(np.inf, never)
                best, over, now = many.best, many.exhausted, (many.best_shift, many.best_rho)
            spent = process_time() - began
            if spent > seconds:
                break
            trace.append((best, spent))
            if over:
                break
        return trace, now

    def _cover(
        self, duals: Duals | None, steps: int, seconds: float
    ) -> tuple[Trace, tuple[FloatArray, float]]:
        """Do as :meth:`run` for the core-traffic bound, whose every gain is a certified bound; ends after ``LONG`` at most."""
        began, trace = process_time(), Trace()
        nets = traffic_nets(self.problem)
        price = np.zeros(self.problem.n)
        limit = min(seconds, LONG)
        guide = UNGUIDED._replace(duals=duals, should_stop=lambda: process_time() - began > limit)
        for bound in core_traffic_bounds(self.problem, guide, steps):
            if process_time() - began <= limit:
                trace.append((bound.value, process_time() - began))
                price = np.asarray(bound.certificate["price"])
        trace.append((trace[-1][0] if trace else 0.0, process_time() - began))
        return trace, (price - volume_of(nets), 0.0)


def shuffled(seed: int) -> Duals:
    """Return what predicts the trained network's multipliers in random order."""
    rng = np.random.default_rng(seed)

    def duals(
        method: str, traffic: csr_array, slope: FloatArray, lines: int
    ) -> tuple[FloatArray, float] | None:
        found = predicted(method, traffic, slope, lines)
        return None if found is None else (rng.permutation(found[0]), found[1])

    return duals


def constant(
    method: str, traffic: csr_array, slope: FloatArray, lines: int
) -> tuple[FloatArray, float] | None:
    """Predict the trained network's multiplier of the whole graph and the same for every node."""
    found = predicted(method, traffic, slope, lines)
    return None if found is None else (np.zeros(len(slope)), found[1])


def table(method: str, kinds: list[str], nodes: int, graphs: int, steps: int) -> None:
    """Print a line per family: parts of the bound B that are reached at T/10, means over held-out graphs."""
    names = ["none", "trained", "constant", "shuffled", "perfect"]
    print(
        f"| {method} | T (s) | steps | {' | '.join(names)} | trained reaches 90 % at |\n|{'---|' * (len(names) + 4)}"
    )
    for kind in kinds:
        parts: dict[str, list[float]] = {name: [] for name in names}
        times, counts, when = [], [], []
        how = Settings(method, (kind,), (nodes,))
        Race(method, problem_of(how, 0, 99)).run(predicted, 3)  # loads what a first call loads
        for seed in range(graphs):
            race = Race(method, problem_of(how, seed, seed))
            cold, final = race.run(None, steps)
            bound, whole = cold[-1]
            times.append(whole)
            counts.append(len(cold))
            starts: dict[str, Duals] = {
                "trained": predicted, "constant": constant, "shuffled": shuffled(seed),
                "perfect": _known(final),
            }  # fmt: skip
            parts["none"].append(_at(cold, whole / 10) / bound)
            for name, duals in starts.items():
                trace, _ = race.run(duals, steps, whole)
                parts[name].append(_at(trace, whole / 10) / bound)
                if name == "trained":
                    when.append(next((t / whole for v, t in trace if v >= 0.9 * bound), 1.0))
        cells = " | ".join(f"{100 * np.mean(parts[n]):.1f} %" for n in names)
        print(
            f"| {kind} | {np.mean(times):.2f} | {np.mean(counts):.0f} | {cells} | {np.mean(when):.3f} T |",
            flush=True,
        )


def _known(final: tuple[FloatArray, float]) -> Callable[..., tuple[FloatArray, float]]:
    return lambda *_: final


def _at(trace: Trace, seconds: float) -> float:
    """Return the best value after ``seconds``; 0 before the first step has ended."""
    return max([v for v, t in trace if t <= seconds] or [0.0])


def main() -> None:
    """Print the table that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=["projection", "joint", "parts", "cover"])
    parser.add_argument("--graphs", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=256)
    parser.add_argument("--kinds", default="mesh-geo,mesh-comm,mesh-layered,mesh-rnd")
    parser.add_argument("--steps", type=int, default=200)
    o = parser.parse_args()
    table(o.method, o.kinds.split(","), o.nodes, o.graphs, o.steps)


if __name__ == "__main__":
    main()
