"""Fixtures of the tests that call the command line in this process."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from nmsolve.cli.main import main
from nmsolve.model.contained import read_by

Called = Callable[..., tuple[int, str, str]]

# In the background of a script or under nohup signals are ignored, and what tests start would inherit that.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def no_time_limit_is_left() -> Iterator[None]:
    """The time limit of a command that a test parsed counts for the reading of files in this process; not for the next test."""
    yield
    read_by()


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    """``nmsolve ARGUMENTS`` without a process of its own: exit code, stdout, stderr."""

    def called(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("nmsolve.cli.clock.STARTED", time.monotonic())  # time limits count from here
        monkeypatch.setattr(sys, "argv", ["nmsolve", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return called
