"""Small pipeline problems by hand and at random, for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors


def tensors_of(uses: list[tuple[int, list[int]]], time: list[float], volume: list[float]) -> Tensors:
    """Tensors from (maker, users) pairs."""
    indptr = np.cumsum([0, *(len(users) for _, users in uses)]).astype(np.int64)
    targets = np.array([u for _, users in uses for u in users], np.int64)
    source = np.array([s for s, _ in uses], np.int64)
    return Tensors(source, indptr, targets, np.array(time, float), np.array(volume, float))


def four_layers(**changes: Any) -> PipelineProblem:
    """a -> b -> c -> d, and a -> d; 4 cores; c cores are c times as fast."""
    work = np.array([8.0, 4.0, 6.0, 6.0])
    problem = PipelineProblem(
        name="four",
        labels=("a", "b", "c", "d"),
        time=work[:, None] / np.arange(1, 5),
        storage=np.array([10.0, 20.0, 30.0, 40.0]),
        tensors=tensors_of([(0, [1, 3]), (1, [2]), (2, [3])], [1.0, 0.5, 0.25], [100.0, 50.0, 25.0]),
        cores=4,
        stages=4,
        split="chain",
    )
    return replace(problem, **changes)


def random_problem(
    rng: np.random.Generator, layers: int, cores: int, split: str = "contiguous"
) -> PipelineProblem:
    """Layers in topological order with random tensors; whole volumes."""
    uses = []
    for k in range(layers - 1):
        users = [u for u in range(k + 1, layers) if rng.random() < 0.5] or [k + 1]
        uses.append((k, users))
    volume = rng.integers(0, 1000, len(uses)).astype(float)
    work = rng.integers(1, 20, layers).astype(float)
    return PipelineProblem(
        "random", tuple(f"l{k}" for k in range(layers)), work[:, None] / np.arange(1, cores + 1),
        rng.integers(0, 50, layers).astype(float), tensors_of(uses, (volume / 100).tolist(), volume.tolist()), cores, layers,
        split=split,
    )  # fmt: skip


def random_plan(rng: np.random.Generator, problem: PipelineProblem, hosts: bool = False) -> PipelinePlan:
    """Any assignment to stages that are all used."""
    k = int(rng.integers(1, min(problem.count, problem.cores) + 1))
    stage = np.concatenate([np.arange(k), rng.integers(0, k, problem.count - k)])
    cores = rng.integers(0 if hosts else 1, 6, k)
    return PipelinePlan(rng.permutation(stage).astype(np.int64), cores.astype(np.int64))
