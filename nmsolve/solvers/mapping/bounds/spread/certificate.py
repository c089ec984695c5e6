"""What the certificate of the bound ``spread`` holds: one flow per source, in whole units, and prices of cores."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import kernel
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.spread.form import SpreadForm
from nmsolve.solvers.mapping.bounds.spread.packing import Packing, fitted
from nmsolve.solvers.mapping.bounds.spread.rows import Rows

#: Rounding shares down to whole units takes at most this part of the bound.
LOST = 5e-4
#: Part of the traffic, and of the value, that rounding in a re-check may be charged.
KEPT_BACK, CHARGED = 1e-12, 1e-9


def certified(form: SpreadForm, packing: Packing) -> tuple[float, dict[str, Any]]:
    """Return a value that the certificate proves, a little less for rounding, and the certificate."""
    rows = packing.rows
    right = packing.right()
    weight, wanted = form.weight * (1 - KEPT_BACK), packing.y / np.maximum(right, 1e-300)
    share = fitted(rows.indptr, rows.edge, rows.load, weight, wanted)
    unit = _unit(LOST * float(share @ right) / max(1e-300, float(right.sum())))
    times = np.floor(share / unit)
    price = np.floor(packing.v / unit)
    used = times > 0
    order = np.flatnonzero(used)[np.argsort(rows.source[used], kind="stable")]
    sources, first = np.unique(rows.source[order], return_index=True)
    counts, edges, flows, paid = _led(
        order, np.append(first, len(order)), rows, times, _ends(form), form.least
    )
    value, kept = 0.0, np.zeros_like(price)
    for tried in (np.zeros_like(price), price):
        reached = unit * (float((paid + tried).min(axis=1).sum()) - float(form.count @ tried))
        if reached > value:
            value, kept = reached, tried
    certificate = {
        "method": "spread",
        "unit": unit,
        "sources": sources,
        "counts": counts,
        "pairs": edges,
        "flows": flows,
        "prices": kept[form.group],
    }
    return value * (1 - CHARGED), certificate


def _unit(most: float) -> float:
    """Return the largest power of two that is not above ``most``."""
    return float(2.0 ** np.floor(np.log2(most))) if most > 1e-300 else 1.0


def _ends(form: SpreadForm) -> IntArray:
    """Return (M, 2) the lower and the higher node of every pair."""
    ends = np.empty((len(form.weight), 2), np.int64)
    at = np.repeat(np.arange(form.n), np.diff(form.indptr))
    up = at < form.node
    ends[form.edge[up]] = np.column_stack([at[up], form.node[up]])
    return ends


@kernel
def _led(
    order: IntArray, first: IntArray, rows: Rows, times: FloatArray, ends: IntArray, least: FloatArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Flows of every source added up: numbers of entries by source, pairs in rising order and flows; and what they cost at least.

    Rows of one source together cost no less than one by one: most goes to the nearest slots.

    Parameters
    ----------
    order, first : numbers of the rows by source; those of source s are ``order[first[s] : first[s + 1]]``
    times : (rows,) whole numbers; ``ends`` : (M, 2) nodes of every pair; ``least`` : (G, n) as of the form

    Returns
    -------
    the last, (sources, G), is what a source's flow costs at least if it lies in a group
    """
    entries, nodes = 0, int(ends.max()) + 1
    for r in order:
        entries += rows.indptr[r + 1] - rows.indptr[r]
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
        for r in order[first[s] : first[s + 1]]:
            for e in range(rows.indptr[r], rows.indptr[r + 1]):
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
        source = rows.source[order[first[s]]]
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
