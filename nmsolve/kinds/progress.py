"""Progress of a run: the same events as a fixed-width table for people and as JSON lines for machines."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nmsolve.kinds.waiting import told_by
from nmsolve.model import clock
from nmsolve.model.bound import Event, gap
from nmsolve.report.figures import DIGITS, amount, percent

if TYPE_CHECKING:
    from nmsolve.solvers.search.incumbent import Observer

HEADER = f"{'time':>9}  {'incumbent':>16}  {'bound':>16}  {'gap':>8}  engine"
#: Seconds between lines when nothing happens, and the least time between two lines of news.
HEARTBEAT, QUIET = 5.0, 0.4
#: Incumbent, bound, and the engine that last changed one of them.
Standing = tuple[float | None, float | None, str]
NOTHING: Standing = (None, None, "")


def event_to_json(event: Event) -> dict[str, object]:
    """Return one event as a flat JSON object; ``type`` is its kind, fields without a value are left out."""
    out: dict[str, object] = {"type": event.kind, "seconds": round(event.seconds, 4), "engine": event.engine}
    if event.objective is not None:
        out["objective"] = event.objective
    if event.bound is not None:
        out["bound"] = event.bound
    share = gap(event.objective, event.bound)
    if share is not None and share != float("inf"):
        out["gap"] = share
    if event.move:
        out["move"] = event.move
    if event.text:
        out["text"] = event.text
    return out


#: Events of a search that is running, in its output folder.
LIVE = "live.jsonl"


class JsonLines:
    """Observer that writes every event as one JSON line, at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        print(json.dumps(event_to_json(event)), file=self._stream, flush=True)


class ProgressTable:
    """Observer that prints a fixed-width table: a header once, then news and a heartbeat.

    A mark shows what is new: ``*`` a better mapping, ``+`` a better bound, ``!`` an engine's trouble.
    Lines closer than 0.4 s apart are thinned out; the last state is always printed by :meth:`close`.

    Parameters
    ----------
    units : of the figures (:data:`SCALES`), one per search in turn; the last one stays, and without any figures are plain
    """

    def __init__(self, stream: TextIO = sys.stderr, units: Sequence[str] = ()) -> None:
        self._stream = stream
        self._units, self._unit = list(units), ""
        self._lock = threading.Lock()
        self._started = clock.now()
        self._offset = 0.0
        self._last_line = -HEARTBEAT
        self._state: Standing = NOTHING
        self._pending = ""
        self._header = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._offset = event.seconds - (clock.now() - self._started)
            objective, bound, _ = self._state
            if event.kind == "start":
                self._start(event)
            elif event.kind == "incumbent":
                self._state = (
                    event.objective,
                    bound,
                    event.engine + (f" ({event.move})" if event.move else ""),
                )
                self._news("*", event.seconds)
            elif event.kind == "bound":
                self._state = (objective, event.bound, event.engine)
                self._news("+", event.seconds)
            elif event.kind in ("note", "error"):
                self._print_header()
                print(f"{event.seconds:8.1f}s  ! {event.engine}: {event.text}", file=self._stream, flush=True)

    def _start(self, event: Event) -> None:
        """Forget the objective before; its figures say nothing about the next one."""
        if self._pending:
            self._line(self._pending, event.seconds)
        if self._state != NOTHING:
            print(f"{event.seconds:8.1f}s    {event.text}", file=self._stream, flush=True)
        self._state = NOTHING
        if self._units:
            self._unit = self._units.pop(0)

    def close(self) -> None:
        """Print what was held back and stop the heartbeat."""
        self._stop.set()
        self._thread.join(timeout=1.0)
        with self._lock:
            if self._pending:
                self._line(self._pending, self._now())

    def _news(self, mark: str, seconds: float) -> None:
        if seconds - self._last_line >= QUIET:
            self._line(mark, seconds)
        elif mark not in self._pending:
            self._pending += mark

    def _beat(self) -> None:
        while not self._stop.wait(0.25):
            with self._lock:
                now = self._now()
                quiet = now - max(
                    self._last_line, 0.0
                )  # nothing is said of the first seconds, in which engines load
                if (self._pending and now - self._last_line >= QUIET) or quiet >= HEARTBEAT:
                    self._line(self._pending, now)

    def tell(self, text: str) -> None:
        """Print what keeps the search waiting."""
        with self._lock:
            self._print_header()
            print(f"{self._now():8.1f}s  ! {text}", file=self._stream, flush=True)

    def _now(self) -> float:
        return clock.now() - self._started + self._offset

    def _print_header(self) -> None:
        if not self._header:
            print(HEADER, file=self._stream)
            self._header = True

    def _line(self, marks: str, seconds: float) -> None:
        self._print_header()
        objective, bound, engine = self._state
        share = gap(objective, bound)
        print(
            f"{seconds:8.1f}s {marks[-1:] or ' '} {amount(objective, self._unit, DIGITS):>15}  "
            f"{amount(bound, self._unit, DIGITS):>16}  "
            f"{percent(share):>8}  {engine}",
            file=self._stream,
            flush=True,
        )
        self._last_line, self._pending = seconds, ""


@contextmanager
def watching(as_json: bool, units: Sequence[str] = (), out: Path | None = None) -> Iterator[list[Observer]]:
    """Return the observers of a run: the table on standard error, and JSON lines on standard output if asked for.

    ``units`` : of the table's figures, one per search in turn; none: plain numbers. JSON lines always have plain numbers.
    ``out`` : the folder that gets the events as they happen, for ``nmsolve watch``; none: the run cannot be watched
    """
    table = ProgressTable(sys.stderr, units)
    try:
        with told_by(table.tell), live(out) as lines:
            yield [table, *lines, *([JsonLines(sys.stdout)] if as_json else [])]
    finally:
        table.close()


@contextmanager
def live(out: Path | None) -> Iterator[list[Observer]]:
    """Return an observer that writes events to ``live.jsonl`` in ``out``, which is there as long as the search runs."""
    if out is None:
        yield []
        return
    path = out / LIVE
    try:
        with FileIO(path, "w") as file:
            yield [LiveLines(file)]
    finally:
        path.unlink(missing_ok=True)


class LiveLines:
    """Observer that adds every event to a raw file as one JSON line; a full disk ends the lines, not the search."""

    def __init__(self, file: FileIO) -> None:
        self._file: FileIO | None = file

    def __call__(self, event: Event) -> None:
        """Write one line, as long as that works."""
        if self._file is not None:
            try:
                self._file.write(json.dumps(event_to_json(event)).encode() + b"\n")
            except OSError:
                self._file = None
