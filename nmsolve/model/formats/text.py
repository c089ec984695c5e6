"""Numbers in text files: one strict reading for all formats, and whole-number files in bulk.

A number is what everybody means by it: ASCII digits, at most one point, an exponent. Python and NumPy read more (``1_0``,
``nan``, ``infinity``, digits of other scripts, bytes up to a NUL), which no other tool would read alike.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray

_COMMENT = re.compile(rb"^[ \t]*%[^\n]*(?:\n|\Z)", re.MULTILINE)


_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_BLANKS = b" \t\n\v\f\r"
#: Most digits of a whole number.
DIGITS = 18


def whole_number(word: str | bytes) -> int | None:
    """Return the whole number >= 0, of at most 18 ASCII digits, that ``word`` is, or None."""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= DIGITS else None


def decimal(word: str | bytes) -> float | None:
    """Return the decimal number that ``word`` is (infinite if it is too large for a float), or None."""
    text = word.decode("latin-1") if isinstance(word, bytes) else word
    return float(text) if _DECIMAL.fullmatch(text) else None


def decimals(body: bytes) -> FloatArray | None:
    """Return (numbers,) all decimal numbers of a text, separated by white space; None if it holds anything else."""
    found = decimal_lines(body)
    return None if found is None else found[0]


def decimal_lines(body: bytes) -> tuple[FloatArray, IntArray] | None:
    """Return the same, and (lines + 1,) which number every line begins with."""
    if body.translate(None, b"0123456789+-.eE" + _BLANKS):
        return None
    return _in_bulk(body, np.float64)


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
        """Number of lines that are not comments."""
        return len(self.start) - 1

    def line(self, k: int) -> IntArray:
        """Return the numbers of line ``k``, 1-D (comments do not count as lines)."""
        return self.tokens[self.start[k] : self.start[k + 1]]

    def where(self, k: int) -> str:
        """Return ``file:line`` of line ``k``, counted from 1 with comments, as an editor does."""
        return f"{self.path}:{_file_line(self.text, k)}"


def _file_line(text: bytes, k: int) -> int:
    """Return the line number in the file (from 1) of the ``k``-th line (from 0) that is not a comment."""
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
    InputError : unreadable, or something that is not a whole number >= 0 (with its line)
    """
    text = read_limited(path)
    body = _COMMENT.sub(b"", text) if b"%" in text else text
    found = None if body.translate(None, b"0123456789" + _BLANKS) else _in_bulk(body, np.int64)
    if found is None or (len(found[0]) and found[0].max() >= 10**DIGITS):
        raise _bad_token(text, str(path))
    return IntegerLines(str(path), *found, len(text), text)


def _in_bulk(body: bytes, kind: type[Any]) -> tuple[AnyArray, IntArray] | None:
    """The numbers of a text that holds none but a number's characters and white space, and what every line begins with.

    None if a word is not a number.
    """
    start = _line_starts(body)
    if not body.strip(_BLANKS):
        return np.zeros(0, kind), start  # fromstring reads "only blanks" as one number
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            found: AnyArray = np.fromstring(body, dtype=kind, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    return (found, start) if len(found) == start[-1] else None  # it reads 1-2 as two numbers


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
    """Find the first token that is not a whole number >= 0 (only runs when there is one)."""
    bad = wrong_word(text, whole_number, comment=b"%")
    if bad is None:
        return InputError("the file is not a text of whole numbers", path)
    return InputError(f"found {bad.word!r}", f"{path}:{bad.line}", "a whole number from 0 to 10^18")


class Wrong(NamedTuple):
    """A word that is wrong: its line, how many words are before it, and how it begins."""

    line: int
    before: int
    word: str


def wrong_word(
    text: bytes, read: Callable[[bytes], object | None], line: int = 1, comment: bytes = b"\0"
) -> Wrong | None:
    """Return the first word of a text that ``read`` makes nothing of; the text begins in ``line``."""
    before = 0
    for number, row in enumerate(text.split(b"\n"), start=line):
        for word in () if row.lstrip(b" \t").startswith(comment) else row.split():
            if read(word) is None:
                return Wrong(number, before, word[:30].decode("utf-8", "replace"))
            before += 1
    return None


def repeated(key: AnyArray) -> tuple[int, int]:
    """Return the smallest of whole numbers that is there more than once, and how many there are beside it; 0 of none."""
    key = np.sort(key)
    twice = np.flatnonzero(key[1:] == key[:-1])
    return (int(key[twice[0]]) if len(twice) else 0), len(twice)


def integer_text(rows: list[list[int]]) -> bytes:
    """Return one line per row, numbers separated by blanks (written by the JSON encoder, which is ten times as fast)."""
    import msgspec

    if not rows:
        return b""
    return msgspec.json.encode(rows)[2:-2].replace(b"],[", b"\n").replace(b",", b" ") + b"\n"
