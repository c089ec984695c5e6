"""Predicted multipliers: derivatives, training without torch, valid bounds from any prediction, and what they gain."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Called

from nmsolve.learn.checkpoint import load
from nmsolve.learn.duals.features import WIDTH
from nmsolve.learn.duals.model import LEARNED, first_arrays, predict, slopes
from nmsolve.learn.duals.train import Settings, Trainer
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.ascent import SpectralAscent
from nmsolve.solvers.mapping.bounds.guide import UNGUIDED
from nmsolve.solvers.mapping.bounds.learned import lesson_of, lessons, problem_of
from nmsolve.solvers.mapping.bounds.pairs import never
from nmsolve.solvers.mapping.bounds.partition_placement import (
    partition_placement_bounds,
    partition_placement_form,
)
from nmsolve.solvers.mapping.bounds.parts import parts_bounds
from nmsolve.solvers.mapping.bounds.projection import projection_bounds
from nmsolve.solvers.mapping.certificates import check_bound

FINDS = {"projection": projection_bounds, "joint": partition_placement_bounds, "parts": parts_bounds}


def small(method: str, family: str = "mesh-geo") -> Settings:
    """Few small graphs."""
    return Settings(method, (family,), (48,), seed=2, pool=2, batch=2)


def test_derivatives_of_the_network_are_those_of_differences() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((30, WIDTH))
    arrays = first_arrays(features, 1)
    arrays = {name: a + 0.1 * rng.standard_normal(a.shape) for name, a in arrays.items()}
    arrays["bias"][1] = 2.0  # so that the multiplier of the graph is above 0
    by_shift, by_whole = rng.standard_normal(30), 0.7
    passed = predict(arrays, features)
    assert passed.whole > 0 and abs(passed.shift.mean()) < 1e-12
    found = slopes(arrays, passed, by_shift, by_whole)

    def worth(name: str, change: FloatArray) -> float:
        there = predict(arrays | {name: arrays[name] + change}, features)
        return float(by_shift @ there.shift) + by_whole * there.whole

    for name in LEARNED:
        way = rng.standard_normal(arrays[name].shape)
        step = (worth(name, 1e-5 * way) - worth(name, -1e-5 * way)) / 2e-5
        assert step == pytest.approx(float((found[name] * way).sum()), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("method", ["projection", "joint", "parts"])
def test_supergradients_of_lessons_bound_the_value_from_above(method: str) -> None:
    lesson = lesson_of(method, problem_of(small(method), 0, 5))
    rng = np.random.default_rng(3)
    n = len(lesson.features)
    point = 0.3 * lesson.unit * rng.standard_normal(n)
    value, slope, by_whole = lesson.evaluate(point, 0.1)
    for size in (1e-3, 0.1, 1.0):
        step = size * lesson.unit * rng.standard_normal(n)
        there = lesson.evaluate(point + step, 0.1 + size)[0]
        limit = value + float(slope @ step) + size * by_whole
        assert there <= limit + 1e-9 * (abs(value) + abs(limit))


@pytest.mark.parametrize("method", ["projection", "joint", "parts"])
def test_training_raises_the_bound_on_graphs_that_it_never_saw(method: str) -> None:
    how = Settings(method, ("mesh-layered",), (48,), seed=0, pool=6, batch=3, rate=0.01)
    trainer = Trainer(how, lessons(how))
    for _ in range(40):
        trainer.update()
    gains = []
    for seed in range(4):
        lesson = lesson_of(method, problem_of(how, 0, seed))
        passed = predict(trainer.arrays, lesson.features)
        value = lesson.evaluate(lesson.unit * passed.shift, lesson.unit * passed.whole)[0]
        gains.append((value - lesson.evaluate(np.zeros(len(passed.shift)), 0.0)[0]) / lesson.worth)
    assert min(gains) > 0.01, gains


@pytest.mark.parametrize("method", ["projection", "joint", "parts"])
@pytest.mark.parametrize("amount", [0.3, 1e9, np.nan])
def test_any_prediction_leaves_bounds_that_hold_and_costs_little(method: str, amount: float) -> None:
    problem = problem_of(small(method), 0, 7)
    rng = np.random.default_rng(0)
    guide = UNGUIDED._replace(duals=lambda _m, _t, slope, _l: (amount * rng.standard_normal(len(slope)), 0.1))
    plain = max(b.value for b in FINDS[method](problem, rounds=24))
    found = list(FINDS[method](problem, guide, rounds=30))
    for bound in found:
        assert check_bound(problem, bound).ok
    assert max(b.value for b in found) >= 0.98 * plain


def test_perfect_multipliers_are_worth_a_whole_ascent_in_three_steps() -> None:
    spectral = partition_placement_form(problem_of(small("joint", "mesh-layered"), 0, 4))
    cold = SpectralAscent(spectral, 0)
    for _ in range(60):
        cold.advance(np.inf, never)
    warm = SpectralAscent(spectral, 0, lambda *_: (cold.best_shift, cold.best_rho))
    for _ in range(2):
        warm.advance(np.inf, never)
    assert warm.best >= cold.best * (1 - 1e-9)


def test_train_duals_needs_no_torch_and_goes_on_as_if_never_stopped(call: Called, tmp_path: Path) -> None:
    def train(name: str, *more: str) -> dict[str, object]:
        code, output, errors = call(
            "train", "duals", "--bound", "joint", "--nodes", "48", "--pool", "4", "--seed", "3", "--json",
            "--out", str(tmp_path / name), *more,
        )  # fmt: skip
        assert code == 0, errors
        return json.loads(output)

    train("a", "--updates", "2")
    train("a", "--updates", "4", "--resume")
    whole = train("b", "--updates", "4")
    one, two = (load(tmp_path / f"{name}.safetensors", "duals-joint") for name in "ab")
    assert one.hash == two.hash == whole["hash"]
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--bound", "star"), "unknown bound"),
        (("--family", "trees"), "unknown family"),
        (("--nodes", "8"), "at least 32"),
        (("--nodes", "few"), "whole numbers"),
    ],
)
def test_wrong_options_are_one_line(arguments: tuple[str, ...], words: str, call: Called) -> None:
    code, _, errors = call("train", "duals", *arguments)
    assert code == 2 and words in errors
