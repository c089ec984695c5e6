"""A native solver in a thread, with its callbacks in the caller's thread: engines may be called from one thread only."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmsolve.model.types import IntArray

#: Seconds between two checks for messages and ``should_stop``.
_PERIOD = 0.05

#: ``tell("solution", array)`` or ``tell("bound", value)``; safe from any thread.
Tell = Callable[[str, Any], None]


@dataclass(frozen=True)
class Outcome:
    """How a run of a native solver ended.

    ``status``: ``OPTIMAL`` (within the gap asked for), ``FEASIBLE``, ``INFEASIBLE`` or ``UNKNOWN``, in small letters by MIP
    solvers. ``bound`` is a lower bound on the *model's* objective, ``core`` the best solution; either may be None. ``by``: the
    solver and its version, as certificates name them.
    """

    status: str
    bound: float | None
    core: IntArray | None
    by: dict[str, str]


def run_and_listen(
    work: Callable[[Tell], object],
    *,
    stop: Callable[[], object],
    should_stop: Callable[[], bool],
    on_solution: Callable[[IntArray], object],
    on_bound: Callable[[float], object],
) -> None:
    """Run ``work`` in a thread until it returns; call ``stop`` as long as ``should_stop()`` holds.

    ``on_solution`` and ``on_bound`` run in the caller's thread. What ``work`` raises is raised here.
    """
    news: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def run() -> None:
        try:
            work(lambda kind, what: news.put((kind, what)))
            news.put(("end", None))
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            news.put(("end", error))

    thread = threading.Thread(target=run, name="solver", daemon=True)
    thread.start()
    while True:
        try:
            kind, what = news.get(timeout=_PERIOD)
        except queue.Empty:
            kind, what = "", None
        if kind == "solution":
            on_solution(what)
        elif kind == "bound":
            on_bound(what)
        elif kind == "end":
            break
        if should_stop():
            stop()
    thread.join()
    if what is not None:
        raise what
