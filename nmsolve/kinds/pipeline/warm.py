"""Compile the kernels of pipelines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.check.pipeline.sweep import Question, no_block, states_of
from nmsolve.heuristics.pipeline.batch import BatchSearch, Descent
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.chain_loads import ANY_LOAD
from nmsolve.heuristics.pipeline.floorplan import floorplan
from nmsolve.hw.pipeline.batches import batch_time
from nmsolve.hw.pipeline.exchange import best_splits
from nmsolve.model.machine import Machine
from nmsolve.model.operators.layers import Layers
from nmsolve.model.pipeline.buffers import buffers_from
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.goals import SLOWEST, Batch, Energy
from nmsolve.model.pipeline.groups import Groups, OffChip
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.types import FloatArray
from nmsolve.solvers.pipeline.api import plan
from nmsolve.solvers.pipeline.blocks import cover_of, needed
from nmsolve.solvers.pipeline.cover_engine import NODES
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.pricing import Pricing
from nmsolve.solvers.pipeline.registry import REGISTRY
from nmsolve.solvers.pipeline.sweep import sweep_of
from nmsolve.solvers.pipeline.sweeping import ROOMS

#: Seconds for one engine on one problem.
SECONDS = 0.15
LAYERS = 12
#: Engines of native solvers, which compile nothing.
NATIVE = ("pipeline-cpsat", "pipeline-mip")


def warm_pipeline(until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Plan small pipelines of every kind with every engine; returns what was done."""
    work: dict[str, Callable[[], object]] = {
        f"{name}, {label}": partial(_run, name, problem)
        for name, entry in REGISTRY.items()
        for label, problem in _problems().items()
        if name not in NATIVE and entry.make().refuses(problem) is None
    }
    work["splits of layers"] = partial(best_splits, _layers(), replace(ASSUMED, sync=0.0), 4)
    cores = np.full(2, 3)
    work["re-check of blocks"] = _recheck
    work["sums within a ceiling"] = _sums
    work["micro-batches"] = _batch
    work["blocks at prices"] = _priced
    work["floorplan"] = partial(floorplan, Machine("warm", (1, 1), (3, 3)), cores, np.ones((2, 2)))
    for run in work.values():
        until_compiled(run)
    return list(work)


def _run(name: str, problem: PipelineProblem) -> None:
    """Run one engine on one problem, its bounds recomputed."""
    for bound in plan(problem, time_limit=SECONDS, engines=[name]).bounds:
        check_plan_bound(problem, bound)


def _batch() -> None:
    """Lay out micro-batches over stages with replicas."""
    problem, two = _problems()["chain, replicas"], np.array([0] * 6 + [1] * 6)
    batch_time(problem, PipelinePlan(two, np.array([1, 2])), np.ones(2), 3, np.array([1, 2]))


def _sums() -> None:
    """Find the plan of the least sum while none is known, as searches do that a poor plan begins."""
    for problem in _problems().values():
        if problem.goal.adds_up:
            partition = ChainPartition(replace(problem, goal=SLOWEST))
            BatchSearch(problem, partition, Descent()).exact(ANY_LOAD, 0.0)


def _priced() -> None:
    """Ask for blocks at prices, as ``cover`` does, in a child process and as far as its time goes."""
    for label in ("contiguous", "contiguous, groups", "any, hosts"):
        cover = cover_of(pipeline_data(_problems()[label]))
        sweep = sweep_of(cover.data, cover.cost, NODES)
        if sweep is None:
            continue
        price, pricing = np.full(cover.data.count, 1000), Pricing(cover, sweep, lambda: False)
        for ceiling in (int(cover.time.max()), int(cover.time[:, 0].sum()) // 3):
            pricing.better(price, needed(cover, price, ceiling), ceiling, ROOMS[0])


def _recheck() -> None:
    """Look for blocks of two parts that are too large for any group, by bounds and by partial blocks."""
    states = states_of(3, [([0, 1], 1), ([1, 2], 1)], [], [0, 1, 2])
    price = np.full(3, 4)
    if states is not None:
        for least in (5, 7):
            no_block(states, Question(price, np.full((3, 1), 4), 0, np.array([7]), least), np.inf)


def _layers() -> Layers:
    """Return a product and a sum, for the splits of layers."""
    two = np.array([2, 2])
    tensors = Tensors(np.zeros(1, np.int64), np.arange(2), np.ones(1, np.int64), np.ones(1), np.ones(1))
    return Layers(
        "warm", ("a", "b"), ("Gemm", "Add"), np.arange(2), np.array([8, 0]), two, two, two, two, tensors
    )


def _problems() -> dict[str, PipelineProblem]:
    """Return groups of cores and single cores, with and without hosts, memory and layers that belong together."""
    single, group = _problem(1), replace(_problem(4), cores=6)
    rich = replace(
        single, memory=8.0, hosts=1, host_time=np.full(LAYERS, 20.0), together=np.arange(LAYERS) // 2
    )
    one = np.ones(1)
    loose = replace(
        single, tensors=Tensors(np.zeros(1, np.int64), np.arange(2), np.ones(1, np.int64), one, one)
    )
    buffers = buffers_from([(1, {k: True, k + 1: False}) for k in range(LAYERS)])
    live = replace(group, split="chain", memory=12.0, buffers=buffers)
    streams = replace(live, memory=4.0, offchip=OffChip(1.0))
    energy = Energy(np.ones(LAYERS), np.ones(group.time.shape), 1.0, 1.0, 1.0)
    return {
        "chain": replace(group, split="chain"),
        "chain, borders": replace(group, split="chain", groups=Groups(border=True)),
        "chain, replicas": replace(group, split="chain", groups=Groups(3)),
        "chain, replicas off chip": replace(streams, groups=Groups(3)),
        "chain, a batch": replace(group, split="chain", goal=Batch(3)),
        "chain, energy": replace(group, split="chain", goal=energy),
        "chain, energy off chip": replace(streams, goal=energy),
        "chain, live ranges": live,
        "chain, off chip": streams,
        "chain of three": replace(group, split="chain", exact_stages=True),
        "contiguous": single,
        "contiguous, groups": group,
        "contiguous, thousands of orders": loose,
        "contiguous, hosts": rich,
        "any": replace(single, split="any"),
        "any, hosts": replace(rich, split="any"),
    }


def _problem(largest_group: int) -> PipelineProblem:
    """Twelve layers, each with a tensor for the next one and one for the layer after that."""
    rng = np.random.default_rng(1)
    work = rng.integers(4, 20, LAYERS)
    time: FloatArray = np.ceil(work[:, None] / np.arange(1, largest_group + 1))
    source = np.concatenate([np.arange(LAYERS - 1), np.arange(LAYERS - 2)])
    target = np.concatenate([np.arange(1, LAYERS), np.arange(2, LAYERS)])
    ones = np.ones(len(source))
    tensors = Tensors(source, np.arange(len(source) + 1), target, ones, ones)
    names = tuple(f"layer {i}" for i in range(LAYERS))
    return PipelineProblem("warm", names, time, np.ones(LAYERS), tensors, cores=3, stages=3)
