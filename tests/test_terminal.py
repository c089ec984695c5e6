"""Names can neither steer the terminal nor cost an answer; what is no text is refused before a search."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import Called

from nmsolve.cli.terminal import harmless, harmless_output
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph
from nmsolve.model.graph import LogicGraph

#: Clear the screen; a C1 control; text turned around; a title; a carriage return.
NASTY = "a\x1b[2Jb\x9b31mc\u202ed\x1b]0;title\x07e\rf\u2066g"
STEERS = set("\x1b\x9b\u202e\x07\r\u2066")


def graph_file(folder: Path, name: str) -> Path:
    path = folder / "g.json"
    content = {
        "graph": {"name": name},
        "nodes": [{"id": name}, {"id": "b"}],
        "edges": [{"source": name, "target": "b", "weight": 1}],
    }
    path.write_text(json.dumps(content))
    return path


def test_characters_that_steer_are_shown_as_json_writes_them() -> None:
    shown = harmless(NASTY)
    assert not STEERS & set(shown) and json.loads(f'"{shown}"') == NASTY
    assert harmless("tab\tline\nGrüße λ 图 \U0001f600") == "tab\tline\nGrüße λ 图 \U0001f600"
    assert harmless("\udcff") == "\\udcff"


def test_all_output_of_a_run_is_harmless(tmp_path: Path, call: Called) -> None:
    path = graph_file(tmp_path, NASTY)
    calls = [
        ("info", path),
        ("info", path, "--json"),
        ("map", path, "--machine", "mesh:1x2", "--time-limit", "5", "--out", tmp_path / "out"),
        ("map", path, "--machine", "mesh:1x2", "--engines", NASTY),
        ("info", tmp_path / f"{NASTY}.json"),
        ("verify", tmp_path / "out"),
    ]
    for words in calls:
        code, out, err = call(*words)
        assert code in (0, 2) and not STEERS & set(out + err), words
    code, out, err = call("info", path, "--json")
    assert json.loads(out)["name"] == NASTY


def test_streams_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with harmless_output():
        print("\x1b[1m")
        assert sys.stdout is not stream and not sys.stdout.isatty()
    assert sys.stdout is stream and stream.getvalue() == "\\u001b[1m\n"


def test_names_that_are_no_text_are_refused_before_the_search(tmp_path: Path) -> None:
    """They were found out when the report was written, and the answer was lost."""
    good = graph_file(tmp_path, "g")
    bad = os.fsencode(tmp_path) + b"/g\xff.json"
    Path(os.fsdecode(bad)).write_bytes(good.read_bytes())
    run = "import sys; from nmsolve.cli.main import main; main()"
    for arguments, where in (
        (["map", bad, "--machine", "mesh:1x2", "--time-limit", "2", "--out", "out"], tmp_path),
        (["map", str(good), "--machine", "mesh:1x2", "--time-limit", "2", "--out", b"out\xff"], tmp_path),
    ):
        done = subprocess.run([sys.executable, "-c", run, *arguments], cwd=where, capture_output=True)
        assert done.returncode == 2 and b"not UTF-8" in done.stderr and done.stderr.count(b"\n") == 1
    assert not (tmp_path / "out").exists()


def test_halves_of_surrogate_pairs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(
        '{"graph": {"note": "NaN"}, "nodes": [{"id": "\\ud800"}, {"id": "b"}],'
        ' "edges": [{"source": "\\ud800", "target": "b"}]}'
    )
    with pytest.raises(InputError):
        load_graph(path)
    with pytest.raises(InputError, match="not valid text"):
        LogicGraph.from_edges(2, [0], [1], ids=("\udcff", "b"))
    with pytest.raises(InputError, match="not valid text"):
        LogicGraph.from_edges(2, [0], [1], sizes=np.ones((2, 1), int), name="\udcff")
