"""Which sets of nodes are worth solving exactly: tightly joined ones, grown from every node."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.subgraphs.form import Form


def grown_sets(form: Form, size: int, times: int, rng: np.random.Generator) -> list[list[int]]:
    """Return different sets of ``size`` nodes: from every node ``times`` a connected set that adds the most attached.

    The attachment is blurred by up to half, so that repeated growth finds other neighbours.
    """
    edges = form.weight > 0
    u, v = form.pair[edges].T
    n = form.n
    w = csr_array((form.weight[edges].astype(np.float64), (u, v)), shape=(n, n))
    joined = csr_array(w + w.T)
    seen: dict[tuple[int, ...], None] = {}
    for _ in range(times):
        for root in range(n):
            members = _grow(joined, root, size, rng)
            if len(members) > 2:
                seen[tuple(sorted(members))] = None
    return [list(s) for s in seen]


def _grow(joined: csr_array, root: int, size: int, rng: np.random.Generator) -> list[int]:
    members = [root]
    pull: dict[int, float] = {}
    while len(members) < size:
        last = members[-1]
        a, z = joined.indptr[last], joined.indptr[last + 1]
        for v, weight in zip(joined.indices[a:z].tolist(), joined.data[a:z].tolist(), strict=True):
            pull[v] = pull.get(v, 0.0) + weight
        for u in members:
            pull.pop(u, None)
        if not pull:
            break
        keys = list(pull)
        blurred: FloatArray = np.array([pull[v] for v in keys]) * rng.uniform(0.5, 1.0, len(keys))
        members.append(keys[int(blurred.argmax())])
    return members
