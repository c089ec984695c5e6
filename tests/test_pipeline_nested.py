"""Control flow planned inside: nested programs against the same program inlined by hand, and against runs step by step."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nested_support import Program, every_run, inlined, layers_in, nested, peak, programs, used_in
from onnx import TensorProto, helper
from onnx_support import model, own_inference, value, weight
from pipelines_support import best_chain

from nmsolve.check.pipeline.reevaluate import reevaluated_loads
from nmsolve.hw.pipeline.stages import live_of
from nmsolve.hw.pipeline.tiles import layer_times, pipeline_problem
from nmsolve.model.errors import InputError
from nmsolve.model.operators.branches import Branch, outcomes
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.pipeline.buffers import Buffers
from nmsolve.model.pipeline.check import live_needs
from nmsolve.model.pipeline.figures import ASSUMED
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
    assert reevaluated_loads(problem, plan) == pytest.approx(expected.tolist(), rel=1e-9, abs=1e-12)


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


def lives(layers: Layers) -> list[tuple[int, list[str]]]:
    """Bytes of every buffer, and the layers that write or read it; ``out``: it leaves the model."""
    names = [*layers.names, "out"]
    return sorted((size, [names[k] for k in events]) for size, events, _ in pieces(layers.buffers))


def test_a_scan_by_hand() -> None:
    """Trips are the length that is scanned; what is scanned and what is collected is kept until the end."""
    steps = [
        helper.make_node("Add", ["s", "e"], ["t"], "add"),
        helper.make_node("MatMul", ["t", "w"], ["u"], "product"),
        helper.make_node("Relu", ["t"], ["z"], "relu"),
    ]
    body = helper.make_graph(
        steps, "body", [value("s", 1, 4), value("e", 1, 4)], [value("u", 1, 4), value("z", 1, 4)]
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Relu", ["h"], ["b"], "begin"),
        helper.make_node("Scan", ["b", "a"], ["last", "all"], "scan", body=body, num_scan_inputs=1),
        helper.make_node("Relu", ["all"], ["y"], "after"),
    ]
    given_ = [value("x", 7, 1, 4), value("h", 1, 4)]
    layers = layers_of(
        own_inference(model(nodes, given_, ["y", "last"], [weight("w", np.zeros((4, 4), np.float32))]))
    )
    assert layers.names == (
        "first", "begin", "scan/start", "scan/add", "scan/product", "scan/relu", "scan/end", "after",
    )  # fmt: skip
    assert layers.nesting is not None
    assert layers.nesting.runs.tolist() == [1, 1, 1, 7, 7, 7, 1, 1]
    assert layers.nesting.trips == (7,) and layers.nesting.branches == []
    assert lives(layers) == sorted([
        (112, ["first"]), (16, ["begin"]),  # the inputs
        (112, ["first", "scan/start", "scan/end"]),
        (16, ["begin", "scan/start", "scan/add"]),  # the state takes its place
        (16, ["scan/start", "scan/add"]),  # one entry
        (16, ["scan/add", "scan/product", "scan/relu"]),
        (16, ["scan/product", "scan/end", "out"]),  # for the next trip, and after the last
        (16, ["scan/relu", "scan/end"]),
        (112, ["scan/start", "scan/end", "after"]),
        (112, ["after", "out"]),
    ])  # fmt: skip


def test_a_state_does_not_take_the_place_of_what_others_read() -> None:
    """Its first value is read again after the loop, or is another shape of such a tensor: then it has a place of its own."""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["s", "w"], ["t"], "product"), helper.make_node("Identity", ["on"], ["go"], "id")],
        "body", [value("i", dtype=TensorProto.INT64), value("on", dtype=TensorProto.BOOL), value("s", 1, 4)],
        [value("go", dtype=TensorProto.BOOL), value("t", 1, 4)],
    )  # fmt: skip
    weights = [
        weight("w", np.zeros((4, 4), np.float32)),
        weight("n", np.array(3)),
        weight("shape", np.array([1, 4])),
    ]

    def places(first: str, read: str) -> list[tuple[int, list[str]]]:
        nodes = [
            helper.make_node("Relu", ["x"], ["a"], "make"),
            helper.make_node("Reshape", ["a", "shape"], ["b"], "view"),
            helper.make_node("Loop", ["n", "", first], ["r"], "loop", body=body),
            helper.make_node("Add", ["r", read], ["y"], "add"),
        ]
        found = lives(layers_of(own_inference(model(nodes, [value("x", 1, 4)], ["y"], weights))))
        return [piece for piece in found if "loop/product" in piece[1] and "loop/end" not in piece[1]]

    own = (16, ["loop/start", "loop/product"])
    assert places("a", "a") == places("b", "b") == places("b", "a") == places("a", "b") == [own]
    assert places("a", "x") == [own]  # the other shape reads it, too


def test_scalar_control_flow_in_a_branch_stays_whole() -> None:
    """It captures a tensor of its branch, whose name the other branch has, too; its result passes on what it reads."""

    def inner(kind: str) -> Any:
        body = helper.make_graph(
            [
                helper.make_node("Add", ["c", "k"], ["d"], "plus"),
                helper.make_node("Identity", ["on"], ["go"], "id"),
            ],
            "count",
            [value("i", dtype=TensorProto.INT64), value("on", dtype=TensorProto.BOOL), value("c", dtype=TensorProto.INT64)],
            [value("go", dtype=TensorProto.BOOL), value("d", dtype=TensorProto.INT64)],
        )  # fmt: skip
        nodes = [
            helper.make_node(kind, ["v"], ["m"], "most"),
            helper.make_node("ArgMax", ["m"], ["best"], "best", axis=0, keepdims=0),
            helper.make_node("Squeeze", ["best"], ["k"], "k"),
            helper.make_node("Loop", ["n", "", "k"], ["j"], "count", body=body),
            helper.make_node("Gather", ["table", "j"], ["row"], "row"),
        ]
        return helper.make_graph(nodes, "branch", [], [value("row", 4)])

    node = helper.make_node("If", ["q"], ["y"], "if", then_branch=inner("Relu"), else_branch=inner("Sigmoid"))
    weights = [weight("n", np.array(3)), weight("table", np.zeros((9, 4), np.float32))]
    inputs = [value("v", 5), value("q", dtype=TensorProto.BOOL)]
    layers = layers_of(own_inference(model([node], inputs, ["y"], weights)), branch="if=0.25")
    assert layers.names == tuple(
        f"if/{side}/{name}" for side in ("then", "else") for name in ("most", "best", "row")
    )
    assert layers.nesting is not None and layers.nesting.trips == ()
    pairs = [ends.tolist() for ends in layers.tensors.pairs]
    assert pairs == [[0, 1, 3, 4], [1, 2, 4, 5]]
    assert layers.nesting.passes.tolist() == [0.25, 0.25, 0.75, 0.75]


def test_weights_that_a_condition_chooses_are_stored() -> None:
    """By the layer that reads the result, both of them; a branch may make its own instead."""
    inner = [weight("v", np.zeros((4, 4), np.float32))]
    one = helper.make_graph([], "one", [], [value("v", 4, 4)], inner)
    other = helper.make_graph(
        [helper.make_node("Relu", ["u"], ["z"], "relu")], "other", [], [value("z", 4, 4)]
    )
    nodes = [
        helper.make_node("If", ["q"], ["m"], "if", then_branch=one, else_branch=other),
        helper.make_node("MatMul", ["x", "m"], ["y"], "product"),
    ]
    inputs = [value("x", 1, 4), value("q", dtype=TensorProto.BOOL)]
    layers = layers_of(
        own_inference(model(nodes, inputs, ["y"], [weight("u", np.zeros((4, 4), np.float32))]))
    )
    assert layers.names == ("if/else/relu", "product") and layers.weight_bytes.tolist() == [64, 64]


@pytest.mark.parametrize("reads", [[], [""]])
def test_a_branch_without_a_condition_is_refused(reads: list[str]) -> None:
    """A damaged model had an ``If`` that reads nothing; an empty name was once the last tensor of all."""
    sides = [
        helper.make_graph([helper.make_node("Relu", ["x"], ["z"], side)], side, [], [value("z", 4)])
        for side in ("a", "b")
    ]
    node = helper.make_node("If", reads, ["y"], "if", then_branch=sides[0], else_branch=sides[1])
    graph = own_inference(model([node], [value("x", 4)], ["y"]))
    with pytest.raises(InputError, match="If 'if': a condition or a branch is missing"):
        layers_of(graph)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_sets_of_users_against_all_outcomes(data: st.DataObject) -> None:
    """Any users with any contexts: the chance that one of a group runs is the sum of the sets that it meets."""
    count = data.draw(st.integers(1, 4))
    told = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    branches = [Branch(f"if{k}", data.draw(told), data.draw(st.booleans()), False) for k in range(count)]
    both = [k for k, b in enumerate(branches) if b.both]
    decisions = st.dictionaries(
        st.sampled_from([k for k in range(count) if k not in both] or [count]), st.integers(0, 1), max_size=3
    )
    uses = {
        (
            data.draw(st.integers(0, 4)),
            frozenset((k, s) for k, s in data.draw(decisions).items() if k < count),
        )
        for _ in range(data.draw(st.integers(1, 6)))
    }
    found = outcomes(uses, branches, "test")
    assert {user for users, _ in found for user in users} == {user for user, _ in uses}
    group = data.draw(st.sets(st.integers(0, 4)))
    expected = 0.0
    for sides in itertools.product((0, 1), repeat=count):
        chance = math.prod(
            (b.probability, 1 - b.probability)[s] if not b.both else 0.5
            for b, s in zip(branches, sides, strict=True)
        )
        runs = {user for user, context in uses if all(sides[k] == s for k, s in context)}
        expected += chance if runs & group else 0.0
    assert sum(share for users, share in found if set(users) & group) == pytest.approx(expected)


def test_too_many_outcomes_are_one_clear_line() -> None:
    """Nine conditions in a row over one tensor make 512 sets; fewer with some decided or counted in full."""
    branches = [Branch(f"if{k}", 0.5, False, False) for k in range(9)]
    uses = [(k, frozenset({(k, 0)})) for k in range(9)]
    with pytest.raises(InputError, match=r"at most 256 sets of users: --branch"):
        outcomes(uses, branches, "test")
    branches[0] = Branch("if0", 1.0, False, False)
    assert len(outcomes(uses, branches, "test")) == 256


@given(st.integers(1, 6), st.integers(0, 5), st.integers(1, 2))
@settings(max_examples=20, deadline=None)
def test_a_cache_that_grows_in_a_loop(trips: int, first: int, step: int) -> None:
    """Work is that of all trips, each with the length it has; memory that of the last one. Nothing is to be bound."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["t", "w"], ["k"], "key"),
            helper.make_node("Concat", ["past", *["k"] * step], ["now"], "grow", axis=0),
            helper.make_node("Transpose", ["now"], ["turned"], "turn", perm=[1, 0]),
            helper.make_node("MatMul", ["t", "turned"], ["s"], "scores"),
            helper.make_node("MatMul", ["s", "now"], ["u"], "mix"),
            helper.make_node("Identity", ["on"], ["go"], "id"),
        ],
        "body",
        [
            value("i", dtype=TensorProto.INT64),
            value("on", dtype=TensorProto.BOOL),
            value("past", None, 8),
            value("t", 1, 8),
        ],
        [value("go", dtype=TensorProto.BOOL), value("now", None, 8), value("u", 1, 8)],
    )
    loop = helper.make_node("Loop", ["n", "", "p0", "x"], ["cache", "y"], "loop", body=body)
    weights = [weight("w", np.zeros((8, 8), np.float32)), weight("n", np.array(trips))]
    layers = layers_of(
        own_inference(model([loop], [value("x", 1, 8), value("p0", first, 8)], ["y", "cache"], weights))
    )
    assert layers.nesting is not None
    work = dict(zip(layers.names, (layers.macs * layers.nesting.runs).tolist(), strict=True))
    done = sum(8 * (first + step * (t + 1)) for t in range(trips))
    assert work["loop/key"] == 64 * trips
    assert done <= work["loop/scores"] == work["loop/mix"] < done + trips
    last = first + step * (trips - 1)
    assert [size for size, at in lives(layers) if at == ["loop/start", "loop/grow"]] == [32 * last] * (
        last > 0
    )
    assert [size for size, at in lives(layers) if at[:1] == ["loop/grow"]] == [32 * (last + step)]
