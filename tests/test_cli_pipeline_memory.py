"""``nmsolve pipeline`` where memory is scarce: what fits, what is streamed, what the files say and what ``verify`` finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_support import model, saved, value, weight

Called = Any


def network(folder: Path, layers: int = 6, width: int = 64) -> Path:
    """MatMul and Relu in turn; weights of 16 KiB each, a batch of 8 with 2 KiB between them."""
    nodes, weights, last = [], [], "x"
    for k in range(layers):
        weights.append(weight(f"w{k}", np.zeros((width, width), np.float32)))
        nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [f"h{k}"], f"matmul{k}"))
        nodes.append(helper.make_node("Relu", [f"h{k}"], [f"a{k}"], f"relu{k}"))
        last = f"a{k}"
    return saved(model(nodes, [value("x", 8, width)], [value(last, 8, width)], weights), folder, "m.onnx")


def report_of(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / "pipeline-report.json").read_text())
    return report


def test_what_fits_on_no_cores_says_what_would(call: Called, tmp_path: Path) -> None:
    """Six times 16 KiB of weights and 4 KiB live: the smallest that is named fits, and one byte or core less does not."""
    source, out = network(tmp_path), tmp_path / "out"
    code, _, error = call("pipeline", source, "-n", 4, "--core-memory", "16KiB", "-o", out)
    line = next(line for line in error.splitlines() if line.startswith("error:"))
    assert code == 2 and "do not fit on 4 cores of 16,384 bytes" in line and "--offchip-bandwidth" in line
    cores, memory = (
        int(word.replace(",", "")) for word in line.split("expected ")[1].split() if word[0].isdigit()
    )
    for n, m, fits in ((cores, 16384, 0), (cores - 1, 16384, 2), (4, memory, 0), (4, memory - 1, 2)):
        assert call("pipeline", source, "-n", n, "--core-memory", m, "-o", out)[0] == fits
        assert fits or call("verify", out, "--bound")[0] == 0


@pytest.mark.parametrize("overlap", [False, True])
def test_what_does_not_fit_is_streamed_and_every_figure_is_checked(
    call: Called, tmp_path: Path, overlap: bool
) -> None:
    """Report, page, JSON and verify state weights, live and moved bytes; no figure can be changed unnoticed."""
    source, out = network(tmp_path), tmp_path / "out"
    words = ["--core-memory", "16KiB", "--offchip-bandwidth", "16GB/s", *(["--overlap"] if overlap else [])]
    code, text, _ = call("pipeline", source, "-n", 4, *words, "-o", out)
    assert code == 0 and "off chip" in text and "moved from and to off-chip memory" in text
    report = report_of(out)
    assert report["status"] == "optimal" and report["live"] and report["offchip"] == 16e9
    assert sum(s["weights"] for s in report["stages"]) == 6 * 16384
    assert sum(s["streamed"] for s in report["stages"]) >= 2 * 16384 + 4096
    for s in report["stages"]:
        assert s["storage"] <= 16384
        assert s["offchip"] == pytest.approx(1e6 * s["streamed"] / (16e9 * s["cores"] / 4))
        parts = [s["compute"], s["transfer_in"] + s["transfer_out"], s["offchip"]]
        assert s["load"] == pytest.approx(max(parts) if overlap else sum(parts))
    page = (out / "pipeline.html").read_text()
    assert "most live" in page and "bytes/s off chip" in page
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "no chain of stages is below" in text and "moved off chip" in text
    for name in ("weights", "live", "streamed", "offchip", "load"):
        stages = [dict(s) for s in report["stages"]]
        stages[-1][name] += 1
        (out / "pipeline-report.json").write_text(json.dumps({**report, "stages": stages}))
        code, text, _ = call("verify", out)
        assert code == 1 and f"{name} of stage {len(stages) - 1}" in text
    (out / "pipeline-report.json").write_text(json.dumps({**report, "stages": None}))
    assert call("verify", out)[0] == 1
    (out / "pipeline-report.json").write_text(json.dumps(report))
    code, _, error = call("gap", out, "-t", 5, "-o", tmp_path / "again")
    assert code == 0, error
    assert report_of(tmp_path / "again")["inputs"]["offchip_bandwidth"] == 16e9
    faster = {**report["inputs"], "offchip_bandwidth": 32e9}
    (out / "pipeline-report.json").write_text(json.dumps({**report, "inputs": faster}))
    code, _, error = call("verify", out)
    assert code == 2 and "another problem" in error


def test_more_bandwidth_is_never_slower_and_plenty_is_as_good_as_memory(call: Called, tmp_path: Path) -> None:
    """The period falls with the bandwidth, towards the one without a limit of memory."""
    source, out = network(tmp_path), tmp_path / "out"
    periods = []
    for rate in ("1GB/s", "8GB/s", "1000000GB/s"):
        words = ("--core-memory", "16KiB", "--offchip-bandwidth", rate)
        assert call("pipeline", source, "-n", 4, *words, "-o", out)[0] == 0
        periods.append(report_of(out)["objective"])
    assert call("pipeline", source, "-n", 4, "-o", out)[0] == 0
    assert periods[0] > periods[1] > periods[2] == pytest.approx(report_of(out)["objective"], rel=1e-3)


MACHINE = """name = "chip"
cores = [2, 2]
[capacity]
bytes = 16384
[figures]
mac_rate = {{ value = 64e9, unit = "MACs/s" }}
element_rate = {{ value = 16e9, unit = "elements/s" }}
bandwidth = {{ value = 32e9, unit = "bytes/s" }}
tile_channels = {{ value = 16, unit = "channels" }}
tile_rows = {{ value = 16, unit = "rows" }}
{}
"""


def test_the_machine_gives_the_bandwidth(call: Called, tmp_path: Path) -> None:
    """``[figures] offchip_bandwidth``, for all cores together; ``--offchip-bandwidth 0`` turns it off."""
    source, out, chip = network(tmp_path), tmp_path / "out", tmp_path / "chip.toml"
    chip.write_text(MACHINE.format('offchip_bandwidth = { value = 16e9, unit = "bytes/s of all cores" }'))
    assert call("pipeline", source, "-m", chip, "--place", "-o", out)[0] in (0, 3)
    report = report_of(out)
    assert report["offchip"] == 16e9 and any(s["streamed"] for s in report["stages"])
    assert call("verify", out, "--bound")[0] == 0 and call("verify", out / "placement")[0] in (0, 6)
    code, _, error = call("pipeline", source, "-m", chip, "--offchip-bandwidth", 0, "-o", out)
    assert code == 2 and "do not fit" in error
    assert (
        call("pipeline", source, "-m", chip, "--split", "any", "-o", out)[0] == 2
    )  # nothing is streamed there
    for figure, words in (
        ('{ value = 1, unit = "GB/s" }', "bytes/s (of all cores)"),
        ('{ value = -1, unit = "bytes/s" }', "a finite number >= 0"),
    ):
        chip.write_text(MACHINE.format(f"offchip_bandwidth = {figure}"))
        code, _, error = call("pipeline", source, "-m", chip, "-o", out)
        assert code == 2 and "offchip_bandwidth" in error and words in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--offchip-bandwidth", "fast"], "--offchip-bandwidth"),
        (["--offchip-bandwidth", "-1"], "--offchip-bandwidth"),
        (["--offchip-bandwidth", "1GB/s"], "--core-memory SIZE"),
        (["--offchip-bandwidth", "1GB/s", "--core-memory", "1KiB", "--split", "any"], "--split chain"),
        (["--offchip-bandwidth", "0", "--core-memory", "1KiB"], "bytes per core"),
        (["--offchip-bandwidth", "1GB/s", "--core-memory", "1KiB", "--pareto", "period,core-memory"], "core-memory"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line(call: Called, tmp_path: Path, arguments: list[str], words: str) -> None:
    """Exit code 2, and what was expected."""
    code, _, error = call("pipeline", network(tmp_path), "-n", 4, *arguments, "-o", tmp_path / "out")
    lines = [line for line in error.splitlines() if line.startswith("error:")]
    assert code == 2 and len(lines) == 1 and words in lines[0], error


def test_fronts_count_no_memory_that_is_streamed(call: Called, tmp_path: Path) -> None:
    """With off-chip memory a single core holds everything: the fewest cores are one, proved."""
    source, out = network(tmp_path), tmp_path / "out"
    words = (
        "--core-memory",
        "16KiB",
        "--offchip-bandwidth",
        "16GB/s",
        "--pareto",
        "period,cores",
        "--points",
        3,
    )
    assert call("pipeline", source, "-n", 4, *words, "-t", "60s", "-o", out)[0] == 0
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "FAILED" not in text
    front = json.loads((out / "pareto.json").read_text())
    assert "1" in json.dumps(front)


def test_info_states_live_bytes_and_widths(call: Called, tmp_path: Path) -> None:
    """Of the whole model in its order: x and a result, 2 KiB each."""
    source = network(tmp_path)
    code, text, _ = call("info", source)
    assert code == 0 and "live           4,096 bytes at most at once" in text
    assert "widths         98,304 bytes of float32" in text
    found = json.loads(call("info", source, "--json")[1].splitlines()[0])
    assert (found["live_bytes"], found["weight_widths"]) == (4096, {"float32": 98304})
