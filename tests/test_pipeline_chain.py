"""The exact chain partition against enumeration and against the plain dynamic program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.heuristics.pipeline.chain import best_chain
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.tensors import Tensors


@st.composite
def chains(draw: st.DrawFn, largest: int = 6) -> PipelineProblem:
    """Small chains with tensors that skip layers, floats or whole numbers, and any mix of the limits."""
    count, cores = draw(st.integers(1, largest)), draw(st.integers(1, 5))
    number = draw(st.sampled_from([st.integers(0, 20).map(float), st.floats(0, 10, width=32)]))
    size = draw(st.integers(1, cores))
    rows = [sorted(draw(st.lists(number, min_size=size, max_size=size)), reverse=True) for _ in range(count)]
    source = sorted(draw(st.lists(st.integers(0, count - 2), max_size=6))) if count > 1 else []
    uses = [sorted(draw(st.sets(st.integers(s + 1, count - 1), max_size=3))) for s in source]
    tensors = Tensors(
        np.array(source, np.int64),
        np.cumsum([0, *map(len, uses)]),
        np.array([v for u in uses for v in u], np.int64),
        np.array([draw(number) for _ in source]),
        np.ones(len(source)),
    )
    hosts = draw(st.integers(0, 2))
    host_time = np.array([draw(st.one_of(number, st.just(math.inf))) for _ in range(count)])
    stages = draw(st.integers(1, count))
    return PipelineProblem(
        name="small",
        labels=tuple(f"l{k}" for k in range(count)),
        time=np.array(rows),
        storage=np.array([draw(number) for _ in range(count)]),
        tensors=tensors,
        cores=cores,
        stages=stages,
        exact_stages=draw(st.booleans()) and stages <= cores + hosts,
        use_all=draw(st.booleans()),
        memory=draw(st.one_of(st.none(), number)),
        overlap=draw(st.booleans()),
        split="chain",
        host_time=draw(st.sampled_from([None, host_time])),
        hosts=hosts,
        together=draw(st.sampled_from([None, np.array([draw(st.integers(-1, 2)) for _ in range(count)])])),
    )


def every_plan(problem: PipelineProblem) -> Iterator[PipelinePlan]:
    """All runs of layers with all group sizes, allowed or not."""
    for marks in itertools.product((0, 1), repeat=problem.count - 1):
        stage = np.cumsum([0, *marks])
        for cores in itertools.product(range(problem.largest_group + 1), repeat=int(stage[-1]) + 1):
            yield PipelinePlan(stage, np.array(cores, np.int64))


@given(chains())
@settings(max_examples=150, deadline=None)
def test_no_chain_of_stages_is_better(problem: PipelineProblem) -> None:
    """Least objective over all plans without a complaint; none where none is allowed."""
    allowed = (p for p in every_plan(problem) if plan_complaint(problem, p) is None)
    expected = min((objective(problem, p) for p in allowed), default=math.inf)
    answer = best_chain(problem)
    assert answer.proved and answer.value == expected
    if answer.plan is None:
        assert math.isinf(expected)
    else:
        assert plan_complaint(problem, answer.plan) is None
        assert objective(problem, answer.plan) == answer.value
