"""Graphs with their own backward pass: parts, pairing, costs and what is kept, against the names of the nodes; plans of them.

``NMSOLVE_TRAINING=2000 pytest tests/test_training_graphs.py`` tries longer.
"""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Called
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines_support import best_is_least

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx_support import loaded, model, saved, value, weight  # noqa: E402
from training_reference import Reference, bound, reference  # noqa: E402
from training_support import Perceptron  # noqa: E402

from nmsolve.hw.pipeline.chain_bound import chain_bound_holds  # noqa: E402
from nmsolve.hw.pipeline.figures import ASSUMED  # noqa: E402
from nmsolve.hw.pipeline.stages import stage_loads  # noqa: E402
from nmsolve.hw.pipeline.tiles import pipeline_problem  # noqa: E402
from nmsolve.hw.pipeline.to_graph import stage_traffic, tile_graph  # noqa: E402
from nmsolve.hw.pipeline.training import Step  # noqa: E402
from nmsolve.hw.pipeline.walk import walked_loads  # noqa: E402
from nmsolve.model.errors import InputError  # noqa: E402
from nmsolve.model.formats.onnx import load_onnx  # noqa: E402
from nmsolve.model.operators.backward import trained_layers  # noqa: E402
from nmsolve.model.operators.costs import operator_costs  # noqa: E402
from nmsolve.model.operators.layers import Layers, layers_of  # noqa: E402
from nmsolve.model.operators.training_graph import LOSS, UPDATE, TrainingGraph, training_graph  # noqa: E402
from nmsolve.model.pipeline.check import kept_needs  # noqa: E402
from nmsolve.model.pipeline.plan import PipelinePlan  # noqa: E402

TRIES = int(os.environ.get("NMSOLVE_TRAINING", "40"))
DATA = Path(__file__).parent / "data" / "onnx"
FILES = {"small_cnn": {"batch": 3}, "small_transformer": {"batch": 3, "rows": 18}}


def parts_of(graph: Any) -> TrainingGraph:
    found = training_graph(graph)
    assert found is not None
    return found


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


def rows(tensors: Any) -> list[tuple[int, int, float]]:
    """(maker, its last user, bytes)."""
    return [
        (
            int(tensors.source[t]),
            int(tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].max()),
            float(tensors.volume[t]),
        )
        for t in range(tensors.count)
    ]


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


#: Kind, inputs (shapes, or values of whole numbers), settings, shapes of the results, MACs, elements.
KINDS: list[tuple[str, list[Any], dict[str, Any], list[tuple[int, ...]], int, int]] = [
    ("ReluGrad", [(3, 4), (3, 4)], {}, [(3, 4)], 0, 12),
    ("SoftmaxGrad_13", [(3, 4), (3, 4)], {"axis": -1}, [(3, 4)], 0, 12),
    ("DivGrad", [(3, 4), (3, 4), (4,)], {}, [(3, 4), (4,)], 0, 12),
    ("ConvGrad", [(2, 8, 5, 5), (2, 6, 7, 7), (8, 3, 3, 3)], {"group": 2}, [(2, 6, 7, 7), (8, 3, 3, 3), (8,)], 2 * 400 * 27, 0),
    ("ConvTransposeGrad", [(2, 5, 8, 8), (2, 6, 7, 7), (6, 5, 2, 2)], {}, [(2, 6, 7, 7), (6, 5, 2, 2)], 2 * 588 * 20, 0),
    ("BatchNormalizationGrad", [(2, 6, 7, 7), (2, 6, 7, 7), (6,), (6,), (6,)], {}, [(2, 6, 7, 7), (6,), (6,)], 0, 588),
    ("LayerNormalizationGrad", [(2, 5, 6), (2, 5, 6), (6,), (2, 5, 1), (2, 5, 1)], {}, [(2, 5, 6), (6,), (6,)], 0, 60),
    ("GatherGrad", [[9, 4], (2, 3), (2, 3, 4)], {"axis": 0}, [(9, 4)], 0, 36),
    ("SliceGrad", [(3, 2), [3, 8], [0], [2], [1]], {}, [(3, 8)], 0, 24),
    ("GatherElementsGrad", [(3, 2), [3, 8], (3, 2)], {"axis": 1}, [(3, 8)], 0, 24),
    ("SplitTraining", [(3, 8), [5, 3]], {"axis": 1}, [(3, 5), (3, 3)], 0, 15),
    ("ConcatTraining", [(3, 5), (3, 3)], {"axis": 1}, [(3, 8), (2,)], 0, 24),
    ("SoftmaxCrossEntropyLossGrad", [(), (3, 4), (3,)], {}, [(3, 4)], 0, 12),
    ("InPlaceAccumulatorV2", [(3, 4), (3, 4), (1,)], {}, [(1,), (3, 4)], 0, 12),
    ("InPlaceAccumulator", [(3, 4), (3, 4)], {}, [(3, 4)], 0, 12),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "given_", "how", "made", "macs", "elements"), KINDS, ids=[k[0] for k in KINDS]
)
def test_costs_of_gradients(
    tmp_path: Path,
    kind: str,
    given_: list[Any],
    how: dict[str, Any],
    made: list[Any],
    macs: int,
    elements: int,
) -> None:
    names = [f"i{k}" for k in range(len(given_))]
    node = helper.make_node(
        kind, names, [f"o{k}" for k in range(len(made))], name="it", domain="com.microsoft", **how
    )
    floats = [value(n, *x) for n, x in zip(names, given_, strict=True) if isinstance(x, tuple)]
    fixed = [weight(n, np.array(x)) for n, x in zip(names, given_, strict=True) if isinstance(x, list)]
    graph = loaded(model([node], floats, ["o0"], fixed, domains=["com.microsoft"]), tmp_path, strict=True)
    (operator,), (cost,) = graph.operators, operator_costs(graph)
    assert [graph.tensors[k].shape for k in operator.outputs] == made
    assert (cost.macs, cost.elements) == (macs, elements)


def test_gradients_of_poolings_have_shapes_by_their_names(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m", "places"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("AveragePool", ["m"], ["a"], kernel_shape=[2, 2], strides=[1, 1]),
        helper.make_node(
            "AveragePoolGrad", ["seed"], ["m_grad"], kernel_shape=[2, 2], strides=[1, 1], name="average"
        ),
        helper.make_node("MaxPoolGrad", ["m_grad", "places"], ["x_grad_0"], name="most"),
    ]
    graph = loaded(
        model(nodes, [value("x", 2, 3, 9, 9), value("seed", 2, 3, 3, 3)], ["a", "x_grad_0"]), tmp_path
    )
    shape = {t.name: t.shape for t in graph.tensors}
    assert shape["m_grad"] == (2, 3, 4, 4) and shape["x_grad_0"] == (2, 3, 9, 9) and not graph.warnings
    cost = {o.name: c.elements for o, c in zip(graph.operators, operator_costs(graph), strict=True)}
    assert (cost["average"], cost["most"]) == (54 * 4, 486)


@given(st.data())
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_damaged_graphs_are_planned_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Nodes that are gone, read something else or are of another kind: gradients still go back, or an InputError says why not."""
    proto = bound(onnx.load(DATA / "small_cnn_training.onnx"), {"batch": 2})
    for _ in range(data.draw(st.integers(1, 3))):
        nodes = list(proto.graph.node)
        one, other = data.draw(st.sampled_from(nodes)), data.draw(st.sampled_from(nodes))
        change = data.draw(st.sampled_from(["gone", "reads", "kind"]))
        if change == "gone":
            proto.graph.node.remove(one)
        elif change == "reads" and one.input:
            one.input[0] = data.draw(st.sampled_from([n for n in other.output if n]))
        else:
            one.op_type = other.op_type
    made = {n for node in proto.graph.node for n in node.output} | {t.name for t in proto.graph.initializer}
    made |= {i.name for i in proto.graph.input}
    lost = {n for node in proto.graph.node for n in node.input if n} - made
    proto.graph.input.extend(value(n, 2, 8) for n in sorted(lost))
    try:
        parts = training_graph(loaded(proto, tmp_path_factory.mktemp("graphs")))
        layers = None if parts is None else trained_layers(parts)
    except InputError:
        return
    if layers is not None and layers.backward is not None:
        pipeline_problem(layers, ASSUMED, 2, step=Step("1f1b", 2, False, 2.0))
        assert all(a < b for a, b, _ in rows(layers.backward.returned))


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


def broken(kind: str) -> Any:
    """A training graph with one mistake."""
    made = Perceptron(["dense", "relu", "dense"])
    proto = made.training()
    graph = proto.graph
    node = {n.name: n for n in graph.node}
    if kind == "no loss":
        del graph.initializer[:]
        graph.input.append(value("loss_grad"))
        graph.node.remove(node["loss_node"])
        graph.input.append(value("log", 3, 4))
        graph.output.remove(graph.output[0])
    elif kind == "no layer":
        graph.node.remove(node["relu1"])
        graph.input.append(value("t1", 3, 4))
    elif kind == "control flow":
        body = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "body", [], [value("z", 3, 4)])
        graph.initializer.append(weight("yes", np.array(True)))
        graph.node.append(
            helper.make_node("If", ["yes"], ["q"], then_branch=body, else_branch=body, name="fork")
        )
    elif kind == "cycle":
        node["relu1"].input[0] = "t2"
    elif kind == "loss of a gradient":
        node["loss_node"].input[0] = "t1_grad"
    elif kind == "unknown gradient":
        node["relu1_Grad/ReluGrad_0"].op_type = "MysteryGrad"
    return proto


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("no loss", "a training graph without a loss"),
        ("no layer", "operator 'relu1_Grad/ReluGrad_0' (ReluGrad) is the gradient of no layer"),
        ("control flow", "a training graph with control flow"),
        ("cycle", "in a cycle"),
        ("loss of a gradient", "cycle"),
        ("unknown gradient", "not known"),
    ],
)
def test_each_mistake_is_one_line(call: Called, tmp_path: Path, kind: str, words: str) -> None:
    path = saved(broken(kind), tmp_path, "wrong.onnx")
    code, _, error = call("pipeline", path, "--cores", "4", "--training", "1f1b", "-o", tmp_path / "out")
    lines = [line for line in error.strip().splitlines() if not line.startswith("warning")]
    assert code == 2 and len(lines) == 1 and words in lines[0]


def test_training_must_be_asked_for_and_unknown_gradients_are_told(call: Called, tmp_path: Path) -> None:
    code, _, error = call("pipeline", DATA / "small_cnn_training.onnx", "--cores", "4", "--bind", "batch=2")
    assert code == 2 and "holds its backward pass" in error and "--training 1f1b or gpipe" in error
    path = saved(broken("unknown gradient"), tmp_path, "wrong.onnx")
    assert "unknown kind com.microsoft.MysteryGrad" in call("info", path)[2]
    code, _, error = call("pipeline", path, "--cores", "4", "--training", "1f1b", "--strict")
    assert code == 2 and "unknown operator com.microsoft.MysteryGrad" in error
    code, _, error = call(
        "pipeline",
        DATA / "small_cnn_training.onnx",
        "--cores",
        "4",
        "--bind",
        "batch=2",
        "--training",
        "gpipe",
        "--split",
        "any",
    )
    assert code == 2 and "--split chain" in error


def test_from_a_file_to_stages_of_all_nodes(call: Called, tmp_path: Path) -> None:
    source, out, copy = DATA / "small_transformer_training.onnx", tmp_path / "out", tmp_path / "staged.onnx"
    code, text, _ = call(
        "pipeline", source, "--bind", "batch=64,rows=384", "-m", "mesh:4x4", "--training", "1f1b", "--core-memory", "150KiB",
        "--stages", "4", "--exact-stages", "--group-sync", "10ns", "--write-onnx", copy, "-t", "600s", "-o", out, "--place",
    )  # fmt: skip
    assert code == 0 and "The backward pass is that of the model's file: 93 operators" in text
    report = json.loads((out / "pipeline-report.json").read_text())
    assert (
        report["status"] == "optimal" and report["training"]["operators"] == 93 and len(report["stages"]) == 4
    )
    plan = json.loads((out / "plan.json").read_text())
    layers = trained_layers(parts_of(load_onnx(source)), {"batch": 64, "rows": 384})
    stage = dict(zip(layers.names, plan["stage"], strict=True))
    expected = reference(
        onnx.load(source), onnx.load(DATA / "small_transformer.onnx"), FILES["small_transformer"]
    )
    marked = {n.name: n.device_configurations[0].pipeline_stage for n in onnx.load(copy).graph.node}
    assert len(marked) == 127 and {name: marked[name] for name in stage} == stage
    assert {name: marked[name] for name in expected.owner} == {
        name: stage[own] for name, own in expected.owner.items()
    }
    assert "backward" in (out / "pipeline.html").read_text()
    for folder in (out, out / "placement"):
        code, text, _ = call("verify", folder, "--bound")
        assert code == 0 and "FAILED" not in text


def test_info_says_what_it_is(call: Called) -> None:
    code, text, _ = call("info", DATA / "small_cnn_training.onnx", "--bind", "batch=4")
    line = next(x for x in text.splitlines() if x.startswith("training"))
    assert code == 0 and "forward 442,848 MACs in 10 operators, backward 664,512 MACs in 24 operators" in line
    code, text, _ = call("info", DATA / "small_cnn_training.onnx", "--json")
    first = json.loads(text.splitlines()[0])
    assert (
        first["training"]["backward"] == {"operators": 24, "macs": "166128*batch"}
        and first["training"]["loss"]
    )
    assert json.loads(call("info", DATA / "small_cnn.onnx", "--json")[1].splitlines()[0])["training"] is None


def test_times_of_layers_in_training_are_recomputed(call: Called, tmp_path: Path) -> None:
    """By rule, too: what verify says of times holds for both passes."""
    path = saved(bound(onnx.load(DATA / "small_cnn.onnx"), {"batch": 4}), tmp_path)
    out = tmp_path / "out"
    code, _, _ = call(
        "pipeline",
        path,
        "--cores",
        "4",
        "--training",
        "gpipe",
        "--group-sync",
        "10ns",
        "-t",
        "600s",
        "-o",
        out,
    )
    code, text, _ = call("verify", out)
    assert code == 0 and "recomputed: times of 9 layers" in text and TensorProto.FLOAT


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
