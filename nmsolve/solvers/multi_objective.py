"""Several objectives of any problem: one after the other (lexicographic), and the front of two (epsilon constraints).

Every step is one ordinary problem with ceilings on the other objectives (Haimes, Lasdon and Wismer 1971), so bounds, exact
models and checks are those of single objectives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

from nmsolve.model import clock
from nmsolve.model.bound import Bound, Ceilings, Result, Stage, meets
from nmsolve.model.errors import InputError
from nmsolve.solvers.run import Options, Task, solve

S = TypeVar("S")
#: Told before a problem is solved: the objective, ceilings on others, seconds.
Tell = Callable[[str, Ceilings, float], None]
#: Relative excess over a value that counts as equal.
EQUAL = 1e-12
#: How many times the second objective at one end of the front has to be that at the other to go between them by factors.
FAR = 4.0
#: Part of a point's time for the first objective; the rest makes the second one least at that value.
FIRST = 0.6


class Objectives(Protocol[S]):
    """A problem of which any objective can be minimised, with ceilings on others."""

    @property
    def recomputed(self) -> Collection[str]:
        """Methods whose bounds can be recomputed from their certificates."""

    def minimise(
        self, name: str, ceilings: Ceilings, seconds: float, start: S | None
    ) -> tuple[Stage, Result[S]]:
        """Solve one problem within a number of seconds, from a known solution or None."""

    def value(self, name: str, solution: S) -> float:
        """One objective of a solution."""


def better_start(
    starts: Iterable[S | None], keeps: Callable[[S], bool], value: Callable[[S], float]
) -> S | None:
    """Return the best of the solutions to start from that keep the ceilings, or None.

    What a run was given may be better in a later objective than what an earlier one ended with.
    """
    return min((start for start in starts if start is not None and keeps(start)), key=value, default=None)


@dataclass(frozen=True)
class StatedObjectives(Generic[S]):
    """Objectives of a problem that states its objective and ceilings itself.

    Attributes
    ----------
    problem : with ``objective``, ``ceilings`` and ``content_hash``
    first, known : a solution to start from, or None; bounds of the problem's own objective
    task : of a problem and a solution to start from
    values : all objectives of a solution, by the evaluator
    complaint : which ceiling of a problem a solution breaks, or None
    recomputed : methods with a re-check
    weighted : the problem has weights, which only the objective of this name takes; "" without
    """

    problem: Any
    options: Options
    first: S | None
    known: tuple[Bound, ...]
    task: Callable[[Any, S | None], Task[S]]
    values: Callable[[Any, S], Mapping[str, float]]
    complaint: Callable[[Any, S], str | None]
    recomputed: Collection[str]
    weighted: str = ""

    def minimise(
        self, name: str, ceilings: Ceilings, seconds: float, start: S | None
    ) -> tuple[Stage, Result[S]]:
        """Minimise this objective under these ceilings and those that the problem has."""
        problem = replace(self.problem, objective=name, ceilings=(*self.problem.ceilings, *ceilings))
        if self.weighted and name != self.weighted:
            problem = replace(problem, weights=())
        start = better_start(
            (start, self.first), lambda one: self.complaint(problem, one) is None, partial(self.value, name)
        )
        known = self.known if name == self.problem.objective else ()
        options = replace(
            self.options, time_limit=seconds, started=None, known=known, words=not ceilings,
            keep=None if ceilings else self.options.keep,
        )  # fmt: skip
        result = solve(self.task(problem, start), options)
        return Stage(name, problem.ceilings, problem.content_hash, result.bounds), result

    def value(self, name: str, solution: S) -> float:
        """Return the objective ``name`` of a solution, by the evaluator."""
        return float(self.values(self.problem, solution)[name])


@dataclass(frozen=True, eq=False)
class Point(Generic[S]):
    """A solution of the front.

    Attributes
    ----------
    values : of the two objectives
    ceiling : what the second objective was allowed, or None
    bound : no solution within the ceiling has less of the first objective
    proven : True if proved that no solution is as good in both and better in one
    word : the solvers on whose word that rests, "" where it can be recomputed
    """

    values: tuple[float, float]
    solution: S
    ceiling: float | None
    bound: float | None
    proven: bool
    word: str = ""


@dataclass(frozen=True, eq=False)
class Front(Generic[S]):
    """``points`` of two objectives ``names``, none as good as another in both, by rising first value; the others found are
    ``dominated``; ``ideal`` holds the least known values, ``bounds`` what no solution goes below (None if unknown); ``stages``
    every problem that was solved on the way, with its bounds."""

    names: tuple[str, str]
    points: tuple[Point[S], ...]
    dominated: tuple[Point[S], ...]
    ideal: tuple[float, float]
    bounds: tuple[float | None, float | None]
    stages: tuple[Stage, ...]

    @property
    def hypervolume(self) -> float | None:
        """Part of the rectangle between the ends in which some point is as good in both objectives; None if there is none."""
        rows = [p.values for p in self.points]
        return hypervolume(rows)


def hypervolume(rows: Sequence[tuple[float, float]]) -> float | None:
    """Return the part of the rectangle between the ends of a front that its points dominate (Zitzler and Thiele 1999).

    ``rows`` : values by rising first and falling second objective. None if the rectangle has no area.
    """
    wide, high = rows[-1][0] - rows[0][0], rows[0][1] - rows[-1][1]
    if not (wide > 0 and high > 0):
        return None
    return sum((b[0] - a[0]) / wide * ((rows[0][1] - a[1]) / high) for a, b in pairwise(rows))


def word_of(result: Result[S], recomputed: Collection[str]) -> str:
    """Return the solver or package on whose word an optimum rests, "" where a bound that meets it can be ``recomputed``."""
    full = [b for b in result.bounds if b.scope == "full"]
    best = max((b.value for b in full), default=0.0)
    good = [b for b in full if meets(b.value, best)] if best > 0 else []
    words = [b.package or b.method for b in good]
    return "" if any(b.method in recomputed for b in good) else " or ".join(words)


def objective_names(text: str, known: Collection[str], where: str = "--objective") -> tuple[str, ...]:
    """Parse ``hops,max-link`` -> names. InputError for one that is not ``known``, or repeated."""
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in known:
            raise InputError(f"unknown objective {name!r}", where, "one of " + ", ".join(known))
    if len(set(names)) < len(names):
        raise InputError(f"objectives {text!r} repeat one", where, "different objectives")
    return names


def lexicographic(
    objectives: Objectives[S], names: Sequence[str], seconds: float, tell: Tell = lambda *_: None
) -> list[tuple[Stage, Result[S]]]:
    """Minimise the first objective, then each next one with all before held at what was found (tolerance 0).

    Returns every stage with its result; ends early where nothing was found or the run was interrupted.
    Objectives that are not proved optimal are held at the best value found, so later stages are optimal only with
    respect to that.
    """
    end = clock.now() + seconds
    out: list[tuple[Stage, Result[S]]] = []
    start: S | None = None
    ceilings: Ceilings = ()
    for k, name in enumerate(names):
        share = max(0.1, (end - clock.now()) / (len(names) - k))
        tell(name, ceilings, share)
        stage, result = objectives.minimise(name, ceilings, share, start)
        out.append((stage, result))
        if result.solution is None or result.objective is None or result.stop_reason == "interrupt":
            break
        start, ceilings = result.solution, (*ceilings, (name, result.objective))
    return out


def pareto_front(
    objectives: Objectives[S],
    names: tuple[str, str],
    points: int,
    seconds: float,
    tell: Tell = lambda *_: None,
) -> Front[S]:
    """Return the front of two objectives: its ends, and between them the best first objective under ceilings on the second.

    Each ceiling is the middle of what is widest between the points found so far: by factors where the ends are FAR apart.

    Raises
    ------
    InputError : fewer than two points, or no solution was found
    KeyboardInterrupt : the run was interrupted before there was one
    """
    if points < 2:
        raise InputError(f"{points} points", "--points", "at least 2, the ends of the front")
    search = _FrontSearch(objectives, names, seconds, points, tell)
    first = search.point(0, None, None)
    if first is None and search.interrupted:
        raise KeyboardInterrupt  # there is nothing to end with
    if first is None:
        raise InputError("the search found no solution", "--pareto", "more time, or a problem that has one")
    second = None if search.interrupted else search.point(1, None, first.solution)
    if second is not None:
        low, high = second.values[1], first.values[1]
        view, back = (math.log, math.exp) if 0 < low < high / FAR else (float, float)
        gaps = [(view(low), view(high))] if low < high else []
        while gaps and search.left > 0 and not search.interrupted:
            a, b = gaps.pop(max(range(len(gaps)), key=lambda k: gaps[k][1] - gaps[k][0]))
            ceiling = back((a + b) / 2)
            found = search.point(0, ceiling, search.best_within(ceiling))
            # nothing is looked for between a point and its ceiling
            down = (a + b) / 2 if found is None else min((a + b) / 2, view(found.values[1]))
            gaps += [(a, down)] * (down > a) + [((a + b) / 2, b)]
    return search.front()


class _FrontSearch(Generic[S]):
    """The points found so far and the time left for more."""

    def __init__(
        self, objectives: Objectives[S], names: tuple[str, str], seconds: float, points: int, tell: Tell
    ) -> None:
        self.objectives, self.names, self.tell = objectives, names, tell
        self.end, self.left = clock.now() + seconds, points
        self.found: list[Point[S]] = []
        self.bounds: list[float | None] = [None, None]
        self.stages: list[Stage] = []
        self.interrupted = False

    def _stage(
        self, k: int, ceiling: float | None, seconds: float, start: S | None
    ) -> tuple[Stage, Result[S]]:
        limits = () if ceiling is None else ((self.names[1 - k], ceiling),)
        self.tell(self.names[k], limits, seconds)
        stage, result = self.objectives.minimise(self.names[k], limits, seconds, start)
        self.stages.append(stage)
        self.interrupted = self.interrupted or result.stop_reason == "interrupt"
        if ceiling is None and result.bound is not None:
            self.bounds[k] = max(result.bound, self.bounds[k] or 0.0)
        return stage, result

    def point(self, k: int, ceiling: float | None, start: S | None) -> Point[S] | None:
        """Return the least objective ``k`` under a ceiling on the other, then least other objective at that value."""
        share = max(0.2, (self.end - clock.now()) / max(1, self.left))
        self.left -= 1
        if ceiling is not None and self._known(ceiling):
            return None
        stage, one = self._stage(k, ceiling, FIRST * share, start)
        if one.solution is None or one.objective is None:
            return None
        if k == 1 and self.found[0].proven and self.found[0].values[1] <= one.objective:
            return None  # both ends are one point
        two = (
            None
            if self.interrupted
            else self._stage(1 - k, one.objective, (1 - FIRST) * share, one.solution)[1]
        )
        best = one.solution if two is None or two.solution is None else two.solution
        first, second = (self.objectives.value(name, best) for name in self.names)
        proven = one.status == "optimal" and two is not None and two.status == "optimal"
        words = [word_of(r, self.objectives.recomputed) for r in (one, two) if proven and r is not None]
        word = ", ".join(dict.fromkeys(word for word in words if word))
        allowed = None if ceiling is None else dict(stage.ceilings)[self.names[1]]
        point = Point((first, second), best, allowed, one.bound if k == 0 else None, proven, word)
        self.found.append(point)
        return point

    def _known(self, ceiling: float) -> bool:
        """Return True if a point that was proved under a looser ceiling keeps this one, too: nothing else would be found."""
        return any(
            p.proven and p.bound is not None and p.values[1] <= ceiling and (p.ceiling is None or ceiling <= p.ceiling)
            for p in self.found
        )  # fmt: skip

    def best_within(self, ceiling: float) -> S | None:
        """Return the known solution with least first objective under a ceiling."""
        inside = [p for p in self.found if p.values[1] <= ceiling * (1 + EQUAL)]
        return min(inside, key=lambda p: p.values[0]).solution if inside else None

    def front(self) -> Front[S]:
        """Return points that no other one dominates, one for each pair of values, and the rest."""
        kept: list[Point[S]] = []
        rest: list[Point[S]] = []
        for p in sorted(self.found, key=lambda p: (p.values, not p.proven)):
            if any(q.values[0] <= p.values[0] and q.values[1] <= p.values[1] for q in kept):
                rest.append(p)
            else:
                kept.append(p)
        ideal = min(p.values[0] for p in self.found), min(p.values[1] for p in self.found)
        bounds = self.bounds[0], self.bounds[1]
        return Front(self.names, tuple(kept), tuple(rest), ideal, bounds, tuple(self.stages))
