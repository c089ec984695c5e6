"""The events of a run: read again from its folder, and its search as a trace for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from nmsolve.kinds.registry import kinds
from nmsolve.model.bound import Event
from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, made_folder, read_limited, write_atomic
from nmsolve.model.trace_events import counter, moment, named_rows, span, trace_text

EVENTS = "events.jsonl"
#: What is written, in microseconds.
FILE, MICROSECONDS = "trace.json", 1e6
#: Numbers of the groups of rows.
ENGINES, VALUES = 1, 2
#: What happened and is shown in an engine's row.
SHOWN = ("incumbent", "bound", "note", "error")


class _Line(msgspec.Struct):
    """A line of events.jsonl, as far as a timeline needs it."""

    type: str = ""
    seconds: float = 0.0
    engine: str = ""
    objective: float | None = None
    bound: float | None = None
    move: str = ""
    text: str = ""


def read_events(folder: Path) -> list[Event]:
    """Return the events in a run's ``folder``; none where it has no events.jsonl.

    Raises
    ------
    InputError : a line that is no event
    """
    path = folder / EVENTS
    if not path.exists():
        return []
    lines = [decode_json(line, _Line, path) for line in read_limited(path).splitlines() if line.strip()]
    return [Event(e.seconds, e.type, e.engine, e.objective, e.bound, e.move, e.text) for e in lines]


def ending(report: dict[str, object] | None) -> tuple[float, float | None]:
    """Return the seconds that a run took, and its bound, as its report says them; 0 and None where it does not."""
    said = report or {}
    seconds, bound = (said.get(key) for key in ("wall_seconds", "bound"))
    return (
        float(seconds) if isinstance(seconds, int | float) else 0.0,
        float(bound) if isinstance(bound, int | float) else None,
    )


def write_run_trace(run: Path, out: Path) -> tuple[Path, int]:
    """Write ``trace.json`` into the folder ``out``, which is made if need be; return its path and the number of engines.

    Raises
    ------
    InputError : no folder of a run with events, damaged events, a folder that cannot be written
    """
    if not (run / EVENTS).is_file():
        raise InputError(f"no {EVENTS}", str(run), "the --out of a run")
    events = read_events(run)
    if not events:
        raise InputError("there are no events", str(run / EVENTS), "the events of a run")
    names = [*(one.report for one in kinds()), "pareto.json"]
    report = next((run / name for name in names if (run / name).is_file()), None)
    said: dict[str, Any] = {}
    if report is not None:
        from nmsolve.kinds.loading import read_object

        said = read_object(report)
    text, engines = run_trace(
        events, ending(said)[0], {"run": run.resolve().name, "report": report and report.name}
    )
    write_atomic(made_folder(out) / FILE, text)
    return out / FILE, engines


def run_trace(events: list[Event], seconds: float, about: dict[str, Any]) -> tuple[str, int]:
    """Return the file's text, and how many engines there are.

    An engine that never ends, as one that was stopped or killed, lasts until the end of the run: ``seconds``, or the last event.
    """
    names = list(dict.fromkeys(e.engine or "run" for e in events))
    row = {name: k for k, name in enumerate(names)}
    last = max(seconds, max(e.seconds for e in events))
    out = named_rows([(ENGINES, "engines", names), (VALUES, "values", ())])
    running: dict[str, list[float]] = {}
    for e in events:
        name, at = e.engine or "run", e.seconds * MICROSECONDS
        place = ENGINES, row[name]
        if e.kind == "engine" and e.text.startswith("begins"):
            running.setdefault(name, []).append(e.seconds)
        elif e.kind == "engine" and running.get(name):
            out.append(span(name, "engine", place, (running[name].pop(0) * MICROSECONDS, at)))
        elif e.kind in SHOWN:
            args = {
                "objective": e.objective,
                "bound": e.bound,
                "move": e.move or None,
                "text": e.text or None,
            }
            label = {"incumbent": e.move or "better answer", "bound": "bound"}.get(e.kind, e.text or e.kind)
            out.append(
                moment(label[:80], e.kind, place, at, {k: v for k, v in args.items() if v is not None})
            )
        if e.kind == "incumbent" and e.objective is not None:
            out.append(counter("incumbent", VALUES, at, {"incumbent": e.objective}))
        if e.kind == "bound" and e.bound is not None:
            out.append(counter("bound", VALUES, at, {"bound": e.bound}))
    for name, begins in running.items():
        for begin in begins:
            out.append(
                span(name, "engine", (ENGINES, row[name]), (begin * MICROSECONDS, last * MICROSECONDS))
            )
    return trace_text({**about, "seconds": last}, out), len({e.engine for e in events if e.kind == "engine"})
