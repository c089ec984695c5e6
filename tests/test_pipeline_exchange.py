"""What the cores of a group exchange: the best split of every layer, against the definition and in the command."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil, sqrt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from nmsolve.check.pipeline.reevaluate_exchange import reevaluated_times
from nmsolve.hw.machines import load_machine
from nmsolve.hw.pipeline.exchange import SPLITS, best_splits
from nmsolve.hw.pipeline.tiles import layer_times, pipeline_problem
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.machine import Figure
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.pipeline.figures import ASSUMED, CoreFigures, machine_figures
from nmsolve.model.pipeline.problem import Tensors
from nmsolve.solvers.pipeline.api import plan

KINDS = ("Conv", "MatMul", "Add", "Transpose", "MaxPool", "GlobalAveragePool", "Softmax", "Reshape")
MODELS = Path(__file__).parent / "data" / "onnx"


@st.composite
def some_layers(draw) -> Layers:
    """One to five layers of all kinds; each takes tensors of earlier ones."""
    count = draw(st.integers(1, 5))
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(count)]
    source, indptr, targets, volume = [], [0], [], []
    for k in range(count - 1):
        users = draw(st.lists(st.integers(k + 1, count - 1), unique=True, max_size=2))
        if users:
            source.append(k)
            targets += users
            indptr.append(len(targets))
            volume.append(float(draw(st.integers(0, 500))))
    number = st.integers(1, 40)
    product = np.array([kind in ("Conv", "MatMul") for kind in kinds])
    whole = lambda strategy: np.array([draw(strategy) for _ in range(count)])  # noqa: E731
    runs = whole(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    return Layers(
        name="some", names=tuple(map(str, range(count))), kinds=tuple(kinds), operators=np.arange(count),
        macs=np.where(product, whole(st.integers(1, 5000)), 0), elements=whole(st.integers(0, 300)),
        weight_bytes=np.where(product, whole(st.sampled_from([0, 7, 900])), 0), channels=whole(number), rows=whole(number),
        tensors=Tensors(
            np.array(source, np.int64), np.array(indptr), np.array(targets, np.int64), np.zeros(len(source)), np.array(volume)
        ),
        batches=whole(st.integers(1, 6)), window=np.where(product, whole(st.sampled_from([1, 3])), 1),
        nesting=SimpleNamespace(runs=runs) if draw(st.booleans()) else None,
    )  # fmt: skip


def on_exactly(layers: Layers, figures: CoreFigures, k: int, c: int) -> tuple[float, float]:
    """Return us of layer ``k`` on ``c`` cores, and the bytes that it takes and makes; docs/pipeline.md word by word."""
    tensors = layers.tensors
    takes = [
        float(tensors.volume[t])
        for t in range(tensors.count)
        for v in tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]
        if v == k
    ]
    made = float(tensors.volume[tensors.source == k].sum())
    weights, kind, product = float(layers.weight_bytes[k]), layers.kinds[k], layers.macs[k] > 0
    factor = sum(takes) - max(takes, default=0.0) if product and kind != "Conv" and weights == 0 else 0.0
    rows_in = sum(takes) - factor
    high, wide = min(figures.tile_rows, layers.rows[k]), min(figures.tile_channels, layers.channels[k])
    down, across = ceil(layers.rows[k] / high), ceil(layers.channels[k] / wide)
    work = 1e6 * (layers.macs[k] / figures.mac_rate + layers.elements[k] / figures.element_rate)
    tile = work * high * wide / (layers.rows[k] * layers.channels[k])
    beside = rows_in * (layers.window[k] - 1) / sqrt(layers.rows[k])
    if c == 1:
        return down * across * tile, sum(takes) + made
    own, ways = 1 / c, []
    if product:
        terms = max(1, int(layers.macs[k]) // int(layers.rows[k] * layers.channels[k]))
        ways.append((down * across * tile * ceil(terms / c) / terms, (rows_in * own + made) * (1 - own)))
        for a in range(1, c + 1):
            b = c // a
            if a * b != c:
                continue
            got = (rows_in / a + made / c) * (1 - 1 / b) + weights / b * (1 - 1 / a)
            touched = ceil(layers.batches[k] / a) / layers.batches[k]
            got += max(0.0, factor * touched / b - factor / c)
            got += min(beside, rows_in * (1 - 1 / a)) if a > 1 else 0.0
            ways.append((ceil(down / a) * ceil(across / b) * tile, got))
    else:
        got = min(beside, rows_in * (1 - own))
        got += made * own * (1 - own) if kind == "Transpose" else 0.0
        got += made * (1 - own) if kind == "GlobalAveragePool" else 0.0
        ways.append((ceil(down * across / c) * tile, got))
    best = min(computed + 1e6 * got / figures.bandwidth + figures.sync / 1000 for computed, got in ways)
    return best, sum(takes) + made


def by_definition(
    layers: Layers, figures: CoreFigures, k: int, cores: int
) -> tuple[list[float], list[float]]:
    """Return us of layer ``k`` that it can reach on 1 to ``cores`` cores, and what the table says."""
    exact = [on_exactly(layers, figures, k, c) for c in range(1, cores + 1)]
    runs = 1.0 if layers.nesting is None else float(layers.nesting.runs[k])
    reached = []
    for c in range(1, cores + 1):
        fewer = [
            exact[f - 1][0] + 1e6 * exact[f - 1][1] / f / figures.bandwidth + figures.sync / 1000
            for f in range(1, c)
        ]
        reached.append(min([exact[c - 1][0], *fewer]) * runs)
    return reached, [max(reached[c:]) for c in range(cores)]


@given(some_layers(), st.integers(1, 12), st.sampled_from([0.0, 100.0, 5000.0]), st.sampled_from([1e6, 5e7]))
@settings(max_examples=80, deadline=None)
def test_times_are_those_of_the_definition_in_both_programs(
    layers: Layers, cores: int, sync: float, rate: float
) -> None:
    """Never longer on more cores, never less than a layer can reach; exchange is a part of it."""
    figures = CoreFigures(1e6, 3e6, rate, 4, 2, sync=sync)
    found = best_splits(layers, figures, cores)
    pairs = [by_definition(layers, figures, k, cores) for k in range(layers.count)]
    reached, expected = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
    np.testing.assert_allclose(found.time, expected, rtol=1e-9)
    np.testing.assert_allclose(reevaluated_times(layers, figures, cores), expected, rtol=1e-9)
    np.testing.assert_array_equal(layer_times(layers, figures, cores), found.time)
    assert (np.diff(found.time, axis=1) <= 0).all()
    assert (found.time >= reached * (1 - 1e-9)).all()
    assert (found.exchange >= 0).all() and (found.exchange <= found.time * (1 + 1e-9)).all()
    assert set(np.unique(found.split)) <= set(range(len(SPLITS)))


def test_free_links_and_no_wait_leave_the_tiles() -> None:
    """Where exchange takes no time, a layer without products takes what tiles say."""
    layers = layers_of(load_onnx(MODELS / "resnet50.onnx"))
    free = replace(ASSUMED, bandwidth=1e30, sync=0.0)
    tiles, found = layer_times(layers, ASSUMED, 16), layer_times(layers, free, 16)
    plain = layers.macs == 0
    np.testing.assert_allclose(found[plain], tiles[plain])


def test_a_group_of_all_cores_is_no_longer_the_best_plan() -> None:
    """ResNet-50 on the figures of Wormhole: one stage without exchange, many with it; both proved."""
    layers = layers_of(load_onnx(MODELS / "resnet50.onnx"))
    figures = machine_figures(load_machine("wormhole"))
    assert figures.sync == 0.0
    counted, free = (
        plan(pipeline_problem(layers, replace(figures, sync=sync, memory=None), 64), time_limit=20)
        for sync in (0.0, None)
    )
    assert counted.status == free.status == "optimal"
    assert len(free.solution.cores) == 1 and len(counted.solution.cores) > 10
    assert counted.objective > 2 * free.objective


def test_heads_share_a_product_of_results_for_nothing() -> None:
    """Eight independent products on eight cores: nothing comes in; as one product each core needs the other factor."""
    two = Tensors(
        np.array([0, 1]), np.array([0, 1, 2]), np.array([2, 2]), np.zeros(2), np.array([800.0, 800.0])
    )
    kinds, ones = ("Add", "Add", "MatMul"), np.ones(3, np.int64)
    heads = Layers(
        "heads", ("q", "k", "qk"), kinds, np.arange(3), np.array([0, 0, 6400]), ones, 0 * ones, 8 * ones, 64 * ones, two,
        batches=np.array([1, 1, 8]),
    )  # fmt: skip
    figures = CoreFigures(1e6, 1e6, 1e6, 8, 8, sync=0.0)
    apart, whole = (best_splits(x, figures, 8) for x in (heads, replace(heads, batches=ones)))
    assert apart.exchange[2, 7] == 0 and SPLITS[apart.split[2, 7]] == "rows"
    assert apart.time[2, 7] == pytest.approx(apart.time[2, 0] / 8)
    assert whole.time[2, 7] > apart.time[2, 7]


def test_wrong_figures_are_named() -> None:
    board = load_machine("wormhole")
    for figure, text in ((Figure(5, "us"), "unit of group_sync"), (Figure(-1.0, "ns"), "group_sync is -1")):
        with pytest.raises(InputError, match=text):
            machine_figures(replace(board, figures={**board.figures, "group_sync": figure}))
    with pytest.raises(InputError, match="sync"):
        replace(ASSUMED, sync=float("nan"))


def chain(path: Path) -> Path:
    """Three matrix products of 64 rows, one after the other."""
    rng = np.random.default_rng(1)
    weights = [helper.make_tensor(f"w{k}", TensorProto.FLOAT, [64, 64], rng.random(4096)) for k in range(3)]
    nodes = [helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"], f"product{k}") for k in range(3)]
    ends = [helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, [64, 64]) for k in (0, 3)]
    graph = helper.make_graph(nodes, "chain", [ends[0]], [ends[1]], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_the_command_counts_exchange_and_verify_finds_wrong_claims(tmp_path: Path) -> None:
    model, out = chain(tmp_path / "c.onnx"), tmp_path / "o"
    run_here("pipeline", model, "--cores", "8", "--group-sync", "1us", "--stages", "2", "--out", out)
    report = json.loads((out / "pipeline-report.json").read_text())
    assert report["sync"] == 1000.0 and report["inputs"]["group_sync"] == 1000.0
    assert all(
        0 < s["exchange"] < s["compute"] and sum(s["splits"].values()) == s["layers"]
        for s in report["stages"]
    )
    layers, figures = layers_of(load_onnx(model)), replace(ASSUMED, sync=1000.0)
    table, plan_file = best_splits(layers, figures, 8), json.loads((out / "plan.json").read_text())
    stage = np.array(plan_file["stage"])
    for k, told in enumerate(report["stages"]):
        alone = table.time - table.exchange  # what is left of a stage's time is computing
        left = alone[stage == k, told["cores"] - 1].sum()
        assert told["compute"] - told["exchange"] == pytest.approx(left)
    assert "with what these exchange" in run_here("verify", out, "--bound").stdout
    assert '<th class="n">exchange</th>' in (out / "pipeline.html").read_text()
    again = tmp_path / "again"
    run_here("resume", out, "-t", "2", "--out", again, code=None)
    for forged in (
        {"sync": 10.0},
        {"sync": None},
        {"stages": 5},
        {"stages": [{**s, "exchange": 0.0} for s in report["stages"]]},
    ):
        (out / "pipeline-report.json").write_text(json.dumps(report | forged))
        run_here("verify", out, code=1)
    plain = tmp_path / "p"
    run_here("pipeline", model, "--cores", "8", "--stages", "2", "--out", plain)
    without = json.loads((plain / "pipeline-report.json").read_text())
    assert without["sync"] is None and all(s["exchange"] == 0 and not s["splits"] for s in without["stages"])
    assert without["objective"] < report["objective"]


@pytest.mark.parametrize("text", ["5parsec", "-1ns", "nan", "", "1e99"])
def test_a_wrong_time_is_refused(tmp_path: Path, text: str) -> None:
    model = chain(tmp_path / "c.onnx")
    said = run_here(
        "pipeline", model, "--cores", "8", f"--group-sync={text}", "--out", tmp_path / "o", code=2
    ).stderr
    assert "--group-sync" in said and not (tmp_path / "o").exists()
