"""Solved runs in a SQLite file: one row per graph, machine and objective, the best mapping of each (docs/files.md)."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.learn.archive.arcs import Arcs
from nmsolve.learn.archive.packing import MOST_DATA, Solved, digest, packed, unpacked
from nmsolve.learn.archive.signature import SIZE, distance, signature
from nmsolve.model.errors import InputError
from nmsolve.model.graph import MOST_EDGES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

FORMAT = "nmsolve-memory-1"
#: How many relatives are handed out.
NEAREST = 3
#: Relatives further away than this (sum of differences of signatures) are none.
FAR = 8.0
#: What another objective, another machine and another name of the graph add to the distance.
OTHER_OBJECTIVE, OTHER_MACHINE, OTHER_NAME = 0.5, 0.2, 0.1
#: Most runs, and bytes of their data, in a store: those that were of no use for longest go first.
MOST_RUNS, MOST_STORED = 1000, 2**28
#: Seconds to wait for another process that writes.
PATIENCE = 20.0
_COLUMNS = {
    "key": "TEXT PRIMARY KEY NOT NULL",
    "version": "TEXT NOT NULL",
    "name": "TEXT NOT NULL",
    "objective": "TEXT NOT NULL",
    "machine": "TEXT NOT NULL",
    "n": "INTEGER NOT NULL",
    "m": "INTEGER NOT NULL",
    "rows": "INTEGER NOT NULL",
    "cols": "INTEGER NOT NULL",
    "value": "REAL NOT NULL",
    "used": "INTEGER NOT NULL",
    "signature": "BLOB NOT NULL",
    "data": "BLOB NOT NULL",
    "digest": "TEXT NOT NULL",
}
#: Every table of a store, with the text that makes it: a file with any other table, view, index or trigger is none.
_TABLES = {
    "about": "CREATE TABLE about (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)",
    "solved": "CREATE TABLE solved ("
    + ", ".join(f'"{name}" {kind}' for name, kind in _COLUMNS.items())
    + ")",
}
_ROW = 'version, name, n, m, "rows", "cols", value, data, digest'


def release() -> str:
    """Return the version of nmsolve as it is installed: what an objective is worth may change with it."""
    try:
        return version("nmsolve")
    except PackageNotFoundError:  # run from its folder
        return "not installed"


class Archive:
    """The runs of ``path``; made if there is none. Several processes may use it at the same time.

    Every change is one transaction. Rows are data only: nothing in them is run, and :func:`.packing.unpacked` checks them.

    Raises
    ------
    InputError : the file is not such a store, or cannot be read or written
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._named("not a store of runs"):
            self._db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._db.close()
                raise

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """Whatever SQLite complains about becomes one line with the file's name."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            why = " ".join(str(error).split())
            wanted = "a file that `nmsolve map --memory-of` wrote, or a new one"
            raise InputError(f"{what} ({why})", str(self._path), wanted) from None

    @contextmanager
    def _change(self) -> Iterator[None]:
        """One transaction; nothing of it stays if anything fails."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _open(self) -> None:
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MOST_DATA)
        self._db.execute("PRAGMA trusted_schema = OFF")
        if not self._tables():
            with self._change():
                if not self._tables():  # another process may have been faster
                    for text in _TABLES.values():
                        self._db.execute(text)
                    self._db.execute("INSERT INTO about VALUES ('format', ?)", (FORMAT,))
        tables = self._tables()
        found = None
        if "about" in tables and {"name", "value"} <= self._columns("about"):
            found = self._db.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
        if found is None or found[0] != FORMAT or tables != _TABLES:
            what = "no format" if found is None else f"format {str(found[0])[:40]!r}"
            other = " and other tables" if found is not None and found[0] == FORMAT else ""
            raise InputError(f"a store with {what}{other}", str(self._path), f"{FORMAT}, or a new file")

    def _tables(self) -> dict[str, str]:
        """Everything that the file defines, by name, with the text that makes it."""
        listed = self._db.execute(
            "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_autoindex_%'"
        )
        return dict(listed.fetchall())

    def _columns(self, table: str) -> set[str]:
        return {row[1] for row in self._db.execute(f"PRAGMA table_info({table})")}

    def keep(
        self, problem: MappingProblem, core: IntArray, value: float, used: Sequence[Solved] = ()
    ) -> str | None:
        """Keep a mapping ``core`` (n,) of a problem without ``together`` constraints, if it is the best so far.

        Runs beyond :data:`MOST_RUNS` and :data:`MOST_STORED` are dropped: those first that were neither kept nor of use for
        longest.

        Parameters
        ----------
        used : the relatives that were of use

        Returns
        -------
        str | None
            why it was not kept, or None

        Raises
        ------
        InputError : the file cannot be written
        """
        graph, machine = problem.graph, problem.machine
        if graph.on_disk or graph.m > MOST_EDGES:
            return "the graph is on disk" if graph.on_disk else f"more than {MOST_EDGES} connections"
        arcs = Arcs.of(graph)
        data = packed(arcs, core)
        if len(data) > MOST_DATA:
            return f"{len(data) / 2**20:.0f} MiB, more than {MOST_DATA / 2**20:.0f}"
        identity = f"{FORMAT} {release()} {graph.hash} {machine.hash} {problem.objective}"
        key = hashlib.sha256(identity.encode()).hexdigest()[:32]
        row: dict[str, Any] = {
            "key": key, "version": release(), "name": graph.name[:200], "objective": problem.objective,
            "machine": machine.hash, "n": arcs.n, "m": len(arcs.source), "rows": machine.rows, "cols": machine.cols,
            "value": float(value), "signature": signature(arcs).tobytes(), "data": data,
            "digest": digest(data, machine.rows, machine.cols),
        }  # fmt: skip
        with self._named("the run cannot be kept"), self._change():
            now = 1 + int(self._db.execute("SELECT coalesce(max(used), 0) FROM solved").fetchone()[0])
            for relative in used:
                self._db.execute("UPDATE solved SET used = ? WHERE key = ?", (now, relative.key))
            better = self._insert({**row, "used": now})
            self._db.execute("UPDATE solved SET used = ? WHERE key = ?", (now, key))
            self._drop()
        return None if better else "a mapping at least as good is there already"

    def _insert(self, row: dict[str, Any]) -> bool:
        names = ", ".join(f'"{name}"' for name in _COLUMNS)
        kept = ", ".join(
            f"{name} = excluded.{name}" for name in ("value", "data", "digest", "signature", "name")
        )
        asked = (
            f"INSERT INTO solved ({names}) VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT (key) DO UPDATE "
            f"SET {kept} WHERE excluded.value < solved.value"
        )
        return self._db.execute(asked, [row[name] for name in _COLUMNS]).rowcount > 0

    def _drop(self) -> None:
        """Drop what is too much, the longest unused first."""
        listed = self._db.execute("SELECT key, length(data) FROM solved ORDER BY used DESC, key").fetchall()
        size = 0
        for number, (key, length) in enumerate(listed):
            size += int(length)
            if number >= MOST_RUNS or (number and size > MOST_STORED):
                self._db.execute("DELETE FROM solved WHERE key = ?", (key,))

    def relatives(
        self, problem: MappingProblem, say: Callable[[str], object], most: int = NEAREST
    ) -> list[Solved]:
        """Return the nearest solved relatives of a problem without ``together`` constraints, the nearest first.

        ``say`` : called with one line for every row that is damaged and left out

        Raises
        ------
        InputError : the file cannot be read
        """
        if problem.graph.on_disk or problem.graph.m > MOST_EDGES:
            return []
        mine = signature(Arcs.of(problem.graph))
        with self._named("the runs cannot be read"):
            whole = "length(data) <= ? AND length(signature) = ? AND length(name) <= 200 AND length(key) = 32"
            listed = self._db.execute(
                f"SELECT key, name, objective, machine, signature FROM solved WHERE {whole} ORDER BY key LIMIT ?",
                (MOST_DATA, 8 * SIZE, 10 * MOST_RUNS),
            ).fetchall()
            damaged = self.count() - len(listed)
        near = []
        for key, name, objective, machine, theirs in listed:
            apart = np.nan
            if isinstance(theirs, bytes) and len(theirs) == 8 * SIZE:
                apart = distance(mine, np.frombuffer(theirs))
            damaged += not np.isfinite(apart)
            apart += OTHER_OBJECTIVE * (objective != problem.objective) + OTHER_NAME * (
                name != problem.graph.name
            )
            apart += OTHER_MACHINE * (machine != problem.machine.hash)
            if apart <= FAR:
                near.append((apart, key))
        out: list[Solved] = []
        for apart, key in sorted(near):
            if len(out) == most:
                break
            with self._named("the runs cannot be read"):
                found = self._db.execute(f"SELECT {_ROW} FROM solved WHERE key = ?", (key,)).fetchone()
            solved = None if found is None else unpacked(key, apart, *found)
            damaged += found is not None and solved is None
            out += [] if solved is None else [solved]
        if damaged:
            say(f"damaged runs in {self._path}, left out: {damaged}")
        return out

    def count(self) -> int:
        """Return the number of runs."""
        with self._named("the runs cannot be read"):
            return int(self._db.execute("SELECT count(*) FROM solved").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()
