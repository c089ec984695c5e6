"""Compiling kernels costs no search time: the clock of time limits stands still, here and in children, and a person is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from nmsolve.kinds import waiting
from nmsolve.model import clock
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.generators import generate_file

#: Seconds that a clock which stands still may be read to go on by, on a slow machine.
SLACK = 0.05


def fresh(make=kernel):
    """Return a kernel that nobody has compiled, and that is not cached: it calls another one."""

    def inner(x):
        return np.sort(x)[0]

    inner = make(inner)

    def outer(x):
        return inner(x) + 1.0

    return make(outer)


def test_compiling_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The clock stands still while a kernel and what it calls are compiled, and goes on afterwards."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    kernel(lambda x: x)(1.0)  # numba itself is loaded
    run, told = fresh(), []
    monkeypatch.setattr(clock, "watchers", [told.append])
    wall, before, stood = time.monotonic(), clock.now(), clock.stood()
    run(np.arange(3.0))
    wall = time.monotonic() - wall
    assert wall > 5 * SLACK, "there was nothing to compile"
    assert clock.stood() - stood == pytest.approx(wall, abs=SLACK)
    assert clock.now() - before < SLACK
    assert told == [True, False]
    before = clock.now()
    run(np.arange(3.0))
    time.sleep(0.1)
    assert clock.now() - before >= 0.1


def test_holds_are_counted() -> None:
    """It goes on when the last of several has ended; seconds that others report are left out, too."""
    before = clock.now()
    clock.hold()
    clock.hold()
    assert clock.now() == clock.now()
    clock.go_on()
    still = clock.now()
    time.sleep(0.02)
    assert clock.now() == still
    clock.go_on()
    assert before <= clock.now() < before + SLACK
    clock.skip(3.0)
    assert clock.now() < before - 2.9
    clock.skip(-3.0)


def test_other_threads_see_it_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """What shows progress reads the clock while the search compiles."""
    seen = []
    clock.hold()
    thread = threading.Thread(
        target=lambda: seen.extend((clock.now(), time.sleep(0.05), clock.now(), clock.stood()))
    )
    thread.start()
    thread.join()
    stood = clock.stood()
    clock.go_on()
    assert seen[0] == seen[2]
    assert seen[3] <= stood


def test_a_cold_run_gives_the_answer_of_a_warm_one(tmp_path: Path) -> None:
    """Without a cache the same command, here and in a second process, finds as good a mapping within the same limit, and says
    why it took longer.
    """
    graph = tmp_path / "g.json"
    generate_file("mesh-comm", graph, 3, nodes=49)
    found = []
    for name in ("cold", "warm"):
        out = tmp_path / name
        command = (
            f"map {graph} --machine mesh:7x7 --engines first-fit,anneal -t 20 --workers 2 --json --out {out}"
        )
        done = subprocess.run(
            [sys.executable, "-m", "nmsolve", *command.split()],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        notes = [e["text"] for e in events if e.get("type") == "note" and "compiled kernels" in e["text"]]
        assert len(notes) == (name == "cold")
        report = json.loads((out / "report.json").read_text())
        assert report["wall_seconds"] < 20.5
        assert set(report["not_checked"]) <= {
            "deadlock freedom",
            "routes",
        }  # a busy machine leaves the last checks out
        found.append(report["objective"])
    assert found[0] == pytest.approx(found[1], rel=0.1)  # a first fit alone has more than twice as much


def test_kernels_without_arrays_count_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every kind of kernel holds the clock."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    stood = clock.stood()
    assert plain(lambda x: x * 2.0 + 1.0)(2.0) == 5.0
    assert clock.stood() > stood


def test_a_person_is_told_what_a_command_waits_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """On standard error, from a second on, by the table of progress while there is one; nothing of what is over sooner."""
    monkeypatch.setattr(waiting, "LONG", 0.3)
    monkeypatch.setattr(waiting, "AGAIN", 60.0)
    told: list[str] = []
    for seconds, tellers in ((0.0, ()), (1.0, ()), (1.0, (told.append,))):
        with waiting.telling(), ExitStack() as added:
            for teller in tellers:
                added.enter_context(waiting.told_by(teller))
            clock.hold()
            time.sleep(seconds)
            clock.go_on()
    out, error = capfd.readouterr()
    assert not out and re.fullmatch(r"compiling kernels, once: [01] s so far\n", error)
    assert len(told) == 1 and told[0].startswith("compiling kernels, once: ")
    assert not clock.watchers or all(watcher.__name__ != "begin" for watcher in clock.watchers)
