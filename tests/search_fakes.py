"""A context for an engine alone; a toy problem and engines for it: solutions are three numbers, the objective is their sum."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.engine import ScratchPlace

SIZE = 3


class QuietContext:
    """Implements :class:`nmsolve.model.engine.Context` for an engine alone: no end, no limit, nobody listens.

    Tests inherit and write only what they are about. ``best``, ``value`` and ``low`` are what the engine is told of the
    incumbent and the bound; ``bounds`` and ``notes`` are all that it said.
    """

    seed, workers, memory, scratch, pace = 1, 1, None, ScratchPlace(), 1.0
    best, value, low = None, float("inf"), 0.0

    def __init__(self):
        self.bounds, self.notes = [], []

    def subtasks(self, worker):
        return None

    def remotes(self, kind):
        return None

    def incumbent(self):
        return self.best, self.value

    def bound(self):
        return self.low

    def time_left(self):
        return 1e9

    def worked(self):
        return time.monotonic()

    def should_stop(self):
        return False

    def offer(self, core, move=""):
        return False

    def raise_bound(self, bound):
        better = bound.value > self.low
        self.bounds.append(bound)
        self.low = max(self.low, bound.value)
        return better

    def note(self, text):
        self.notes.append(text)


class TimedContext(QuietContext):
    """Ends after ``seconds``."""

    def __init__(self, seconds):
        super().__init__()
        self.end = time.monotonic() + seconds

    def time_left(self):
        return max(0.0, self.end - time.monotonic())

    def should_stop(self):
        return self.time_left() <= 0


@dataclass(frozen=True)
class ToyChecker:
    """Numbers must be >= 0; engines see them in half of the user's units (a reduction with ``lift``)."""

    problem: str = "toy"
    size: int = SIZE
    lattice: float = 1.0

    def lift(self, solution):
        return 2 * solution

    def complaint(self, lifted):
        return "a number is negative" if lifted.min() < 0 else None

    def score(self, lifted):
        return float(lifted.sum())


def value(objective):
    """A solution in the engines' terms whose objective is ``objective`` (even)."""
    return np.array([objective // 2, 0, 0])


@dataclass(frozen=True)
class Script:
    """Does what its lines say: ``offer 10``, ``bound 4``, ``bad``, ``sleep 0.1``, ``until-stop``, ``hang``, ``die``, ..."""

    lines: tuple[str, ...]
    name: str = "script"
    finds: str = "both"

    def refuses(self, problem):
        return None

    def run(self, problem, context):
        for line in self.lines:
            word, _, rest = line.partition(" ")
            getattr(self, "do_" + word.replace("-", "_"))(context, rest)

    def do_offer(self, context, rest):
        context.offer(value(int(rest)), "scripted")

    def do_bad(self, context, rest):
        context.offer(np.array([-1, 0, 0]))

    def do_shape(self, context, rest):
        context.offer(np.zeros(7))

    def do_bound(self, context, rest):
        context.raise_bound(Bound(float(rest), self.name))

    def do_placement(self, context, rest):
        context.raise_bound(Bound(float(rest), self.name, "placement"))

    def do_infeasible(self, context, rest):
        context.raise_bound(Bound(float("inf"), self.name, "full", {"status": "infeasible"}))

    def do_time(self, context, rest):
        context.note(f"{context.time_left():.0f}")

    def do_sleep(self, context, rest):
        time.sleep(float(rest))

    def do_until_stop(self, context, rest):
        while not context.should_stop():
            time.sleep(0.01)

    def do_until_seen(self, context, rest):
        while context.incumbent()[1] > float(rest) and not context.should_stop():
            time.sleep(0.01)
        context.raise_bound(Bound(context.incumbent()[1], "saw"))

    def do_hang(self, context, rest):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(0.05)

    def do_die(self, context, rest):
        os.kill(os.getpid(), signal.SIGKILL)

    def do_abort(self, context, rest):
        os.abort()

    def do_memory(self, context, rest):
        self.hog = np.ones(int(rest) * 2**17)  # frozen: never reached where the limit holds

    def do_error(self, context, rest):
        raise ZeroDivisionError("as scripted")

    def do_print(self, context, rest):
        print(rest, flush=True)

    def do_spawn(self, context, rest):
        import subprocess

        subprocess.Popen(["sleep", rest])

    def do_walk(self, context, rest):
        """Random walk with a fixed amount of work: the seed decides everything."""
        rng = np.random.default_rng(context.seed)
        for _ in range(int(rest)):
            context.offer(rng.integers(0, 1000, SIZE), "step")
