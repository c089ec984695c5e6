"""The store of a benchmark's runs: one SQLite file, one row per finished run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from nmsolve.model.errors import InputError

FORMAT = "nmsolve-bench-1"
#: ``(seconds, objective, bound)`` of the whole run whenever one of both changed; None where there was none yet.
Events = tuple[tuple[float, float | None, float | None], ...]


@dataclass(frozen=True, order=True)
class Key:
    """What makes a run the same run: it is done once.

    Attributes
    ----------
    suite, instance : names; ``problem`` is the content hash of what is to be solved
    method : ``auto``, an engine, or engines joined by ``+``
    limit : wall seconds
    version : of nmsolve, with a hash of its source files
    machine : processor and number of cores
    """

    suite: str
    instance: str
    problem: str
    method: str
    seed: int
    limit: float
    version: str
    machine: str


@dataclass(frozen=True)
class Outcome:
    """What a run gave.

    Attributes
    ----------
    status : of the result (``optimal``, ``feasible``, ``infeasible``, ``unknown``), or ``refused`` (the method does not
        take the problem) or ``failed`` (the process died, overran, or its answer failed the independent check)
    text : why, where it is refused or failed; checks of a solved run that were not done
    objective, bound : recomputed by the evaluator; proved. None where there is none
    wall : seconds from the start of the process to its end
    cpu : CPU seconds of the process and everything it started
    engines : the engines that ran, with their last status
    """

    status: str
    text: str = ""
    objective: float | None = None
    bound: float | None = None
    wall: float = 0.0
    cpu: float = 0.0
    events: Events = ()
    engines: tuple[tuple[str, str], ...] = ()

    @property
    def solved(self) -> bool:
        """True if there is a solution to speak of."""
        return self.objective is not None and self.status in ("optimal", "feasible")

    @property
    def trajectory(self) -> list[tuple[float, float]]:
        """``(seconds, objective)`` of every new best solution."""
        out: list[tuple[float, float]] = []
        for t, value, _ in self.events:
            if value is not None and (not out or value < out[-1][1]):
                out.append((t, value))
        return out


class Store:
    """The runs of ``path``; made if there is none. Every run is written at once and for good (WAL).

    Raises
    ------
    InputError : the file is not a store, or one of another format, or cannot be written
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._named("not a benchmark store"):
            self._db = sqlite3.connect(path, isolation_level=None)
            self._open()

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """Whatever SQLite complains about becomes one line with the file's name."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where names of tables are damaged
            raise InputError(
                f"{what} ({error})", str(self._path), "a file that `nmsolve bench` wrote, or another --out"
            ) from None

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            names = ", ".join(f'"{f.name}"' for f in fields(Key))
            data = ", ".join(f'"{f.name}"' for f in fields(Outcome))
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._db.execute("INSERT INTO about VALUES ('format', ?)", (FORMAT,))
            self._db.execute(f"CREATE TABLE runs ({names}, {data}, ended TEXT, PRIMARY KEY ({names}))")
            self._db.execute("COMMIT")
            return
        found = None
        if "about" in tables:
            found = self._db.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
        if found is None or found[0] != FORMAT:
            what = "no format" if found is None else f"format {found[0]!r}"
            raise InputError(f"a store with {what}", str(self._path), f"{FORMAT}, or another --out")
        columns = [row[1] for row in self._db.execute("PRAGMA table_info(runs)")]
        if columns != [*(f.name for f in fields(Key)), *(f.name for f in fields(Outcome)), "ended"]:
            raise InputError("a store with other columns", str(self._path), f"{FORMAT}, or another --out")

    def add(self, key: Key, outcome: Outcome) -> None:
        """Keep a run; an existing one stays as it is."""
        data = asdict(outcome) | {
            "events": json.dumps(outcome.events),
            "engines": json.dumps(outcome.engines),
        }
        values = (*astuple(key), *data.values())
        marks = ", ".join("?" * len(values))
        with self._named("the run cannot be kept"):
            self._db.execute(f"INSERT OR IGNORE INTO runs VALUES ({marks}, datetime('now'))", values)

    def find(self, keys: Iterable[Key]) -> dict[Key, Outcome]:
        """Return the runs among ``keys`` that are there.

        Raises
        ------
        InputError : a row was damaged
        """
        wanted = set(keys)
        names = [f.name for f in fields(Key)]
        out = {}
        with self._named("the runs cannot be read"):
            for row in self._db.execute("SELECT * FROM runs"):
                key = Key(*row[: len(names)])
                if key in wanted:
                    out[key] = self._outcome(key, row[len(names) : -1])
        return out

    def _outcome(self, key: Key, values: tuple[Any, ...]) -> Outcome:
        data = dict(zip((f.name for f in fields(Outcome)), values, strict=True))
        try:
            data["events"] = json.loads(data["events"])
            data["engines"] = json.loads(data["engines"])
            outcome = msgspec.convert(data, Outcome)
            figures = (outcome.objective or 0.0, outcome.bound or 0.0, outcome.wall, outcome.cpu)
            if not all(isfinite(figure) for figure in figures):
                raise ValueError("a figure is not finite")
            return outcome
        except (ValueError, TypeError, RecursionError, msgspec.ValidationError) as error:
            raise InputError(
                f"the run of {key.method} on {key.instance}, seed {key.seed}, is damaged ({error})",
                str(self._path),
            ) from None

    def count(self) -> int:
        """Return the number of runs, of any version and machine."""
        with self._named("the runs cannot be read"):
            return int(self._db.execute("SELECT count(*) FROM runs").fetchone()[0])

    def close(self) -> None:
        """Fold the log into the file."""
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()
