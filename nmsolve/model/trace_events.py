"""The Trace Event Format (JSON), which Perfetto and chrome://tracing open: spans in rows, and counters, in microseconds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def named_rows(groups: Iterable[tuple[int, str, Sequence[str]]]) -> list[dict[str, Any]]:
    """Return the events that name groups of rows, and their rows: number and title of each group, names of its rows from 0 on."""
    found: list[dict[str, Any]] = []
    for group, title, rows in groups:
        found.append({"ph": "M", "name": "process_name", "pid": group, "args": {"name": title}})
        for row, name in enumerate(rows):
            place = {"ph": "M", "pid": group, "tid": row}
            found.append(place | {"name": "thread_name", "args": {"name": name}})
            found.append(place | {"name": "thread_sort_index", "args": {"sort_index": row}})
    return found


def span(
    name: str,
    kind: str,
    place: tuple[int, int],
    when: tuple[float, float],
    args: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return something that takes time: in group and row ``place``, from ``when`` to ``when``."""
    event: dict[str, Any] = {
        "ph": "X",
        "name": name,
        "cat": kind,
        "pid": place[0],
        "tid": place[1],
        "ts": when[0],
    }
    event["dur"] = when[1] - when[0]
    return event | ({"args": args} if args else {})


def counter(name: str, group: int, at: float, values: Mapping[str, float]) -> dict[str, Any]:
    """Return what a counter shows from a moment on."""
    return {"ph": "C", "name": name, "pid": group, "ts": at, "args": dict(values)}


def moment(
    name: str, kind: str, place: tuple[int, int], at: float, args: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return something that takes no time."""
    event = {"ph": "i", "s": "t", "name": name, "cat": kind, "pid": place[0], "tid": place[1], "ts": at}
    return event | ({"args": args} if args else {})


def trace_text(about: dict[str, Any], events: Iterable[dict[str, Any]]) -> str:
    """Return the file, an event a line; ``about``: what it is of, for people."""
    lines = ",\n".join(json.dumps(event, separators=(",", ":"), allow_nan=False) for event in events)
    return f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":[\n{lines}\n]}}\n'
