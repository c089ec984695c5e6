"""One signal ends the whole run, whatever stage it is in: the best answer, files that verify accepts, within about a second."""

from __future__ import annotations

import contextlib
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
from test_cli import NMSOLVE
from test_cli_pipeline import cost_graph
from test_search_child import children_of, wait_until_gone

from nmsolve.cli import main as main_module
from nmsolve.kinds.time_left import OutOfTime

#: Seconds between a signal and the end, without those in which the process or its children (the page is drawn in one) waited for
#: a processor: one is promised, the rest is for slow processors.
PROMISE = 3.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network, a smaller one, and a mapping."""
    path = tmp_path_factory.mktemp("signals")
    run_here(
        "generate", "snn", "--nodes", "400", "--synapses", "3000", "--layers", "4", "--out", path / "net.json"
    )
    run_here("generate", "mesh-comm", "--nodes", "16", "--side", "4", "--out", path / "tiny.json")
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
    cost_graph(path / "diamond.json")
    return path


def waited(pid: int) -> float:
    """Seconds that the first thread of a process was ready to run and had to wait."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):  # gone, or another kernel
        return 0.0


def interrupted(
    folder: Path, words: str, after: str, number: signal.Signals, wait: float
) -> tuple[int, str, float]:
    """Run a command, send a signal ``wait`` seconds after it said ``after``: exit code, all it said, seconds to its end."""
    with subprocess.Popen(
        [*NMSOLVE, *words.split()], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if re.search(after, line):
                break
        time.sleep(wait)
        kids = children_of(process.pid)
        ids = [process.pid, *kids]
        before = {k: waited(k) for k in ids}
        begun, after_signal = time.monotonic(), dict(before)
        process.send_signal(number)
        while process.poll() is None:
            ids = [process.pid, *children_of(process.pid)]
            after_signal |= {k: seconds for k in ids if (seconds := waited(k))}
            time.sleep(0.02)
        lost = sum(seconds - before.get(k, 0.0) for k, seconds in after_signal.items())
        spent = time.monotonic() - begun - lost
        said += process.stdout.read()
    wait_until_gone(kids)
    return process.returncode, said, spent


@pytest.mark.parametrize(
    ("words", "after", "number"),
    [
        ("map net.json -m mesh:6x6 -t 60 -o out", "incumbent", signal.SIGINT),
        ("map net.json -m mesh:6x6 -t 60 --workers 2 -o out", "incumbent", signal.SIGHUP),
        ("map net.json -m mesh:6x6 -t 60 --objective hops,max-link -o out", "hops: ", signal.SIGTERM),
        ("map net.json -m mesh:6x6 -t 20 --pareto hops,max-link --points 4 -o out", "max-link with", signal.SIGINT),
        ("map net.json -m mesh:6x6 -t 20 --engines first-fit --route chosen -o out", r"routes \(chosen\)", signal.SIGINT),
        ("map net.json -m mesh:6x6 -t 20 --objective max-link --route chosen -o out", "in-turns", signal.SIGINT),
        ("map tiny.json -m mesh:4x4 -t 60 --route joint --objective max-link -o out", "incumbent", signal.SIGTERM),
        ("gap mapped -t 60 -o out", "bound", signal.SIGINT),
        ("route mapped -t 60 -o out", "incumbent", signal.SIGTERM),
    ],
)  # fmt: skip
def test_a_signal_ends_the_run_with_its_best_answer(
    folder: Path, words: str, after: str, number: signal.Signals
) -> None:
    """In the search of any stage."""
    code, said, spent = interrupted(folder, words, after, number, 0.3)
    assert code == 0 and "Traceback" not in said, said
    assert spent < PROMISE, (spent, said)
    target = ["mapped", "--routes", folder / "out/flow-routes.json"] if words.startswith("route") else ["out"]
    with contextlib.chdir(folder):
        run_here("verify", *target)


def test_a_signal_ends_what_else_takes_time(folder: Path) -> None:
    """Trials, simulated loads."""
    code, said, spent = interrupted(
        folder, "faults mapped --links 1 --trials 100000 -o f", "of 100000", signal.SIGINT, 0.1
    )
    assert (
        code == 0
        and spent < PROMISE
        and json.loads((folder / "f/faults.json").read_text())["stop_reason"] == "interrupt"
    )
    code, said, spent = interrupted(
        folder, "simulate mapped --sweep -t 60 --cycles 2000000 -o s", "cycle", signal.SIGHUP, 0.1
    )
    assert code == 0 and spent < PROMISE and (folder / "s/simulation.json").exists(), said


def test_a_signal_before_there_is_anything_is_130(folder: Path) -> None:
    """While files are read and where a command has no answer but the whole one: no traceback, nothing left behind."""
    for words in (
        "generate snn --nodes 60000 --synapses 6000000 --out big.json",
        "convert net.json big.json",
    ):
        with subprocess.Popen(
            [*NMSOLVE, *words.split()],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            time.sleep(0.05 if "convert" in words else 1.0)
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=60)
        if process.returncode in (-signal.SIGTERM, 0):  # before Python listened, or already done
            continue
        assert process.returncode == 130 and "Traceback" not in said, said
        assert not (folder / "big.json").exists()
        assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.mark.parametrize(
    "words",
    [
        "map tiny.json -m mesh:4x4 -t 60 --engines cpsat -o killed",
        "map net.json -m mesh:6x6 -t 60 --workers 2 -o killed",
        "pipeline diamond.json --cores 4 -t 60 --engines pipeline-cpsat -o killed",
    ],
)
def test_a_killed_command_leaves_no_process(folder: Path, words: str) -> None:
    """SIGKILL, of which nobody hears: children of solvers end by themselves."""
    with subprocess.Popen(
        [*NMSOLVE, *words.split()], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        kids: list[int] = []
        while process.poll() is None and not kids:
            kids = children_of(process.pid)
            time.sleep(0.01)
        assert kids, "it ended before it started a child"
        process.kill()
    wait_until_gone(kids)


def test_what_a_signal_does_to_clearing_away_is_not_told() -> None:
    """A compiler's object that was never given its pointer complains when it is collected, and the end of the time may come in
    the middle of collecting; other complaints are told."""

    class Half:
        def __init__(self, missing: str) -> None:
            self.missing = missing

        def __del__(self) -> None:
            if self.missing == "time":
                raise OutOfTime
            getattr(self, self.missing)

    told: list[object] = []
    hook, sys.unraisablehook = sys.unraisablehook, told.append
    try:
        with main_module._listening():
            Half("_as_parameter_")
            Half("time")
            assert not told
            Half("name")
            assert len(told) == 1
        Half("_as_parameter_")
        assert len(told) == 2
    finally:
        sys.unraisablehook = hook
