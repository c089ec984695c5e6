"""The comparison of the runs of one suite: tables of text, the same for Markdown and HTML."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from nmsolve.benchmarks.cases import NEAR, Case, collect, curves
from nmsolve.benchmarks.measures import (
    SHIFT_GAP,
    SHIFT_SECONDS,
    distance,
    interval,
    primal_integral,
    shifted_geometric_mean,
    sign_test,
    time_to,
)
from nmsolve.benchmarks.store import Key, Outcome
from nmsolve.benchmarks.suites import Instance
from nmsolve.model.types import FloatArray
from nmsolve.report.figures import number, percent

#: A run is late if it exceeded its limit by more than this fraction plus this many seconds.
LATE, LATE_SECONDS = 0.1, 1.0
#: Runs that had less than this part of a core competed with something else.
BUSY = 0.8


@dataclass(frozen=True)
class Table:
    """A table of text. The first ``left`` columns are words, the others figures."""

    title: str
    about: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


@dataclass(frozen=True)
class Summary:
    """Figures of one suite.

    Attributes
    ----------
    quality, times : tables; ``times`` changes from run to run, ``quality`` only where a method depends on time
    curves : for the pictures, name -> method -> (x, y) of a step line
    """

    suite: str
    quality: tuple[Table, ...]
    times: tuple[Table, ...]
    curves: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]]


def summarise(
    suite: str,
    instances: Sequence[Instance],
    methods: Sequence[str],
    found: Mapping[Key, Outcome],
    limit: float,
) -> Summary:
    """Put the runs of a suite together.

    Parameters
    ----------
    instances : of this suite, in the order of the tables
    found : the runs, of any suite; those with another ``suite`` are not looked at
    limit : wall seconds of every run
    """
    cases = [collect(one, methods, found) for one in instances]
    quality = [_methods(cases, methods), _instances(cases, methods)]
    if len(methods) > 1:
        quality.append(_duels(cases, methods))
    missing = _unsolved(cases, methods)
    if missing.rows:
        quality.append(missing)
    return Summary(suite, tuple(quality), (_times(cases, methods, limit),), curves(cases, methods, limit))


def _methods(cases: Sequence[Case], methods: Sequence[str]) -> Table:
    """Return one row per method: how many solved, and the mean gaps of those."""
    rows = []
    for m in methods:
        runs = [o for c in cases for o in c.runs[m]]
        solved = sum(o.solved for o in runs)
        to_best = [fmean(g) for c in cases if (g := c.gaps(m))]
        to_bound = [fmean(g) for c in cases if (g := c.gaps_to_bound(m))]
        own = [fmean(g) for c in cases if (g := c.own_gaps(m))]
        hits = sum(g == 0.0 for c in cases for g in c.gaps(m))
        near = sum(g <= NEAR for c in cases for g in c.gaps(m))
        proved = sum(o.status == "optimal" for o in runs)
        rows.append(
            (
                m, str(len(runs)), str(solved), str(len(runs) - solved), _mean(to_best), _interval(to_best),
                _of(hits, solved), _of(near, solved), _mean(to_bound), _mean(own), _of(proved, solved),
            )
        )  # fmt: skip
    head = (
        "method", "runs", "solved", "unsolved", "gap to best", "95 % interval", "reached best", "within 1 %",
        "gap to bound", "own gap", "proved optimal",
    )  # fmt: skip
    about = (
        "Gaps: shifted geometric mean (shift 1 %) over the instances of the mean over the solved runs. "
        "Gap to bound: to the best bound of all runs on the instance; own gap: to the run's own bound, where it proved one. "
        "Unsolved runs are counted, not averaged."
    )
    return Table("Methods", about, head, tuple(rows))


def _instances(cases: Sequence[Case], methods: Sequence[str]) -> Table:
    """Return one row per instance: what is known, and every method's mean gap with how often it reached the best."""
    rows = []
    for c in cases:
        problem, best = c.instance.problem, c.best
        gap = "-" if best is None or c.bound is None else percent(distance(best, c.bound))
        cells = []
        for m in methods:
            gaps = c.gaps(m)
            cells.append(
                f"{percent(fmean(gaps))} ({sum(g == 0.0 for g in gaps)}/{len(c.runs[m])})" if gaps else "-"
            )
        rows.append(
            (
                c.instance.name, problem.objective, *map(str, problem.sizes.values()),
                number(c.instance.best_known), number(best) + (" new" if c.new else ""), number(c.bound), gap, *cells,
            )
        )  # fmt: skip
    sizes = cases[0].instance.problem.sizes
    head = ("instance", "objective", *sizes, "best known", "best", "best bound", "gap of best", *methods)
    about = (
        "Best: the least of best known and all runs here. Per method: mean gap to best over its solved runs, and in how "
        "many of all its runs it reached the best."
    )
    return Table("Instances", about, head, tuple(rows), left=2)


def _duels(cases: Sequence[Case], methods: Sequence[str]) -> Table:
    """Return wins, ties and losses of the row's method against the column's, by the median objective on each instance."""
    middle = {
        (m, i): median([o.objective if o.solved and o.objective is not None else math.inf for o in c.runs[m]])
        for m in methods
        for i, c in enumerate(cases)
        if c.runs[m]
    }
    rows = []
    for a in methods:
        cells = []
        for b in methods:
            pairs = [
                (middle[a, i], middle[b, i])
                for i in range(len(cases))
                if (a, i) in middle and (b, i) in middle
            ]
            wins, losses = sum(x < y for x, y in pairs), sum(x > y for x, y in pairs)
            text = f"{wins}/{len(pairs) - wins - losses}/{losses} (p {sign_test(wins, losses):.2g})"
            cells.append("" if a == b else text)
        rows.append((a, *cells))
    about = (
        "Wins/ties/losses of the row against the column, instance by instance, by the median objective over the seeds "
        "(unsolved is worse than anything); p of a two-sided sign test."
    )
    return Table("Wins and losses", about, ("method", *methods), tuple(rows))


def _unsolved(cases: Sequence[Case], methods: Sequence[str]) -> Table:
    """Return what was not solved, and why."""
    rows = []
    for c in cases:
        for m in methods:
            lost = Counter(f"{o.status}: {o.text}" if o.text else o.status for o in c.runs[m] if not o.solved)
            total = len(c.runs[m])
            rows += [(c.instance.name, m, why, f"{count} of {total}") for why, count in lost.items()]
    return Table("Unsolved", "", ("instance", "method", "why", "runs"), tuple(rows), left=3)


def _times(cases: Sequence[Case], methods: Sequence[str], limit: float) -> Table:
    """Return one row per method: when it had its best solution, primal integral, and what the runs cost."""
    rows = []
    for m in methods:
        solved = [(o, c.best) for c in cases for o in c.runs[m] if o.solved and c.best is not None]
        to_own = [time_to(o.trajectory, o.objective or 0.0) for o, _ in solved]
        near = [t for o, best in solved if math.isfinite(t := time_to(o.trajectory, best, NEAR))]
        area = [primal_integral(o.trajectory, best, limit) for o, best in solved]
        runs = [o for c in cases for o in c.runs[m] if o.status != "refused"]
        rows.append(
            (
                m, _seconds(shifted_geometric_mean(to_own, SHIFT_SECONDS)), _of(len(near), len(solved)),
                _seconds(shifted_geometric_mean(near, SHIFT_SECONDS)),
                _seconds(shifted_geometric_mean(area, SHIFT_SECONDS)),
                str(sum(o.wall > limit * (1 + LATE) + LATE_SECONDS for o in runs)),
                _seconds(fmean([o.wall for o in runs]) if runs else None),
                _seconds(fmean([o.cpu for o in runs]) if runs else None),
            )
        )  # fmt: skip
    head = (
        "method", "time to best", "within 1 %", "time to 1 %", "primal integral", "late", "wall per run", "CPU per run",
    )  # fmt: skip
    about = (
        "Seconds. Time to best: until a run had its own last solution. Time to 1 %: until the gap to best was at most 1 %, of "
        "the runs that got there. Means of times and integrals are shifted geometric (shift 1 s) over the solved runs. The "
        "limit is wall time; late are the runs that ended more than 10 % and a second after it. CPU seconds are those of the "
        "whole process with start-up and solver processes. " + _share(cases)
    )
    return Table("Times", about, head, tuple(rows))


def _share(cases: Sequence[Case]) -> str:
    """Return how much of their core the runs had: one thread that never waits has all of it."""
    runs = [o for c in cases for outcomes in c.runs.values() for o in outcomes if o.wall > 0]
    if not runs:
        return ""
    share = sum(o.cpu for o in runs) / sum(o.wall for o in runs)
    busy = (
        "; the machine was busy with other work, so figures that depend on time are worse than they could be"
    )
    return f"The runs had {100 * share:.0f} % of a core each{busy if share < BUSY else ''}."


def _mean(gaps: Sequence[float]) -> str:
    return percent(shifted_geometric_mean(gaps, SHIFT_GAP))


def _interval(gaps: Sequence[float]) -> str:
    found = interval(gaps, SHIFT_GAP)
    return "-" if found is None else f"{percent(found[0])} to {percent(found[1])}"


def _of(part: int, whole: int) -> str:
    return f"{part}/{whole}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
