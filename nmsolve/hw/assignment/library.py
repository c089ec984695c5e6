"""The function library (M3.8): what operations cost on processors, measured or not, in one SQLite file.

A file may come from anybody: only files that this program wrote are read (application id, version and schema must be its own, so
there are no views and no triggers), values are checked one by one, extensions stay off, and every mistake is one line.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from nmsolve.hw.assignment.fit import Fit, Sample, fitted
from nmsolve.hw.assignment.keys import Key, family_of
from nmsolve.model.errors import InputError

#: What SQLite writes into the header: "nmsl", and the version of the tables.
APPLICATION, VERSION = 0x6E6D736C, 1
#: No library is larger (bytes), or has more rows in a table.
LARGEST_FILE, MOST_ROWS = 2**28, 10**6
#: Where a figure may come from.
ORIGINS = ("measured", "fitted", "assumed")
#: What copies of tensors are called; their sizes are ``[[bytes]]``.
COPY = "@copy"

_KEY = "kind TEXT NOT NULL, attributes TEXT NOT NULL, types TEXT NOT NULL, sizes TEXT NOT NULL"
_SAME = "kind, attributes, types, sizes, processor"
SCHEMA = {
    "entry": (
        f"CREATE TABLE entry ({_KEY}, processor TEXT NOT NULL, threads INTEGER NOT NULL, time REAL NOT NULL, energy REAL, "
        "memory INTEGER, macs INTEGER NOT NULL, elements INTEGER NOT NULL, bytes INTEGER NOT NULL, origin TEXT NOT NULL, "
        "host TEXT NOT NULL, runtime TEXT NOT NULL, runs INTEGER NOT NULL, quantile REAL NOT NULL, spread REAL NOT NULL, "
        f"PRIMARY KEY ({_SAME}, threads)) WITHOUT ROWID"
    ),
    "fused": (
        "CREATE TABLE fused (parts TEXT NOT NULL, processor TEXT NOT NULL, threads INTEGER NOT NULL, time REAL NOT NULL, "
        "apart REAL NOT NULL, runs INTEGER NOT NULL, spread REAL NOT NULL, PRIMARY KEY (parts, processor, threads)) WITHOUT ROWID"
    ),
    "verdict": (
        f"CREATE TABLE verdict ({_KEY}, processor TEXT NOT NULL, got INTEGER NOT NULL, failed INTEGER NOT NULL, "
        f"PRIMARY KEY ({_SAME})) WITHOUT ROWID"
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """What one run of an operation costs.

    Attributes
    ----------
    key, processor, threads : what runs where
    time : ps, a low quantile of the runs
    energy : pJ, None if not known
    memory : bytes of inputs and results, None if not known
    macs, elements, bytes : its work, which regressions go by
    origin : one of :data:`ORIGINS`
    host, runtime : where it was measured, and with what
    runs : how many were measured
    quantile : which one ``time`` is, 0 to 1
    spread : median divided by ``time``, at least 1
    """

    key: Key
    processor: str
    threads: int
    time: float
    energy: float | None = None
    memory: int | None = None
    macs: int = 0
    elements: int = 0
    bytes: int = 0
    origin: str = "measured"
    host: str = ""
    runtime: str = ""
    runs: int = 1
    quantile: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True)
class Fused:
    """What a group of operations costs as one: ``time`` ps against ``apart`` ps one by one, both measured in one run."""

    parts: tuple[Key, ...]
    processor: str
    threads: int
    time: float
    apart: float
    runs: int = 1
    spread: float = 1.0

    @property
    def saved(self) -> float:
        """Return the part of the time that fusion saves, 0 to 1."""
        return max(0.0, 1 - self.time / self.apart)


@dataclass
class Verdict:
    """How often a processor got an operation, and how often it could have run it for less and did not get it."""

    got: int = 0
    failed: int = 0


@dataclass
class _Content:
    entries: dict[tuple[Key, str, int], Entry] = field(default_factory=dict)
    fused: dict[tuple[tuple[Key, ...], str, int], Fused] = field(default_factory=dict)
    verdicts: dict[tuple[Key, str], Verdict] = field(default_factory=dict)


class Library:
    """A library as it is in its file. Everything is read at once; what is added is written at once.

    Parameters
    ----------
    path : the file; None: in memory only
    write : it may be changed, and is made if it does not exist

    Raises
    ------
    InputError : no such file, no library of this program, damaged, or with values that cannot be
    """

    def __init__(self, path: str | Path | None = None, write: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.where = "library" if path is None else str(path)
        self._fits: dict[tuple[str, str, str, int], Fit | None] = {}
        self._families: dict[tuple[str, str, str, int], list[Sample]] | None = None
        with self._words():
            self._file = self._open(write or path is None)
            try:
                self._content = self._read()
            except BaseException:
                self._file.close()
                raise

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return all entries."""
        return tuple(self._content.entries.values())

    @property
    def fused(self) -> tuple[Fused, ...]:
        """Return all groups."""
        return tuple(self._content.fused.values())

    @property
    def has_verdicts(self) -> bool:
        """Return whether an earlier run is on record."""
        return bool(self._content.verdicts)

    def find(self, key: Key, processor: str, threads: int = 1) -> Entry | None:
        """Return the entry of an operation, None if there is none."""
        return self._content.entries.get((key, processor, threads))

    def find_fused(self, parts: Sequence[Key], processor: str, threads: int = 1) -> Fused | None:
        """Return what a group costs, None if nobody has measured it."""
        return self._content.fused.get((tuple(parts), processor, threads))

    def verdict(self, key: Key, processor: str) -> Verdict:
        """Return how an operation fared on a processor in earlier runs."""
        return self._content.verdicts.get((key, processor), Verdict())

    def fit(self, key: Key, processor: str, threads: int = 1) -> Fit | None:
        """Return the regression over all measured entries of an operation's family, None if they are too few or too alike."""
        if self._families is None:
            self._families = {}
            for (k, p, t), e in self._content.entries.items():
                if e.origin == "measured":
                    sample = Sample(e.macs, e.elements, e.bytes, e.time)
                    self._families.setdefault((family_of(k), k.types, p, t), []).append(sample)
        name = (family_of(key), key.types, processor, threads)
        if name not in self._fits:
            self._fits[name] = fitted(self._families.get(name, []))
        return self._fits[name]

    def add(self, entries: Iterable[Entry] = (), fused: Iterable[Fused] = ()) -> None:
        """Write entries and groups over those of the same name.

        Raises
        ------
        InputError : a value that cannot be, or a file that cannot be written
        """
        entries, fused = list(entries), list(fused)
        for e in entries:
            self._check(e, "a new entry")
        for f in fused:
            self._check_fused(f, "a new group")
        with self._words(), self._file:
            self._file.executemany(
                f"INSERT OR REPLACE INTO entry VALUES ({', '.join('?' * 18)})", [_row(e) for e in entries]
            )
            self._file.executemany("INSERT OR REPLACE INTO fused VALUES (?, ?, ?, ?, ?, ?, ?)", [
                (json.dumps(f.parts), f.processor, f.threads, f.time, f.apart, f.runs, f.spread) for f in fused
            ])  # fmt: skip
        self._content.entries.update({(e.key, e.processor, e.threads): e for e in entries})
        self._content.fused.update({(f.parts, f.processor, f.threads): f for f in fused})
        self._fits.clear()
        self._families = None

    def record(self, got: Iterable[tuple[Key, str]], failed: Iterable[tuple[Key, str]]) -> None:
        """Note which processor operations got, and which they could have run on for less and did not get, for the next run."""
        changed: dict[tuple[Key, str], Verdict] = {}
        for names, attribute in ((got, "got"), (failed, "failed")):
            for name in names:
                old = changed.setdefault(name, Verdict(*vars(self.verdict(*name)).values()))
                setattr(old, attribute, getattr(old, attribute) + 1)
        with self._words(), self._file:
            self._file.executemany("INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?, ?, ?, ?)", [
                (*key, processor, v.got, v.failed) for (key, processor), v in changed.items()
            ])  # fmt: skip
        self._content.verdicts.update(changed)

    @contextmanager
    def _words(self) -> Iterator[None]:
        """Turn what SQLite says into one line."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"the library cannot be used ({error})", self.where, "a file that `nmsolve profile` wrote"
            ) from None

    def _open(self, write: bool) -> sqlite3.Connection:
        if self.path is None:
            file = sqlite3.connect(":memory:")
            _create(file)
            return file
        try:
            size = self.path.stat().st_size if self.path.is_file() else -1
        except OSError as error:
            raise InputError(f"the library cannot be read ({error.strerror})", self.where) from None
        if size < 0 and (not write or self.path.exists()):
            raise InputError("there is no such library", self.where, "a file that `nmsolve profile` wrote")
        if size > LARGEST_FILE:
            raise InputError(f"the library is {size:,} bytes", self.where, f"at most {LARGEST_FILE:,}")
        if size > 0:
            with self.path.open("rb") as start:
                if start.read(16) != b"SQLite format 3\0":
                    raise InputError("no SQLite file", self.where, "a file that `nmsolve profile` wrote")
        mode = "rwc" if write else "ro"
        file = sqlite3.connect(
            f"file:{quote(os.fspath(self.path.absolute()))}?mode={mode}", uri=True, timeout=10
        )
        try:
            file.execute("PRAGMA trusted_schema = OFF")
            file.execute("PRAGMA cell_size_check = ON")
            if size <= 0 and write:
                _create(file)
            self._require_own(file)
        except BaseException:
            file.close()
            raise
        return file

    def _require_own(self, file: sqlite3.Connection) -> None:
        """Raise InputError for a database of another program or version."""
        own = [file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        if own[0] != APPLICATION:
            raise InputError(
                "a database of another program", self.where, "a file that `nmsolve profile` wrote"
            )
        if own[1] != VERSION:
            raise InputError(f"version {own[1]} of the library", self.where, f"version {VERSION}")
        found = file.execute("SELECT type, name, sql FROM sqlite_master").fetchmany(len(SCHEMA) + 1)
        if sorted(found) != sorted(("table", name, sql) for name, sql in SCHEMA.items()):
            raise InputError(
                "tables that are not the library's", self.where, "a file that `nmsolve profile` wrote"
            )

    def _read(self) -> _Content:
        """Read and check everything.

        Raises
        ------
        InputError : the first row that cannot be
        """
        content = _Content()
        for number, row in enumerate(self._rows("entry")):
            where = f"{self.where}: entry {number + 1}"
            self._require_types(row, where, 5 * (str,) + (int, float, (float, type(None)), (int, type(None)), int, int, int) +
                                3 * (str,) + (int, float, float))  # fmt: skip
            e = Entry(Key(*row[:4]), *row[4:])
            self._check(e, where)
            content.entries[e.key, e.processor, e.threads] = e
        for number, row in enumerate(self._rows("fused")):
            where = f"{self.where}: fused {number + 1}"
            self._require_types(row, where, (str, str, int, float, float, int, float))
            f = Fused(self._parts(row[0], where), *row[1:])
            self._check_fused(f, where)
            content.fused[f.parts, f.processor, f.threads] = f
        for number, row in enumerate(self._rows("verdict")):
            where = f"{self.where}: verdict {number + 1}"
            self._require_types(row, where, 5 * (str,) + (int, int))
            if min(row[5:]) < 0:
                raise InputError(f"{min(row[5:])} times", where, "whole numbers >= 0")
            content.verdicts[Key(*row[:4]), row[4]] = Verdict(*row[5:])
        return content

    def _rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        count = self._file.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if count > MOST_ROWS:
            raise InputError(f"{count:,} rows in {table}", self.where, f"at most {MOST_ROWS:,}")
        yield from self._file.execute(f"SELECT * FROM {table}")

    def _require_types(self, row: Sequence[object], where: str, types: Sequence[Any]) -> None:
        for value, kind in zip(row, types, strict=True):
            if not isinstance(value, kind):
                raise InputError(
                    f"a value {str(value)[:40]!r} of a wrong type",
                    where,
                    "a library as `nmsolve profile` writes it",
                )

    def _parts(self, text: str, where: str) -> tuple[Key, ...]:
        try:
            parts = json.loads(text)
            return tuple(Key(*(str(x) for x in part)) for part in parts)
        except (ValueError, TypeError, RecursionError):
            raise InputError("parts that are no operations", where, "a list of operations") from None

    def _check(self, e: Entry, where: str) -> None:
        """Raise InputError for an entry whose values cannot be."""
        names = f"{where} ({e.key.kind} on {e.processor})"
        if not 0 < e.time < 1e18:
            raise InputError(f"the time is {e.time}", names, "ps, more than 0")
        if e.energy is not None and not 0 <= e.energy < 1e18:
            raise InputError(f"the energy is {e.energy}", names, "pJ, at least 0")
        counts = {"memory": e.memory or 0, "macs": e.macs, "elements": e.elements, "bytes": e.bytes}
        for name, count in counts.items():
            if count < 0:
                raise InputError(f"{name} is {count}", names, "a whole number >= 0")
        if e.origin not in ORIGINS:
            raise InputError(f"the origin is {e.origin!r}", names, "one of " + ", ".join(ORIGINS))
        if e.threads < 1 or e.runs < 1:
            raise InputError(f"{e.threads} threads, {e.runs} runs", names, "at least 1")
        if not 0 <= e.quantile <= 1 or not 1 <= e.spread < math.inf:
            raise InputError(f"quantile {e.quantile}, spread {e.spread}", names, "0 to 1, and at least 1")
        try:
            fine = isinstance(json.loads(e.key.sizes), list) and isinstance(
                json.loads(e.key.attributes), dict
            )
        except (ValueError, RecursionError):
            fine = False
        if not fine:
            raise InputError("sizes or attributes are not JSON", names, "a list, and an object")

    def _check_fused(self, f: Fused, where: str) -> None:
        if not 0 < f.time < 1e18 or not 0 < f.apart < 1e18 or f.threads < 1 or f.runs < 1 or len(f.parts) < 2:
            raise InputError(
                f"{len(f.parts)} operations in {f.time} ps, {f.apart} ps apart",
                where,
                "at least two operations, times above 0",
            )
        if not 1 <= f.spread < math.inf:
            raise InputError(f"the spread is {f.spread}", where, "at least 1")


def _create(file: sqlite3.Connection) -> None:
    with file:
        for sql in SCHEMA.values():
            file.execute(sql)
        file.execute(f"PRAGMA application_id = {APPLICATION}")
        file.execute(f"PRAGMA user_version = {VERSION}")


def _row(e: Entry) -> tuple[object, ...]:
    energy = None if e.energy is None else float(e.energy)
    return (
        *e.key, e.processor, e.threads, float(e.time), energy, e.memory, e.macs, e.elements, e.bytes, e.origin, e.host, e.runtime,
        e.runs, float(e.quantile), float(e.spread),
    )  # fmt: skip
