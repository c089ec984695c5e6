"""The function library (M3.8): what operations cost on processors, measured or not, in one SQLite file.

A file may come from anybody: only files that this program wrote are read (application id, version and schema must be its own, so
there are no views and no triggers), values are checked one by one, extensions stay off, and every mistake is one line.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from nmsolve.hw.assignment.library_rows import (
    KEYS,
    TABLES,
    Entry,
    Fit,
    Fused,
    Key,
    Sample,
    Verdict,
    check_entry,
    check_fused,
    entry_of,
    family_of,
    fitted,
    fused_of,
    row_of,
    verdict_of,
)
from nmsolve.model.errors import InputError

#: What SQLite writes into the header: "nmsl", and the version of the tables.
APPLICATION, VERSION = 0x6E6D736C, 1
#: No library is larger (bytes), or has more rows in a table.
LARGEST_FILE, MOST_ROWS = 2**28, 10**6
SCHEMA = {
    table: f"CREATE TABLE {table} ({', '.join(f'{name} {sql}' for name, (sql, _) in columns.items())}, "
    f"PRIMARY KEY ({', '.join(list(columns)[: KEYS[table]])})) WITHOUT ROWID"
    for table, columns in TABLES.items()
}


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
        """Return what a group costs, None if it was not measured."""
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
            check_entry(e, "a new entry")
        for f in fused:
            check_fused(f, "a new group")
        self._write("entry", map(row_of, entries))
        self._write("fused", map(row_of, fused))
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
        self._write("verdict", ((*key, p, v.got, v.failed) for (key, p), v in changed.items()))
        self._content.verdicts.update(changed)

    def _write(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        marks = ", ".join("?" * len(TABLES[table]))
        with self._words(), self._file:
            self._file.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)

    @contextmanager
    def _words(self) -> Iterator[None]:
        """Turn what SQLite says into one line."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # names of tables that are no text
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
        if len(found) != len(SCHEMA) or set(found) != {("table", name, sql) for name, sql in SCHEMA.items()}:
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
        for where, row in self._rows("entry"):
            e = entry_of(row, where)
            content.entries[e.key, e.processor, e.threads] = e
        for where, row in self._rows("fused"):
            f = fused_of(row, where)
            content.fused[f.parts, f.processor, f.threads] = f
        for where, row in self._rows("verdict"):
            key, processor, verdict = verdict_of(row, where)
            content.verdicts[key, processor] = verdict
        return content

    def _rows(self, table: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield rows with their places."""
        count = self._file.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if count > MOST_ROWS:
            raise InputError(f"{count:,} rows in {table}", self.where, f"at most {MOST_ROWS:,}")
        for number, row in enumerate(self._file.execute(f"SELECT * FROM {table}")):
            yield f"{self.where}: {table} {number + 1}", row


def _create(file: sqlite3.Connection) -> None:
    with file:
        for sql in SCHEMA.values():
            file.execute(sql)
        file.execute(f"PRAGMA application_id = {APPLICATION}")
        file.execute(f"PRAGMA user_version = {VERSION}")
