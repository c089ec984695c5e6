"""Solved runs in a SQLite file: one row per graph, machine and objective, the best mapping of each."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.learn.memory.arcs import Arcs
from nmsolve.learn.memory.signature import SIZE, distance, signature
from nmsolve.model.errors import InputError
from nmsolve.model.graph import MOST_EDGES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

FORMAT = "nmsolve-memory-1"
#: How many relatives are looked at.
NEAREST = 2
#: Relatives further away than this (sum of differences of signatures) are none.
FAR = 8.0
#: What another objective, another machine and another name of the graph add to the distance.
OTHER_OBJECTIVE, OTHER_MACHINE, OTHER_NAME = 0.5, 0.2, 0.1
#: Most bytes of a row's data once it is unpacked: a damaged row must not take all memory.
MOST_BYTES = 2**31
_COLUMNS = (
    "key",
    "name",
    "objective",
    "machine",
    "n",
    "m",
    "rows",
    "cols",
    "value",
    "signature",
    "data",
    "digest",
)


@dataclass(frozen=True, eq=False)
class Solved:
    """A mapping found earlier.

    Attributes
    ----------
    name : of the graph
    graph : what was mapped, ``together`` groups merged
    rows, cols : of the board
    core : (graph.n,) int64, core of every node
    value : of the objective
    """

    name: str
    graph: Arcs
    rows: int
    cols: int
    core: IntArray
    value: float


class Memory:
    """The runs of ``path``; made if there is none.

    Raises
    ------
    InputError : the file is not such a store, or cannot be read or written
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._named("not a store of runs"):
            self._db = sqlite3.connect(path, isolation_level=None)
            self._open()

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """Whatever SQLite complains about becomes one line with the file's name."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise InputError(
                f"{what} ({error})",
                str(self._path),
                "a file that `nmsolve map --memory-of` wrote, or a new one",
            ) from None

    def _open(self) -> None:
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._db.execute("INSERT INTO about VALUES ('format', ?)", (FORMAT,))
            columns = ", ".join(f'"{name}"' for name in _COLUMNS)
            self._db.execute(f"CREATE TABLE solved ({columns}, PRIMARY KEY (key))")
            self._db.execute("COMMIT")
            return
        found = None
        if "about" in tables:
            found = self._db.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
        columns = [row[1] for row in self._db.execute("PRAGMA table_info(solved)")]
        if found is None or found[0] != FORMAT or columns != list(_COLUMNS):
            what = "no format" if found is None else f"format {found[0]!r}"
            raise InputError(f"a store with {what}", str(self._path), f"{FORMAT}, or a new file")

    def keep(self, problem: MappingProblem, core: IntArray, value: float) -> bool:
        """Keep a mapping ``core`` (n,) of a problem without ``together`` constraints, if it is the best so far.

        Returns
        -------
        bool
            False if a better one is there already, or the graph is on disk or too large

        Raises
        ------
        InputError : the file cannot be written
        """
        graph, machine = problem.graph, problem.machine
        if graph.on_disk or graph.m > MOST_EDGES:
            return False
        arcs = Arcs.of(graph)
        data = _packed(arcs, core)
        key = hashlib.sha256(f"{graph.hash} {machine.hash} {problem.objective}".encode()).hexdigest()[:32]
        row = (
            key, graph.name, problem.objective, machine.hash, arcs.n, len(arcs.source), machine.rows, machine.cols,
            float(value), signature(arcs).tobytes(), data,
        )  # fmt: skip
        with self._named("the run cannot be kept"):
            changed = self._db.execute(
                f"INSERT INTO solved VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT (key) DO UPDATE SET "
                "value = excluded.value, data = excluded.data, digest = excluded.digest, signature = excluded.signature "
                "WHERE excluded.value < solved.value",
                (*row, _digest(data, machine.rows, machine.cols)),
            ).rowcount
        return bool(changed)

    def relatives(
        self, problem: MappingProblem, say: Callable[[str], object], most: int = NEAREST
    ) -> list[Solved]:
        """Return the nearest solved relatives of a problem without ``together`` constraints, the nearest first.

        ``say`` : called with one line for every row that is damaged and left out

        Raises
        ------
        InputError : the file cannot be read
        """
        if problem.graph.on_disk:
            return []
        mine = signature(Arcs.of(problem.graph))
        with self._named("the runs cannot be read"):
            listed = self._db.execute(
                "SELECT key, name, objective, machine, signature FROM solved ORDER BY key"
            ).fetchall()
        near = []
        for key, name, objective, machine, theirs in listed:
            if not isinstance(theirs, bytes) or len(theirs) != 8 * SIZE:
                say(f"a damaged run of {name!r} in {self._path} is left out")
                continue
            far = distance(mine, np.frombuffer(theirs))
            far += OTHER_OBJECTIVE * (objective != problem.objective) + OTHER_NAME * (
                name != problem.graph.name
            )
            far += OTHER_MACHINE * (machine != problem.machine.hash)
            if far <= FAR:
                near.append((far, key))
        out: list[Solved] = []
        for _, key in sorted(near):
            if len(out) == most:
                break
            with self._named("the runs cannot be read"):
                found = self._db.execute(
                    'SELECT name, n, m, "rows", "cols", value, data, digest FROM solved WHERE key = ?', (key,)
                ).fetchone()
            solved = _unpacked(*found)
            if solved is None:
                say(f"a damaged run of {found[0]!r} in {self._path} is left out")
            else:
                out.append(solved)
        return out

    def count(self) -> int:
        """Return the number of runs."""
        with self._named("the runs cannot be read"):
            return int(self._db.execute("SELECT count(*) FROM solved").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _digest(data: bytes, rows: int, cols: int) -> str:
    return hashlib.sha256(f"{rows} {cols} ".encode() + data).hexdigest()[:32]


def _packed(arcs: Arcs, core: IntArray) -> bytes:
    """Return graph and mapping as bytes: four arrays, then the ids as JSON."""
    ids = b"" if arcs.ids is None else json.dumps(arcs.ids).encode()
    arrays = (core, arcs.source, arcs.target)
    return zlib.compress(
        b"".join(np.ascontiguousarray(a, np.int32).tobytes() for a in arrays) + arcs.weight.tobytes() + ids, 1
    )


def _unpacked(
    name: str, n: int, m: int, rows: int, cols: int, value: float, data: bytes, digest: str
) -> Solved | None:
    """Return what a row holds, or None if it is damaged."""
    try:
        if _digest(data, rows, cols) != digest:
            return None
        raw = zlib.decompressobj().decompress(data, MOST_BYTES)
        core, source, target = np.split(np.frombuffer(raw, np.int32, n + 2 * m).astype(np.int64), [n, n + m])
        weight: FloatArray = np.frombuffer(raw, np.float64, m, offset=4 * (n + 2 * m))
        text = raw[4 * (n + 2 * m) + 8 * m :]
        ids = tuple(json.loads(text)) if text else None
        whole = rows > 0 and cols > 0 and n == len(core) and (ids is None or len(ids) == n)
        if not whole or core.min() < 0 or core.max() >= rows * cols:
            return None
        if m and not (min(source.min(), target.min()) >= 0 and max(source.max(), target.max()) < n):
            return None
        return Solved(str(name), Arcs(n, source, target, weight, ids), rows, cols, core, float(value))
    except (ValueError, TypeError, zlib.error, RecursionError):
        return None
