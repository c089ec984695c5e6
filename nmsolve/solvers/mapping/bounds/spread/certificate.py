"""What the certificate of the bound ``spread`` holds: one flow per source, in whole units, and prices of cores."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array

from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.spread.form import SpreadForm
from nmsolve.solvers.mapping.bounds.spread.packing import Packing, fitted

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
    sources = np.unique(rows.source[times > 0])
    counts, edges, flows = _flows(
        rows.source, rows.indptr, rows.edge, rows.load * np.repeat(times, np.diff(rows.indptr))
    )
    paid = _paid(form, sources, counts, edges, flows)
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


def _flows(
    source: IntArray, indptr: IntArray, edge: IntArray, flow: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the flows of every source added up: numbers of entries by source, pairs and flows."""
    who = np.repeat(source, np.diff(indptr))
    kept = flow != 0
    shape = (int(source.max(initial=0)) + 1, int(edge.max(initial=0)) + 1)
    total = coo_array((flow[kept], (who[kept], edge[kept])), shape=shape).tocsr()
    total.sum_duplicates()
    used = np.unique(who[kept])
    counts = np.diff(total.indptr)[used]
    return counts.astype(np.int64), total.indices.astype(np.int64), total.data.astype(np.int64)


def _paid(
    form: SpreadForm, sources: IntArray, counts: IntArray, edges: IntArray, flows: IntArray
) -> FloatArray:
    """Return (sources, G) what the flow of every source costs at least, if it lies in a group: most to the nearest slots.

    Rows of one source together cost no less than one by one.
    """
    ends = np.empty((len(form.weight), 2), np.int64)
    at = np.repeat(np.arange(form.n), np.diff(form.indptr))
    up = at < form.node
    ends[form.edge[up]] = np.column_stack([at[up], form.node[up]])
    row, flow = np.repeat(np.arange(len(sources)), counts), flows.astype(np.float64)
    where = np.concatenate([row, row]), np.concatenate([ends[edges, 1], ends[edges, 0]])
    net = coo_array((np.concatenate([flow, -flow]), where), shape=(len(sources), form.n)).tocsr()
    net.sum_duplicates()
    row = np.repeat(np.arange(len(sources)), np.diff(net.indptr))
    brought = np.where(net.indices == sources[row], 0.0, net.data)
    brought = brought[np.lexsort((-brought, row))]
    rank = np.arange(len(row)) - net.indptr[row]
    after = np.where(np.append(row[1:], -1) == row, np.append(brought[1:], 0.0), 0.0)
    rest = rank < form.n - 1  # the last is the source itself, if all others get something
    steps = coo_array(((brought - after)[rest], (row[rest], rank[rest] + 1)), shape=(len(sources), form.n))
    return np.asarray(steps.tocsr() @ form.least.T)
