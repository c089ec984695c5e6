"""Small fixed instances, and what it takes to run an engine on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from counted import Counted

from nmsolve.hw.scores import broken_ceiling, objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray


def board(rows: int, cols: int, **more: Any) -> Machine:
    """A mesh on one chip, healthy unless told otherwise."""
    return Machine("board", (1, 1), (rows, cols), **more)


def grid(rows: int, cols: int) -> LogicGraph:
    """A grid with unit weights, its nodes numbered at random."""
    at = np.random.default_rng(5).permutation(rows * cols).reshape(rows, cols)
    ends = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    a, b = (np.concatenate([e[k].ravel() for e in ends]) for k in (0, 1))
    return LogicGraph.from_edges(rows * cols, a, b, directed=False)


def near(n: int, links: int, seed: int = 0) -> LogicGraph:
    """Random points in a square, each joined to its nearest; whole weights."""
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    far = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(far, np.inf)
    a = np.repeat(np.arange(n), links)
    b = np.argsort(far, axis=1)[:, :links].ravel()
    pair = np.unique(np.minimum(a, b) * n + np.maximum(a, b))
    weights = rng.integers(1, 9, len(pair)).astype(float)
    return LogicGraph.from_edges(n, pair // n, pair % n, weights, directed=False)


def casts(n: int, targets: int, seed: int = 0) -> LogicGraph:
    """Every node of a ring sends one multicast message to nodes not far from it, of a whole rate."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    a = np.repeat(np.arange(n), targets)
    away = 1 + np.abs(rng.normal(0.0, targets, (n, targets))).astype(np.int64)
    b = (a + np.where(rng.random(len(a)) < 0.5, 1, -1) * np.minimum(away.ravel(), n // 2 - 1)) % n
    a, b = np.divmod(np.unique(a * n + b), n)
    rate = rng.integers(1, 9, n).astype(float)
    return LogicGraph.from_edges(n, order[a], order[b], rate[order[a]], multicast=np.ones(n, bool))


def dense(n: int, seed: int = 0) -> LogicGraph:
    """Whole traffic between all pairs, much of it small."""
    a, b = np.triu_indices(n, 1)
    weights = np.floor(10 * np.random.default_rng(seed).random(len(a)) ** 3)
    return LogicGraph.from_edges(n, a[weights > 0], b[weights > 0], weights[weights > 0], directed=False)


def placement(graph: LogicGraph, machine: Machine, objective: str = "hops") -> MappingProblem:
    """One node per core."""
    return MappingProblem(graph, machine, objective, (), 1)


def mapped(problem: MappingProblem) -> Callable[[IntArray], float]:
    """The evaluator, which refuses what breaks a rule."""

    def value(core: IntArray) -> float:
        assert not check_mapping(problem, core)
        assert broken_ceiling(problem, core) is None
        return objective_value(problem, core)

    return value


def run(engine: Any, problem: MappingProblem, **context: Any) -> Counted:
    """The context after a run of an engine on a mapping problem that it takes."""
    assert engine.refuses(problem) is None, engine.refuses(problem)
    counted = Counted(mapped(problem), **context)
    engine.run(problem, counted)
    return counted


def found(engine: Any, problem: MappingProblem, seeds: int, **context: Any) -> float:
    """Mean objective over runs with this number of seeds."""
    values = [run(engine, problem, seed=s, **context).value for s in range(1, seeds + 1)]
    return float(np.mean(values))


def proved(engine: Any, problem: MappingProblem, **context: Any) -> float:
    """The best bound that an engine raises."""
    return run(engine, problem, **context).bound()


def at_most(value: float, floor: float) -> None:
    """What an engine found is no worse than its floor."""
    assert value <= floor, f"found {value:.6g}, floor {floor:.6g}"


def at_least(value: float, floor: float) -> None:
    """What a bound proves is no weaker than its floor."""
    assert value >= floor, f"proved {value:.6g}, floor {floor:.6g}"
