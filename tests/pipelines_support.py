"""Random pipeline problems, and a context that keeps what engines say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from search_fakes import TimedContext

from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.heuristics.pipeline.batch import fastest_batch
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline.partition import bound_of


def random_dag(seed: int, layers: int, cores: int, largest: int, **settings: object) -> PipelineProblem:
    """Whole times that fall with the group, tensors to one to three later layers; contiguous unless told otherwise."""
    rng = np.random.default_rng(seed)
    time_ = np.sort(rng.integers(1, 40, (layers, largest)), axis=1)[:, ::-1].astype(np.float64)
    source, targets, indptr = [], [], [0]
    for u in range(layers - 1):
        for _ in range(int(rng.integers(0, 3))):
            users = np.unique(rng.integers(u + 1, layers, int(rng.integers(1, 4))))
            source.append(u)
            targets.extend(users.tolist())
            indptr.append(len(targets))
    tensors = Tensors(
        np.array(source, np.int64), np.array(indptr, np.int64), np.array(targets, np.int64),
        rng.integers(0, 9, len(source)).astype(np.float64), np.ones(len(source)),
    )  # fmt: skip
    given: dict[str, object] = {"stages": cores, "split": "contiguous", "memory": None} | settings
    storage = rng.integers(1, 9, layers).astype(np.float64)
    labels = tuple(f"layer {k}" for k in range(layers))
    return PipelineProblem("random", labels, time_, storage, tensors, cores, **given)  # type: ignore[arg-type]


def every_plan(problem: PipelineProblem) -> list[PipelinePlan]:
    """All plans that keep the rules, by trying everything."""
    sizes = range(0 if problem.hosts else 1, problem.largest_group + 1)
    out = []
    for k in range(1, problem.slots + 1):
        for cores in itertools.product(sizes, repeat=k):
            if sum(cores) > problem.cores:
                continue
            for stage in itertools.product(range(k), repeat=problem.count):
                plan = PipelinePlan(np.array(stage, np.int64), np.array(cores, np.int64))
                if len(set(stage)) == k and plan_complaint(problem, plan) is None:
                    out.append(plan)
    return out


def optimum(problem: PipelineProblem) -> float:
    """The least objective of any allowed plan; inf if there is none."""
    return min((objective(problem, plan) for plan in every_plan(problem)), default=float("inf"))


class Recorder(TimedContext):
    """Checks and evaluates what is offered, keeps the best, stops after ``seconds``."""

    def __init__(self, problem: PipelineProblem, seed: int = 0, seconds: float = 60.0) -> None:
        super().__init__(seconds)
        self.problem, self.seed = problem, seed
        self.values: list[float] = []
        self.complaints: list[str] = []

    def offer(self, core: IntArray, move: str = "") -> bool:
        plan = PipelinePlan.unpacked(self.problem, core)
        complaint = plan_complaint(self.problem, plan)
        if complaint is not None:
            self.complaints.append(complaint)
            return False
        value = objective(self.problem, plan)
        self.values.append(value)
        if value < self.value:
            self.best, self.value = core, value
            return True
        return False


def least_chain(problem: PipelineProblem) -> float:
    """The least objective of all runs of layers without a complaint; inf if there are none."""
    allowed = (p for p in every_chain(problem) if plan_complaint(problem, p) is None)
    return min((objective(problem, p) for p in allowed), default=math.inf)


def batch_is_least(problem: PipelineProblem, slightly: float) -> None:
    """The search for sums over stages ends at the least value of all chains, its certificate proves that, and nothing from
    ``slightly`` times as much on."""
    expected = least_chain(problem)
    *_, found = fastest_batch(problem, lambda: 1.0)
    bound = bound_of(problem, found)
    if math.isinf(expected):
        assert found.plan is None and bound.value == math.inf
    else:
        assert found.plan is not None and plan_complaint(problem, found.plan) is None
        assert abs(objective(problem, found.plan) - expected) <= max(1e-9 * expected, 1e-12)
        assert expected - max(1e-8 * expected, 1e-12) <= bound.value <= expected
    assert check_plan_bound(problem, bound).ok
    if 0 < expected < math.inf:
        for above in (
            math.nextafter(expected * slightly, math.inf),
            expected * (1 + 1e-6),
            2 * expected,
            math.inf,
        ):
            assert not check_plan_bound(problem, replace(bound, value=above)).ok


class ChainAnswer(NamedTuple):
    """The best plan whose stages are runs of layers, and its value; None and inf if the limits allow none.

    ``proved``: nothing else is allowed, so this is the optimum (or there is none); False where the split allows more than runs.
    """

    plan: PipelinePlan | None
    value: float
    proved: bool


def best_chain(problem: PipelineProblem) -> ChainAnswer:
    """The best plan whose stages are runs of consecutive layers, of those the one with fewest stages; proved for ``chain``."""
    plan, value = ChainPartition(problem).in_order(np.arange(problem.count), fewest_stages=True)
    return ChainAnswer(plan, value, problem.split == "chain")


def every_chain(problem: PipelineProblem) -> Iterator[PipelinePlan]:
    """All runs of layers with all group sizes and, where there are hosts, hosts; allowed or not."""
    for marks in itertools.product((0, 1), repeat=problem.count - 1):
        stage = np.cumsum([0, *marks])
        sizes = range(0 if problem.hosts else 1, problem.largest_group + 1)
        for cores in itertools.product(sizes, repeat=int(stage[-1]) + 1):
            yield PipelinePlan(stage, np.array(cores, np.int64))


def best_is_least(problem: PipelineProblem) -> ChainAnswer:
    """The best chain, which has the least objective of all plans without a complaint, and of those the fewest stages."""
    allowed = (p for p in every_chain(problem) if plan_complaint(problem, p) is None)
    expected = min(((objective(problem, p), len(p.cores)) for p in allowed), default=(math.inf, 0))
    answer = best_chain(problem)
    assert answer.proved and answer.value == expected[0]
    if answer.plan is None:
        assert math.isinf(expected[0])
    else:
        assert plan_complaint(problem, answer.plan) is None
        assert (objective(problem, answer.plan), len(answer.plan.cores)) == expected
    return answer
