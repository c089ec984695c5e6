"""Who is told what happens during a run: a terminal, or a caller who asked for events and for nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from nmsolve.kinds.progress import watching

if TYPE_CHECKING:
    from pathlib import Path

    from nmsolve.solvers.search.incumbent import Observer


class Console(Protocol):
    """What a run tells."""

    def watching(self, units: Sequence[str] = ()) -> AbstractContextManager[list[Observer]]:
        """Return the observers of a search; ``units`` as in :func:`nmsolve.kinds.progress.watching`."""

    def say(self, text: str) -> None:
        """Say one sentence."""


class Terminal:
    """Tables and sentences on standard error; JSON lines on standard output if asked for; live ones in the folder ``out``."""

    def __init__(self, as_json: bool, out: Path) -> None:
        self._json, self._out = as_json, out

    def watching(self, units: Sequence[str] = ()) -> AbstractContextManager[list[Observer]]:
        """Return the table, and JSON lines."""
        return watching(self._json, units, self._out)

    def say(self, text: str) -> None:
        """Print to standard error."""
        print(text, file=sys.stderr)


class Quiet:
    """Nothing is printed; every observer hears every event."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = observers

    @contextmanager
    def watching(self, units: Sequence[str] = ()) -> Iterator[list[Observer]]:
        """Yield the observers."""
        yield list(self._observers)

    def say(self, text: str) -> None:
        """Say nothing."""
