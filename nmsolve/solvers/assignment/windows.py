"""A makespan as a sum along cuts: what is between two cuts is solved by CP-SAT for those units that the shortest way takes.

Between two cuts (:mod:`.paths`) no schedule is shorter than the part of the program there, solved alone with the units of both
cuts given. The least sum of such times along all cuts is a bound. Times are paths at first; those on the least way are replaced
by what CP-SAT proves until none is left, so only few parts are solved, and equal ones once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from nmsolve.heuristics.assignment.list_schedule import ListSearch, first_assignments
from nmsolve.heuristics.assignment.orders import rank_by
from nmsolve.hw.assignment.evaluate import objective, schedule_of
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups
from nmsolve.model.engine import Context
from nmsolve.model.types import BoolArray, IntArray, starts
from nmsolve.solvers.assignment import schedule_model
from nmsolve.solvers.assignment.bounds import bounds
from nmsolve.solvers.assignment.data import assign_data
from nmsolve.solvers.assignment.paths import NEVER, Program, bounds_of, program_of
from nmsolve.solvers.search.cpsat import solve
from nmsolve.solvers.search.exact import within


@dataclass(frozen=True, eq=False)
class Part:
    """A problem, and which operators, groups of the whole its own are.

    Attributes
    ----------
    operators : (L',) operators of the whole; the first one is the cut before the part, if there is one
    groups : (G',) groups of the whole
    """

    problem: AssignProblem
    operators: IntArray
    groups: IntArray


def part_of(
    program: Program, first: int | None, inside: list[int], units: tuple[int | None, int | None]
) -> Part:
    """Return the part with the operators ``inside``, which begins when operator ``first`` has ended.

    Parameters
    ----------
    first : the cut before the part, None at the beginning; it takes no time here
    units : the unit of ``first``, and that of the last operator inside; None: any

    Notes
    -----
    What comes from operators before ``first`` is there from the beginning, memories are not limited, no operator has to share a
    unit, there are no ceilings: the part ends no later than in any schedule of the whole, counted from the end of ``first``.
    """
    whole = program.problem
    own = np.array(([] if first is None else [first]) + inside, np.int64)
    place = {i: n for n, i in enumerate(own.tolist())}
    time = whole.time[own].copy()
    if first is not None:
        time[0] = np.where(np.arange(whole.units.count) == units[0], 0, -1)
    if units[1] is not None:
        time[-1, np.arange(whole.units.count) != units[1]] = -1
    picked = [
        k for k, members in enumerate(program.own)
        if all(i in place for i in members) and (first is None or first not in members)
    ]  # fmt: skip
    gain = np.array([whole.groups.time[k] for k in picked], np.int64).reshape(-1, whole.units.count)
    members = [[place[i] for i in program.own[k]] for k in picked]
    for n, some in enumerate(members):
        gain[n, (time[some] < 0).any(axis=0)] = 0
    problem = AssignProblem(
        name="part",
        labels=tuple(map(str, range(len(own)))),
        kinds=("",) * len(own),
        scalar=np.zeros(len(own), bool),
        time=time,
        energy=np.where(time < 0, -1, 0),
        flows=_flows(program, place),
        groups=Groups(
            starts(np.array(list(map(len, members)), np.int64)),
            np.array([i for some in members for i in some], np.int64),
            gain,
            np.zeros_like(gain),
        ),
        units=replace(whole.units, capacity=np.full(len(whole.units.memories), np.inf)),
        objective="makespan",
    )
    return Part(problem, own, np.array(picked, np.int64))


def _flows(program: Program, place: dict[int, int]) -> Flows:
    """Return the tensors between operators of a part, those that cost nothing but order included."""
    whole = program.problem.flows
    tensors, users = [], []
    for i in place:
        for t in sorted({t for _, t in program.feeds[i]}):
            here = sorted(place[u] for u, s in program.feeds[i] if s == t and u in place)
            if here:
                tensors.append(t)
                users.append(here)
    source = np.array([place[int(whole.source[t])] for t in tensors], np.int64)
    targets = np.array([u for some in users for u in some], np.int64)
    return Flows(
        names=("",) * len(tensors),
        source=source,
        indptr=starts(np.array(list(map(len, users)), np.int64)),
        targets=targets,
        since=source,
        until=targets,
        bytes=np.zeros(len(tensors), np.int64),
        kept=np.zeros(len(tensors), bool),
        time=whole.time[tensors],
        energy=np.zeros_like(whole.time[tensors]),
    )


#: Annealings that a part gets before CP-SAT: steps per operator, and how hot.
QUICK = ((100, 0.02), (400, 0.3), (800, 0.02))
#: Larger parts are left to the whole.
MOST = 300


@dataclass(frozen=True, eq=False)
class Solved:
    """What is known of a part.

    ``bound``: it takes at least that long. The rest is of its best schedule: units and moments of its operators, groups fused.
    """

    bound: int
    unit: IntArray | None = None
    fused: BoolArray | None = None
    start: IntArray | None = None
    finish: IntArray | None = None


@dataclass(eq=False)
class Windows:
    """Stretches of a program between some of its cuts.

    Attributes
    ----------
    ends : the cuts at which windows end, in their order; what follows the last one is a window too
    inside : operators of every window, the cut at its end included
    tables : by window (A, B) least times for the units of both cuts
    """

    program: Program
    ends: list[int]
    inside: list[list[int]]
    tables: list[IntArray]
    found: dict[tuple[int, int, int], Solved] = field(default_factory=dict)

    def way(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the least time of all windows together, and which units of both cuts it takes in each."""
        now: IntArray = np.zeros(1, np.int64)
        choice = []
        for table in self.tables:
            through = np.minimum(now[:, None] + table, NEVER)
            choice.append(through.argmin(axis=0))
            now = through.min(axis=0)
        b = int(now.argmin())
        value, taken = int(now[b]), []
        for best in reversed(choice):
            a = int(best[b])
            taken.append((a, b))
            b = a
        return value, taken[::-1]

    def first(self, window: int) -> int | None:
        """Return the cut before a window."""
        return self.ends[window - 1] if window else None

    def part(self, window: int, a: int, b: int) -> Part:
        """Return what is solved for the units of both cuts."""
        last = window < len(self.ends)
        units = (a if window else None, b if last else None)
        return part_of(self.program, self.first(window), self.inside[window], units)


def windows_between(program: Program, ends: list[int], tables: list[IntArray]) -> Windows:
    """Return the windows that end at ``ends``, some of the cuts, with times from the ``tables`` of all blocks."""
    inside: list[list[int]] = [[]]
    joined: list[IntArray | None] = [None]
    for number, (block, table) in enumerate(zip(program.blocks, tables, strict=True)):
        if not inside[-1] and joined[-1] is None:
            joined[-1] = table
        else:
            before = joined[-1]
            assert before is not None
            joined[-1] = np.minimum((before[:, :, None] + table[None, :, :]).min(axis=1), NEVER)
        inside[-1] = inside[-1] + block
        if number < len(program.cuts) and program.cuts[number] in ends and number + 1 < len(tables):
            inside.append([])
            joined.append(None)
    done = [t for t in joined if t is not None]
    return Windows(program, [some[-1] for some in inside if some[-1] in ends], inside, done)


def clean_cuts(program: Program) -> list[int]:
    """Return the cuts that no tensor passes by that takes time to send, but what the beginning or operators in no block make."""
    out, furthest = [], 0
    loose = set(program.loose)
    takes_time = program.problem.flows.time.max(axis=(1, 2), initial=0)
    cuts = set(program.cuts)
    for i in range(program.problem.count):
        if i in cuts and furthest <= i:
            out.append(i)
        if i and i not in loose:
            furthest = max([furthest, *(u for u, t in program.feeds[i] if takes_time[t] > 0)])
    return out


class Parts:
    """Solves parts by local search and CP-SAT, equal ones once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[str, Solved] = {}

    def solve(self, part: Part, seconds: float) -> Solved:
        """Return what is found about a part within about this many seconds."""
        key = part.problem.content_hash
        if key not in self._known:
            self._known[key] = self._solve(part.problem, seconds)
        return self._known[key]

    def _solve(self, problem: AssignProblem, seconds: float) -> Solved:
        """Bounds at once, a schedule by local search; where they differ, CP-SAT."""
        proved = max(b.value for b in bounds(problem))
        if proved >= NEVER:
            return Solved(NEVER)
        bound = int(proved)
        answer = quickly(problem, bound, self._context)
        value = objective(problem, answer)
        if value > bound and not self._context.should_stop():
            program = program_of(problem)
            built = schedule_model.build(
                assign_data(problem), program, bounds_of(program), start=answer, bound=bound, below=value
            )
            limit = min(seconds, self._context.time_left())
            end = solve(built, **{**within(self._context), "seconds": limit})
            if end.status == "INFEASIBLE":
                bound = value
            elif end.bound is not None:
                bound = min(value, int(max(bound, built.claim.bound(end.bound))))
            if end.core is not None:
                better = Assignment.unpacked(problem, end.core)
                answer = min(answer, better, key=lambda one: objective(problem, one))
        schedule = schedule_of(problem, answer)
        return Solved(bound, answer.unit, answer.fused, schedule.start, schedule.finish)


def quickly(problem: AssignProblem, bound: float, context: Context) -> Assignment:
    """Return a good assignment of a small problem, found in a moment."""
    search = ListSearch(problem, context.seed)
    search.begin(first_assignments(problem))
    for steps, hot in QUICK:
        if search.value <= bound or context.should_stop():
            break
        search.improve(steps, hot, context)
    return Assignment.unpacked(problem, search.packed())


def improve(
    windows: Windows, parts: Parts, context: Context, seconds: float, tell: Callable[[int], object]
) -> bool:
    """Replace times on the least way by what CP-SAT proves until the way has only such, but for parts that are too large.

    ``tell`` gets the time of every least way. Return False if time is up before.
    """
    while True:
        value, way = windows.way()
        tell(value)
        _, best = context.incumbent()
        open_ = [
            (w, a, b) for w, (a, b) in enumerate(way)
            if 1 < len(windows.inside[w]) <= MOST and (w, a, b) not in windows.found
        ]  # fmt: skip
        if not open_ or value >= best:
            return True
        for w, a, b in open_:
            if context.should_stop():
                return False
            solved = parts.solve(windows.part(w, a, b), seconds)
            windows.found[w, a, b] = solved
            windows.tables[w][a, b] = max(int(windows.tables[w][a, b]), solved.bound)


def together(windows: Windows) -> Assignment | None:
    """Return the schedules of the parts on the least way, one after the other; None where one is not known."""
    program, moment = windows.program, 0
    problem = program.problem
    unit, fused = np.zeros(problem.count, np.int64), np.zeros(problem.groups.count, bool)
    start, finish = np.zeros(problem.count, np.int64), np.zeros(problem.count, np.int64)
    for w, (a, b) in enumerate(windows.way()[1]):
        inside = windows.inside[w]
        if len(inside) == 1:
            j = b if w < len(windows.ends) else int(np.argmin(program.run[inside[0]]))
            unit[inside[0]], start[inside[0]] = j, moment
            moment += int(windows.tables[w][a, b])
            finish[inside[0]] = moment
            continue
        solved = windows.found.get((w, a, b))
        if solved is None or solved.unit is None:
            return None
        assert solved.fused is not None and solved.start is not None and solved.finish is not None
        part = windows.part(w, a, b)
        skip = len(part.operators) - len(inside)
        unit[inside], fused[part.groups] = solved.unit[skip:], solved.fused
        start[inside], finish[inside] = moment + solved.start[skip:], moment + solved.finish[skip:]
        moment = int(finish[inside].max())
    for i in program.loose:
        unit[i] = int(np.argmin(program.run[i]))
        start[i] = max((int(finish[p]) for p, _ in program.waits[i]), default=0)
        finish[i] = start[i] + program.run[i, unit[i]]
    return Assignment(unit, fused, rank_by(problem, start, finish))
