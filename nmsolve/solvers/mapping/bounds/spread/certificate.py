"""What the certificate of the bound ``spread`` holds: one flow per source, in whole units, and prices of cores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import kernel
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.spread.form import SpreadForm
from nmsolve.solvers.mapping.bounds.spread.packing import Packing, fitted
from nmsolve.solvers.mapping.bounds.spread.rows import Rows
from nmsolve.solvers.mapping.bounds.spread.sets import WIDEST, Sets

#: Rounding shares down to whole units takes at most this part of the bound.
LOST = 5e-4
#: How often shares that overload messages are softened.
TURNS = 3
#: Part of the traffic, and of the value, that rounding in a re-check may be charged.
KEPT_BACK, CHARGED = 1e-12, 1e-9


def certified(form: SpreadForm, packing: Packing) -> tuple[float, dict[str, Any]]:
    """Return a value that the certificate proves, a little less for rounding, and the certificate."""
    rows, sets = packing.rows, packing.sets
    right = packing.right()
    weight = packing.bears * (1 - KEPT_BACK)
    share = fitted(rows.indptr, form.bearers(rows.edge), rows.load, weight, packing.shares())
    if form.messages is not None:
        share = _borne(packing, share)
    unit = _unit(LOST * float(share @ right) / max(1e-300, float(right.sum())))
    times = np.floor(share / unit)
    price = np.floor(packing.v / unit)
    legs = _legs(rows, sets, times)
    sources, first = np.unique(legs.source, return_index=True)
    counts, edges, flows, paid = _led(
        legs, np.append(first, len(legs.source)), rows, sets, times, form.ends(), form.least
    )
    value, kept = 0.0, np.zeros_like(price)
    for tried in (np.zeros_like(price), price):
        reached = unit * (float((paid + tried).min(axis=1).sum()) - float(form.count @ tried))
        if reached > value:
            value, kept = reached, tried
    of_sets = times[rows.source < 0]
    value += unit * float(of_sets @ sets.worth)
    certificate = {
        "method": "spread",
        "unit": unit,
        "sources": sources,
        "counts": counts,
        "pairs": edges,
        "flows": flows,
        "prices": kept[form.group],
    }
    return value * (1 - CHARGED), certificate | _stated(form, sets, of_sets)


def _borne(packing: Packing, share: FloatArray) -> FloatArray:
    """Return shares (rows,) near these that part no more of a message than its rate, however its terminals are split."""
    form, rows = packing.form, packing.rows
    bearer = form.bearers(rows.edge)
    for turn in range(TURNS if len(share) else 0):
        over = packing.led(share) / (form.weight * (1 - KEPT_BACK))
        most = np.maximum(1.0, np.maximum.reduceat(over[bearer], rows.indptr[:-1]))
        share = share * most ** (-0.5 if turn + 1 < TURNS else -1.0)
    return share


def _stated(form: SpreadForm, sets: Sets, times: FloatArray) -> dict[str, Any]:
    """Return what the certificate says of sets: how often each is used, members, demands between them, costs and their scale."""
    used = times > 0
    if form.grid is None or not used.any():
        return {}
    sizes = (sets.node[used] >= 0).sum(axis=1)
    inside = np.arange(WIDEST) < sizes[:, None]
    above = inside[:, :, None] & inside[:, None, :] & np.triu(np.ones((WIDEST, WIDEST), bool), 1)
    return {
        "set_times": times[used].astype(np.int64),
        "set_sizes": sizes,
        "set_nodes": sets.node[used][inside],
        "set_demands": sets.demand[used][above].astype(np.int64),
        "set_costs": sets.cost[used],
        "set_scale": form.grid.scale,
    }


class _Legs(NamedTuple):
    """Trees of used rows by source: from it a row's entries ``begin`` to ``end``; of a set, which one and which member."""

    source: IntArray
    row: IntArray
    begin: IntArray
    end: IntArray
    set: IntArray
    member: IntArray


def _legs(rows: Rows, sets: Sets, times: FloatArray) -> _Legs:
    """Return the legs of all rows that are used; a star has one leg."""
    star = np.flatnonzero((rows.source >= 0) & (times > 0))
    alone = np.full(len(star), -1)
    of_set = np.flatnonzero(rows.source < 0)
    end = rows.indptr[of_set][:, None] + np.cumsum(sets.legs, axis=1)
    which, member = np.nonzero((sets.legs > 0) & (times[of_set] > 0)[:, None])
    legs = _Legs(
        np.concatenate([rows.source[star], sets.node[which, member]]),
        np.concatenate([star, of_set[which]]),
        np.concatenate([rows.indptr[star], (end - sets.legs)[which, member]]),
        np.concatenate([rows.indptr[star + 1], end[which, member]]),
        np.concatenate([alone, which]),
        np.concatenate([alone, member]),
    )
    order = np.argsort(legs.source, kind="stable")
    return _Legs(*(part[order] for part in legs))


def _unit(most: float) -> float:
    """Return the largest power of two that is not above ``most``."""
    return float(2.0 ** np.floor(np.log2(most))) if most > 1e-300 else 1.0


@kernel
def _led(
    legs: _Legs, first: IntArray, rows: Rows, sets: Sets, times: FloatArray, ends: IntArray, least: FloatArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Flows of every source added up: numbers of entries by source, pairs in rising order and flows; and what they cost at least.

    Rows of one source together cost no less than one by one: most goes to the nearest slots. What sets demand is paid with them.

    Parameters
    ----------
    first : (sources + 1,) where the legs of every source begin
    times : (rows,) whole numbers; ``ends`` : (M, 2) nodes of every pair; ``least`` : (G, n) as of the form

    Returns
    -------
    the last, (sources, G), is what a source's flow costs at least if it lies in a group
    """
    entries, nodes = int((legs.end - legs.begin).sum()), int(ends.max()) + 1
    counts = np.zeros(len(first) - 1, np.int64)
    pairs, flows = np.empty(entries, np.int64), np.empty(entries, np.int64)
    paid = np.zeros((len(first) - 1, len(least)))
    flow, brought = np.zeros(len(ends), np.int64), np.zeros(nodes, np.int64)
    touched, reached = np.empty(len(ends), np.int64), np.empty(nodes, np.int64)
    # s + 1 where a pair or a node was met for source s
    seen, known = np.zeros(len(ends), np.int64), np.zeros(nodes, np.int64)
    end = 0
    for s in range(len(counts)):
        k = 0
        for leg in range(first[s], first[s + 1]):
            r = legs.row[leg]
            for e in range(legs.begin[leg], legs.end[leg]):
                pair = rows.edge[e]
                if seen[pair] != s + 1:
                    seen[pair] = s + 1
                    touched[k] = pair
                    k += 1
                flow[pair] += int(rows.load[e] * times[r])
        begin, m = end, 0
        for i in stable_order(touched[:k]):
            pair = touched[i]
            if flow[pair] != 0:
                pairs[end], flows[end] = pair, flow[pair]
                end += 1
                for side in range(2):
                    v = ends[pair, side]
                    if known[v] != s + 1:
                        known[v] = s + 1
                        reached[m] = v
                        m += 1
                    brought[v] += flow[pair] if side == 1 else -flow[pair]
                flow[pair] = 0
        counts[s] = end - begin
        source = legs.source[first[s]]
        for leg in range(first[s], first[s + 1]):
            which, i = legs.set[leg], legs.member[leg]
            for j in range(i + 1, WIDEST if which >= 0 else 0):
                if sets.demand[which, i, j] > 0:
                    brought[sets.node[which, j]] -= int(times[legs.row[leg]]) * sets.demand[which, i, j]
        got, many = np.empty(m), 0
        for i in range(m):
            v = reached[i]
            if v != source and brought[v] > 0:
                got[many] = -float(brought[v])
                many += 1
            brought[v] = 0
        rising = stable_order(got[:many])
        for i in range(many):
            step = (got[rising[i + 1]] if i + 1 < many else 0.0) - got[rising[i]]
            if step > 0.0:
                for g in range(len(least)):
                    paid[s, g] += step * least[g, i + 1]
    return counts, pairs[:end], flows[:end], paid
