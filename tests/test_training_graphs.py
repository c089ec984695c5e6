"""Graphs with their own backward pass: parts, pairing, costs and what is kept, against the names of the nodes; plans of them.

``NMSOLVE_TRAINING=2000 pytest tests/test_training_graphs.py`` tries longer.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines_support import best_is_least

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx_support import loaded, model, value, weight  # noqa: E402
from training_reference import Reference, reference  # noqa: E402
from training_support import Perceptron, parts_of, rows  # noqa: E402

from nmsolve.check.pipeline.chain_bound import chain_bound_holds  # noqa: E402
from nmsolve.check.pipeline.walk import walked_loads  # noqa: E402
from nmsolve.hw.pipeline.stages import stage_loads  # noqa: E402
from nmsolve.hw.pipeline.tiles import pipeline_problem  # noqa: E402
from nmsolve.hw.pipeline.to_graph import stage_traffic, tile_graph  # noqa: E402
from nmsolve.hw.pipeline.training import Step  # noqa: E402
from nmsolve.model.formats.onnx import load_onnx  # noqa: E402
from nmsolve.model.operators.backward import trained_layers  # noqa: E402
from nmsolve.model.operators.layers import Layers, layers_of  # noqa: E402
from nmsolve.model.operators.training_graph import LOSS, UPDATE, TrainingGraph, training_graph  # noqa: E402
from nmsolve.model.pipeline.check import kept_needs  # noqa: E402
from nmsolve.model.pipeline.figures import ASSUMED  # noqa: E402
from nmsolve.model.pipeline.plan import PipelinePlan  # noqa: E402

TRIES = int(os.environ.get("NMSOLVE_TRAINING", "40"))
DATA = Path(__file__).parent / "data" / "onnx"
FILES = {"small_cnn": {"batch": 3}, "small_transformer": {"batch": 3, "rows": 18}}


def compare(parts: TrainingGraph, layers: Layers, expected: Reference) -> None:
    """Owners, MACs, kept tensors over all cuts, and gradients that go back."""
    graph, back = parts.graph, layers.backward
    assert back is not None
    found = {
        o.name: graph.operators[parts.owner[k]].name
        for k, o in enumerate(graph.operators)
        if parts.part[k] > LOSS
    }
    assert found == expected.owner
    assert list(layers.names) == [n for n in expected.layers if n in layers.names]
    for name, macs in zip(layers.names, layers.macs.tolist(), strict=True):
        assert macs == expected.macs[name]
    macs = np.zeros(layers.count, np.int64)
    np.add.at(macs, back.owner, back.whole.macs[back.layers])
    assert macs.tolist() == [expected.back.get(n, 0) for n in layers.names]
    problem = pipeline_problem(layers, ASSUMED, 2, step=Step("gpipe", 1, False, 4.0))
    for cut in range(layers.count):
        stage = [int(k >= cut) for k in range(layers.count)]
        kept, _ = kept_needs(problem, stage, 2)
        for s in (0, 1):
            own = {n for n, at in zip(layers.names, stage, strict=True) if at == s}
            assert kept[s] == sum(
                expected.size[x] for x in set().union(*(expected.reads.get(n, set()) for n in own))
            )
    number, sent = {n: k for k, n in enumerate(layers.names)}, back.returned
    ends = zip(sent.source.tolist(), sent.targets.tolist(), sent.volume.tolist(), strict=True)
    assert sorted(ends) == sorted(
        (number[a], number[b], float(expected.size[x])) for a, b, x in expected.returned
    )


@pytest.mark.parametrize("name", FILES)
def test_files_of_onnxruntime_training_are_what_the_names_of_their_nodes_say(name: str) -> None:
    training, forward = (onnx.load(DATA / f"{name}{end}.onnx") for end in ("_training", ""))
    parts = parts_of(load_onnx(DATA / f"{name}_training.onnx"))
    assert not parts.graph.warnings and UPDATE not in parts.part
    compare(parts, trained_layers(parts, FILES[name]), reference(training, forward, FILES[name]))


@pytest.mark.parametrize("name", FILES)
def test_rules_about_the_forward_pass_count_the_same_products(name: str) -> None:
    """Every product and its gradients; what is kept is not the same (docs/pipeline.md has the figures)."""
    layers = trained_layers(parts_of(load_onnx(DATA / f"{name}_training.onnx")), FILES[name])
    derived = layers_of(load_onnx(DATA / f"{name}.onnx"), {"batch": 3})
    assert derived.gradients is not None and layers.backward is not None
    assert layers.macs.sum() == derived.macs.sum() and layers.weight_bytes.sum() == derived.weight_bytes.sum()
    back = layers.backward
    assert back.whole.macs[back.layers].sum() == (derived.macs * derived.gradients.passes).sum() > 0


@st.composite
def perceptrons(draw: st.DrawFn, most: int = 7) -> Perceptron:
    kinds = draw(st.lists(st.sampled_from(["dense", "relu", "skip"]), max_size=most - 1))
    return Perceptron(["dense", *kinds], named=draw(st.booleans()))


@given(perceptrons())
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_random_training_graphs(tmp_path_factory: pytest.TempPathFactory, made: Perceptron) -> None:
    """Nodes without names have the same owners: these follow from the tensors."""
    folder = tmp_path_factory.mktemp("graphs")
    parts = parts_of(loaded(made.training(), folder))
    layers = trained_layers(parts, {})
    named = Perceptron([n.rstrip("0123456789") for n in layers.names[:-1]])
    expected = reference(named.training(), named.forward(), {})
    if made.named:
        compare(parts, layers, expected)
    else:
        owners = [parts.graph.operators[k].name for k in parts.owner[parts.part > LOSS]]
        assert owners == list(expected.owner.values())


@given(perceptrons(4), st.sampled_from(["1f1b", "gpipe"]), st.booleans(), st.integers(1, 3), st.data())
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_no_cut_is_better_than_that_of_the_search(
    tmp_path_factory: pytest.TempPathFactory,
    made: Perceptron,
    schedule: str,
    again: bool,
    batches: int,
    data: st.DataObject,
) -> None:
    """Over all chains; both evaluators agree on each, and the second proof knows the least value."""
    layers = trained_layers(parts_of(loaded(made.training(), tmp_path_factory.mktemp("graphs"))), {})
    memory = data.draw(st.one_of(st.none(), st.integers(300, 1500).map(float)))
    figures = replace(
        ASSUMED, tile_channels=2, tile_rows=1, bandwidth=data.draw(st.sampled_from([1e8, 1e10]))
    )
    problem = pipeline_problem(layers, figures, 3, memory=memory, step=Step(schedule, batches, again, 2.0))
    answer = best_is_least(problem)
    assert chain_bound_holds(problem, answer.value)
    for cores in itertools.product((1, 2), repeat=2):
        for cut in range(1, layers.count):
            plan = PipelinePlan((np.arange(layers.count) >= cut).astype(np.int64), np.array(cores))
            assert stage_loads(problem, plan).load == pytest.approx(walked_loads(problem, plan), rel=1e-12)


def test_a_real_file_is_cut_best_and_bytes_go_both_ways() -> None:
    layers = trained_layers(parts_of(load_onnx(DATA / "small_cnn_training.onnx")), {"batch": 3})
    step = Step("1f1b", 4, False, 4.0)
    problem = pipeline_problem(layers, ASSUMED, 2, stages=2, exact_stages=True, step=step)
    answer = best_is_least(problem)
    assert answer.plan is not None and len(answer.plan.cores) == 2
    traffic = stage_traffic(problem, answer.plan)
    there, back = layers.tensors, layers.backward
    assert back is not None
    cut = int((answer.plan.stage == 0).sum())
    forward = sum(v for s, t, v in rows(there) if s < cut <= t)
    assert traffic[0, 1] == forward
    assert traffic[1, 0] == sum(v for s, t, v in rows(back.returned) if s < cut <= t)
    graph = tile_graph(problem, answer.plan)
    assert graph.weights.sum() == pytest.approx(traffic.sum())


def own_export(update: bool = True) -> Any:
    """Gradients as somebody may write them by hand: two products, a mean of squares, and a step of gradient descent."""
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "w1"], ["y"], name="second"),
        helper.make_node("Sub", ["y", "target"], ["d"], name="difference"),
        helper.make_node("Mul", ["d", "d"], ["s"], name="square"),
        helper.make_node("ReduceMean", ["s"], ["loss"], name="mean", keepdims=0),
        helper.make_node("Mul", ["d", "two"], ["dy"], name="b0"),
        helper.make_node("Transpose", ["r"], ["rt"], name="b1", perm=[1, 0]),
        helper.make_node("MatMul", ["rt", "dy"], ["w1_grad"], name="b2"),
        helper.make_node("Transpose", ["w1"], ["w1t"], name="b3", perm=[1, 0]),
        helper.make_node("MatMul", ["dy", "w1t"], ["dr"], name="b4"),
        helper.make_node("Sign", ["r"], ["mask"], name="b5"),
        helper.make_node("Mul", ["dr", "mask"], ["dh"], name="b6"),
        helper.make_node("Transpose", ["x"], ["xt"], name="b7", perm=[1, 0]),
        helper.make_node("MatMul", ["xt", "dh"], ["w0_grad"], name="b8"),
    ]
    outs = ["loss", "w0_grad", "w1_grad"]
    if update:
        nodes += [
            helper.make_node("Mul", ["w0_grad", "rate"], ["step0"], name="u0"),
            helper.make_node("Sub", ["w0", "step0"], ["new_w0"], name="u1"),
        ]
        outs.append("new_w0")
    given = [value("x", 4, 6), value("target", 4, 3)]
    weights = [weight("w0", np.ones((6, 5), np.float32)), weight("w1", np.ones((5, 3), np.float32))]
    weights += [weight("two", np.float32(2)), weight("rate", np.float32(0.1))]
    return model(nodes, given, outs, weights)


def test_gradients_without_names_belong_to_what_they_read(tmp_path: Path) -> None:
    parts = parts_of(loaded(own_export(), tmp_path))
    graph = parts.graph
    owner = {o.name: graph.operators[parts.owner[k]].name for k, o in enumerate(graph.operators)}
    assert [owner[f"b{k}"] for k in (2, 8)] == ["second", "first"]
    assert [owner[f"b{k}"] for k in (3, 4)] == ["second", "second"]
    assert owner["b0"] in ("difference", "square") and owner["b7"] == "first"
    assert [o.name for k, o in enumerate(graph.operators) if parts.part[k] == UPDATE] == ["u0", "u1"]
    assert parts.loss == "loss" and owner["u1"] == "first"
    layers = trained_layers(parts)
    assert layers.backward is not None
    assert layers.names == ("first", "relu", "second", "difference", "square", "mean")
    back = layers.backward
    assert back.whole.macs[back.layers].sum() == 4 * 6 * 5 + 2 * 4 * 5 * 3
    assert "u1" not in back.whole.names
    without = trained_layers(parts_of(loaded(own_export(False), tmp_path))).backward
    assert without is not None and without.owner.tolist() == back.owner.tolist()


def test_what_is_made_later_comes_back_and_is_kept_where_it_was_made(tmp_path: Path) -> None:
    """A gradient of the first layer that reads a result of the third one."""
    proto = Perceptron(["dense", "relu", "dense"]).training()
    node = next(n for n in proto.graph.node if n.name == "dense0_Grad/Gemm_1")
    node.input[0] = "t2"
    layers = trained_layers(parts_of(loaded(proto, tmp_path)))
    assert layers.names == ("dense0", "relu1", "dense2", "loss_node") and layers.backward is not None
    problem = pipeline_problem(layers, ASSUMED, 4, step=Step("gpipe", 1, False, 1.0))
    logarithms, labels, result = 4 * 3 * 4, 8 * 3, 4 * 3 * 4
    assert kept_needs(problem, [0, 1, 2, 3], 4)[0] == [0, result, 2 * result, logarithms + labels]
    assert (0, 2, float(result)) in rows(layers.backward.returned)


def test_operators_of_several_layers(tmp_path: Path) -> None:
    """Two gradients read at once; a gradient of a weight made from an earlier layer's; what two layers prepare; weights by other
    names."""
    proto = Perceptron(["dense", "dense", "dense"]).training()
    nodes = {n.name: n for n in proto.graph.node}
    nodes["dense2"].input[1] = "v2"  # the weight by another name
    proto.graph.node.insert(0, helper.make_node("Identity", ["w2"], ["v2"], name="renamed"))
    nodes["dense2_Grad/Gemm_1"].output[0] = "v2_grad"
    back = helper.make_node("Identity", ["v2_grad"], ["w2_grad"], name="back")
    prepared = helper.make_node("Abs", ["t0"], ["t0_size"], name="prepared")
    for name, reads in (
        ("dense2_Grad/Gemm_1", ["t0_size", "t2_grad"]),
        ("dense1_Grad/Gemm_1", ["t0_size", "t1_grad"]),
    ):
        del nodes[name].input[:]
        nodes[name].input.extend(reads)
    both = helper.make_node("Add", ["t1_grad", "t0_grad"], ["mixed"], name="both")
    nodes["dense0_Grad/Gemm_1"].input[1] = "mixed"
    proto.graph.node.extend([back, prepared, both])
    parts = parts_of(loaded(proto, tmp_path))
    layers = trained_layers(parts)
    assert layers.backward is not None and layers.names[:3] == ("dense0", "dense1", "dense2")
    operators = parts.graph.operators
    place = {
        operators[k].name: int(at)
        for k, at in zip(layers.backward.operators, layers.backward.places, strict=True)
    }
    assert (place["back"], place["prepared"], place["both"]) == (2, 2, 0)
    result = 4.0 * 3 * 4
    gradients = [r for r in rows(layers.backward.returned) if r[1] < 3]
    assert sorted(gradients) == [(0, 1, result), (0, 2, result), (1, 2, result), (1, 2, result)]


def test_nobody_waits_for_a_stage_that_waits_for_it(tmp_path: Path) -> None:
    """The gradient of the last weight, made from that of the first result."""
    proto = Perceptron(["dense", "dense", "dense"]).training()
    node = next(n for n in proto.graph.node if n.name == "dense2_Grad/Gemm_1")
    node.input[1] = "t0_grad"
    parts = parts_of(loaded(proto, tmp_path))
    back = trained_layers(parts).backward
    assert back is not None
    place = {
        parts.graph.operators[k].name: int(at) for k, at in zip(back.operators, back.places, strict=True)
    }
    assert place["dense2_Grad/Gemm_1"] == place["dense1_Grad/FusedMatMul_0"] == 1


def test_a_loss_and_sums_in_place_fall_into_the_parts_of_what_they_read() -> None:
    whole = trained_layers(parts_of(load_onnx(DATA / "small_cnn_training.onnx")), {"batch": 3}).backward
    assert whole is not None
    layers = whole.whole
    sizes = {n: int(layers.channels[k] * layers.rows[k]) for k, n in enumerate(layers.names)}
    assert sizes[layers.names[layers.kinds.index("SoftmaxCrossEntropyLoss")]] == 30
    added = [
        sizes[n] for n, kind in zip(layers.names, layers.kinds, strict=True) if kind == "InPlaceAccumulatorV2"
    ]
    assert sorted(added) == sorted([8 * 27, 8, 8, 8, 12 * 72, 12, 120, 10])


def test_frozen_weights_and_data() -> None:
    graph = parts_of(load_onnx(DATA / "small_cnn_training.onnx")).graph
    held = {t.name for t in graph.tensors if t.weight and t.dtype == "float32" and t.producer < 0}
    assert {"w0", "b0", "mean", "variance"} <= held and not held & {"image", "w0_grad.accumulation.buffer"}
    assert [graph.tensors[k].name for k in graph.inputs[:2]] == ["image", "labels"]


@pytest.mark.parametrize(
    "name", ["mobilenet_v2", "resnet50", "bert", "small_cnn", "small_transformer", "loop_if_decoder"]
)
def test_forward_models_are_none(name: str) -> None:
    assert training_graph(load_onnx(DATA / f"{name}.onnx")) is None


def test_an_optimiser_in_the_file_takes_no_time(tmp_path: Path) -> None:
    """Also one of unknown cost."""
    proto = Perceptron(["dense", "relu"]).training()
    plain = trained_layers(parts_of(loaded(proto, tmp_path)))
    flat = ["rate", "count", "w0", "w0_grad", "average", "square"]
    node = helper.make_node(
        "Adam", flat, ["new_w0", "new_average", "new_square"], name="adam", domain="ai.onnx.preview.training"
    )
    proto.graph.node.append(node)
    proto.graph.input.extend([value("rate"), value("count", dtype=TensorProto.INT64)])
    proto.graph.input.extend(value(n, 4, 4) for n in ("average", "square"))
    proto.graph.output.append(onnx.ValueInfoProto(name="new_w0"))
    proto.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    parts = parts_of(loaded(proto, tmp_path))
    layers = trained_layers(parts)
    number = next(k for k, o in enumerate(parts.graph.operators) if o.name == "adam")
    assert parts.part[number] == UPDATE and parts.owner[number] == 0
    assert plain.backward is not None and layers.backward is not None
    assert layers.backward.whole.names == plain.backward.whole.names
    assert layers.buffers is not None and plain.buffers is not None
    assert layers.buffers.size.tolist() == plain.buffers.size.tolist()
