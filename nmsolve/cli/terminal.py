"""What names in files cannot do to the terminal: characters that steer it or turn text around are shown, not obeyed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

#: Controls (C0 but for tab and line end, DEL, C1), separators of lines and marks of direction, halves of surrogate pairs.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def harmless(text: str) -> str:
    """The text with such characters as JSON writes them: ``\\u001b``. Printed JSON stays what it was."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class _Harmless:
    """A stream that writes :func:`harmless` text; everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write it, made harmless."""
        return self._stream.write(harmless(text))

    def writelines(self, lines: list[str]) -> None:
        """Write them, made harmless."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def harmless_output() -> Iterator[None]:
    """While active, nothing that is printed steers the terminal."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_Harmless(stream) for stream in before)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
