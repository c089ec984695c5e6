"""``nmsolve gap`` of a run that minimised objectives in order: what was minimised first stays held, with its proof."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from assignments_support import pair_machine, small_model
from conftest import Called
from schedule_files import tasks_file

MODEL = Path(__file__).parent / "data" / "onnx" / "mobilenet_v2.onnx"


def in_order(kind: str, call: Called, tmp_path: Path) -> tuple[Path, str]:
    """The folder of a run in order, and the name of its report."""
    out, report = tmp_path / "out", "report.json"
    pair_machine(tmp_path / "pair.toml")
    small_model(tmp_path / "g.onnx", layers=2, width=64)
    tasks_file(tmp_path / "tasks.json")
    words: tuple[object, ...] = ("schedule", tmp_path / "tasks.json", "--objective", "makespan,moved")
    if kind == "assign":
        words = (
            "assign",
            tmp_path / "g.onnx",
            "-m",
            tmp_path / "pair.toml",
            "--bind",
            "batch=32",
            "--objective",
            "latency,energy",
        )
    if kind == "pipeline":
        words, report = (
            ("pipeline", MODEL, "--cores", 12, "--objective", "energy,period"),
            "pipeline-report.json",
        )
    assert call(*words, "-t", 20, "-o", out)[0] in (0, 3)
    return out, report


@pytest.mark.parametrize("kind", ["assign", "pipeline", "schedule"])
def test_what_is_held_stays_held(kind: str, call: Called, tmp_path: Path) -> None:
    """Another bound would be about solutions that the run ruled out."""
    out, name = in_order(kind, call, tmp_path)
    before = json.loads((out / name).read_text())
    code, text, error = call("gap", out, "-t", 9, "-o", tmp_path / "gap")
    assert code in (0, 3), error
    after = json.loads((tmp_path / "gap" / name).read_text())
    assert after["inputs"]["before"] == before["inputs"]["before"] != []
    assert after["objective"] == before["objective"] and after["bound"] <= before["bound"] * (1 + 1e-9)
    assert "Among" in text + error
    assert call("verify", tmp_path / "gap", "--bound", "--trust-solver")[0] == 0


def test_without_certificates_nothing_is_claimed_of_what_is_held(call: Called, tmp_path: Path) -> None:
    out, name = in_order("schedule", call, tmp_path)
    shutil.rmtree(tmp_path / "gap", ignore_errors=True)
    (out / "certificates.json").unlink()
    assert call("gap", out, "-t", 9, "-o", tmp_path / "gap")[0] in (0, 3)
    (held,) = json.loads((tmp_path / "gap" / name).read_text())["inputs"]["before"]
    assert held["bound"] is None and held["status"] == "feasible"
    assert call("verify", tmp_path / "gap", "--bound", "--trust-solver")[0] == 0
