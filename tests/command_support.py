"""``nmsolve ARGUMENTS`` in this process: as a process of its own would do it, without a second of imports each time."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from nmsolve.cli.main import main
from nmsolve.model import clock


def run_here(*arguments: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """What the command said; its exit code must be ``code`` (None: any).

    For what depends on the process (its memory, signals, streams that are no files, start-up) take a real one.
    """
    words = ["nmsolve", *map(str, arguments)]
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("nmsolve.kinds.clock.STARTED", clock.now())  # time limits count from here
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
    texts = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    done = subprocess.CompletedProcess(words, int(ended.value.code or 0), *texts)
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done
