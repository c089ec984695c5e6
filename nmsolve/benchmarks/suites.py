"""Which instances a benchmark runs on: shipped files, generated ones, or files that the user names."""

from __future__ import annotations

import csv
import difflib
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from nmsolve.kinds.bench import Bench, Maker, Stated
from nmsolve.kinds.registry import BENCHES, bench
from nmsolve.model.errors import InputError
from nmsolve.model.formats.text import decimal

BEST_KNOWN = "best_known.csv"


@dataclass(frozen=True)
class Instance:
    """One problem of a suite, loaded.

    Attributes
    ----------
    kind : key of :data:`~nmsolve.kinds.registry.BENCHES`
    options : what states the problem, as text or numbers; files of generated instances are where :func:`load_suite` wrote them
    best_known : objective that is known to be possible, or None
    """

    suite: str
    name: str
    kind: str
    options: Mapping[str, Any]
    best_known: float | None
    problem: Stated


class Source(NamedTuple):
    """Where the instances of a suite come from: the table of a built-in suite, or files (all of ``path``, or the one)."""

    suite: str
    kind: str
    path: Path | None = None

    @property
    def table(self) -> Bench:
        """What is known of such problems."""
        return bench(self.kind)


def find_suite(suite: str, kind: str | None) -> Source:
    """Return the suite of this name; ``kind`` of problem that files state, ``map`` if not given.

    Raises
    ------
    InputError : no such suite, file, folder or kind; a built-in suite of another kind
    """
    if kind is not None and kind not in BENCHES:
        raise InputError(f"unknown problem {kind!r}", "--problem", "one of " + ", ".join(BENCHES))
    of = {name: k for k in BENCHES for name in bench(k).suites}
    if suite in of:
        if kind not in (None, of[suite]):
            raise InputError(f"suite {suite} is of problem {of[suite]}", "--problem", of[suite])
        return Source(suite, of[suite])
    path, kind = Path(suite), kind or "map"
    if not path.exists():
        near = difflib.get_close_matches(suite, of, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"no suite or folder {suite!r}", "", f"{hint}one of {', '.join(of)}, or a folder")
    folder = path.parent if path.is_file() or bench(kind).is_instance(path) else path
    return Source(folder.resolve().name, kind, path)


def load_suite(source: Source, only: str | None, options: Mapping[str, Any], keep: Path) -> list[Instance]:
    """Load (or generate) and check every instance of a suite.

    Parameters
    ----------
    only : pattern such as ``sko*`` for instance names, several separated by commas; None for all
    options : how files are to be taken, as text; a built-in suite states that itself
    keep : folder for generated files

    Raises
    ------
    InputError : nothing left to run, a wrong file, a problem that cannot be stated
    """
    if source.path is not None:
        return _files(source, source.path, only, options)
    if options:
        expected = "these options only for folders"
        raise InputError(f"suite {source.suite} has its own machines and objectives", "", expected)
    makers = source.table.suites[source.suite]
    if isinstance(makers, Path):
        return _files(source, makers, only, {})
    return [
        _instance(source, name, _made(makers[name], keep / name), None)
        for name in _chosen(list(makers), only, source.suite)
    ]


def _chosen(names: Sequence[str], only: str | None, where: str) -> list[str]:
    patterns = ["*"] if only is None else [p.strip() for p in only.split(",")]
    out = [n for n in names if any(fnmatchcase(n, p) for p in patterns)]
    if not out:
        what = "no instances" if not names else f"no instance is called {only!r}"
        raise InputError(what, where, ", ".join(names) or "files of this problem")
    return out


def _made(make: Maker, path: Path) -> Mapping[str, Any]:
    from nmsolve.kinds.answer import prepare_folder

    prepare_folder(path.parent)
    return make(path)


def _files(source: Source, path: Path, only: str | None, options: Mapping[str, Any]) -> list[Instance]:
    """Return the file, or all instances of a folder in order of name, with ``best_known.csv`` beside them if there is one."""
    is_instance = source.table.is_instance
    one = path.is_file() or is_instance(path)
    folder = path.resolve().parent if one else path
    beside = [path] if one else [p for p in sorted(path.iterdir()) if p.name != BEST_KNOWN]
    others = [] if one else [p.name for p in beside if not is_instance(p)]
    files = _by_name([p for p in beside if p.name not in others])
    known = _best_known(folder / BEST_KNOWN) if (folder / BEST_KNOWN).exists() else {}
    file = next(iter(source.table.parameters))
    out = []
    for name in _chosen(list(files), only, str(path)):
        try:
            out.append(_instance(source, name, {file: files[name].resolve(), **options}, known.get(name)))
        except InputError as error:
            if one or not error.where.startswith(str(files[name].resolve())):
                raise  # it is asked for, or can be read but not be stated with these options
            print(f"note: skipped: {error}", file=sys.stderr)
    if others:
        print(f"note: skipped, by their names: {', '.join(others)}", file=sys.stderr)
    if not out:
        raise InputError("no instances", str(path), "files of this problem")
    return out


def _by_name(paths: Sequence[Path]) -> dict[str, Path]:
    """Return instances of one folder by name: that of a folder, that of a file without its ending.

    Raises
    ------
    InputError : two have the same name, so that runs of the one would count for the other
    """
    out: dict[str, Path] = {}
    for path in paths:
        name = path.resolve().name if path.is_dir() else path.stem
        other = out.setdefault(name, path)
        if other != path:
            what = f"two instances are called {name}: {other.name} and {path.name}"
            raise InputError(what, str(path.parent), "another name for one of them, or one alone")
    return out


def _instance(source: Source, name: str, options: Mapping[str, Any], best_known: float | None) -> Instance:
    problem = source.table.load(options)
    best = None if best_known is None else best_known - problem.constant
    plain = {k: str(v) if isinstance(v, Path) else v for k, v in options.items()}
    return Instance(source.suite, name, source.kind, plain, best, problem)


def _best_known(path: Path) -> dict[str, float]:
    """Return ``best_known`` of every instance, from a table with columns ``name`` (or ``instance``) and ``best_known``.

    Raises
    ------
    InputError : a column is missing, a name appears twice, or a value is not a number >= 0 (with its line)
    """
    from nmsolve.model.files import read_limited

    try:
        text = read_limited(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not a text file", str(path), "a table separated by commas") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        head, *rows = [(reader.line_num, row) for row in reader] or [(1, [])]
    except csv.Error as error:
        raise InputError(str(error), f"{path}:{reader.line_num}", "a table separated by commas") from None
    return _values(path, [c.strip() for c in head[1]], rows)


def _values(path: Path, head: list[str], rows: Sequence[tuple[int, list[str]]]) -> dict[str, float]:
    """Return the two columns that count, from (line, cells) of every row below the ``head``."""
    name = next((head.index(c) for c in ("name", "instance") if c in head), None)
    if name is None or "best_known" not in head:
        raise InputError("a column is missing", f"{path}:1", "columns name and best_known")
    value, out = head.index("best_known"), {}
    for line, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        where = f"{path}:{line}"
        if len(row) <= max(name, value):
            raise InputError(f"{len(row)} columns", where, f"{len(head)}, as in the first line")
        key, text = row[name].strip(), row[value].strip()
        if key in out:
            raise InputError(f"{key} is listed twice", where, "every instance once")
        found = decimal(text)
        if found is None or not 0 <= found < float("inf"):
            raise InputError(f"the best known value of {key} is {text!r}", where, "a number >= 0")
        out[key] = found
    return out
