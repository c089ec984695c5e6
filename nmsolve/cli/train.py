"""``nmsolve train``: the policies of methods M1 and M5, the placement policy, and the first multipliers of bounds."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.cli.train_options import (
        TrainDualsOptions,
        TrainM1Options,
        TrainM5Options,
        TrainPolicyOptions,
    )

#: Seconds between two lines of progress.
QUIET = 2.0


def run_train_m1(o: TrainM1Options) -> int:
    """Train method M1's policy; returns the exit code.

    Raises
    ------
    InputError : wrong options, nothing to go on from, no torch
    """
    from nmsolve.learn.mapping.reward import terms_of
    from nmsolve.learn.mapping.train import Settings, train

    families = _families(o.family, "side")
    how = Settings(families, o.side, o.seed, o.algorithm, terms_of(o.reward), o.mean, o.distance)
    return _trained(o, how, train)


def run_train_policy(o: TrainPolicyOptions) -> int:
    """Train the placement policy; returns the exit code.

    Raises
    ------
    InputError : wrong options, nothing to go on from, no torch
    """
    from nmsolve.learn.placement.train import Settings, train

    families, sides = _families(o.family, "side"), _numbers(o.sides, ",", "--sides")
    return _trained(o, Settings(families, sides, o.rounds, o.seed, imitation=o.imitation), train)


def run_train_m5(o: TrainM5Options) -> int:
    """Train method M5's policy; returns the exit code.

    Raises
    ------
    InputError : wrong options, nothing to go on from, no torch
    """
    from nmsolve.learn.pipeline.train import Settings, Weights, train
    from nmsolve.learn.progress import weights_of

    cores = _numbers(o.cores, ",", "--cores")
    layers = _numbers(o.layers, "-", "--layers")
    if len(layers) != 2:
        raise InputError(f"layers {o.layers!r}", "--layers", "LEAST-MOST, e.g. 20-120")
    weights = weights_of(o.reward, ["compute", "storage", "routing"])
    return _trained(o, Settings(cores, (layers[0], layers[1]), o.seed, weights=Weights(**weights)), train)


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
    families = _families(o.family, "nodes")
    nodes = _numbers(o.nodes, ",", "--nodes")
    if min(nodes) < 32:
        raise InputError(f"{min(nodes)} nodes", "--nodes", "at least 32 each")
    return _followed(
        o, Settings(o.bound, families, nodes, o.seed, o.pool), partial(train, training_graphs=training_graphs)
    )


def _families(text: str, parameter: str) -> tuple[str, ...]:
    """Return the generators that a text names, all with this ``parameter``; InputError for any other, or none."""
    from nmsolve.model.generators import GENERATORS

    families = tuple(filter(None, (f.strip() for f in text.split(","))))
    known = [kind for kind, made in GENERATORS.items() if any(p.name == parameter for p in made.parameters)]
    for family in families or ("",):
        if family not in known:
            raise InputError(f"unknown family {family!r}", "--family", "one of " + ", ".join(known))
    return families


def _numbers(text: str, between: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(between))
    except ValueError:
        raise InputError(
            f"{option} is {text!r}", option, f"whole numbers with {between!r} between them"
        ) from None


def _trained(
    o: TrainM1Options | TrainM5Options | TrainPolicyOptions, how: Any, train: Callable[..., Any]
) -> int:
    """Train with torch; as :func:`_followed`."""
    from nmsolve.learn.torch_state import require_torch

    require_torch().set_num_threads(
        1
    )  # further threads gain nothing with networks of this size, and cost repeatability
    return _followed(o, how, train)


def _followed(
    o: TrainM1Options | TrainM5Options | TrainPolicyOptions | TrainDualsOptions,
    how: Any,
    train: Callable[..., Any],
) -> int:
    """Train, show progress, and say where the model is."""
    from nmsolve.kinds.answer import OK, prepare_file
    from nmsolve.learn.checkpoint import model_file
    from nmsolve.learn.progress import Training

    files = Training(model_file(o.out))
    prepare_file(files.path)
    trainer = train(how, files=files, seconds=o.seconds, updates=o.updates, resume=o.resume, say=_progress())
    last = trainer.rows[-1] if trainer.rows else {}
    done = {"type": "trained", "model": str(files.path), "hash": trainer.checkpoint().hash, **last}
    print(
        json.dumps(done)
        if o.json
        else f"{files.path}: {trainer.updates} updates, hash {done['hash']}; card {files.card}"
    )
    return OK


def _progress() -> Callable[[Mapping[str, float]], None]:
    """Return what prints a line now and then to standard error."""
    told = [float("-inf")]

    def say(row: Mapping[str, float]) -> None:
        if time.monotonic() - told[0] >= QUIET:
            told[0] = time.monotonic()
            print("  ".join(f"{name} {value:.6g}" for name, value in row.items()), file=sys.stderr)

    return say
