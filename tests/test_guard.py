"""A command that hangs in compiled code ends by the second signal; one that does not is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from nmsolve.model.host.processes import HARMLESS

SPIN = """
import threading
from nmsolve.kinds import guard
guard.GRACE, guard.STUCK = 0.2, 0.5
import numba
import numpy as np

@numba.njit("void(int64[:])", nogil=True)
def spin(a):
    x = a[0]
    while x != 0:  # comes back after 2^64 steps
        x = x * 6364136223846793005 + 1442695040888963407
    a[0] = x

WITH:
    threading.Timer(0.5, print, ["ready"], {"flush": True}).start()  # inside the loop, which lets other threads run
    spin(np.ones(1, np.int64))
"""

SIGNALS = "with guard.ends_by_second_signal()"
LIMIT = "from nmsolve.model import clock\nfrom nmsolve.kinds.time_left import TimeLeft\nwith TimeLeft(clock.now() + 0.5)"


@pytest.mark.skipif(not hasattr(signal, "SIGTERM") or os.name == "nt", reason="no signals to send")
def test_a_second_signal_ends_what_hangs_in_compiled_code() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SPIN.replace("WITH", SIGNALS)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            assert process.poll() is None  # Python's handler waits for the loop
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()


def test_one_signal_and_those_of_copies_do_not_end_the_process() -> None:
    code = (
        "import os, signal, time\nfrom nmsolve.kinds import guard\nguard.GRACE = 0.0\n"
        "seen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
        "with guard.ends_by_second_signal():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n        os.kill(os.getpid(), signal.SIGINT)\n        os._exit(0)\n"
        "    os.waitpid(child, 0)\n    time.sleep(0.3)\n"
        "print(len(seen))\n"
    )
    if hasattr(os, "fork"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


@pytest.mark.skipif(HARMLESS is None, reason="no signal to ask with")
def test_a_time_limit_ends_what_hangs_in_compiled_code_and_nothing_else() -> None:
    spin, wait = SPIN.replace("WITH", LIMIT), LIMIT + ":\n    import time\n    time.sleep(2.5)"
    done = subprocess.run([sys.executable, "-c", spin], capture_output=True, text=True, timeout=120)
    assert done.returncode == 130 and "after the time limit" in done.stderr, done
    code = "from nmsolve.kinds import guard\nguard.STUCK = 0.5\n" + wait
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done


@pytest.mark.skipif(os.name == "nt", reason="no shell to close a stream with")
def test_a_command_ends_in_order_without_standard_output() -> None:
    """Its streams are written at the very end, if there are any."""
    line = f"{sys.executable} -m nmsolve hw list >&-"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
