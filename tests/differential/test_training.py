"""Training of small models, from the file to the proof, against docs/pipeline.md (*Training*) word by word.

Models are those of ``test_live.py``. The reference here knows operators, what they read and make, and forward times of layers,
which are the package's own. ``NMSOLVE_TRAINED=1000 pytest tests/differential/test_training.py`` tries more models.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from pipelines_support import every_chain
from stages_reference import Pipeline, peak
from test_live import Operator, buffers, drawn, leaving, written

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.check.pipeline.walk import walked_value
from nmsolve.heuristics.pipeline.batch import fastest_batch
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.pipeline.stages import objective
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.hw.pipeline.training import Step
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.batch import bound_of

COUNT = int(os.environ.get("NMSOLVE_TRAINED", "40"))


@dataclass(frozen=True)
class Trained:
    """A model and a step of training, in plain data.

    ``forward`` (layers, cores) times; ``passes`` gradients that are products, or 1; ``pieces`` of memory: bytes, layer that makes
    it (None: an input), layers that read it or call it by another shape, layers whose backward pass needs it.
    """

    operators: list[Operator]
    forward: list[list[float]]
    passes: list[int]
    pieces: list[tuple[int, int | None, set[int], set[int]]]
    live: Pipeline
    step: Step
    memory: int
    overlap: bool
    moves: list[tuple[int, tuple[int, ...], float]]


def needed(operators: list[Operator]) -> tuple[list[int], dict[int, set[int]]]:
    """Gradients of every layer, and by tensor the layers whose backward pass needs it."""
    depends, passes, needing = {0: False}, [], dict[int, set[int]]()
    for k, o in enumerate(operators):
        behind = [depends[t] for t in o.reads]
        depends[k + 1] = o.kind == "MatMul" or any(behind)
        passes.append(1 + behind[0] if o.kind == "MatMul" else int(depends[k + 1]))
        if o.kind == "MatMul":  # for the gradient of the weights
            needing.setdefault(o.reads[0], set()).add(k)
        if o.kind == "Relu" and depends[k + 1]:  # where it is above 0
            needing.setdefault(k + 1, set()).add(k)
    return passes, needing


def load_of(t: Trained, blocks: list[list[int]], s: int, cores: int) -> float | None:
    """The load of stage s on this many cores; None: it does not fit."""
    own, flights = set(blocks[s]), t.step.batches
    if t.step.schedule == "1f1b":
        flights = min(flights, len(blocks) - s)
    weights = sum(t.operators[k].weights for k in own) * t.step.copies
    kept = sum(size for size, _, _, needing in t.pieces if own & needing)
    entering = sum(size for size, maker, at, _ in t.pieces if own & (at | {maker}) and maker not in own)
    base = weights + peak(t.live, tuple(blocks[s]))
    compute = sum((1 + t.passes[k]) * t.forward[k][cores - 1] for k in own)
    if base + flights * kept > cores * t.memory:
        if not t.step.recompute or base + kept + flights * entering > cores * t.memory:
            return None
        compute += sum(t.forward[k][cores - 1] for k in own)
    moved = 0.0
    for source, users, time in t.moves:
        crosses = source in own and any(u not in own for u in users)
        moved += 2 * time if crosses or (source not in own and any(u in own for u in users)) else 0.0
    return max(compute, moved) if t.overlap else compute + moved


def both(seed: int, folder: Path) -> tuple[Trained, PipelineProblem] | None:
    """The model as the reference has it, and as the package reads it; None: it has no weights."""
    operators, rng = drawn(seed), Random(f"training {seed}")
    first = operators[0]
    rows = first.rows if first.kind != "Concat" else first.rows // 2
    leave = leaving(operators, rng)
    passes, needing = needed(operators)
    if not any(passes):
        return None
    layers = layers_of(load_onnx(written(operators, rows, leave, folder / "trained.onnx")))
    step = Step(
        rng.choice(("1f1b", "gpipe")), rng.randint(1, 4), rng.random() < 0.6, rng.choice((1.0, 2.0, 4.0))
    )
    cores, memory = rng.randint(1, 4), rng.randint(150, 2500)
    figures, overlap = replace(ASSUMED, tile_channels=4, tile_rows=1), rng.random() < 0.3
    how = {"memory": memory, "overlap": overlap, "offchip": 0.0}
    plain = pipeline_problem(layers, figures, cores, **how)  # type: ignore[arg-type]
    problem = pipeline_problem(layers, figures, cores, step=step, **how)  # type: ignore[arg-type]
    pieces = []
    for size, shapes in buffers(operators, rows, leave):
        makers = [shape.maker for shape in shapes]
        tensors = {0 if maker is None else maker + 1 for maker in makers}
        at = {k for shape in shapes for k in shape.readers} | {m for m in makers if m is not None}
        pieces.append((size, makers[0], at, set().union(*(needing.get(x, set()) for x in tensors))))
    tensors_ = plain.tensors
    ends = [
        tuple(tensors_.targets[tensors_.indptr[k] : tensors_.indptr[k + 1]].tolist())
        for k in range(tensors_.count)
    ]
    live = Pipeline(
        time=tuple(map(tuple, plain.time.tolist())), storage=tuple(float(o.weights) for o in operators), tensors=(),
        cores=cores, stages=len(operators), split="chain", buffers=buffers(operators, rows, leave),
    )  # fmt: skip
    moves = list(zip(tensors_.source.tolist(), ends, tensors_.time.tolist(), strict=True))
    return Trained(
        operators, plain.time.tolist(), passes, pieces, live, step, memory, overlap, moves
    ), problem


def test_plans_loads_optima_and_proofs(tmp_path: Path) -> None:
    """Every chain of every model: what is allowed, what it takes; then the best by period and by step, and their proofs."""
    seen: Counter[str] = Counter()
    for seed in range(COUNT):
        pair = both(seed, tmp_path)
        if pair is None:
            continue
        t, problem = pair
        step = replace(problem, rounds=t.step.batches)
        periods, steps = [math.inf], [math.inf]
        for plan in every_chain(problem):
            cores, count = plan.cores.tolist(), len(plan.cores)
            blocks = [np.flatnonzero(plan.stage == s).tolist() for s in range(count)]
            loads = [load_of(t, blocks, s, c) for s, c in enumerate(cores)]
            fits = sum(cores) <= problem.cores and None not in loads
            assert (plan_complaint(problem, plan) is None) == fits, (seed, plan)
            if fits:
                known = [x for x in loads if x is not None]
                total = sum(known) + (t.step.batches - 1) * max(known)
                assert objective(problem, plan) == pytest.approx(max(known), rel=1e-12)
                assert objective(step, plan) == pytest.approx(total, rel=1e-12)
                assert walked_value(step, plan) == pytest.approx(total, rel=1e-12)
                periods.append(max(known))
                steps.append(total)
        _, period = ChainPartition(problem).in_order(np.arange(problem.count))
        *_, found = fastest_batch(step, lambda: 1.0)
        assert period == pytest.approx(min(periods), rel=1e-12) and chain_bound_holds(problem, period)
        bound = bound_of(step, found)
        assert bound.value == pytest.approx(min(steps), rel=1e-8) and check_plan_bound(step, bound).ok
        seen["impossible"] += math.isinf(period)
        seen["several stages"] += isinstance(found.plan, PipelinePlan) and len(found.plan.cores) > 1
        seen["possible"] += math.isfinite(period)
    assert min(seen.values()) >= 1 and len(seen) == 3
