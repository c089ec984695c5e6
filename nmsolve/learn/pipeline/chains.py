"""Random chains of layers: what method M5's policy is trained on, and what it is measured on."""

from __future__ import annotations

import numpy as np

from nmsolve.model.pipeline.problem import PipelineProblem, Tensors


def random_chain(seed: int, cores: int, layers: int) -> PipelineProblem:
    """Return a chain of layers: times over some orders of magnitude, each divisible into equal pieces of work, some
    into a few and most into many. Up to four in five have no MACs and take a fiftieth of the time, as in models of products and
    elementwise layers; of the others time is in proportion to MACs.

    A layer of p pieces takes ``ceil(p / c) / p`` of its time on c cores. Every layer sends a tensor to the next.
    """
    rng = np.random.default_rng(seed)
    alone = rng.lognormal(0.0, 1.5, layers)
    product = rng.random(layers) >= rng.uniform(0.0, 0.8)
    product[int(rng.integers(layers))] = True
    alone *= np.where(product, 1.0, 0.02)
    pieces = np.exp2(rng.integers(int(rng.integers(0, 8)), 13, layers))
    count = np.arange(1, cores + 1)
    times = alone[:, None] * np.ceil(pieces[:, None] / count) / pieces[:, None]
    here = np.arange(layers - 1)
    sent = rng.lognormal(0.0, 1.0, layers - 1) * alone.mean() * 0.02
    tensors = Tensors(here, np.arange(layers), here + 1, sent, np.ones(layers - 1))
    labels = tuple(f"layer {k}" for k in range(layers))
    storage = rng.lognormal(0.0, 1.0, layers)
    return PipelineProblem(
        f"chain-{seed}",
        labels,
        times,
        storage,
        tensors,
        cores,
        stages=cores,
        split="chain",
        macs=alone * product,
    )
