"""Control flow planned inside: nested programs against the same program inlined by hand, and against runs step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nested_support import Program, every_run, inlined, layers_in, nested, peak, programs, used_in
from onnx_support import own_inference
from pipelines_support import best_chain

from nmsolve.hw.pipeline.figures import ASSUMED
from nmsolve.hw.pipeline.stages import live_of
from nmsolve.hw.pipeline.tiles import layer_times, pipeline_problem
from nmsolve.hw.pipeline.walk import walked_loads
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.pipeline.buffers import Buffers
from nmsolve.model.pipeline.check import live_needs
from nmsolve.model.pipeline.plan import PipelinePlan


def pieces(buffers: Buffers | None) -> list[tuple[int, list[int], list[bool]]]:
    """Every buffer but those of conditions, which have one byte."""
    assert buffers is not None
    at = buffers.indptr
    found = [
        (int(size), buffers.layer[at[b] : at[b + 1]].tolist(), buffers.made[at[b] : at[b + 1]].tolist())
        for b, size in enumerate(buffers.size)
    ]
    return sorted(piece for piece in found if piece[0] > 1)


@given(programs(loops=False, computed=False))
@settings(max_examples=60, deadline=None)
def test_with_both_branches_in_full_it_is_the_model_inlined_by_hand(p: Program) -> None:
    """Layers, tensors, memory and the best plan are the same."""
    one, two = layers_of(own_inference(nested(p)), branch="*=both"), layers_of(own_inference(inlined(p)))
    assert list(one.names) == layers_in(p.main, "")
    assert [n.rsplit("/", 1)[-1] for n in one.names] == list(two.names)
    for name in ("macs", "elements", "weight_bytes", "channels", "rows"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()
    assert all((a == b).all() for a, b in zip(one.tensors.arrays, two.tensors.arrays, strict=True))
    assert pieces(one.buffers) == pieces(two.buffers)
    for split in ("chain", "any"):
        a, b = (pipeline_problem(layers, ASSUMED, 4, split=split) for layers in (one, two))
        assert (a.time == b.time).all() and (a.storage == b.storage).all()
        assert (a.tensors.time == b.tensors.time).all() and a.together is None
    found = [best_chain(pipeline_problem(layers, ASSUMED, 4)) for layers in (one, two)]
    assert found[0].value == found[1].value
    assert found[0].plan is not None and found[1].plan is not None
    assert (found[0].plan.stage == found[1].plan.stage).all()


def chances(p: Program, draw: Any) -> dict[str, float]:
    """A probability for every ``If``, by its path."""
    nesting = layers_of(own_inference(nested(p))).nesting
    told = st.sampled_from([0.0, 0.125, 0.5, 0.75, 1.0])
    return {b.name: draw(told) for b in ([] if nesting is None else nesting.branches)}


@given(programs(), st.data())
@settings(max_examples=80, deadline=None)
def test_expected_times_are_those_of_all_outcomes(p: Program, data: st.DataObject) -> None:
    """The loads of any plan that keeps loops together: the mean over all runs of what happens in them, step by step."""
    stated = chances(p, data.draw)
    runs = every_run(p, lambda path: stated[path])
    assume(runs)
    assert sum(run.probability for run in runs) == pytest.approx(1)
    layers = layers_of(own_inference(nested(p)), branch=",".join(f"{k}={v}" for k, v in stated.items()))
    assert list(layers.names) == layers_in(p.main, "")
    problem = pipeline_problem(layers, ASSUMED, 3)
    loop = np.full(layers.count, -1) if layers.nesting is None else layers.nesting.loop
    free = [k == 0 or loop[k] < 0 or loop[k] != loop[k - 1] for k in range(layers.count)]
    marks = [int(f and data.draw(st.booleans())) for f in free]
    stage = np.cumsum(marks) - marks[0]
    plan = PipelinePlan(stage, np.ones(int(stage[-1]) + 1, np.int64))
    once = layer_times(replace(layers, nesting=None), ASSUMED, 1)[:, 0]
    number = {name: k for k, name in enumerate(layers.names)}
    expected = np.zeros(len(plan.cores))
    for run in runs:
        home, size, users = {}, {}, {}
        for name, reads, makes in run.steps:
            expected[stage[number[name]]] += run.probability * once[number[name]]
            for real, amount in makes:
                home[real], size[real] = stage[number[name]], amount
            for real in reads:
                users.setdefault(real, set()).add(stage[number[name]])
        for name, real in run.needs:
            users.setdefault(real, set()).add(stage[number[name]])
        for real, at in home.items():
            away = users.get(real, set()) - {at}
            for s in away | ({at} if away else set()):
                expected[s] += run.probability * 1e6 * size[real] / ASSUMED.bandwidth
    assert walked_loads(problem, plan) == pytest.approx(expected.tolist(), rel=1e-9, abs=1e-12)


@given(programs())
@settings(max_examples=80, deadline=None)
def test_no_run_needs_more_memory_than_is_counted(p: Program) -> None:
    """Of one stage, by evaluator and rules; runs go through every trip with tensors of its own."""
    runs = every_run(p, lambda path: 0.5)
    assume(runs)
    problem = pipeline_problem(layers_of(own_inference(nested(p))), ASSUMED, 1)
    plan = PipelinePlan(np.zeros(problem.count, np.int64), np.ones(1, np.int64))
    counted = int(live_of(problem, plan)[0])
    assert live_needs(problem, plan.stage.tolist(), 1) == [counted]
    assert max(peak(run, used_in(runs)) for run in runs) <= counted
