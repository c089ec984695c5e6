"""``nmsolve bench`` as a process: runs, kills, restarts, interrupts, bad input."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmsolve.benchmarks import runner
from nmsolve.benchmarks.run import BenchOptions, run_bench
from nmsolve.benchmarks.runner import BenchTask, Process, carry_out
from nmsolve.benchmarks.store import Key, Outcome
from nmsolve.benchmarks.suites import find_suite, load_suite
from nmsolve.model.errors import InputError

BENCH = [sys.executable, "-m", "nmsolve", "bench"]


def suite(tmp_path: Path) -> Path:
    """Two random placement problems of six nodes, which branch and bound proves in no time."""
    out = tmp_path / "own"
    out.mkdir()
    rng = np.random.default_rng(7)
    for name in "ab":
        matrices = [rng.integers(0, 9, (6, 6)) for _ in range(2)]
        for m in matrices:
            np.fill_diagonal(m, 0)
        rows = "\n".join(" ".join(map(str, row)) for m in matrices for row in (m + m.T).tolist())
        (out / f"{name}.dat").write_text(f"6\n{rows}\n")
    (out / "best_known.csv").write_text("name,best_known\na,1\n")
    return out


def options(folder: Path, out: Path) -> list[str]:
    """Two runs that end by themselves with the same answer every time, and two that are refused."""
    return [str(folder), "--methods", "branch-bound,joint", "--seeds", "1", "-t", "60", "--out", str(out)]


def children(pid: int) -> list[int]:
    """Processes started by ``pid``."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(pid: int) -> bool:
    """True if the process still runs after five seconds (a zombie does not); one that was just starting may need them."""
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except OSError:
            return False
        time.sleep(0.1)
    return True


def begin(folder: Path, out: Path) -> subprocess.Popen[str]:
    """Start a benchmark in a process group of its own and wait until its first run is in the store."""
    process = subprocess.Popen(
        [*BENCH, *options(folder, out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("["):
            break
    return process


def without_times(text: str) -> str:
    """A page without the tables that no two runs share."""
    return text[: text.index("### Times")]


def test_killed_at_a_random_moment_and_restarted_gives_the_same_table(tmp_path: Path) -> None:
    """SIGKILL while the second run goes on, or just after: nothing is lost, doubled or left running."""
    folder = suite(tmp_path)
    whole = subprocess.run(
        [*BENCH, *options(folder, tmp_path / "whole"), "--json"], capture_output=True, text=True
    )
    assert whole.returncode == 0, whole.stderr
    lines = [json.loads(line) for line in whole.stdout.splitlines()]
    runs = [line for line in lines if line["type"] == "run"]
    assert [(r["instance"], r["seed"], r["status"]) for r in runs] == [(i, 1, "optimal") for i in "ab"]
    assert all(min(r["cpu"], r["wall"]) > 0 and r["objective"] == r["bound"] for r in runs)
    assert lines[-1]["type"] == "summary"

    process = begin(folder, tmp_path / "cut")
    time.sleep(random.random())
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    again = subprocess.run([*BENCH, *options(folder, tmp_path / "cut")], capture_output=True, text=True)
    assert again.returncode == 0 and "runs are in" in again.stderr, again.stderr
    assert not any(alive(pid) for pid in workers)
    pages = [(tmp_path / d / "table.md").read_text() for d in ("whole", "cut")]
    assert without_times(pages[0]) == without_times(pages[1])
    assert "refused: it does not support one node per core" in pages[0]
    with sqlite3.connect(tmp_path / "cut" / "results.sqlite") as db:
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (4,)


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    """Exit code 130, no run half done in the store, no process left."""
    process = begin(suite(tmp_path), tmp_path / "out")
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "the same command continues from there" in errors, errors
    assert "Traceback" not in errors and not any(alive(pid) for pid in workers)
    assert "runs are not done yet" in (tmp_path / "out" / "table.md").read_text()
    assert "runs are not done yet" in (tmp_path / "out" / "report.html").read_text()
    with sqlite3.connect(tmp_path / "out" / "results.sqlite") as db:
        assert all(
            s == "optimal" for (s,) in db.execute("SELECT status FROM runs WHERE method = 'branch-bound'")
        )


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    """Exit code 2 before any run, with the nearest name."""
    out = ("--out", str(tmp_path / "o"))
    done = subprocess.run([*BENCH, "qaplb", *out], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "no suite or folder 'qaplb'" in done.stderr and "did you mean qaplib" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": "aneal"}, "unknown engine 'aneal'.*did you mean 'anneal'"),
        ({"methods": "auto,star+aneal"}, "unknown engine 'aneal'"),
        ({"methods": ","}, "no method is given"),
        ({"workers": 9999}, "9999 runs at a time on"),
        ({"only": "zzz"}, "no instance is called 'zzz'.*nug12"),
        ({"time_limit": "soon"}, "time limit 'soon'"),
        ({"suites": ["qaplib", "OWN"]}, "no suite or folder 'OWN'"),
        ({"page": Path("no/such/page.md")}, "no/such: there is no such folder"),
    ],
)
def test_bad_options_are_refused_before_any_run(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """Nothing is run, whatever else is right."""
    fine = BenchOptions(["qaplib"], seeds=1, time_limit="9", out=tmp_path / "o")
    with pytest.raises(InputError, match=message):
        run_bench(replace(fine, **change))
    assert not (tmp_path / "o").exists()


def test_only_one_benchmark_at_a_time_uses_a_folder(tmp_path: Path) -> None:
    """Two would do every run twice."""
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    options = BenchOptions(["qaplib"], seeds=1, time_limit="9", out=tmp_path)
    with pytest.raises(InputError, match="another benchmark is running"):
        run_bench(options)
    os.close(handle)


def finish(process: Process) -> Outcome:
    """Wait for the end of a run."""
    while True:
        outcome = process.outcome()
        if outcome is not None:
            return outcome
        time.sleep(0.02)


def test_a_run_that_cannot_end_well_fails_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph file that is gone, a process that is killed from outside, one that overruns its limit."""
    (one,) = load_suite(find_suite("qaplib", None), "nug12", {}, tmp_path)
    key = Key("s", "a", one.problem.hash, "branch-bound", 1, 60.0, "v", "m")
    gone = finish(Process(BenchTask(key, replace(one, options={"graph": str(tmp_path / "gone.dat")}))))
    assert gone.status == "failed" and "gone.dat: no such file" in gone.text and gone.cpu > 0
    killed = Process(BenchTask(key, one))
    os.kill(killed.pid, signal.SIGKILL)
    assert finish(killed).text == "killed by SIGKILL"
    monkeypatch.setattr(runner, "GRACE", 0.0)
    late = finish(Process(BenchTask(replace(key, limit=0.01), one)))
    assert late.status == "failed" and "it overran its limit" in late.text and not late.solved


class Fake(Process):
    """A run that takes a number of polls and records when it was killed."""

    def __init__(self, task: BenchTask, log: list[str]) -> None:
        self.task, self._log, self._polls = task, log, task.key.seed
        log.append(f"start {task.key.seed}")

    def outcome(self) -> Outcome | None:
        self._polls -= 1
        return Outcome("unknown") if self._polls < 0 else None

    def kill(self) -> None:
        self._log.append(f"kill {self.task.key.seed}")


def test_so_many_at_a_time_and_none_left_behind(tmp_path: Path) -> None:
    """Runs start in order as places become free; what goes on when the caller stops is killed."""
    (one,) = load_suite(find_suite("qaplib", None), "nug12", {}, tmp_path)
    tasks = [BenchTask(Key("s", "a", "h", "auto", seed, 1.0, "v", "m"), one) for seed in (4, 1, 2, 50)]
    log: list[str] = []
    runs = carry_out(tasks, 2, lambda task: Fake(task, log))
    assert [next(runs)[0].key.seed for _ in range(2)] == [1, 4]
    runs.close()
    assert log == ["start 4", "start 1", "start 2", "kill 2"]


def test_a_folder_may_hold_other_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They are named and left out; a file that is asked for by itself is refused, and so is a folder without instances."""
    folder, keep = suite(tmp_path), tmp_path / "kept"
    (folder / "README.md").write_text("two instances\n")
    (folder / "table.csv").write_text("name,cycles\na,b,c\n")
    given = {"machine": "mesh:2x3"}
    found = load_suite(find_suite(str(folder), None), None, given, keep)
    told = capfd.readouterr().err
    assert [one.name for one in found] == ["a", "b"]
    assert "skipped, by their names: README.md" in told and "table.csv" in told and told.count("\n") == 2
    with pytest.raises(InputError, match=r"table\.csv"):
        load_suite(find_suite(str(folder / "table.csv"), None), None, given, keep)
    for name in "ab":
        (folder / f"{name}.dat").unlink()
    with pytest.raises(InputError, match="no instances"):
        load_suite(find_suite(str(folder), None), None, given, keep)
