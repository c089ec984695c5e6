"""The fit of ``bench/pipeline_calibrate.py`` finds the figures that times were made with, and its machine file is accepted."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pipeline_calibrate
import pytest
from pipeline_calibrate import compared, error_of, fit, main, times_of

from nmsolve.hw.machines import load_machine
from nmsolve.model.operators.layers import Layers
from nmsolve.model.pipeline.figures import ASSUMED, CoreFigures, machine_figures
from nmsolve.model.pipeline.problem import Tensors
from nmsolve.model.types import FloatArray

TRUE = replace(ASSUMED, mac_rate=3e10, element_rate=2e9, bandwidth=5e9, sync=2000.0, assumed=False)


def chain(seed: int, count: int = 40) -> Layers:
    """Products and sums in turn, each with a result of 64 channels that the next one reads."""
    rng = np.random.default_rng(seed)
    numbers, products = np.arange(count), np.arange(count) % 2 == 0
    rows = rng.integers(4, 64, count) * 16
    return Layers(
        name="chain",
        names=tuple(f"l{k}" for k in range(count)),
        kinds=tuple("MatMul" if product else "Relu" for product in products),
        operators=numbers,
        macs=np.where(products, rows * 64 * 64 * rng.integers(1, 9, count), 0),
        elements=np.where(products, 0, rows * 64),
        weight_bytes=np.where(products, 4 * 64 * 64, 0),
        channels=np.full(count, 64),
        rows=rows,
        tensors=Tensors(numbers[:-1], numbers, numbers[1:], np.zeros(count - 1), 256.0 * rows[:-1]),
    )


def measured(layers: Layers) -> FloatArray:
    """(2, L) us of the true figures; on one thread of a core alone."""
    return np.stack([times_of(layers, replace(TRUE, sync=None))[0], times_of(layers, TRUE)[1]])


def test_a_fit_finds_the_figures_that_times_were_made_with() -> None:
    """Half of the layers are enough, and the times of the others are right."""
    layers = chain(1)
    half = np.arange(layers.count) % 4 < 2
    found = fit([(layers, measured(layers), half)], TRUE.bandwidth)
    for name in ("mac_rate", "element_rate", "sync"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=0.02), name
    assert found.bandwidth == TRUE.bandwidth and not found.assumed
    error = error_of(times_of(layers, found)[:, ~half].ravel(), times_of(layers, TRUE)[:, ~half].ravel())
    assert error.high < 1.02 and error.rank > 0.99


def test_few_wrong_times_do_not_spoil_a_fit() -> None:
    """The error is no square: a layer that takes a hundred times as long is left wrong."""
    layers = chain(2)
    times = measured(layers)
    times[:, 1] *= 100
    found = fit([(layers, times, np.ones(layers.count, bool))], TRUE.bandwidth)
    assert found.mac_rate == pytest.approx(TRUE.mac_rate, rel=0.05)


def test_errors_are_factors_in_both_directions() -> None:
    error = error_of(np.array([1.0, 3.0, 30.0]), np.array([2.0, 3.0, 10.0]))
    assert (error.count, error.median, error.rank) == (3, 2.0, 1.0)
    assert error.total == pytest.approx(34 / 15) and 2 < error.high <= 3


def test_groups_are_compared_by_the_sums_of_their_layers() -> None:
    """Times that the figures give are off by 1 in every row, and only tensors of the groups asked for count."""
    layers = chain(3)
    times = times_of(layers, TRUE)
    group = np.arange(layers.count) // 10
    groups = np.stack([np.bincount(group, row) for row in times])
    tensors = np.array([[0, 5e9, 1e6], [1, 5e9, 3e6]])
    sample = pipeline_calibrate.Sample(layers, times, group, groups, tensors)
    rows = dict(compared(sample, TRUE, np.ones(layers.count, bool), np.arange(4) == 0))
    assert [rows[f"{what} | {t}"].high for what in ("layers", "groups") for t in (1, 2)] == [1, 1, 1, 1]
    assert (rows["tensors |"].count, rows["tensors |"].high) == (1, 1)


def test_the_machine_that_is_written_is_one(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """A small network is measured, and ``pipeline`` takes the file."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("sympy")
    from test_cli_pipeline import network

    model, host = network(tmp_path / "chain.onnx", layers=20), tmp_path / "host.toml"
    words = ["x", str(model), "--bind", "batch=32", "--runs", "5", "--write", str(host)]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 0
    said = capsys.readouterr().out
    assert "| chain | groups | 2 | 2 |" in said and "| MatMul | 20 |" in said
    machine = load_machine(str(host))
    figures = machine_figures(machine)
    assert isinstance(figures, CoreFigures) and machine.size == 2 and figures.sync is not None
    monkeypatch.setattr(sys, "argv", [*words[:1], str(tmp_path / "none.onnx")])
    assert main() == 2 and "error: " in capsys.readouterr().err
