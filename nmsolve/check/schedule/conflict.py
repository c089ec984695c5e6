"""That no schedule keeps the rules, shown again without a solver: by longest paths, and by counting the work of intervals."""

from __future__ import annotations

from collections import defaultdict

from nmsolve.check.schedule.counting import priced
from nmsolve.check.schedule.paths import least_ends
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem


def impossible(problem: ScheduleProblem, seconds: float) -> bool | None:
    """Return True if paths, work between a release and a deadline, or a nonrenewable resource alone prove that there is no
    schedule; None if none does.

    The work is about that of a few walks through the problem and a table of releases by deadlines, so ``seconds`` are not
    needed.
    """
    if scarce(problem) is not None:
        return True
    ends = least_ends(problem)
    return True if ends is None or overloaded(problem, ends) is not None else None


def scarce(problem: ScheduleProblem) -> tuple[str, int, int] | None:
    """Return the first nonrenewable resource of which all processes take more than there is, in the modes that take least: its
    name, what they take, what there is; or None."""
    names = problem.budgets.names
    for r, name in enumerate(names):
        least, amount = priced(problem, [int(r == k) for k in range(len(names))])
        if least > amount:
            return name, least, amount
    return None


def overloaded(problem: ScheduleProblem, ends: list[int]) -> tuple[int, int, int, int] | None:
    """Return a unit, two ticks and the work that must be done there between them, which is more than there is time; or None.

    ``ends`` : (P,) least ends. A process with least span s that must run on a unit works there for the last s ticks before its
    end, which is not before its least end and not after its deadline.
    """
    m, sets = problem.modes, problem.sets
    jobs: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    most = min((int(v) for name, v in problem.ceilings if name == "makespan"), default=NEVER)
    for p in range(problem.count):
        own = range(int(m.first[p]), int(m.first[p + 1]))
        places = [set() if m.unit_set[k] < 0 else set(sets.of(int(m.unit_set[k])).tolist()) for k in own]
        span = min(int(m.span[k]) for k in own)
        due = min(int(problem.deadline[p]), most)
        for u in set.intersection(*places):
            jobs[u].append((ends[p] - span, due, span))
    for u, listed in jobs.items():
        found = _too_much(listed)
        if found is not None:
            return u, *found
    return None


def _too_much(jobs: list[tuple[int, int, int]]) -> tuple[int, int, int] | None:
    """Return an interval, and the spans of the jobs (first start, last end, span) inside it if they are longer; or None."""
    for begin in sorted({a for a, _, _ in jobs}):
        inside = sorted((b, span) for a, b, span in jobs if a >= begin)
        work = 0
        for end, span in inside:
            work += span
            if end < NEVER and begin + work > end:
                return begin, end, work
    return None
