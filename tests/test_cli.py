"""The command line: map, score, verify, files, exit codes; as a process: start-up, streams, memory, interrupts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_support import run_here

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

NMSOLVE = [sys.executable, "-m", "nmsolve"]
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """``nmsolve ARGUMENTS`` in a process of its own; the exit code must be ``code``."""
    command = [*NMSOLVE, *(str(a) for a in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with one constraint of each kind, mapped for a few seconds: until a gap, so that time is left for the page."""
    out = tmp_path_factory.mktemp("cli") / "out"
    run(
        "map", EXAMPLES / "vision.json", "--machine", EXAMPLES / "board.toml", "--constraints",
        EXAMPLES / "constraints.json", "--time-limit", "60", "--gap", "80%", "--seed", "3", "--out", out,
    )  # fmt: skip
    return out


def test_map_writes_all_files(mapped: Path) -> None:
    """Mapping, events, report, certificates and page."""
    assert sorted(os.listdir(mapped)) == [
        "certificates.json", "events.jsonl", "mapping.json", "report.html", "report.json",
    ]  # fmt: skip


def test_mapping_json_holds_the_promised_columns(mapped: Path) -> None:
    """graph and machine by name and hash; node, row, col, chip as columns in input order."""
    mapping = json.loads((mapped / "mapping.json").read_text())
    nodes = [n["id"] for n in json.loads((EXAMPLES / "vision.json").read_text())["nodes"]]
    assert mapping["node"] == nodes
    assert set(mapping["graph"]) >= {"name", "hash"} and set(mapping["machine"]) >= {"name", "hash"}
    for row, col, chip in zip(mapping["row"], mapping["col"], mapping["chip"], strict=True):
        assert 0 <= row < 4 and 0 <= col < 8 and chip == col // 4
    at = dict(zip(nodes, zip(mapping["row"], mapping["col"], strict=True), strict=True))
    assert at["out0"] == (0, 0) and at["out2"] == at["out3"]
    assert len({at["fc0"], at["fc1"], at["fc2"]}) == 3
    assert all(at[f"camera{i}"][1] < 2 for i in range(4))
    assert (1, 2) not in at.values() and (0, 7) not in at.values()


def test_report_json_holds_the_promised_fields(mapped: Path) -> None:
    """The stable contract of report.json, with a gap that follows from its own figures."""
    report = json.loads((mapped / "report.json").read_text())
    for name in (
        "status", "stop_reason", "objective_name", "objective", "bound", "bound_scope", "gap", "placement_bound",
        "placement_gap", "scores", "wall_seconds", "cpu_seconds", "seed", "engines",
    ):  # fmt: skip
        assert name in report, name
    assert report["seed"] == 3 and report["objective_name"] == "hops"
    assert report["objective"] == report["scores"]["hops"]
    assert 0 < report["bound"] <= report["objective"]
    assert report["gap"] == pytest.approx((report["objective"] - report["bound"]) / report["objective"])
    assert report["checks"] and all(c["ok"] for c in report["checks"])


def test_verify_accepts_the_answer_with_its_bounds(mapped: Path) -> None:
    """From files alone, bounds included."""
    done = run_here("verify", mapped, "--bound", "--json", "--trust-solver")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["ok"] for line in lines)
    assert any("bound" in line["name"] for line in lines) and any(
        "deadlock" in line["name"] for line in lines
    )


@pytest.mark.parametrize("what", ["objective", "gap", "bound"])
def test_verify_rejects_a_report_that_claims_too_much(mapped: Path, tmp_path: Path, what: str) -> None:
    """A changed figure in report.json is found and named."""
    folder = copy(mapped, tmp_path)
    report = json.loads((folder / "report.json").read_text())
    report[what] = {"objective": report["objective"] - 1, "gap": 0.0, "bound": report["objective"]}[what]
    (folder / "report.json").write_text(json.dumps(report))
    done = run_here("verify", folder, "--bound", code=1)
    assert "FAILED" in done.stdout


@pytest.mark.parametrize(
    ("name", "value"),
    [("node_limit", "a"), ("machine", 7), ("chips", [1]), ("prohibit_turns", 4), ("graph", {})],
)
def test_a_report_with_inputs_of_a_wrong_type_is_refused(
    mapped: Path, tmp_path: Path, name: str, value: object
) -> None:
    """report.json is input like any other: one line, exit code 2, the field named."""
    folder = copy(mapped, tmp_path)
    report = json.loads((folder / "report.json").read_text())
    report["inputs"][name] = value
    (folder / "report.json").write_text(json.dumps(report))
    done = run_here("verify", folder, "--bound", code=2)
    assert len(done.stderr.splitlines()) == 1 and name in done.stderr


@pytest.mark.parametrize("name", ["mapping.json", "certificates.json"])
def test_files_of_different_runs_are_refused(mapped: Path, tmp_path: Path, name: str) -> None:
    """One line, exit code 2, the files and their runs named; every file of a run says which one it is of."""
    folder = copy(mapped, tmp_path)
    runs = {
        json.loads((folder / n).read_text())["run"]
        for n in ("mapping.json", "report.json", "certificates.json")
    }
    runs |= {json.loads((folder / "events.jsonl").read_text().splitlines()[0])["run"]}
    assert len(runs) == 1 and runs.pop() in (folder / "report.html").read_text()
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(content | {"run": "another"}))
    done = run_here("verify", folder, code=2)
    assert len(done.stderr.splitlines()) == 1 and "another" in done.stderr and name in done.stderr


def test_verify_rejects_a_mapping_that_breaks_a_rule(mapped: Path, tmp_path: Path) -> None:
    """A node moved off its pin is named with the constraint."""
    folder = copy(mapped, tmp_path)
    mapping = json.loads((folder / "mapping.json").read_text())
    mapping["col"][mapping["node"].index("out0")] = 3
    (folder / "mapping.json").write_text(json.dumps(mapping))
    assert "readout by the host port" in run_here("verify", folder, code=1).stdout


def test_score_recomputes_every_objective(mapped: Path) -> None:
    """The same figures as in the report, from the files alone."""
    done = run_here("score", mapped, "--json")
    scores = json.loads(done.stdout)["scores"]
    assert scores == json.loads((mapped / "report.json").read_text())["scores"]


def copy(folder: Path, to: Path) -> Path:
    """A copy of an output folder that may be spoilt."""
    for name in os.listdir(folder):
        (to / name).write_bytes((folder / name).read_bytes())
    return to


def test_the_page_needs_no_network_and_draws_everything(mapped: Path) -> None:
    """One file: board and pictures inside, no reference to anything outside (tests/test_explorer.py watches a browser)."""
    page = (mapped / "report.html").read_text()
    assert page.count("<svg") == 1 and 'id="explorer-data"' in page
    assert not any(word in page for word in ("<script src", "<link", 'src="http', "url(http"))


def test_json_lines_are_typed_and_alone_on_stdout(tmp_path: Path) -> None:
    """One JSON object per line; the table goes to stderr."""
    done = run(
        "map", EXAMPLES / "vision.json", "--machine", EXAMPLES / "board.toml", "--time-limit", "2", "--json",
        "--out", tmp_path / "o",
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [line["type"] for line in lines]
    assert kinds[0] == "start" and kinds[-1] == "result" and "incumbent" in kinds
    assert "incumbent" in done.stderr and "bound" in done.stderr
    values = [line["objective"] for line in lines if line["type"] == "incumbent"]
    assert values == sorted(values, reverse=True)


def test_an_asked_gap_that_is_not_reached_gives_exit_code_3(tmp_path: Path) -> None:
    """0 would tell a script that the wish was met."""
    run(
        "map", EXAMPLES / "vision.json", "--machine", EXAMPLES / "board.toml", "--time-limit", "1", "--gap", "0.1%",
        "--engines", "first-fit,star", "--out", tmp_path / "o", code=3,
    )  # fmt: skip


def test_a_time_limit_of_a_tenth_of_a_second_still_gives_an_answer(tmp_path: Path) -> None:
    """Something feasible is found at once and says honestly how good it is."""
    run(
        "map",
        EXAMPLES / "vision.json",
        "--machine",
        EXAMPLES / "board.toml",
        "--time-limit",
        "0.1",
        "--out",
        tmp_path,
    )
    assert json.loads((tmp_path / "report.json").read_text())["status"] in ("feasible", "optimal")


def test_ctrl_c_gives_the_best_answer_so_far(tmp_path: Path) -> None:
    """The first interrupt ends the search; everything is written."""
    run_here("generate", "mesh-comm", "--nodes", "64", "--side", "8", "--out", tmp_path / "g.json")
    command = [*NMSOLVE, "map", str(tmp_path / "g.json"), "--time-limit", "60", "--out", str(tmp_path / "o")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "*" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    report = json.loads((tmp_path / "o" / "report.json").read_text())
    assert report["stop_reason"] == "interrupt" and report["objective"] is not None


def children_of(pid: int) -> list[int]:
    """Direct children of a process, from /proc."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(p) for p in path.read_text().split()] if path.exists() else []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_kill_9_of_a_solver_child_costs_nothing_but_its_proof(tmp_path: Path) -> None:
    """The answer found before survives, and the report says what happened."""
    run_here("generate", "mesh-comm", "--nodes", "24", "--side", "5", "--out", tmp_path / "g.json")
    command = [
        *NMSOLVE, "map", str(tmp_path / "g.json"), "--time-limit", "12", "--engines", "anneal,cpsat", "--out",
        str(tmp_path / "o"),
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not children_of(process.pid) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    victims = children_of(process.pid)
    assert victims
    time.sleep(0.5)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    report = json.loads((tmp_path / "o" / "report.json").read_text())
    assert report["objective"] is not None
    share = next(e for e in report["engines"] if e["engine"] == "cpsat")
    assert "killed" in share["status"] or "died" in share["status"], share


def test_too_little_memory_is_refused_with_the_least_that_works(tmp_path: Path) -> None:
    """One line, nothing written; the budget that the line names is enough."""
    run_here("generate", "mesh-comm", "--nodes", "24", "--side", "5", "--out", tmp_path / "g.json")
    words = ("map", tmp_path / "g.json", "--time-limit", "1", "--out", tmp_path / "o", "--memory")
    refused = run(*words, "60MiB", code=2)
    assert refused.stderr.count("\n") == 1 and not (tmp_path / "o" / "report.json").exists()
    least = re.search(r"at least (\d+MiB)", refused.stderr)
    assert least is not None, refused.stderr
    run(*words, least[1])
    memory = json.loads((tmp_path / "o" / "report.json").read_text())["memory"]
    assert 0 < memory["peak"] <= memory["budget"] == int(least[1][:-3]) * 2**20


def test_convert_round_trip_keeps_the_graph(tmp_path: Path) -> None:
    """JSON to NumPy file and back is the same graph, by hash."""
    run_here("convert", EXAMPLES / "vision.json", tmp_path / "a.npz")
    run_here("convert", tmp_path / "a.npz", tmp_path / "b.json")
    hashes = [
        json.loads(run_here("info", p, "--json").stdout)["hash"]
        for p in (EXAMPLES / "vision.json", tmp_path / "b.json")
    ]
    assert hashes[0] == hashes[1]


def test_hw_show_marks_unverified_figures() -> None:
    """A figure nobody read at its source says so."""
    listed = [json.loads(line) for line in run_here("hw", "list", "--json").stdout.splitlines()]
    assert {row["name"] for row in listed} >= {
        "loihi1", "loihi2", "truenorth", "spinnaker1", "spinnaker2", "tianjic", "darwin3", "wormhole",
        "blackhole", "vc1902", "ve2802",
    }  # fmt: skip
    assert any("unverified" in run_here("hw", "show", row["name"]).stdout for row in listed)


def test_the_exact_models_can_be_written_out(tmp_path: Path) -> None:
    """LP, MPS and CP-SAT proto of what is solved."""
    run_here("generate", "mesh-comm", "--nodes", "8", "--side", "3", "--out", tmp_path / "g.json")
    run_here(
        "map",
        tmp_path / "g.json",
        "--time-limit",
        "20",
        "--write-model",
        tmp_path / "m",
        "--out",
        tmp_path / "o",
    )
    suffixes = {p.suffix for p in (tmp_path / "m").iterdir()}
    assert suffixes >= {".lp", ".mps"} and len(suffixes) >= 3
    assert json.loads((tmp_path / "o" / "report.json").read_text())["status"] == "optimal"


def test_doctor_finds_nothing_wrong() -> None:
    """Everything the base install needs is here and loads."""
    rows = [json.loads(line) for line in run_here("doctor", "--json").stdout.splitlines()]
    assert all(row["ok"] for row in rows)


def test_a_bound_on_a_word_ends_with_its_own_code_and_unknown_names_are_refused(
    mapped: Path, tmp_path: Path
) -> None:
    """``my-blog`` proves nothing; CP-SAT's word is called one; without --bound nothing is said to be proved."""
    folder = copy(mapped, tmp_path)
    report = json.loads((folder / "report.json").read_text())
    objective = report["objective"]
    word = {"method": "cpsat", "scope": "full", "value": objective, "certificate": {"status": "optimal"}}
    proofs = json.loads((folder / "certificates.json").read_text())
    forged = report | {"status": "optimal", "bound": objective, "gap": 0.0}
    (folder / "report.json").write_text(json.dumps(forged))
    for method, code in (("cpsat", 6), ("my-blog", 1), ("pipeline-cpsat", 1), ("STAR", 1)):
        rows = [b for b in proofs["bounds"] if b["method"] != "cpsat"] + [word | {"method": method}]
        (folder / "certificates.json").write_text(json.dumps(proofs | {"bounds": rows}))
        said = [{k: b[k] for k in ("method", "scope", "value")} for b in rows]
        (folder / "report.json").write_text(json.dumps(forged | {"bounds": said}))
        text = run_here("verify", folder, "--bound", code=code).stdout
        assert code == 1 or "full bound: not proved here; rests on the word of cpsat" in text
        run_here("verify", folder, "--bound", "--trust-solver", code=0 if code == 6 else 1)
    rows = [b for b in proofs["bounds"] if b["method"] != "cpsat"] + [word]
    (folder / "certificates.json").write_text(json.dumps(proofs | {"bounds": rows, "problem": "0" * 16}))
    assert "given about problem 0000" in run_here("verify", folder, "--bound", code=1).stdout
    (folder / "certificates.json").write_text(json.dumps(proofs))
    text = run_here("verify", folder).stdout
    assert "only claimed, not looked at here" in text and "full bound" not in text


def test_claims_that_do_not_follow_from_figures_are_refused(mapped: Path, tmp_path: Path) -> None:
    """One line, exit code 1, with and without --bound."""
    folder = copy(mapped, tmp_path)
    report = json.loads((folder / "report.json").read_text())
    value = report["objective"]
    for change in (
        {"placement_bound": None, "placement_gap": 0.0}, {"bound": None, "gap": 0.5}, {"status": "splendid"}, {"status": 3},
        {"status": "optimal", "bound": value * (1 - 1e-7), "gap": 1e-7}, {"bound": -1.0, "gap": (value + 1) / value},
        {"bound": "0", "gap": None}, {"bound": 10**400, "gap": 0.0}, {"placement_bound": -1.0},
        {"graph": report["graph"] | {"hash": "0" * 16}}, {"machine": {}}, {"status": "infeasible"},
    ):  # fmt: skip
        (folder / "report.json").write_text(json.dumps(report | change))
        assert "FAILED" in run_here("verify", folder, code=1).stdout, change
