"""Bounds of makespans by energetic reasoning, recomputed in plain Python: how much must be done in one window of time."""

from __future__ import annotations

from nmsolve.check.schedule.paths import Paths, numbers_of
from nmsolve.model.bound import Bound, BoundCheck, float_below
from nmsolve.model.errors import CertificateError
from nmsolve.model.schedule.problem import ScheduleProblem


def check(problem: ScheduleProblem, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute a bound of one window; ``seconds`` are not needed.

    Suppose that all is done by ``tick``. A mode that may start from ``head`` to ``late`` works in the window ``[a, b)`` for no
    less than it does when it starts at one of these. If all processes together, at the prices of what they take, must do more
    than there is of it in the window, the supposition is wrong. If so for a tick, then for all before it.

    Raises
    ------
    CertificateError : the certificate is damaged, or about another problem
    """
    if problem.objective != "makespan":
        raise CertificateError(f"a window does not bound {problem.objective}")
    units, m = problem.units.count, problem.modes
    row = numbers_of(bound.certificate.get("rows"), "rows", units + len(problem.resources))
    begin, end, tick = numbers_of(bound.certificate.get("window"), "window", 3)
    paths = Paths(problem)
    if not begin < end <= tick:
        raise CertificateError(f"the window {begin}..{end} of {tick} ticks is none")
    total = 0
    for p, own in enumerate(paths.modes):
        least = None
        for k in own:
            head, span = paths.head[k], paths.span[k]
            late = min(tick - paths.tail[k], int(problem.deadline[p])) - span
            if late < head:
                continue
            price = sum(row[units + r] * int(x) for r, x in enumerate(m.demand[k]))
            price += sum(
                row[u] for u in (problem.sets.of(paths.set[k]).tolist() if paths.set[k] >= 0 else ())
            )
            inside = [max(0, min(end, start + span) - max(begin, start)) for start in (head, late)]
            least = price * min(inside) if least is None else min(least, price * min(inside))
        if least is None:
            # the process cannot be done by this tick at all
            total = -1
            break
        total += least
    room = sum(row[:units]) + sum(x * int(c) for x, c in zip(row[units:], problem.capacity, strict=True))
    if 0 <= total <= room * (end - begin):
        said = f"in {begin:,}..{end:,} there is room for all that must be done by {tick:,}"
        return BoundCheck(False, 0.0, said)
    holds = bound.value <= tick + 1
    text = f"not all can be done by {tick:,}: the window {begin:,}..{end:,} has no room"
    return BoundCheck(
        holds, float_below(tick + 1), text if holds else f"{text}, the claim is {bound.value:,.17g}"
    )
