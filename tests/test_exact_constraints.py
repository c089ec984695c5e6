"""Every constraint function of both exact models, alone: it allows exactly the mappings its rule allows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from exact_support import random_graph, small_problem

from nmsolve.hw.cost import core_distance
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.exact import cut_lines as mip
from nmsolve.solvers.mapping.exact import positions as cp
from nmsolve.solvers.mapping.exact import rules
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.search.rows import CpSatRows, MipRows

Allowed = Callable[[tuple[int, ...]], bool]


def cp_mappings(data: ExactData, *more: Any) -> set[tuple[int, ...]]:
    """All mappings that ``one_core_per_node`` and ``more`` allow, by CP-SAT enumeration."""
    from ortools.sat.python import cp_model

    rows = CpSatRows()
    model, v = rows.model, cp.make_variables(rows, data)
    for rule in (rules.one_core_per_node, *more):
        rule(rows, data, v)
    found: set[tuple[int, ...]] = set()

    class Collect(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            found.add(tuple(next(p for p, x in enumerate(xs) if self.boolean_value(x)) for xs in v.x))

    solver = cp_model.CpSolver()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    for variables in (v.column, v.row, v.dx, v.dy, v.far, v.apart):  # not part of the rule: fixed
        for var in variables or ():
            model.add(var == 0)
    assert solver.solve(model, Collect()) in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    return found


def mip_mappings(data: ExactData, *more: Any) -> set[tuple[int, ...]]:
    """All mappings that ``one_core_per_node`` and ``more`` allow, by evaluating every Pyomo row."""
    import pyomo.environ as pyo

    made = MipRows("rules")
    v = mip.make_variables(made, data)
    for rule in (rules.one_core_per_node, *more):
        made.rule(rule.__name__)
        rule(made, data, v)
    rows = list(made.model.component_data_objects(pyo.Constraint))
    found = set()
    for core in itertools.product(range(data.cores), repeat=data.n):
        for u in range(data.n):
            for p in range(data.cores):
                v.x[u][p].set_value(int(core[u] == p))
        if all(
            (c.lower is None or pyo.value(c.body) >= pyo.value(c.lower) - 1e-9)
            and (c.upper is None or pyo.value(c.body) <= pyo.value(c.upper) + 1e-9)
            for c in rows
        ):
            found.add(core)
    return found


def all_mappings(data: ExactData, allowed: Allowed) -> set[tuple[int, ...]]:
    return {c for c in itertools.product(range(data.cores), repeat=data.n) if allowed(c)}


def rule_problem(*rules: SideConstraint, **machine: Any) -> ExactData:
    """Three nodes on 2x2 cores of capacity 2, without traffic."""
    graph = LogicGraph.from_edges(3, [0], [1], [1.0], sizes=np.array([[1], [2], [1]]))
    m = Machine("m", (1, 1), (2, 2), capacity={"neurons": 2}, **machine)
    return exact_data(MappingProblem(graph, m, "hops", rules))


RULES: list[tuple[str, ExactData, Allowed]] = [
    ("one_core_per_node", rule_problem(), lambda c: True),
    ("usable_cores_only", rule_problem(faulty_cores=(1,), taken_cores=(2,)), lambda c: not {1, 2} & set(c)),
    ("capacity", rule_problem(), lambda c: c[1] not in (c[0], c[2])),
    ("pin", rule_problem(SideConstraint("a", "pin", (2,), (3,))), lambda c: c[2] == 3),
    (
        "region",
        rule_problem(SideConstraint("a", "region", (0, 1), (0, 3))),
        lambda c: {c[0], c[1]} <= {0, 3},
    ),
    (
        "forbid",
        rule_problem(SideConstraint("a", "forbid", (0, 2), (1, 2))),
        lambda c: not {c[0], c[2]} & {1, 2},
    ),
    ("keep_apart", rule_problem(SideConstraint("a", "apart", (0, 1, 2))), lambda c: len(set(c)) == 3),
    ("keep_apart", rule_problem(SideConstraint("named twice", "apart", (2, 0, 2))), lambda c: c[0] != c[2]),
]


@pytest.mark.parametrize(("name", "data", "allowed"), RULES, ids=[r[0] for r in RULES])
def test_rule_allows_exactly_what_it_says(name: str, data: ExactData, allowed: Allowed) -> None:
    """For both solvers the rule allows the same mappings as the rule in Python."""
    expected = all_mappings(data, allowed)
    rule = getattr(rules, name)
    assert cp_mappings(data, rule) == expected
    assert mip_mappings(data, *([] if rule is rules.one_core_per_node else [rule])) == expected


def test_capacity_with_one_node_per_core_is_all_different() -> None:
    """Where no two nodes fit, capacity is "at most one node"; a node too large for any core has none."""
    data = exact_data(MappingProblem(random_graph(np.random.default_rng(0), 3), Machine("m", (1, 1), (1, 4)),
                                     node_limit=1))  # fmt: skip
    expected = all_mappings(data, lambda c: len(set(c)) == 3)
    assert cp_mappings(data, rules.capacity) == expected
    assert mip_mappings(data, rules.capacity) == expected


def cp_least_cost(data: ExactData, core: tuple[int, ...], *more: Any) -> float:
    """Least model objective of CP-SAT with ``x`` fixed to ``core``; inf if the rows exclude it."""
    from ortools.sat.python import cp_model

    rows = CpSatRows()
    model, v = rows.model, cp.make_variables(rows, data)
    for rule in more:
        rule(rows, data, v)
    for u, xs in enumerate(v.x):
        for p, x in enumerate(xs):
            model.add(x == int(core[u] == p))
    rows.minimise(rules.total_cost(rows, data, v))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.objective_value if solver.solve(model) == cp_model.OPTIMAL else np.inf


def mip_least_cost(data: ExactData, core: tuple[int, ...], *more: Any) -> float:
    """Least objective of the Pyomo model with ``x`` fixed to ``core``; inf if the rows exclude it."""
    from nmsolve.solvers.search.mip import solve_highs
    from nmsolve.solvers.search.rows import Built
    from nmsolve.solvers.search.scaling import Scale

    rows = MipRows("rules")
    v = mip.make_variables(rows, data)
    for rule in more:
        rows.rule(rule.__name__)
        rule(rows, data, v)
    rows.minimise(rules.total_cost(rows, data, v))
    rows.rule("fix")
    for u in range(data.n):
        for p in range(data.cores):
            rows.add(v.x[u][p] == int(core[u] == p))
    end = solve_highs(
        Built(rows.model, Scale(1.0, False, data.integral), partial(rules.placed, v.x)),
        seed=1, workers=1, seconds=20, should_stop=lambda: False, on_solution=lambda core: None,
    )  # fmt: skip
    return np.inf if end.bound is None or end.status != "optimal" else end.bound


MEASURES: list[tuple[str, str, str]] = [
    ("mesh", "positions axis_distances", "cut_lines crossings"),
    ("torus", "positions axis_distances", "cut_lines crossings"),
    ("chips", "positions axis_distances on_different_cores", "cut_lines crossings on_different_cores"),
    ("matrix", "matrix_distances", "flows"),
    ("cut", "on_different_cores", "on_different_cores"),
    ("connectivity", "net_presence", "net_presence"),
    ("multicast-hops", "positions axis_distances net_presence net_routes", "cut_lines crossings net_presence net_routes"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "cp_rows", "mip_rows"), MEASURES, ids=[m[0] for m in MEASURES])
def test_measures_cost_what_the_mapping_costs(kind: str, cp_rows: str, mip_rows: str) -> None:
    """With the mapping fixed, the measuring rows alone drive the objective to the true cost."""
    problem = small_problem(kind, 7)
    data = exact_data(problem)
    rng = np.random.default_rng(1)
    for _ in range(3):
        core = rng.choice(np.flatnonzero(problem.machine.usable), problem.n)
        if problem.one_per_core:
            core = rng.permutation(np.flatnonzero(problem.machine.usable))[: problem.n]
        at = tuple(int(p) for p in core)
        value = data.value(core)
        assert (
            cp_least_cost(data, at, *(getattr(cp, r, None) or getattr(rules, r) for r in cp_rows.split()))
            == value
        )
        mip_rules = (getattr(mip, r, None) or getattr(rules, r) for r in mip_rows.split())
        assert mip_least_cost(data, at, *mip_rules) == pytest.approx(value / data.scale, abs=1e-6)


STRENGTHENERS = ("least_distances", "company", "star_rows", "triangle_rows", "net_links")


@pytest.mark.parametrize("name", STRENGTHENERS)
@pytest.mark.parametrize("kind", ["spare-cores", "several-per-core", "matrix", "torus", "multicast-hops"])
def test_strengtheners_cut_no_mapping_and_no_cost(name: str, kind: str) -> None:
    """A valid row leaves the cost of every feasible mapping as it is (twins tested through the solvers)."""
    problem = small_problem(kind, 2)
    data = exact_data(problem)
    measures = (*cp.DISTANCES, *rules.MEASURES)
    rng = np.random.default_rng(3)
    usable = np.flatnonzero(problem.machine.usable)
    for _ in range(3):
        slots = np.repeat(usable, 1 if problem.one_per_core else 2)
        core = rng.permutation(slots)[: problem.n]
        at = tuple(int(p) for p in core)
        assert cp_least_cost(data, at, *measures, getattr(rules, name)) == data.value(core)


def test_star_and_triangle_rows_lift_the_relaxation() -> None:
    """On a dense 3x3 mesh the linear relaxation without the rows is 0, with them far above."""
    from nmsolve.solvers.search.mip import _load

    i, j = np.triu_indices(9, 1)
    graph = LogicGraph.from_edges(9, i, j, 1.0 + (i + j) % 3)
    data = exact_data(MappingProblem(graph, Machine("m", (1, 1), (3, 3)), node_limit=1))
    assert core_distance(data.problem).separable

    def relaxed(*more: Any) -> float:
        rows = MipRows("relaxed")
        v = mip.make_variables(rows, data)
        for rule in (rules.one_core_per_node, rules.capacity, *mip.DISTANCES, *more):
            rows.rule(rule.__name__)
            rule(rows, data, v)
        rows.minimise(rules.total_cost(rows, data, v))
        highs, _ = _load(rows.model)
        highs.setOptionValue("solve_relaxation", True)
        highs.run()
        return float(highs.getInfo().objective_function_value)

    assert relaxed() == pytest.approx(0.0, abs=1e-6)
    least = relaxed(rules.least_distances)
    assert relaxed(rules.least_distances, rules.triangle_rows) > 1.2 * least
    assert relaxed(rules.least_distances, rules.star_rows) > 1.2 * least
