"""``nmsolve assign`` from files to page, what ``verify`` finds in its answers, and every way its input can be wrong."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from assignments_support import pair_machine, small_model

from nmsolve.hw.assignment.programs import write
from nmsolve.kinds.assignment.kind import AssignKind
from nmsolve.kinds.assignment.programs import PARTS
from nmsolve.kinds.mapping.report import Report
from nmsolve.model.formats import onnx

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

pytest.importorskip("onnx")
Called = Any
#: Time limit of runs that end when they have proved or finished everything: however loaded the machine is, they are not cut off.
LONG = "1h"
LOOP = Path(__file__).parent / "data" / "onnx" / "loop_if_decoder.onnx"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """``nmsolve ARGUMENTS`` in a process of its own."""
    command = [sys.executable, "-m", "nmsolve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, its model and machine beside it."""
    folder = tmp_path_factory.mktemp("assign")
    model, machine = small_model(folder / "m.onnx"), pair_machine(folder / "pair.toml")
    done = run(
        "assign", model, "-m", machine, "--bind", "batch=32", "-t", LONG, "-o", folder / "out", "--json"
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[-1]["type"] == "result" and {"incumbent", "bound"} <= {r["type"] for r in rows}
    assert "incumbent" in done.stderr and "proved to be the least possible" in done.stderr
    return folder


def test_all_that_is_read_is_read_before_the_search(
    answered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Called
) -> None:
    """Also the model with its symbols, which its programs keep: what comes after the search is late on a busy machine."""
    done: list[str] = []

    def noted(name: str, function: Any) -> Any:
        return lambda *given, **more: done.append(name) or function(*given, **more)

    for module in (onnx, write):
        monkeypatch.setattr(module, "load_onnx", noted("read", module.load_onnx))
    monkeypatch.setattr(AssignKind, "solve", noted("search", AssignKind.solve))
    where = (answered / "m.onnx", "-m", answered / "pair.toml", "--bind", "batch=32", "-t", LONG)
    assert call("assign", *where, "-o", tmp_path / "out")[0] == 0
    assert done == ["read", "read", "search"]
    assert (tmp_path / "out" / "programs" / "manifest.json").exists()


def test_a_run_leaves_all_files_and_the_keys_of_map(answered: Path) -> None:
    out = answered / "out"
    for name in ("assignment.json", "report.json", "certificates.json", "events.jsonl", "report.html"):
        assert (out / name).stat().st_size > 0
    report = json.loads((out / "report.json").read_text())
    assert set(Report.__struct_fields__) <= report.keys()
    assert report["status"] == "optimal" and report["gap"] == 0 and report["objective_name"] == "latency"
    file = json.loads((out / "assignment.json").read_text())
    place = dict(zip(file["operator"], file["processor"], strict=True))
    assert place["matmul0"] == "fast" and place["gather"] == "host" and set(file["core"]) == {0}
    told = {o["name"]: o for o in report["operators"]}
    assert (
        told["matmul0"]["alternatives"][0]["unit"] == "host"
        and told["matmul0"]["alternatives"][0]["change"] > 0
    )
    assert {"transfer", "accumulated", "speed", "complexity", "fusion"} == told["matmul0"]["terms"].keys()
    rules = {r["name"]: r for r in report["rules"]}
    assert rules.keys() == {"threshold", "scalar-tensor", "complex-scalars", "priority", "greedy-growth"}
    assert all(r["objective"] is None or r["objective"] >= report["objective"] for r in rules.values())
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 2 and 'id="explorer-data"' in page and 'src="' not in page
    assert "Why is this operator here?" in page and "What rules lose" in page


def test_verify_accepts_it_and_finds_what_is_forged(answered: Path, call: Called, tmp_path: Path) -> None:
    """One value after the other is changed in a copy; each is found, whether bounds are re-checked or not."""
    out = tmp_path / "out"
    out.mkdir()
    for path in (answered / "out").glob("*.json"):
        (out / path.name).write_bytes(path.read_bytes())
    code, text, _ = call("verify", out)
    assert code == 0 and "FAILED" not in text
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "FAILED" not in text and "full bound" in text
    report, proofs, file = (
        json.loads((out / f"{n}.json").read_text()) for n in ("report", "certificates", "assignment")
    )
    value = report["objective"]
    for forged in (
        {"objective": value - 1}, {"objective": None}, {"gap": 0.5}, {"status": "splendid"}, {"bound": value + 1},
        {"scores": {**report["scores"], "energy": 1.0}}, {"graph": {**report["graph"], "problem": "0" * 64}},
        {"status": "unknown"}, {"bound": "much"},
    ):  # fmt: skip
        (out / "report.json").write_text(json.dumps(report | forged))
        assert call("verify", out)[0] == 1, forged
        assert call("verify", out, "--bound", "--trust-solver")[0] == 1, forged
    (out / "report.json").write_text(json.dumps(report))
    for k, bound in enumerate(proofs["bounds"]):
        for change in ({"value": value + 10}, {"method": "my-blog"}, {"certificate": {}}):
            rows = list(proofs["bounds"])
            rows[k] = bound | change
            (out / "certificates.json").write_text(json.dumps(proofs | {"bounds": rows}))
            assert call("verify", out, "--bound", "--trust-solver")[0] == 1, (bound["method"], change)
    (out / "certificates.json").write_text(json.dumps(proofs | {"bounds": []}))
    assert call("verify", out, "--bound")[0] == 1
    (out / "certificates.json").write_text(json.dumps(proofs))
    i = file["operator"].index("relu0")
    (out / "assignment.json").write_text(
        json.dumps(file | {"processor": [*file["processor"][:i], "host", *file["processor"][i + 1 :]]})
    )
    assert call("verify", out)[0] == 1
    i = file["operator"].index("gather")  # int64: the accelerator cannot
    (out / "assignment.json").write_text(
        json.dumps(file | {"processor": [*file["processor"][:i], "fast", *file["processor"][i + 1 :]]})
    )
    code, text, _ = call("verify", out)
    assert code == 1 and "'gather' cannot run on 'fast'" in text
    for change, words in (
        ({"model": "0" * 64}, "for another model"),
        ({"processor": ["tpu"] * len(file["core"])}, "'tpu' has no core"),
    ):
        (out / "assignment.json").write_text(json.dumps(file | change))
        code, _, error = call("verify", out)
        assert code == 2 and words in error and error.count("\n") == 1
    code, _, error = call("verify", answered / "out", "--machine", "laptop-npu")
    assert code == 2 and "options for mappings only" in error


def test_score_gap_and_resume(answered: Path, call: Called, tmp_path: Path) -> None:
    """Of the folder, and of a file of another tool that has only operators and processors."""
    out, report = answered / "out", json.loads((answered / "out" / "report.json").read_text())
    code, text, _ = call("score", out, "--json")
    assert code == 0 and json.loads(text)["scores"] == report["scores"]
    file = json.loads((out / "assignment.json").read_text())
    other = tmp_path / "from-elsewhere.json"
    names = file["operator"]
    other.write_text(json.dumps({
        "problem": {"name": "", "hash": ""}, "operator": names, "processor": ["host"] * len(names), "core": [0] * len(names),
    }))  # fmt: skip
    where = ("--graph", answered / "m.onnx", "--machine", answered / "pair.toml", "--bind", "batch=32")
    code, text, _ = call("score", other, *where, "--json")
    on_host = json.loads(text)["scores"]["latency"]
    assert code == 0 and on_host > report["objective"]
    code, text, error = call("gap", other, *where, "-t", LONG, "-o", tmp_path / "gap")
    assert f"better: {tmp_path / 'gap' / 'better.json'}" in error
    found = json.loads((tmp_path / "gap" / "report.json").read_text())
    assert code == 0 and found["objective"] == on_host and found["bound"] == report["objective"]
    assert (tmp_path / "gap" / "better.json").exists()
    code, text, _ = call("score", tmp_path / "gap" / "better.json", "--json")
    assert code == 0 and json.loads(text)["scores"]["latency"] == report["objective"]
    code, text, _ = call("resume", out, "-t", "5s")
    assert code == 0 and "nothing is left to do" in text
    hand = tmp_path / "hand.json"
    hand.write_text(json.dumps({"operators": {"matmul*": "fast", "*": "host"}}))
    code, text, _ = call("score", hand, *where, "--json")
    assert code == 0 and json.loads(text)["scores"]["latency"] >= report["objective"]
    hand.write_text(
        json.dumps({"device_placement": [{"device": "cpu", "node_type": "onnx.*", "onnx_node_name": ".*"}]})
    )
    code, text, _ = call("score", hand, *where, "--json")
    assert code == 0 and json.loads(text)["scores"]["latency"] <= on_host
    code, _, error = call("score", other)
    assert code == 2 and error.count("\n") == 1
    code, _, error = call("gap", other, *where, "--balance", "0.1")
    assert code == 2 and "for other answers" in error


def test_a_run_of_rules_alone_is_resumed_to_a_proof(answered: Path, call: Called, tmp_path: Path) -> None:
    """From the best rule's answer; programs, report and proof are those of the second run."""
    out = tmp_path / "out"
    where = (answered / "m.onnx", "-m", answered / "pair.toml", "--bind", "batch=32", "-t", LONG, "-o", out)
    code, _, _ = call("assign", *where, "--engines", "threshold,priority")
    first = json.loads((out / "report.json").read_text())
    assert code == 0 and first["status"] == "feasible" and first["bound"] is None
    code, _, error = call("resume", out, "-t", LONG)
    second = json.loads((out / "report.json").read_text())
    assert code == 0 and second["status"] == "optimal" and second["objective"] <= first["objective"], error
    assert second["inputs"] == first["inputs"] and second["run"] != first["run"]
    assert call("verify", out, "--bound")[0] == 0


def test_objectives_in_order_and_a_front(answered: Path, call: Called, tmp_path: Path) -> None:
    """The second objective keeps the first; every point of the front is recomputed from its file."""
    where = (answered / "m.onnx", "-m", answered / "pair.toml", "--bind", "batch=32", "-t", LONG)
    code, _, _ = call("assign", *where, "--objective", "energy,latency", "-o", tmp_path / "order")
    report = json.loads((tmp_path / "order" / "report.json").read_text())
    assert (
        code == 0
        and report["objective_name"] == "latency"
        and report["inputs"]["before"][0]["objective"] == "energy"
    )
    assert report["scores"]["energy"] == report["inputs"]["before"][0]["value"]
    code, text, _ = call("verify", tmp_path / "order", "--bound", "--trust-solver")
    assert code == 0 and "held energy" in text
    held = dict(report["inputs"]["before"][0], value=report["scores"]["energy"] - 1)
    forged = report | {"inputs": report["inputs"] | {"before": [held]}}
    (tmp_path / "order" / "report.json").write_text(json.dumps(forged))
    assert call("verify", tmp_path / "order")[0] in (1, 2)
    code, text, _ = call(
        "assign", *where, "--pareto", "latency,energy", "--points", 3, "-o", tmp_path / "front"
    )
    assert code == 0 and "point-1" in text
    assert call("verify", tmp_path / "front")[0] == 0
    assert call("verify", tmp_path / "front", "--bound", "--trust-solver")[0] == 0
    front = json.loads((tmp_path / "front" / "pareto.json").read_text())
    front["points"][0]["values"]["latency"] -= 1
    (tmp_path / "front" / "pareto.json").write_text(json.dumps(front))
    assert call("verify", tmp_path / "front")[0] == 1
    code, _, error = call("assign", *where, "--pareto", "latency", "-o", tmp_path / "x")
    assert code == 2 and "two, with a comma" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the processors are missing"),
        (("-m", "laptop-nup"), "laptop-npu (the nearest)"),
        (("-m", "PAIR", "--objective", "speed"), "unknown objective 'speed'"),
        (("-m", "PAIR", "--bind", "batch=0"), "batch"),
        (("-m", "PAIR", "--engines", "magic"), "unknown engine 'magic'"),
        (("-m", "PAIR", "--constraints", "missing.json"), "no such file"),
        (("-m", "PAIR", "--library", "missing.db"), "missing.db"),
        (("-m", "PAIR", "--warm-start", "missing.json"), "no such file"),
        (("-m", "PAIR", "--time-limit", "soon"), "time limit 'soon'"),
        (("-m", "PAIR", "--gap", "wide"), "gap 'wide'"),
    ],
)
def test_bad_options_are_one_line(
    answered: Path, call: Called, arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    told = [str(answered / "pair.toml") if a == "PAIR" else a for a in arguments]
    bind = () if "--bind" in told else ("--bind", "batch=32")
    code, _, error = call("assign", answered / "m.onnx", *bind, *told, "-o", tmp_path / "out")
    assert code == 2 and words in error and error.count("\n") == 1
    assert not (tmp_path / "out" / "report.json").exists()


def test_a_symbol_and_a_trip_count_without_a_value_are_named(
    answered: Path, call: Called, tmp_path: Path
) -> None:
    out = ("-o", tmp_path / "out")
    code, _, error = call("assign", answered / "m.onnx", "-m", answered / "pair.toml", *out)
    assert code == 2 and "--bind batch=" in error
    code, _, error = call("assign", LOOP, "-m", "laptop-npu", "--bind", "batch=1,width=16", *out)
    assert code == 2 and "--bind trips" in error and error.count("\n") == 1


def test_a_width_that_no_processor_has_is_named_with_the_operators(
    answered: Path, call: Called, tmp_path: Path
) -> None:
    machine = pair_machine(tmp_path / "half.toml", width="float16")
    code, _, error = call(
        "assign", answered / "m.onnx", "-m", machine, "--bind", "batch=32", "-o", tmp_path / "out"
    )
    assert code == 2 and "float32" in error and "'matmul0'" in error and error.count("\n") == 1


def test_what_fits_nowhere_and_pins_that_conflict_lead_to_explain(
    answered: Path, call: Called, tmp_path: Path
) -> None:
    """The command says so in a line; ``explain assign`` shows a smallest set of limits and exits with 4."""
    model, out, bind = answered / "m.onnx", ("-o", tmp_path / "out"), ("--bind", "batch=32")
    cases = {
        "small": {"memory": {"ram": 1000, "local": 1000}},
        "pins": {"pin": {"matmul0": "fast", "matmul1": "host"}, "together": [["matmul0", "matmul1"]]},
        "nowhere": {"pin": {"relu0": "host"}, "forbid": {"kind:Relu": ["host"]}},
    }
    for name, content in cases.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    for name, needed in (("small", 1), ("pins", 3), ("nowhere", 2)):
        told = ("-m", answered / "pair.toml", *bind, "-c", tmp_path / f"{name}.json")
        code, _, error = call("assign", model, *told, *out)
        assert code == 2 and "nmsolve explain assign" in error and error.count("\n") == 1
        code, text, _ = call("explain", "assign", model, *told, "--json")
        found = json.loads(text)
        assert code == 4 and found["status"] == "infeasible" and found["confirmed"], found
        assert len(found["conflict"]) >= needed and found["minimal"]
    (tmp_path / "fine.json").write_text(json.dumps({"pin": {"matmul0": "host"}}))
    told = ("-m", answered / "pair.toml", *bind, "-c", tmp_path / "fine.json")
    assert call("explain", "assign", model, *told, "-o", tmp_path / "a.json")[0] == 0
    code, text, _ = call("assign", model, *told, "-t", LONG, *out)
    file = json.loads((tmp_path / "out" / "assignment.json").read_text())
    assert code == 0 and file["processor"][file["operator"].index("matmul0")] == "host"


def test_a_small_memory_is_kept(answered: Path, call: Called, tmp_path: Path) -> None:
    """Two of three weights fit into the accelerator's memory beside the data."""
    machine = pair_machine(tmp_path / "tight.toml", local=2 * 4 * 256 * 256 + 5 * 4 * 32 * 256)
    out = tmp_path / "out"
    code, _, _ = call(
        "assign", answered / "m.onnx", "-m", machine, "--bind", "batch=32", "-t", LONG, "-o", out
    )
    report = json.loads((out / "report.json").read_text())
    file = json.loads((out / "assignment.json").read_text())
    on_host = [
        n
        for n, p in zip(file["operator"], file["processor"], strict=True)
        if p == "host" and n.startswith("matmul")
    ]
    assert code == 0 and len(on_host) == 1 and report["status"] == "optimal"
    memory = {m["name"]: m for m in report["memories"]}
    assert memory["local"]["peak"] <= memory["local"]["limit"]
    assert call("verify", out, "--bound", "--trust-solver")[0] == 0


@pytest.mark.parametrize("damage", ["text", "foreign", "negative"])
def test_a_library_that_is_none_is_refused(answered: Path, call: Called, damage: str, tmp_path: Path) -> None:
    """A text, the database of something else, a time below 0."""
    from nmsolve.hw.assignment.library import Library

    path = tmp_path / "lib.db"
    if damage == "text":
        path.write_text("no database at all" * 100)
    elif damage == "foreign":
        with sqlite3.connect(path) as file:
            file.execute("CREATE TABLE people (name TEXT)")
    else:
        Library(path, write=True).close()
        with sqlite3.connect(path) as file:
            columns = len(file.execute("PRAGMA table_info(entry)").fetchall())
            file.execute(f"INSERT INTO entry VALUES ({', '.join(['-1'] * columns)})")
    told = ("-m", answered / "pair.toml", "--bind", "batch=32", "--library", path, "-o", tmp_path / "out")
    code, _, error = call("assign", answered / "m.onnx", *told)
    assert code == 2 and "lib.db" in error and error.count("\n") == 1


def test_an_assignment_of_another_model_is_refused(answered: Path, call: Called, tmp_path: Path) -> None:
    model = small_model(tmp_path / "other.onnx", layers=4)
    start = answered / "out" / "assignment.json"
    told = ("-m", answered / "pair.toml", "--bind", "batch=32", "--warm-start", start, "-o", tmp_path / "out")
    code, _, error = call("assign", model, *told)
    assert code == 2 and "for another model" in error and error.count("\n") == 1


def test_run_without_the_runtime_names_the_extra(
    answered: Path, call: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    told = ("-m", answered / "pair.toml", "--bind", "batch=32", "--run", "-o", tmp_path / "out")
    code, _, error = call("assign", answered / "m.onnx", *told)
    assert code == 2 and "runtime" in error and error.count("\n") == 1


def test_the_programs_run_and_give_the_numbers_of_the_model(
    answered: Path, call: Called, tmp_path: Path
) -> None:
    """With three bindings of the batch; programs of an earlier answer are gone."""
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    (out / "programs").mkdir(parents=True)
    (out / "programs" / "00099-old.onnx").write_bytes(b"old")
    (out / "programs" / "mine.txt").write_text("of somebody else")
    told = ("-m", answered / "pair.toml", "--bind", "batch=32", "--run", "-t", LONG, "-o", out)
    code, text, _ = call("assign", answered / "m.onnx", *told)
    assert code == 0, text
    others = {"marked.onnx", "onnxruntime.txt", "onnx-mlir.json"}
    assert others <= {p.name for p in (out / "programs").iterdir()}
    assert (out / "programs" / "mine.txt").read_text() == "of somebody else"
    strange = [p.name for p in (out / "programs").iterdir() if not any(map(p.match, PARTS))]
    assert strange == ["mine.txt"]  # all others vanish with the next answer
    report = json.loads((out / "report.json").read_text())
    assert code == 0 and report["programs"]["pieces"] >= 2 and "Executed with batch=" in text
    assert report["programs"]["run"]["equal"] and len(report["programs"]["run"]["cases"]) == 3
    assert any(c["name"] == "programs" and c["ok"] for c in report["checks"])
    manifest = json.loads((out / "programs" / "manifest.json").read_text())
    files = {p["file"] for p in manifest["program"]["pieces"]}
    assert files == {p.name for p in (out / "programs").glob("0*.onnx")}
    assert "as one model" in (out / "report.html").read_text()


def test_a_makespan_has_an_order_and_a_schedule(answered: Path, call: Called, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = (
        "-m",
        answered / "pair.toml",
        "--bind",
        "batch=32",
        "--objective",
        "makespan",
        "-t",
        LONG,
        "-o",
        out,
    )
    code, _, _ = call("assign", answered / "m.onnx", *told)
    report, file = (json.loads((out / f"{name}.json").read_text()) for name in ("report", "assignment"))
    assert code == 0 and report["objective"] <= report["scores"]["latency"]
    assert sorted(file["order"]) == sorted(file["operator"])
    assert "schedule" in (out / "report.html").read_text()
    assert call("verify", out)[0] == 0
    turned = file | {"order": file["order"][::-1]}
    (out / "assignment.json").write_text(json.dumps(turned))
    code, text, _ = call("verify", out)
    assert code == 1 and "comes before" in text
