"""Fixtures of the tests that call the command line in this process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
from command_support import run_here

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
def call() -> Called:
    """``nmsolve ARGUMENTS`` without a process of its own: exit code, stdout, stderr."""

    def called(*arguments: object) -> tuple[int, str, str]:
        done = run_here(*arguments, code=None)
        return done.returncode, done.stdout, done.stderr

    return called
