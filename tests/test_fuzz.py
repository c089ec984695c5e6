"""Damaged files end in one line: what the fuzzer found once, and some seconds of the fuzzer itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Called

from nmsolve.hw.assignment.library import Library
from nmsolve.hw.machines import load_machine
from nmsolve.hw.noc import read_trace
from nmsolve.kinds.simulation.setting import router
from nmsolve.model.errors import InputError

ROOT = Path(__file__).parent.parent
FUZZ = ROOT / "bench" / "fuzz.py"

#: What no TOML reader got through without a traceback.
TOML = {
    "not UTF-8 text": b"routing = 1\nname = '\xff'",
    "nested too deeply": b"x = " + b"[" * 3000 + b"]" * 3000,
    "not TOML": b"routing = " + b"7" * 5000,
}


@pytest.mark.parametrize("line", TOML)
def test_toml_that_is_none_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(TOML[line])
    for read in (router, load_machine):
        with pytest.raises(InputError, match=line):
            read(str(path))


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"0,0,1,\xff", "not UTF-8 text"),
        (b"0,0,1," + b"1" * 200_000, "not CSV"),
        (b"0,0,1_0,1", "whole numbers"),
        (b"0,0,1," + "١".encode(), "whole numbers"),
        (b"1099511627776,0,1,1", "less than 2\\^62"),
    ],
)
def test_traces_that_are_none_are_refused(tmp_path: Path, data: bytes, line: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=line):
        read_trace(path, load_machine("mesh:4x4"), 2**23)


def test_reports_that_are_no_text_and_names_that_are_no_files(tmp_path: Path, call: Called) -> None:
    graph = {"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}]}
    (tmp_path / "g.json").write_text(json.dumps(graph))
    out = tmp_path / "out"
    call("map", tmp_path / "g.json", "--machine", "mesh:1x2", "--time-limit", 2, "--out", out)
    report = out / "report.json"
    good = report.read_bytes()
    report.write_bytes(good.replace(b"mesh:1x2", b"mesh:\xff1x2"))
    assert call("verify", out)[0] == 2
    report.write_bytes(good.replace(b'"mesh:1x2"', b'"' + b"a" * 3000 + b'"'))
    for words in (("verify", out), ("info", "a" * 3000 + ".json"), ("verify", "a" * 3000)):
        code, _, err = call(*words)
        assert code == 2 and err.count("\n") == 1, words


def test_a_library_whose_tables_have_names_that_are_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    Library(path, write=True).close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE verdict", b"CREATE TABLE verd\xfft"))
    with pytest.raises(InputError, match="cannot be used"):
        Library(path)


def test_the_fuzzer_finds_nothing(tmp_path: Path) -> None:
    """Another part of the endless list of inputs than a run of `python bench/fuzz.py` without --seed."""
    done = subprocess.run(
        [sys.executable, str(FUZZ), "--seconds", "8", "--seed", "1", "--state", str(tmp_path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    state = json.loads((tmp_path / "state.json").read_text())
    assert len(state["counts"]) >= 40 and not state["finds"]
