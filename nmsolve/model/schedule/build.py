"""Parts of scheduling problems, made from what files say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.ordering import circle, topological
from nmsolve.model.schedule.problem import MOST_SETS, NEVER, Edges, Items, Units, UnitSets
from nmsolve.model.types import IntArray, starts

#: Most processes of a problem, all frames counted, and most units: tables of their size are kept whole.
MOST_PROCESSES, MOST_UNITS = 2**18, 4096
#: Most modes, and most units in all sets together.
MOST_MODES, MOST_MEMBERS = 2**22, 2**20
#: Bytes of a file that states a scheduling problem.
MOST_BYTES = 2**27


def whole(values: Sequence[int]) -> IntArray:
    """Return the numbers as an array of 64 bits.

    Raises
    ------
    InputError : one does not fit
    """
    try:
        return np.array(values, np.int64)
    except OverflowError:
        most = max(values, key=abs)
        raise InputError(
            f"numbers of the file multiply or add up to {most:.3g}", "", "less than 2^63"
        ) from None


def plain_units(names: Sequence[str], hops: IntArray | None = None) -> Units:
    """Return units without limits of memory that need no energy; one hop between any two unless ``hops`` (U, U) says more."""
    count = len(names)
    none = np.zeros(count, np.int64)
    if hops is None:
        hops = 1 - np.eye(count, dtype=np.int64)
    return Units(tuple(names), np.full(count, NEVER), hops, none, none, none, none, none)


def unit_sets(members: Sequence[Sequence[int]], hops: IntArray, where: str) -> UnitSets:
    """Return different sets of units, given ascending, with their least distances by those of units (U, U).

    Raises
    ------
    InputError : too many sets for the table of their distances
    """
    total = sum(map(len, members))
    if len(members) > MOST_SETS or total > MOST_MEMBERS:
        raise InputError(
            f"{len(members):,} different unit sets with {total:,} units", where, f"at most {MOST_SETS:,} and {MOST_MEMBERS:,}"
        )  # fmt: skip
    indptr = starts([len(m) for m in members])
    flat = np.concatenate([np.zeros(0, np.int64), *map(whole, members)]).astype(np.int64)
    return UnitSets(indptr, flat, _between(indptr, flat, hops))


def _between(indptr: IntArray, members: IntArray, hops: IntArray) -> IntArray:
    """Return (K, K) least distances of sets; ``hops`` is 0 from a unit to itself only."""
    count = len(indptr) - 1
    if count == 0:
        return np.zeros((0, 0), np.int64)
    if len(members) == count:
        return hops[np.ix_(members, members)].astype(np.int64)
    out = np.zeros((count, count), np.int64)
    to_set = np.minimum.reduceat(hops[:, members], indptr[:-1], axis=1)
    for k in range(count):
        out[k] = to_set[members[indptr[k] : indptr[k + 1]]].min(axis=0)
    return out


def no_items() -> Items:
    """Return no static data."""
    none = np.zeros(0, np.int64)
    return Items((), none, none, none, none)


def bare_edges(source: Sequence[int], target: Sequence[int]) -> Edges:
    """Return dependencies without data."""
    none = np.zeros(len(source), np.int64)
    return Edges(whole(source), whole(target), none, none)


def require_no_circle(labels: Sequence[str], source: IntArray, target: IntArray, where: str) -> None:
    """Refuse dependencies that form a circle.

    Raises
    ------
    InputError : they do; the message names a circle
    """
    before: list[list[int]] = [[] for _ in labels]
    for a, b in zip(source.tolist(), target.tolist(), strict=True):
        before[b].append(a)
    order = topological(before)
    if len(order) == len(labels):
        return
    members = circle(before, order)[:-1]
    begin = members.index(min(members))
    shown = [labels[q] for q in (*members[begin:], *members[: begin + 1])]
    raise InputError(
        f"the dependencies form a circle of {len(members)}: {' -> '.join(_shown(shown))}", where,
        "an order in which processes can run",
    )  # fmt: skip


def _shown(names: list[str], most: int = 12) -> list[str]:
    return names if len(names) <= most else [*names[: most - 2], "...", names[-1]]


class Numbers:
    """The words of a text, taken one after the other as whole numbers."""

    def __init__(self, data: bytes, path: str, skip: int = 0) -> None:
        """``skip`` words are passed over."""
        self.data, self.path, self.words, self.at = data, path, data.split(), skip
        self._ends: set[int] | None = None

    def take(self, what: str, least: int = 0, most: int = 2**40) -> int:
        """Return the next number.

        Raises
        ------
        InputError : no number, or none from ``least`` to ``most``, with its line
        """
        if self.at >= len(self.words):
            raise InputError(f"the file ends before {what}", self.path, f"{what}, a whole number")
        word = self.words[self.at]
        self.at += 1
        try:
            found = int(word) if len(word) < 20 and not word.count(b"_") else None
        except ValueError:
            found = None
        if found is None or not least <= found <= most:
            shown = word[:30].decode("utf-8", "replace")
            raise InputError(
                f"{what} is {shown!r}", self.where(), f"a whole number from {least:,} to {most:,}"
            )
        return found

    def where(self) -> str:
        """Return file and line of the word that was taken last."""
        seen = 0
        for number, line in enumerate(self.data.split(b"\n"), start=1):
            seen += len(line.split())
            if seen >= self.at:
                return f"{self.path}:{number}"
        return self.path

    def require_line_end(self, what: str) -> None:
        """Refuse more words in the line of the word that was taken last: ``what`` ends with its line."""
        if self.at >= len(self.words):
            return
        if self._ends is None:
            self._ends = set(np.cumsum([len(line.split()) for line in self.data.split(b"\n")]).tolist())
        if self.at not in self._ends:
            self.at += 1
            shown = self.words[self.at - 1][:30].decode("utf-8", "replace")
            raise InputError(f"{shown!r} after the last number of {what}", self.where(), "a new line")

    def require_end(self) -> None:
        """Refuse more words."""
        if self.at < len(self.words):
            self.at += 1
            shown = self.words[self.at - 1][:30].decode("utf-8", "replace")
            raise InputError(
                f"the file goes on after its last number: {shown!r}", self.where(), "the end of the file"
            )
