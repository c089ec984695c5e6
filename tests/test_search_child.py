"""Engines in child processes: what they find arrives, and no way of dying costs the best answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from search_fakes import SIZE, Script, ToyChecker, value
from test_search import kinds, make

from nmsolve.solvers.search.memory import Memory, held_now
from nmsolve.solvers.search.portfolio import Portfolio, Step
from nmsolve.solvers.search.shared import Blackboard, SharedPickle

TESTS = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks at processes through /proc"
)


def run(*scripts, seconds=20.0, workers=1, memory=None, child=True):
    checker, budget, incumbent = make(seconds)
    portfolio = Portfolio(checker, incumbent, budget, workers=workers, memory=memory)
    portfolio.run([Step(s, child=child) for s in scripts])
    return incumbent, portfolio


def processes():
    """``{pid: (parent, command line)}`` of all living processes."""
    out = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] != "Z":
            out[int(folder.name)] = (int(fields[1]), command)
    return out


def children_of(pid):
    return [p for p, (parent, _) in processes().items() if parent == pid]


def test_finds_arrive_and_the_end_is_told(capfd):
    incumbent, portfolio = run(Script(("print noise", "offer 20", "bound 4", "bad", "offer 10"), "a"))
    assert incumbent.objective == 10 and incumbent.bound == 4
    assert portfolio.endings["a"].kind == "done"
    assert "negative" in kinds(incumbent, "error")[0].text
    assert portfolio.child_cpu > 0 and incumbent.shares()[0].cpu_seconds > 0
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [("die", "failed", "SIGKILL"), ("abort", "failed", "SIGABRT"), ("error", "failed", "as scripted")],
)
def test_a_death_becomes_an_event_and_costs_nothing(line, kind, words):
    incumbent, portfolio = run(Script(("offer 20", "bound 4", line), "a"))
    assert incumbent.objective == 20 and incumbent.bound == 4
    assert portfolio.endings["a"].kind == kind
    assert words in kinds(incumbent, "error")[0].text


def test_a_child_at_its_memory_limit_is_reported_as_such():
    incumbent, portfolio = run(
        Script(("offer 20", "memory 4000"), "a"), memory=Memory(held_now() + 600 * 2**20)
    )
    assert incumbent.objective == 20
    assert portfolio.endings["a"].kind == "memory"


def test_a_child_that_ignores_every_polite_request_is_killed_in_time():
    start = time.monotonic()
    incumbent, portfolio = run(Script(("offer 20", "hang"), "a"), seconds=3.0)
    assert time.monotonic() - start < 20
    assert incumbent.objective == 20 and portfolio.endings["a"].kind == "killed"
    assert not children_of(os.getpid())


def test_children_see_the_best_answer_of_all_and_stop_when_the_gap_is_closed():
    incumbent, portfolio = run(
        Script(("sleep 0.2", "offer 8", "until-stop"), "a"),
        Script(("until-seen 8",), "b"),
        workers=2,
        seconds=60,
    )
    assert incumbent.optimal and incumbent.objective == incumbent.bound == 8
    assert set(portfolio.endings) == {"a", "b"}


def test_quick_steps_run_here_beside_children_and_do_not_keep_them_waiting():
    checker, budget, incumbent = make(60.0)
    here = Step(Script(("walk 2", "sleep 0.01"), "here"), quick=True, repeat=True)
    Portfolio(checker, incumbent, budget, workers=2).run(
        [here, Step(Script(("offer 2", "bound 2"), "there"), child=True)]
    )
    assert incumbent.optimal and budget.elapsed() < 50
    assert where(incumbent) == {"here": "begins", "there": "begins in a child process"}


def where(incumbent):
    """Where each engine began, by its name."""
    return {e.engine: e.text for e in kinds(incumbent, "engine") if "begins" in e.text}


def test_of_several_workers_one_searches_here_and_the_others_in_children():
    """Whatever time a busy machine takes to start a process, there is an answer. A worker that has nothing to do goes on with
    the plan meanwhile."""
    checker, budget, incumbent = make(60.0)
    steps = [
        Step(Script(("bound 2",), "proves", "bounds")), Step(Script(("until-seen 8",), "here", "mappings")),
        Step(Script(("offer 20",), "there")), Step(Script(("offer 8", "until-stop"), "later")),
    ]  # fmt: skip
    Portfolio(checker, incumbent, budget, workers=2).run(steps)
    assert incumbent.optimal and incumbent.objective == 8 and budget.elapsed() < 50
    child = "begins in a child process"
    assert where(incumbent) == {"proves": child, "here": "begins", "there": child, "later": child}


def test_an_engine_with_threads_sees_what_children_find_while_it_runs():
    checker, budget, incumbent = make(60.0)
    there = Step(Script(("sleep 0.2", "offer 8", "until-stop"), "there"))
    here = Step(Script(("until-seen 8",), "here"), threads=True)
    Portfolio(checker, incumbent, budget, workers=2).run([there, here])
    assert incumbent.optimal and incumbent.objective == 8 and budget.elapsed() < 20


def test_an_engine_with_threads_gets_all_the_time_that_is_left():
    checker, budget, incumbent = make(60.0)
    there = Step(Script(("until-stop",), "there"), repeat=True)
    here = Step(Script(("time", "offer 8", "bound 8"), "here"), threads=True)
    Portfolio(checker, incumbent, budget, workers=2).run([there, here])
    assert incumbent.optimal and int(kinds(incumbent, "note")[0].text) > 45


def test_what_a_child_started_dies_with_it():
    run(Script(("spawn 987",), "a"))
    wait_until_gone([p for p, (_, command) in processes().items() if command.startswith("sleep 987")])


def test_too_little_time_for_a_child_is_said():
    incumbent, portfolio = run(Script(("offer 2",), "a"), seconds=0.1)
    assert not portfolio.endings and kinds(incumbent, "note")[0].text.startswith("not run")


PARENT = """
import sys, time
sys.path.insert(0, {tests!r})
from test_search import make
from search_fakes import Script
from nmsolve.solvers.search.portfolio import Portfolio, Step
checker, budget, incumbent = make(60.0, observers=[lambda e: print(e.kind, e.objective, flush=True)])
with budget:
    Portfolio(checker, incumbent, budget, workers={workers}).run(
        [Step(Script(("offer 20", {last!r}), "a"), child={child}), Step(Script(("offer 10",), "b"))])
print("best", incumbent.objective, "interrupted", budget.interrupted, flush=True)
"""


def start_parent(last, child=True, workers=1):
    code = PARENT.format(tests=str(TESTS), last=last, child=child, workers=workers)
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, process_group=0
    )
    for line in parent.stdout:
        if line.startswith("incumbent"):
            return parent
    raise AssertionError("the parent ended early")


@pytest.mark.parametrize("child", [True, False])
def test_ctrl_c_ends_with_the_best_answer(child):
    """A terminal signals the whole foreground group; children must not notice."""
    parent = start_parent("until-stop", child)
    os.killpg(parent.pid, signal.SIGINT)
    out, _ = parent.communicate(timeout=30)
    assert "best 20.0 interrupted True" in out and parent.returncode == 0


def test_second_ctrl_c_aborts_and_leaves_no_orphan():
    parent = start_parent("hang")
    kids = children_of(parent.pid)
    assert kids
    parent.send_signal(2)
    time.sleep(0.1)
    parent.send_signal(2)
    parent.communicate(timeout=30)
    wait_until_gone(kids)


def test_children_die_with_a_killed_parent():
    parent = start_parent("hang")
    kids = children_of(parent.pid)
    assert kids
    parent.kill()
    parent.communicate(timeout=30)
    wait_until_gone(kids)


def wait_until_gone(pids):
    for _ in range(200):
        if not set(pids) & set(processes()):
            return
        time.sleep(0.05)
    raise AssertionError(f"still alive: {set(pids) & set(processes())}")


def test_shared_pickle_gives_equal_arrays_with_the_same_write_flags():
    fixed = np.arange(1000.0)
    fixed.setflags(write=False)
    shared = SharedPickle({"fixed": fixed, "free": np.arange(7), "empty": np.zeros((0, 0)), "word": "x"})
    copy = SharedPickle.load(shared.fd)
    assert copy["word"] == "x" and copy["empty"].shape == (0, 0)
    assert (copy["fixed"] == fixed).all() and not copy["fixed"].flags.writeable
    copy["free"][0] = 99
    assert SharedPickle.load(shared.fd)["free"][0] == 0
    assert copy["fixed"].ctypes.data % 64 == 0
    shared.close()


def test_the_board_shows_the_latest_state():
    board = Blackboard(SIZE)
    assert board.read() == (None, float("inf")) and not board.stopped
    other = Blackboard(SIZE, os.dup(board.fd))
    board.publish(value(10), 10.0, 4.0)
    solution, objective = other.read()
    assert solution.tolist() == [5, 0, 0] and objective == 10.0 and other.values == (10.0, 4.0)
    board.stop()
    assert other.stopped
    assert ToyChecker().score(ToyChecker().lift(solution)) == 10.0
    board.close()
    other.close()
