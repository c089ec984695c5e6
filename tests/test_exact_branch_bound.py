"""The dedicated branch and bound: equal to trying every mapping, resumable, and honest about what is left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exact_support import Recorder, optimum, random_graph, small_problem

from nmsolve.model.bound import Bound
from nmsolve.model.formats import load_graph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.branch_bound import BranchBound
from nmsolve.solvers.mapping.branch_bound.assignment import FAR, FAR_FLOAT, assign
from nmsolve.solvers.mapping.branch_bound.engine import _tree
from nmsolve.solvers.mapping.branch_bound.search import LIMIT, open_bound, search
from nmsolve.solvers.mapping.exact.data import exact_data
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT

INSTANCES = Path(__file__).parent.parent / "nmsolve" / "benchmarks" / "instances"
ONE_PER_CORE = (
    "mesh",
    "spare-cores",
    "torus",
    "faults",
    "dead-link",
    "matrix",
    "energy",
    "thirds",
    "constraints",
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ONE_PER_CORE)
def test_agrees_with_trying_every_mapping(kind: str, seed: int) -> None:
    """The optimum is found and proved, or the problem is shown to be impossible."""
    problem = replace(small_problem(kind, seed), node_limit=1)
    best = optimum(problem)
    context = Recorder(problem)
    assert BranchBound().refuses(problem) is None
    BranchBound().run(problem, context)
    assert context.value == (pytest.approx(best, rel=1e-12) if np.isfinite(best) else np.inf)
    assert context.low == (pytest.approx(best, rel=1e-5) if np.isfinite(best) else np.inf)
    assert np.isinf(best) or context.low <= best * (1 + 1e-12)
    assert context.bounds[-1].certificate["status"] == ("optimal" if np.isfinite(best) else "infeasible")


@pytest.mark.parametrize(("name", "best"), [("nug12", 578), ("tai12a", 224416)])
def test_published_optima_are_proved(name: str, best: int) -> None:
    """QAPLIB instances on a mesh (nug12) and with any distance matrix (tai12a) end at their published optimum."""
    graph = load_graph(INSTANCES / f"{name}.dat")
    given = graph.meta.get("distances")
    machine = Machine("m", (1, 1), (3, 4))
    if given is not None:
        machine = Machine("m", (1, 1), (1, 12), distance_matrix=np.array(given, np.float64))
    context = Recorder(MappingProblem(graph, machine, node_limit=1))
    BranchBound().run(context.problem, context)
    assert context.value == context.low == best


def test_an_optimal_start_is_proved_without_a_new_mapping() -> None:
    """Only better mappings are looked for; none found proves the start optimal."""
    problem = MappingProblem(
        random_graph(np.random.default_rng(3), 6), Machine("m", (1, 1), (2, 3)), node_limit=1
    )
    first = Recorder(problem)
    BranchBound().run(problem, first)
    again = Recorder(problem, start=first.best)
    BranchBound().run(problem, again)
    assert again.offers == [] and again.low == first.value


def test_open_bound_rises_to_the_optimum_and_never_above() -> None:
    """After every node the bound of what is left is valid and never falls."""
    problem = MappingProblem(
        random_graph(np.random.default_rng(4), 7), Machine("m", (1, 1), (2, 4)), node_limit=1
    )
    final = Recorder(problem)
    BranchBound().run(problem, final)
    data = exact_data(problem)
    tree, low = _tree(data, OBJECTIVE_LIMIT), 0
    while not search(tree, 1):
        assert low <= open_bound(tree) <= final.value * data.scale
        low = open_bound(tree)
    assert int(tree.state[LIMIT]) == 2 * final.value


def test_stopping_leaves_a_valid_bound() -> None:
    """Stopped after the first slice, the engine has raised a bound no higher than the optimum it would find."""
    problem = MappingProblem(
        random_graph(np.random.default_rng(5), 16), Machine("m", (1, 1), (4, 4)), node_limit=1
    )
    context = Recorder(problem)

    def raise_and_stop(bound: Bound) -> bool:
        context.stop = True
        return Recorder.raise_bound(context, bound)

    context.raise_bound = raise_and_stop  # type: ignore[method-assign]
    BranchBound().run(problem, context)
    assert context.bounds[0].certificate["status"] in ("running", "optimal")
    assert 0 < context.low <= context.value


def test_refusals_name_the_reason() -> None:
    """Too many nodes, route trees."""
    rng = np.random.default_rng(0)
    many = MappingProblem(random_graph(rng, 40), Machine("m", (1, 1), (7, 7)), node_limit=1)
    assert "limit is 32" in str(BranchBound().refuses(many))
    routed = MappingProblem(random_graph(rng, 4, multicast=True), Machine("m", (1, 1), (2, 2)),
                            "multicast-hops", node_limit=1)  # fmt: skip
    assert "route tree" in str(BranchBound().refuses(routed))


def test_contradiction_between_regions_is_infeasible() -> None:
    """Three nodes in two cores, one each."""
    rule = SideConstraint("r", "region", (0, 1, 2), (0, 1))
    problem = MappingProblem(random_graph(np.random.default_rng(0), 4), Machine("m", (1, 1), (2, 3)), "hops",
                             (rule,), 1)  # fmt: skip
    context = Recorder(problem)
    BranchBound().run(problem, context)
    assert context.low == np.inf and context.offers == []


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (4, 4), (3, 6)])
def test_assignment_kernel_is_optimal_with_valid_duals(rows: int, cols: int) -> None:
    """Same value as SciPy's solver; duals feasible and tight."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(rows)
    for far, kind in ((FAR, np.int64), (FAR_FLOAT, np.float64)):
        for _ in range(20):
            cost = rng.integers(0, 30, (rows, cols)).astype(kind)
            u, v, slack = (np.empty(size + 1, kind) for size in (rows, cols, cols))
            work = np.empty((3, cols + 1), np.int64)
            value = assign(cost, rows, cols, far, u, v, slack, work[0], work[1], work[2])
            i, j = linear_sum_assignment(cost)
            assert type(value) is (int if far == FAR else float)
            assert value == cost[i, j].sum() == u[1:].sum() + v[1:].sum()
            assert (cost - u[1:, None] - v[None, 1:] >= 0).all() and (v[1:] <= 0).all()
