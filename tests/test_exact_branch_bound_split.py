"""The split bound at partial mappings: below every mapping it bounds, and its best-first search ends at the optimum."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from exact_support import Recorder, optimum, random_graph, small_problem

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.recheck import certificates_to_json
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.branch_bound import BranchBound, best_first, engine
from nmsolve.solvers.mapping.branch_bound.ascent import ascend
from nmsolve.solvers.mapping.branch_bound.relaxation import SIZE, new_relaxation
from nmsolve.solvers.mapping.branch_bound.search import new_tree, representatives
from nmsolve.solvers.mapping.exact.data import exact_data


def _distances(rng: np.random.Generator, cores: int) -> np.ndarray:
    """A mesh, a ring, a mesh with a dear crossing, or any symmetric matrix."""
    place = np.arange(cores)
    row, col = np.divmod(place, (cores + 1) // 2)
    kind = rng.integers(4)
    if kind == 1:
        away = np.abs(place[:, None] - place)
        return np.minimum(away, cores - away)
    if kind == 3:
        any_d = np.triu(rng.integers(0, 9, (cores, cores)), 1)
        return any_d + any_d.T
    wide = 1 if kind == 0 else 3
    return wide * np.abs(row[:, None] - row) + np.abs(col[:, None] - col)


@pytest.fixture
def only_best_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every partial mapping of three open nodes or more is split, and no depth-first search ends anything else."""
    monkeypatch.setattr(engine, "ALONE_EASY", 1)
    monkeypatch.setattr(engine, "_SLICE", 1)
    monkeypatch.setattr(best_first, "SMALL", 2)
    monkeypatch.setattr(best_first, "PROBE", 1)


@pytest.mark.parametrize("seed", range(60))
def test_bound_is_below_every_completion(seed: int) -> None:
    """For random partial mappings, domains and multipliers: bound and reduced costs against every completion."""
    rng = np.random.default_rng(seed)
    cores = int(rng.integers(4, 8))
    n = int(rng.integers(3, min(cores, 6) + 1))
    w = np.triu(rng.integers(0, 9, (n, n)) * (rng.random((n, n)) < 0.7), 1)
    w, d = w + w.T, _distances(rng, cores)
    allowed = rng.random((n, cores)) < 0.85
    core, used = np.full(n, -1), np.zeros(cores, np.int64)
    for u in rng.permutation(n)[: rng.integers(0, n - 1)]:
        core[u] = rng.choice(np.flatnonzero(used == 0))
        used[core[u]] = 1
    x = new_relaxation(w, d, np.arange(cores))
    ascend(
        x, np.full(n, -1), np.zeros(cores, np.int64), np.ones((n, cores), bool), 1, 1e3, 5
    )  # leaves its traces
    if seed % 3 == 0:
        s, k = rng.normal(size=(2, n, n))
        x.spectral[0], x.skew[0] = s + s.T, k - k.T
        x.row[0] = rng.random(x.row[0].shape) * (rng.random(x.row[0].shape) < 0.3)
    nodes, free = np.flatnonzero(core < 0), np.flatnonzero(used == 0)
    costs: dict[tuple[int, int], float] = {}
    for rest in itertools.permutations(free.tolist(), len(nodes)):
        if not all(allowed[u, p] for u, p in zip(nodes, rest, strict=True)):
            continue
        full = core.copy()
        full[nodes] = rest
        cost = float((w * d[np.ix_(full, full)]).sum())
        for i, p in enumerate(rest):
            costs[i, p] = min(costs.get((i, p), np.inf), cost)
    best = min(costs.values(), default=np.inf)
    target = (best if np.isfinite(best) else 100.0) / x.unit
    for most in (1, 40):
        low = ascend(x, core, used, allowed, 0, target * 1.2 + 1, most)
        margin = 1e-10 * x.scalar[SIZE]
        if low == np.inf:
            assert best == np.inf
            return
        assert (low - margin) * x.unit <= best + 1e-9 * abs(best)
        for i in range(len(nodes)):
            for q, p in enumerate(free.tolist()):
                child = (low + x.reduced[i, q] - margin) * x.unit
                assert child <= costs.get((i, p), np.inf) + 1e-9 * abs(child)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "kind", ["mesh", "spare-cores", "torus", "faults", "dead-link", "matrix", "energy", "constraints"]
)
@pytest.mark.usefixtures("only_best_first")
def test_best_first_agrees_with_trying_every_mapping(kind: str, seed: int) -> None:
    """With the split bound forced on every partial mapping of three open nodes or more."""
    problem = replace(small_problem(kind, seed), node_limit=1)
    best = optimum(problem)
    context = Recorder(problem)
    seen: list[float] = []

    def watch(bound: Bound) -> bool:
        seen.append(bound.value)
        return Recorder.raise_bound(context, bound)

    context.raise_bound = watch  # type: ignore[method-assign]
    BranchBound().run(problem, context)
    assert context.value == (pytest.approx(best, rel=1e-12) if np.isfinite(best) else np.inf)
    assert context.low == (pytest.approx(best, rel=1e-5) if np.isfinite(best) else np.inf)
    assert max(seen) <= best * (1 + 1e-12) and context.bounds[-1].certificate["status"] != "running"


def test_bound_rises_best_first_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 11 dense nodes the bound never falls; with no room for open mappings the search still ends at the optimum."""
    graph = random_graph(np.random.default_rng(8), 11)
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 4)), node_limit=1)
    plain = Recorder(problem)
    BranchBound().run(problem, plain)
    monkeypatch.setattr(engine, "ALONE_EASY", 10)
    monkeypatch.setattr(engine, "_SLICE", 1)
    monkeypatch.setattr(engine, "PAUSE", 0.0)
    for most in (400_000, 3):
        monkeypatch.setattr(best_first, "MOST_OPEN", most)
        context = Recorder(problem, start=plain.best)
        BranchBound().run(problem, context)
        values = [b.value for b in context.bounds[1:]]
        assert values == sorted(values) and context.low == plain.value
        assert len(values) > 2


class Stopping(Recorder):
    """Stops after this many questions whether to."""

    asked = 0

    def __init__(
        self, problem: MappingProblem, start: np.ndarray | None, asks: float, workers: int = 1
    ) -> None:
        super().__init__(problem, start)
        self.asks, self._workers = asks, workers

    @property
    def workers(self) -> int:
        return self._workers

    def should_stop(self) -> bool:
        self.asked += 1
        return self.asked > self.asks


def written(problem: MappingProblem, bound: Bound) -> Bound:
    """The claim as a run's folder keeps it."""
    return certificates_from_json(certificates_to_json(problem, [bound]))[0]


BOARDS = {
    "mesh": Machine("m", (1, 1), (3, 4)),
    "torus": Machine("m", (1, 1), (3, 4), torus=True),
    "fault": Machine("m", (1, 1), (3, 4), faulty_cores=(5,)),
    "full": Machine("m", (1, 1), (3, 3)),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("board", "asks"), [("mesh", 60), ("torus", 8), ("fault", 90), ("full", 6)])
def test_a_stopped_search_goes_on_where_it_was(
    board: str, asks: int, workers: int, request: pytest.FixtureRequest
) -> None:
    """In stretches of a few partial mappings it ends at the optimum; the bound never falls, and work done is not done again."""
    problem = MappingProblem(random_graph(np.random.default_rng(8), 9), BOARDS[board], node_limit=1)
    whole = Stopping(problem, None, np.inf)
    BranchBound().run(problem, whole)
    request.getfixturevalue("only_best_first")
    at_once = Stopping(problem, whole.best, np.inf)
    BranchBound().run(problem, at_once)
    claims: list[Bound] = []
    while not claims or claims[-1].certificate["status"] == "running":
        context, one = Stopping(problem, whole.best, asks, workers), BranchBound()
        if claims:
            one.resume(claims[-1])
        one.run(problem, context)
        claims.append(written(problem, context.bounds[-1]))
        assert len(claims) < 300
    values, nodes = [c.value for c in claims], [c.certificate["nodes"] for c in claims]
    assert claims[-1].certificate["status"] == "optimal" and claims[-1].value == whole.value
    assert values == sorted(values) and (workers > 1 or len(claims) > 3)  # threads may be quicker
    assert [c.certificate.get("resumed_after", 0) for c in claims] == [0, *nodes[:-1]]
    # every stretch bounds the first partial mapping again, and begins with its multipliers
    assert nodes[-1] < 4 * at_once.bounds[-1].certificate["nodes"]


def stopped(board: str, asks: int) -> tuple[MappingProblem, Stopping, Bound]:
    """Nine dense nodes, a search that ended, and the claim of one that was stopped."""
    problem = MappingProblem(random_graph(np.random.default_rng(8), 9), BOARDS[board], node_limit=1)
    whole = Stopping(problem, None, np.inf)
    BranchBound().run(problem, whole)
    cut_off = Stopping(problem, whole.best, asks)
    BranchBound().run(problem, cut_off)
    return problem, whole, cut_off.bounds[-1]


@pytest.mark.usefixtures("only_best_first")
def test_a_run_that_knows_the_claim_goes_on_from_it() -> None:
    """As ``nmsolve resume`` does: the partial mappings that were bounded before count in the last claim."""
    problem, whole, claim = stopped("full", 6)
    known = replace(claim, certificate={**claim.certificate, "nodes": 10**6})
    result = solve(problem, warm_start=whole.best, engines=["branch-bound"], known=[known], time_limit=60)
    assert result.status == "optimal" and result.objective == whole.value
    assert [b.certificate["nodes"] > 10**6 for b in result.bounds] == [True]


@pytest.mark.usefixtures("only_best_first")
def test_what_is_no_list_of_open_mappings_is_not_gone_on_from() -> None:
    """Wrong shapes, cores, numbers and limits: the search begins anew. A list that fits is taken at its word."""
    problem, whole, good = stopped("mesh", 8)
    assert good.certificate["status"] == "running" and len(good.certificate["open"]) > 1

    def nodes(**change: object) -> int:
        context, one = Stopping(problem, whole.best, np.inf), BranchBound()
        one.resume(replace(good, certificate={**good.certificate, **change}))
        one.run(problem, context)
        assert context.low == whole.value
        return int(context.bounds[-1].certificate["nodes"])

    core = np.array(good.certificate["open"])
    anew = nodes(open=None)
    twice, high = core.copy(), core.copy()
    twice[:, :2], high[0, 0] = 0, problem.cores
    shapes = (core[:, :-1], core[:-1], core[:0], [[1], [1, 2]], "open")
    for wrong in (*shapes, twice, high, core + 0.5, core - 2, [[10**400] * 9], core * np.nan):
        assert nodes(open=wrong) == anew
    for limit in (good.certificate["limit"] - 1, float("nan"), 10**400, [1, 2], "x"):
        assert nodes(limit=limit) == anew
    assert nodes(nodes=-1) == nodes(limit=[good.certificate["limit"]], nodes=[1]) == anew
    assert nodes(nodes=10**6) > 10**6


def test_representatives_shrink_with_the_symmetries_left() -> None:
    """A free 3x3 board has three kinds of cores; with the corner taken the diagonal mirror is left; then nothing."""
    row, col = np.divmod(np.arange(9), 3)
    maps = [a * 3 + b for r in (row, 2 - row) for c in (col, 2 - col) for a, b in ((r, c), (c, r))]
    d = np.abs(row[:, None] - row) + np.abs(col[:, None] - col)
    tree = new_tree(np.triu(np.ones((9, 9), np.int64), 1), d, np.ones((9, 9), bool), np.array(maps), 10**6, 1)
    free = np.arange(9)
    assert np.flatnonzero(representatives(tree, 0, free)).tolist() == [0, 1, 4]
    tree.used[0] = 1
    assert free[1:][representatives(tree, 1, free[1:])].tolist() == [1, 2, 4, 5, 8]
    tree.used[1] = 1
    assert representatives(tree, 2, free[2:]).all()


@pytest.mark.parametrize("seed", range(4))
def test_matrices_the_other_way_round(seed: int) -> None:
    """Metric traffic on distances that are no metric: cores are mapped to nodes, and mappings turned back."""
    rng = np.random.default_rng(seed)
    row, col = np.divmod(np.arange(6), 3)
    near = np.abs(row[:, None] - row) + np.abs(col[:, None] - col)
    any_d = np.triu(rng.integers(0, 9, (6, 6)), 1).astype(float)
    i, j = np.nonzero(np.triu(near))
    graph = LogicGraph.from_edges(6, i, j, near[i, j].astype(float))
    problem = MappingProblem(
        graph, Machine("m", (1, 1), (1, 6), distance_matrix=any_d + any_d.T), node_limit=1
    )
    assert engine._turned(exact_data(problem))
    context = Recorder(problem)
    BranchBound().run(problem, context)
    assert context.value == context.low == optimum(problem)
