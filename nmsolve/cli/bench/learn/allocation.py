"""Learned plans of automatic mode beside the fixed plan, its ablations, and the best engine alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

from nmsolve.cli.bench.learn.suite import Row, Suite
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.allocation.instances import of_family
from nmsolve.solvers.mapping.allocation.measures import worth
from nmsolve.solvers.mapping.allocation.slices import Curves, alone
from nmsolve.solvers.mapping.auto import automatic

#: CPU seconds of a run if the suite does not say.
SECONDS = 2.0
#: Rivals and the allocations that they stand for.
RIVALS = {"learned": "learned", "untrained": "uniform", "constant": "constant"}


def compare(suite: Suite) -> Iterator[Row]:
    """Yield gains in objective, primal integral, bound and gap, on one graph with and one without a core for every node.

    ``best arm`` is the best of all heuristics alone, and of all bounds alone, with all of the time. Only ``learned`` runs with
    all seeds, the others with the first.
    """
    seconds = suite.seconds or SECONDS
    for family, graph in suite.cases():
        for own_core in (True, False):
            problem = of_family(f"mesh-{family}", graph, own_core).problem()
            kind = "a core per node" if own_core else "several per core"
            for seed in range(1, suite.seeds + 1):
                allocations = (
                    {"fixed": "fixed", "learned": "learned"} if seed > 1 else {"fixed": "fixed", **RIVALS}
                )
                runs = {
                    name: alone(problem, None, seconds, seed=seed, allocate=allocate)
                    for name, allocate in allocations.items()
                }
                if seed == 1:
                    runs["best arm"] = _best_arm(problem, seconds)
                best = min(run.best for run in runs.values())
                base = worth(runs.pop("fixed"), best, seconds)
                for name, run in runs.items():
                    for what, gain in worth(run, best, seconds).gains(base).items():
                        yield Row(f"{kind}, {seconds:g} s, {what}", family, graph, seed, name, gain)


def _best_arm(problem: MappingProblem, seconds: float) -> Curves:
    """Return the objectives of the best heuristic alone, and the bounds of the best bound alone."""
    engines = [step.engine for step in automatic(problem, seconds, 1, lambda name, why: None)]
    runs = {e.name: alone(problem, e.name, seconds) for e in engines}
    finder = min((runs[e.name] for e in engines if e.finds != "bounds"), key=lambda run: run.best)
    prover = max(
        (runs[e.name] for e in engines if e.finds == "bounds"),
        key=lambda run: run.bounds[-1][1] if run.bounds else -math.inf,
        default=finder,
    )
    return Curves(finder.objectives, prover.bounds, finder.core, finder.took)
