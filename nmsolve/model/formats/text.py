"""Whole-number text files read in bulk: tokens in one array, with the line each belongs to."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited
from nmsolve.model.types import BoolArray, IntArray

_COMMENT = re.compile(rb"^[ \t]*%[^\n]*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class IntegerLines:
    """The lines of a text file of whole numbers, without its comment lines.

    Attributes
    ----------
    tokens : (t,) int64, all numbers of the file
    start : (lines + 1,) int64: line ``k`` holds ``tokens[start[k]:start[k+1]]``
    size : bytes of the file, an upper bound for anything a header may promise
    text : the file as it is, for finding line numbers when there is an error to report
    """

    path: str
    tokens: IntArray
    start: IntArray
    size: int
    text: bytes

    @property
    def lines(self) -> int:
        """Number of lines that are no comments."""
        return len(self.start) - 1

    def line(self, k: int) -> IntArray:
        """Numbers of line ``k`` (comments not counted)."""
        return self.tokens[self.start[k] : self.start[k + 1]]

    def line_of_token(self, t: int) -> int:
        """The line that token ``t`` is on (comments not counted)."""
        return int(np.searchsorted(self.start, t, side="right")) - 1

    def where(self, k: int) -> str:
        """``file:line`` of line ``k``, counted from 1 with comments, as an editor does."""
        return f"{self.path}:{_file_line(self.text, k)}"


def _file_line(text: bytes, k: int) -> int:
    """Line number in the file (from 1) of the ``k``-th line (from 0) that is no comment."""
    if b"%" not in text:
        return k + 1
    seen = -1
    number = 0
    for number, line in enumerate(text.split(b"\n"), start=1):  # noqa: B007
        seen += not line.lstrip(b" \t").startswith(b"%")
        if seen == k:
            break
    return number


def read_integer_lines(path: Path) -> IntegerLines:
    """Read a file of whole numbers >= 0; lines that start with ``%`` are comments.

    Raises
    ------
    InputError : unreadable, or something that is no whole number >= 0 (with its line)
    """
    text = read_limited(path)
    body = _COMMENT.sub(b"", text) if b"%" in text else text
    tokens = _numbers(body)
    if tokens is None or (len(tokens) and tokens.min() < 0) or b"\0" in body:
        raise _bad_token(text, str(path))
    start = _line_starts(body)
    if start[-1] != len(tokens):  # white space that one of the two counts does not know
        raise _bad_token(text, str(path))
    return IntegerLines(str(path), tokens, start, len(text), text)


def _numbers(body: bytes) -> IntArray | None:
    """All whole numbers of ``body``, or None if it holds anything else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            tokens = np.fromstring(body, dtype=np.int64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    if len(tokens) and tokens.max() == np.iinfo(np.int64).max:
        return None
    # fromstring reads "only blanks" as one number
    return tokens if body.strip() else tokens[:0]


def _line_starts(body: bytes) -> IntArray:
    """Index of the first token of every line; a last line without a line end counts if it holds something."""
    raw = np.frombuffer(body, np.uint8)
    blank: BoolArray = raw <= 32
    first = ~blank
    first[1:] &= blank[:-1]
    begins = np.flatnonzero(first)
    ends = np.flatnonzero(raw == 10)
    if not len(ends) or ends[-1] != len(raw) - 1:
        ends = np.append(ends, len(raw))
    start = np.zeros(len(ends) + 1, np.int64)
    start[1:] = np.searchsorted(begins, ends)
    return start


def _bad_token(text: bytes, path: str) -> InputError:
    """Find the first token that is no whole number >= 0 (only runs when there is one)."""
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.lstrip(b" \t").startswith(b"%"):
            continue
        for token in line.split():
            if not token.isdigit() or len(token) > 18:
                shown = token[:30].decode("utf-8", "replace")
                return InputError(f"found {shown!r}", f"{path}:{number}", "a whole number from 0 to 10^18")
    return InputError("the file is no text of whole numbers", path)


def integer_text(rows: list[list[int]]) -> bytes:
    """One line per row, numbers separated by blanks (written by the JSON encoder, which is ten times as fast)."""
    import msgspec

    if not rows:
        return b""
    return msgspec.json.encode(rows)[2:-2].replace(b"],[", b"\n").replace(b",", b" ") + b"\n"
