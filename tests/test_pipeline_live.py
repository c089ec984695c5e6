"""Memory by live ranges, and off-chip memory: evaluator, rules, engine and both proofs against plain definitions."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from onnx_support import model, saved, value
from pipelines_support import best_is_least, every_chain

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.intervals import live_table
from nmsolve.check.pipeline.reevaluate import reevaluated_loads, reevaluated_stream
from nmsolve.heuristics.pipeline.chain_kernels import live_bytes
from nmsolve.heuristics.pipeline.chain_loads import ANY_LOAD
from nmsolve.hw.pipeline.stages import live_of, objective, stage_loads
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.operators.table import live_along
from nmsolve.model.pipeline.buffers import MADE, RENAMED, Buffers, buffers_from
from nmsolve.model.pipeline.check import live_needs, plan_complaint
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.groups import Groups, OffChip
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.solvers.pipeline.api import plan as solved
from nmsolve.solvers.pipeline.registry import REGISTRY, plan_of

UNASKED = ("groups-local", "m5-policy", "pipeline-mip")


@st.composite
def buffered(draw: st.DrawFn, layers: int) -> Buffers:
    """Up to eight buffers: inputs of the model, results, other shapes of them, what leaves the model."""
    pieces = []
    for _ in range(draw(st.integers(0, 8))):
        events = sorted(draw(st.sets(st.integers(0, layers), min_size=1, max_size=4)))
        made = {at: int(at < layers and draw(st.booleans())) for at in events}
        if made[events[0]] and draw(st.booleans()):
            made[events[0]] = RENAMED
        pieces.append((draw(st.integers(0, 9)), made))
    return buffers_from(pieces)


@st.composite
def chains(draw: st.DrawFn, largest: int = 5) -> PipelineProblem:
    """Small chains with buffers; memory that is scarce, in most with off-chip memory."""
    count, cores = draw(st.integers(1, largest)), draw(st.integers(1, 4))
    number = draw(st.sampled_from([st.integers(0, 20).map(float), st.floats(0, 10, width=32)]))
    rows = [
        sorted(draw(st.lists(number, min_size=cores, max_size=cores)), reverse=True) for _ in range(count)
    ]
    source = sorted(draw(st.lists(st.integers(0, count - 2), max_size=4))) if count > 1 else []
    uses = [sorted(draw(st.sets(st.integers(s + 1, count - 1), min_size=1, max_size=3))) for s in source]
    stages = draw(st.integers(1, count))
    return PipelineProblem(
        name="small",
        labels=tuple(f"l{k}" for k in range(count)),
        time=np.array(rows),
        storage=np.array([float(draw(st.integers(0, 9))) for _ in range(count)]),
        tensors=Tensors(
            np.array(source, np.int64),
            np.cumsum([0, *map(len, uses)]),
            np.array([v for u in uses for v in u], np.int64),
            np.array([draw(number) for _ in source]),
            np.ones(len(source)),
        ),
        cores=cores,
        stages=stages,
        exact_stages=draw(st.booleans()) and stages <= cores,
        use_all=draw(st.booleans()),
        memory=draw(st.one_of(st.none(), st.integers(0, 30).map(float))),
        overlap=draw(st.booleans()),
        split="chain",
        buffers=draw(buffered(count)),
        groups=Groups(border=draw(st.booleans())),
        **draw(streamed_loops(count)),
    )


@st.composite
def streamed_loops(draw: st.DrawFn, layers: int) -> dict[str, Any]:
    """Off-chip memory in some cases; in half of all, runs of layers that share a stage, with the trips of each at its begin."""
    byte = draw(st.sampled_from([None, None, 0.25, 1 / 3, 7.0]))
    if draw(st.booleans()):
        return {"offchip": byte and OffChip(byte)}
    together, trips, at = np.full(layers, -1), np.zeros(layers, np.int64), 0
    while at < layers:
        size = draw(st.integers(1, layers - at))
        if draw(st.booleans()):
            together[at : at + size], trips[at] = at, draw(st.sampled_from([0, 2, 7]))
        at += size
    return {"together": together.astype(np.int64), "offchip": byte and OffChip(byte, trips)}


def live_at(problem: PipelineProblem, members: list[int], x: int) -> int:
    """Bytes that are live in the stage of these layers while layer x runs, by the definition alone."""
    assert problem.buffers is not None
    size, indptr, layer, made = (a.tolist() for a in problem.buffers.arrays)
    total = 0
    for b, amount in enumerate(size):
        events = [(layer[e], made[e]) for e in range(indptr[b], indptr[b + 1])]
        own = [at for at, _ in events if at in members]
        if not own:
            continue
        there = not (events[0][1] == MADE and events[0][0] in members) or events[0][0] <= x
        needed = any(at >= x for at in own)
        sent = any(m and a in members and z not in members for a, m in events for z, _ in events if z > a)
        total += amount if there and (needed or sent) else 0
    return total


@given(chains(), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_three_ways_to_count_live_bytes_agree(problem: PipelineProblem, random: object) -> None:
    """For any sets of layers, runs or not: evaluator, rules and the definition layer by layer."""
    stages = int(random.randint(1, problem.count))  # type: ignore[attr-defined]
    stage = [random.randrange(stages) for _ in range(problem.count)]  # type: ignore[attr-defined]
    plan = PipelinePlan(np.array(stage), np.ones(stages, np.int64))
    members = [[k for k, s in enumerate(stage) if s == m] for m in range(stages)]
    expected = [max((live_at(problem, own, x) for x in own), default=0) for own in members]
    assert live_of(problem, plan).tolist() == expected
    assert live_needs(problem, stage, stages) == expected


@given(chains(8))
@settings(max_examples=150, deadline=None)
def test_tables_of_all_runs(problem: PipelineProblem) -> None:
    """The engine's and the second proof's against the definition; what a run needs does not fall when it grows."""
    assert problem.buffers is not None
    count = problem.count
    found = np.zeros((count, count + 1), np.int64)
    work = np.zeros((count + 1, 1), np.int64)
    live_bytes(work, ANY_LOAD, *problem.buffers.arrays, found)
    second = live_table(problem)
    for i in range(count):
        for j in range(i + 1, count + 1):
            run = list(range(i, j))
            expected = max(live_at(problem, run, x) for x in run)
            assert found[i, j] == second[i, j] == expected
            assert expected >= max(found[i, j - 1] if j > i + 1 else 0, found[i + 1, j] if i + 1 < j else 0)


@given(chains())
@settings(max_examples=200, deadline=None)
def test_no_chain_of_stages_is_better(problem: PipelineProblem) -> None:
    """Least objective over all plans without a complaint, of those fewest stages; none where none is allowed."""
    answer = best_is_least(problem)
    assert chain_bound_holds(problem, answer.value)
    if math.isfinite(answer.value):
        assert not chain_bound_holds(problem, math.nextafter(answer.value, math.inf))


@given(chains())
@settings(max_examples=100, deadline=None)
def test_streamed_bytes_and_loads_by_the_definition(problem: PipelineProblem) -> None:
    """What exceeds the cores: weights first, once, then live bytes twice; added to the load, which never rises with cores."""
    for plan in itertools.islice(every_chain(problem), 40):
        loads, walked = stage_loads(problem, plan), reevaluated_loads(problem, plan)
        assert loads.load == pytest.approx(walked, rel=1e-12, abs=1e-9)
        assert objective(problem, plan) == loads.load.max()
        assert reevaluated_stream(problem, plan) == loads.streamed.tolist()
        for k, c in enumerate(plan.cores.tolist()):
            weights = int(loads.storage[k] - loads.live[k])
            over = max(0, int(loads.storage[k]) - c * int(problem.memory or 0)) if problem.streams else 0
            assert loads.streamed[k] == min(over, weights) + 2 * max(0, over - weights)
            byte = Fraction(0 if problem.offchip is None else problem.offchip.byte)
            time = (
                Fraction(int(loads.streamed[k]))
                * (1 + sum(problem.trips[plan.stage == k].tolist()))
                * byte
                / c
            )
            assert loads.offchip[k] == pytest.approx(float(time), rel=1e-12, abs=1e-9)
            if c < problem.largest_group:
                more = plan.cores.copy()
                more[k] += 1
                assert stage_loads(problem, PipelinePlan(plan.stage, more)).load[k] <= loads.load[k]


def pair(**changes: object) -> PipelineProblem:
    """Two layers of 100 bytes of weights; the first makes 50 bytes for the second, which makes 20 that leave."""
    given: dict[str, object] = {
        "memory": 100.0,
        "buffers": buffers_from([(50, {0: True, 1: False}), (20, {1: True, 2: False})]),
    }
    return PipelineProblem(
        "pair", ("a", "b"), np.array([[8.0, 4.0, 3.0, 2.0]] * 2), np.array([100.0, 100.0]),
        Tensors(np.array([0]), np.array([0, 1]), np.array([1]), np.array([1.0]), np.array([50.0])),
        4, 2, **({"split": "chain"} | given | changes),
    )  # type: ignore[arg-type]  # fmt: skip


def test_inputs_that_are_first_called_by_another_shape(tmp_path: Path) -> None:
    """An input of 4 KiB that only a later Reshape reads lies in memory from the begin of its stage on."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "second"),
        helper.make_node("Reshape", ["cache", "shape"], ["c"], "view"),
        helper.make_node("Concat", ["b", "c"], ["y"], "join", axis=0),
    ]
    shape = numpy_helper.from_array(np.array([64, 16], np.int64), "shape")
    graph = model(nodes, [value("x", 1, 16), value("cache", 16, 64)], [value("y", 65, 16)], [shape])
    layers = layers_of(load_onnx(saved(graph, tmp_path, "m.onnx")))
    problem = pipeline_problem(layers, ASSUMED, 4, memory=9000.0, offchip=0.0)
    for stage, expected in (
        ([0, 0, 0, 0], [8320]),
        ([0, 0, 1, 1], [128, 8320]),
        ([0, 1, 1, 1], [128, 8320]),
        ([0, 0, 0, 1], [4224, 8320]),
        ([0, 0, 1, 2], [128, 4096, 8320]),
    ):
        plan = PipelinePlan(np.array(stage), np.ones(max(stage) + 1, np.int64))
        assert live_of(problem, plan).tolist() == live_needs(problem, stage, max(stage) + 1) == expected
    assert live_along(problem.buffers, 4).tolist() == [4224, 4224, 4160, 8320]


def test_by_hand() -> None:
    """Together 200 bytes of weights and 70 live: three cores. Apart 150 and 170: two each."""
    one, two = np.zeros(2, np.int64), np.arange(2)
    assert plan_complaint(pair(), PipelinePlan(one, np.array([3]))) is None
    assert plan_complaint(pair(), PipelinePlan(one, np.array([2]))) == (
        "stage 0 needs 135 of memory per core, the limit is 100"
    )
    assert stage_loads(pair(), PipelinePlan(two, np.array([2, 2]))).storage.tolist() == [150, 170]
    streamed = pair(offchip=OffChip(0.5))
    loads = stage_loads(streamed, PipelinePlan(one, np.array([2])))
    assert (loads.streamed.tolist(), loads.offchip.tolist(), loads.load.tolist()) == ([70], [17.5], [25.5])
    single = stage_loads(replace(streamed, memory=40.0), PipelinePlan(one, np.array([1])))
    assert single.streamed.tolist() == [200 + 2 * 30] and single.load.tolist() == [16 + 130.0]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"memory": 99.5}, "parts of bytes"),
        ({"offchip": OffChip(-1.0)}, "off chip"),
        ({"offchip": OffChip(math.nan)}, "off chip"),
        ({"buffers": None, "offchip": OffChip(1.0)}, "without live ranges"),
        ({"hosts": 1}, "live ranges with hosts"),
        ({"offchip": OffChip(1.0, np.zeros(3, np.int64))}, "trips of shape"),
        ({"buffers": buffers_from([(1, {3: False})])}, "name no layer"),
        ({"buffers": buffers_from([(-1, {0: True})])}, "negative"),
        ({"buffers": buffers_from([(1, {2: True})])}, "after the last"),
        ({"buffers": Buffers(*(np.array(x) for x in ([1], [0, 2], [1, 0], [1, 0])))}, "do not rise"),
        ({"buffers": Buffers(*(np.array(x) for x in ([1], [0, 0], [], [])))}, "differ in length"),
    ],
)
def test_problems_that_make_no_sense(changes: dict[str, object], text: str) -> None:
    """One line each."""
    with pytest.raises(InputError, match=text):
        pair(**changes)


def test_engines_that_add_up_storage_refuse() -> None:
    """Only the exact chain and the bounds that look at no memory take such problems."""
    assert REGISTRY.keys() - plan_of(pair(), None)[1].keys() == {"chain", "pipeline-counting", *UNASKED}
    assert "pipeline-cpsat" not in plan_of(pair(memory=None), None)[1]
    for name in UNASKED:
        assert "live ranges" in plan_of(pair(), [name])[1][name]
    assert solved(pair(), time_limit=10).objective == 4.0


def test_the_hash_knows_buffers_and_bandwidth() -> None:
    """Two problems that differ in one of them are not the same."""
    streamed, loop = pair(offchip=OffChip(0.5)), pair(offchip=OffChip(0.5, np.array([3, 0])))
    hashes = {p.content_hash for p in (pair(), streamed, pair(buffers=buffers_from([])), loop)}
    assert len(hashes) == 4
