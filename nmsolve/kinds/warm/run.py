"""Compile everything in as many processes as there are cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed, wait
from contextlib import suppress
from functools import partial
from multiprocessing import get_context

from nmsolve.kinds.mapping.warm import warm_engine
from nmsolve.kinds.registry import WARM
from nmsolve.kinds.warm.kernels import stale_kernels, until_compiled
from nmsolve.model.host.memory import rarely_collect
from nmsolve.model.lookup import named
from nmsolve.solvers.mapping.registry import REGISTRY

#: Compiles what checks and scores the answers of every engine: done before what would compile it too, at the same time.
FIRST = "first-fit"
#: What hardly needs those kernels: begun with it.
APART = ("pipelines", "simulation", "schedules")
#: What takes longest to compile of all the others: begun first.
SLOW = (
    "external",
    "routing",
    "multilevel",
    "nets",
    "branch-bound",
    "assignments",
    "spread",
    "anneal",
    "files",
    "free routes",
)


def warm_up(say: Callable[[str], None]) -> int:
    """Run every engine that needs no child process on a small problem of each kind it takes; returns the number of runs.

    ``say`` gets one line per engine, with its CPU seconds. Kernels are cached beside the sources, so later processes only load
    them. But for those of :data:`FIRST` engines share few kernels, so that as many processes as there are cores compile at the
    same time. Kernels compiled from older code are removed first.
    """
    for cached in stale_kernels():
        with suppress(OSError):  # an administrator's, whose folder cannot be written
            cached.unlink()
    names = [*(name for name, entry in REGISTRY.items() if not entry.child), *WARM]
    names.sort(key=lambda name: SLOW.index(name) if name in SLOW else len(SLOW))
    runs = 0
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        begun = {pool.submit(_timed, name): name for name in (FIRST, *APART)}
        wait(future for future, name in begun.items() if name == FIRST)
        begun |= {pool.submit(_timed, name): name for name in names if name not in begun.values()}
        for done in as_completed(begun):
            labels, seconds = done.result()
            runs += len(labels)
            say(f"{begun[done]} ({seconds:.0f} CPU s): {', '.join(labels)}")
    return runs


def _timed(name: str) -> tuple[list[str], float]:
    """Return what was run, and the CPU seconds that it took."""
    rarely_collect()
    start = time.process_time()
    return warm_one(name), time.process_time() - start


def warm_one(name: str) -> list[str]:
    """Compile what one engine for mapping, or one entry of :data:`WARM`, needs; the labels of what was run for it."""
    work = named(WARM[name]) if name in WARM else partial(warm_engine, name)
    return work(until_compiled)
