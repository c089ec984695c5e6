"""Longest paths through a program, every operator on the unit that suits the path: bounds on the makespan.

Operators wait until all has come: ``end[i, j] >= time[i, j] + max_p min_j' (end[p, j'] + transfer)``, which
on a chain is the shortest way through its units. Fused groups wait for everything their members need, then take their own time.
Where all operators are before or after one (a *cut*), what comes before and what comes after meet in one unit of it. So the ends
between two cuts are computed for every unit of the first one, and joined along the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.heuristics.assignment.orders import uses_of
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import IntArray

#: Longer than any schedule; two of them can be added.
NEVER = 2**61
#: Blocks of more operators are cut once more. An operator is short that takes less than this part of all work.
LARGE, SHORT = 48, 1000


@dataclass(frozen=True, eq=False)
class Program:
    """What waits for what.

    Attributes
    ----------
    waits : (L,) lists of (operator, tensor) that an operator waits for
    feeds : (L,) lists of (operator, tensor) that wait for it
    groups : (L,) fusion groups with an operator
    own : (G,) members of groups
    run : (L, J) time alone, :data:`NEVER` where impossible
    whole : (G, J) time of a group that runs as one, :data:`NEVER` where it cannot
    moved : (T, J, J) time of tensors from unit to unit
    """

    problem: AssignProblem
    waits: list[list[tuple[int, int]]]
    feeds: list[list[tuple[int, int]]]
    groups: list[list[int]]
    own: list[list[int]]
    run: IntArray
    whole: IntArray
    moved: IntArray

    @cached_property
    def related(self) -> tuple[list[int], list[int]]:
        """Of every operator those before it and those after it, as bits of a number."""
        count = self.problem.count
        before, after = [0] * count, [0] * count
        for i in range(count):
            for p, _ in self.waits[i]:
                before[i] |= before[p] | 1 << p
        for i in reversed(range(count)):
            for u, _ in self.feeds[i]:
                after[i] |= after[u] | 1 << u
        return before, after

    @cached_property
    def cuts(self) -> list[int]:
        """Operators along which the program is cut, each before the next; no group is on both sides of one."""
        ends = [block[-1] for block in self.blocks]
        return ends if self._ends_in_cut else ends[:-1]

    @property
    def _ends_in_cut(self) -> bool:
        """Whether all operators but those that are in no block are before the last one, so that nothing follows the last cut."""
        before, _ = self.related
        *_, last = self.blocks
        return all(before[last[-1]] >> i & 1 for i in last[:-1]) and self._parts_no_group(last[-1])

    def _parts_no_group(self, cut: int, rest: int = 0) -> bool:
        """Whether the members of every group are all before the cut (or it is one), all after it, or all in ``rest``."""
        after = self.related[1][cut]
        kinds = (after, rest)
        return all(not (mask & kind and mask & ~kind) for mask in self.masks for kind in kinds)

    @cached_property
    def masks(self) -> list[int]:
        """Members of groups as bits."""
        return [sum(1 << i for i in own) for own in self.own]

    @cached_property
    def blocks(self) -> list[list[int]]:
        """Operators from after one cut up to the next one, this one included; after the last cut too where there are any.

        All are after the cut before them and before the one at their end. Cuts are first the operators before or after which all
        others come. Blocks of more than :data:`LARGE` are cut where what comes neither before nor after the cut is *cheap*:
        scalar or short. It is then in no block, and nothing is said about it.
        """
        before, after = self.related
        count = self.problem.count
        everything = (1 << count) - 1
        whole = [
            i for i in range(count) if before[i] | after[i] | 1 << i == everything and self._parts_no_group(i)
        ]
        out, start = [], 0
        for cut in whole:
            out += self._divided(list(range(start, cut + 1)))
            start = cut + 1
        return [*out, *self._divided(list(range(start, count)))] if start < count else out

    @cached_property
    def loose(self) -> list[int]:
        """Operators that are in no block."""
        return sorted(set(range(self.problem.count)).difference(*self.blocks))

    @cached_property
    def _least(self) -> list[int]:
        least: list[int] = self.run.min(axis=1).tolist()
        return least

    @cached_property
    def _cheap(self) -> int:
        """Operators that a cut may leave out, as bits."""
        short = sum(self._least) / SHORT
        return sum(
            1 << i for i in range(self.problem.count) if self.problem.scalar[i] or self._least[i] <= short
        )

    def _divided(self, block: list[int]) -> list[list[int]]:
        """Return a block, or several if it is large: cut where least work is left out, nearest to its middle."""
        if len(block) <= LARGE:
            return [block]
        before, after = self.related
        inside = sum(1 << i for i in block)
        grain = sum(self._least) / SHORT + 1
        best: tuple[tuple[float, int], int] | None = None
        for place, v in enumerate(block[:-1]):
            rest = inside & ~(before[v] | after[v] | 1 << v)
            if not rest & ~self._cheap and inside & after[v] and self._parts_no_group(v, rest):
                left_out = sum(self._least[i] for i in block if rest >> i & 1)
                key = (left_out // grain, abs(2 * place - len(block)))
                if best is None or key < best[0]:
                    best = key, v
        if best is None:
            return [block]
        v = best[1]
        first = [i for i in block if (before[v] | 1 << v) >> i & 1]
        return [*self._divided(first), *self._divided([i for i in block if after[v] >> i & 1])]


def program_of(problem: AssignProblem) -> Program:
    """Return what waits for what; tensors that go back in a loop make no operator wait."""
    flows, groups, site = problem.flows, problem.groups, problem.units.site
    waits, feeds = uses_of(problem)
    member: list[list[int]] = [[] for _ in range(problem.count)]
    own = [groups.of(k).tolist() for k in range(groups.count)]
    whole = np.full(groups.time.shape, NEVER, np.int64)
    for k, some in enumerate(own):
        able = (problem.time[some] >= 0).all(axis=0) & ((groups.time[k] > 0) | (groups.energy[k] > 0))
        whole[k, able] = problem.time[some][:, able].sum(axis=0) - groups.time[k, able]
        for i in some:
            member[i].append(k)
    run = np.where(problem.time < 0, NEVER, problem.time)
    return Program(problem, waits, feeds, member, own, run, whole, flows.time[:, site][:, :, site])


@dataclass(frozen=True, eq=False)
class Ends:
    """Least times of operators between two cuts, from the end of the first cut.

    Attributes
    ----------
    alone : by operator, (A, J) its end if it runs alone, for every unit of the cut before (A is 1 where there is none)
    fused : by group, (A, J) its end if it runs as one
    done : by operator, (A, J) its end, alone or as the last of a group
    """

    alone: dict[int, IntArray]
    fused: dict[int, IntArray]
    done: dict[int, IntArray]


def ends_within(program: Program, block: list[int], cut: int | None) -> Ends:
    """Return least ends of the operators of a block, counted from the end of the ``cut`` before it (None: from the beginning)."""
    units = program.problem.units.count
    ends = Ends({}, {}, {})
    inside = set(block)
    if cut is not None:
        ends.done[cut] = np.where(np.eye(units, dtype=bool), 0, NEVER)
    rows = 1 if cut is None else units

    def arrival(i: int, apart: set[int]) -> IntArray:
        """(A, J) when all is there that operator ``i`` waits for from outside ``apart``."""
        out = np.zeros((rows, units), np.int64)
        for p, t in program.waits[i]:
            if p in ends.done and p not in apart:
                came = (ends.done[p][:, :, None] + program.moved[t]).min(axis=1)
                np.maximum(out, came, out=out)
        return out

    for i in block:
        alone = np.minimum(arrival(i, set()) + program.run[i], NEVER)
        done = alone
        for k in program.groups[i]:
            own = program.own[k]
            if own[-1] == i and inside.issuperset(own):
                ready = np.zeros((rows, units), np.int64)
                for member in own:
                    np.maximum(ready, arrival(member, set(own)), out=ready)
                ends.fused[k] = np.minimum(ready + program.whole[k], NEVER)
                done = np.minimum(done, ends.fused[k])
        ends.alone[i], ends.done[i] = alone, done
    return ends


def rests_within(program: Program, block: list[int], cut: int | None) -> dict[int, IntArray]:
    """Return by operator (J, B) how long it takes from its end, alone or as the last of a group, to that of the ``cut`` at the
    end of its block (None: until all ends; B is 1), for every unit of the operator and of the cut."""
    units = program.problem.units.count
    inside, columns = set(block), 1 if cut is None else units
    rest: dict[int, IntArray] = {}
    if cut is not None:
        rest[cut] = np.where(np.eye(units, dtype=bool), 0, NEVER)
    for i in reversed(block):
        if i == cut:
            continue
        out = np.zeros((units, columns), np.int64)
        for u, t in program.feeds[i]:
            if u not in inside:
                continue
            through = _through(program, u, rest, i)
            np.maximum(out, (program.moved[t][:, :, None] + through).min(axis=1), out=out)
        rest[i] = np.minimum(out, NEVER)
    return rest


def _through(program: Program, u: int, rest: dict[int, IntArray], apart: int) -> IntArray:
    """(J, B) least time from the start of an operator, or of a group with it but without ``apart``, to the end of the block."""
    out = program.run[u][:, None] + rest[u]
    for k in program.groups[u]:
        own = program.own[k]
        if apart not in own and own[-1] in rest:
            np.minimum(out, program.whole[k][:, None] + rest[own[-1]], out=out)
    capped: IntArray = np.minimum(out, NEVER)
    return capped


@dataclass(frozen=True, eq=False)
class Bounds:
    """Least times along the cuts.

    Attributes
    ----------
    value : no schedule ends before
    before : (K, J) end of every cut on a unit at least
    after : (K, J) from the end of a cut on a unit to the end of all at least
    alone, fused : (L, J), (G, J) least makespan with an operator alone on a unit, with a group as one there
    head, tail : (L, J) end of an operator on a unit at least; what comes after that end at least (if it is not inside a group)
    """

    value: int
    before: IntArray
    after: IntArray
    alone: IntArray
    fused: IntArray
    head: IntArray
    tail: IntArray


def tables_of(program: Program) -> list[IntArray]:
    """Return for every block (A, B) the least time from the end of the cut before it to that of its own, by paths.

    A is 1 for the first block, B is 1 for what comes after the last cut.
    """
    out = []
    for number, block in enumerate(program.blocks):
        cut = program.cuts[number - 1] if number else None
        ends = ends_within(program, block, cut)
        if number < len(program.cuts):
            out.append(ends.done[program.cuts[number]])
        else:
            least = [ends.done[i].min(axis=1) for i in block if _ends_alone(program, i)]
            out.append(np.max(least, axis=0)[:, None])
    return out


def _ends_alone(program: Program, i: int) -> bool:
    """Return whether an operator is the last of every group that holds it, so that its end is known."""
    return all(program.own[k][-1] == i for k in program.groups[i])


def along_cuts(program: Program, tables: list[IntArray]) -> tuple[int, IntArray, IntArray]:
    """Return the least time from beginning to end by ``tables`` of blocks, and ``before`` and ``after`` of :class:`Bounds`."""
    cuts, units = len(program.cuts), program.problem.units.count
    before = np.zeros((cuts, units), np.int64)
    now: IntArray = np.zeros(1, np.int64)
    for number, table in enumerate(tables):
        now = np.minimum((now[:, None] + table).min(axis=0), NEVER)
        if number < cuts:
            before[number] = now
    after = np.zeros((cuts, units), np.int64)
    later: IntArray = np.zeros(units if len(tables) == cuts else 1, np.int64)
    for number in reversed(range(cuts)):
        if number + 1 < len(tables):
            later = np.minimum((tables[number + 1] + later[None, :]).min(axis=1), NEVER)
        after[number] = later
    return int(now.min()), before, after


def bounds_of(program: Program, tables: list[IntArray] | None = None) -> Bounds:
    """Return all bounds by paths; ``tables`` may hold larger times of blocks, known from elsewhere."""
    count, units = program.problem.count, program.problem.units.count
    known = tables_of(program) if tables is None else tables
    value, before, after = along_cuts(program, known)
    head, tail = program.run.copy(), np.zeros((count, units), np.int64)
    group_end = program.whole.copy()
    for number, block in enumerate(program.blocks):
        first = program.cuts[number - 1] if number else None
        last = program.cuts[number] if number < len(program.cuts) else None
        ends, rests = ends_within(program, block, first), rests_within(program, block, last)
        start = np.zeros(1, np.int64) if number == 0 else before[number - 1]
        finish = np.zeros(1, np.int64) if last is None else after[number]
        for i in block:
            head[i] = _joined(start, ends.alone[i])
            tail[i] = (np.minimum(rests[i] + finish[None, :], NEVER)).min(axis=1)
        for k, end in ends.fused.items():
            group_end[k] = _joined(start, end)
        if last is not None and not program.groups[last]:
            head[last] = before[number]
    alone = np.minimum(head + tail, NEVER)
    lasts = [own[-1] for own in program.own]
    fused = np.minimum(group_end + tail[lasts], NEVER) if lasts else group_end
    return Bounds(value, before, after, alone, fused, head, tail)


def _joined(start: IntArray, ends: IntArray) -> IntArray:
    """(J,) the least of ``start`` (A,) and then ``ends`` (A, J)."""
    out: IntArray = np.minimum(start[:, None] + ends, NEVER).min(axis=0)
    return out
