"""What strangers do with the commands about assignments: a wrong use ends with one line and exit code 2, and leaves no file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from assignments_support import pair_machine, small_model

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

pytest.importorskip("onnx")
Called = Any
LOOP = Path(__file__).parent / "data" / "onnx" / "loop_if_decoder.onnx"
#: A cost network of two nodes.
NETWORK = {
    "problem": {
        "name": "two",
        "nodes": {"intervals": [[0, 2], [1, 3]], "costs": [[1, 2], [3, 4]], "usages": [[1, 1], [1, 1]]},
        "edges": {"nodes": [[0, 1]], "costs": [[1, 2, 3, 4]]},
        "usage_limit": 5,
    }
}


def refused(call: Called, *arguments: object, words: str) -> None:
    """Call the command; it ends with exit code 2 and one line that holds ``words``."""
    code, text, error = call(*arguments)
    assert (code, text) == (2, "") and error.count("\n") == 1 and words in error, (code, text, error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and a machine."""
    found = tmp_path_factory.mktemp("misuse")
    small_model(found / "m.onnx")
    pair_machine(found / "pair.toml")
    return found


@pytest.fixture
def where(folder: Path) -> tuple[object, ...]:
    return ("-m", folder / "pair.toml", "--bind", "batch=32", "-t", "1h")


@pytest.mark.parametrize("batch", [10**20, 2**62, 2**61 + 1])
def test_numbers_that_no_array_can_hold_are_refused(
    folder: Path, call: Called, tmp_path: Path, batch: int
) -> None:
    """Products of shapes would overflow, silently or in a traceback; the library of `profile` is not even made."""
    model, bind = folder / "m.onnx", ("--bind", f"batch={batch}")
    words = "smaller numbers in --bind"
    refused(call, "assign", model, "-m", folder / "pair.toml", *bind, "-o", tmp_path / "out", words=words)
    refused(call, "explain", "assign", model, "-m", folder / "pair.toml", *bind, words=words)
    refused(call, "pipeline", model, "--cores", 4, *bind, "-o", tmp_path / "out", words=words)
    assert not (tmp_path / "out").exists()


def test_trips_that_cost_more_than_can_be_summed_are_refused(call: Called, tmp_path: Path) -> None:
    for trips, words in ((10**12, "costs add up to"), (10**20, "smaller numbers in --bind")):
        bind = ("--bind", f"batch=1,width=16,trips_Loop_32={trips}")
        refused(call, "assign", LOOP, "-m", "laptop-npu", *bind, "-o", tmp_path / "out", words=words)
    assert not (tmp_path / "out").exists()


def test_a_profile_that_cannot_begin_makes_no_library(folder: Path, call: Called, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    library = ("-l", tmp_path / "library.db")
    refused(call, "profile", folder / "m.onnx", *library, words="--bind batch=NUMBER")
    refused(
        call, "profile", folder / "m.onnx", "--bind", "batch=2", "--processor", "", *library, words="name"
    )
    assert not (tmp_path / "library.db").exists()


def test_a_report_that_holds_an_objective_that_is_none(
    folder: Path, call: Called, where: tuple[object, ...], tmp_path: Path
) -> None:
    """No command that reads it ends in a traceback."""
    out = tmp_path / "out"
    assert call("assign", folder / "m.onnx", *where, "--engines", "threshold", "-o", out)[0] == 0
    report = json.loads((out / "report.json").read_text())
    for held in ({"objective": "speed", "value": 1.0}, {"objective": "energy", "value": -1.0}):
        inputs = report["inputs"] | {"before": [held]}
        (out / "report.json").write_text(json.dumps(report | {"inputs": inputs}))
        refused(call, "score", out, words="held at")
        refused(call, "verify", out, "--bound", words="held at")
    (out / "report.json").write_text(json.dumps(report))
    for option in (("--chips", "2x2"), ("--memory", "1GiB"), ("--placement", folder / "m.onnx")):
        refused(call, "score", out, *option, words="an option for other answers")


def test_points_of_a_front_are_scored_and_bounded(
    folder: Path, call: Called, where: tuple[object, ...], tmp_path: Path
) -> None:
    """pareto.json states their problem; what it claims of them is checked for the whole front only."""
    front = tmp_path / "front"
    code, text, _ = call("assign", folder / "m.onnx", *where, "--pareto", "latency,energy", "-o", front)
    assert code == 0 and "µs" in text and "µJ" in text
    values = json.loads((front / "pareto.json").read_text())["points"][0]["values"]
    code, text, _ = call("score", front / "point-1.json", "--json")
    assert code == 0 and values.items() <= json.loads(text)["scores"].items()
    code, _, _ = call("gap", front / "point-1.json", "-t", "1h", "-o", tmp_path / "gap")
    assert code == 0
    assert json.loads((tmp_path / "gap" / "report.json").read_text())["objective"] == values["latency"]
    refused(call, "verify", front / "point-1.json", words="it is a point of a front")
    picture = (front / "pareto.svg").read_text()
    assert "µs" in picture and "µJ" in picture


def test_the_gap_of_an_answer_whose_control_flow_stayed_whole(call: Called, tmp_path: Path) -> None:
    """The makespan came first, so operators of bodies are none of their own; the bound is about the same operators."""
    bind = ("--bind", "batch=1,width=16,trips_Loop_32=4")
    how = ("--objective", "makespan,energy", "--engines", "threshold,min-cut", "-t", "1h")
    assert call("assign", LOOP, "-m", "laptop-npu", *bind, *how, "-o", tmp_path / "out")[0] == 0
    first = json.loads((tmp_path / "out" / "report.json").read_text())
    code, _, error = call("gap", tmp_path / "out", "--engines", "min-cut", "-t", "1h", "-o", tmp_path / "gap")
    found = json.loads((tmp_path / "gap" / "report.json").read_text())
    assert code == 0, error
    assert found["objective_name"] == "energy" and found["objective"] == first["objective"]
    assert found["graph"]["hash"] == first["graph"]["hash"] and 0 < found["bound"] <= found["objective"]


def test_a_network_names_the_option_that_it_does_not_take(call: Called, tmp_path: Path) -> None:
    (tmp_path / "two.json").write_text(json.dumps(NETWORK))
    options = {
        "--run": (), "--bind": ("a=1",), "--machine": ("laptop-npu",), "--library": ("x.db",),
        "--constraints": ("x.json",), "--objective": ("energy",), "--pareto": ("latency,energy",),
    }  # fmt: skip
    for option, value in options.items():
        refused(
            call, "assign", tmp_path / "two.json", option, *value, "-o", tmp_path / "out",
            words=f"error: {option}: a cost network has",
        )  # fmt: skip
    assert not (tmp_path / "out").exists()
    code, text, error = call("assign", tmp_path / "two.json", "-t", "1h", "-o", tmp_path / "out")
    assert code == 0 and "The cost is 5, proved" in text and " ps" not in error + text


def test_the_page_of_a_makespan_has_no_empty_columns(
    folder: Path, call: Called, where: tuple[object, ...], tmp_path: Path
) -> None:
    """A change of a makespan has no parts; a latency's has. Figures of the table on the terminal have units."""
    for objective, parts in (("makespan", False), ("latency", True)):
        out = tmp_path / objective
        code, _, error = call("assign", folder / "m.onnx", *where, "--objective", objective, "-o", out)
        page = (out / "report.html").read_text()
        head = page[page.index("Why is this operator here?") :]
        assert code == 0 and ('<th class="n">transfer</th>' in head) == parts
        assert "µs" in error and "ps" not in error


@pytest.mark.parametrize("bound", [(), ("--bind", "batch=1,seq=16")])
def test_without_the_packages_of_onnx_one_line_says_what_to_install(
    bound: tuple[str, ...], call: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("onnx", "sympy"):
        monkeypatch.setitem(sys.modules, name, None)
    words = "reading ONNX models needs the package onnx; expected pip install 'nmsolve[onnx]'"
    refused(call, "assign", LOOP, "-m", "laptop-npu", *bound, "--out", tmp_path / "o", words=words)
