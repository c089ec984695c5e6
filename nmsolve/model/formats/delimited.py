"""Text in columns: encoding, separator and rows, which readers of such files share. Python's ``csv`` reads the rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import PIECE, text_pieces
from nmsolve.model.formats.text import decimal

#: Lines that begin so are comments.
COMMENT = ("#", "%")
#: The separator of text in columns that are separated by runs of blanks and tabs.
BLANK = " "
#: Blanks at the ends of fields; Python's own ``strip`` takes others for blanks, too.
WHITE = " \t\r\n"
#: A number with marks between thousands, or a fraction of three digits.
THOUSANDS = re.compile(r"[1-9]\d{0,2}([.,]\d{3})+")

#: What is expected of quotation marks.
QUOTED = "fields quoted as in CSV, if they are"
_UTF8 = b"\xef\xbb\xbf"
#: Byte order marks of other encodings, the longer ones first.
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def whole_lines(path: Path, begin: int = 0) -> Iterator[bytes]:
    """Yield the text from byte ``begin`` on, some MB of whole lines at a time; the last line gets an end if it has none.

    Raises
    ------
    InputError : a line that is too long; whatever :func:`~nmsolve.model.files.text_pieces` raises
    """
    rest = b""
    for k, piece in enumerate(text_pieces(path)):
        piece, begin = piece[begin:], max(0, begin - len(piece))
        end = piece.rfind(b"\n") + 1
        if end == 0:
            rest += piece
            if len(rest) > PIECE:
                line = 1 + sum(before.count(b"\n") for before in islice(text_pieces(path), k))
                raise InputError("the line is too long", f"{path}:{line}", f"at most {PIECE} bytes")
            continue
        chunk, rest = rest + piece[:end], piece[end:]
        yield chunk
    if rest.strip():
        yield rest + b"\n"


def mark_length(head: bytes, path: Path) -> int:
    """Return how many bytes of byte order mark the text begins with.

    Raises
    ------
    InputError : the text is not UTF-8 but UTF-16 or UTF-32, or its lines end with a carriage return alone
    """
    other = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if other is None and head[1:2] == b"\0" and head[:1] > b"\0":
        other = "UTF-16"
    if other is not None:
        raise InputError(f"the text is {other}", str(path), "UTF-8 (save it as CSV UTF-8, or use iconv)")
    if b"\r" in head and b"\n" not in head:
        raise InputError("lines end with a carriage return alone", str(path), "line ends of Unix or Windows")
    return len(_UTF8) if head.startswith(_UTF8) else 0


class Line(NamedTuple):
    """A line that is no comment: the byte where it begins and that behind it, its number, its text."""

    begin: int
    end: int
    number: int
    text: str


def first_lines(head: bytes, path: Path, most: int = 100) -> tuple[list[Line], list[tuple[int, str]]]:
    """Return up to ``most`` lines of the beginning of a text, and the comments above them with their numbers.

    Raises
    ------
    InputError : as :func:`mark_length`
    """
    lines: list[Line] = []
    comments: list[tuple[int, str]] = []
    begin = mark_length(head, path)
    number = 1
    while begin < len(head) and len(lines) < most:
        end = head.find(b"\n", begin) + 1 or len(head)
        text = head[begin:end].decode("utf-8", "replace").strip("\r\n")
        if text.lstrip(WHITE).startswith(COMMENT):
            comments += [] if lines else [(number, text.strip(WHITE))]
        elif text.strip(WHITE):
            lines.append(Line(begin, end, number, text))
        begin, number = end, number + 1
    return lines, comments


def separator(lines: Sequence[str]) -> str:
    """Return what separates the fields of lines: tab, semicolon, comma, or :data:`BLANK`.

    What the first line looks like counts, unless the lines then differ in their number of fields, but with another separator all
    have the same, two or more.
    """
    likely = _likely(lines[0])
    for between in (likely, "\t", ";", ",", BLANK):
        counts = {len(fields_or_none(line, between)) for line in lines}
        if len(counts) == 1 and counts.pop() > 1:
            return between
    return likely


def _likely(line: str) -> str:
    """Return what separates the fields of one line."""
    plain = re.sub(r'"[^"]*"', "x", line.strip(WHITE))
    tabs = [field.strip(" ") for field in plain.split("\t")]
    if len(tabs) > 1 and all(field and field[-1] not in ",;" for field in tabs):
        words = _words(plain)
        return BLANK if len(words) > len(tabs) and all(decimal(word) is not None for word in words) else "\t"
    parts = plain.split(";")
    if len(parts) > 1 and (
        len(parts) > plain.count(",")
        or all(decimal(part.strip(WHITE).replace(",", ".")) is not None for part in parts)
    ):
        return ";"
    return "," if "," in plain else "\t" if "\t" in plain else BLANK


def fields_of(line: str, between: str) -> list[str]:
    """Return the fields of one line, without blanks around them.

    Raises
    ------
    csv.Error : a quotation mark where none can be
    """
    if between == BLANK:
        if '"' not in line:
            return _words(line)
        line = " ".join(_words(line))
    reader = csv.reader([line], delimiter=between, skipinitialspace=True, strict=True)
    return [field.strip(WHITE) for field in next(reader, [])]


def unsplit(error: csv.Error, where: str) -> InputError:
    """Return what is said of a line that cannot be split into fields."""
    return InputError(f"cannot be split ({error})", where, QUOTED)


def fields_or_none(line: str, between: str) -> list[str]:
    """Return the fields of a line, none if it is not quoted as in CSV."""
    try:
        return fields_of(line, between)
    except csv.Error:
        return []


def _words(line: str) -> list[str]:
    """Return what stands between runs of blanks."""
    return re.findall(r"[^ \t\r\n]+", line)


@dataclass
class Rows:
    """The rows of a file from byte ``begin`` on, which is where ``line`` starts; while they are taken, ``line`` is that of the
    last row.

    Empty lines and comments are passed over. Iterate over it once.

    Attributes
    ----------
    columns : fields of every row: comments that have as many, as where a name begins with #, are counted in ``odd``
    odd : their number, and the line of the first
    """

    path: Path
    separator: str
    begin: int = 0
    line: int = 1
    columns: int = 0
    odd: tuple[int, int] = (0, 0)

    def say_odd(self) -> None:
        """Warn of comments that look like rows, once all rows are taken."""
        count, line = self.odd
        if count:
            each = "lines that begin" if count > 1 else "line that begins"
            what = f"{count} {each} with # or % and could be {'rows' if count > 1 else 'a row'}: passed over"
            doubtful(what, f"{self.path}:{line}", 'comments, or names in quotation marks such as "#1"')

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the fields of every row.

        Raises
        ------
        InputError : text that is not UTF-8 or not quoted as in CSV, with the line
        """
        lines = self.lines()
        try:
            if self.separator == BLANK:
                yield from (fields_of(line, BLANK) for line in lines)
                return
            yield from csv.reader(lines, delimiter=self.separator, skipinitialspace=True, strict=True)
        except csv.Error as error:
            raise unsplit(error, self.where) from None

    def batches(self) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Yield numbers and fields of many lines at a time; quoted fields end in their line. A separator behind the last of more
        than two fields is none.

        Raises
        ------
        InputError : as :meth:`__iter__`
        """
        for number, text in self._texts():
            rows = self._plain(text)
            numbers = list(range(number, number + len(rows)))
            for self.line, line in enumerate([] if rows else text.split("\n")[:-1], number):
                start = line.lstrip(WHITE)
                if not start or start.startswith(COMMENT):
                    continue
                try:
                    fields = fields_of(start, self.separator)
                except csv.Error as error:
                    raise unsplit(error, self.where) from None
                numbers.append(self.line)
                rows.append(fields[:-1] if len(fields) > 2 and not fields[-1] else fields)
            if rows:
                yield numbers, rows

    def _plain(self, text: str) -> list[list[str]]:
        """Return the fields of lines that need no care (in a third of the time): no quotes, comments, blanks, lines of other
        lengths; else nothing."""
        if self.separator == BLANK or any(c in text for c in '"#% \r'):
            return []
        rows = [line.split(self.separator) for line in text[:-1].split("\n")]
        return rows if len({*map(len, rows)}) == 1 and rows[0][-1] else []

    @property
    def where(self) -> str:
        """``file:line`` of the last row."""
        return f"{self.path}:{self.line}"

    def lines(self) -> Iterator[str]:
        """Yield the lines of rows with their ends. InputError for text that is not UTF-8."""
        for number, text in self._texts():
            for self.line, line in enumerate(text.split("\n")[:-1], number):
                start = line.lstrip(WHITE)
                if start and not start.startswith(COMMENT):
                    yield line + "\n"
                elif start and self._like_row(start):
                    self.odd = self.odd[0] + 1, self.odd[1] or self.line

    def _texts(self) -> Iterator[tuple[int, str]]:
        """Yield whole lines, many at a time, with the number of the first."""
        number = self.line
        for chunk in whole_lines(self.path, self.begin):
            try:
                yield number, chunk.decode()
            except UnicodeDecodeError as error:
                line = number + chunk.count(b"\n", 0, error.start)
                what = f"byte 0x{chunk[error.start]:02x} is not UTF-8 text"
                raise InputError(what, f"{self.path}:{line}", "text in UTF-8") from None
            number += chunk.count(b"\n")

    def _like_row(self, comment: str) -> bool:
        """Return whether a comment has the fields of a row, and no blank as comments in words begin with."""
        if self.columns < 2 or self.separator == BLANK or comment[1:2] in " \t#%":
            return False
        return len(fields_or_none(comment, self.separator)) == self.columns
