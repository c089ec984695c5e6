"""Annealing by kinds of moves: every kind keeps the rules and counts right; the choice depends on the seed only."""

import re

import numpy as np
import pytest

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.placement.data import placement_data
from nmsolve.heuristics.mapping.placement.directed import ARMS, BORDER, DIRECTED_STATS, WINDOW
from nmsolve.heuristics.mapping.placement.local_search import DirectSearch, TableSearch, search_cost
from nmsolve.heuristics.mapping.placement.moves import CLUSTER, FLOOR, Moves, clusters, new_aims
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import solve

ONE = {"neurons": 1}
BOARDS = {
    "mesh": Machine("mesh", (1, 1), (4, 6), capacity=ONE),
    "torus": Machine("torus", (1, 1), (4, 6), torus=True, capacity=ONE),
    "chips": Machine("chips", (2, 2), (2, 3), capacity=ONE, crossing_weight=5.0),
    "faulty": Machine("faulty", (2, 2), (2, 3), capacity=ONE, crossing_weight=5.0, faulty_cores=(3,)),
}
CONSTRAINTS = (
    SideConstraint("pin", "pin", (0,), (5,)),
    SideConstraint("left", "region", (1, 2, 3), (0, 1, 6, 7, 12, 13)),
    SideConstraint("not here", "forbid", (4, 5), (2, 8, 14, 20)),
)


def problem(board, n=19, constraints=()):
    """A random directed graph with whole weights, node 18 without neighbours."""
    rng = np.random.default_rng(1)
    ends = rng.integers(0, n - 1, (2, 3 * n))
    graph = LogicGraph.from_edges(n, ends[0], ends[1], rng.integers(1, 20, 3 * n).astype(float))
    return MappingProblem(graph, BOARDS[board], constraints=constraints)


def placed(kind, p, wanted, learns=False, seed=5):
    """A search of this class on ``p`` that draws from the kinds ``wanted``."""
    search = kind(placement_data(p), seed)
    search.moves = Moves(search.data, wanted, learns, seed)
    search.place(first_fit(p, 0))
    return search


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("kind", [TableSearch, DirectSearch])
@pytest.mark.parametrize("board", BOARDS)
def test_every_kind_keeps_the_rules_and_counts_right(arm, kind, board):
    for constraints in ((), CONSTRAINTS):
        p = problem(board, constraints=constraints)
        search = placed(kind, p, (arm,))
        if kind is DirectSearch and not search.data.separable:
            continue
        for temperature, reach in ((1e9, 9), (300.0, 9), (30.0, 2), (3.0, 1)):
            before = search_cost(search)
            stats = search.anneal(3000, temperature, reach)
            assert check_mapping(p, search.core()) == []
            assert search_cost(search) == pytest.approx(before + stats[3], rel=1e-5)
        drawn = arm if arm != ARMS[BORDER] or len(search.moves.aims.borders) else ARMS[WINDOW]
        row = search.moves.tally[ARMS.index(drawn)]
        assert row[0] == search.moves.tally[:, 0].sum() >= 12000 and row[1] > 0 and row[6] > 0


@pytest.mark.parametrize("kind", [TableSearch, DirectSearch])
def test_the_seed_decides(kind):
    def run(seed):
        search = placed(kind, problem("chips"), ARMS, learns=True, seed=seed)
        for _ in range(5):
            search.anneal(2000, 30.0, 3)
        return search.core().tolist(), search.work, search.moves.summary()

    assert run(3) == run(3)
    assert run(3)[0] != run(4)[0]


def test_the_bandit_draws_what_pays_and_every_kind_sometimes():
    search = placed(TableSearch, problem("chips"), ARMS, learns=True)
    for _ in range(10):
        search.anneal(4000, 3.0, 3)
    assert (search.moves.tally[:, 0] > 0).all()
    stats, work = np.ones((len(ARMS), DIRECTED_STATS)), np.full(len(ARMS), 1e6)
    work[0] = 1e4  # a hundred times the gain for its work
    for _ in range(60):
        search.moves.learn(stats, work)
    share = np.diff(search.moves.ends(), prepend=0.0)
    assert share.min() >= FLOOR - 1e-12 and share[0] > 0.7
    assert "uniform" in search.moves.summary()


def test_moves_over_borders_stay_near_them():
    """Columns 0 and 5 are two lines from a border of columns, and the board has no border of rows."""
    machine = Machine("chips", (1, 2), (4, 6), capacity=ONE, crossing_weight=5.0)
    p = MappingProblem(problem("mesh").graph, machine)
    search = placed(TableSearch, p, ("border",))
    assert search.moves.aims.borders.tolist() == [[0, 5]]
    before = search.core()
    search.anneal(20000, 1e12, 9)
    moved = before != search.core()
    columns = np.r_[before[moved] % 12, search.core()[moved] % 12]
    assert set(columns.tolist()) == {4, 5, 6, 7}


def test_a_node_goes_to_its_neighbours():
    """Node 0 sits in a corner, its three neighbours in the other; a window of one line takes long to bring them together."""
    graph = LogicGraph.from_edges(4, [0, 0, 0], [1, 2, 3], [10.0, 10.0, 10.0])
    p = MappingProblem(graph, Machine("mesh", (1, 1), (30, 30), capacity=ONE))
    core = np.array([0, 899, 898, 869])
    for arm, wins in (("centroid", True), ("neighbour", True), ("window", False)):
        search = placed(DirectSearch, p, (arm,))
        search.place(core)
        search.anneal(64, 1e-9, 1)
        cost = search_cost(search)
        assert cost < 300 if wins else cost > 1000, (arm, cost)


def test_clusters_are_joined_by_the_heaviest_traffic():
    rng = np.random.default_rng(2)
    pairs = [(8 * k + i, 8 * k + j, 20) for k in range(6) for i in range(8) for j in range(i)]
    pairs += [(8 * k, 8 * k + 8, 1) for k in range(5)]
    source, target, weight = np.array(pairs).T
    order = rng.permutation(48)
    graph = LogicGraph.from_edges(48, order[source], order[target], weight.astype(float))
    data = placement_data(MappingProblem(graph, Machine("mesh", (1, 1), (7, 7), capacity=ONE)))
    group = clusters(data)
    assert np.bincount(group).max() <= CLUSTER
    inside = group[order[source]] == group[order[target]]
    assert inside[weight == 1].sum() == 0 and inside[weight == 20].mean() > 0.3
    aims = new_aims(data)
    for u in range(48):
        mates = aims.members[aims.first[aims.group[u]] : aims.first[aims.group[u] + 1]]
        assert sorted(mates) == np.flatnonzero(group == group[u]).tolist()


def test_the_events_say_what_every_kind_did():
    """The engine's last note has the share, the accepted moves and the gain of every kind."""
    p = MappingProblem(problem("mesh").graph, BOARDS["chips"])
    result = solve(p, time_limit=0.3, engines=["anneal-arms"], seed=1)
    (note,) = [
        e.text for e in result.events if e.kind == "note" and e.engine == "anneal-arms" and "arms (" in e.text
    ]
    shares = [float(share) for share in re.findall(r"[a-z]+ ([\d.e+-]+)%/\d+/[\d.e+]+", note)]
    assert len(shares) == len(ARMS) and sum(shares) == pytest.approx(100, abs=1.0)
