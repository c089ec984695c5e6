"""Tree decomposition and Lagrangian bounds: equal to brute force where small, certificates recomputed, forged ones refused."""

from __future__ import annotations

import copy
import json
import time
from itertools import product

import numpy as np
import pytest
from assign_networks_support import random_network
from assign_rows_support import random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.assignment.tree import check
from nmsolve.check.certificates import certificate_from_json, certificate_to_json
from nmsolve.hw.assignment.evaluate import objective
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.network import CostNetwork, network_complaint, network_cost
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import reduced
from nmsolve.model.bound import Bound
from nmsolve.model.errors import CertificateError
from nmsolve.solvers.assignment import tree
from nmsolve.solvers.assignment.checker import AssignChecker, NetworkChecker
from nmsolve.solvers.assignment.cut import Cut, minimum_cut
from nmsolve.solvers.assignment.elimination import elimination_of, possible_choices
from nmsolve.solvers.assignment.relaxation import relaxation_of
from nmsolve.solvers.assignment.tree import TreeDecomposition, TreeSearch


class Run:
    """Stands for a run: judges what is offered, keeps the best and every bound."""

    seed = 0

    def __init__(self, problem: AssignProblem | CostNetwork, seconds: float = 2.0) -> None:
        network = isinstance(problem, CostNetwork)
        self.checker = NetworkChecker(problem) if network else AssignChecker(problem)
        self.end = time.monotonic() + seconds
        self.solution: np.ndarray | None = None
        self.value = float("inf")
        self.bounds: list[Bound] = []
        self.notes: list[str] = []

    def incumbent(self) -> tuple[np.ndarray | None, float]:
        return self.solution, self.value

    def should_stop(self) -> bool:
        reached = bool(self.bounds) and self.bounds[-1].value >= self.value
        return reached or time.monotonic() > self.end

    def offer(self, solution: np.ndarray, move: str = "") -> bool:
        assert self.checker.complaint(solution) is None, "engines offer what keeps all rules"
        if self.checker.score(solution) < self.value:
            self.solution, self.value = solution.copy(), self.checker.score(solution)
            return True
        return False

    def raise_bound(self, bound: Bound) -> bool:
        self.bounds.append(bound)
        return True

    def note(self, text: str) -> None:
        self.notes.append(text)


def least(problem: AssignProblem) -> float:
    """By trying everything; inf if nothing fits."""
    best = float("inf")
    for unit in product(*[np.flatnonzero(row >= 0).tolist() for row in problem.time]):
        for fused in product([False, True], repeat=problem.groups.count):
            answer = Assignment(np.array(unit), np.array(fused, bool), np.arange(problem.count))
            if assignment_complaint(problem, answer) is None:
                best = min(best, objective(problem, answer))
    return best


def as_stored(bound: Bound) -> Bound:
    """After the way through its file."""
    stored = certificate_from_json(json.loads(json.dumps(certificate_to_json(bound.certificate))))
    return Bound(bound.value, bound.method, certificate=stored)


problems = st.builds(
    random_problem,
    st.integers(0, 10**6),
    operators=st.integers(1, 6),
    units=st.integers(3, 4),
    sites=st.just(3),
    groups=st.integers(0, 4),
    together=st.booleans(),
    objective=st.sampled_from(["latency", "energy"]),
)


@settings(max_examples=40, deadline=None)
@given(problems)
def test_one_elimination_is_the_optimum_without_limits_and_is_recomputed(problem: AssignProblem) -> None:
    run = Run(problem)
    TreeDecomposition().run(problem, run)
    assert run.value == least(problem) == run.bounds[-1].value
    again = check(problem, as_stored(run.bounds[-1]), 10.0)
    assert again.ok and again.value == run.value and not again.trusted
    more = Bound(run.value + 1, "tree", certificate=run.bounds[-1].certificate)
    assert not check(problem, more, 10.0).ok


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_limits_of_memory_are_kept_and_bounds_are_true_and_recomputed(
    seed: int, operators: int, memories: int, groups: int, together: bool
) -> None:
    problem = random_problem(
        seed, operators, 4, 3, memories=memories, groups=groups, together=together, most=1000
    )
    best, run = least(problem), Run(problem, 0.2)
    TreeDecomposition().run(problem, run)
    assert run.value >= best
    for bound in run.bounds:
        assert bound.value <= best
        assert check(problem, as_stored(bound), 10.0).ok
        assert (bound.value < float("inf")) == (bound.certificate.get("status") is None)


def test_that_nothing_fits_is_proved_by_multipliers_without_end() -> None:
    problem = chain(9, 30)
    units = type(problem.units)(**{**problem.units.__dict__, "capacity": np.array([20.0, 20, 20, 20])})
    tight = AssignProblem(**{**problem.__dict__, "units": units})
    run = Run(tight, 20.0)
    TreeDecomposition().run(tight, run)
    assert run.bounds[-1].value == float("inf") and run.bounds[-1].certificate["status"] == "infeasible"
    again = check(tight, as_stored(run.bounds[-1]), 30.0)
    assert again.ok and again.value == float("inf")
    roomy = type(units)(**{**units.__dict__, "capacity": np.array([30.0, 30, 30, 30])})
    assert not check(
        AssignProblem(**{**problem.__dict__, "units": roomy}), as_stored(run.bounds[-1]), 30.0
    ).ok


def test_a_relaxation_that_takes_long_ends_with_the_time():
    """Its orders of elimination took a minute on large networks, whatever the time limit was."""
    made, asked = reduced(random_problem(5, 12, 3, 3, memories=2)), []
    assert relaxation_of(made, lambda: True) == "time is up"
    assert not isinstance(relaxation_of(made, lambda: bool(asked.append(1))), str)
    assert asked


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.integers(0, 2))
def test_what_is_too_wide_is_taken_apart_and_proved_all_the_same(
    seed: int, together: bool, memories: int
) -> None:
    problem = random_problem(
        seed, 6, 3, 3, groups=2, together=together, memories=memories, tensors=2.0, most=1000
    )
    relaxation = relaxation_of(reduced(problem), widest=16, entries=(120,), once=0)
    if isinstance(relaxation, str):
        return
    best, run = least(problem), Run(problem, 0.2)
    TreeSearch(problem, relaxation, run).run()
    for bound in run.bounds:
        assert bound.value <= best
        assert check(problem, as_stored(bound), 10.0).ok


def test_a_small_width_takes_tensors_apart_and_their_prices_close_the_gap() -> None:
    problem = random_problem(8, 40, 3, 3, possible=1.0, tensors=1.2, reach=12, most=10**6)
    whole, run = Run(problem), Run(problem, 20.0)
    TreeDecomposition().run(problem, whole)
    relaxation = relaxation_of(reduced(problem), widest=81, entries=(4000,), once=0)
    assert not isinstance(relaxation, str) and len(relaxation.prices.of) and not relaxation.is_exact
    TreeSearch(problem, relaxation, run).run()
    assert whole.value == whole.bounds[-1].value
    assert 0.98 * whole.value <= run.bounds[-1].value <= whole.value <= run.value <= 1.02 * whole.value
    assert check(problem, as_stored(run.bounds[-1]), 30.0).ok


def test_two_processors_by_cut_and_by_tree_agree() -> None:
    for seed in range(5):
        problem = random_problem(seed, 80, groups=30, tensors=1.3, reach=5, most=10**9)
        cut, run = minimum_cut(problem), Run(problem, 20.0)
        TreeDecomposition().run(problem, run)
        assert run.value == run.bounds[-1].value
        assert isinstance(cut, str) or cut.value == run.value


def chain(layers: int, room: int) -> AssignProblem:
    """Layers in a row with weights of 10 bytes, three equal accelerators that hold ``room`` bytes each and a slow host."""
    base = random_problem(0, layers, 4, 4, possible=1.0, tensors=0.0)
    time_ = np.tile(np.array([1000, 10, 10, 10]), (layers, 1))
    flows = base.flows
    move = np.full((2 * layers - 1, 4, 4), 5)
    move[:, range(4), range(4)] = 0
    move[layers - 1 :] = 0
    source = np.concatenate([np.arange(layers - 1), np.zeros(layers, np.int64)])
    targets = np.concatenate([np.arange(1, layers), np.arange(layers)])
    flows = type(flows)(
        tuple(f"t{t}" for t in range(2 * layers - 1)), source, np.arange(2 * layers), targets, source, targets,
        np.concatenate([np.zeros(layers - 1, np.int64), np.full(layers, 10)]),
        np.arange(2 * layers - 1) >= layers - 1, move, move,
    )  # fmt: skip
    u = base.units
    units = type(u)(
        u.names, u.host, u.site, np.arange(4), ("h", "a", "b", "c"), np.array([np.inf, room, room, room]), u.channel, u.channels,
    )  # fmt: skip
    return AssignProblem(**{**base.__dict__, "time": time_, "energy": time_, "flows": flows, "units": units})


def test_equal_memories_are_told_apart_by_cases_until_the_optimum_is_proved() -> None:
    """Nine layers, three to a memory: the relaxation mixes all memories and sees no transfer, cases prove two."""
    problem, run = chain(9, 30), Run(chain(9, 30), 30.0)
    TreeDecomposition().run(problem, run)
    assert run.value == 100 == run.bounds[-1].value
    assert run.bounds[0].value < 100
    assert len(run.bounds[-1].certificate["cases"]) > 1
    assert check(problem, as_stored(run.bounds[-1]), 30.0).ok


def test_a_network_of_its_own_is_solved_with_its_memory() -> None:
    rng = np.random.default_rng(1)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 4, 6)
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        ends = np.array([(i, j) for i in range(6) for j in range(i + 1, 6) if rng.random() < 0.5]).reshape(
            -1, 2
        )
        tables = [rng.integers(0, 50, sizes[u] * sizes[v]) for u, v in ends]
        demand = np.array(
            [[c, 0, int(rng.integers(1, 4)), int(rng.integers(1, 9)), 0] for c in range(ptr[-1])]
        )
        network = CostNetwork(
            "net", ptr, rng.integers(0, 50, ptr[-1]), ends,
            np.concatenate([[0], np.cumsum([len(t) for t in tables])]).astype(np.int64),
            np.concatenate([*tables, np.zeros(0, np.int64)]).astype(np.int64), demand, np.array([30.0]), 7,
        )  # fmt: skip
        costs = [
            network_cost(network, np.array(x))
            for x in product(*[range(n) for n in sizes])
            if network_complaint(network, np.array(x)) is None
        ]
        run = Run(network, 3.0)
        assert TreeDecomposition().refuses(network) is None
        TreeDecomposition().run(network, run)
        best = min(costs, default=float("inf"))
        assert run.value >= best and all(b.value <= best for b in run.bounds)
        assert check(network, as_stored(run.bounds[-1]), 10.0).ok
        assert run.bounds[-1].value >= min(0.9 * best, 10**6)


def test_choices_without_support_go_and_contradictions_are_found() -> None:
    problem = random_problem(12, 8, 3, 3, groups=4)
    network = reduced(problem).network
    assert possible_choices(network).sum() <= len(network.cost)
    assert elimination_of(network, 1, 2) == "tables of more than 2 entries"


def test_what_is_no_sum_or_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = TreeDecomposition()
    assert "load" in engine.refuses(random_problem(1, objective="load"))
    monkeypatch.setattr(tree, "MAX_NODES", 2)
    assert "nodes" in engine.refuses(random_problem(1))


PROVED = chain(9, 30)


@pytest.fixture(scope="module")
def proof() -> Bound:
    run = Run(PROVED, 30.0)
    TreeDecomposition().run(PROVED, run)
    return run.bounds[-1]


FORGERIES = {
    "no parts": lambda c: c.pop("parts"),
    "parts of nothing": lambda c: c.update(parts=0),
    "no cases": lambda c: c.update(cases=[]),
    "cases of another kind": lambda c: c.update(cases=[1, 2]),
    "a case left out": lambda c: c["cases"].pop(),
    "every other case left out": lambda c: c.update(cases=c["cases"][::2]),
    "a unit left out": lambda c: c["cases"][0]["path"][0][1].clear(),
    "an operator that does not exist": lambda c: c["cases"][0]["path"][0].__setitem__(0, 999),
    "a path of text": lambda c: c["cases"][0].update(path="x"),
    "negative multipliers": lambda c: c["cases"][0].update(multipliers=[[1, 0, -5]]),
    "multipliers without a limit": lambda c: c["cases"][0].update(multipliers=[[0, 0, 5]]),
    "multipliers nowhere": lambda c: c["cases"][0].update(multipliers=[[1, 99, 5]]),
    "multipliers too large": lambda c: c["cases"][0].update(multipliers=[[1, 0, 2**61]]),
    "fractions": lambda c: c["cases"][0].update(multipliers=[[1, 0, 0.5]]),
    "prices of nobody": lambda c: c["cases"][0].update(prices=[[0, 1, 0, 5]]),
    "light things that do not exist": lambda c: c.update(light=[[0, 99]]),
    "apart things that do not exist": lambda c: c.update(apart=[[999, 0]]),
}


@pytest.mark.parametrize("how", list(FORGERIES))
def test_forged_certificates_are_refused(proof: Bound, how: str) -> None:
    assert check(PROVED, proof, 30.0).ok
    certificate = copy.deepcopy(dict(proof.certificate))
    FORGERIES[how](certificate)
    with pytest.raises(CertificateError):
        check(PROVED, Bound(proof.value, "tree", certificate=certificate), 30.0)


def test_cases_lean_on_equal_units_only_where_units_are_equal(proof: Bound) -> None:
    """The same certificate for a chain whose accelerators differ by one ps proves nothing."""
    other = PROVED.time.copy()
    other[4, 3] -= 1
    unlike = AssignProblem(**{**PROVED.__dict__, "time": other, "energy": other})
    with pytest.raises(CertificateError, match="no case has"):
        check(unlike, proof, 30.0)


def test_a_recheck_without_time_says_so(proof: Bound) -> None:
    said = check(PROVED, proof, -1.0)
    assert not said.ok and "only 0 of" in said.text


def test_cut_and_tree_certificates_do_not_stand_for_one_another() -> None:
    problem = random_problem(3, 10)
    cut = minimum_cut(problem)
    assert isinstance(cut, Cut)
    with pytest.raises(CertificateError):
        check(problem, Bound(1.0, "tree", certificate=cut.bound.certificate), 1.0)


@pytest.mark.parametrize("seed", [7, 31, 161])
def test_cases_of_a_network_leave_out_nothing_that_is_impossible_either(seed: int) -> None:
    """Strategies that no neighbour allows were in no case: the certificate was refused, of seed 161 here."""
    network = random_network(seed, 8, capacity=25.0, equal=0.2)
    heard = Run(network)
    TreeDecomposition().run(network, heard)
    assert heard.bounds and check(network, as_stored(heard.bounds[-1]), 10.0).ok
    assert len(heard.bounds[-1].certificate["cases"]) > 1 or seed != 161
