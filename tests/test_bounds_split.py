"""The split bound against brute force, its rows against random placements, its certificates against tampering."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from nmsolve.hw.cost import core_distance
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.split import refuses_split
from nmsolve.solvers.mapping.bounds.split.ascent import Ascent
from nmsolve.solvers.mapping.bounds.split.bound import certified_bound
from nmsolve.solvers.mapping.bounds.split.form import split_form
from nmsolve.solvers.mapping.certificates import certificates_from_json, certificates_to_json, check_bound

KINDS = ("mesh", "torus", "chips", "faulty core", "dead link", "metric matrix", "any matrix", "region")


def optimum(problem: MappingProblem) -> float:
    """Least objective over all one-to-one mappings."""
    usable = np.flatnonzero(problem.machine.usable)
    maps = np.array(list(permutations(usable.tolist(), problem.n)))
    allowed = problem.domains[problem.domain_of]
    maps = maps[allowed[np.arange(problem.n), maps].all(axis=1)]
    d, graph = core_distance(problem).dense(), problem.graph
    cost: FloatArray = (graph.weights * d[maps[:, graph.edge_source], maps[:, graph.targets]]).sum(axis=1)
    return float(cost.min())


def random_problem(seed: int) -> MappingProblem:
    """At most seven nodes on at most nine cores; the seed sets the kind of machine."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    rows, cols = ((2, 3), (1, 6), (2, 4), (3, 3), (2, 2), (4, 2))[rng.integers(6)]
    if kind == "chips":
        rows, cols = ((2, 4), (1, 6), (3, 2))[rng.integers(3)]
    if kind == "torus":
        rows, cols = ((1, 6), (2, 4), (3, 3), (1, 7))[rng.integers(4)]
    cores = rows * cols
    n = min(cores - (kind == "faulty core"), int(rng.integers(cores - 2, cores + 1)), 7)
    edges = int(rng.integers(n, 3 * n))
    weight = rng.integers(1, 9, edges).astype(float) if rng.random() < 0.6 else rng.random(edges) * 5
    graph = LogicGraph.from_edges(n, rng.integers(0, n, edges), rng.integers(0, n, edges), weight)
    rules = (SideConstraint("r", "region", (0, 1), tuple(range(cores - 1))),) if kind == "region" else ()
    objective = "energy" if rng.random() < 0.25 else "hops"
    return MappingProblem(graph, _machine(rng, kind, rows, cols), objective, rules, 1)


def _machine(rng: np.random.Generator, kind: str, rows: int, cols: int) -> Machine:
    cores = rows * cols
    if "matrix" in kind:
        d = rng.integers(1, 9, (cores, cores)).astype(float)
        d = np.maximum(d, d.T)
        np.fill_diagonal(d, 0)
        for p in range(cores if kind == "metric matrix" else 0):
            d = np.minimum(d, d[:, p][:, None] + d[p])
        return Machine("m", (1, 1), (1, cores), distance_matrix=d)
    energy = {"message": Figure(5), "router": Figure(1), "link_x": Figure(3), "link_y": Figure(4.2)}
    if kind == "chips":
        return Machine("m", (1, 2), (rows, cols // 2), crossing_weight=3.0, energy=energy)
    return Machine(
        "m",
        (1, 1),
        (rows, cols),
        torus=kind == "torus",
        faulty_cores=(int(rng.integers(cores)),) if kind == "faulty core" else (),
        faulty_links=((0, 1),) if kind == "dead link" and rows > 1 and cols > 1 else (),
        energy=energy,
    )


def last_bound(problem: MappingProblem, steps: int) -> Bound:
    """The certified bound after so many steps of the ascent."""
    form = split_form(problem)
    ascent = Ascent(form, np.zeros(form.k))
    for _ in range(steps):
        ascent.advance(np.inf)
    return certified_bound(form, ascent.best)[0]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_never_above_the_optimum_and_confirmed_after_json(kind: int) -> None:
    """Forty random problems of each kind, with few and with many steps."""
    tight = 0
    for seed in range(kind, 40 * len(KINDS), len(KINDS)):
        problem = random_problem(seed)
        if refuses_split(problem) is not None:
            continue
        best = optimum(problem)
        bound = last_bound(problem, 10 if seed % 3 else 120)
        assert bound.value <= best * (1 + 1e-9) + 1e-9, (seed, bound.value, best)
        read = certificates_from_json(certificates_to_json(problem, [bound]))[0]
        check = check_bound(problem, read)
        assert check.ok, (seed, check.text)
        tight += bound.value > 0.7 * best
    assert tight > 20
