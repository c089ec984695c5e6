"""Ctrl-C and SIGTERM after the search: the answer is complete, and says which checks were not done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_support import run_here
from test_cli import NMSOLVE

from nmsolve.check.mapping import verify
from nmsolve.hw.machines import load_machine
from nmsolve.kinds import time_left
from nmsolve.kinds.answer import exit_code
from nmsolve.kinds.mapping import page as html
from nmsolve.kinds.mapping.given import Given
from nmsolve.kinds.mapping.kind import KIND
from nmsolve.kinds.mapping.options import MapOptions
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.model import clock
from nmsolve.model.bound import Result
from nmsolve.model.errors import BackendError
from nmsolve.model.file_set import new_run
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.report import drawing
from nmsolve.report.pictures import convergence, core_use
from nmsolve.solvers.mapping.api import make_problem, solve

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

BOARD = 'id="explorer-data"'
FILES = ["certificates.json", "events.jsonl", "mapping.json", "report.html", "report.json"]


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds are those of an idle machine, whatever else it does."""
    monkeypatch.setattr(clock, "pace", lambda: 1.0)


@pytest.fixture(scope="module")
def answer() -> tuple[MappingProblem, Result]:
    """A small network, mapped."""
    graph = generate("snn", nodes=400, synapses=3000, layers=4)
    problem = make_problem(graph, load_machine("mesh:3x3"), balance=0.1)
    return problem, solve(problem, time_limit=1.0, engines=["first-fit"], seed=1)


COMMAND = os.getpid()


def interrupting(function, number=signal.SIGINT):
    """The function, after a signal to this process; in a copy of it, where it would run on, it waits to be killed."""

    def interrupted(*arguments, **options):
        os.kill(COMMAND, number)
        if os.getpid() != COMMAND:
            time.sleep(60)
        return function(*arguments, **options)

    return interrupted


def written(out: Path, answer: tuple[MappingProblem, Result]) -> dict[str, object]:
    """report.json of the answer; all files are there, and the handlers are as before."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with TimeLeft() as kept:
        o = MapOptions(out, out=out)
        report = KIND.write(o, Given(answer[0], o), answer[1], {}, kept, new_run())
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert sorted(os.listdir(out)) == FILES
    assert exit_code(answer[1], report, None) == 0
    return json.loads((out / "report.json").read_text())


@pytest.mark.parametrize(
    "where, number, left",
    [
        ("check_mapping", signal.SIGINT, list(verify.STAGES)),
        ("recompute", signal.SIGTERM, list(verify.STAGES[1:])),
        ("deadlock_check", signal.SIGTERM, list(verify.STAGES[2:])),
    ],
)
def test_a_signal_leaves_out_the_checks_that_are_not_done(
    answer: tuple[MappingProblem, Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    number: signal.Signals,
    left: list[str],
) -> None:
    """What was done before is kept; link loads are not drawn any more."""
    whole = written(tmp_path, answer)
    assert whole["not_checked"] == [] and BOARD in (tmp_path / "report.html").read_text()
    monkeypatch.setattr(verify, where, interrupting(getattr(verify, where), number))
    monkeypatch.setattr(
        time_left, "AFTER_SIGNAL", 0.0
    )  # a fast machine draws everything in what it is otherwise
    report = written(tmp_path, answer)
    assert report["not_checked"] == left
    assert report["checks"] == whole["checks"][: len(report["checks"])] != whole["checks"]
    page = (tmp_path / "report.html").read_text()
    assert all(f"– {name}" in page for name in left) and BOARD not in page
    assert report["objective"] == whole["objective"]


def test_a_signal_while_the_page_is_drawn_leaves_out_link_loads_only(
    answer: tuple[MappingProblem, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All checks were done."""
    monkeypatch.setattr(html, "_link_picture", interrupting(html._link_picture))
    report = written(tmp_path, answer)
    assert report["not_checked"] == [] and len(report["checks"]) > 3


def test_a_signal_outside_waits_and_a_second_one_does_not() -> None:
    """The first is kept for the next thing that may be left out; the second ends everything."""
    done = []
    with TimeLeft() as kept:
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("kept on")
        with pytest.raises(KeyboardInterrupt):
            done.append(kept.optional(lambda: time.sleep(10)))
        with pytest.raises(KeyboardInterrupt):
            done.append(kept.optional(lambda: None))
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
    assert done == ["kept on"]


def test_time_is_up_soon_after_the_limit() -> None:
    """What is optional ends a second after the limit, whatever it does: no handler of its own keeps it, no loop of compiled code;
    its errors come through, and what it has found before the end."""
    begun = clock.now()

    def deaf() -> Iterator[str]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        yield "found"
        time.sleep(60)

    found: list[str] = []
    with TimeLeft(begun - 0.5) as kept, pytest.raises(KeyboardInterrupt):
        found.extend(kept.each(deaf, least=1.0))
    assert clock.now() - begun < 5
    assert found == ["found"]
    with TimeLeft(begun + 1000) as kept, pytest.raises(ZeroDivisionError):
        kept.optional(lambda: 1 / 0)
    with TimeLeft(begun + 1000) as kept, pytest.raises(BackendError, match="NotSent: of no use"):
        kept.optional(raise_not_sent)


def raise_not_sent() -> None:
    """Raise an error that cannot be pickled."""

    class NotSent(Exception):
        pass

    raise NotSent("of no use")


def test_compiling_in_the_copy_does_not_count() -> None:
    """The clock stands still here while it does there, and goes on when the copy is gone."""

    def work() -> float:
        clock.hold()
        time.sleep(4.0)
        clock.go_on()
        return clock.now()

    begun = clock.now()
    with TimeLeft(begun + 2.0) as kept:
        assert kept.optional(work) < begun + 2.0
        assert clock.now() < begun + 2.0
        with pytest.raises(KeyboardInterrupt):
            kept.optional(lambda: time.sleep(60))
    assert not clock.stands()


def test_a_page_always_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its pictures where these take too long."""

    def render() -> str:
        return convergence([], 1.0, "full")

    with TimeLeft(clock.now() + 1000) as kept:
        assert kept.page(render).startswith("<svg")
    with TimeLeft(clock.now() - 2.0) as kept:
        assert kept.page(render) == drawing.NOT_DRAWN
        assert kept.page(render, lambda: "bare") == "bare"


def test_a_page_has_the_pictures_that_there_was_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is made once and waited for, however late it is; of its pictures each counts that is done."""
    quick, slow = drawing.Picture(core_use), drawing.Picture(core_use)

    def svg(self: drawing.Picture) -> str:
        time.sleep(60 if self is slow else 0)
        return "<svg>"

    monkeypatch.setattr(drawing.Picture, "_svg", svg)

    def render() -> str:
        assert os.getppid() == COMMAND, "in the copy alone"
        time.sleep(1.5)
        return f"text {quick()} {slow()}"

    with TimeLeft(clock.now() - 2.0) as kept:
        assert kept.page(render) == f"text {drawing.NOT_DRAWN} {drawing.NOT_DRAWN}"
    with TimeLeft(clock.now() + 4.0) as kept:
        assert kept.page(render) == f"text <svg> {drawing.NOT_DRAWN}"


def test_the_command_ends_with_a_whole_answer(tmp_path: Path) -> None:
    """A signal as soon as the mapping is there, while its checks run: files that ``verify`` accepts, no traceback."""
    net, out = tmp_path / "net.nmz", tmp_path / "out"
    run_here("generate", "snn", "--nodes", "10000", "--synapses", "700000", "--layers", "4", "--out", net)
    command = [*NMSOLVE, "map", net, "--machine", "mesh:8x8", "--engines", "first-fit", "--time-limit", "20"]
    with subprocess.Popen(
        [*map(str, command), "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not (out / "mapping.json").exists():
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        words, errors = process.communicate(timeout=60)
    assert process.returncode == 0, (words, errors)
    assert "Traceback" not in errors
    assert sorted(os.listdir(out)) == FILES
    report = json.loads((out / "report.json").read_text())
    assert ("not done for lack of time: " in words) == bool(report["not_checked"])
    assert all(c["ok"] for c in report["checks"])
    assert "FAILED" not in run_here("verify", out, "--bound").stdout


@pytest.mark.parametrize("compiled", [True, False])
def test_compiling_what_draws_does_not_count(
    compiled: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a machine where nothing was drawn before, Python compiles matplotlib for seconds: the report would have no pictures."""
    now = [100.0]

    def slow(name: str) -> None:
        now[0] += 2.0

    bytecode = tmp_path / "figure.pyc"
    if compiled:
        bytecode.touch()
    monkeypatch.setattr(clock, "_read", lambda: now[0])
    monkeypatch.setattr(clock, "_stood", 0.0)
    monkeypatch.setattr(drawing, "cache_from_source", lambda source: str(bytecode))
    monkeypatch.setattr(drawing, "import_module", slow)
    monkeypatch.delitem(sys.modules, "matplotlib.backends.backend_svg", raising=False)
    drawing.import_what_draws()
    assert clock.now() == (104.0 if compiled else 100.0)
    assert now[0] == 104.0
