"""M1's reward as a mapping objective: evaluator, verifier, search, bound and its certificate."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import hw_reference as ref
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nmsolve
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.check.mapping.verify import verify, walked_objective
from nmsolve.check.reward import walked_reward
from nmsolve.heuristics.mapping.reward.moves import move, reset, search, value
from nmsolve.heuristics.mapping.reward.state import build
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.reward import deadlock_factor, prohibited_directions, reward_loss
from nmsolve.hw.routing.values import routing_value
from nmsolve.hw.routing.walk import walked_routes
from nmsolve.hw.scores import objective_value, score
from nmsolve.model.between import BetweenCores
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reward_terms import OwnTerm, RewardTerms
from nmsolve.model.routing.flows import flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.turns import turn_set
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.link_load import exchange_bounds
from nmsolve.solvers.mapping.multi_objective import objective_names

FAST = settings(max_examples=40, deadline=None)
Called = Callable[..., tuple[int, str, str]]
SEED = st.integers(0, 2**32 - 1)


def some_problem(
    seed: int, n: int = 6, board: tuple[int, int] = (2, 3), torus: bool = False
) -> MappingProblem:
    """Random traffic, half of the nodes multicast, one node per core."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, (2, 3 * n))
    graph = LogicGraph.from_edges(
        n, a, b, rng.integers(1, 6, 3 * n).astype(float), multicast=rng.random(n) < 0.5
    )
    return MappingProblem(graph, Machine("m", (1, 1), board, torus), "reward", node_limit=1)


def test_the_published_formula_on_a_row_of_three() -> None:
    """The middle one talks to both neighbours: the larger side counts; the four directions that XY prohibits cost e^(4/C)."""
    graph = LogicGraph.from_edges(3, [1, 1], [0, 2], [2.0, 3.0])
    row = Machine("row", (1, 1), (1, 3))
    assert reward_loss(graph, row, np.array([0, 1, 2])) == 2 + max(2, 3) + 3
    assert reward_loss(graph, row, np.array([1, 0, 2])) == (2 + 6) + 2 + 6
    cast = LogicGraph.from_edges(3, [1, 1], [0, 2], [3.0, 3.0], multicast=np.array([False, True, False]))
    board = Machine("board", (1, 1), (2, 3))
    assert reward_loss(cast, board, np.array([0, 1, 2])) == pytest.approx((3 + 3 + 3) * math.exp(4 / 2))


def test_directions_of_turning_are_those_of_the_rule_whatever_the_board() -> None:
    """The text's examples: one turn of each cycle makes two; XY prohibits four. A rule of half the columns counts half."""
    assert prohibited_directions(Machine("row", (1, 1), (1, 5))) == 0
    for board in (
        Machine("m", (1, 1), (2, 3)),
        Machine("m", (1, 1), (4, 4)),
        Machine("t", (1, 1), (3, 4), torus=True),
    ):
        assert prohibited_directions(board) == 4
        for rule, many in {"west-first": 2, "WS": 1, "yx": 4, "WS,EN,NE": 3}.items():
            assert prohibited_directions(board, turn_set(rule, board)) == many
        assert prohibited_directions(board, turn_set({0: "WS"}, board)) <= 1
    odd_even = turn_set("odd-even", board)
    assert prohibited_directions(board, odd_even) == 2


def test_fewer_prohibited_directions_are_a_lower_loss() -> None:
    """The rule that routes obey is charged, not that of XY; verifier, search state and bound say the same."""
    problem = some_problem(3)
    core, values = np.arange(6), []
    for rule in ("xy", "west-first", "WS"):
        held = replace(
            problem, turns=turn_set(rule, problem.machine), terms=RewardTerms(hops=0.5, faults=0.25)
        )
        values.append(objective_value(held, core))
        assert walked_objective(held, core) == pytest.approx(values[-1], rel=1e-12)
        state = build(held, core)
        reset(state)
        assert value(state) == pytest.approx(values[-1], rel=1e-12)
        for bound in exchange_bounds(held, BoundContext(seconds=0.1, core=core)):
            assert bound.value <= values[-1] and check_bound(held, bound, core).ok
    assert values[0] == objective_value(replace(problem, terms=held.terms), core) > values[1] > values[2]


@FAST
@given(ref.machines(faults=True), ref.graphs(), SEED, st.sampled_from([None, "xy", "WS,EN", "odd-even"]))
def test_verifier_and_evaluator_agree(machine, graph, seed, rule) -> None:
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    turns = turn_set(rule, machine) if rule else None
    for terms in (RewardTerms(), RewardTerms(0.5, 2.0, 0.3, hops=0.5, faults=3.0)):
        found = walked_reward(BetweenCores(graph, machine, core), machine, terms, turns)
        assert found == pytest.approx(reward_loss(graph, machine, core, terms, turns), rel=1e-12)


def test_terms_that_users_add() -> None:
    """A message over two links along a row, one round a corner: three hops, and one has a single shortest route."""
    graph = LogicGraph.from_edges(3, [0, 0], [1, 2], [2.0, 5.0])
    board, core = Machine("board", (1, 1), (2, 3)), np.array([0, 2, 4])
    plain = reward_loss(graph, board, core)
    assert reward_loss(graph, board, core, RewardTerms(hops=0.5)) == plain + 0.5 * (2 * 2 + 5 * 2)
    assert reward_loss(graph, board, core, RewardTerms(faults=3.0)) == plain + 3 * 2
    ring, half = Machine("ring", (1, 1), (4, 4), torus=True), np.array([0, 2, 1])  # half round: two ways
    assert reward_loss(graph, ring, half, RewardTerms(faults=1.0)) == reward_loss(graph, ring, half) + 5


def own_terms(seed: int, cores: int) -> RewardTerms:
    """One term of each form."""
    rng = np.random.default_rng(seed)
    own = (
        OwnTerm("far", 0.7, "distance", rng.random(2)),
        OwnTerm("hot", 1.3, "cores", rng.random(cores)),
        OwnTerm("pair", 0.3, "pairs", 1.0 + rng.random((cores, cores))),
    )
    return RewardTerms(hops=0.25, own=own)


@pytest.mark.parametrize("torus", [False, True])
def test_terms_of_ones_own_by_their_definition(torus: bool) -> None:
    """Every edge pays its traffic times the price of its cores; evaluator, verifier and search state say the same."""
    for seed in range(6):
        problem = some_problem(seed, 9, (3, 4), torus)
        graph = LogicGraph.from_edges(9, *np.random.default_rng(seed).integers(0, 9, (2, 20)))  # no multicast
        terms, core = own_terms(seed, 12), np.random.default_rng(seed).integers(0, 12, 9)
        far, hot, pair = (term.prices for term in terms.own)
        expected = reward_loss(graph, problem.machine, core, replace(terms, own=()))
        for u, v, w in zip(graph.edge_source, graph.targets, graph.weights, strict=True):
            p, q = int(core[u]), int(core[v])
            if p != q:
                ways = [abs(p // 4 - q // 4), abs(p % 4 - q % 4)]
                steps = sum(
                    min(way, size - way) if torus else way for way, size in zip(ways, (3, 4), strict=True)
                )
                expected += w * (0.7 * far[min(steps, 2) - 1] + 1.3 * (hot[p] + hot[q]) + 0.3 * pair[p, q])
        held = replace(problem, graph=graph, terms=terms, node_limit=9)
        assert objective_value(held, core) == pytest.approx(expected, rel=1e-12)
        assert walked_objective(held, core) == pytest.approx(expected, rel=1e-12)


def test_terms_of_ones_own_are_searched_and_bounded() -> None:
    """The bound takes what they charge at least, and no certificate proves more; with multicast messages too."""
    for seed in range(3):
        plain = some_problem(seed, 5)
        problem = replace(plain, terms=own_terms(seed, 6))
        best, core = least(problem), np.arange(5)
        state = build(problem, core)
        reset(state)
        low = search(state, 0.1, 3000, core, value(state), new_rng(seed))
        assert search(state, 0.0, 500, core, low, new_rng(seed)) == pytest.approx(best, rel=1e-9)
        found = list(exchange_bounds(problem, BoundContext(seconds=0.2, core=core)))
        without = list(
            exchange_bounds(
                replace(problem, terms=RewardTerms(hops=0.25)), BoundContext(seconds=0.2, core=core)
            )
        )
        assert without[-1].value < found[-1].value <= best * (1 + 1e-9)
        for bound in found:
            assert check_bound(problem, bound, core).ok
            assert not check_bound(problem, replace(bound, value=bound.value * (1 + 1e-6))).ok
        assert problem.hash != replace(problem, terms=own_terms(seed + 1, 6)).hash


def test_it_is_the_reward_of_the_routing_problem() -> None:
    """One definition: under XY turns and the machine's own routes both give the same number."""
    problem = some_problem(3)
    core = np.arange(6)
    flows = flows_of(problem.graph, core, 6)
    assert flows.multicast
    stated = RoutingProblem(problem.machine, flows, ("reward",), turns=turn_set("xy", problem.machine))
    found = routing_value(stated, walked_routes(problem.machine, flows), np.zeros(24, np.int64), "reward")
    assert found == pytest.approx(objective_value(problem, core), rel=1e-12)


@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("room", [1, 4])
def test_moves_keep_the_state_exact(torus: bool, room: int) -> None:
    """What is kept equals the objective after every move; equal multicast flows count once."""
    rng = np.random.default_rng(room)
    for seed in range(6):
        terms = (RewardTerms(), RewardTerms(hops=0.5, faults=2.0), own_terms(seed, 12))[seed % 3]
        problem = replace(some_problem(seed, 9, (3, 4), torus), node_limit=room, terms=terms)
        state = build(problem, rng.integers(0, 12, 9))
        reset(state)
        for _ in range(40):
            u, q = int(rng.integers(9)), int(rng.integers(12))
            if state.room.core[u] != q:
                move(state, u, q)
            assert value(state) == pytest.approx(objective_value(problem, state.room.core), rel=1e-9)


def least(problem: MappingProblem) -> float:
    """The optimum by enumeration."""
    return min(
        objective_value(problem, np.array(core))
        for core in itertools.permutations(range(problem.cores), problem.n)
    )


@pytest.mark.parametrize("seed", range(2))
def test_search_finds_the_optimum_and_the_bound_stays_below(seed: int) -> None:
    """5 nodes on 2 x 3 cores; every certificate stands, and none proves more than it claims."""
    problem = some_problem(seed, 5)
    best = least(problem)
    state = build(problem, np.arange(5))
    reset(state)
    core = np.arange(5)
    low = search(state, 0.1, 3000, core, value(state), new_rng(seed))
    low = search(state, 0.0, 500, core, low, new_rng(seed))
    assert low == pytest.approx(best, rel=1e-9)
    assert objective_value(problem, core) == pytest.approx(low, rel=1e-9)
    bounds = list(exchange_bounds(problem, BoundContext(seconds=0.2, core=core)))
    assert bounds and 0 < bounds[-1].value <= best * (1 + 1e-9)
    for bound in bounds:
        assert check_bound(problem, bound, core).ok
        assert not check_bound(problem, replace(bound, value=bound.value * 1.1 + 1)).ok


def test_bounds_hold_with_dead_links_tori_weights_and_several_nodes_per_core() -> None:
    rng = np.random.default_rng(0)
    for seed in range(2):
        plain = some_problem(seed, 6, (3, 3), seed % 2 == 0)
        machine = replace(plain.machine, faulty_links=((0, 1), (1, 0)), link_weight=2.5)
        for problem in (
            replace(plain, machine=machine),
            replace(plain, node_limit=3),
            replace(plain, terms=RewardTerms(2.0, 0.5, 0.1, hops=1.5, faults=0.5)),
        ):
            bound = max((b.value for b in exchange_bounds(problem, BoundContext(seconds=0.1))), default=0.0)
            for _ in range(60):
                if problem.node_limit == 1:
                    core = rng.permutation(9)[:6]
                else:
                    core = rng.permutation(np.repeat(np.arange(9), 3))[:6]
                assert bound <= objective_value(problem, core) * (1 + 1e-9)


def test_terms_are_removed_and_weighted() -> None:
    problem = some_problem(1)
    core = np.arange(6)
    cc = objective_value(replace(problem, terms=RewardTerms(deadlock=0.0)), core)
    wide = objective_value(replace(problem, terms=RewardTerms(1.0, 0.0, 0.0)), core)
    tall = objective_value(replace(problem, terms=RewardTerms(0.0, 1.0, 0.0)), core)
    assert 0 < cc == wide + tall < objective_value(problem, core)
    assert replace(problem, terms=RewardTerms(deadlock=0.0)).hash != problem.hash
    with pytest.raises(InputError, match="weight vertical is -1"):
        RewardTerms(1.0, -1.0)


def test_prices_fall_with_channels_rise_with_turns_and_stay_finite() -> None:
    assert deadlock_factor(10, 20) < deadlock_factor(10, 10) < deadlock_factor(12, 10)
    assert deadlock_factor(10, 0) == 1.0
    assert deadlock_factor(10**9, 1) == deadlock_factor(10**8, 1) == math.exp(500)


def test_a_run_ends_with_a_mapping_that_verifies_and_a_certified_bound() -> None:
    """And another claim is refused."""
    problem = some_problem(2, 12, (3, 4))
    result = solve(problem, time_limit=4.0, seed=1, engines=["exchange", "reward"])
    assert result.core is not None and result.objective is not None and result.bound is not None
    assert 0 < result.bound <= result.objective
    claimed = {
        "objective_name": "reward", "objective": result.objective, "bound": result.bound, "gap": result.gap,
        "status": result.status, "scores": score(problem.graph, problem.machine, result.core),
    }  # fmt: skip
    told = verify(problem.graph, problem.machine, (), result.core, claimed, node_limit=1)
    assert told.ok, [c for c in told.checks if not c.ok]
    lie = {**claimed, "objective": result.objective * 0.99}
    assert not verify(problem.graph, problem.machine, (), result.core, lie, node_limit=1).ok


def test_what_it_refuses() -> None:
    graph = LogicGraph.from_edges(2, [0], [1])
    matrix = Machine("far", (1, 1), (1, 2), distance_matrix=np.array([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(InputError, match="objective reward on a machine given by a distance matrix"):
        MappingProblem(graph, matrix, "reward")
    with pytest.raises(InputError, match="objective reward with ceilings"):
        MappingProblem(graph, Machine("m", (1, 1), (1, 2)), "hops", ceilings=(("reward", 3.0),))
    with pytest.raises(InputError, match="combine reward with others"):
        objective_names("hops,reward")
    with pytest.raises(InputError, match="every chosen engine refuses"):
        solve(some_problem(0), time_limit=1.0, engines=["cpsat", "links"])


def test_the_command_weighs_the_terms_and_verify_recomputes_them(tmp_path: Path, call: Called) -> None:
    """What --reward states is in the report, and what verify counts with; other objectives have no such terms."""
    edges = tmp_path / "cast.csv"
    edges.write_text("source,target,weight\n0,1,2\n0,2,2\n3,1,3\n3,5,3\n4,5,1\n", "utf-8")
    common = ("map", edges, "--multicast", "--machine", "mesh:2x3", "--balance", "0", "-t", "1", "--plain")
    values = {}
    for terms in (None, "deadlock=0", "vertical=3", "hops=1,faults=2", "west-first"):
        out = tmp_path / str(terms)
        told = ("--prohibit-turns", terms) if terms == "west-first" else ("--reward", terms) if terms else ()
        code, _, said = call(*common, "--objective", "reward", *told, "--out", out)
        assert code in (0, 3), said
        report = json.loads((out / "report.json").read_text("utf-8"))
        assert report["inputs"]["reward"] == (terms if told[:1] == ("--reward",) else None)
        values[terms] = report["objective"]
        assert call("verify", out)[0] == 0
        report["inputs"]["reward"] = "horizontal=2"
        (out / "report.json").write_text(json.dumps(report), "utf-8")
        assert call("verify", out)[0] == 1
    assert values["deadlock=0"] < values["west-first"] < values[None] <= values["vertical=3"]
    assert values["hops=1,faults=2"] > values[None]
    out = tmp_path / "no"
    for told, text in (
        (("--reward", "deadlock=0"), "--objective reward"),
        (("--objective", "reward", "--reward", "stairs=1"), "no term 'stairs'"),
        (("--objective", "reward", "--reward", "vertical=-1"), "vertical is -1"),
    ):
        code, _, said = call(*common, *told, "--out", out)
        assert code == 2 and text in said and not out.exists()


def test_a_file_states_terms_of_ones_own(tmp_path: Path, call: Called) -> None:
    """And verify, gap and compare read it again; what is changed in it, or wrong, is said in one line."""
    edges, file, out = tmp_path / "net.csv", tmp_path / "terms.toml", tmp_path / "out"
    edges.write_text("source,target,weight\n0,1,2\n0,2,2\n3,1,3\n3,5,3\n4,5,1\n", "utf-8")
    good = "deadlock = 0\n[hot]\nweight = 2\ncores = [9, 0, 0, 0, 0, 9]\n[far]\ndistance = [0, 4]\n"
    file.write_text(good, "utf-8")
    common = (
        "map",
        edges,
        "--machine",
        "mesh:2x3",
        "--balance",
        "0",
        "-t",
        "1",
        "--plain",
        "--objective",
        "reward",
    )
    code, _, said = call(*common, "--reward", file, "--out", out)
    assert code in (0, 3), said
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["inputs"]["reward"] == str(file.resolve()) and report["bound"] > 0
    found = json.loads((out / "mapping.json").read_text("utf-8"))
    core = 3 * np.array(found["row"]) + np.array(found["col"])
    price = 0.0
    for u, v, w in ((0, 1, 2), (0, 2, 2), (3, 1, 3), (3, 5, 3), (4, 5, 1)):
        p, q = int(core[u]), int(core[v])
        lines = abs(p // 3 - q // 3) + abs(p % 3 - q % 3)
        price += w * (2 * 9 * ((p in (0, 5)) + (q in (0, 5))) + 4 * (lines > 1))
    graph = LogicGraph.from_edges(6, [0, 0, 3, 3, 4], [1, 2, 1, 5, 5], [2.0, 2.0, 3.0, 3.0, 1.0])
    exchanged = reward_loss(graph, Machine("m", (1, 1), (2, 3)), core, RewardTerms(deadlock=0.0))
    assert report["objective"] == pytest.approx(exchanged + price)
    assert call("verify", out, "--bound")[0] == 0
    assert call("gap", out, "-t", "1", "--out", tmp_path / "gap")[0] in (0, 3)
    file.write_text(good.replace("weight = 2", "weight = 3"), "utf-8")
    assert call("verify", out)[0] == 1
    for text, words in (
        ("[hot]\ncores = [1, 2]\n", "prices of shape 2"),
        ("[hot]\nweight = 1\n", "nothing beside its weight"),
        ("[hot]\ncores = [1, 1, 1, 1, 1, -1]\n", "no prices"),
        ("[hot]\npairs = [[1, 2], [3]]\n", "no prices"),
        ("[hot]\ncores = [1, 1, 1, 1, 1, '1']\n", "no prices"),
        ("[hops]\ndistance = [1]\n", "has a term of this name"),
        ("hot = 1\n", "no term 'hot'"),
        ("hops = '1'\n", "weight hops is 1"),
        ("[hot\n", "not TOML"),
    ):
        file.write_text(text, "utf-8")
        code, _, said = call(*common, "--reward", file, "--out", tmp_path / "no")
        assert code == 2 and words in said and said.count("\n") == 1 and not (tmp_path / "no").exists(), said
    code, _, said = call(*common, "--reward", tmp_path / "none.toml", "--out", tmp_path / "no")
    assert code == 2 and "none.toml" in said


def test_python_states_terms_as_the_command_does(tmp_path: Path) -> None:
    """Weights as text and a file; the answer is saved and verified with them, and ends where the definition says."""
    file = tmp_path / "terms.toml"
    file.write_text("deadlock = 0\n[far]\ndistance = [0, 4]\n", "utf-8")
    graph = LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0], [1.0, 2.0, 3.0, 4.0])
    for text, own in (
        ("deadlock=0,hops=2", ()),
        (str(file), (OwnTerm("far", 1.0, "distance", np.array([0.0, 4.0])),)),
    ):
        terms = RewardTerms(deadlock=0.0, hops=0.0 if own else 2.0, own=own)
        answer = nmsolve.map(graph, "mesh:2x2", objective="reward", reward=text, time_limit=2)
        assert answer.objective == pytest.approx(
            reward_loss(graph, nmsolve.machine("mesh:2x2"), answer.solution, terms)
        )
        answer.save(tmp_path / "out")
        assert nmsolve.verify(tmp_path / "out").ok
