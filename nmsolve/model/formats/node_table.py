"""Node tables: what an edge list cannot say of its nodes, a row each, in columns with names."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from nmsolve.model.errors import InputError, doubtful, name_unread
from nmsolve.model.files import text_pieces
from nmsolve.model.formats.delimited import (
    BLANK,
    THOUSANDS,
    WHITE,
    Rows,
    fields_of,
    fields_or_none,
    first_lines,
    separator,
    unsplit,
)
from nmsolve.model.formats.edge_columns import plain_name, unit_in
from nmsolve.model.formats.json_sizes import RESOURCES
from nmsolve.model.formats.text import decimal, whole_number
from nmsolve.model.graph import NodeKinds, node_kinds
from nmsolve.model.network import Network
from nmsolve.model.types import BoolArray, FloatArray, IntArray, repeat_of

T = TypeVar("T")

#: Names of the column of ids; the first that is there counts.
IDS = ("node", "id", "name")
#: A column of a resource with any name is called ``sizes.NAME``, as in JSON.
SIZES = "sizes."
#: Words for whether a node multicasts.
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True)
class NodeTable:
    """What a table says of its n nodes.

    Attributes
    ----------
    ids : n ids, all text or all whole numbers; None: 0 to n - 1
    resources, sizes : names, and (n, len(resources)); None: no column is a resource
    multicast : (n,), None if there is no such column
    rate : (n,) messages per step of those that multicast, NaN where it is not stated; None if there is no such column
    """

    path: Path
    n: int
    ids: tuple[str | int, ...] | None
    resources: tuple[str, ...]
    sizes: IntArray | None
    kinds: NodeKinds | None
    multicast: BoolArray | None
    rate: FloatArray | None

    @property
    def sent(self) -> FloatArray | None:
        """(n,) stated rates of nodes that multicast, else NaN; None if none is stated."""
        if self.rate is None or self.multicast is None:
            return None
        return np.where(self.multicast, self.rate, np.nan)

    def order(self, nodes: IntArray, ids: tuple[str | int, ...] | None, edges: Path) -> IntArray:
        """Return (n,) the index of nodes of an edge list in this table.

        Parameters
        ----------
        nodes : (k,) their numbers
        ids : (k,) what they are called; None: by their numbers

        Raises
        ------
        InputError : the table does not have one of them
        """
        found = nodes.tolist() if ids is None else ids
        index = {v: i for i, v in enumerate(range(self.n) if self.ids is None else self.ids)}
        missing = next((v for v in found if v not in index), None)
        if missing is not None:
            raise InputError(f"no node {missing!r}", str(self.path), f"every node of {edges.name}")
        return np.fromiter((index[v] for v in found), np.int64, len(found))

    def described(self, network: Network) -> Network:
        """Return the network with what this says of its nodes.

        Rates count for nodes that multicast; a warning says where none does.
        """
        multicast = False if self.multicast is None else self.multicast
        if self.rate is not None and not np.any(multicast):
            name_unread("column", ["rate"], str(self.path), "nodes that multicast")
        return replace(
            network,
            sizes=self.sizes,
            resources=self.resources,
            kinds=self.kinds,
            multicast=multicast,
            rate=self.sent,
        )


def read_nodes(path: str | Path, multicast: bool = False) -> NodeTable:
    """Read a node table: a first line with the names of its columns, then a row per node. Comments as in edge lists.

    Columns that are not known are named in a warning. ``multicast`` : all nodes do, whatever the table says.

    Raises
    ------
    InputError : no column of ids, two of one meaning, no nodes, a node twice, a value that is none of its column; with the line
    """
    table = _Reader(Path(path)).read()
    if not multicast:
        return table
    if table.multicast is not None and not table.multicast.all():
        what = f"column 'multicast' says no for {np.count_nonzero(~table.multicast)} of {table.n}: --multicast counts"
        doubtful(what, str(path), "true for every node, or no --multicast")
    return replace(table, multicast=np.ones(table.n, bool))


class _Reader:
    """Reads one table."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines, _ = first_lines(next(text_pieces(path), b""), path, most=1)
        if not lines:
            raise InputError("there is no table", str(path), "a line of names, such as node,neurons")
        title, first = lines[0].text, lines[0].number
        between = separator([title])
        if between == BLANK and len(fields_or_none(title, BLANK)) == 1:
            between = "\t"  # nothing separates ids alone
        self.title = f"{path}:{first}"
        try:
            self.names = fields_of(title, between)
        except csv.Error as error:
            raise unsplit(error, self.title) from None
        self.rows = Rows(path, between, lines[0].end, first + 1, len(self.names))
        self.values: list[list[str]] = []
        self.lines: list[int] = []

    def read(self) -> NodeTable:
        """Return the table."""
        plain = [plain_name(name) for name in self.names]
        columns = {self._ids(plain): "id"}
        for k, word in enumerate(plain):
            name = self.names[k]
            if k in columns:
                continue
            if word in ("multicast", "rate", "kind", "population"):
                columns[k] = word
            elif word == "size" or name.lower() in RESOURCES:
                columns[k] = SIZES + ("neurons" if word == "size" else name.lower())
            elif name.startswith(SIZES) and len(name) > len(SIZES):
                columns[k] = name
        at = {meaning: k for k, meaning in columns.items()}
        if len(at) < len(columns):
            twice = next(m for m in at if list(columns.values()).count(m) > 1)
            raise InputError(f"two columns are {twice.removeprefix(SIZES)!r}", self.title, "one")
        if "kind" in at and "population" in at:
            del columns[at.pop("population")]
        for k in columns:
            if unit := unit_in(self.names[k]):
                what = f"the unit {unit!r} of column {self.names[k]!r}"
                raise InputError(what, self.title, "no units: counts, and messages per step")
        known = ("node", "size", *RESOURCES, "sizes.NAME", "population", "kind", "multicast", "rate")
        unused = (name for k, name in enumerate(self.names) if k not in columns)
        name_unread("column", unused, self.title, ", ".join(known))
        self._take()
        ids, n = self._unique(at["id"]), len(self.values)
        resources = tuple(m.removeprefix(SIZES) for m in at if m.startswith(SIZES))
        sizes = [self._wholes(at[SIZES + r]) for r in resources]
        kind = at.get("kind", at.get("population"))
        return NodeTable(
            self.path, n, None if ids == list(range(n)) else tuple(ids),
            resources or ("neurons",), np.array(sizes, np.int64).T.copy() if sizes else None,
            None if kind is None else node_kinds(self._column(kind, lambda v: v or None, "a kind for every node")),
            None if "multicast" not in at
            else np.array(self._column(at["multicast"], lambda v: _TRUTH.get(v.lower()), "true or false")),
            None if "rate" not in at
            else np.array(self._column(at["rate"], self._rate, "a number >= 0, or nothing")),
        )  # fmt: skip

    def _ids(self, plain: Sequence[str]) -> int:
        """Return the column of ids."""
        for name in IDS:
            found = [k for k, word in enumerate(plain) if word == name]
            if len(found) > 1:
                raise InputError(f"two columns are the id: {name!r}", self.title, "one")
            if found:
                return found[0]
        raise InputError(
            f"no column is the id in {', '.join(map(repr, self.names))[:200]}", self.title, "node"
        )

    def _take(self) -> None:
        """Read all rows."""
        for row in self.rows:
            if len(row) == len(self.names) + 1 and not row[-1].strip(WHITE):
                row = row[:-1]
            if len(row) != len(self.names):
                raise InputError(
                    f"{len(row)} fields", self.rows.where, f"{len(self.names)}: " + ", ".join(self.names)
                )
            self.values.append([value.strip(WHITE) for value in row])
            self.lines.append(self.rows.line)
        self.rows.say_odd()
        if not self.values:
            raise InputError("there are no nodes", str(self.path), "a row per node")

    def _unique(self, place: int) -> list[str | int]:
        """Return the ids: whole numbers, also such as ``1.0``, if all are."""
        texts = self._column(place, lambda v: v or None, "an id")
        self._require_no_thousands(place)
        numbers = [self._whole(text) for text in texts]
        ids: list[str | int] = [*texts]
        if None not in numbers:
            ids = [v for v in numbers if v is not None]
        if (k := repeat_of(ids)) is not None:
            where = f"{self.path}:{self.lines[k]}"
            raise InputError(f"node {ids[k]!r} is there twice", where, "a row per node")
        return ids

    def _wholes(self, k: int) -> list[int]:
        """Return a column of whole numbers."""
        self._require_no_thousands(k)
        return self._column(k, self._whole, "a whole number >= 0")

    def _require_no_thousands(self, k: int) -> None:
        """Refuse numbers with a mark before three digits, where others have none or the mark is a comma."""
        texts = [row[k] for row in self.values]
        plain = any(text.isdigit() for text in texts)
        for text, line in zip(texts, self.lines, strict=True):
            if THOUSANDS.fullmatch(text) and (plain or "," in text):
                self._wrong(k, text, line, "a whole number without marks between thousands")

    def _column(self, k: int, read: Callable[[str], T | None], expected: str) -> list[T]:
        """Return what ``read`` makes of a column; None is wrong."""
        return [
            self._wrong(k, row[k], line, expected) if (value := read(row[k])) is None else value
            for row, line in zip(self.values, self.lines, strict=True)
        ]

    def _wrong(self, k: int, found: str, line: int, expected: str) -> NoReturn:
        raise InputError(f"{self.names[k]} is {found[:60]!r}", f"{self.path}:{line}", expected)

    def _whole(self, text: str) -> int | None:
        """Return a whole number >= 0, also one written as ``32.0``; else None."""
        value = whole_number(text)
        if value is None and (number := self._number(text)) is not None and number.is_integer():
            return int(number) if 0 <= number < 2**53 else None
        return value

    def _rate(self, text: str) -> float | None:
        value = float("nan") if not text else self._number(text)
        return None if value is None or value < 0 or value == float("inf") else value

    def _number(self, text: str) -> float | None:
        comma = self.rows.separator in ";\t" and "." not in text
        return decimal(text.replace(",", ".") if comma else text)
