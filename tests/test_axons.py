"""Limits on axon tables: usage against a plain count, what cannot bind, who obeys and who refuses."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from brute_support import costs_of
from command_support import run_here
from exact_support import Recorder
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.mapping.verify import verify
from nmsolve.heuristics.mapping.axons.moves import shift
from nmsolve.heuristics.mapping.axons.repair import within_axons
from nmsolve.heuristics.mapping.axons.state import build_axons, recount
from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.nets import Nets
from nmsolve.hw.scores import objective_value, score
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.formats import save_graph
from nmsolve.model.graph import LogicGraph, Rows
from nmsolve.model.machine import Machine
from nmsolve.model.mapping import axons as axons_module
from nmsolve.model.mapping.axons import axon_usage
from nmsolve.model.mapping.axons_fit import most_axons, without_axons
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import explain_misfit, require_fit
from nmsolve.model.mapping.limits import restricted
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.exact.model import CpSat, Mip
from nmsolve.solvers.mapping.explain import explain, recheck_conflict
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine

SEEDS = st.integers(0, 10**6)


def random_graph(seed: int, n: int = 7, m: int = 18, nets: bool = False) -> LogicGraph:
    """Mixed multicast and plain rows (some of rate 0), or a hypergraph with several nets per source."""
    rng = np.random.default_rng(seed)
    if nets:
        indptr = np.concatenate([[0], np.cumsum(rng.integers(1, 5, m // 2))])
        return LogicGraph.from_nets(
            n, indptr, rng.integers(0, n, indptr[-1]), rng.integers(0, 4, m // 2) * 1.0
        )
    return LogicGraph.from_edges(
        n, rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(0, 4, m), multicast=rng.random(n) < 0.5
    )


def plain_usage(graph: LogicGraph, cores: int, core: np.ndarray) -> tuple[list[int], list[int]]:
    """The definition, message by message with sets."""
    incoming, outgoing = [0] * cores, [0] * cores
    for e in range(graph.rows):
        reached = {int(core[t]) for t in graph.targets[graph.indptr[e] : graph.indptr[e + 1]]}
        for p in reached:
            incoming[p] += 1
        outgoing[int(core[graph.source[e]])] += len(reached)
    return incoming, outgoing


def limited(graph: LogicGraph, most_in: int, most_out: int, shape=(2, 2), room=3, **more) -> MappingProblem:
    """``graph`` on a small mesh with limited axon tables, at most ``room`` nodes per core."""
    machine = Machine("m", (1, 1), shape, capacity={"axons_in": most_in, "axons_out": most_out})
    return MappingProblem(graph, machine, node_limit=room, **more)


class Split(LogicGraph):
    """A graph that hands out its messages two at a time, as one on disk does."""

    def blocks(self, workers: int = 1):
        for a in range(0, self.rows, 2):
            b = min(self.rows, a + 2)
            cut = slice(self.indptr[a], self.indptr[b])
            yield Rows(
                a, self.indptr[a : b + 1] - self.indptr[a], self.source[a:b], self.targets[cut],
                self.weights[cut], self.multicast[a:b], self.rate[a:b],
            )  # fmt: skip


def split(g: LogicGraph) -> Split:
    return Split(
        g.n,
        g.indptr,
        g.targets,
        g.weights,
        g.source,
        g.multicast,
        g.rate,
        g.resources,
        g.sizes,
        g.ids,
        g.directed,
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SEEDS, st.booleans(), st.sampled_from([0, 32, 10**9]))
def test_usage_equals_the_definition(seed, nets, sparse):
    """Whole, in blocks, by marking and by sorting."""
    graph, rng = random_graph(seed, nets=nets), np.random.default_rng(seed)
    core = rng.integers(0, 5, graph.n)
    want = plain_usage(graph, 6, core)
    old = axons_module.SPARSE, axons_module.MARKS
    axons_module.SPARSE, axons_module.MARKS = sparse, 20
    try:
        for g in (graph, split(graph)):
            incoming, outgoing = axon_usage(g, 6, core)
            assert (incoming.tolist(), outgoing.tolist()) == want
    finally:
        axons_module.SPARSE, axons_module.MARKS = old
    assert sum(want[0]) == sum(want[1])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(SEEDS, st.booleans())
def test_no_mapping_within_capacities_exceeds_the_estimate(seed, nets):
    """So a limit at the estimate is dropped, one below what some mapping needs is kept."""
    rng = np.random.default_rng(seed)
    graph = random_graph(seed, n=6, nets=nets)
    problem = limited(graph, 0, 0, shape=(1, 3), room=int(rng.integers(2, 5)))
    most = most_axons(problem)
    worst = [0, 0]
    for cores in itertools.product(range(3), repeat=6):
        core = np.array(cores)
        if np.bincount(core).max() <= problem.node_limit:
            usage = axon_usage(graph, 3, core)
            worst = [max(w, int(u.max())) for w, u in zip(worst, usage, strict=True)]
    assert worst[0] <= most[0] and worst[1] <= most[1]
    assert limited(graph, *most, shape=(1, 3), room=problem.node_limit).axons is None
    if worst[0] > 0:
        assert limited(graph, worst[0] - 1, most[1], shape=(1, 3), room=problem.node_limit).axons is not None


@settings(max_examples=40, deadline=None, derandomize=True)
@given(SEEDS, st.booleans())
def test_merged_nodes_take_the_entries_of_their_members(seed, nets):
    """A message to a node that was merged with its sender still takes both entries of their core."""
    rng = np.random.default_rng(seed)
    graph = random_graph(seed, nets=nets)
    ties = (SideConstraint("t", "together", (0, 1, 2)), SideConstraint("u", "together", (4, 5)))
    problem = limited(graph, 2, 3, room=6, constraints=ties)
    merged = merge_together(problem)
    small = rng.integers(0, 4, merged.reduced.n)
    usage = axon_usage(merged.reduced.graph, 4, small, merged.reduced.inner)
    want = plain_usage(graph, 4, merged.lift(small))
    assert (usage[0].tolist(), usage[1].tolist()) == want
    broken = {v.text for v in check_mapping(merged.reduced, small) if v.rule == "axons"}
    assert broken == {v.text for v in check_mapping(problem, merged.lift(small)) if v.rule == "axons"}
    assert bool(broken) == (max(want[0]) > 2 or max(want[1]) > 3)


def test_a_node_size_of_that_name_is_an_ordinary_resource():
    """Then the graph states what adds up, and the table is not counted."""
    graph = LogicGraph.from_edges(3, [0, 1], [2, 2], resources=("axons_in",), sizes=np.array([[1], [2], [3]]))
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 2), capacity={"axons_in": 5}))
    assert problem.axons is None and problem.resources == ("axons_in",)
    assert [v.rule for v in check_mapping(problem, np.array([0, 0, 0]))] == ["capacity"]


def feasible(problem: MappingProblem) -> bool:
    """By trying every mapping."""
    return any(
        not check_mapping(problem, np.array(c))
        for c in itertools.product(range(problem.cores), repeat=problem.n)
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SEEDS, st.integers(0, 6), st.integers(0, 6), st.booleans())
def test_a_misfit_is_a_proof(seed, most_in, most_out, tied):
    """Whatever counting complains of has no mapping at all."""
    ties = (SideConstraint("t", "together", (0, 1)),) if tied else ()
    problem = limited(
        random_graph(seed, n=5, m=12), most_in, most_out, shape=(1, 3), room=3, constraints=ties
    )
    if explain_misfit(problem):
        assert not feasible(problem)


def test_words_of_a_misfit():
    """Who needs how many, and what there is."""
    star = LogicGraph.from_edges(6, [1, 2, 3, 4, 5], [0] * 5)
    with pytest.raises(
        DoesNotFitError, match="node 0 receives 5 distinct messages and a core has 4 axons_in"
    ):
        require_fit(limited(star, 4, 9))
    cast = LogicGraph.from_edges(6, [0] * 5, [1, 2, 3, 4, 5], multicast=np.ones(6, bool))
    with pytest.raises(
        DoesNotFitError, match="node 0 sends 3 messages to cores, at least, and a core has 2 axons_out"
    ):
        require_fit(limited(cast, 9, 2, room=2))
    ring = LogicGraph.from_edges(6, [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0])
    with pytest.raises(DoesNotFitError, match=r"must reach 6 cores.*4 usable cores have 4 axons_in"):
        require_fit(limited(ring, 1, 9))


def check_counts(state, problem: MappingProblem) -> None:
    """The state's entries are those of its mapping, counted by the definition."""
    want = plain_usage(problem.graph, problem.cores, state.core)
    assert (state.used[0].tolist(), state.used[1].tolist()) == want
    over = [sum(max(0, u - int(m)) for u in side) for side, m in zip(want, state.most, strict=True)]
    assert state.excess.tolist() == [sum(over), sum(want[0])]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(SEEDS, st.booleans(), st.booleans())
def test_counts_stay_exact_while_nodes_move(seed, nets, wide):
    """Moves, swaps and those taken back; with dense and with hashed tables."""
    rng = np.random.default_rng(seed)
    cores = 40 if wide else 4
    problem = limited(random_graph(seed, nets=nets), 2, 3, shape=(1, cores), room=7)
    if problem.axons is None:
        return
    state = build_axons(problem, rng.integers(0, cores, problem.n))
    for _ in range(30):
        u, v, q = int(rng.integers(problem.n)), int(rng.integers(problem.n)), int(rng.integers(cores))
        before, p = int(state.excess[0]), int(state.core[u])
        if q != p and rng.random() < 0.5:
            shift(state, u, p, q)
            if state.excess[0] <= before:
                state.core[u] = q
            else:
                shift(state, u, q, p)
            check_counts(state, problem)
        elif state.core[v] != p:
            q = int(state.core[v])
            shift(state, u, p, q)
            state.core[u] = q
            shift(state, v, q, p)
            state.core[v] = p
            if state.excess[0] > before:
                shift(state, v, p, q)
                state.core[v] = q
                shift(state, u, q, p)
                state.core[u] = p
            check_counts(state, problem)
        assert state.excess[0] <= before
    held = state.core.copy()
    recount(state)
    assert np.array_equal(held, state.core)
    check_counts(state, problem)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(SEEDS, st.integers(2, 5), st.integers(2, 6))
def test_repair_obeys_every_rule_and_finds_what_there_is(seed, most_in, most_out):
    """On problems small enough to know whether there is a mapping."""
    graph = random_graph(seed, n=6, m=14)
    rules = (SideConstraint("a", "apart", (0, 1)), SideConstraint("p", "pin", (2,), (1,)))
    problem = limited(graph, most_in, most_out, shape=(1, 3), room=3, constraints=rules)
    start = first_fit(without_axons(problem), seed)
    assert start is not None
    core = within_axons(problem, start, seed)
    assert (core is not None) == feasible(problem)
    if core is not None:
        assert not check_mapping(problem, core)


@pytest.mark.parametrize("objective", ["hops", "cut", "connectivity", "multicast-hops", "energy"])
def test_nets_never_offers_what_breaks_the_limits(objective):
    """Every objective that is a sum, pairwise ones too; the context fails on the first mapping that breaks a rule."""
    for seed in range(3):
        graph = random_graph(seed, n=30, m=120)
        free = limited(graph, 10**6, 10**6, shape=(2, 3), room=8)
        usage = axon_usage(graph, 6, first_fit(free, seed))
        tight = int(0.85 * usage[0].max()), int(0.85 * usage[1].max())
        problem = limited(graph, *tight, shape=(2, 3), room=8, objective=objective)
        assert problem.axons is not None and Nets().refuses(problem) is None
        poor = within_axons(problem, first_fit(free, seed), seed)
        values = []
        for start in (None, poor, poor):
            context = Recorder(problem, start)
            context.time_left, context.note = (lambda: 0.05), (lambda text: None)
            Nets().run(problem, context)
            assert context.offers
            values.append(context.value)
        assert values[2] == values[1] < objective_value(problem, poor)


def test_nets_still_leaves_sums_over_pairs_to_others_where_no_limit_can_bind():
    graph = random_graph(0)
    assert limited(graph, 10**6, 10**6).axons is None
    assert "route tree" in (Nets().refuses(limited(graph, 10**6, 10**6)) or "")
    assert "not a sum" in (Nets().refuses(limited(graph, 1, 1, objective="max-link")) or "")


def small_limited(seed: int, objective: str, tied: bool) -> MappingProblem:
    """Five nodes on three cores, limits drawn around what a random mapping needs; often binding, sometimes impossible."""
    rng = np.random.default_rng(seed)
    graph = random_graph(seed, n=5, m=11)
    usage = axon_usage(graph, 3, rng.integers(0, 3, 5))
    ties = (SideConstraint("t", "together", (0, 3)),) if tied else ()
    most = (int(u.max()) - int(rng.integers(0, 3)) for u in usage)
    return limited(graph, *(max(1, m) for m in most), (1, 3), 3, objective=objective, constraints=ties)


def best_value(problem: MappingProblem) -> float:
    """Least objective over all mappings, inf if there is none."""
    every = np.array(list(itertools.product(range(problem.cores), repeat=problem.n)))
    legal = [c for c in every if not check_mapping(problem, c)]
    return float(costs_of(problem, np.array(legal)).min()) if legal else np.inf


@pytest.mark.parametrize("engine", [CpSat(), Mip()], ids=["cpsat", "mip"])
@pytest.mark.parametrize("objective", ["hops", "connectivity", "max-link"])
def test_exact_models_agree_with_trying_every_mapping(engine, objective):
    """The optimum, or the proof that there is no mapping; merged nodes included."""
    kinds = set()
    for seed in range(6):
        problem = merge_together(small_limited(seed, objective, tied=seed % 2 == 1)).reduced
        context, want = Recorder(problem), best_value(problem)
        engine.run(problem, context)
        assert context.value == want
        assert context.low == want
        kinds.add((problem.axons is not None, np.isfinite(want)))
    assert (True, True) in kinds and (True, False) in kinds


def test_exact_models_refuse_tables_that_are_too_large():
    graph = LogicGraph.from_edges(200, *np.divmod(np.arange(40000), 200))
    assert "axon tables" in (CpSat().refuses(limited(graph, 5, 5, (5, 5), 100, objective="cut")) or "")


def test_engines_that_know_no_axon_tables_refuse_what_could_bind():
    """And take the problem where no limit can bind."""
    graph = random_graph(1, n=8, m=30)
    for limit, binds in ((3, True), (10**6, False)):
        problem = limited(graph, limit, limit, room=3)
        for name in REGISTRY:
            engine = make_engine(name)
            if getattr(engine.refuses, "handles", "".__contains__)("axons"):
                continue
            said = engine.refuses(problem) or ""
            assert ("axon tables" in said) == binds, name


@pytest.mark.parametrize("objective", ["hops", "multicast-hops", "max-link"])
def test_a_run_gives_a_legal_mapping_or_says_that_there_is_none(objective):
    """Automatic mode, a warm start that breaks the limits, and explicit engines."""
    graph = random_graph(5, n=20, m=90)
    wide = limited(graph, 10**6, 10**6, (2, 2), 8)
    start = first_fit(wide, 0)
    usage = axon_usage(graph, 4, start)
    problem = limited(graph, int(usage[0].max()) - 1, int(usage[1].max()) - 1, (2, 2), 8, objective=objective)
    for more in ({}, {"warm_start": start, "engines": ["nets", "cpsat"]}, {"engines": ["first-fit"]}):
        result = solve(problem, time_limit=1.5, **more)
        assert result.core is not None and not check_mapping(problem, result.core)
        assert not [e for e in result.events if e.kind == "error" and e.engine != "warm-start"]
        assert "warm_start" not in more or any("repaired" in e.text for e in result.events)
    with pytest.raises(
        InputError, match=r"multilevel: it does not support limits on axon tables \(axons_in, axons_out\)"
    ):
        solve(problem, time_limit=1, engines=["multilevel"])


def test_explain_names_axon_tables_among_a_smallest_conflict():
    """Against trying every mapping; the second model agrees."""
    named = 0
    for seed in range(12):
        problem = small_limited(seed, "cut", tied=seed % 2 == 1)
        found = explain(problem, 20)
        assert (found.status == "feasible") == feasible(problem), seed
        if found.conflict is None:
            assert found.solution is not None and not check_mapping(problem, found.solution)
            continue
        limits = list(found.conflict.limits)
        assert found.conflict.minimal and not feasible(restricted(problem, limits))
        assert all(feasible(restricted(problem, [y for y in limits if y is not x])) for x in limits)
        assert recheck_conflict(problem, found.conflict.certificate)
        named += any(x.name.startswith("axons") for x in limits)
    assert named > 1


def test_verify_counts_axons_with_code_of_its_own():
    """Scores, the check of a mapping that fits, and of one that does not."""
    graph = random_graph(3, n=20, m=80)
    core = np.random.default_rng(0).integers(0, 4, 20)
    usage = plain_usage(graph, 4, core)
    for spare in (0, -1):
        problem = limited(graph, max(usage[0]) + spare, max(usage[1]), (2, 2), 20)
        report = verify(graph, problem.machine, (), core, node_limit=20)
        checks = {c.name: c for c in report.checks}
        assert checks["axons_in"].ok == checks["feasible"].ok == (spare == 0)
        assert checks["axons_out"].ok
        assert (report.scores["axons-in"], report.scores["axons-out"]) == (max(usage[0]), max(usage[1]))
        assert score(graph, problem.machine, core)["axons-in"] == max(usage[0])


def test_command_line(tmp_path):
    """One line for what cannot fit and for engines that do not know the tables; a report with their use."""
    graph, board = tmp_path / "g.json", tmp_path / "b.toml"
    save_graph(random_graph(2, n=12, m=36), graph)

    out = tmp_path / "out"
    for most, code, engine, words in (
        (1, 2, [], "distinct messages"),
        (9, 2, ["--engines", "multilevel"], "axon tables (axons_in, axons_out)"),
        (9, 0, [], ""),
    ):
        text = f"cores = [2, 2]\n[capacity]\nneurons = 6\naxons_in = {most}\naxons_out = 30\n"
        board.write_text(text, "utf-8")
        done = run_here("map", graph, "--machine", board, "-t", 2, "--out", out, *engine, code=code)
        assert code == 0 or words in done.stderr.splitlines()[-1]
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["scores"]["axons-in"] <= 9
    assert {"axons_in", "axons_out"} <= {c["name"] for c in report["checks"]}
    assert "axons_in" in (out / "report.html").read_text("utf-8")
    run_here("verify", out / "mapping.json")
