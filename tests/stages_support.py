"""Random small pipelines, and a :class:`stages_reference.Pipeline` as the package states it."""

from __future__ import annotations

import math
from random import Random

import numpy as np
from stages_reference import Pipeline

from nmsolve.model.pipeline.problem import PipelineProblem, Tensors


def contiguous(seed: int, largest: int = 7) -> Pipeline:
    """Two to ``largest`` layers with everything that a contiguous plan must keep; every rule is on in some and off in others.

    Numbers are tenths between 1 and 9 of one unit, or 0: sums of so few keep every digit in the package's ticks.
    """
    rng = Random(f"contiguous {seed}")
    count, groups, unit = rng.randint(2, largest), rng.randint(1, 3), rng.choice((1.0, 1.0, 1e-9, 1e9 / 3))

    def number(share: float = 0.2) -> float:
        return 0.0 if rng.random() < share else rng.randint(10, 90) / 10 * unit

    hosts = rng.choice((0, 0, 1, 2))
    cores = rng.randint(1, 4)
    stages = rng.randint(1, min(count, cores + hosts))
    storage = tuple(0.0 if rng.random() < 0.1 else rng.randint(10, 40) / 10 for _ in range(count))
    memory = rng.choice((None, _just_enough(rng, storage, stages, groups), 60.0))
    classes = tuple(rng.choice((-1, -1, -1, 0, 1)) for _ in range(count)) if rng.random() < 0.4 else ()
    tensors = []
    for maker in range(count - 1):
        readers = [k for k in range(maker + 1, count) if rng.random() < 1.5 / count]
        if readers:
            tensors.append((maker, tuple(readers), rng.choice((0.0, rng.randint(10, 25) / 10 * unit))))
    return Pipeline(
        time=tuple(tuple(sorted((number(0.1) for _ in range(groups)), reverse=True)) for _ in range(count)),
        storage=storage, tensors=tuple(tensors), cores=cores, stages=stages, exact=rng.random() < 0.3,
        use_all=rng.random() < 0.3, memory=memory, overlap=rng.random() < 0.3,
        host=tuple(rng.choice((number(0.0), math.inf)) for _ in range(count)) if hosts else (), hosts=hosts,
        classes=classes,
    )  # fmt: skip


def _just_enough(rng: Random, storage: tuple[float, ...], stages: int, groups: int) -> float:
    """What cores of some plan need: sums of decimals that fit to the last digit, or miss it."""
    held: dict[int, list[float]] = {}
    for k, one in enumerate(storage):
        held.setdefault(
            k * stages // len(storage) if rng.random() < 0.8 else rng.randrange(stages), []
        ).append(one)
    return max(math.fsum(own) / rng.randint(1, groups) for own in held.values())


def problem_of(p: Pipeline, name: str = "small") -> PipelineProblem:
    """The same in the package's terms; without buffers."""
    readers = [r for _, r, _ in p.tensors]
    return PipelineProblem(
        name, tuple(f"layer {k}" for k in range(p.count)), np.array(p.time), np.array(p.storage),
        Tensors(
            np.array([m for m, _, _ in p.tensors], np.int64), np.cumsum([0, *map(len, readers)]).astype(np.int64),
            np.array([k for r in readers for k in r], np.int64), np.array([t for *_, t in p.tensors], np.float64),
            np.zeros(len(readers)),
        ),
        p.cores, p.stages, exact_stages=p.exact, use_all=p.use_all, memory=p.memory, overlap=p.overlap, split=p.split,
        host_time=np.array(p.host) if p.host else None, hosts=p.hosts,
        together=np.array(p.classes, np.int64) if p.classes else None,
    )  # fmt: skip
