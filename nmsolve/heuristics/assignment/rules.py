"""Rules of compilers: engines that decide once, without a search. Their gaps say what a rule loses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmsolve.heuristics.assignment.places import Items, MemoryProfile, Sums, no_network, offer
from nmsolve.heuristics.assignment.threshold import Threshold
from nmsolve.hw.assignment.evaluate import terms_of
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.engine import Context
from nmsolve.model.types import BoolArray, IntArray

__all__ = ["ComplexScalars", "GreedyGrowth", "Priority", "ScalarTensor", "Threshold"]


class ScalarTensor:
    """All scalar operators to the host, all tensor operators to the accelerator (M3.9).

    The accelerator is that which comes first; each in turn comes first once, and the best is kept. An operator that it cannot
    run, or has no memory for, goes to the next, in the end to the host.
    """

    name = "scalar-tensor"
    finds = "mappings"

    def refuses(self, problem: AssignProblem) -> str | None:
        """Return why it cannot take the problem, or None."""
        return no_network(problem)

    def on_host(self, items: Items) -> BoolArray:
        """Return (N,) the items that the host gets."""
        return items.scalar

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Offer one assignment for every accelerator that may come first."""
        items = Items(problem)
        hosts, accelerators = _by_kind(problem)
        host = self.on_host(items).tolist()
        for first in _leaders(items, accelerators):
            order = [first, *(j for j in accelerators if j != first), *hosts] if accelerators else hosts
            back = [*hosts, *accelerators]
            unit = _in_order(items, [back if here else order for here in host])
            name = problem.units.names[first] if accelerators else "no accelerator"
            if unit is None:
                context.note(f"{name} first: an operator fits in no memory")
            else:
                offer(problem, context, items.spread(unit), f"{name} first")
            if context.should_stop():
                return


class ComplexScalars(ScalarTensor):
    """Complex scalar operators to the host, all others to the accelerator: the second simple rule of method M3 (M3.9).

    A scalar operator is complex if its arithmetic on the host takes longer than that of the median one.
    """

    name = "complex-scalars"

    def on_host(self, items: Items) -> BoolArray:
        """Return (N,) the complex scalar items."""
        terms = terms_of(items.problem)
        each = terms.work[np.arange(items.problem.count), terms.reference]
        work = np.array([each[own].sum() for own in items.members])
        complex_ones: BoolArray = work > np.median(work[items.scalar] if items.scalar.any() else work)
        return items.scalar & complex_ones


class Priority:
    """Processors in order of priority, each takes the largest connected sets of operators that it can run (as onnxruntime does).

    Accelerators come before hosts, in the order of the machine. Operators of class scalar, which work on shapes, go to the host.
    A processor whose memory is full takes no more.
    """

    name = "priority"
    finds = "mappings"

    def refuses(self, problem: AssignProblem) -> str | None:
        """Return why it cannot take the problem, or None."""
        return no_network(problem)

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Offer one assignment."""
        items, units = Items(problem), problem.units
        hosts, accelerators = _by_kind(problem)
        profile, unit = MemoryProfile(items), np.full(items.count, -1, np.int64)
        for j in [*accelerators, *hosts]:
            free = (unit < 0) & items.possible[:, j]
            if not units.host[j]:
                free &= ~(items.scalar & items.possible[:, hosts].any(axis=1))
            for own in items.components(free):
                for k in own:
                    if profile.fits(k, j):
                        profile.place(k, j)
                        unit[k] = j
        for k in np.flatnonzero(unit < 0).tolist():
            unit[k] = _first_fit(profile, k, [*hosts, *accelerators])
            if unit[k] < 0:
                label = problem.labels[items.members[k][0]]
                context.note(f"operator {label!r} fits in no memory after those before it")
                return
        order = ", ".join(units.names[j] for j in [*accelerators, *hosts])
        offer(problem, context, items.spread(unit), f"priority {order}")


def _by_kind(problem: AssignProblem) -> tuple[list[int], list[int]]:
    """Return hosts and accelerators, in the order of the machine."""
    host = problem.units.host
    return np.flatnonzero(host).tolist(), np.flatnonzero(~host).tolist()


def _leaders(items: Items, accelerators: Sequence[int]) -> list[int]:
    """Return accelerators that differ: one of those with equal costs, or a place that stands for none."""
    seen: dict[bytes, int] = {}
    for j in accelerators:
        seen.setdefault(items.run[:, j].tobytes() + items.possible[:, j].tobytes(), j)
    return list(seen.values()) or [0]


def _first_fit(profile: MemoryProfile, item: int, order: Sequence[int]) -> int:
    """Place an item on the first unit of an order that can run it and has room; return that unit, -1 if there is none."""
    possible = profile.items.possible[item]
    for j in order:
        if possible[j] and profile.fits(item, j):
            profile.place(item, j)
            return j
    return -1


def _in_order(items: Items, orders: Sequence[Sequence[int]]) -> IntArray | None:
    """Return (N,) the first unit of each item's order that can run it and has room; None if there is none."""
    profile, unit = MemoryProfile(items), np.zeros(items.count, np.int64)
    for k, order in enumerate(orders):
        unit[k] = _first_fit(profile, k, order)
        if unit[k] < 0:
            return None
    return unit


#: A seed is at least this many times as fast as on the host.
SEED = 3.0
#: Most rounds of growing and giving back.
ROUNDS = 20


class GreedyGrowth:
    """Begin with everything on the host; then for every accelerator seeds, growth, and giving back what does not pay.

    A seed is three times as fast on the accelerator. An operator beside those of the accelerator joins them if the sum of all
    costs, transfers included, falls; a connected set of them goes back to the host if that makes the sum fall. The sum counts no
    fusion: that is decided afterwards.
    """

    name = "greedy-growth"
    finds = "mappings"

    def refuses(self, problem: AssignProblem) -> str | None:
        """Return why it cannot take the problem, or None."""
        return no_network(problem)

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Offer one assignment."""
        items = Items(problem)
        hosts, accelerators = _by_kind(problem)
        base = _in_order(items, [[*hosts, *accelerators]] * items.count)
        if base is None:
            context.note("an operator fits in no memory after those before it")
            return
        sums = Sums(items, base)
        for j in accelerators:
            _grow(items, sums, base, j, context)
        offer(problem, context, items.spread(sums.unit), f"seeds {SEED:g} times as fast")


def _grow(items: Items, sums: Sums, base: IntArray, to: int, context: Context) -> None:
    """Give an accelerator what pays, seeds first."""
    each = np.arange(items.count)
    here, there = items.run[each, sums.unit], items.run[:, to]
    fast = items.possible[:, to] & ~items.scalar & (here >= SEED * there) & (here > there)
    seeds = [k for k in np.argsort(there - here, kind="stable").tolist() if fast[k]]
    before = sums.unit.copy()
    for k in seeds:
        _move(items, sums, [k], to)
    for _ in range(ROUNDS):
        changed = _join(items, sums, to, context)
        changed |= _give_back(items, sums, base, to)
        if not changed or context.should_stop():
            break
    if not (sums.unit == to).any():
        sums.unit[:] = before


def _join(items: Items, sums: Sums, to: int, context: Context) -> bool:
    """Let neighbours join while the sum falls; return whether one did."""
    queue = sorted({n for k in np.flatnonzero(sums.unit == to).tolist() for n in items.neighbours[k]})
    changed = False
    for k in queue:  # grows while it is gone through
        if len(queue) > 50 * items.count or context.should_stop():
            break
        if sums.unit[k] == to or not items.possible[k, to] or sums.change([k], to) >= 0:
            continue
        if _move(items, sums, [k], to):
            changed = True
            queue += [n for n in items.neighbours[k] if sums.unit[n] != to]
    return changed


def _give_back(items: Items, sums: Sums, base: IntArray, to: int) -> bool:
    """Send connected sets, or single items, back to where they began if the sum falls; return whether one went."""
    changed = False
    for own in items.components(sums.unit == to):
        for part in (own, *([k] for k in own if len(own) > 1)):
            part = [k for k in part if sums.unit[k] == to and base[k] != to]
            homes = {int(base[k]) for k in part}
            if len(homes) == 1 and sums.change(part, min(homes)) < 0:
                changed |= _move(items, sums, part, min(homes))
    return changed


def _move(items: Items, sums: Sums, moved: list[int], to: int) -> bool:
    """Move items if the memories allow it."""
    old = sums.unit[moved].copy()
    sums.unit[moved] = to
    # a mapping fits if every item in turn, its unit its only choice, finds room
    if not MemoryProfile(items).limited or _in_order(items, sums.unit[:, None].tolist()) is not None:
        return True
    sums.unit[moved] = old
    return False
