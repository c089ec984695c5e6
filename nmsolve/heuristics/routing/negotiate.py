"""Routes and an order of channels by negotiation.

All nets are first routed as if no deadlock were possible. Then routes and the order of channels are adapted to each
other in rounds: the order keeps the dependencies that most messages make, as far as no cycle closes (:mod:`.order`);
routes pay for those that it does not keep, more from round to round. A dependency that stays in use although the order is
against it gains weight until the order gives way, as congested wires do in negotiated routing (McMurchie and Ebeling
1995, PathFinder). Once no route goes against the order, its places are a numbering that proves the routes free of
deadlock; sweeps within the order follow. Where routes and order do not come together, the order is drawn more and
more towards one that is known to have legal routes for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.rng import new_rng, shuffle
from nmsolve.heuristics.routing.nets import Nets
from nmsolve.heuristics.routing.prices import Price
from nmsolve.heuristics.routing.sweeps import against, recount, sweep
from nmsolve.heuristics.routing.trees import Open, RoutingState, new_open, new_state
from nmsolve.hw.routing.growing_order import Order, new_order, rebuild
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray

#: Exponents k of the load, 2^k, while routing freely, while negotiating, and in the end.
FREE, MIDDLE, SHARP = (3, 3, 4, 5, 6, 7), 6, 7
#: Rounds with a growing price for going against the order, and most rounds with growing weights after them.
GROWING, LASTING = 100, 300
#: First and last price while it grows, in units of what a mean flow pays on a link with the largest load.
CHEAP, DEAR = 1e-4, 2.4
#: What a dependency against the order gains in a round (times its messages), and the factor of the price in the last round:
#: for single routes, and for multicast trees, which depend on each other in more ways.
SINGLE, TREES = (0.7, 4.0), (0.1, 100.0)
#: What is left of the gains in the next round, and their growth.
DECAY, GROWTH = 0.95, 1.01
#: Weight of the known order in the first and the last of the lasting rounds, times the messages of a mean dependency.
DRAWN = (0.02, 5.0)
#: Sweeps within the order, and how many of them in a row without progress.
WITHIN, PATIENCE = 60, 12


@dataclass
class Negotiation:
    """Nets, their trees, the order of channels, and which dependencies must be in it whatever the routes (``required``).

    ``plain``, ``ceiling``: as in :class:`.prices.Price`; a ceiling also is the load that links are scaled by.
    """

    nets: Nets
    state: RoutingState
    work: Open
    order: Order
    required: BoolArray
    rng: AnyArray
    plain: float = 0.0
    ceiling: float = np.inf

    @property
    def dust(self) -> float:
        """Messages per step that are rounding."""
        return 1e-9 * float(self.nets.rate.max(initial=0.0))

    @property
    def hottest(self) -> float:
        """Largest load of a link."""
        return float(self.state.load.max())


def new_search(
    nets: Nets, required: BoolArray, seed: int, plain: float = 0.0, ceiling: float = np.inf
) -> Negotiation:
    """Return a search with nothing routed and channels in random order; ``required`` (C, ways) must be without cycles."""
    rng = new_rng(seed)
    rank = np.arange(len(nets.lead))
    shuffle(rng, rank)
    state = new_state(nets, rank)
    return Negotiation(
        nets, state, new_open(nets), new_order(rank, nets.ok.shape), required, rng, plain, ceiling
    )


def negotiate(search: Negotiation, stop: Callable[[], bool], known: IntArray | None = None) -> bool:
    """Route all nets and find an order that no route goes against; False if it was not found, or ``stop`` said so.

    ``known`` (C,) are places of channels in an order with legal routes. Nets that have no route within the turns given stay
    without one, and False is returned.
    """
    nets, state = search.nets, search.state
    if not route_freely(search, stop):
        return False
    gain, last = TREES if len(nets.target) > len(nets.flow) else SINGLE
    gained = np.zeros(nets.ok.shape)
    drawn = np.zeros(nets.ok.shape) if known is None else agrees(nets, known)
    for i in range(GROWING + LASTING):
        late = max(0, i - GROWING) / LASTING
        taken = state.use[state.use > search.dust]
        pull = float(taken.mean() if taken.size else 0.0) * DRAWN[0] * (DRAWN[1] / DRAWN[0]) ** late
        reorder(search, state.use + gained + (pull * drawn if late else 0.0))
        _sweep(search, MIDDLE, CHEAP * (DEAR / CHEAP) ** min(1.0, i / GROWING) * last**late)
        if not against(nets, state, search.dust) and not _too_full(search):
            return True
        if late:
            lost = (state.use > search.dust) & ~search.order.on
            more = gain * GROWTH ** (late * LASTING) * np.maximum(state.use, nets.rate.mean())
            gained = DECAY * gained + np.where(lost, more, 0.0)
        if stop():
            return False
    return False


def route_freely(search: Negotiation, stop: Callable[[], bool]) -> bool:
    """Route all nets as if no deadlock were possible; False if some have no route, or ``stop`` said so."""
    return not any(_sweep(search, k, 0.0) or stop() for k in FREE)


def agrees(nets: Nets, places: IntArray) -> FloatArray:
    """Return (C, ways) 1.0 for the dependencies along which ``places`` (C,) of channels grow, else 0.0."""
    c, j = np.nonzero(nets.ok)
    out = np.zeros(nets.ok.shape)
    out[c, j] = places[c] < places[nets.lead[c] * nets.ways + j]
    return out


def settle(search: Negotiation, stop: Callable[[], bool]) -> None:
    """Sweep within the order; what it keeps beyond the dependencies in use is drawn again every time.

    The trees and the order of the least largest load (plus ``plain`` times the sum) remain.
    """
    state, best, idle = search.state, (np.inf, 0.0), 0
    kept: tuple[IntArray, ...] = ()
    for _ in range(WITHIN):
        value = (max(0.0, search.hottest - search.ceiling), search.hottest + search.plain * state.load.sum())
        if value < best:
            best, idle = value, 0
            kept = (state.tree.copy(), state.size.copy(), state.rank.copy(), search.order.at.copy())
        else:
            idle += 1
        if idle >= PATIENCE or stop():
            break
        reorder(search, np.where(state.use > search.dust, np.inf, 0.0))
        _sweep(search, SHARP, -1.0)
    for array, old in zip((state.tree, state.size, state.rank, search.order.at), kept, strict=True):
        array[:] = old
    recount(search.nets, state, search.work)


def _sweep(search: Negotiation, power: int, part: float) -> int:
    """One sweep in random order; ``part`` of a hottest link for going against the order, or never if negative."""
    order = np.arange(len(search.nets.root))
    shuffle(search.rng, order)
    price = price_now(search, power, part)
    missing: int = sweep(search.nets, search.state, search.work, price, order, search.rng)
    if (search.nets.rate != np.rint(search.nets.rate)).any():
        recount(search.nets, search.state, search.work)
    return missing


def price_now(search: Negotiation, power: int, part: float) -> Price:
    """Return prices by the load that the hottest link has now, or by the ceiling."""
    rate = float(search.nets.rate.mean())
    scale = max(search.hottest, rate) if np.isinf(search.ceiling) else search.ceiling
    hot = 2.0**power * rate / scale
    plain = search.plain * hot / rate
    return Price(scale, power, plain, search.ceiling, 4.0 * hot / rate, part * hot, 2.0 * hot)


def reorder(search: Negotiation, wish: FloatArray) -> None:
    """Keep the dependencies of greatest ``wish`` (C, ways), ties at random; required ones always."""
    nets = search.nets
    ties = 1e-3 * float(nets.rate.mean()) * np.random.default_rng(int(search.rng[0])).random(nets.ok.shape)
    weights = np.where(nets.ok, wish + ties, -1.0)
    weights[search.required] = np.inf
    rebuild(search.order, weights, nets.lead, nets.enter, nets.ways)


def _too_full(search: Negotiation) -> bool:
    """Return True if a core has more table entries than room."""
    return search.nets.entries >= 0 and int(search.state.entries.max(initial=0)) > search.nets.entries
