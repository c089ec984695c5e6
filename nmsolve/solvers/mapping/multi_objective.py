"""Multi-objective runs: objectives one after the other (lexicographic), and the front of two (epsilon constraints).

Every step is one ordinary problem with ceilings on the other objectives (Haimes, Lasdon and Wismer 1971), so bounds, exact
models and checks are those of single objectives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Result, Stage, meets
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Solves one problem within a number of seconds, from a known mapping or None.
Solve = Callable[[MappingProblem, float, IntArray | None], Result]
#: Relative excess over a value that counts as equal.
EQUAL = 1e-12
#: Part of a point's time for the first objective; the rest makes the second one least at that value.
FIRST = 0.6


@dataclass(frozen=True, eq=False)
class Point:
    """A mapping of the front.

    Attributes
    ----------
    values : of the two objectives
    core : (n,) the mapping
    ceiling : what the second objective was allowed, or None
    bound : no mapping within the ceiling has less of the first objective
    proven : True if proved that no mapping is as good in both and better in one
    word : the solvers on whose word that rests, "" where it can be recomputed
    """

    values: tuple[float, float]
    core: IntArray
    ceiling: float | None
    bound: float | None
    proven: bool
    word: str = ""


@dataclass(frozen=True, eq=False)
class Front:
    """``points`` of two objectives ``names``, none as good as another in both, by rising first value; the others found are
    ``dominated``; ``ideal`` holds the least known values, ``bounds`` what no mapping goes below (None if unknown); ``stages``
    every problem that was solved on the way, with its bounds."""

    names: tuple[str, str]
    points: tuple[Point, ...]
    dominated: tuple[Point, ...]
    ideal: tuple[float, float]
    bounds: tuple[float | None, float | None]
    stages: tuple[Stage, ...]


def word_of(result: Result) -> str:
    """The solver on whose word an optimum rests, "" where a bound that meets it can be recomputed."""
    from nmsolve.solvers.mapping.certificates import RECHECKS

    full = [b for b in result.bounds if b.scope == "full"]
    best = max((b.value for b in full), default=0.0)
    methods = [b.method for b in full if meets(b.value, best)] if best > 0 else []
    return "" if RECHECKS.keys() & set(methods) else " or ".join(methods)


def stage_of(problem: MappingProblem, result: Result) -> Stage:
    """What is kept of one of several problems, so that the claims about it can be checked."""
    return Stage(problem.objective, problem.ceilings, problem.hash, result.bounds)


def objective_names(text: str, where: str = "--objective") -> tuple[str, ...]:
    """``hops,max-link`` -> names. InputError for an unknown or repeated one."""
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in OBJECTIVES:
            raise InputError(f"unknown objective {name!r}", where, "one of " + ", ".join(OBJECTIVES))
    if "reward" in names and len(names) > 1:
        raise InputError(
            f"objectives {text!r} combine reward with others", where, "reward as the only objective"
        )
    if len(set(names)) < len(names):
        raise InputError(f"objectives {text!r} repeat one", where, "different objectives")
    return names


def lexicographic(
    problem: MappingProblem, names: Sequence[str], seconds: float, solve: Solve
) -> list[tuple[MappingProblem, Result]]:
    """Minimise the first objective, then each next one with all before held at what was found (tolerance 0).

    Returns the problem and the result of every stage; ends early where nothing was found or the run was interrupted.
    Objectives that are not proved optimal are held at the best value found, so later stages are optimal only with
    respect to that.
    """
    end = time.monotonic() + seconds
    out: list[tuple[MappingProblem, Result]] = []
    start: IntArray | None = None
    ceilings: tuple[tuple[str, float], ...] = problem.ceilings
    for k, name in enumerate(names):
        stage = replace(problem, objective=name, ceilings=ceilings)
        share = max(0.1, (end - time.monotonic()) / (len(names) - k))
        result = solve(stage, share, start)
        out.append((stage, result))
        if result.core is None or result.objective is None or result.stop_reason == "interrupt":
            break
        start, ceilings = result.core, (*ceilings, (name, result.objective))
    return out


def pareto_front(
    problem: MappingProblem, names: tuple[str, str], points: int, seconds: float, solve: Solve
) -> Front:
    """The front of two objectives: its ends, and between them the best first objective under equally spaced ceilings.

    Raises
    ------
    InputError : fewer than two points, or not one mapping was found
    KeyboardInterrupt : somebody asked for the end before there was one
    """
    if points < 2:
        raise InputError(f"{points} points", "--points", "at least 2, the ends of the front")
    search = _Search(problem, names, solve, seconds, points)
    first = search.point(None, None)
    if first is None and search.interrupted:
        raise KeyboardInterrupt  # there is nothing to end with
    if first is None:
        raise InputError(
            "no mapping was found", "--pareto", "more time, or a problem that has one (`nmsolve explain`)"
        )
    second = None if search.interrupted else search.other_end(first)
    if second is not None:
        low, high = second.values[1], first.values[1]
        for k in range(1, points - 1):
            ceiling = high - (high - low) * k / (points - 1)
            if high <= low or search.interrupted:
                break
            search.point(ceiling, search.best_within(ceiling))
    return search.front()


class _Search:
    """The points found so far and the time left for more."""

    def __init__(
        self, problem: MappingProblem, names: tuple[str, str], solve: Solve, seconds: float, points: int
    ) -> None:
        self.problem, self.names, self.solve = problem, names, solve
        self.end, self.left = time.monotonic() + seconds, points
        self.found: list[Point] = []
        self.bounds: list[float | None] = [None, None]
        self.stages: list[Stage] = []
        self.interrupted = False

    def _share(self) -> float:
        return max(0.2, (self.end - time.monotonic()) / max(1, self.left))

    def _stage(self, k: int, ceiling: float | None, seconds: float, start: IntArray | None) -> Result:
        limits = () if ceiling is None else ((self.names[1 - k], ceiling),)
        stage = replace(self.problem, objective=self.names[k], ceilings=(*self.problem.ceilings, *limits))
        result = self.solve(stage, seconds, start)
        self.stages.append(stage_of(stage, result))
        self.interrupted = self.interrupted or result.stop_reason == "interrupt"
        if ceiling is None and result.bound is not None:
            self.bounds[k] = max(result.bound, self.bounds[k] or 0.0)
        return result

    def point(self, ceiling: float | None, start: IntArray | None) -> Point | None:
        """Least first objective under a ceiling on the second, then least second objective at that value."""
        return self._two_stages(0, ceiling, start)

    def other_end(self, first: Point) -> Point | None:
        """Least second objective, then least first objective at that value."""
        return self._two_stages(1, None, first.core)

    def _two_stages(self, k: int, ceiling: float | None, start: IntArray | None) -> Point | None:
        share = self._share()
        self.left -= 1
        one = self._stage(k, ceiling, FIRST * share, start)
        if one.core is None or one.objective is None:
            return None
        two = None if self.interrupted else self._stage(1 - k, one.objective, (1 - FIRST) * share, one.core)
        core = one.core if two is None or two.core is None else two.core
        values = tuple(
            objective_value(replace(self.problem, objective=name, ceilings=()), core) for name in self.names
        )
        proven = one.status == "optimal" and two is not None and two.status == "optimal"
        words = [word_of(r) for r in (one, two) if proven and r is not None]
        word = ", ".join(dict.fromkeys(word for word in words if word))
        point = Point((values[0], values[1]), core, ceiling, one.bound if k == 0 else None, proven, word)
        self.found.append(point)
        return point

    def best_within(self, ceiling: float) -> IntArray | None:
        """The known mapping with least first objective under a ceiling."""
        inside = [p for p in self.found if p.values[1] <= ceiling * (1 + EQUAL)]
        return min(inside, key=lambda p: p.values[0]).core if inside else None

    def front(self) -> Front:
        """Points that no other one dominates, one for each pair of values, and the rest."""
        kept: list[Point] = []
        rest: list[Point] = []
        for p in sorted(self.found, key=lambda p: (p.values, not p.proven)):
            if any(q.values[0] <= p.values[0] and q.values[1] <= p.values[1] for q in kept):
                rest.append(p)
            else:
                kept.append(p)
        ideal = min(p.values[0] for p in self.found), min(p.values[1] for p in self.found)
        bounds = self.bounds[0], self.bounds[1]
        return Front(self.names, tuple(kept), tuple(rest), ideal, bounds, tuple(self.stages))
