"""Projects of PSPLIB and MMLIB: ``.sm`` (one mode per activity) and ``.mm`` (several, and nonrenewable resources).

The files are lines ``name : value`` and tables with titles and headings, between lines of stars (Kolisch and Sprecher 1997).
Columns are found by their headings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from nmsolve.model.errors import InputError, doubtful, name_unread
from nmsolve.model.files import read_limited
from nmsolve.model.schedule.build import MOST_BYTES, MOST_PROCESSES
from nmsolve.model.schedule.problem import NEVER
from nmsolve.model.schedule.projects import MOST_RESOURCES, Activity, Pool, Way, project
from nmsolve.model.schedule.statement import Stated

#: Tables, by their titles without blanks.
PROJECTS, PRECEDENCE, REQUESTS, AVAILABLE = (
    "PROJECTINFORMATION", "PRECEDENCERELATIONS", "REQUESTS/DURATIONS", "RESOURCEAVAILABILITIES",
)  # fmt: skip
#: Lines ``name : value``; those of the first row say nothing of the problem.
HEAD = {
    "file with basedata", "initial value random generator", "horizon", "resources",
    "projects", "jobs", "renewable", "nonrenewable", "doubly constrained",
}  # fmt: skip


class _Row(NamedTuple):
    """A line of a table: where it is, and its words."""

    where: str
    text: str


class _File(NamedTuple):
    """What a file says: values by name, tables by title; ``path`` for messages."""

    path: Path
    head: dict[str, str]
    tables: dict[str, list[_Row]]

    def number(self, name: str, most: int, default: int | None = None) -> int:
        """Return the number after ``name ... :``; the letter of a kind of resources may follow it."""
        text = self.head.get(name)
        if text is None:
            if default is not None:
                return default
            raise InputError(
                f"no line {name!r}", str(self.path), f"the head of a PSPLIB file, numbers up to {most:,}"
            )
        found = re.fullmatch(r"(\d{1,9})(\s+[A-Z])?", text, re.ASCII)
        if found is None or int(found[1]) > most:
            raise InputError(f"{name!r} is {text[:30]!r}", str(self.path), f"a whole number up to {most:,}")
        return int(found[1])

    def table(self, title: str, shown: str) -> tuple[_Row, list[_Row]]:
        """Return heading and rows of a table."""
        rows = self.tables.get(title)
        if not rows:
            raise InputError(
                f"no section {shown}", str(self.path), "a PSPLIB file: heads, requests, availabilities"
            )
        return rows[0], rows[1:]


def load_psplib(path: Path) -> Stated:
    """Read an ``.sm`` or ``.mm`` file.

    Raises
    ------
    InputError : damaged, nothing that can run, several projects, or doubly constrained resources
    """
    file = _split(read_limited(path, MOST_BYTES).decode("latin-1"), path)
    count = file.number("jobs", MOST_PROCESSES)
    if file.number("doubly constrained", MOST_RESOURCES, 0):
        raise InputError(
            "the file has doubly constrained resources", str(path), "renewable and nonrenewable ones"
        )
    if file.number("projects", MOST_PROCESSES, 1) != 1:
        raise InputError(f"{file.head['projects']} projects", str(path), "1; several are in .rcmp files")
    pool = _pool(file)
    for kind, amounts in (("renewable", pool.capacity), ("nonrenewable", pool.budget)):
        if len(amounts) != file.number(kind, MOST_RESOURCES, 0 if kind == "nonrenewable" else None):
            raise InputError(
                f"{len(amounts)} capacities of {kind} resources", f"{path}: RESOURCEAVAILABILITIES", file.head.get(kind, "0")
            )  # fmt: skip
    after, many = _successors(file, count)
    modes = _requests(file, count, pool)
    wrong = next((k for k in range(count) if len(modes[k]) != many[k]), None)
    if wrong is not None:
        raise InputError(
            f"activity {wrong + 1} has {len(modes[wrong])} modes", f"{path}: REQUESTS/DURATIONS",
            f"{many[wrong]}, as PRECEDENCE RELATIONS say",
        )  # fmt: skip
    release, due, cost = _project_information(file, count)
    found = [Activity(str(k + 1), modes[k], after[k], release=release) for k in range(count)]
    if cost and due < NEVER:
        found[-1] = found[-1]._replace(due=due, weight=cost)
    return project(path, found, pool, "PSPLIB")


def _split(text: str, path: Path) -> _File:
    """Return the lines ``name : value``, and the tables. What is neither is named in a warning."""
    file = _File(path, {}, {})
    rows: list[_Row] | None = None
    for k, whole in enumerate(text.removeprefix("\xef\xbb\xbf").split("\n"), start=1):
        line, where = whole.strip(), f"{path}:{k}"
        title = re.sub(r"[\s:]", "", line).upper()
        if not line or not line.strip("-"):
            continue
        if not line.strip("*"):
            rows = None
        elif title in (PROJECTS, PRECEDENCE, REQUESTS, AVAILABLE):
            if title in file.tables:
                raise InputError(f"a second section {line.rstrip(':')}", where, "one")
            rows = file.tables[title] = []
        elif rows is not None:
            rows.append(_Row(where, line))
        else:
            rows = _head(file, line, where)
    return file


def _head(file: _File, line: str, where: str) -> list[_Row] | None:
    """Take a line ``name : value``; return where the rows of an unknown section go, which are passed over with its title."""
    key, _, value = line.partition(":")
    name = re.sub(r"\(.*?\)|^\s*-", "", key).strip().lower()
    if name not in HEAD or not (value.strip() or name == "resources"):
        doubtful(f"{line[:60]!r} is passed over", where, "lines and sections of PSPLIB")
        return None if value.strip() else []
    if name in file.head:
        raise InputError(f"a second line {name!r}", where, "one")
    file.head[name] = value.strip()
    return None


def _numbers(row: _Row) -> list[int]:
    """Return the words of a row as numbers."""
    words = row.text.split()
    bad = next((w for w in words if not (w.isascii() and w.isdigit() and len(w) <= 12)), None)
    if bad is not None:
        raise InputError(f"found {bad[:30]!r}", row.where, "a whole number from 0 to 10^12")
    return [int(w) for w in words]


def _columns(heading: _Row) -> list[str]:
    """Return the names of columns: resources as ``R1`` whatever stands between letter and number."""
    found = re.findall(r"\b[RND]\s*\d+\b|\S+", heading.text, re.IGNORECASE)
    names = [
        re.sub(r"\s", "", w).upper() if re.fullmatch(r"[RND]\s*\d+", w, re.I) else w.lower() for w in found
    ]
    twice = next((w for w in names if names.count(w) > 1), None)
    if twice is not None:
        raise InputError(f"two columns {twice!r}", heading.where, "every column once")
    return names


def _require_columns(heading: _Row, columns: list[str], known: list[str]) -> None:
    """Refuse columns that are unknown or missing."""
    wrong = [f"a column {w!r}" for w in columns if w not in known]
    wrong += [f"no column {w!r}" for w in known if w not in columns]
    if wrong:
        raise InputError(wrong[0], heading.where, " ".join(known))


def _pool(file: _File) -> Pool:
    """Return the resources by name."""
    rows = file.tables.get(AVAILABLE, [])
    if not rows:
        return Pool({}, {})
    columns = _columns(rows[0])
    wrong = next((w for w in columns if not re.fullmatch(r"[RN]\d+", w)), None)
    if wrong is not None:
        raise InputError(f"a column {wrong!r}", rows[0].where, "resources R 1, R 2, ..., N 1, ...")
    if len(rows) != 2:
        raise InputError(
            f"{len(rows) - 1} rows", f"{file.path}: RESOURCEAVAILABILITIES", "one, the capacities"
        )
    amounts = _numbers(rows[1])
    if len(amounts) != len(columns):
        raise InputError(
            f"{len(amounts)} capacities", f"{file.path}: RESOURCEAVAILABILITIES", f"{len(columns)}, one per resource"
        )  # fmt: skip
    pairs = list(zip(columns, amounts, strict=True))
    return Pool({w: n for w, n in pairs if w[0] == "R"}, {w: n for w, n in pairs if w[0] == "N"})


def _successors(file: _File, count: int) -> tuple[list[list[int]], list[int]]:
    """Return the successors of every activity, from 0, and its number of modes."""
    heading, rows = file.table(PRECEDENCE, "PRECEDENCE RELATIONS")
    columns = _columns(heading)
    _require_columns(heading, columns, ["jobnr.", "#modes", "#successors", "successors"])
    if columns[-1] != "successors":
        raise InputError("the successors are not the last column", heading.where, "the list at the end")
    if len(rows) != count:
        raise InputError(f"{len(rows)} activities", f"{file.path}: PRECEDENCE RELATIONS", f"{count}")
    job, modes, many = (columns.index(w) for w in ("jobnr.", "#modes", "#successors"))
    out, numbers = [], []
    for k, row in enumerate(rows):
        words = _numbers(row)
        ends = words[3:]
        if len(words) < 3 or words[job] != k + 1 or len(ends) != words[many]:
            raise InputError(
                f"the row of activity {k + 1} does not say its successors", row.where,
                "its number, its number of modes, of successors, and these",
            )  # fmt: skip
        bad = [q for q in ends if not 1 <= q <= count]
        if bad:
            raise InputError(f"activity {k + 1} precedes {bad[0]}", row.where, f"1..{count}")
        out.append([q - 1 for q in ends])
        numbers.append(words[modes])
    return out, numbers


def _requests(file: _File, count: int, pool: Pool) -> list[list[Way]]:
    """Return the modes of every activity: the first row of an activity begins with its number, all with the mode's."""
    heading, rows = file.table(REQUESTS, "REQUESTS/DURATIONS")
    columns = ["duration" if w in ("dur", "dur.") else w for w in _columns(heading)]
    resources = [*pool.capacity, *pool.budget]
    _require_columns(heading, columns, ["jobnr.", "mode", "duration", *resources])
    if columns[0] != "jobnr.":
        raise InputError("the activity is not the first column", heading.where, "jobnr. first")
    mode, span, *needs = (columns.index(w) - 1 for w in ("mode", "duration", *resources))
    renewable, width = len(pool.capacity), len(columns) - 1
    out: list[list[Way]] = []
    for row in rows:
        words = _numbers(row)
        if len(words) == width + 1 and words[0] == len(out) + 1:
            out.append([])
            words = words[1:]
        if len(words) != width or not out or words[mode] != len(out[-1]) + 1:
            raise InputError(
                f"the row is no mode of activity {max(1, len(out))} or {len(out) + 1}", row.where,
                f"activity, mode, duration and {len(resources)} demands",
            )  # fmt: skip
        taken = [words[k] for k in needs]
        out[-1].append(Way(words[span], taken[:renewable], taken[renewable:]))
    if len(out) != count:
        raise InputError(f"{len(out)} activities", f"{file.path}: REQUESTS/DURATIONS", f"{count}")
    return out


def _project_information(file: _File, count: int) -> tuple[int, int, int]:
    """Return the release of the project, when its end is due, and what a tick costs that it is late."""
    rows = file.tables.get(PROJECTS)
    if not rows:
        return 0, NEVER, 0
    columns = _columns(rows[0])
    known = ("pronr.", "#jobs", "rel.date", "duedate", "tardcost", "mpm-time")
    name_unread("column", [w for w in columns if w not in known], rows[0].where, " ".join(known))
    if len(rows) != 2:
        raise InputError(f"{len(rows) - 1} rows", f"{file.path}: PROJECT INFORMATION", "one, of the project")
    words = _numbers(rows[1])
    if len(words) != len(columns):
        raise InputError(f"{len(words)} numbers", rows[1].where, f"{len(columns)}, as the heading has")
    found = dict(zip(columns, words, strict=True))
    if found.get("#jobs", count - 2) != count - 2:
        raise InputError(
            f"{found['#jobs']} jobs besides begin and end, the head says {count} with these", rows[1].where, f"{count - 2}"
        )  # fmt: skip
    return found.get("rel.date", 0), found.get("duedate", NEVER), found.get("tardcost", 0)
