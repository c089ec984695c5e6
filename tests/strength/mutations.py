"""How engines are weakened: text that is replaced, and the floor that must fail then."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """Replace ``old``, which occurs once in ``file`` (within the package), by ``new``; then ``test`` must fail.

    ``engine`` is the name in a registry, ``what`` the mutation in words.
    """

    engine: str
    what: str
    test: str
    file: str
    old: str
    new: str


_H, _S = "heuristics/mapping/", "solvers/mapping/"
_R, _P = "heuristics/routing/", "heuristics/pipeline/"
_MANY, _PLACE = "test_strength_many.py::test_", "test_strength_placement.py::test_"
_TRUE, _BOUND = "test_strength_true.py::test_", "test_strength_bounds.py::test_"
_ROUTE, _PIPE = "test_strength_routing.py::test_", "test_strength_pipeline.py::test_"

MUTATIONS = [
    Mutation("first-fit", "nodes by number", _MANY + "first_fit", _H + "first_fit.py",
             "if graph.one_row_per_node and not graph.on_disk:", "if False:"),
    Mutation("multilevel", "no coarsening", _MANY + "multilevel", _H + "multilevel/cycle.py",
             "while len(nets[-1].volume) > COARSEST * bench.usable:", "while False:"),
    Mutation("multilevel", "no V-cycles", _MANY + "multilevel_cycles", _H + "multilevel/mapper.py",
             "CYCLES = (0.74, 0.97)", "CYCLES = ()"),
    Mutation("external", "only the coarsest level is refined", _MANY + "external", _H + "external/search.py",
             "            anneal_level(here, s, number == last, begin",
             "            if number == last: anneal_level(here, s, number == last, begin"),
    Mutation("external", "levels of messages are not annealed", _MANY + "external_on_messages", _H + "external/nets_engine.py",
             "        anneal(sweeper, level.vertices.label, span, seconds, offer)\n", ""),
    Mutation("m2", "no forces", _MANY + "m2", _H + "published/m2/engine.py",
             "core = force_directed_refinement(groups, core, free.shape[1], ROUNDS, poll)", "pass"),
    Mutation("communities", "every node alone", _MANY + "communities", _H + "published/communities/louvain.py",
             "if not moved or len(used) == level.n:", "if True:"),
    Mutation("anneal", "first stage only", _PLACE + "anneal", _H + "placement/engine.py",
             "        axes = spectral_axes(self._search.data)\n", "        return\n"),
    Mutation("tabu", "tenure 0", _PLACE + "tabu", _H + "placement/tabu_kernel.py",
             "if made >= barred[seat[v]] or made >= until[v, here] or row[v] < goal:", "if True:"),
    Mutation("anneal", "large moves are never kept", _PLACE + "large_moves", _H + "placement/neighbourhoods.py",
             "        if change < 0:\n            self._keep(kind)", "        search.place(self._core)"),
    Mutation("simple-annealing", "never cools", _PLACE + "simple_annealing", _H + "published/prior_art/annealing.py",
             "            schedule[0] /= 1.0 + schedule[1] * schedule[0]\n", ""),
    Mutation("genetic", "no child is improved", _PLACE + "genetic", _H + "published/prior_art/genetic.py",
             "if uniform(self._rng) < IMPROVED:", "if False:"),
    Mutation("ant-colony", "ants are not improved", _PLACE + "ant_colony", _H + "published/prior_art/ant_colony.py",
             "            descend(self._a, ant, STEPS_PER_NODE * self._n, self._rng)\n", ""),
    Mutation("particle-swarm", "no pull to the best", _PLACE + "particle_swarm", _H + "published/prior_art/particle_swarm.py",
             "        _follow(self._a, particle, self.best, SWARM, self._rng)\n", ""),
    Mutation("nets", "no descent", _TRUE + "nets", _H + "nets/engine.py",
             "heat = hot * COOLING**cooled if cooled < 1.0 else 0.0", "heat = 1e9"),
    Mutation("links", "no descent", _TRUE + "links", _H + "links/engine.py",
             "heat = HOT * (COLD / HOT) ** cooled if cooled < 1.0 else 0.0", "heat = 1e9"),
    Mutation("reward", "no descent", _TRUE + "reward", _H + "reward/engine.py",
             "heat = typical * HOT * (COLD / HOT) ** cooled if cooled < 1.0 else 0.0", "heat = 1e9"),
    Mutation("remap", "first cooling only", _TRUE + "remap", _H + "remap/engine.py",
             "for share, hot, from_best in PLAN:", "for share, hot, from_best in PLAN[:1]:"),
    Mutation("cpsat-lns", "two nodes per repair", _TRUE + "cpsat_lns", _S + "cpsat_lns/engine.py",
             "FIRST, LEAST, MOST = 6, 3, 24", "FIRST, LEAST, MOST = 2, 2, 2"),
    Mutation("star", "10 % weaker", _BOUND + "star", _S + "bounds/neighbour_counting.py",
             "value = float((weight * near).sum()) / 2", "value = 0.9 * float((weight * near).sum()) / 2"),
    Mutation("star", "fan-out 10 % weaker", _BOUND + "fan_out", _S + "bounds/nets.py",
             "value = float(by_count[: used", "value = 0.9 * float(by_count[: used"),
    Mutation("gilmore-lawler", "10 % weaker", _BOUND + "gilmore_lawler", _S + "bounds/gilmore_lawler.py",
             "rounded = round_up(value,", "rounded = round_up(0.9 * value,"),
    Mutation("gilmore-lawler", "no prices", _BOUND + "gilmore_lawler_prices", _S + "bounds/gilmore_lawler.py",
             "dual = _dual_prices(cost, room, should_stop)", "dual = np.zeros(cost.shape[1])"),
    Mutation("projection", "not tuned", _BOUND + "projection", _S + "bounds/projection.py",
             "            self._shift = self._shift + length * self._direction\n", "            pass\n"),
    Mutation("split", "not tuned", _BOUND + "split", _S + "bounds/split/ascent.py",
             "        self.m += length * self.direction\n", ""),
    Mutation("subgraphs", "few steps", _BOUND + "subgraphs", _S + "bounds/subgraphs/bound.py",
             "STEPS_SMALL, STEPS, SMALL = 200, 60, 300", "STEPS_SMALL, STEPS, SMALL = 5, 5, 300"),
    Mutation("joint", "not tuned", _BOUND + "joint", _S + "bounds/ascent.py",
             "        self.shift = self.shift + length * self.direction\n", ""),
    Mutation("parts", "not tuned", _BOUND + "parts", _S + "bounds/ascent.py",
             "        self.shift = self.shift + length * self.direction\n", ""),
    Mutation("tree-parts", "pulls not tuned", _BOUND + "tree_parts", _S + "bounds/trees_parts.py",
             "        self.pull = np.maximum(self.pull + change, self.floor)\n", ""),
    Mutation("slots", "not tuned", _BOUND + "slots", _S + "bounds/split/ascent.py",
             "        self.m += length * self.direction\n", ""),
    Mutation("link-load", "all links only", _BOUND + "link_load", _S + "bounds/link_load.py",
             'SETS = ("columns", "rows", "all")', 'SETS = ("all",)'),
    Mutation("exchange", "counting only", _BOUND + "exchange", _S + "bounds/link_load.py",
             "for i, bounds in enumerate(rest):", "for i, bounds in enumerate(rest[:0]):"),
    Mutation("cover", "five rounds", _BOUND + "cover", _S + "bounds/core_traffic.py", "rounds: int = 2000", "rounds: int = 5"),
    Mutation("cover", "messages not touched yet cost nothing", _BOUND + "cover_pricing", _S + "bounds/core_traffic_kernel.py",
             "value += c.rate[m] / min(left, open_pins[m])", "value += 0.0"),
    Mutation("branch-bound", "no symmetries", _BOUND + "branch_bound", _S + "branch_bound/engine.py",
             "maps = maps if symmetry is None else symmetry.maps", "pass"),
    Mutation("named", "XY only", _ROUTE + "named", "solvers/routing/named.py",
             "rules: list[str | TurnSet] = [*ROUTES]", 'rules: list[str | TurnSet] = ["xy"]'),
    Mutation("reroute", "no sweeps within the order", _ROUTE + "reroute", _R + "engine.py",
             "        settle(search, context.should_stop)\n", ""),
    Mutation("column-lns", "two flows per repair", _ROUTE + "column_lns", "solvers/routing/column_lns.py",
             "= 40, 10, 200, 16, 0.15", "= 2, 2, 2, 16, 0.15"),
    Mutation("flow-lp", "equal lengths", _ROUTE + "flow_lp", "solvers/routing/lp.py",
             "length = np.ceil(weight * scale).astype(np.int64)", "length = np.where(weight > 0, UNIT, 0)"),
    Mutation("price-bound", "lengths not tuned", _ROUTE + "price_bound", "solvers/routing/flow_bound.py",
             "if square <= 0.0 or target <= value:", "if True:"),
    Mutation("chain", "groups of one core", _PIPE + "chain", _P + "chain.py",
             "problem.ticks.time[:, : problem.largest_group])", "problem.ticks.time[:, :1])"),
    Mutation("pipeline-counting", "no company", _PIPE + "counting", "solvers/pipeline/bounds.py",
             "    if not small.overlap and small.count <= MOST:", "    if False:"),
    Mutation("downsets", "one order", _PIPE + "downsets", _P + "downsets.py",
             "            if self.proved < self.high:\n", "            if False:\n"),
    Mutation("pipeline-local", "nothing worse is taken", _PIPE + "pipeline_local", _P + "local.py",
             "HOT, COLD = 0.6, 0.0005", "HOT, COLD = 1e-9, 1e-10"),
    Mutation("orders", "first generation only", _PIPE + "orders", _P + "orders.py",
             "while idle < IDLE and not self.context.should_stop():", "while False:"),
    Mutation("groups-local", "one action at a time", _PIPE + "groups_local", _P + "local.py",
             "while taken == 0 or rng.random() < 0.5:", "while taken == 0:"),
    Mutation("resplit", "slowest stage left out", _PIPE + "resplit", "solvers/pipeline/resplit.py",
             "return np.append(others, worst).astype(np.int64)", "return others.astype(np.int64)"),
    Mutation("cover", "prices of the first question", _PIPE + "cover", "solvers/pipeline/cover_engine.py",
             "mixed = share * self.center + (1 - share) * prices / prices.sum()", "mixed = self.center"),
]  # fmt: skip
