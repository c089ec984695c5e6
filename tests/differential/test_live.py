"""Live ranges of small models, from the file to the proof, against docs/pipeline.md (*Memory*) word by word.

A model is drawn as plain data: operators, what they read and make, sizes. The reference (``stages_reference.py``) counts from
them alone; the package gets the ONNX file. Only times of layers and tensors are the package's own.
``NMSOLVE_LIVE=2000 pytest tests/differential/test_live.py`` tries more models.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from pipelines_support import Recorder, every_chain
from stages_reference import Pipeline, Shape, optimum, peak, streamed, value_of

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.reevaluate import reevaluated_stream
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.pipeline.check import live_needs, memory_needs, plan_complaint
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.pipeline.partition import Chain

COUNT = int(os.environ.get("NMSOLVE_LIVE", "60"))
#: Elements of a row of every tensor, which has one, two or four rows; floats of 4 bytes.
WIDE = 8


@dataclass(frozen=True)
class Operator:
    """One layer: its kind, tensors that it reads (0: the input, k: the result of layer k - 1), bytes of weights, rows made."""

    kind: str
    reads: tuple[int, ...]
    weights: int
    rows: int


def drawn(seed: int) -> list[Operator]:
    """One to seven layers that read what was made before; a MatMul has weights, a Reshape two whole numbers."""
    rng = Random(f"live {seed}")
    rows, out = [rng.choice((1, 2, 4))], []
    for k in range(rng.randint(1, 7)):
        latest = k if rng.random() < 0.6 else rng.randint(0, k)
        kind = rng.choice(("MatMul", "MatMul", "Relu", "Reshape", "Concat", "Add"))
        same = [t for t in range(k + 1) if rows[t] == rows[latest]]
        other = rng.choice(same if kind == "Add" else range(k + 1))
        kind = "Relu" if kind in ("Add", "Concat") and other == latest else kind
        reads = (latest, other) if kind in ("Add", "Concat") else (latest,)
        made = sum(rows[t] for t in reads) if kind == "Concat" else rows[latest]
        out.append(Operator(kind, reads, {"MatMul": 4 * WIDE * WIDE, "Reshape": 2 * 8}.get(kind, 0), made))
        rows.append(made)
    return out


def leaving(operators: list[Operator], rng: Random) -> set[int]:
    """Results that leave the model: all that nobody reads, and perhaps one more."""
    read = {t for o in operators for t in o.reads}
    out = {k + 1 for k in range(len(operators)) if k + 1 not in read}
    return out | ({rng.randint(1, len(operators))} if rng.random() < 0.3 else set())


def written(operators: list[Operator], rows: int, leave: set[int], path: Path) -> Path:
    """The model as a file."""
    nodes, weights = [], []
    for k, o in enumerate(operators):
        inputs = [f"t{t}" for t in o.reads]
        if o.kind == "MatMul":
            weights.append(numpy_helper.from_array(np.ones((WIDE, WIDE), np.float32), f"w{k}"))
            inputs.append(f"w{k}")
        if o.kind == "Reshape":
            weights.append(numpy_helper.from_array(np.array([o.rows, WIDE], np.int64), f"s{k}"))
            inputs.append(f"s{k}")
        more = {"axis": 0} if o.kind == "Concat" else {}
        nodes.append(helper.make_node(o.kind, inputs, [f"t{k + 1}"], f"layer{k}", **more))
    sizes = [rows, *(o.rows for o in operators)]
    infos = {
        t: helper.make_tensor_value_info(f"t{t}", TensorProto.FLOAT, [sizes[t], WIDE]) for t in {0, *leave}
    }
    graph = helper.make_graph(nodes, "drawn", [infos[0]], [infos[t] for t in sorted(leave)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def buffers(
    operators: list[Operator], rows: int, leave: set[int]
) -> tuple[tuple[int, tuple[Shape, ...]], ...]:
    """Bytes of every piece of memory, and the tensors in it."""
    root, held = {0: 0}, {0: 4 * WIDE * rows}
    shapes: dict[int, list[Shape]] = {}
    for t in range(len(operators) + 1):
        if t:
            made = operators[t - 1]
            root[t] = root[made.reads[0]] if made.kind == "Reshape" else t
            held.setdefault(root[t], 4 * WIDE * made.rows)
        readers = tuple(k for k, o in enumerate(operators) if t in o.reads)
        if readers or t in leave:
            shapes.setdefault(root[t], []).append(Shape(t - 1 if t else None, readers, t in leave))
    return tuple((held[r], tuple(own)) for r, own in shapes.items())


def both(seed: int, folder: Path) -> tuple[Pipeline, PipelineProblem]:
    """The model as the reference has it, and as the package reads it, on cores with little memory."""
    operators, rng = drawn(seed), Random(seed)
    first = operators[0]
    rows = first.rows if first.kind != "Concat" else first.rows // 2
    leave = leaving(operators, rng)
    layers = layers_of(load_onnx(written(operators, rows, leave, folder / "drawn.onnx")))
    cores, memory = rng.randint(1, 4), rng.randint(40, 500)
    offchip = rng.choice((None, 1e9, 3e8))
    figures = replace(ASSUMED, tile_channels=4, tile_rows=1)
    problem = pipeline_problem(
        layers, figures, cores, memory=memory, overlap=rng.random() < 0.3, offchip=offchip or 0.0,
        stages=rng.randint(1, min(cores, len(operators))),
    )  # fmt: skip
    reference = Pipeline(
        time=tuple(map(tuple, problem.time.tolist())), storage=tuple(float(o.weights) for o in operators),
        tensors=tuple(_tensors(problem)), cores=cores, stages=problem.stages, split="chain", memory=memory,
        overlap=problem.overlap, buffers=buffers(operators, rows, leave),
        offchip=1e6 * cores / offchip if offchip else 0.0,
    )  # fmt: skip
    return reference, problem


def _tensors(problem: PipelineProblem) -> list[tuple[int, tuple[int, ...], float]]:
    t = problem.tensors
    ends = [tuple(t.targets[t.indptr[k] : t.indptr[k + 1]].tolist()) for k in range(t.count)]
    return list(zip(t.source.tolist(), ends, t.time.tolist(), strict=True))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Pipeline, PipelineProblem]]:
    """All of them, read once."""
    folder = tmp_path_factory.mktemp("live")
    return [both(seed, folder) for seed in range(COUNT)]


def test_weights_live_and_streamed_bytes_of_every_stage(
    models: list[tuple[Pipeline, PipelineProblem]],
) -> None:
    """Of all chains: rules, evaluator and the walk of ``verify``."""
    seen: Counter[str] = Counter()
    for seed, (p, problem) in enumerate(models):
        assert tuple(problem.storage.tolist()) == p.storage
        plans = list(every_chain(problem))
        for plan in Random(seed).sample(plans, min(12, len(plans))):
            stage, cores = plan.stage.tolist(), plan.cores.tolist()
            blocks = [tuple(k for k, s in enumerate(stage) if s == m) for m in range(len(cores))]
            live = [peak(p, block) for block in blocks]
            weights = [sum(p.storage[k] for k in block) for block in blocks]
            moved = [streamed(p, block, c) for block, c in zip(blocks, cores, strict=True)]
            loads, value = stage_loads(problem, plan), value_of(p, stage, cores)
            assert loads.live.tolist() == live_needs(problem, stage, len(cores)) == live, (seed, stage)
            assert memory_needs(problem, stage, len(cores)) == [
                a + b for a, b in zip(weights, live, strict=True)
            ]
            assert loads.storage.tolist() == memory_needs(problem, stage, len(cores))
            assert loads.streamed.tolist() == reevaluated_stream(problem, plan) == moved, (seed, stage, cores)
            assert (plan_complaint(problem, plan) is None) == (value is not None), (seed, stage, cores)
            if value is not None:
                assert objective(problem, plan) == pytest.approx(float(value), rel=1e-12)
            seen["streamed"] += sum(moved) > 0
            seen["live bytes streamed"] += any(m > w for m, w in zip(moved, weights, strict=True))
            seen["too much"] += value is None and not p.offchip
    assert len(seen) == 3 and min(seen.values()) > COUNT / 2, seen


def test_the_optimum_is_that_of_all_chains(models: list[tuple[Pipeline, PipelineProblem]]) -> None:
    """Engine, second proof, and what says that nothing fits."""
    none = moved = 0
    for seed, (p, problem) in enumerate(models):
        best = optimum(p)
        value = math.inf if best is None else float(best)
        none += best is None
        moved += bool(p.offchip) and optimum(replace(p, memory=1e9)) != best
        try:
            require_fit(problem)
        except InputError:
            assert best is None, seed
            assert chain_bound_holds(problem, math.inf), seed
            continue
        assert best is not None, seed
        told = Recorder(problem)
        Chain().run(problem, told)
        assert told.complaints == [] and told.value == pytest.approx(value, rel=1e-12), seed
        assert chain_bound_holds(problem, told.value), seed
        assert not chain_bound_holds(problem, math.nextafter(told.value, math.inf)), seed
    assert none > COUNT / 12 and moved > COUNT / 6, (none, moved)
