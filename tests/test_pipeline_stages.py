"""Loads of stages against their definition in plain Python, exactness of ticks, and every rule of a plan."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.pipeline import memory_rule
from nmsolve.check.pipeline.memory_rule import units_of
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.pipeline.ticks import exponent_for, rooms_of, ticks_of


def diamond(**changes: Any) -> PipelineProblem:
    """Layer 0 feeds 1 and 2 with one tensor (3 to send), 1 and 2 feed 3 (1 and 2 to send); times 4, 6, 8, 2 over the cores."""
    problem = PipelineProblem(
        name="diamond",
        labels=("a", "b", "c", "d"),
        time=np.array([[4.0, 2.0], [6.0, 3.0], [8.0, 4.0], [2.0, 1.0]]),
        storage=np.array([1.0, 2.0, 4.0, 8.0]),
        tensors=Tensors(
            np.array([0, 1, 2]), np.array([0, 2, 3, 4]), np.array([1, 2, 3, 3]), np.array([3.0, 1.0, 2.0]),
            np.array([30.0, 10.0, 20.0]),
        ),
        cores=4,
        stages=4,
    )  # fmt: skip
    return replace(problem, **changes)


def plan(stage: list[int], cores: list[int]) -> PipelinePlan:
    return PipelinePlan(np.array(stage, np.int64), np.array(cores, np.int64))


def test_a_tensor_costs_once_per_stage() -> None:
    """a | b c | d: the tensor of a is sent once and taken in once, though two layers use it."""
    figures = stage_loads(diamond(), plan([0, 1, 1, 2], [1, 2, 1]))
    assert figures.compute.tolist() == [4, 7, 2]
    assert figures.transfer_in.tolist() == [0, 3, 3] and figures.transfer_out.tolist() == [3, 3, 0]
    assert figures.volume_in.tolist() == [0, 30, 30] and figures.volume_out.tolist() == [30, 30, 0]
    assert figures.storage.tolist() == [1, 6, 8] and figures.cores.tolist() == [1, 2, 1]
    assert figures.load.tolist() == [7, 13, 5]
    assert objective(diamond(), plan([0, 1, 1, 2], [1, 2, 1])) == 13
    assert objective(diamond(overlap=True), plan([0, 1, 1, 2], [1, 2, 1])) == 7


def test_hosts_pay_for_no_transfer_but_others_do() -> None:
    """b on a host: its own load is its host time; a still sends, d still receives. c cannot run there."""
    problem = diamond(hosts=1, host_time=np.array([1.0, 9.0, math.inf, 1.0]))
    figures = stage_loads(problem, plan([0, 1, 0, 2], [1, 0, 1]))
    assert figures.compute.tolist() == [12, 9, 2]
    assert figures.transfer_in.tolist() == [0, 0, 3] and figures.transfer_out.tolist() == [5, 0, 0]
    assert figures.volume_in.tolist() == [0, 30, 30] and figures.load.tolist() == [17, 9, 5]
    stuck = plan([0, 0, 1, 2], [1, 0, 1])
    assert objective(problem, stuck) == math.inf
    assert stage_loads(problem, stuck).load.tolist() == [14, math.inf, 5]


@st.composite
def planned(draw: st.DrawFn) -> tuple[PipelineProblem, PipelinePlan]:
    """Any graph with any plan: repeated uses, uses by the maker itself, backward uses, hosts."""
    count, groups = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    number = st.floats(0, 1e3).map(lambda x: x if x > 1e-200 else 0.0)
    source = draw(st.lists(st.integers(0, count - 1), max_size=8))
    uses = [draw(st.lists(st.integers(0, count - 1), max_size=4)) for _ in source]
    stage = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    problem = PipelineProblem(
        name="any",
        labels=tuple(map(str, range(count))),
        time=np.array(
            [sorted(draw(st.lists(number, min_size=groups, max_size=groups)))[::-1] for _ in range(count)]
        ),
        storage=np.zeros(count),
        tensors=Tensors(
            np.array(source, np.int64),
            np.cumsum([0, *map(len, uses)]),
            np.array([v for u in uses for v in u], np.int64),
            np.array([draw(number) for _ in source]),
            np.ones(len(source)),
        ),
        cores=groups,
        stages=4,
        overlap=draw(st.booleans()),
        split="any",
        host_time=np.array([draw(number) for _ in range(count)]),
        hosts=4,
    )
    cores = draw(st.lists(st.integers(0, groups), min_size=4, max_size=4))
    return problem, plan(stage, cores)


@given(planned())
@settings(max_examples=200, deadline=None)
def test_loads_are_as_defined(case: tuple[PipelineProblem, PipelinePlan]) -> None:
    """Every stage against exact fractions; the objective is the largest load, to the last digit."""
    problem, given_plan = case
    figures, tensors = stage_loads(problem, given_plan), problem.tensors
    for s, c in enumerate(given_plan.cores.tolist()):
        layers = [k for k in range(problem.count) if given_plan.stage[k] == s]
        compute = sum(Fraction(problem.time[k, c - 1] if c else problem.host_time[k]) for k in layers)  # type: ignore[index]
        move = Fraction(0)
        for t in range(tensors.count):
            users = {
                int(given_plan.stage[v]) for v in tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]
            }
            home = int(given_plan.stage[tensors.source[t]])
            pays = (s == home and users - {s}) or (s != home and s in users)
            move += Fraction(tensors.time[t]) if c and pays else 0
        load = max(compute, move) if problem.overlap else compute + move
        assert figures.load[s] == pytest.approx(float(load), rel=1e-14, abs=1e-12)
        assert figures.transfer_in[s] + figures.transfer_out[s] == pytest.approx(float(move), abs=1e-9)
    assert objective(problem, given_plan) == figures.load.max()


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=9))
def test_whole_numbers_stay_exact(values: list[int]) -> None:
    """Sums of whole numbers come back as they are."""
    ticks = ticks_of(np.array(values, float)[:, None], np.empty(0), None)
    assert ticks.seconds(int(ticks.time.sum())) == sum(values)
    assert ticks.floor(float(values[0])) == ticks.time[0, 0]


def test_ticks_of_tiny_and_huge_numbers() -> None:
    """The exponent keeps the sum below 2^61 where it can; nothing overflows."""
    for total in (5e-324, 1e-200, 1.0, 3.7e11, 1e200):
        assert math.ldexp(total, exponent_for(total)) < 2.0**61
    assert exponent_for(0.0) == 0


def test_what_passes_the_rule_on_memory_has_room_and_nothing_else() -> None:
    """Decimals: every sum of some layers, rounded once, against c times the memory; as engines count it, and second proofs."""
    rng, none, close = np.random.default_rng(1), np.empty(0, np.int64), 0
    empty = Tensors(none, np.zeros(1, np.int64), none, np.empty(0), np.empty(0))
    for _ in range(60):
        storage = rng.integers(0, 40, 5) / 10
        some = [list(s) for k in range(1, 6) for s in itertools.combinations(range(5), k)]
        sums = [math.fsum(storage[s]) for s in some]
        memory = float(rng.choice(sums) / rng.integers(1, 4))
        problem = PipelineProblem(
            "rooms", tuple("abcde"), np.ones((5, 3)), storage, empty, 3, 3, memory=memory
        )
        units = units_of(problem)
        for rooms in (rooms_of(storage, memory, 3), memory_rule.rooms_of(problem)):
            passes = [[total <= c * memory for total in sums] for c in (1, 2, 3)]
            assert [[int(units[s].sum()) <= room for s in some] for room in rooms.tolist()] == passes
        close += any(
            total == c * memory and sum(map(Fraction, storage[s])) > c * Fraction(memory)
            for c in (1, 2, 3)
            for s, total in zip(some, sums, strict=True)
        )
    assert close > 10  # sums that only rounding lets pass


RULES = [
    ({}, [0, 1, 2], [1, 1, 1], "stages of shape"),
    ({}, [0, 1, 2, 3], [1, 1, 1], "layer 'd' is in stage 3 of 3"),
    ({}, [0, 2, 2, 2], [1, 1, 1], "stage 1 holds no layer"),
    ({"stages": 2}, [0, 1, 1, 2], [1, 1, 1], "3 stages, not at most 2"),
    ({"stages": 3, "exact_stages": True}, [0, 1, 1, 1], [1, 1], "2 stages, not 3"),
    ({}, [0, 0, 0, 0], [3], "stage 0 has 3 cores, a group has 1 to 2"),
    ({"cores": 2}, [0, 0, 0, 1], [2, 1], "3 cores in use, not at most 2"),
    ({"use_all": True}, [0, 0, 0, 1], [2, 1], "3 cores in use, not 4"),
    ({}, [0, 0, 0, 1], [2, 0], "1 stages without cores, but 0 hosts"),
    ({"hosts": 1}, [0, 0, 0, 1], [2, 0], "layer 'd' cannot run on a host"),
    ({"hosts": 1, "host_time": np.array([1, 1, 1, np.inf])}, [0, 0, 0, 1], [2, 0], "layer 'd' cannot run"),
    ({"memory": 3.0}, [0, 0, 0, 1], [2, 1], "stage 0 needs 3.5 of memory per core, the limit is 3"),
    ({"together": np.array([5, -1, -1, 5])}, [0, 0, 0, 1], [2, 1], "layers 'a' and 'd' must share a stage"),
    ({"split": "chain"}, [0, 1, 0, 1], [1, 1], "stage 0 continues with 'c' after stage 1"),
    ({}, [1, 0, 0, 0], [1, 1], "data of 'a' pass from stage 1 to stage 0"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "stage", "cores", "words"), RULES, ids=[rule[3] for rule in RULES])
def test_every_rule_is_checked(
    changes: dict[str, Any], stage: list[int], cores: list[int], words: str
) -> None:
    """One broken rule each, told with names and numbers."""
    complaint = plan_complaint(diamond(**changes), plan(stage, cores))
    assert complaint is not None and words in complaint


def test_plans_that_keep_the_rules() -> None:
    """Contiguous, out of order where any is allowed, with hosts."""
    assert plan_complaint(diamond(), plan([0, 1, 2, 3], [1, 1, 1, 1])) is None
    assert plan_complaint(diamond(split="any"), plan([1, 0, 0, 1], [2, 2])) is None
    assert plan_complaint(diamond(memory=4.0), plan([0, 0, 0, 1], [2, 2])) is None
    hosted = diamond(hosts=1, host_time=np.ones(4), memory=4.0)
    assert plan_complaint(hosted, plan([0, 0, 0, 1], [2, 0])) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"memory": -1.0}, "memory of -1.0"),
        ({"memory": math.nan}, "memory of nan"),
        ({"host_time": np.array([1.0, -1, 1, 1])}, "on a host is negative"),
        ({"host_time": np.array([1.0, math.nan, 1, 1])}, "on a host is negative"),
    ],
)
def test_wrong_limits_are_refused(changes: dict[str, Any], words: str) -> None:
    """Memory and host times are numbers >= 0."""
    with pytest.raises(InputError, match=words):
        diamond(**changes)
