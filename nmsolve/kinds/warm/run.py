"""Compile everything in as many processes as there are cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed, wait
from contextlib import suppress
from functools import partial
from multiprocessing import get_context

from nmsolve.kinds.registry import WARM, WARM_APART, WARM_ENGINES, WARM_FIRST, WARM_SLOW
from nmsolve.kinds.warm.kernels import stale_kernels, until_compiled
from nmsolve.model.host.memory import rarely_collect
from nmsolve.model.lookup import named


def warm_up(say: Callable[[str], None]) -> int:
    """Run every engine that needs no child process on a small problem of each kind it takes; returns the number of runs.

    ``say`` gets one line per engine, with its CPU seconds. Kernels are cached beside the sources, so later processes only load
    them. But for those of the first one engines share few kernels, so that as many processes as there are cores compile at the
    same time. Kernels compiled from older code are removed first.
    """
    for cached in stale_kernels():
        with suppress(OSError):  # an administrator's, whose folder cannot be written
            cached.unlink()
    names = [*(name for name, entry in named(WARM_ENGINES[0]).items() if not entry.child), *WARM]
    names.sort(key=lambda name: WARM_SLOW.index(name) if name in WARM_SLOW else len(WARM_SLOW))
    runs = 0
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        begun = {pool.submit(_timed, name): name for name in (WARM_FIRST, *WARM_APART)}
        wait(future for future, name in begun.items() if name == WARM_FIRST)
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
    work: Callable[..., list[str]] = (
        named(WARM[name]) if name in WARM else partial(named(WARM_ENGINES[1]), name)
    )
    return work(until_compiled)
