"""An assignment as a cost network: the network's least cost over its auxiliary nodes is what the evaluator says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from assign_rows_support import random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.assignment.evaluate import objective
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint, fused_where_possible
from nmsolve.model.assignment.network import FORBIDDEN, network_complaint, network_cost
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import Reduced, reduced
from nmsolve.model.errors import InputError

problems = st.builds(
    random_problem,
    st.integers(0, 10**6),
    operators=st.integers(1, 5),
    units=st.integers(2, 4),
    sites=st.just(2),
    memories=st.integers(0, 2),
    groups=st.integers(0, 6),
    together=st.booleans(),
    objective=st.sampled_from(["latency", "energy"]),
)


def every_solution(problem: AssignProblem) -> list[np.ndarray]:
    """All assignments that keep all rules but memory, with every choice of fused groups that gain."""
    gain = problem.groups.energy if problem.objective == "energy" else problem.groups.time
    out = []
    for unit in product(*[np.flatnonzero(row >= 0).tolist() for row in problem.time]):
        for fused in product([False, True], repeat=problem.groups.count):
            answer = Assignment(np.array(unit), np.array(fused, bool), np.arange(problem.count))
            free = AssignProblem(**{**problem.__dict__, "units": without_limits(problem)})
            if assignment_complaint(free, answer) is None and all(
                gain[k, unit[problem.groups.of(k)[0]]] > 0 for k in np.flatnonzero(answer.fused)
            ):
                out.append(answer.packed(problem))
    return out


def without_limits(problem: AssignProblem):
    u = problem.units
    return type(u)(**{**u.__dict__, "capacity": np.full(len(u.memories), np.inf)})


def least_over_auxiliary(network, strategy: np.ndarray, operators: int) -> int:
    """Least cost, memory aside, over the nodes that are no operators, by trying: each sees only operators and rivals."""
    sizes = np.diff(network.ptr)
    rest = [range(n) for n in sizes[operators:]]
    best = FORBIDDEN
    if np.prod(sizes[operators:].astype(float)) > 5000:
        return -1
    for tail in product(*rest):
        best = min(best, network_cost(network, np.concatenate([strategy[:operators], tail]).astype(np.int64)))
    return best


def operators_of(r: Reduced) -> int:
    return len(r.stand_in)


@settings(max_examples=60, deadline=None)
@given(problems)
def test_costs_and_memory_of_the_network_are_those_of_the_evaluator_and_of_the_rules(
    problem: AssignProblem,
) -> None:
    r = reduced(problem)
    everything = every_solution(problem)
    for x in everything[:: max(1, len(everything) // 60)]:
        answer = Assignment.unpacked(problem, x)
        strategy = r.lower(x)
        back = r.lift(strategy)
        assert (
            assignment_complaint(
                AssignProblem(**{**problem.__dict__, "units": without_limits(problem)}),
                Assignment.unpacked(problem, back),
            )
            is None
        )
        cost = network_cost(r.network, strategy)
        assert cost == objective(problem, Assignment.unpacked(problem, back)) <= objective(problem, answer)
        same_units = (back[: problem.count] == answer.unit).all()
        if same_units and (back == x).all():
            assert cost == objective(problem, answer)
        memory_full = "holds" in (assignment_complaint(problem, answer) or "")
        if same_units:
            assert memory_full == (network_complaint(r.network, strategy) is not None)
        # what is lowered is lifted again, and stays
        assert (r.lift(r.lower(back)) == back).all() and (r.lower(back) == strategy).all()


@settings(max_examples=40, deadline=None)
@given(problems)
def test_lowering_sets_auxiliary_nodes_as_cheaply_as_operators_allow(problem: AssignProblem) -> None:
    r = reduced(problem)
    everything = every_solution(problem)
    for unit in {tuple(x[: problem.count].tolist()) for x in everything[:: max(1, len(everything) // 8)]}:
        at = r.lift(r.lower(np.concatenate([np.array(unit), np.zeros(problem.groups.count, np.int64)])))
        same = [x for x in everything if (x[: problem.count] == at[: problem.count]).all()]
        best = min(objective(problem, Assignment.unpacked(problem, x)) for x in same)
        found = least_over_auxiliary(r.network, r.lower(at), operators_of(r))
        assert found in (-1, best)


@settings(max_examples=40, deadline=None)
@given(problems)
def test_the_least_cost_of_all_is_kept_though_units_are_left_out(problem: AssignProblem) -> None:
    best = min(
        (objective(problem, Assignment.unpacked(problem, x)) for x in every_solution(problem)
         if assignment_complaint(problem, Assignment.unpacked(problem, x)) is None),
        default=None,
    )  # fmt: skip
    r = reduced(problem)
    found = [
        network_cost(r.network, s)
        for s in (r.lower(x) for x in every_solution(problem))
        if network_complaint(r.network, s) is None
    ]
    assert min(found, default=None) == best


def test_one_user_needs_no_auxiliary_node_and_two_users_need_one_for_every_site() -> None:
    problem = random_problem(3, operators=6, possible=1.0, tensors=1.0)
    r = reduced(problem)
    flows = problem.flows
    several = [t for t in range(flows.count) if len(set(flows.users(t).tolist())) > 1 and flows.time[t].any()]
    assert operators_of(r) == 6
    assert r.network.count - 6 <= 2 * len(several)


def test_a_memory_that_holds_everything_needs_no_nodes() -> None:
    problem = random_problem(5, operators=6, memories=2)
    roomy = type(problem.units)(**{**problem.units.__dict__, "capacity": np.full(2, 1e9)})
    r = reduced(AssignProblem(**{**problem.__dict__, "units": roomy}))
    assert not len(r.network.demand) and not r.network.limited


def test_equal_cores_of_one_site_are_one_choice() -> None:
    problem = random_problem(7, operators=5, units=5, sites=2, possible=1.0)
    r = reduced(problem)
    assert (np.diff(r.network.ptr)[:5] == 2).all()


def test_makespan_and_load_are_no_sums() -> None:
    with pytest.raises(InputError, match="no sum"):
        reduced(random_problem(1, objective="makespan"))


def test_operators_that_must_share_a_unit_but_cannot_are_named() -> None:
    problem = random_problem(1, operators=2, possible=1.0)
    time = np.array([[1, -1], [-1, 1]])
    clash = AssignProblem(**{**problem.__dict__, "time": time, "energy": time, "together": np.zeros(2, np.int64),
                             "groups": type(problem.groups)(np.zeros(1, np.int64), np.zeros(0, np.int64),
                                                            np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64))})  # fmt: skip
    with pytest.raises(InputError, match="op0, op1"):
        reduced(clash)


def test_a_network_stands_for_itself() -> None:
    network = reduced(random_problem(2)).network
    r = reduced(network)
    assert r.network is network and reduced(network) is r
    x = np.zeros(network.count, np.int64)
    assert r.lift(x) is x and r.lower(x) is x


def test_fused_where_possible_is_lowered_without_loss() -> None:
    for seed in range(30):
        problem = random_problem(seed, operators=6, units=3, groups=8, possible=1.0)
        unit = np.zeros(6, np.int64)
        x = np.concatenate([unit, fused_where_possible(problem, unit).astype(np.int64)])
        assert network_cost(reduced(problem).network, reduced(problem).lower(x)) <= objective(
            problem, Assignment.unpacked(problem, x)
        )
