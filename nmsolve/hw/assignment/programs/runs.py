"""An order of operators in runs of one unit each, as few and as long as a greedy choice makes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def runs_of(before: Sequence[Collection[int]], unit: Sequence[int]) -> list[list[int]]:
    """Return numbers 0..n - 1 in runs: one behind the other they are a topological order, and every run is of one unit.

    A unit goes on as long as it has something that can run. Then the unit follows that could run the most without the
    others. As a run needs nothing of later runs, the graph of runs has no circle.

    Parameters
    ----------
    before : (n) what must come before each number; the first that is possible is taken, by rising number
    unit : (n) the unit of each; a negative one stands alone in its run
    """
    after: list[list[int]] = [[] for _ in before]
    for k, needed in enumerate(before):
        for m in needed:
            after[m].append(k)
    missing = [len(needed) for needed in before]
    ready = {k for k, count in enumerate(missing) if not count}
    out: list[list[int]] = []
    while ready:
        own = {j: sorted(k for k in ready if unit[k] == j) for j in sorted({unit[k] for k in ready})}
        choices = {j: _drained(ks if j >= 0 else ks[:1], j, unit, after, missing) for j, ks in own.items()}
        # control flow, which stands alone, waits until nothing else can run: more is in reach before it then
        best = max(choices, key=lambda j: (j >= 0, len(choices[j]), -j))
        run = choices[best]
        ready.difference_update(run)
        for k in run:
            for m in after[k]:
                missing[m] -= 1
                if not missing[m]:
                    ready.add(m)
        ready.difference_update(run)
        out.append(run)
    return out


def _drained(
    start: Sequence[int], own: int, unit: Sequence[int], after: Sequence[Sequence[int]], missing: list[int]
) -> list[int]:
    """Return what one unit can run, beginning with what is ready, before another must go on; ``missing`` is left as it was."""
    found = list(start)
    if own < 0:
        return found
    for k in found:  # grows while it is read
        for m in after[k]:
            missing[m] -= 1
            if not missing[m] and unit[m] == own:
                found.append(m)
    for k in found:
        for m in after[k]:
            missing[m] += 1
    return found
