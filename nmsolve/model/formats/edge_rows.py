"""Edge lists that are more than plain numbers: names as ids, quoted fields, decimal commas, types, attributes of NetworkX."""

from __future__ import annotations

import ast
import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.errors import InputError, doubtful, name_unread
from nmsolve.model.formats.delimited import QUOTED, THOUSANDS, WHITE, Rows, fields_of
from nmsolve.model.formats.edge_columns import ATTRIBUTES, TYPES, Layout
from nmsolve.model.formats.text import DIGITS, decimal, decimals, whole_number
from nmsolve.model.types import FloatArray, IntArray

#: Edges that are handed out at once.
BATCH = 2**16
#: How numbers begin.
_NUMERIC = frozenset("0123456789+-.")
#: Words of spreadsheets and of pandas for a value that is missing; none is a name.
MISSING = frozenset({"", "nan", "null", "none", "#n/a"})
#: Words of R and of pandas for the same, which may be names.
_ALSO_MISSING = frozenset({"NA", "N/A"})
#: A number as spreadsheets write long ones: its digits, and how many digits follow the first.
_ROUNDED = re.compile(r"([0-9])(?:\.([0-9]+))?[eE]\+?([0-9]{1,3})")


class Lines(NamedTuple):
    """The edges of some lines: (e,) nodes by number, and weights."""

    source: IntArray
    target: IntArray
    weight: FloatArray


@dataclass
class EdgeRows:
    """The edges of a file, row by row; the same numbers of nodes every time that they are taken.

    Attributes
    ----------
    number : node by the text that it is written as: itself if the nodes of the file are numbers, else by first occurrence
    named : the nodes have names; None: no node has been seen
    directed : what Gephi's column says of all edges; None where there is none
    """

    path: Path
    layout: Layout
    number: dict[str, int] = field(default_factory=dict)
    named: bool | None = None
    directed: bool | None = None
    _padded: dict[int, str] = field(default_factory=dict)
    _owner: dict[tuple[int, int], str] = field(default_factory=dict)
    _marks: set[str] = field(default_factory=set)
    _unused: set[str] = field(default_factory=set)
    #: Of weights: the first that may have thousands with its place, and whether some have no mark or are surely fractions.
    _thousands: tuple[str, str] | None = None
    _unmarked: bool = False
    _fractions: bool = False
    _rounded: str = ""
    _read: bool = False

    def __iter__(self) -> Iterator[Lines]:
        """Yield the edges, some at a time.

        Raises
        ------
        InputError : a row that is no edge, with its line
        """
        rows = Rows(
            self.path, self.layout.separator, self.layout.begin, self.layout.line, self.layout.columns
        )
        batch: list[str | list[str]] = []
        places: list[int] = []
        for row in rows.lines() if self.layout.attributes else rows:
            batch.append(row)
            places.append(rows.line)
            if len(batch) == BATCH:
                yield self._taken(batch, places)
                batch, places = [], []
        yield self._taken(batch, places)
        if not self._read:
            rows.say_odd()
            self._require_fractions()
            self._say_doubts()
        self._read = True

    def _say_doubts(self) -> None:
        """Warn of nodes that may not be what they seem."""
        if self._rounded:
            what = f"node {self._rounded!r} has fewer digits than the number that it stands for"
            doubtful(what, str(self.path), "ids with all digits")
        for text in sorted(_ALSO_MISSING & self.number.keys()):
            doubtful(f"{text!r} is the name of a node", str(self.path), "no values that are missing")

    def _require_fractions(self) -> None:
        """Refuse numbers whose marks may part thousands: three digits behind every mark, and numbers without any beside them."""
        if self._thousands and self._unmarked and not self._fractions:
            what = f"found {self._thousands[1]!r}, which may be a thousand or a fraction"
            expected = "numbers without marks between thousands; fractions with another number of digits"
            raise InputError(what, self._thousands[0], expected)

    def _taken(self, batch: list[Any], places: list[int]) -> Lines:
        """Return the edges of rows; ``places`` are their lines."""
        layout = self.layout
        if layout.plain and set(map(len, batch)) == {layout.columns}:
            found = self._in_bulk(batch)
            if found is not None:
                return found
        edges = [self.edge(row, f"{self.path}:{line}") for row, line in zip(batch, places, strict=True)]
        source, target, weight = zip(*edges, strict=True) if edges else ((), (), ())
        return Lines(np.array(source, np.int64), np.array(target, np.int64), np.array(weight, np.float64))

    def _in_bulk(self, batch: list[list[str]]) -> Lines | None:
        """Return the edges of rows without anything out of the ordinary, a column at a time; else None."""
        layout, count = self.layout, len(batch)
        if list(layout.names) in batch:
            return None
        columns = list(zip(*batch, strict=True))
        source, target = ([text.strip(WHITE) for text in columns[k]] for k in (layout.source, layout.target))
        number = self.number
        try:
            for pair in zip(source, target, strict=True):
                for text in pair:
                    if text not in number:
                        self._node(text)
        except _WrongError:
            return None
        weight: FloatArray | None = np.ones(count)
        if layout.weight >= 0:
            words = [text.strip(WHITE) for text in columns[layout.weight]]
            text = " ".join(words)
            fractions = layout.separator in ";\t" and ("," in text or "." in text)  # they must agree
            plain = (
                text.isascii() and not fractions and "" not in words
            )  # as many numbers are then one in each
            weight = decimals(text.encode()) if plain else None
        if weight is None or len(weight) != count or not (np.isfinite(weight) & (weight >= 0)).all():
            return None
        self._unmarked |= layout.weight >= 0
        u, v = (np.fromiter(map(number.__getitem__, texts), np.int64, count) for texts in (source, target))
        return Lines(u, v, weight)

    def edge(self, row: str | list[str], where: str) -> tuple[int, int, float]:
        """Return nodes and weight in a row: its line, or its fields."""
        try:
            return self._edge(row, where)
        except _WrongError as error:
            text = row if isinstance(row, str) else self.layout.separator.join(row)
            what = f"found {text.strip(WHITE)[:60]!r}" + (f" with {error.what}" if error.what else "")
            raise InputError(what, where, error.expected or self._expected()) from None

    def _edge(self, row: str | list[str], where: str) -> tuple[int, int, float]:
        attributes = None
        layout = self.layout
        if isinstance(row, str):
            row, attributes = self._split(row)
        if len(row) == layout.columns + 1 and not row[-1].strip(WHITE):
            row = row[:-1]
        if len(row) != layout.columns:
            raise _WrongError("")
        row = [value.strip(WHITE) for value in row]
        if tuple(row) == layout.names:
            raise _WrongError("the names of the columns once more", "edges")
        if layout.kind >= 0:
            self._direct(row[layout.kind])
        weight = self._attribute(attributes, where) if attributes is not None else 1.0
        if layout.weight >= 0:
            weight = self._weight(row[layout.weight], where)
        source, target = self._node(row[layout.source]), self._node(row[layout.target])
        for k, (of_source, of_target) in enumerate(layout.owners):
            for node, name in ((source, row[of_source]), (target, row[of_target])):
                if (before := self._owner.setdefault((node, k), name)) != name:
                    what = (
                        f"node {row[layout.source if node == source else layout.target]!r} of {name[:60]!r}"
                    )
                    expected = f"a node of {before[:60]!r}, as before; different ids for all nodes"
                    raise _WrongError(what, expected)
        return source, target, weight

    def _split(self, line: str) -> tuple[list[str], str | None]:
        """Return the fields of a line, and the attributes behind them."""
        found = ATTRIBUTES.search(line) if self.layout.attributes else None
        try:
            fields = fields_of(line[: found.start()] if found else line, self.layout.separator)
        except csv.Error:
            raise _WrongError("", QUOTED) from None
        if self.layout.attributes and found is None:
            raise _WrongError("")
        return fields, None if found is None else found[0]

    def _direct(self, word: str) -> None:
        """Take what an edge's type says of the graph."""
        directed = TYPES.get(word.lower())
        if directed is None:
            raise _WrongError(f"type {word[:60]!r}", "Directed or Undirected")
        if self.directed not in (None, directed):
            raise _WrongError(f"type {word[:60]!r}", "all edges directed, or all undirected")
        self.directed = directed

    def _attribute(self, text: str, where: str) -> float:
        """Return the weight in a dict; others are passed over, and named once."""
        try:
            found = ast.literal_eval(text.strip(WHITE))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            found = None
        if not isinstance(found, dict):
            raise _WrongError("", "attributes as a dict of plain values at the end")
        unused = set(map(str, found)) - {"weight"} - self._unused
        self._unused |= unused
        name_unread("attribute", sorted(unused), where, "weight alone")
        return self._checked(found.get("weight", 1.0))

    def _weight(self, text: str, where: str) -> float:
        value = self._decimal(text)
        marks = ",." if self.layout.separator == ";" else "," if self.layout.separator == "\t" else ""
        if marks and value is not None:
            marked = any(mark in text for mark in marks)
            thousands = marked and THOUSANDS.fullmatch(text) is not None
            self._unmarked |= not marked
            self._fractions |= marked and not thousands
            if thousands and self._thousands is None:
                self._thousands = where, text
        return self._checked(text if value is None else value)

    def _decimal(self, text: str) -> float | None:
        """Return the number that a field is, or None; points and commas may not both begin fractions in a file."""
        mark = "," if "," in text and self.layout.separator in ";\t" else "." if "." in text else ""
        found = decimal(text.replace(",", ".") if mark == "," and "." not in text else text)
        if found is not None and mark:
            self._marks.add(mark)
            if len(self._marks) > 1:
                raise _WrongError("", "fractions with points, or with commas, in all of the file")
        return found

    @staticmethod
    def _checked(value: Any) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not (math.isfinite(value) and value >= 0):
            shown = f"{value:g}" if isinstance(value, float) else repr(value)
            raise _WrongError(f"weight {shown[:60]}", "a finite number >= 0")
        return float(value)

    def _node(self, text: str) -> int:
        known = self.number.get(text)
        if known is not None:
            return known
        value = self._whole(text) if text[:1] in _NUMERIC else None
        if value is None and text.lower() in MISSING:
            raise _WrongError(f"node {text!r}")
        if (
            value is None
            and len(words := text.split()) > 1
            and all(decimal(word) is not None for word in words)
        ):
            raise _WrongError("two separators")
        if self.named is None:
            self.named = value is None
        if self.named != (value is None):
            others = "names" if self.named else "whole numbers"
            raise _WrongError(f"node {text[:60]!r}", f"{others}, as the nodes before")
        if value is not None:
            padded = text[:1] == "0" and text[1:2].isdigit()
            other = str(value) if padded and str(value) in self.number else self._padded.get(value, text)
            if other != text:
                raise _WrongError(
                    f"node {text[:60]!r}, which is {other!r}, too", "every node written in one way"
                )
            if padded:
                self._padded[value] = text
        self.number[text] = len(self.number) if value is None else value
        return self.number[text]

    def _whole(self, text: str) -> int | None:
        """Return the whole number that a node is, or None if it is a name."""
        value = whole_number(text)
        if value is not None or self._decimal(text) is None:
            return value
        if "," in text and THOUSANDS.fullmatch(text):
            raise _WrongError(f"node {text[:60]!r}", "names, or whole numbers without marks")
        rounded = _ROUNDED.fullmatch(text)
        if rounded and 5 < len(rounded[1] + (rounded[2] or "")) <= int(rounded[3]):
            self._rounded = self._rounded or text
        try:
            exact = Decimal(text.replace(",", "."))
        except InvalidOperation:  # an exponent beyond any
            exact = Decimal(-1)
        if not 0 <= exact < 10**DIGITS or exact != exact.to_integral_value():
            raise _WrongError(f"node {text[:60]!r}", f"names, or whole numbers of at most {DIGITS} digits")
        return int(exact)

    def _expected(self) -> str:
        names = ["?"] * self.layout.columns
        for role in ("source", "target", "weight"):
            if (k := getattr(self.layout, role)) >= 0:
                names[k] = role
        more = " {attributes}" if self.layout.attributes else ""
        return (
            " ".join(self.layout.names or names) + more + "; nodes are whole numbers or names, weights >= 0"
        )


class _WrongError(Exception):
    """What is wrong with a row, and what is expected ("": what the columns are)."""

    def __init__(self, what: str, expected: str = "") -> None:
        self.what, self.expected = what, expected
