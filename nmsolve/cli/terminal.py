"""Names in files cannot control the terminal: control characters and marks of direction are shown, not obeyed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

from nmsolve.model.files import reason

#: Controls (C0 except for tab and line end, DEL, C1), separators of lines and marks of direction, halves of surrogate pairs.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def harmless(text: str) -> str:
    """Return the text with such characters as JSON writes them: ``\\u001b``. Printed JSON stays what it was."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Output:
    """A stream that writes :func:`harmless` text; everything else is the stream's own.

    A reader who left, or a full disk, must not cost a run its answer: what cannot be written is dropped from then on, and
    ``lost`` says why.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost: OSError | None = None

    def write(self, text: str) -> int:
        """Write it, made harmless."""
        if self.lost is None:
            try:
                return self._stream.write(harmless(text))
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        if self.lost is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Send everything to nowhere from now on, what the stream still holds back included."""
        self.lost = error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    @property
    def complaint(self) -> str | None:
        """Why not everything was written, unless the reader had gone."""
        if self.lost is None or isinstance(self.lost, BrokenPipeError):
            return None
        return f"cannot write to standard output: {reason(self.lost)}"

    def writelines(self, lines: list[str]) -> None:
        """Write them, made harmless."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def harmless_output() -> Iterator[Output]:
    """While active, nothing that is printed steers the terminal, and output that is not taken ends nothing; gives the
    standard output."""
    before = sys.stdout, sys.stderr
    with ExitStack() as opened:  # a closed stream is none at all
        out, errors = (Output(s or opened.enter_context(open(os.devnull, "w"))) for s in before)
        sys.stdout, sys.stderr = out, errors  # type: ignore[assignment]
        try:
            yield out
        finally:
            out.flush()
            errors.flush()
            sys.stdout, sys.stderr = before
