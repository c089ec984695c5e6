"""Layers of a pipeline from an operator graph: what they need, what flows between them, what is left out."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from operators_support import Sketch

from nmsolve.model.errors import InputError
from nmsolve.model.operators.layers import layers_of

BATCH = sympy.Symbol("batch", integer=True, positive=True)


def flows(layers) -> list[tuple[int, list[int], float]]:
    """(source, targets, volume) of every tensor."""
    t = layers.tensors
    return [(int(t.source[k]), t.targets[t.indptr[k] : t.indptr[k + 1]].tolist(), float(t.volume[k]))
            for k in range(t.count)]  # fmt: skip


def residual_block() -> Sketch:
    """Reshape by a computed shape, two convolutions, a sum; a weight goes through Identity."""
    s = Sketch("block")
    x = s.input(BATCH, 64, 8, 8)
    shape = s.op("Shape", [x], (4,), dtype="int64")
    relu = s.op("Relu", [x], (BATCH, 64, 8, 8))
    moved = s.op("Reshape", [relu, shape], (BATCH, 64, 8, 8))
    copied = s.op("Identity", [s.weight(64, 64, 3, 3)], (64, 64, 3, 3))
    a = s.op("Conv", [moved, copied], (BATCH, 64, 8, 8))
    b = s.op("Conv", [a, copied], (BATCH, 64, 8, 8))
    s.op("Add", [relu, b], (BATCH, 64, 8, 8))
    return s


def test_a_residual_block_by_hand() -> None:
    """Five layers; the sum takes the output of the first, too; the shared weight counts for both convolutions."""
    layers = layers_of(residual_block().graph(), {"batch": 2})
    size = 4 * 2 * 64 * 64
    assert layers.kinds == ("Relu", "Reshape", "Conv", "Conv", "Add")
    assert layers.operators.tolist() == [1, 2, 4, 5, 6]
    assert layers.macs.tolist() == [0, 0, *[2 * 64 * 64 * 64 * 9] * 2, 0]
    assert layers.weight_bytes.tolist() == [0, 0, *[4 * 64 * 64 * 9] * 2, 0]
    assert layers.elements.tolist() == [2 * 64 * 64, 0, 0, 0, 2 * 64 * 64]
    assert layers.channels.tolist() == [8, 8, 64, 64, 8]
    assert (layers.channels * layers.rows).tolist() == [2 * 64 * 64] * 5
    assert flows(layers) == [(0, [1, 4], size), (1, [2], size), (2, [3], size), (3, [4], size)]
    layers.tensors.require(layers.count, "test")


def test_with_scalars_every_operator_is_a_layer() -> None:
    """Then shapes flow as well; weights never do."""
    layers = layers_of(residual_block().graph(), {"batch": 2}, scalars=True)
    assert layers.count == 7
    assert (0, [2], 32.0) in flows(layers)


def test_an_unbound_symbol_names_itself_and_the_layer() -> None:
    """Numbers are needed: the error says which symbol and where."""
    with pytest.raises(
        InputError, match=r"block: Relu 'relu1'.*'batch'.*--bind batch=NUMBER|'batch'.*--bind"
    ):
        layers_of(residual_block().graph())
    with pytest.raises(InputError, match="no symbol 'bach'"):
        layers_of(residual_block().graph(), {"bach": 2})


def test_an_operator_of_unknown_cost_is_refused() -> None:
    """A pipeline with a layer of unknown work would be a guess."""
    s = Sketch("odd")
    s.op("Mystery", [s.input(1, 4)], (1, 4), opaque=True, name="m")
    with pytest.raises(InputError, match="odd: Mystery 'm': the work is not known"):
        layers_of(s.graph())


def test_a_model_without_work_is_refused() -> None:
    """Shapes only: nothing to lay out."""
    s = Sketch()
    s.op("Shape", [s.input(1, 4)], (2,), dtype="int64")
    with pytest.raises(InputError, match="no operators"):
        layers_of(s.graph())


def test_what_a_left_out_operator_reads_goes_to_those_who_use_its_result() -> None:
    """A token decides, through scalar operators, what the last layer takes: it must not come before the token."""
    s = Sketch()
    x = s.input(1, 32)
    token = s.op("ArgMax", [x], (1,), dtype="int64")
    index = s.op("Add", [token, s.constant([1])], (1,), dtype="int64")
    index = s.op("Squeeze", [index], (), dtype="int64")
    s.op("Gather", [s.weight(33, 8), index], (8,))
    layers = layers_of(s.graph())
    assert layers.kinds == ("ArgMax", "Gather")
    assert flows(layers) == [(0, [1], 8.0)]


def test_a_loop_has_a_start_its_body_and_an_end() -> None:
    """The end keeps what the body captures and makes the final state; trips are bound like any symbol."""
    body = Sketch("body")
    body.input(dtype="int64")
    on = body.input(dtype="bool")
    state = body.input(1, 8)
    made = body.op("MatMul", [state, body.capture("memory", 8, 8)], (1, 8))
    s = Sketch()
    x = s.input(8, 8)
    limit = s.input(dtype="int64", name="steps")
    memory = s.op("Relu", [x], (8, 8))
    start = s.op("ReduceSum", [x], (1, 8))
    s.tensors[memory] = type(s.tensors[memory])("memory", "float32", (8, 8), producer=0)
    out = s.op("Loop", [limit, -1, start], (1, 8), bodies=(body.graph(on, made),), name="again")
    s.op("Relu", [out], (1, 8))
    layers = layers_of(s.graph(), {"steps": 5})
    assert layers.names == ("relu0", "reducesum1", "again/start", "again/matmul0", "again/end", "relu3")
    assert layers.macs.tolist() == [0, 0, 0, 64, 0, 0]
    assert layers.nesting is not None
    assert layers.nesting.runs.tolist() == [1, 1, 1, 5, 1, 1]
    assert layers.nesting.loop.tolist() == [-1, -1, 0, 0, 0, -1] and layers.nesting.trips == (5,)
    assert flows(layers) == [
        (0, [3, 4], 256), (1, [2], 32), (2, [4], 1), (2, [3], 32), (3, [4], 32), (4, [5], 32),
    ]  # fmt: skip
    assert layers.nesting.passes.tolist() == [1] * 6
    with pytest.raises(InputError, match="--bind steps=NUMBER"):
        layers_of(s.graph())


@given(st.data())
def test_flows_equal_paths_over_left_out_operators(data: st.DataObject) -> None:
    """Random graphs of scalar and tensor operators against a plain search along the consumers."""
    s = Sketch()
    made = [s.input(4, 8)]
    scalars = [False]
    for _ in range(data.draw(st.integers(1, 8))):
        scalar = data.draw(st.booleans())
        # a scalar operator reads scalars only, else it is tensor work
        pool = [k for k, is_scalar in zip(made, scalars, strict=True) if is_scalar or not scalar]
        if not pool:
            scalar, pool = False, made
        inputs = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
        made.append(s.op("Sum", inputs, () if scalar or data.draw(st.booleans()) else (4, 8)))
        scalars.append(s.tensors[made[-1]].shape == ())
    graph = s.graph()
    kept = {
        k
        for k, op in enumerate(graph.operators)
        if any(graph.tensors[t].shape for t in (*op.inputs, *op.outputs))
    }
    if not kept:
        return

    def reached(tensor: int) -> set[int]:
        out = set()
        for user in graph.tensors[tensor].consumers:
            out |= {user} if user in kept else reached(graph.operators[user].outputs[0])
        return out

    number = {k: i for i, k in enumerate(sorted(kept))}
    expected = []
    for k in sorted(kept):
        users = sorted(number[u] for u in reached(graph.operators[k].outputs[0]))
        if users:
            size = int(np.prod(graph.tensors[graph.operators[k].outputs[0]].shape))
            expected.append((number[k], users, 4.0 * size))
    assert flows(layers_of(graph)) == expected
