"""The engine ``external`` on sums over pairs: valid, repeatable whatever the threads and the memory, and good."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.external.accept import accept, placement
from nmsolve.heuristics.mapping.external.anneal import Run
from nmsolve.heuristics.mapping.external.build import finest, symmetric
from nmsolve.heuristics.mapping.external.clustering import cluster
from nmsolve.heuristics.mapping.external.contraction import contract, contract_source
from nmsolve.heuristics.mapping.external.engine import External, cores_of
from nmsolve.heuristics.mapping.external.lawful import placed, scattered, shed
from nmsolve.heuristics.mapping.external.levels import Level, Resident
from nmsolve.heuristics.mapping.external.search import again, search
from nmsolve.heuristics.mapping.external.spilled import Disk, contract_stored, stored_source
from nmsolve.heuristics.mapping.external.sweep import Crew, Stopped, sweep
from nmsolve.heuristics.mapping.external.thinning import thinned
from nmsolve.heuristics.mapping.multilevel.schedule import Budget
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.cost import core_distance
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.formats.nmz import save
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.store import open_graph
from nmsolve.model.store.scratch import Scratch
from nmsolve.solvers.mapping.api import solve

ALONE = Crew(1, None, lambda: False)


def mesh(rows: int, cols: int, room: int, **more: object) -> Machine:
    """A healthy mesh whose cores hold ``room`` neurons."""
    return Machine(name="mesh", chips=(1, 1), cores=(rows, cols), capacity={"neurons": room}, **more)


def run_on(problem: MappingProblem, crew: Crew = ALONE, seed: int = 1, work: float = 2e8) -> Run:
    """A run with so much work and no clock."""
    cores = cores_of(problem)
    cut = problem.objective == "cut"
    return Run(cores, cut, crew, Budget(work, crew.should_stop, lambda: 0.0), new_rng(seed))


def mapped(problem: MappingProblem, crew: Crew = ALONE, seed: int = 1, work: float = 2e8) -> np.ndarray:
    """The best of what a search from scratch offers, all checked."""
    offers: list[np.ndarray] = []

    def offer(pos: np.ndarray, move: str) -> bool:
        offers.append(pos.astype(np.int64))
        assert check_mapping(problem, offers[-1]) == []
        values = [objective_value(problem, core) for core in offers]
        return values[-1] == min(values)

    level = finest(problem, symmetric(problem.graph, crew))
    search(level, run_on(problem, crew, seed, work), 1.0, offer)
    return min(offers, key=lambda core: objective_value(problem, core))


def snn(nodes: int = 4000) -> LogicGraph:
    """A small layered network with weights."""
    return generate("snn", nodes=nodes, synapses=20 * nodes, layers=4)


def random_level(seed: int, n: int, edges: int) -> tuple[Level, np.ndarray]:
    """A level without rules, and its dense symmetric weights."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, edges), rng.integers(0, n, edges)
    graph = LogicGraph.from_edges(n, a, b, rng.integers(1, 9, edges).astype(float))
    problem = MappingProblem(graph, mesh(2, 2, n))
    dense = np.zeros((n, n))
    np.add.at(dense, (graph.edge_source, graph.targets), graph.weights)
    return finest(problem, symmetric(graph, ALONE)), dense + dense.T


def dense_of(source: Resident, n: int) -> np.ndarray:
    """Weights of a source as a matrix."""
    out = np.zeros((n, n))
    for arcs in source.blocks():
        who = np.repeat(np.arange(arcs.first, arcs.first + arcs.nodes), np.diff(arcs.indptr))
        part = slice(arcs.indptr[0], arcs.indptr[-1])
        np.add.at(out, (who, arcs.neighbour[part]), arcs.weight[part])
    return out


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), edges=st.integers(0, 150))
def test_contraction_keeps_the_cost_of_every_projected_placement(seed: int, n: int, edges: int) -> None:
    """Symmetric traffic is that of the graph; merged rows are its sums between clusters; sizes and volume add up."""
    level, dense = random_level(seed, n, edges)
    assert np.array_equal(dense_of(level.source, n), dense)
    label, k = cluster(level, 0.3, seed, ALONE)
    assert sorted(set(label.tolist())) == list(range(k))
    coarse = contract(level, label, k, contract_source(level.source, label, k, ALONE))
    member = np.zeros((k, n))
    member[label, np.arange(n)] = 1.0
    wanted = member @ dense @ member.T
    np.fill_diagonal(wanted, 0.0)
    assert np.array_equal(dense_of(coarse.source, k), wanted)
    assert (coarse.sizes == member @ level.sizes).all()
    assert (np.bincount(label, level.volume) <= max(0.3, level.volume.max()) + 1e-6).all()


def test_on_disk_a_contraction_is_that_in_memory(tmp_path: Path) -> None:
    """Sorted and merged through files, or in memory: the same rows."""
    graph = snn()
    save(graph, tmp_path / "g.nmz")
    problem = MappingProblem(graph, mesh(4, 4, 300))
    level = finest(problem, symmetric(graph, ALONE))
    label, k = cluster(level, 0.05, 1, ALONE)
    wanted = dense_of(contract_source(level.source, label, k, ALONE), k)
    stored = open_graph(tmp_path / "g.nmz")
    for memory in (1 << 18, 1 << 26):  # the coarse level is on disk, or not
        with Scratch(tmp_path) as scratch:
            disk = Disk(scratch, memory, 1.0, lambda: 0)
            source = stored_source(stored, disk, ALONE)
            assert np.array_equal(dense_of(source, graph.n), dense_of(level.source, graph.n))
            coarse = contract_stored(source, label, k, "level-1", disk, ALONE)
            assert isinstance(coarse, Resident) == (memory > 1 << 18)
            assert np.array_equal(dense_of(coarse, k), wanted)
    assert list(tmp_path.glob("nmsolve-scratch-*")) == []


@pytest.mark.parametrize("objective", ["hops", "cut", "energy"])
def test_what_a_sweep_says_a_placement_costs_is_what_the_evaluator_says(objective: str) -> None:
    """On a torus with slow chip borders, and with energies that charge a step; with all prices 0 and nothing moving."""
    from nmsolve.hw.machines import load_machine

    machine = replace(load_machine("loihi2"), capacity={"neurons": 4000})
    if objective == "hops":
        machine = Machine(
            name="t",
            chips=(2, 2),
            cores=(3, 2),
            torus=True,
            crossing_weight=3.0,
            capacity={"neurons": 4000},
        )
    problem = MappingProblem(snn(), machine, objective)
    level, run = finest(problem, symmetric(problem.graph, ALONE)), run_on(problem)
    pos = np.random.default_rng(3).integers(0, problem.cores, problem.n)
    s = placed(level, pos, run)
    s.limit[:] = 0  # nobody can move
    found = sweep(level, run.cores, s, run.cut, 1.0, 5, ALONE)
    assert found.moves == 0
    assert found.cost == pytest.approx(objective_value(problem, pos), rel=1e-5)


def test_at_temperature_zero_every_node_wants_the_cheapest_core() -> None:
    """Against brute force: distances, prices and a domain decide, ties aside."""
    machine = mesh(3, 4, 4000)
    rule = SideConstraint("r", "region", tuple(range(100)), (0, 5, 11))
    for objective in ("hops", "cut"):
        problem = MappingProblem(snn(), machine, objective, constraints=(rule,))
        level, run = finest(problem, symmetric(problem.graph, ALONE)), run_on(problem)
        rng = np.random.default_rng(1)
        pos = scattered(level, run.cores.allowed)
        s = placed(level, pos, run)
        s.price[:] = rng.uniform(0, 100 / float(level.volume.mean()), problem.cores)
        weights = dense_of(level.source, problem.n)
        on_core = np.zeros((problem.n, problem.cores))
        on_core[np.arange(problem.n), pos] = 1
        cost = (weights @ on_core) @ core_distance(problem).dense() + np.outer(level.volume, s.price)
        cost[~run.cores.allowed[level.domain]] = np.inf
        if objective == "cut":  # only cores of neighbours, its own and the cheapest are looked at
            known = (weights @ on_core > 0) | (on_core > 0)
            known[:, np.argmin(s.price)] = True
            cost[~known] = np.inf
        before = s.pos.copy()
        first = next(iter(level.source.blocks()))
        to = np.empty(problem.n, np.int32)
        from nmsolve.heuristics.mapping.external.propose import RUN, Drawing, propose_cut, propose_lines

        kernel = propose_cut if objective == "cut" else propose_lines
        draw = Drawing(s, run.cores, level.volume, level.domain, 1e-6, 7, RUN)
        kernel(first, 0, problem.n, draw, to)
        assert np.allclose(cost[np.arange(problem.n), to], cost.min(axis=1), rtol=1e-4, atol=0.1)
        assert (s.pos == before).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_accepting_keeps_limits_and_loads(seed: int) -> None:
    """Whatever is proposed: loads are those of the positions, no limit that held is broken, apart nodes stay apart."""
    rng = np.random.default_rng(seed)
    n, cores = 60, 5
    sizes = rng.integers(0, 4, (n, 2))
    limit = np.full((cores, 2), 30)
    pos = rng.integers(0, cores, n)
    s = placement(sizes, pos, limit, limit)
    apart_ptr = np.zeros(n + 1, np.int64)
    apart_ptr[1:] = 1
    apart_ptr[2:] = 2
    pos[1] = (pos[0] + 1) % cores
    s = placement(sizes, pos, limit, limit)
    before = s.load.copy()
    to = rng.integers(0, cores, n).astype(np.int32)
    accept(s, sizes, np.ones(n, np.float32), apart_ptr, np.array([1, 0], np.int32), 0, 0, n, 16, to, False)
    wanted = np.stack([np.bincount(s.pos, sizes[:, r], cores) for r in range(2)], axis=1)
    assert (s.load == wanted).all()
    assert (s.load <= np.maximum(before, limit)).all()
    assert s.pos[0] != s.pos[1]


def test_threads_change_nothing() -> None:
    """One thread or three: the same mapping, for both kernels."""
    for objective in ("hops", "cut"):
        problem = MappingProblem(snn(), mesh(4, 4, 260), objective)
        with ThreadPoolExecutor(3) as pool:
            several = mapped(problem, Crew(3, pool, lambda: False), work=5e7)
        assert (several == mapped(problem, work=5e7)).all()


def test_memory_changes_nothing_where_the_order_of_visits_is_the_same(tmp_path: Path) -> None:
    """A store of which nothing, or all, is held in memory: the same mapping."""
    graph = snn()
    save(graph, tmp_path / "g.nmz")
    problem = MappingProblem(graph, mesh(3, 3, 460))
    found = []
    for left in (0, 1 << 30):
        with Scratch(tmp_path) as scratch:
            disk = Disk(scratch, 1 << 26, 1.0, lambda left=left: left)
            level = finest(problem, stored_source(open_graph(tmp_path / "g.nmz"), disk, ALONE))
            run = run_on(problem)
            run.work = lambda level: 2e6  # type: ignore[method-assign]  # as many sweeps whatever a read costs
            search(level, run, 1.0, lambda pos, _: found.append(pos.copy()) is None, disk)
            assert (level.source.held > 0) == (left > 0)
    half = len(found) // 2  # of both runs, what they show on the way and their answers
    assert len(found) == 2 * half > 0
    for one, other in zip(found[:half], found[half:], strict=True):
        assert (one == other).all()
        assert check_mapping(problem, one.astype(np.int64)) == []


def test_it_is_far_better_than_no_look_at_the_traffic_and_than_first_fit() -> None:
    """Hops and cut on a layered network; a grid graph on a grid of cores comes near its optimum."""
    graph = snn()
    for objective, share in (("hops", 0.45), ("cut", 0.75)):
        problem = MappingProblem(graph, mesh(4, 4, 258), objective)
        value = objective_value(problem, mapped(problem, work=2e8))
        random = objective_value(problem, np.random.default_rng(0).permutation(4096)[: graph.n] % 16)
        first = solve(problem, time_limit=5.0, engines=["first-fit"]).objective
        assert value < share * random
        assert value < 0.9 * first
    at = np.arange(32 * 32).reshape(32, 32)
    a = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    b = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    problem = MappingProblem(LogicGraph.from_edges(1024, a, b, directed=False), mesh(4, 4, 66))
    best = min(objective_value(problem, mapped(problem, seed=s, work=5e8)) for s in (1, 2, 3))
    assert (
        best <= 1.8 * 192
    )  # 6 lines of 32 connections must be cut once each; from no order, annealing leaves folds


def ruled(objective: str) -> MappingProblem:
    """Regions, pins, forbidden cores, nodes kept apart, faulty cores, two resources of which either may bind."""
    rng = np.random.default_rng(5)
    base = snn()
    sizes = np.stack([np.ones(base.n, np.int64), rng.integers(1, 30, base.n)], axis=1)
    graph = replace(base, resources=("neurons", "synapses"), sizes=sizes)
    machine = Machine(
        name="m", chips=(1, 1), cores=(4, 4), faulty_cores=(5,), capacity={"neurons": 290, "synapses": 4400}
    )
    rules = (
        SideConstraint("a", "region", tuple(range(200)), (0, 1, 4, 6)),
        SideConstraint("b", "pin", (300,), (9,)),
        SideConstraint("c", "forbid", tuple(range(400, 700)), (2, 3)),
        SideConstraint("d", "apart", tuple(range(1000, 1012))),
    )
    return MappingProblem(graph, machine, objective, constraints=rules)


@pytest.mark.parametrize("objective", ["hops", "cut"])
def test_rules_and_several_resources_are_kept(objective: str) -> None:
    """Every answer on the way keeps all of them."""
    mapped(ruled(objective))


def test_several_starts_are_the_same_on_one_two_and_four_threads() -> None:
    """Four starts, one after the other, in pairs, and all at once, then the best once more with all threads; with all rules."""
    problem = ruled("hops")
    found = []
    for threads in (1, 2, 4):
        with ThreadPoolExecutor(threads) as pool:
            found.append(
                mapped(problem, Crew(threads, pool if threads > 1 else None, lambda: False), work=7e8)
            )
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_an_annealing_side_by_side_stops_when_told() -> None:
    """Threads that work on starts of their own end soon after the run was told to stop, with what they have."""
    problem = MappingProblem(snn(), mesh(4, 4, 260))
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        mapped(problem, Crew(2, pool, lambda: time.monotonic() > begun + 1.0), work=1e12)
    assert time.monotonic() < begun + 20


def test_going_on_from_a_mapping_makes_it_better() -> None:
    """From a first, short answer; the result is legal."""
    problem = MappingProblem(snn(), mesh(4, 4, 260))
    start = mapped(problem, work=2e7)
    offers: list[np.ndarray] = []
    level = finest(problem, symmetric(problem.graph, ALONE))
    again(
        level,
        start,
        run_on(problem, work=5e8),
        1.0,
        lambda pos, _: offers.append(pos.astype(np.int64)) is None,
    )
    assert check_mapping(problem, offers[0]) == []
    assert objective_value(problem, offers[0]) < objective_value(problem, start)


class Clock(QuietContext):
    """A context that stops after some questions."""

    def __init__(self, problem: MappingProblem, questions: int) -> None:
        super().__init__()
        self.problem, self.questions, self.stopped_at = problem, questions, 0.0
        self.offers: list[np.ndarray] = []

    def time_left(self) -> float:
        """Always enough."""
        return 30.0

    def should_stop(self) -> bool:
        """True after this number of questions."""
        self.questions -= 1
        if self.questions <= 0 and not self.stopped_at:
            self.stopped_at = time.monotonic()
        return self.questions <= 0

    def offer(self, core: np.ndarray, move: str = "") -> bool:
        """Every offer must be legal."""
        assert check_mapping(self.problem, core) == []
        self.offers.append(core)
        return True


@pytest.mark.parametrize("questions", [1, 2, 20, 60, 100, 500])
def test_it_stops_at_once_in_any_phase_and_has_a_legal_answer(questions: int) -> None:
    """Told to stop while building, clustering, contracting or annealing."""
    problem = MappingProblem(snn(), mesh(4, 4, 260))
    External().run(problem, Clock(problem, 10))  # compiled before the clock runs
    context = Clock(problem, questions)
    External().run(problem, context)
    assert time.monotonic() - context.stopped_at < 0.5
    assert len(context.offers) >= 1


def test_a_run_that_was_killed_goes_on_from_its_last_level(tmp_path: Path) -> None:
    """Labels and placements that were kept are taken as they are."""
    graph = snn()
    save(graph, tmp_path / "g.nmz")
    problem = MappingProblem(graph, mesh(3, 3, 460))
    with Scratch(tmp_path) as scratch:
        disk = Disk(scratch, 1 << 26, 1.0, lambda: 0)
        stored = open_graph(tmp_path / "g.nmz")
        offers: list[np.ndarray] = []
        search(
            finest(problem, stored_source(stored, disk, ALONE)), run_on(problem), 1.0,
            lambda pos, _: offers.append(pos.copy()) is None, disk,
        )  # fmt: skip
        kept = scratch.finished("labels-0"), scratch.finished("placed-1")
        assert kept[0] is not None and kept[1] is not None
        stages: list[Level] = []
        run = run_on(problem, work=1e8)
        plain = run.sweep

        def watched(level: Level, s: object, temperature: float) -> object:
            stages.append(level)
            return plain(level, s, temperature)  # type: ignore[arg-type]

        run.sweep = watched  # type: ignore[method-assign, assignment]
        level = finest(problem, stored_source(stored, disk, ALONE))
        search(level, run, 1.0, lambda pos, _: offers.append(pos.copy()) is None, disk)
        assert all(x is level for x in stages)  # only the finest level was annealed
        assert check_mapping(problem, offers[1].astype(np.int64)) == []


def test_it_refuses_what_it_cannot() -> None:
    """One node per core, and loads of links; with words."""
    graph = snn(400)
    assert "one node" in str(External().refuses(MappingProblem(graph, mesh(20, 20, 1))))
    assert "max-link" in str(External().refuses(MappingProblem(graph, mesh(4, 4, 40), "max-link")))
    assert External().refuses(MappingProblem(graph, mesh(4, 4, 40))) is None


def test_matrix_machines_and_dead_links(tmp_path: Path) -> None:
    """Distances from a matrix go through the same kernel."""
    graph = snn(1000)
    rng = np.random.default_rng(2)
    d = rng.integers(1, 9, (6, 6)).astype(float)
    np.fill_diagonal(d, 0)
    machine = Machine(name="q", chips=(1, 1), cores=(1, 6), distance_matrix=d, capacity={"neurons": 180})
    problem = MappingProblem(graph, machine)
    value = objective_value(problem, mapped(problem))
    assert value < objective_value(problem, np.arange(graph.n) % 6)
    dead = mesh(3, 3, 120, faulty_links=((0, 1), (1, 0)))
    mapped(MappingProblem(graph, dead))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 12))
def test_a_thinned_level_shows_a_few_connections_of_every_node_at_the_weight_of_all(
    seed: int, most: int
) -> None:
    """No row is longer than asked for, nobody new is in it, and equal weights add up to about what they were."""
    level, dense = random_level(seed, 30, 300)
    source = thinned(level.source, most, seed)
    degree = np.diff(level.source.indptr)
    assert (np.diff(source.indptr) <= np.minimum(degree, most)).all()
    assert (np.diff(source.indptr) > 0).sum() >= (degree >= most).sum()
    assert not dense_of(source, 30)[dense == 0].any()
    again_all = thinned(level.source, int(degree.max()), seed)
    assert np.array_equal(dense_of(again_all, 30), dense)


def test_thinned_weights_are_right_on_average() -> None:
    """The mean over many keys is what all connections weigh."""
    level, dense = random_level(5, 12, 100)
    mean = sum(dense_of(thinned(level.source, 3, key), 12) for key in range(3000)) / 3000
    assert np.abs(mean - dense).max() < 0.25 * dense.max()
    assert abs(mean.sum() / dense.sum() - 1) < 0.01


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_overfull_cores_shed_only_what_they_must(seed: int) -> None:
    """Afterwards loads are what positions say, full cores took nobody, and with unit nodes all cores are within their goal."""
    level, _ = random_level(seed, 40, 120)
    rng = np.random.default_rng(seed)
    run = run_on(MappingProblem(LogicGraph.from_edges(40, [0], [1]), mesh(2, 2, 11)))
    start = rng.choice(4, 40, p=[0.5, 0.3, 0.1, 0.1]).astype(np.int32)
    s = placed(level, start, run)
    shed(level, s, run.cores)
    assert np.array_equal(np.bincount(s.pos, minlength=4), s.load[:, 0])
    assert (s.load <= s.goal).all()
    held = np.bincount(start, minlength=4)
    assert (s.pos != start).sum() == np.maximum(held - 11, 0).sum()


def test_a_run_with_time_for_it_shows_answers_on_the_way() -> None:
    """The order of the file, then the coarsest level's placement, then the answer, each better than the one before."""
    graph = generate("snn", nodes=6000, synapses=200_000, layers=4)
    result = solve(MappingProblem(graph, mesh(4, 4, 400), "cut"), engines=["external"], time_limit=4, seed=1)
    moves = [e.move for e in result.events if e.kind == "incumbent"]
    assert moves[:2] == ["the order of the file", "coarsest level"]
    assert any(move.startswith("multilevel") for move in moves)


def test_a_run_stopped_while_it_sorts_offers_the_order_of_the_file() -> None:
    """Nothing is known of the connections then, but the answer is legal."""
    problem = MappingProblem(snn(), mesh(4, 4, 260), "cut")
    found: list[tuple[np.ndarray, str]] = []

    class Hurried:
        seed, workers, memory, scratch = 1, 1, None, ScratchPlace()
        incumbent = staticmethod(lambda: (None, np.inf))
        time_left = staticmethod(lambda: 1e-3)
        should_stop = staticmethod(lambda: True)

        def offer(self, core: np.ndarray, move: str) -> bool:
            found.append((core, move))
            return True

    External().run(problem, Hurried())  # type: ignore[arg-type]
    assert [move.partition(":")[0] for _, move in found] == ["the order of the file"]
    assert check_mapping(problem, found[0][0]) == []


def test_a_run_from_disk_that_is_stopped_while_it_coarsens_places_nothing(tmp_path: Path) -> None:
    """It has no order of clusters yet: to place nodes without one would read all connections again, for a useless mapping."""
    save(snn(), tmp_path / "g.nmz")
    problem = MappingProblem(snn(), mesh(3, 3, 460))
    stops = iter([False] * 3)
    with Scratch(tmp_path) as scratch:
        disk = Disk(scratch, 1 << 26, 1.0, lambda: 0)
        level = finest(problem, stored_source(open_graph(tmp_path / "g.nmz"), disk, ALONE))
        run = run_on(problem, Crew(1, None, lambda: next(stops, True)))
        with pytest.raises(Stopped):
            search(level, run, 1.0, lambda pos, _: pytest.fail("it offered something"), disk)


def test_edges_without_weight_are_listed_once() -> None:
    """A node that sends to thousands for nothing: their cores had been written behind the end of a list, again and again."""
    n = 6000
    ring = np.arange(n)
    hub = np.zeros(n - 1, int)
    graph = LogicGraph.from_edges(
        n, np.r_[ring, hub], np.r_[(ring + 7) % n, ring[1:]], np.r_[np.ones(n), np.zeros(n - 1)]
    )
    result = solve(
        MappingProblem(graph, mesh(4, 4, 400), "cut"), engines=["external"], time_limit=0.5, seed=1
    )
    assert (
        result.core is not None
        and check_mapping(MappingProblem(graph, mesh(4, 4, 400), "cut"), result.core) == []
    )
