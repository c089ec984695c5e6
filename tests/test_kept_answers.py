"""From the first incumbent on the answer is on disk, whatever ends the process; every kind of problem."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assignments_support import pair_machine, small_model
from command_support import run_here
from search_fakes import Script, value
from test_cli import NMSOLVE
from test_cli_pipeline import cost_graph
from test_run import Toy

from nmsolve.model.bound import RUNNING
from nmsolve.model.errors import BackendError
from nmsolve.solvers.run import Options, solve
from nmsolve.solvers.search.portfolio import Step

#: Seconds after which a command that has written nothing is given up.
LONGEST = 120.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A problem of each kind that a minute does not solve."""
    path = tmp_path_factory.mktemp("kept")
    run_here(
        "generate", "snn", "--nodes", "400", "--synapses", "3000", "--layers", "4", "--out", path / "net.json"
    )
    run_here(
        "map",
        path / "net.json",
        "-m",
        "mesh:4x4",
        "-t",
        "20",
        "--engines",
        "first-fit",
        "-o",
        path / "mapped",
    )
    run_here("generate", "tasks", "--out", path / "tasks.json")
    rng = np.random.default_rng(1)
    cost_graph(
        path / "layers.json", maxFPGAs=8, edges=[
            {"sourceId": a, "destId": b, "cost": (a % 7) / 8, "size": 8.0}
            for a in range(60) for b in rng.choice(range(a + 1, 61), min(4, 60 - a), replace=False).tolist()
        ], nodes=[
            {"id": k, "supportedOnFpga": 1, "cpuLatency": 99.0, "fpgaLatency": float(rng.random()), "isBackwardNode": 0,
             "size": 4.0}
            for k in range(61)
        ],
    )  # fmt: skip
    pairs = rng.choice(120, (2000, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    nodes = {
        "intervals": [[0, 10]] * 120, "costs": rng.integers(0, 99, (120, 8)).tolist(), "usages": [[1] * 8] * 120
    }  # fmt: skip
    edges = {"nodes": pairs.tolist(), "costs": rng.integers(0, 99, (len(pairs), 64)).tolist()}
    problem = {"name": "random", "nodes": nodes, "edges": edges, "usage_limit": 500}
    (path / "strategies.json").write_text(json.dumps({"problem": problem}))
    small_model(path / "m.onnx", layers=60, width=64)
    pair_machine(path / "pair.toml")
    return path


def ended_by(
    folder: Path, words: str, file: str, kill: Callable[[subprocess.Popen[str]], None]
) -> tuple[int, str]:
    """Run a command, end it once ``file`` is there: exit code, and all that it printed."""
    with subprocess.Popen(
        [*NMSOLVE, *words.split()], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        end = time.monotonic() + LONGEST
        while not (folder / file).exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        kill(process)
        assert process.stdout is not None
        return process.wait(), process.stdout.read()


COMMANDS = [
    ("map net.json -m mesh:6x6 -t 60 -o m", "m/mapping.json"),
    ("map net.json -m mesh:6x6 -t 60 --objective hops,max-link -o o", "o/mapping.json"),
    ("route mapped -t 60 -o r", "r/flow-routes.json"),
    ("schedule tasks.json -t 60 -o s", "s/schedule.json"),
    ("schedule tasks.json -t 60 --objective makespan,energy -o t", "t/schedule.json"),
    ("pipeline layers.json --split any -t 60 -o p", "p/plan.json"),
    ("assign strategies.json -t 60 -o a", "a/assignment.json"),
    (
        "assign m.onnx -m pair.toml --bind batch=32 -t 60 --objective makespan,energy -o b",
        "b/assignment.json",
    ),
]


@pytest.mark.parametrize(("words", "file"), COMMANDS)
def test_a_killed_search_leaves_an_answer_that_verify_accepts(folder: Path, words: str, file: str) -> None:
    code, said = ended_by(folder, words, file, subprocess.Popen.kill)
    assert code == -signal.SIGKILL and "Traceback" not in said, said
    report = next(p for p in (folder / file).parent.glob("*report.json"))
    assert json.loads(report.read_text())["stop_reason"] == RUNNING
    with contextlib.chdir(folder):
        run_here(
            "verify", *(["mapped", "--routes", file] if words.startswith("route") else [Path(file).parent])
        )


def test_a_second_signal_ends_at_once_and_leaves_the_answer(folder: Path) -> None:
    """The first says what happens."""

    def twice(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)

    code, said = ended_by(folder, "map net.json -m mesh:6x6 -t 60 -o twice", "twice/mapping.json", twice)
    assert "stopping: the best answer so far is written" in said and "Traceback" not in said, said
    assert code in (0, 130), said
    with contextlib.chdir(folder):
        run_here("verify", "twice")


class Steps(Toy):
    """An engine for every line; the run looks what is new between two of them."""

    def start(self, run):
        run.incumbent.offer("start", value(20), "given")
        return [Step(Script((line,), name=f"script{k}")) for k, line in enumerate(self.lines)]


class Ends(Steps):
    """Is ended when the search is over."""

    def finish(self, run):
        raise KeyboardInterrupt


def test_the_first_answer_is_handed_over_at_once_and_better_ones_at_a_pace() -> None:
    found: list[Any] = []
    result = solve(Steps("sleep 0", "offer 18", "offer 16"), Options(time_limit=5.0, keep=found.append))
    (first,) = found
    assert (first.stop_reason, first.status, first.objective, first.solution) == (
        RUNNING,
        "feasible",
        20,
        [20, 0, 0],
    )
    assert first.scores == {"sum": 20.0, "numbers": 3.0} and result.objective == 16


def test_what_is_newer_is_handed_over_before_a_signal_ends_everything() -> None:
    found: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        solve(Ends("sleep 0", "offer 18", "offer 16"), Options(time_limit=5.0, keep=found.append))
    assert [r.objective for r in found] == [20, 16]


def test_an_answer_that_cannot_be_written_costs_a_note_and_no_search() -> None:
    def fails(result: Any) -> None:
        raise BackendError("the disk is full")

    result = solve(Steps("sleep 0", "offer 18"), Options(time_limit=5.0, keep=fails))
    assert result.objective == 18
    assert len([e for e in result.events if "the disk is full" in e.text]) == 1
