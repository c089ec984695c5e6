"""What can be seen to be impossible before any search: pairs cut off by faults or turns, tables that are too small."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.routing.order import following
from nmsolve.model.compiled import kernel
from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.links import link_ends
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import leg_lengths, legs_of, working_channels
from nmsolve.model.types import IntArray

_FAR = np.iinfo(np.int64).max


def require_routes(problem: RoutingProblem) -> None:
    """Raise DoesNotFitError where no routes can exist, naming the pair of cores or the core.

    Checked: dead links that cut a flow off; given turns that do, or that need more links than allowed; table entries that every
    core needs at least, for what starts and ends there.
    """
    lengths = leg_lengths(problem)
    if problem.turns is not None:
        _require_turns(problem, lengths)
    if problem.table_limit is not None:
        _require_tables(problem, problem.table_limit)


def _require_turns(problem: RoutingProblem, lengths: IntArray) -> None:
    _, source = legs_of(problem.flows)
    legal = turn_lengths(problem)
    name = problem.turns.name if problem.turns is not None else ""
    where = f"turns {name}" if name else "turns"
    for k in np.flatnonzero(legal > lengths + problem.detour).tolist():
        s, t = int(source[k]), int(problem.flows.targets[k])
        if legal[k] == _FAR:
            raise DoesNotFitError(
                f"the turn set disconnects core {s} from core {t}: no route without prohibited turns", where,
                "turns that leave a route for every flow",
            )  # fmt: skip
        raise DoesNotFitError(
            f"the shortest route from core {s} to core {t} without prohibited turns has {int(legal[k])} links, "
            f"{int(lengths[k]) + problem.detour} are allowed", where, f"a detour of at least {int(legal[k] - lengths[k])}",
        )  # fmt: skip


def turn_lengths(problem: RoutingProblem) -> IntArray:
    """(T,) links of a shortest route without prohibited turns to every entry of ``flows.targets``; a huge number: none."""
    v = problem.channels
    before, after = following(problem)
    single = (before % v == 0) & (after % v == 0)
    before, after = before[single] // v, after[single] // v
    if problem.turns is not None:
        ok = problem.turns.allowed[after // 4, before % 4, after % 4]
        before, after = before[ok], after[ok]
    by = np.argsort(after, kind="stable")
    head = np.searchsorted(after[by], np.arange(4 * problem.machine.size + 1))
    ends = link_ends(problem.machine)
    exists = np.zeros(len(ends), np.bool_)
    exists[working_channels(problem) // v] = True
    goals, where = np.unique(problem.flows.targets, return_inverse=True)
    far = _to_goals(
        head, before[by], np.where(exists, ends, -1), goals.astype(np.int64), problem.machine.size
    )
    _, source = legs_of(problem.flows)
    return np.asarray(far[where, source])


@kernel
def _to_goals(
    head: IntArray, before: IntArray, ends: IntArray, goals: IntArray, cores: int
) -> IntArray:  # pragma: no cover - compiled
    """(T, P) links from every core to every goal, going backwards over links and allowed turns."""
    links = len(ends)
    out = np.full((len(goals), cores), np.iinfo(np.int64).max, np.int64)
    for row in range(len(goals)):
        far = np.full(links, -1, np.int64)
        queue = np.empty(links, np.int64)
        first, last = 0, 0
        for link in range(links):
            if ends[link] == goals[row]:
                far[link] = 1
                queue[last] = link
                last += 1
        while first < last:
            link = queue[first]
            first += 1
            out[row, link // 4] = min(out[row, link // 4], far[link])
            for k in range(head[link], head[link + 1]):
                b = before[k]
                if far[b] < 0:
                    far[b] = far[link] + 1
                    queue[last] = b
                    last += 1
    return out


def _require_tables(problem: RoutingProblem, limit: int) -> None:
    least = least_entries(problem)
    missing = np.maximum(0, least - limit)
    if missing.any():
        raise DoesNotFitError(
            f"table entries are missing in {missing_text(missing, least)}", "table limit", f"at least {int(least.max())}"
        )  # fmt: skip


def missing_text(missing: IntArray, needed: IntArray | None = None) -> str:
    """``core 5 (3), core 7 (1)``: the worst five cores with the entries that are missing there."""
    worst = np.argsort(-missing, kind="stable")[: min(5, int((missing > 0).sum()))]
    names = [
        f"core {int(p)} ({int(missing[p])}"
        + (f" of at least {int(needed[p])})" if needed is not None else ")")
        for p in worst
    ]
    more = int((missing > 0).sum()) - len(worst)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def least_entries(problem: RoutingProblem) -> IntArray:
    """(P,) table entries that every core needs whatever the routes.

    ``flow``, ``source``: one for every key that starts or ends there; ``destination``: one for every core it sends to.
    """
    flows, size = problem.flows, problem.machine.size
    flow, source = legs_of(flows)
    if problem.form == "destination":
        names = np.unique(source * size + flows.targets)
        return np.bincount(names // size, minlength=size)
    key = flow if problem.form == "flow" else source
    keys = max(size, flows.count)
    names = np.unique(np.concatenate([source * keys + key, flows.targets.astype(np.int64) * keys + key]))
    return np.bincount(names // keys, minlength=size)
