"""Gradient operators: shapes and work by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402
from onnx_support import loaded, model, value, weight  # noqa: E402

from nmsolve.model.operators.costs import operator_costs  # noqa: E402

DATA = Path(__file__).parent / "data" / "onnx"


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
