"""Paths to choose from: several cheap ones for each of a few flows, all within one order of channels."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.rng import uniform
from nmsolve.heuristics.routing.nets import Nets
from nmsolve.heuristics.routing.paths import attach
from nmsolve.heuristics.routing.prices import Price
from nmsolve.heuristics.routing.trees import Open, RoutingState, open_tree, start_tree
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel
from nmsolve.model.types import AnyArray, IntArray


@kernel
def path_columns(
    nets: Nets,
    state: RoutingState,
    work: Open,
    price: Price,
    chosen: IntArray,
    count: int,
    noise: float,
    rng: AnyArray,
) -> tuple[IntArray, IntArray]:
    """Up to ``count`` different paths for each net of one leg in ``chosen``, which must be off the machine.

    The first is the one it has; the others are cheapest ones while all loads are varied by a factor of 1 +- ``noise``.

    Returns
    -------
    path : (len(chosen), count, longest) channels, filled up with -1
    found : (len(chosen),) how many paths there are
    """
    longest = 0
    for n in chosen:
        longest = max(longest, nets.slot[n + 1] - nets.slot[n])
    path = np.full((len(chosen), count, longest), -1, np.int64)
    found = np.ones(len(chosen), np.int64)
    for i in range(len(chosen)):
        n = chosen[i]
        copy_to(path[i, 0], state.tree[nets.slot[n] : nets.slot[n] + state.size[n]])
    rest = state.load.copy()
    for _ in range(1, count):
        for link in range(len(rest)):
            state.load[link] = rest[link] * (1.0 + noise * (2.0 * uniform(rng) - 1.0))
        for i in range(len(chosen)):
            n = chosen[i]
            open_tree(nets, state, work, n)
            start_tree(nets, work, n)
            work.tick[1] += 1
            work.flow[nets.root[n]] = work.tick[1]
            f = nets.flows[n]
            if attach(nets, state, work, price, f, nets.legs[f]):
                new = path[i, found[i]]
                for k in range(1, work.cores[0]):
                    new[k - 1] = work.into[work.nodes[k]]
                known = False
                for k in range(found[i]):
                    known |= (path[i, k] == new).all()
                if known:
                    new[:] = -1
                else:
                    found[i] += 1
    copy_to(state.load, rest)
    return path, found
