"""Predicted multipliers: derivatives, training without torch, valid bounds from any prediction, and what they gain."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from scipy.sparse import csr_array

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.kinds.mapping.learned import duals as bench
from nmsolve.kinds.mapping.learned.suite import Suite
from nmsolve.learn.checkpoint import DUALS, FOLDER, Checkpoint, load, model_path, save
from nmsolve.learn.duals.features import HEAVIEST, WIDTH, node_features
from nmsolve.learn.duals.model import LEARNED, first_arrays, predict, slopes
from nmsolve.learn.duals.train import Settings, Trainer
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.bounds import engines
from nmsolve.solvers.mapping.bounds.ascent import SpectralAscent
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED
from nmsolve.solvers.mapping.bounds.core_traffic import core_traffic_bounds
from nmsolve.solvers.mapping.bounds.learned import duals_model, predictor
from nmsolve.solvers.mapping.bounds.pairs import never
from nmsolve.solvers.mapping.bounds.partition_placement import (
    partition_placement_bounds,
    partition_placement_form,
)
from nmsolve.solvers.mapping.bounds.parts import parts_bounds
from nmsolve.solvers.mapping.bounds.training_graphs import (
    problem_of,
    several,
    training_graph_of,
    training_graphs,
)

FINDS = {
    "joint": partition_placement_bounds, "parts": parts_bounds, "cover": core_traffic_bounds,
}  # fmt: skip


def small(method: str, family: str = "mesh-geo") -> Settings:
    """Few small graphs."""
    return Settings(method, (family,), (48,), seed=2, pool=2, batch=2)


def test_what_is_seen_around_a_node_is_what_matrices_say() -> None:
    """Shares of heaviest partners and the return of walks of three steps, against sorted rows and powers of a matrix."""
    rng = np.random.default_rng(2)
    upper = np.triu(rng.random((40, 40)) * (rng.random((40, 40)) < 0.2), 1)
    upper[:, 7] = upper[7] = 0.0  # a node without partners
    dense = upper + upper.T
    load = dense.sum(axis=1)
    walk = dense / np.where(load > 0, load, 1.0)[:, None]
    features = node_features(csr_array(dense), rng.standard_normal(40), 5)
    heaviest = np.cumsum(-np.sort(-walk, axis=1), axis=1)[:, [most - 1 for most in HEAVIEST]]
    np.testing.assert_allclose(features[:, 8:11], heaviest, atol=1e-12)
    np.testing.assert_allclose(features[:, 11], np.sqrt(np.diag(walk @ walk @ walk)), atol=1e-12)


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


@pytest.mark.parametrize("method", ["joint", "parts"])
def test_supergradients_of_training_graphs_bound_the_value_from_above(method: str) -> None:
    training_graph = training_graph_of(method, problem_of(small(method), 0, 5))
    rng = np.random.default_rng(3)
    n = len(training_graph.features)
    point = 0.3 * training_graph.unit * rng.standard_normal(n)
    value, slope, by_whole = training_graph.evaluate(point, 0.1)
    for size in (1e-3, 0.1, 1.0):
        step = size * training_graph.unit * rng.standard_normal(n)
        there = training_graph.evaluate(point + step, 0.1 + size)[0]
        limit = value + float(slope @ step) + size * by_whole
        assert there <= limit + 1e-9 * (abs(value) + abs(limit))


@pytest.mark.parametrize("method", ["joint", "parts"])
def test_training_raises_the_bound_on_graphs_that_it_never_saw(method: str) -> None:
    how = Settings(method, ("mesh-layered",), (48,), seed=0, pool=6, batch=3, rate=0.01)
    trainer = Trainer(how, training_graphs(how))
    for _ in range(40):
        trainer.update()
    gains = []
    for seed in range(4):
        training_graph = training_graph_of(method, problem_of(how, 0, seed))
        passed = predict(trainer.arrays, training_graph.features)
        value = training_graph.evaluate(
            training_graph.unit * passed.shift, training_graph.unit * passed.whole
        )[0]
        gains.append(
            (value - training_graph.evaluate(np.zeros(len(passed.shift)), 0.0)[0]) / training_graph.worth
        )
    assert min(gains) > 0.01, gains


@pytest.mark.parametrize("method", FINDS)
@pytest.mark.parametrize(
    "forged", ["random", "huge", "nan", "infinite", "short", "square", "negative", "nothing"]
)
def test_bad_predictions_cost_one_step_and_bounds_hold(method: str, forged: str) -> None:
    # few parts on a mesh are bounded without predictions
    problem = several("mesh-geo", 32, 7, {"cover": 3, "parts": 4}.get(method, 8))
    rng = np.random.default_rng(0)
    asked = []

    def duals(traffic: object, hint: FloatArray, lines: int) -> tuple[FloatArray, float] | None:
        asked.append(lines)
        n = len(hint)
        shift = 30 * rng.standard_normal(n)
        wrong = {
            "random": (shift, 0.1), "huge": (1e300 * shift, 0.0), "nan": (np.full(n, np.nan), 0.0),
            "infinite": (np.where(np.arange(n) == 3, np.inf, shift), 0.0), "short": (shift[1:], 0.0),
            "square": (np.tile(shift, (n, 1)), 0.0), "negative": (shift, -5.0), "nothing": None,
        }  # fmt: skip
        return wrong[forged]

    plain = list(FINDS[method](problem, rounds=9))
    found = list(FINDS[method](problem, UNLIMITED._replace(duals=duals), rounds=10))
    assert len(asked) == 1 and plain
    assert max(b.value for b in found) >= max(b.value for b in plain)
    assert all(check_bound(problem, bound).ok for bound in found)


@pytest.mark.parametrize("method", DUALS)
def test_models_of_the_package_help_on_graphs_that_they_were_not_trained_on(method: str) -> None:
    duals = predictor(duals_model(method))
    gains = []
    for family in ("mesh-geo", "mesh-comm", "mesh-layered"):
        problem = several(family, 64, 150, {"cover": 3}.get(method, 8))
        usual, learned = (
            list(FINDS[method](problem, UNLIMITED._replace(duals=start), rounds=4)) for start in (None, duals)
        )
        assert all(check_bound(problem, bound).ok for bound in learned[-1:])
        gains.append(max(b.value for b in learned) / max([b.value for b in usual] or [1e-9]) - 1)
    assert np.mean(gains) > 0.03, gains


def _spoiled(kind: str, path: Path) -> str:
    """Write a model that cannot be used to a file, and return a word of the line that says so."""
    model = duals_model("joint")
    if kind == "damaged":
        path.write_bytes(model_path("duals-joint").read_bytes()[:-40])
        return "damaged"
    if kind == "foreign":
        save(path, Checkpoint("duals-parts", model.arrays, model.facts))
        return "something else"
    if kind == "shapes":
        arrays = dict(model.arrays) | {"bias": np.zeros(3)}
        save(path, Checkpoint("duals-joint", arrays, model.facts))
        return "shape (3,)"
    save(path, Checkpoint("duals-joint", dict(model.arrays) | {"bias": np.array([np.nan, 0])}, model.facts))
    return "finite"


@pytest.mark.parametrize("kind", ["damaged", "foreign", "shapes", "numbers"])
def test_a_model_that_cannot_be_used_is_one_line_and_the_usual_start(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = _spoiled(kind, tmp_path / "duals-joint.safetensors")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    problem = several("mesh-layered", 32, 7, 8)
    result = solve(problem, time_limit=5, engines=["joint"])
    notes = [e.text for e in result.events if e.kind == "note" and e.engine == "joint"]
    assert len(notes) == 1 and word in notes[0] and "\n" not in notes[0]
    monkeypatch.setattr(engines, "guided", lambda context, method, note: context)
    usual = solve(problem, time_limit=5, engines=["joint"])
    assert result.bounds and result.bounds[0].value == usual.bounds[0].value


def test_runs_with_predictions_are_repeatable() -> None:
    problem = several("mesh-comm", 48, 7, 8)
    one, two = (
        [b.value for b in partition_placement_bounds(problem, UNLIMITED._replace(duals=duals), rounds=12)]
        for duals in (predictor(duals_model("joint")), predictor(duals_model("joint")))
    )
    assert one == two and one


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
    train("a", "--updates", "2", "--resume")
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


def test_the_comparison_counts_steps_and_ranks_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that ticks once per step: final multipliers close the whole way, predicted ones more than shuffled ones."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(bench, "process_time", lambda: float(next(ticks)))
    monkeypatch.setattr(bench, "DUALS", ("joint",))
    monkeypatch.setattr(bench, "SIZES", (64,))
    rows = list(bench.compare(Suite(("layered",), 1, 2, 1e9)))
    gain = {(r.rival, r.seed): r.gain for r in rows}
    assert min(gain["learned", 1], gain["perfect", 1]) > 0.03 > max(gain["random", 1], gain["random", 2])
    assert gain["untrained", 1] <= 0.0
    assert gain["learned: beyond 90 % of B", 1] == pytest.approx(
        gain["usual: beyond 90 % of B", 1] + gain["learned", 1]
    )
    assert 0.5 < gain["learned: of the way from there to B", 1] <= 1.0
    assert all(0 < gain[f"learned: time to {level} % of B", 1] < 1 for level in (95, 99))
