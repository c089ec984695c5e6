"""``nmsolve train``: the policy of method M1, and the first multipliers of bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nmsolve.kinds.train import families_of, followed, numbers, trained
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import TrainDualsOptions, TrainM1Options


def run_train_m1(o: TrainM1Options) -> int:
    """Train method M1's policy; returns the exit code.

    Raises
    ------
    InputError : wrong options, nothing to go on from, no torch
    """
    from nmsolve.learn.mapping.train import Settings, train
    from nmsolve.model.mapping.reward_terms import reward_terms

    families = families_of(o.family, "side")
    plain = Settings(families, o.side, o.seed, o.algorithm, mean=o.mean, distance=o.distance)
    return trained(o, replace(plain, terms=reward_terms(o.reward, plain.machine)), train)


def run_train_duals(o: TrainDualsOptions) -> int:
    """Train the first multipliers of a bound; returns the exit code.

    Raises
    ------
    InputError : wrong options, nothing to go on from
    """
    from nmsolve.learn.checkpoint import DUALS
    from nmsolve.learn.duals.train import Settings, train
    from nmsolve.solvers.mapping.bounds.training_graphs import training_graphs

    if o.bound not in DUALS:
        raise InputError(f"unknown bound {o.bound!r}", "--bound", "one of " + ", ".join(DUALS))
    families = families_of(o.family, "nodes")
    nodes = numbers(o.nodes, ",", "--nodes")
    if min(nodes) < 32:
        raise InputError(f"{min(nodes)} nodes", "--nodes", "at least 32 each")
    return followed(
        o, Settings(o.bound, families, nodes, o.seed, o.pool), partial(train, training_graphs=training_graphs)
    )
