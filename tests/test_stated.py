"""Groups that must share a core: nothing is gained or lost by merging them, and re-checks never look at what was merged.

Objectives come from ``hw_reference``, optima from all mappings of the problem as it is stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest
from hw_reference import graphs, machines, objective
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nmsolve.check.mapping.bounds.parts import granularity
from nmsolve.check.mapping.bounds.stated import contracted
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.formats.implied import implied_machine
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.bounds.core_traffic import core_traffic_bounds, refuses_core_traffic
from nmsolve.solvers.mapping.bounds.link_load import exchange_bounds, link_load_bounds
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound, refuses_nets
from nmsolve.solvers.mapping.bounds.pairs import pair_form, refuses_pairs
from nmsolve.solvers.mapping.bounds.parts import parts_bounds, refuses_parts
from nmsolve.solvers.mapping.bounds.trees_parts import refuses_tree_parts, tree_parts_bounds


@st.composite
def tied(draw: st.DrawFn) -> MappingProblem:
    """A small problem with groups that must share a core: multicast and ordinary rows, every objective, a few nodes per core."""
    graph: LogicGraph = draw(graphs())
    machine: Machine = draw(machines())
    machine = replace(
        machine, chips=(1, machine.chips[1]), cores=(min(2, machine.cores[0]), min(2, machine.cores[1]))
    )
    assume(graph.n <= 6 and machine.size <= 4)
    if draw(st.booleans()):
        weights, rate = graph.weights * 0.3, graph.rate * 0.3
        graph = replace(graph, weights=weights, rate=rate)
    node = st.integers(0, graph.n - 1)
    groups = draw(st.lists(st.lists(node, min_size=2, max_size=3), min_size=1, max_size=2))
    constraints = tuple(
        SideConstraint(f"t{k}", "together", tuple(nodes), ()) for k, nodes in enumerate(groups)
    )
    room = draw(st.integers(1, 4))
    names = [
        name for name, aim in OBJECTIVES.items() if aim.charges not in ("time", "power")
    ]  # refused with groups (tests/test_step_time.py)
    return MappingProblem(graph, machine, draw(st.sampled_from(names)), constraints, room)


def bounds_of(reduced: MappingProblem) -> Iterator[Bound]:
    """The first bounds of everything that takes a problem without groups."""
    if reduced.uses_links:
        find = exchange_bounds if reduced.objective == "reward" else link_load_bounds
        yield from islice(find(reduced), 8)
        return
    for refuses, one in (
        (refuses_pairs, neighbour_bound),
        (refuses_nets, fan_out_bound),
    ):
        if refuses(reduced) is None:
            yield one(reduced)
    if refuses_core_traffic(reduced) is None:
        yield from islice(core_traffic_bounds(reduced, rounds=20), 3)
    if refuses_parts(reduced) is None:
        yield from islice(parts_bounds(reduced, rounds=3), 3)
    if reduced.uses_nets and refuses_tree_parts(reduced) is None:
        yield from islice(tree_parts_bounds(reduced, rounds=3), 3)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problem=tied())
def test_merging_changes_no_objective_and_bounds_hold_for_the_problem_as_stated(
    problem: MappingProblem,
) -> None:
    """Every mapping of the groups costs the same in the reduced problem, in the one of the re-checks and by definition; every
    re-checked bound is at most the optimum by brute force."""
    reduction, own = merge_together(problem), contracted(problem)
    reduced = reduction.reduced
    best = np.inf
    for at in product(range(problem.cores), repeat=reduced.n):
        small = np.array(at, np.int64)
        core = reduction.lift(small)
        true = objective(problem.graph, problem.machine, core, problem.objective)
        assert objective_value(reduced, small) == pytest.approx(true, rel=1e-12)
        assert true * (1 - 1e-12) <= objective_value(own, small) * (1 + 1e-12) <= true * (1 + 3e-12)
        if np.bincount(core).max() <= problem.node_limit:
            best = min(best, true)
    assume(best < np.inf)
    for bound in bounds_of(reduced):
        check = check_bound(problem, bound)
        assert check.ok, f"{bound.method}: {check.text}"
        assert bound.value <= check.value <= best * (1 + 1e-12), bound.method


def test_a_rate_is_the_largest_stated_weight_however_nodes_are_merged() -> None:
    """Node 0 sends 1 each to 1, 2 and 3, of which 1 and 2 share a core: one copy per remote core costs 1, so two cores cost 2."""
    graph = LogicGraph.from_edges(
        4, [0, 0, 0], [1, 2, 3], [1.0, 1.0, 1.0], sizes=np.array([[2], [1], [1], [2]])
    )
    problem = MappingProblem(
        graph,
        Machine("m", (1, 1), (1, 3), capacity={"neurons": 2}),
        "connectivity",
        (SideConstraint("t", "together", (1, 2), ()),),
    )
    best = min(
        objective(graph, problem.machine, np.array([a, b, b, c]), "connectivity")
        for a, b, c in product(range(3), repeat=3)
        if len({a, b, c}) == 3
    )
    assert best == 2.0
    result = solve(problem, time_limit=5.0, engines=["first-fit", "star", "cpsat"])
    assert result.objective == result.bound == 2.0
    for claim in (2.0, 3.0):
        check = check_bound(problem, Bound(claim, "fan-out", "full", {"method": "fan-out"}))
        assert check.ok == (claim == 2.0) and check.value == 2.0, check.text


@pytest.mark.parametrize("together", [False, True])
def test_halves_that_add_up_to_whole_numbers_are_rounded_up_by_both_or_by_none(together: bool) -> None:
    """1.5 one way and 0.5 the other: no weight is whole, so nobody rounds up; merged, the sums are whole and exact."""
    graph = LogicGraph.from_edges(3, [0, 0, 2, 1], [1, 2, 0, 0], [1.5, 1.5, 0.5, 0.5])
    rules = (SideConstraint("t", "together", (1, 2), ()),) if together else ()
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 3)), "hops", rules, 2)
    bound = neighbour_bound(merge_together(problem).reduced)
    check = check_bound(problem, bound)
    assert check.ok and 0 < bound.value <= check.value
    assert granularity(contracted(problem)) == pair_form(merge_together(problem).reduced).lattice


def test_merging_counts_nodes_by_the_balance_alone() -> None:
    """What cores hold of a resource "nodes", which the graph does not have, is not mixed up with the limit of --balance."""
    graph = LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3])
    machine = Machine(
        "m",
        (1, 1),
        (1, 2),
        capacity={"nodes": 1},
        core_capacity={"nodes": np.array([1, 0])},
        held={"nodes": np.array([1, 0])},
    )
    problem = MappingProblem(graph, machine, "hops", (SideConstraint("t", "together", (0, 1), ()),), 2)
    core = np.array([0, 0, 1, 1])
    assert check_mapping(problem, core) == []
    reduction = merge_together(problem)
    for small in (reduction.reduced, contracted(problem)):
        assert check_mapping(small, reduction.restrict(core)) == [] and small.capacity.tolist() == [[2], [2]]


def test_a_core_is_at_no_distance_from_itself() -> None:
    """A message that stays on its core costs nothing; a given matrix that says otherwise is refused."""
    graph = LogicGraph.from_edges(2, [0], [1], meta={"distances": [[0.0, 1.0], [1.0, 2.0]]})
    with pytest.raises(InputError, match=r"distances\[1\]\[1\]: core 1 is at distance 2"):
        implied_machine(graph, "x.json")
    machine = Machine("m", (1, 1), (1, 2), distance_matrix=np.ones((2, 2)))
    together = (SideConstraint("t", "together", (0, 1), ()),)
    with pytest.raises(InputError, match="diagonal"):
        merge_together(MappingProblem(graph, machine, "hops", together))


def test_large_whole_weights_are_merged_exactly() -> None:
    """Whole sums below 2^53 lose nothing to rounding, or honest bounds that are rounded up to whole numbers would be refused."""
    graph = LogicGraph.from_edges(3, [0, 0], [1, 2], np.array([2.0**41, 3.0]))
    problem = MappingProblem(
        graph, Machine("m", (1, 1), (2, 2)), "cut", (SideConstraint("t", "together", (1, 2), ()),), 2
    )
    assert contracted(problem).graph.weights.tolist() == [2.0**41 + 3.0]
