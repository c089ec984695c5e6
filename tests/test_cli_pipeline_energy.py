"""Energy as the command, its files and ``verify`` have it, and where its tables come from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from test_pipeline_exchange import chain

from nmsolve.check.pipeline.reevaluate_energy import energy_complaint
from nmsolve.check.pipeline.reevaluate_exchange import reevaluated_bytes
from nmsolve.hw.machines import load_machine
from nmsolve.hw.pipeline.energy import energy_of
from nmsolve.hw.pipeline.exchange import best_splits
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.pipeline.figures import ASSUMED, EnergyFigures, machine_figures

DATA = Path(__file__).parent / "data" / "onnx"
MODEL = DATA / "mobilenet_v2.onnx"
PARTS = ("compute", "transfer", "exchange", "offchip", "static")


@pytest.fixture(scope="module")
def layers() -> Layers:
    return layers_of(load_onnx(MODEL))


def report_of(out: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((out / "pipeline-report.json").read_text())
    return found


def test_energy_from_the_command_line(call: Called, tmp_path: Path) -> None:
    """Proved and checked, with exchange and off-chip memory; a plan of the least period needs more; forged parts are found."""
    out, words = (
        tmp_path / "out",
        ["--group-sync", "500ns", "--core-memory", "64KiB", "--offchip-bandwidth", "100GB/s"],
    )
    code, text, _ = call("pipeline", MODEL, "-n", 64, *words, "--objective", "energy", "-o", out)
    assert code == 0 and "A micro-batch needs" in text and "proved to be the least" in text
    assert "for off-chip memory" in text and "times as much" in text and " uJ, bound" in text
    report = report_of(out)
    energy = report["energy"]
    assert isinstance(energy, dict) and all(energy[name] > 0 for name in PARTS)
    assert report["minimised"] == "energy" and energy["total"] == pytest.approx(
        report["objective"], rel=1e-12
    )
    page = (out / "pipeline.html").read_text()
    assert "energy of a micro-batch" in page and "<h2>Energy</h2>" in page and "no plan needs less" in page
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "the energy of a micro-batch is" in text and "of it static power" in text
    assert call("gap", out, "-t", 5, "-o", tmp_path / "gap")[0] == 0
    assert report_of(tmp_path / "gap")["objective"] == report["objective"]
    assert call("pipeline", MODEL, "-n", 64, *words, "-o", tmp_path / "period")[0] == 0
    other = report_of(tmp_path / "period")
    assert other["minimised"] == "period" and other["energy"]["total"] > 1.001 * report["objective"]  # type: ignore[index,operator]
    assert call("verify", tmp_path / "period")[0] == 0
    forged = [{**energy, name: energy[name] * 1.01} for name in (*PARTS, "total")]
    for claim in (*forged, None, 5, {}):
        (out / "pipeline-report.json").write_text(json.dumps(report | {"energy": claim}))
        code, text, _ = call("verify", out)
        assert code == 1 and ("the report says" in text or "$.energy: " in text)


def machine(folder: Path, *lines: str) -> Path:
    """A board of two chips with the figures of times, and these."""
    path = folder / "m.toml"
    rates = "mac_rate = 64e9\nelement_rate = 16e9\nbandwidth = 32e9\ntile_channels = 16\ntile_rows = 16\n"
    path.write_text("chips = [1, 2]\ncores = [2, 2]\n[figures]\n" + rates + "\n".join(lines))
    return path


FIGURES = (
    "energy_mac = 2", "energy_element = 1", "energy_byte = 10", "energy_offchip_byte = 100", "power_core = 5",
    "power_chip = 70",
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--split", "any"], "another split"),
        (["--use-all"], "no --use-all with the objective energy"),
        (["--machine", "wormhole"], "no energy_mac (pJ), energy_element (pJ), energy_byte (pJ)"),
        (["--pareto", "period,energy"], "--pareto"),
    ],
)
def test_where_it_is_refused(call: Called, tmp_path: Path, words: list[str], text: str) -> None:
    """One line each, before anything is written."""
    cores = [] if "--machine" in words else ["-n", 16]
    objective = [] if "--pareto" in words else ["--objective", "energy"]
    code, _, error = call("pipeline", MODEL, *cores, *objective, *words, "-o", tmp_path / "out")
    lines = [line for line in error.splitlines() if line.startswith("error:")]
    assert code == 2 and len(lines) == 1 and text in lines[0] and not (tmp_path / "out").exists()


def test_cost_graphs_have_no_energy(call: Called, tmp_path: Path) -> None:
    """Nor do plans for chips without such figures: null in their reports."""
    graph = Path(__file__).parent.parent / "nmsolve/benchmarks/instances/dnn/layer_bert24_inference.json"
    code, _, error = call(
        "pipeline", graph, "--split", "chain", "--objective", "energy", "-o", tmp_path / "out"
    )
    assert code == 2 and "says nothing of energy" in error
    assert call("pipeline", MODEL, "-m", machine(tmp_path), "-o", tmp_path / "out")[0] == 0
    report = report_of(tmp_path / "out")
    assert report["energy"] is None and "Energy" not in (tmp_path / "out" / "pipeline.html").read_text()
    assert call("verify", tmp_path / "out")[0] == 0
    (tmp_path / "out" / "pipeline-report.json").write_text(
        json.dumps(report | {"energy": dict.fromkeys((*PARTS, "total"), 1.0)})
    )
    code, text, _ = call("verify", tmp_path / "out")
    assert code == 1 and "what is not known" in text


def test_figures_of_a_machine(tmp_path: Path, layers: Layers) -> None:
    """All six or none; units are checked; the power of all chips and cores, whichever are used."""
    figures = machine_figures(load_machine(str(machine(tmp_path, *FIGURES))))
    assert figures.energy == EnergyFigures(2, 1, 10, 100, 5, 140) and figures.no_energy == ""
    found = energy_of(layers, figures, 8, 8)
    assert found is not None and (found.power, found.byte, found.offchip) == pytest.approx((0.18, 1e-5, 1e-4))
    assert found.layer.sum() == pytest.approx(1e-6 * (2 * layers.macs + layers.elements).sum())
    for k, line in enumerate(FIGURES):
        without = machine_figures(load_machine(str(machine(tmp_path, *FIGURES[:k], *FIGURES[k + 1 :]))))
        assert without.energy is None and without.no_energy.startswith(line.split()[0])
    for wrong in ('power_core = { value = 5, unit = "W" }', "power_core = -1"):
        with pytest.raises(InputError, match="power_core"):
            machine_figures(load_machine(str(machine(tmp_path, *FIGURES[:4], wrong))))


def test_bytes_of_exchange_by_two_programs(layers: Layers) -> None:
    """The first program's bytes are among those of the fastest splits that the second finds; one core exchanges nothing."""
    figures = replace(ASSUMED, sync=100.0)
    found, (fewest, most) = best_splits(layers, figures, 24).received, reevaluated_bytes(layers, figures, 24)
    assert (found >= fewest * (1 - 1e-9)).all() and (found <= most * (1 + 1e-9)).all()
    assert not found[:, 0].any() and (most == fewest).mean() > 0.99 and (np.diff(found, axis=1) < 0).any()


def test_products_by_hand(tmp_path: Path) -> None:
    """Three of 64 rows on two cores, all matrices of 16,384 bytes. The first takes in nothing from another layer: by channels,
    half of a half of its result goes where its rows lie, to each core. The second by rows: each core lacks half of the weights.
    The third by terms, as only its input moves."""
    found = best_splits(layers_of(load_onnx(chain(tmp_path / "c.onnx"))), replace(ASSUMED, sync=0.0), 2)
    assert found.received[:, 1].tolist() == [2 * 16384 / 4, 2 * 16384 / 2, 2 * 16384 / 4]


@pytest.mark.parametrize(
    "change",
    [
        lambda e: replace(e, layer=e.layer * 1.001),
        lambda e: replace(e, exchanged=e.exchanged * 1.001),
        lambda e: replace(e, byte=2 * e.byte),
        lambda e: replace(e, offchip=0.0),
        lambda e: replace(e, power=0.5 * e.power),
    ],
)
def test_wrong_tables_are_found(layers: Layers, change) -> None:
    """The second program says what differs; without exchange there are no bytes."""
    figures = replace(ASSUMED, sync=100.0)
    energy = energy_of(layers, figures, 8, 8)
    assert energy is not None and energy_complaint(layers, figures, 8, energy) is None
    assert energy_complaint(layers, figures, 8, change(energy)) is not None
    assert "do not count" in (energy_complaint(layers, ASSUMED, 8, energy) or "")


def test_layers_in_loops_count_as_often_as_they_run() -> None:
    """Twice the trips of the decoder's loop are more work, and both programs agree."""
    found = []
    for trips in (4, 8):
        layers = layers_of(
            load_onnx(DATA / "loop_if_decoder.onnx"), {"batch": 1, "width": 64, "trips_Loop_32": trips}
        )
        figures = replace(ASSUMED, sync=50.0)
        energy = energy_of(layers, figures, 4, 4)
        assert energy is not None and energy_complaint(layers, figures, 4, energy) is None
        assert layers.nesting is not None
        inside = layers.nesting.loop >= 0
        found.append(
            (energy.layer[inside].sum(), energy.exchanged[inside, -1].sum(), energy.layer[~inside].sum())
        )
    assert found[1][0] > 1.9 * found[0][0] and found[1][1] > 1.9 * found[0][1] and found[1][2] == found[0][2]
