"""The engine ``greedy-growth``: seeds on the accelerator, grown while the sum of all costs falls (as onnx-mlir does)."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.assignment.places import Items, MemoryProfile, Sums, no_network, offer
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.engine import Context
from nmsolve.model.types import IntArray

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
        base = _on_hosts(items)
        if base is None:
            context.note("an operator fits in no memory after those before it")
            return
        sums = Sums(items, base)
        for j in np.flatnonzero(~problem.units.host).tolist():
            _grow(items, sums, base, j, context)
        offer(problem, context, items.spread(sums.unit), f"seeds {SEED:g} times as fast")


def _on_hosts(items: Items) -> IntArray | None:
    """Return (N,) a host for every item, or else the first unit that can run it; None if memories are too small for that."""
    host = items.problem.units.host
    order = [*np.flatnonzero(host).tolist(), *np.flatnonzero(~host).tolist()]
    profile, unit = MemoryProfile(items), np.zeros(items.count, np.int64)
    for k in range(items.count):
        found = next((j for j in order if items.possible[k, j] and profile.fits(k, j)), -1)
        if found < 0:
            return None
        profile.place(k, found)
        unit[k] = found
    return unit


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
    if _fits(items, sums.unit):
        return True
    sums.unit[moved] = old
    return False


def _fits(items: Items, unit: IntArray) -> bool:
    """Return whether a mapping of items (N,) fits in the memories, counted item by item."""
    profile = MemoryProfile(items)
    if not profile.limited:
        return True
    for k, j in enumerate(unit.tolist()):
        if not profile.fits(k, j):
            return False
        profile.place(k, j)
    return True
