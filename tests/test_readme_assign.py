"""What docs/tour.md and docs/assign.md print of `nmsolve assign` is what it prints, measured times aside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
Called = Any
ROOT = Path(__file__).parent.parent
COMMAND = "assign tests/data/onnx/mobilenet_v2.onnx --machine laptop-npu --run"
#: Seconds of the run, and what the host made of the programs.
MEASURED = (
    (r"\(stopped: gap, [\d.]+ s\)", "(stopped: gap)"),
    (r", [\d.]+ s(?=\)[,.])", ""),
    (r"Executed: [\d.]+ ms in pieces, [\d.]+ ms as one model", "Executed"),
    (r"largest relative difference [\de.-]+", "small differences"),
)


def settled(text: str) -> list[str]:
    """Return the lines without what another run measures otherwise."""
    for pattern, word in MEASURED:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("page", ["docs/tour.md", "docs/assign.md"])
def test_the_output_of_assign_is_true(
    page: str, call: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output is the end of the block; before it is the live table, of which the header and the proof are sure."""
    pytest.importorskip("onnxruntime")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    code, text, error = call(*COMMAND.split(), "-t", "1h")
    shown = settled((ROOT / page).read_text().partition(f"$ nmsolve {COMMAND}\n")[2].partition("```")[0])
    found = settled(text)
    assert code == 0 and shown[-len(found) :] == found
    table = [line.split() for line in shown[: -len(found)]]
    assert table[0] == error.splitlines()[0].split() and ["executing", "the", "programs"] in table
    proved = [line.split()[2:] for line in error.splitlines() if line.endswith("min-cut")]
    assert proved[-1] in [line[2:] for line in table]
