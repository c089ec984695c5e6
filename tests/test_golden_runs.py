"""Users see of every kind of problem what they have seen so far (``tests/golden_runs.py`` says how to change that)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_runs import GOLDEN, KINDS, helps, seen


@pytest.mark.parametrize("kind", KINDS)
def test_commands_leave_the_same_files_and_keys(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, golden = seen(tmp_path, kind), json.loads((GOLDEN / f"{kind}.json").read_text())
    assert found.keys() == golden.keys()
    for verb, cell in found.items():
        assert cell == golden[verb], verb


def test_help_says_the_same() -> None:
    assert helps() == (GOLDEN / "help.txt").read_text()
