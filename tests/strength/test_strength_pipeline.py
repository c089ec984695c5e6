"""Floors of the engines for pipelines. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from counted import Counted
from strength_cases import at_least, at_most

from nmsolve.heuristics.pipeline.local import GroupsLocal, PipelineLocal
from nmsolve.heuristics.pipeline.orders import Orders
from nmsolve.hw.pipeline.stages import objective
from nmsolve.learn.pipeline.engine import M5Policy
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.goals import Batch, Energy
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline.bounds import CountingBounds
from nmsolve.solvers.pipeline.cover_engine import CoverBound
from nmsolve.solvers.pipeline.partition import Chain, ChainBatch, Downsets
from nmsolve.solvers.pipeline.resplit import Resplit


def network(layers: int, cores: int, largest: int, split: str) -> PipelineProblem:
    """Layers with whole times, larger groups being faster; tensors to one to three layers that come soon after."""
    rng = np.random.default_rng(layers)
    time = np.ceil(rng.integers(5, 60, layers)[:, None] / np.arange(1, largest + 1) ** 0.8)
    source, targets, indptr = [], [], [0]
    for u in range(layers - 1):
        users = np.unique(np.minimum(layers - 1, u + 1 + rng.integers(0, 6, int(rng.integers(1, 4)))))
        source.append(u)
        targets.extend(users.tolist())
        indptr.append(len(targets))
    moved = rng.integers(0, 15, len(source)).astype(np.float64)
    tensors = Tensors(
        np.array(source, np.int64), np.array(indptr, np.int64), np.array(targets, np.int64), moved, np.ones(len(source)),
    )  # fmt: skip
    labels = tuple(f"layer {k}" for k in range(layers))
    return PipelineProblem(
        "network", labels, time.astype(np.float64), np.ones(layers), tensors, cores, stages=cores, split=split
    )


def run(engine: Any, problem: PipelineProblem, **context: Any) -> Counted:
    """The context after a run of an engine that takes the problem."""

    def value(packed: IntArray) -> float:
        plan = PipelinePlan.unpacked(problem, packed)
        assert plan_complaint(problem, plan) is None
        return objective(problem, plan)

    assert engine.refuses(problem) is None, engine.refuses(problem)
    counted = Counted(value, **context)
    engine.run(problem, counted)
    return counted


ANY = network(40, 5, 1, "any")
ORDERED = network(40, 5, 1, "contiguous")
CHAIN = network(60, 24, 6, "chain")


def test_chain() -> None:
    """Fails if all groups have one core."""
    counted = run(Chain(), CHAIN)
    assert counted.value == counted.bound()
    at_most(counted.value, 151)


def test_chain_batch() -> None:
    """Fails without the exact search within a ceiling."""
    alone, sizes = network(40, 100, 100, "chain"), np.arange(1, 101)
    tiles = np.random.default_rng(40).integers(3, 40, 40)[:, None]
    tiled = replace(alone, time=np.ceil(tiles / sizes) * alone.time[:, :1] / tiles, goal=Batch(9))
    counted = run(ChainBatch(), tiled, stops=1000)
    at_most(counted.value, 401.3)
    at_least(counted.bound(), 401.2)


def test_chain_batch_energy() -> None:
    """Fails if the exact search takes any of the plans with the least costs, not the fastest."""
    alone, sizes = network(40, 40, 40, "chain"), np.arange(1, 41)
    rng = np.random.default_rng(3)
    tiles, exchanged = rng.integers(3, 40, 40)[:, None], rng.integers(0, 9, 40)[:, None]
    energy = Energy(np.full(40, 5.0), 0.2 * exchanged * np.minimum(sizes - 1, 3), 1.0, 0.0, 1.0)
    powered = replace(
        alone, time=np.ceil(tiles / sizes) * alone.time[:, :1] / tiles, goal=energy,
        tensors=replace(alone.tensors, volume=alone.tensors.time),
    )  # fmt: skip
    counted = run(ChainBatch(), powered, stops=31)
    at_most(counted.value, 370.85)
    at_least(counted.bound(), 370.83)


def test_counting() -> None:
    """Fails if layers are judged without the company they need."""
    at_least(run(CountingBounds(), network(40, 20, 1, "any")).bound(), 102.9)


def test_work() -> None:
    """Fails without the bound by all work."""
    at_least(run(CountingBounds(), CHAIN).bound(), 86.9)


def test_downsets_bound() -> None:
    """Fails without its bound, or if that is 10 % weaker."""
    at_least(run(Downsets(), ORDERED).bound(), 277)


def test_downsets() -> None:
    """Fails if only one order of the layers is searched."""
    at_most(run(Downsets(), ORDERED).value, 277)


def test_pipeline_local() -> None:
    """Fails if only moves are taken that make nothing worse."""
    at_most(float(np.mean([run(PipelineLocal(), ANY, seed=s, stops=60).value for s in (1, 2, 3)])), 272)


def test_orders() -> None:
    """Fails if there is only the first generation."""
    long = network(80, 8, 1, "contiguous")
    at_most(float(np.mean([run(Orders(), long, seed=s, stops=600).value for s in (1, 2, 3)])), 373)


def test_orders_bred() -> None:
    """Fails if children are random, or the elite does not stay."""
    wide = network(60, 12, 1, "contiguous")
    at_most(float(np.mean([run(Orders(), wide, seed=s, stops=1500).value for s in (1, 2, 3, 4)])), 232.5)


def test_groups_local() -> None:
    """Fails if one action is taken at a time."""
    at_most(float(np.mean([run(GroupsLocal(), CHAIN, seed=s, stops=8).value for s in (1, 2, 3)])), 187)


def test_m5_policy() -> None:
    """Fails if its policy does not choose the actions."""
    alone = np.repeat(network(60, 16, 16, "chain").time[:, :1], 16, axis=1)
    easy = replace(network(60, 16, 16, "chain"), time=np.ceil(alone / np.arange(1, 17)))
    at_most(float(np.mean([run(M5Policy(), easy, seed=s, stops=100).value for s in (1, 2, 3)])), 175)


def test_resplit() -> None:
    """Fails if the slowest stage is not among those divided again."""
    start = run(Chain(), ANY).best
    at_most(run(Resplit(), ANY, start=start, looks=40).value, 271)


def test_cover_groups() -> None:
    """Fails if prices are those of the work."""
    at_least(run(CoverBound(), network(24, 16, 4, "contiguous"), upper=np.inf, stops=6000).bound(), 90.9)
    at_least(run(CoverBound(), network(30, 24, 6, "any"), upper=np.inf, stops=6000).bound(), 68.9)
