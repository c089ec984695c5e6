"""One run of a benchmark in its own process: ``python -m nmsolve.benchmarks.worker``, order in, outcome out.

The order is one JSON object on standard input, the outcome one on standard output. Whatever libraries print goes to
standard error.
"""

from __future__ import annotations

from nmsolve.kinds import clock

# isort: split
import os
import struct
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.model.clock import stood, watchers

if TYPE_CHECKING:
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.model.bound import Event, Result


class Order(msgspec.Struct):
    """What to run: a problem, by its kind, the options that state it and its hash. ``parent`` is the process that asked; this one
    ends with it. ``stood_fd``: a file that the seconds of compiling go to, which the limit does not count."""

    kind: str
    options: dict[str, Any]
    problem: str
    engines: list[str] | None
    seed: int
    limit: float
    parent: int
    stood_fd: int | None = None


def run(order: Order) -> dict[str, Any]:
    """Load, solve, check; the fields of :class:`nmsolve.benchmarks.store.Outcome` but ``wall`` and ``cpu``."""
    from nmsolve.kinds.registry import bench
    from nmsolve.kinds.time_left import TimeLeft

    problem = bench(order.kind).load(order.options)
    if problem.hash != order.problem:
        return {"status": "failed", "text": "a file was changed while the benchmark ran"}
    with TimeLeft(clock.end(order.limit)) as time_left:
        result = problem.solve(
            time_limit=order.limit,
            started=clock.STARTED,
            seed=order.seed,
            engines=order.engines,
            workers=1,
        )
        checks: list[CheckPart] = []
        left: list[str] = []
        if result.solution is not None:
            checks, left = problem.check(result, time_left)
    status, text = result.status, ""
    wrong = [c.name for c in checks if not c.ok]
    if wrong:
        status, text = "failed", "independent checks failed: " + ", ".join(wrong)
    elif left:
        text = "not checked for lack of time: " + ", ".join(left)
    elif result.status == "unknown":
        text = _why(result)
    return {
        "status": status,
        "text": text,
        "objective": result.objective,
        "bound": result.bound,
        "events": _changes(result.events),
        "engines": [(e.engine, e.status) for e in result.engines],
    }


def _why(result: Result) -> str:
    """Return what the engines said, where nothing was found."""
    said = [f"{e.engine}: {e.status}" for e in result.engines if e.status and e.status != "done"]
    return "; ".join(said) or f"nothing found (stopped: {result.stop_reason})"


def _changes(events: tuple[Event, ...]) -> list[tuple[float, float | None, float | None]]:
    """Return the moments at which objective or bound of the run changed."""
    out: list[tuple[float, float | None, float | None]] = []
    for e in events:
        if e.kind in ("incumbent", "bound") and (not out or (e.objective, e.bound) != out[-1][1:]):
            out.append((round(e.seconds, 4), e.objective, e.bound))
    return out


def main() -> None:
    """Take the order, run it, print the outcome."""
    from nmsolve.model.errors import NmsolveError
    from nmsolve.model.host.processes import die_with

    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    die_with(order.parent)
    if (fd := order.stood_fd) is not None:
        watchers.append(lambda stands: os.pwrite(fd, struct.pack("<d", stood()), 0))
    try:
        outcome = run(order)
    except NmsolveError as error:
        outcome = {"status": "failed", "text": str(error)}
    with answer:
        answer.write(msgspec.json.encode(outcome))  # an infinite bound becomes null, as in report.json


if __name__ == "__main__":
    main()
