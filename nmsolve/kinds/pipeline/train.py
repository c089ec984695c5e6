"""``nmsolve train m5``: the policy of method M5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.kinds.train import numbers, trained
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.options import TrainM5Options


def run_train_m5(o: TrainM5Options) -> int:
    """Train method M5's policy; returns the exit code.

    Raises
    ------
    InputError : wrong options, nothing to go on from, no torch
    """
    from nmsolve.learn.pipeline.train import Settings, train
    from nmsolve.model.pipeline.reward import reward_of

    cores = numbers(o.cores, ",", "--cores")
    layers = numbers(o.layers, "-", "--layers")
    if len(layers) != 2:
        raise InputError(f"layers {o.layers!r}", "--layers", "LEAST-MOST, e.g. 20-120")
    return trained(o, Settings(cores, (layers[0], layers[1]), o.seed, weights=reward_of(o.reward)), train)
