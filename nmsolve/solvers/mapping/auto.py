"""Which engines run on a problem, in which order and for how long."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine
from nmsolve.solvers.search.entries import steps_for
from nmsolve.solvers.search.portfolio import Step

#: Called with (engine name, status with the reason) for every engine that was considered and left out.
Refused = Callable[[str, str], None]


#: Up to this many nodes and cores, exact engines have a chance to prove something.
EXACT_NODES, EXACT_CORES = 40, 64
#: Up to this many nodes, one per core, proofs take seconds: nothing else gets more than QUICK seconds before.
EASY_NODES, QUICK = 16, 0.5
#: On larger small problems, part of the time that every heuristic and every bound may use before the exact engines.
SMALL_PART, SMALL_BOUND = 0.25, 0.1
#: Share of the machine's room that is used from which, and up to which, the bound ``joint`` is the better and the worse.
FULL, LOOSE = 0.75, 0.5
#: Seconds in which the projection bound gets most of what it ever gets.
SPECTRAL = 2.5
#: Sum of the shares of the heuristics.
HEURISTICS = 0.9
#: Smallest part of the time limit for one spectral bound that comes before the heuristics, and the largest with one and with
#: several nodes per core. Linear algebra cannot be interrupted: a bound that needs more is not begun.
LEAST_PART, MOST_PART, LEAST_PART_JOINT, MOST_PART_JOINT = 0.06, 0.1, 0.25, 0.35
#: Part of the time for the bounds that come after the heuristics: this at once, and this much more per second of the time
#: limit, up to the largest.
AFTER, AFTER_PER_SECOND, MOST_AFTER = 0.1, 0.005, 0.4
#: From this many nodes, or connections, on, tables of what every node costs everywhere take longer to fill than the search.
LARGE_NODES, LARGE_EDGES = 200_000, 20_000_000
#: One node per core: from this many nodes on, and with less than this many seconds for each, annealing from nowhere does not
#: get as far as bisection and refinement (measured on layered networks of 4,096 and 65,536 clusters).
MANY, PER_NODE = 2000, 0.005
#: Largest part of the time for neighbour counting, which says little where cores hold many nodes.
MOST_NEIGHBOURS = 0.05
#: From this many nodes on, market prices cut less than tables do (measured on snn20k, snn100k, delaunay, microcircuit).
CUT_NODES = 5000
#: Neighbours per node from which exactly solved subgraphs say less than eigenvalues.
DENSE = 13.0


def chosen(
    problem: MappingProblem, names: Sequence[str], refused: Refused, mip_solver: str = "highs"
) -> list[Step]:
    """The plan of ``--engines``: the named engines in this order with equal shares.

    Raises
    ------
    InputError : no name, an unknown one, or every engine refuses the problem
    """
    if not names:
        raise InputError("no engine is given", "--engines", "one of " + ", ".join(REGISTRY))
    steps, refusals = _steps(problem, names, mip_solver)
    for name, reason in refusals.items():
        refused(name, f"refused: {reason}")
    if not steps:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refusals.items())
        raise InputError("every chosen engine refuses: " + reasons, "--engines", "other engines")
    return steps


def _steps(
    problem: MappingProblem, names: Sequence[str] | None, mip_solver: str, **plan: Any
) -> tuple[list[Step], dict[str, str]]:
    return steps_for(REGISTRY, problem, names, make=lambda name: make_engine(name, mip_solver), **plan)


def automatic(
    problem: MappingProblem, seconds: float, workers: int, refused: Refused, mip_solver: str = "highs"
) -> list[Step]:
    """The plan of automatic mode: cheap bounds, heuristics, bounds that profit from a mapping, then exact engines where
    they have a chance.

    On small problems heuristics and bounds are brief (EASY_NODES, SMALL_PART) and the exact engines get the rest. With
    several workers the heuristics start first, and the bounds beside them. ``seconds`` is the time limit. A graph that
    is on disk gets the engines that read it block by block.

    Raises
    ------
    InputError : the graph is on disk, and no engine that finds mappings takes the problem
    """
    small = problem.n <= EXACT_NODES and problem.cores <= EXACT_CORES and not problem.graph.on_disk
    before, after = _before(problem, seconds), _after(problem, seconds)
    heuristics = _heuristics(problem, seconds)
    shares = before | heuristics | after if workers == 1 else heuristics | before | after
    exact = _exact(problem) if small else {}
    shares = {"star": 0.01, "external": HEURISTICS} if problem.graph.on_disk else shares | exact
    easy = problem.n <= EASY_NODES and problem.one_per_core

    def most(name: str) -> float:
        if not small or name in exact:  # an exact engine cut short would lose its proof
            return math.inf
        part = SMALL_PART if name in heuristics or not problem.one_per_core else SMALL_BOUND
        return QUICK if easy or name in before else max(QUICK, part * seconds)

    steps, refusals = _steps(problem, None, mip_solver, shares=shares, most=most)
    late = {name: _too_slow(name, problem, seconds) or outdone(name, problem) for name in shares}
    for name in shares:
        if name in refusals or late[name] is not None:
            refused(name, f"refused: {refusals[name]}" if name in refusals else f"not run: {late[name]}")
    if problem.graph.on_disk and "external" in refusals:
        raise InputError(
            f"the graph is on disk; external: {refusals['external']}",
            problem.graph.name,
            "more --memory, or another problem",
        )
    return [step for step in steps if late[step.engine.name] is None]


def _before(problem: MappingProblem, seconds: float) -> dict[str, float]:
    """The bounds that need no mapping, with their shares: they give the gap from the start."""
    shares = {"star": 0.01, "gilmore-lawler": 0.04}
    # For nets tree-parts is the stronger one of its kind, and profits from a mapping.
    for name in ("projection", "joint") if uses_nets(problem) else ("projection", "parts", "joint"):
        least = LEAST_PART if problem.one_per_core else LEAST_PART_JOINT
        wish = max(SPECTRAL, 1.1 * least_seconds(name, problem)) / seconds
        part = min(_most_part(problem), max(least, wish))
        shares[name] = HEURISTICS * part / (1 - part)
    return shares


def _after(problem: MappingProblem, seconds: float) -> dict[str, float]:
    """The bounds that aim at the best mapping, with their shares: longer runs give them more."""
    part = min(MOST_AFTER, AFTER + AFTER_PER_SECOND * seconds)
    whole = HEURISTICS * part / (1 - part)
    if problem.objective == "reward":
        return {"exchange": whole}
    if uses_links(problem):
        return {"link-load": whole}
    if uses_nets(problem):
        return {"tree-parts": 0.5 * whole, "slots": 0.2 * whole, "cover": 0.3 * whole}
    if problem.one_per_core:
        return {"subgraphs": 0.65 * whole, "split": 0.35 * whole}
    return {"slots": 0.5 * whole, "cover": 0.5 * whole}


def _exact(problem: MappingProblem) -> dict[str, float]:
    """The exact engines with their shares; beyond EASY_NODES with one node per core CP-SAT proves nothing."""
    if problem.one_per_core and problem.n > EASY_NODES:
        return {"branch-bound": 0.9, "cpsat": 0.1}
    return {"branch-bound": 0.7, "cpsat": 0.3}


def least_seconds(name: str, problem: MappingProblem) -> float:
    """CPU seconds a bound needs before it says anything, as measured on one core; 0 for those that need none."""
    n, m, cores = problem.n, problem.graph.m, problem.cores
    if name == "star" and not problem.graph.on_disk:
        return 6e-7 * m
    if name == "gilmore-lawler":
        return 2.5e-10 * cores**3
    if name == "projection":
        return 1.6e-9 * cores**3
    if name == "split":
        return 1e-8 * cores**3
    if name == "parts":
        return 1.6e-7 * (m + 20 * n) * min(-(-n // _room(problem)) + 8, 48, n)
    if name == "tree-parts":
        return 4e-7 * (m + problem.graph.rows) * (min(-(-n // _room(problem)), 40) + 8)
    if name == "joint":
        lines = problem.machine.rows + problem.machine.cols
        return 3.2e-7 * (m + 20 * n) * min(lines + 6, 48, n)
    return 0.0


def outdone(name: str, problem: MappingProblem) -> str | None:
    """Why another bound is the better one, or None.

    Several nodes per core: joint on well filled cores, parts on loosely filled ones. One: split is above projection, and
    subgraphs pay where nodes have few neighbours.
    """
    if name == "subgraphs" and problem.one_per_core and _neighbours(problem) > DENSE:
        return "nodes have many neighbours, where the split bound is better"
    if name not in ("parts", "joint") or uses_nets(problem) or problem.machine.distance_matrix is not None:
        return None
    fill = problem.n / max(1, _room(problem) * int(problem.machine.usable.sum()))
    if name == "parts" and fill > FULL:
        return "cores are well filled, where the bound `joint` is better"
    if name == "joint" and fill < LOOSE:
        return "cores are loosely filled, where the parts bound is better"
    return None


def _neighbours(problem: MappingProblem) -> float:
    """Mean number of nodes that a node sends to or receives from."""
    n, source, target = problem.n, problem.graph.edge_source.astype(np.int64), problem.graph.targets
    pairs = np.unique(np.minimum(source, target) * n + np.maximum(source, target))
    return 2.0 * len(pairs) / n


def _room(problem: MappingProblem) -> int:
    from nmsolve.solvers.mapping.bounds.pairs import room_per_core

    return max(1, room_per_core(problem))


def _most_part(problem: MappingProblem) -> float:
    return MOST_PART if problem.one_per_core else MOST_PART_JOINT


def _too_slow(name: str, problem: MappingProblem, seconds: float) -> str | None:
    """Why a bound does not pay in so short a run, or None."""
    least = 1.1 * least_seconds(name, problem)
    most = AFTER + AFTER_PER_SECOND * seconds if name in ("split", "tree-parts") else _most_part(problem)
    most = MOST_NEIGHBOURS if name == "star" else most
    if least <= min(MOST_AFTER, most) * seconds:
        return None
    return f"it would take about {least:.1f} of {seconds:g} seconds"


def _heuristics(problem: MappingProblem, seconds: float) -> dict[str, float]:
    """The heuristics for the kind of problem, with their shares, which add up to HEURISTICS."""
    if problem.limits_moves:
        return {"remap": HEURISTICS}
    if problem.ceilings or problem.table_limit is not None:
        return {"links": HEURISTICS}
    if problem.axons is not None:
        return {"first-fit" if uses_links(problem) else "nets": HEURISTICS}
    if problem.objective == "reward":
        return {"multilevel": 0.25, "reward": 0.65}
    if uses_links(problem):
        return {"multilevel": 0.25, "links": 0.65}
    large = problem.n >= LARGE_NODES or problem.graph.m >= LARGE_EDGES
    if uses_nets(problem):
        return {"external": HEURISTICS} if large else {"multilevel": 0.25, "nets": 0.65}
    if problem.one_per_core:
        mesh = problem.machine.distance_matrix is None
        if mesh and problem.n >= MANY and seconds < PER_NODE * problem.n:
            return {"multilevel": HEURISTICS}
        return {"anneal": 0.2, "tabu": 0.7} if mesh else {"anneal": 0.1, "tabu": 0.8}
    if large or (problem.objective == "cut" and problem.n >= CUT_NODES):
        return {"external": HEURISTICS}
    return {"multilevel": 0.9}
