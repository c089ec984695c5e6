"""Engine ``column-lns``: some flows are taken off the machine and led back in together, by an exact choice among paths.

The paths are within one order of channels that keeps every dependency of the routes, so that any choice is free of deadlock; what
the order keeps beyond them is drawn again for every repair. The choice minimises what links carry above the largest load that
would be an improvement; as long as that is not zero, equally good choices change the routes all the same.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.bandit import Bandit
from nmsolve.heuristics.rng import new_rng, uniform
from nmsolve.heuristics.routing.engine import required_pairs, solution
from nmsolve.heuristics.routing.negotiate import SHARP, Negotiation, new_search, price_now, reorder
from nmsolve.heuristics.routing.nets import Nets, nets_of
from nmsolve.heuristics.routing.paths import attach
from nmsolve.heuristics.routing.prices import Price
from nmsolve.heuristics.routing.sweeps import recount
from nmsolve.heuristics.routing.trees import Open, RoutingState, open_tree, start_tree
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel
from nmsolve.model.engine import Context
from nmsolve.model.routing.features import takes
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import AnyArray, FloatArray, IntArray
from nmsolve.solvers.search.cpsat import new_solver


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


#: Flows set free at first, at least and at most; paths per flow; how much loads vary while they are looked for.
FIRST, LEAST, MOST, PATHS, NOISE = 40, 10, 200, 16, 0.15
#: Most seconds for one repair; one that ends within the second number makes the next ones larger.
REPAIR, EASY = 2.0, 0.3
#: Ways to choose the flows: over one of the hottest links, through cores near each other, anywhere.
KINDS = ("hot", "near", "anywhere")
#: Links this close to the largest load are hot; repairs between two lines in the events.
HOT, REPORT = 0.97, 50
#: Rates that are not whole become whole numbers: the largest load in such units. Least improvement, as part of the load.
UNITS, STEP = 10**6, 1e-4


class ColumnLns:
    """Improve routes of single flows by exact repairs of some of them; no bounds."""

    name = "column-lns"
    finds = "mappings"
    refuses = takes("+load -ceilings -trees -tables")

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Repair until told to stop or the bound is met."""
        best, value = context.incumbent()
        if best is None or not stage.problem.flows.count:
            return
        repairs, count = _Repairs(stage, context, best), 0
        while not context.should_stop() and value > context.bound() * (1 + 1e-12):
            if repairs.once() and repairs.search.hottest < value:
                context.offer(solution(stage, repairs.search), "columns")
                value = repairs.search.hottest
            count += 1
            if count % REPORT == 0:
                context.note(repairs.bandit.summary())


class _Repairs:
    """The current routes, and how the next flows are chosen."""

    def __init__(self, stage: RoutingStage, context: Context, start: IntArray) -> None:
        self._problem, self._context = stage.problem, context
        self._rng, self._draws = np.random.default_rng([context.seed, 7]), new_rng(context.seed, 7)
        nets = nets_of(stage)
        self.search = new_search(nets, required_pairs(stage.problem, nets.ok.shape), context.seed)
        load_solution(self.search, start)
        self._size = FIRST
        self.bandit = Bandit(KINDS, context.seed)

    def once(self) -> bool:
        """Free some flows, choose paths for them; True if the routes changed."""
        search = self.search
        nets, state = search.nets, search.state
        goal, units = self._goal(), self._units()  # of the loads with all flows
        before = float(np.maximum(0.0, state.load - goal).sum())
        kind = self.bandit.choose()
        chosen = self._chosen(KINDS[kind])
        reorder(search, np.where(state.use > search.dust, np.inf, 0.0))
        price = price_now(search, SHARP, -1.0)
        for n in chosen.tolist():
            state.load[nets.link[self._path(n)]] -= nets.rate[n]
        rest = state.load.copy()
        path, found = path_columns(nets, state, search.work, price, chosen, PATHS, NOISE, self._draws)
        links = np.where(path >= 0, nets.link[path], -1)
        picked, seconds, done = choose(
            rest, links, found, nets.rate[chosen], goal, units, self._limit(), self._seed()
        )
        changed = picked is not None
        if picked is not None:
            for i, n in enumerate(chosen.tolist()):
                new = path[i, picked[i]]
                new = new[new >= 0]
                state.tree[nets.slot[n] : nets.slot[n] + len(new)] = new
                state.size[n] = len(new)
        recount(nets, state, search.work)
        after = float(np.maximum(0.0, state.load - goal).sum())
        self.bandit.learn(kind, max(0.0, before - after), max(1e-3, seconds))
        self._size = max(LEAST, self._size - 5) if not done else self._size
        self._size = min(MOST, self._size + 5) if done and seconds < EASY else self._size
        return changed

    def _goal(self) -> float:
        """Return the largest load that would be an improvement."""
        hottest = self.search.hottest
        return hottest - 1.0 if self._problem.integral else hottest * (1.0 - STEP)

    def _units(self) -> float:
        return 1.0 if self._problem.integral else UNITS / self.search.hottest

    def _limit(self) -> float:
        return min(REPAIR, max(0.05, self._context.time_left()))

    def _seed(self) -> int:
        return int(self._rng.integers(2**31))

    def _path(self, n: int) -> IntArray:
        first = int(self.search.nets.slot[n])
        return self.search.state.tree[first : first + int(self.search.state.size[n])]

    def _chosen(self, kind: str) -> IntArray:
        """Return numbers of flows, rising."""
        nets, state = self.search.nets, self.search.state
        size = min(self._size, len(nets.root))
        if kind == "anywhere":
            return np.sort(self._rng.choice(len(nets.root), size, replace=False))
        wanted = np.zeros(len(state.load), bool)
        if kind == "hot":
            hot = np.flatnonzero(state.load >= HOT * self.search.hottest)
            wanted[self._rng.choice(hot)] = True
        else:
            core = int(self._rng.integers(len(state.load) // 4))
            for c in range(nets.ways * core, nets.ways * (core + 1)):
                wanted[nets.link[c]] = True
                if nets.lead[c] >= 0:
                    wanted[4 * nets.lead[c] : 4 * nets.lead[c] + 4] = True
        touch = np.zeros(len(nets.root), bool)
        net = np.repeat(np.arange(len(nets.root)), state.size)
        place = (
            np.arange(len(net)) - np.repeat(np.cumsum(state.size) - state.size, state.size) + nets.slot[net]
        )
        touch[net[wanted[nets.link[state.tree[place]]]]] = True
        some = self._rng.permutation(np.flatnonzero(touch))[:size]
        others = self._rng.permutation(np.flatnonzero(~touch))[: size - len(some)]
        return np.sort(np.concatenate([some, others]))


def load_solution(search: Negotiation, start: IntArray) -> None:
    """Take routes and order of the solution ``start`` (slots + channels,) over.

    Flows of a problem of form ``flow`` have the same slots there.
    """
    nets, state = search.nets, search.state
    split = int(nets.slot[-1])
    state.tree[:] = start[:split]
    taken = np.concatenate([[0], np.cumsum(start[:split] >= 0)])
    state.size[:] = taken[nets.slot[1:]] - taken[nets.slot[:-1]]
    state.rank[np.argsort(start[split:], kind="stable")] = np.arange(len(state.rank))
    search.order.at[state.rank] = np.arange(len(state.rank))
    recount(nets, state, search.work)


def choose(
    rest: FloatArray, links: IntArray, found: IntArray, rate: FloatArray, goal: float, units: float, seconds: float, seed: int
) -> tuple[IntArray | None, float, bool]:  # fmt: skip
    """One path for every flow so that links carry as little above ``goal`` as can be; None where nothing is as good as before.

    ``rest`` (4 * P,) loads without the flows, ``links`` (n, paths, longest) links of their paths (-1: none), the first one of
    each is what it has now; ``units`` per unit of load in the model. Also the seconds it took, and whether it is optimal.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    pick = [[model.new_bool_var("") for _ in range(int(k))] for k in found]
    whole = np.rint(rate * units).astype(np.int64)
    terms: dict[int, list[object]] = {}
    for i, some in enumerate(pick):
        model.add_exactly_one(some)
        for k, x in enumerate(some):
            model.add_hint(x, k == 0)
            for link in links[i, k][links[i, k] >= 0].tolist():
                terms.setdefault(link, []).append(int(whole[i]) * x)
    over = []
    for link, some in terms.items():
        room = int(np.floor((goal - rest[link]) * units + 1e-6))
        excess = model.new_int_var(0, int(whole.sum()) + max(0, -room), "")
        model.add(sum(some) <= room + excess)  # type: ignore[arg-type,operator]
        over.append(excess)
    model.minimize(sum(over))
    solver = new_solver(seconds, seed=seed)
    status = solver.solve(model)
    done = status == cp_model.OPTIMAL
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, solver.wall_time, False
    out = np.array([next(k for k, x in enumerate(some) if solver.boolean_value(x)) for some in pick])
    return out, solver.wall_time, done
