"""Fixtures of the tests that call the command line in this process."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

import pytest

from nmsolve.cli.main import main

Called = Callable[..., tuple[int, str, str]]

# In the background of a script or under nohup signals are ignored, and what tests start would inherit that.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


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
