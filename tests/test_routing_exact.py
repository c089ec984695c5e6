"""Exact routes and turns against all routes there are; bounds, their re-checks, impossible problems, the whole run."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from routing_support import every_answer, every_tree, joined, mesh, some_flows, trees

from nmsolve.check.routing.recheck import BadCertificate, check_routing_bound, counted, recheck_split_flow
from nmsolve.hw.reward import exchange_loss
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.order import allowed_turns, number_of, required_order, route_order
from nmsolve.hw.routing.values import routing_value
from nmsolve.model import clock
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends
from nmsolve.model.routing.check import routes_complaint, table_entries
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.stop import Stop
from nmsolve.model.turns import TurnSet, all_turns, possible_turns, turn_set
from nmsolve.solvers.routing.api import route
from nmsolve.solvers.routing.checker import MISSING, RoutingChecker
from nmsolve.solvers.routing.exact import RouteCpSat, RouteMip
from nmsolve.solvers.routing.fit import least_entries, require_routes
from nmsolve.solvers.routing.lp import FlowLp, flow_bound, split_flow
from nmsolve.solvers.search.context import LocalContext
from nmsolve.solvers.search.incumbent import Incumbent

ENGINES = {"cpsat": RouteCpSat, "mip": RouteMip}


def solved(stage: RoutingStage, engine, start: Routes | None = None) -> Incumbent:
    """One engine on one stage, in this process."""
    budget = Stop(60)
    incumbent = Incumbent(RoutingChecker(stage), budget)
    if start is not None:
        incumbent.offer("start", stage.pack(start, number_of(stage.problem, start)))
    context = LocalContext("it", incumbent, budget, seed=0, workers=1, deadline=clock.now() + 60)
    engine.run(stage, context)
    assert not [e for e in incumbent.events if e.kind == "error"], incumbent.events
    return incumbent


def some_problem(kind: str) -> RoutingProblem:
    """Small problems of every kind."""
    rng = np.random.default_rng(len(kind))
    if kind == "source":
        flows = Flows.of_pairs([0, 0, 0, 8], [4, 5, 8, 0], [3, 2, 4, 5])
        return RoutingProblem(mesh(3, 3), flows, ("max-link",), form="source")
    if kind == "destination":
        flows = Flows.of_pairs([0, 1, 3, 2, 7], [8, 8, 8, 6, 8], [3, 2, 4, 5, 2])
        return RoutingProblem(mesh(3, 3), flows, ("max-link",), form="destination")
    if kind == "multicast":
        return RoutingProblem(
            mesh(2, 3), trees([0, 5, 2], [[4, 5], [0, 1, 2], [3]], [3, 2, 2]), ("max-link",)
        )
    if kind == "detour":
        flows = Flows.of_pairs([0, 0, 3, 4], [2, 1, 5, 1], [3, 4, 2, 2])
        return RoutingProblem(mesh(2, 3), flows, ("max-link",), detour=2)
    if kind == "faults":
        machine = mesh(2, 3, faulty_links=((0, 1), (1, 0), (4, 5)))
        return RoutingProblem(
            machine, Flows.of_pairs([0, 0, 3, 4], [2, 1, 5, 2], [3, 4, 2, 2]), ("max-link",)
        )
    if kind == "turns":
        machine = mesh(3, 3)
        flows = some_flows(machine, rng, 5, 1)
        return RoutingProblem(machine, flows, ("max-link",), turns=turn_set("west-first", machine))
    if kind == "tables":
        flows = Flows.of_pairs([0, 0, 1, 3, 2], [8, 5, 6, 5, 6], [3, 3, 3, 3, 1])
        return RoutingProblem(mesh(3, 3), flows, ("max-link",), table_limit=3)
    if kind == "thirds":
        machine = mesh(2, 3)
        return RoutingProblem(
            machine, Flows.of_pairs([0, 3, 5], [5, 2, 0], [1 / 3, 2 / 3, 0.5]), ("max-link",)
        )
    if kind == "torus":
        machine = mesh(1, 5, torus=True)
        return RoutingProblem(machine, Flows.of_pairs([0, 1, 3], [2, 4, 1], [3, 2, 1]), ("max-link",))
    assert kind == "flow"
    machine = mesh(3, 3)
    return RoutingProblem(machine, some_flows(machine, rng, 5, 1), ("max-link",))


KINDS = (
    "flow",
    "source",
    "destination",
    "multicast",
    "detour",
    "faults",
    "turns",
    "tables",
    "thirds",
    "torus",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_optimum_is_the_best_of_all_routes(kind: str, engine: str) -> None:
    """Largest load, by both models, against every choice of routes."""
    problem = some_problem(kind)
    best = min(route_loads(problem.machine, problem.flows, routes).max() for routes in every_answer(problem))
    found = solved(RoutingStage(problem, "max-link"), ENGINES[engine]())
    assert found.objective == pytest.approx(best, abs=1e-6)
    assert found.optimal or (
        engine == "mip" and found.bound == pytest.approx(best, rel=1e-5)
    )  # a MIP has a tolerance


@pytest.mark.parametrize("engine", ENGINES)
def test_total_load_below_a_ceiling(engine: str) -> None:
    """The second objective with the first one held: the least sum of loads among routes that are good enough."""
    problem = some_problem("detour")
    loads = [route_loads(problem.machine, problem.flows, routes) for routes in every_answer(problem)]
    low = min(x.max() for x in loads)
    best = min(x.sum() for x in loads if x.max() <= low)
    found = solved(RoutingStage(problem, "total-link", (("max-link", low),)), ENGINES[engine]())
    assert (found.objective, found.optimal) == (best, True)


def fewest_prohibited(problem: RoutingProblem, most: int) -> int:
    """The fewest turns to forbid so that the others are acyclic and some legal routes remain, by trying all sets."""
    possible = np.argwhere(possible_turns(problem.machine))
    ends = link_ends(problem.machine)
    into = {(int(ends[k]), k % 4): k for k in range(len(ends)) if ends[k] >= 0}
    fixed = list(zip(*(x.tolist() for x in required_order(problem)), strict=True))
    answers = [set(zip(*(x.tolist() for x in route_order(r)), strict=True)) for r in every_answer(problem)]
    pairs = [(into[p, a], 4 * p + b) for p, a, b in possible.tolist()]
    for size in range(most + 1):
        for banned in itertools.combinations(range(len(pairs)), size):
            kept = [ab for k, ab in enumerate(pairs) if k not in banned]
            if not nx.is_directed_acyclic_graph(nx.DiGraph([*kept, *fixed])):
                continue
            if any(used.isdisjoint({pairs[k] for k in banned}) for used in answers):
                return size
    raise AssertionError("no set is small enough")


@pytest.mark.parametrize("engine", ENGINES)
def test_fewest_prohibited_turns(engine: str) -> None:
    """On a square of four cores with four flows round it, three turns must be prohibited: one way round two of them."""
    flows = Flows.of_pairs([0, 1, 3, 0, 2], [3, 2, 0, 3, 1], [1, 2, 3, 4, 1])
    problem = RoutingProblem(mesh(2, 2), flows, ("turns",))
    found = solved(RoutingStage(problem, "turns"), ENGINES[engine]())
    assert (found.objective, found.optimal) == (fewest_prohibited(problem, 4), True)
    routes, number = RoutingStage(problem, "turns").unpack(found.lifted)
    turns = allowed_turns(problem, number)
    assert turns.prohibited(problem.machine) == found.objective
    assert routes_complaint(replace(problem, turns=turns), routes) is None


def test_least_reward() -> None:
    """M1's reward with trees: the best ratio of prohibited turns to channels of trees, against all trees and turn sets."""
    problem = RoutingProblem(
        mesh(2, 2), trees([0, 3, 1], [[1, 3], [0, 2], [2]], [2, 1, 1]), ("reward",), detour=2
    )
    cc = exchange_loss(problem.machine, problem.flows)
    best = math.inf
    for routes in every_answer(problem):
        used = number_of(problem, routes)
        channels = np.diff(routes.indptr)[:2].sum()
        # four turns each way round one square: one each way must go; the routes may need more to go
        # all eight turns of the square are the eight directions
        best = min(best, cc * math.exp(prohibited_least(problem, routes) / channels))
        assert used is not None
    found = solved(RoutingStage(problem, "reward"), RouteCpSat())
    assert found.optimal
    assert found.objective == pytest.approx(best, rel=1e-9)


def prohibited_least(problem: RoutingProblem, routes: Routes) -> int:
    """Fewest turns to forbid beside given routes, by trying all sets."""
    possible = np.argwhere(possible_turns(problem.machine))
    ends = link_ends(problem.machine)
    into = {(int(ends[k]), k % 4): k for k in range(len(ends)) if ends[k] >= 0}
    pairs = [(into[p, a], 4 * p + b) for p, a, b in possible.tolist()]
    used = set(zip(*(x.tolist() for x in route_order(routes)), strict=True))
    for size in range(len(pairs)):
        for banned in itertools.combinations(range(len(pairs)), size):
            kept = [ab for k, ab in enumerate(pairs) if k not in banned or ab in used]
            if nx.is_directed_acyclic_graph(nx.DiGraph([*kept, *used])):
                return len(pairs) - len(kept)
    raise AssertionError


def test_rings_need_a_second_channel() -> None:
    """Every core of a ring of five sends two links on: one channel per link deadlocks, two do not."""
    machine = mesh(1, 5, torus=True)
    flows = Flows.of_pairs(range(5), [(p + 2) % 5 for p in range(5)], np.ones(5))
    one = solved(RoutingStage(RoutingProblem(machine, flows, ("max-link",)), "max-link"), RouteCpSat())
    assert one.infeasible
    problem = RoutingProblem(machine, flows, ("max-link",), channels=2)
    two = solved(RoutingStage(problem, "max-link"), RouteCpSat())
    assert (two.objective, two.optimal) == (2.0, True)


def test_the_checker_rejects_numbers_that_do_not_grow() -> None:
    """A solution is only as good as its certificate."""
    problem = some_problem("flow")
    stage = RoutingStage(problem, "max-link")
    routes = next(every_answer(problem))
    number = number_of(problem, routes)
    checker = RoutingChecker(stage)
    assert checker.complaint(stage.pack(routes, number)) is None
    a, b = (int(x[0]) for x in route_order(routes))
    number[[a, b]] = number[[b, a]]
    assert "do not grow" in checker.complaint(stage.pack(routes, number))
    number[[a, b]] = number[[b, a]]
    number[a] = -1
    assert "no number" in checker.complaint(stage.pack(routes, number))
    held = RoutingChecker(replace(stage, ceilings=(("total-link", 1.0),)))
    assert "the ceiling is 1" in held.complaint(stage.pack(routes, number_of(problem, routes)))


@pytest.mark.parametrize("seed", range(6))
def test_a_greedy_numbering_keeps_the_routes_and_is_acyclic(seed: int) -> None:
    """Numbers grow along routes and straight on; no square loses fewer than one turn each way; XY routes lose no more."""
    machine = mesh(4, 4)
    rng = np.random.default_rng(seed)
    flows = some_flows(machine, rng, 20, 3 if seed % 2 else 1)
    problem = RoutingProblem(machine, flows)
    for routes in itertools.islice(named(problem), 3):
        number = number_of(problem, routes)
        for before, after in (required_order(problem), route_order(routes)):
            assert (number[before] < number[after]).all()
        turns = allowed_turns(problem, number)
        assert turns.prohibited(machine) >= 2 * 9 == counted(problem, "turns")
        assert routing_value(problem, routes, number, "turns") == turns.prohibited(machine)
        assert routes_complaint(replace(problem, turns=turns), routes) is None


def named(problem: RoutingProblem):
    from nmsolve.solvers.routing.named import routes_by_rule

    for _, routes in routes_by_rule(problem):
        if number_of(problem, routes) is not None:
            yield routes


# bounds


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "turns"])
def test_split_flow_and_counting_bounds_are_below_the_optimum(kind: str) -> None:
    """Both bounds, recomputed from the certificate, against every choice of routes."""
    problem = some_problem(kind)
    loads = [route_loads(problem.machine, problem.flows, routes) for routes in every_answer(problem)]
    best, least = min(x.max() for x in loads), min(x.sum() for x in loads)
    certificate = split_flow(problem, 30.0)
    value = recheck_split_flow(problem, certificate)
    assert 0 < value <= Fraction(best) + Fraction(1, 10**9)
    assert flow_bound(problem, certificate).value <= best + 1e-9
    assert counted(problem, "max-link") <= Fraction(best) + Fraction(1, 10**9)
    assert counted(problem, "total-link") <= Fraction(least) + Fraction(1, 10**9)


def test_split_flow_values_that_are_known() -> None:
    """All to all on 4x4: 64 messages over 4 links between the halves. Transpose on 8x8: 2.2."""
    machine = mesh(4, 4)
    problem = RoutingProblem(machine, Flows.of_matrix(np.ones((16, 16))))
    assert float(recheck_split_flow(problem, split_flow(problem, 30.0))) == pytest.approx(16, abs=1e-5)
    p = np.arange(64)
    q = p % 8 * 8 + p // 8
    transpose = Flows.of_pairs(p[p != q], q[p != q], np.ones(56))
    problem = RoutingProblem(mesh(8, 8), transpose)
    assert float(recheck_split_flow(problem, split_flow(problem, 30.0))) == pytest.approx(2.2, abs=1e-5)


def test_shares_of_multicast_flows_are_what_makes_the_bound_tight() -> None:
    """One flow to all three others of a square needs three links; the longest of its shortest routes alone says two."""
    problem = RoutingProblem(mesh(2, 2), trees([0], [[1, 2, 3]], [6]), detour=2)
    certificate = {"length": [int(e >= 0) for e in link_ends(problem.machine)]}
    assert recheck_split_flow(problem, certificate) == Fraction(12, 8)
    certificate = split_flow(problem, 30.0)
    assert recheck_split_flow(problem, certificate) > Fraction(12, 8)


def test_bad_certificates_are_refused() -> None:
    """Wrong lengths, no lengths, and shares above the length prove nothing."""
    problem = RoutingProblem(mesh(2, 2), trees([0], [[1, 2, 3]], [6]), detour=2)
    good = split_flow(problem, 30.0)
    for change, words in (
        ({"length": good["length"][1:]}, "16 numbers"),
        ({"length": [0] * 16}, "all lengths are 0"),
        ({"length": [-1] * 16}, "whole number from 0"),
        ({"length": [0.5] * 16}, "whole number from 0"),
        ({"shares": {"0": [[(0, good["length"][0] + 1)], [], []]}}, "more than its length"),
        ({"shares": {"0": [[], []]}}, "another number of targets"),
        ({"shares": {"0": [[(99, 1)], [], []]}}, "a share is of link"),
    ):
        with pytest.raises(BadCertificate, match=words):
            recheck_split_flow(problem, {**good, **change})


def test_bounds_are_rechecked_and_claims_above_the_certificate_refused() -> None:
    """Every bound of a run stands; one unit more does not; a solver's word is called that."""
    problem = some_problem("flow")
    split = flow_bound(problem, split_flow(problem, 30.0))
    count = Bound(float(math.ceil(counted(problem, "max-link"))), "counting")
    for bound in (split, count):
        assert check_routing_bound(problem, "max-link", bound).ok
        assert (
            "proves only"
            in check_routing_bound(problem, "max-link", replace(bound, value=bound.value + 1)).text
        )
    assert not check_routing_bound(problem, "total-link", split).ok
    assert not check_routing_bound(problem, "max-link", replace(split, certificate={"length": []})).ok
    assert check_routing_bound(problem, "turns", Bound(8.0, "counting")).ok
    assert not check_routing_bound(problem, "turns", Bound(9.0, "counting")).ok
    word = Bound(9.0, "route-cpsat", certificate={"status": "optimal"})
    assert "rests on the word" in check_routing_bound(problem, "turns", word).text


def test_the_bound_engine_raises_what_its_certificate_proves() -> None:
    """Engine ``flow-lp``; it refuses sums."""
    problem = some_problem("flow")
    assert FlowLp().refuses(RoutingStage(problem, "total-link")) is not None
    found = solved(RoutingStage(problem, "max-link"), FlowLp())
    (bound,) = found.bounds
    assert bound.value == math.ceil(recheck_split_flow(problem, bound.certificate))


# what cannot be


def test_pairs_that_are_cut_off_are_named() -> None:
    """Dead links, turn sets that disconnect, turn sets that need detours."""
    cut = mesh(1, 3, faulty_links=((1, 2),))
    with pytest.raises(InputError, match="from core 0 to core 2"):
        route(RoutingProblem(cut, Flows.of_pairs([0], [2], [1.0])))
    machine = mesh(2, 2)
    none = TurnSet(all_turns(4).allowed & np.eye(4, dtype=bool))
    problem = RoutingProblem(machine, Flows.of_pairs([0, 0], [1, 3], [1.0, 1.0]), turns=none)
    with pytest.raises(InputError, match="disconnects core 0 from core 3"):
        route(problem)
    allowed = all_turns(6).allowed.copy()
    allowed[1, 0, 2] = allowed[3, 2, 0] = False  # neither round core 1 nor round core 3: past core 2
    problem = RoutingProblem(mesh(2, 3), Flows.of_pairs([0], [4], [1.0]), turns=TurnSet(allowed))
    with pytest.raises(
        InputError, match=r"from core 0 to core 4 .* has 4 links, 2 are allowed; .* at least 2"
    ):
        require_routes(problem)
    require_routes(replace(problem, detour=2))


def test_tables_that_are_too_small_say_what_is_missing_where() -> None:
    """By counting what starts and ends; and by search where the routes between need entries, too."""
    machine = mesh(3, 3)
    flows = Flows.of_pairs([0, 0, 2, 6], [8, 5, 0, 0], np.ones(4))
    for form, least in (("flow", 4), ("source", 3), ("destination", 2)):
        problem = RoutingProblem(machine, flows, form=form, table_limit=0)
        assert least_entries(problem)[0] == least
        with pytest.raises(InputError, match=rf"core 0 \({least} of at least {least}\)"):
            route(problem)
    # four flows meet in the middle of a plus: all must turn there
    plus = mesh(3, 3, faulty_links=tuple((a, b) for a, b in ring_links()))
    flows = Flows.of_pairs([1, 3, 5, 7], [3, 1, 7, 5], np.ones(4))
    problem = RoutingProblem(plus, flows, ("max-link",), table_limit=2, turns=all_turns(9))
    with pytest.raises(InputError, match=r"at least 2 entries are missing, .* core 4 \(2\)"):
        route(problem, time_limit=30, engines=["route-cpsat"])


def ring_links() -> list[tuple[int, int]]:
    """Links between neighbours on the rim of 3x3, both ways."""
    rim = [0, 1, 2, 5, 8, 7, 6, 3]
    pairs = [(a, b) for a, b in zip(rim, rim[1:] + rim[:1], strict=True)]
    return pairs + [(b, a) for a, b in pairs]


@pytest.mark.parametrize("form", ["flow", "source", "destination"])
def test_routes_within_tables_have_no_more_entries_than_the_model_says(form: str) -> None:
    """The least sum of missing entries, against every choice of routes."""
    problem = replace(some_problem("tables"), form=form, table_limit=None)
    best = min(
        np.maximum(0, table_entries(problem.machine, problem.flows, routes, form) - 1).sum()
        for routes in every_answer(problem)
    )
    for engine in ENGINES.values():
        found = solved(RoutingStage(problem, MISSING, entries=1), engine())
        assert (found.objective, found.optimal) == (best, True)


# the whole run


def test_a_run_proves_every_objective_in_its_turn() -> None:
    """Ten flows on 3x3: status, figures, turns and numbering agree, and every bound is met."""
    machine = mesh(3, 3)
    flows = some_flows(machine, np.random.default_rng(5), 10, 1)
    problem = RoutingProblem(machine, flows)
    result = route(problem, time_limit=60)
    assert result.status == "optimal" and result.stop_reason == "gap" and result.gap == 0
    assert all(result.bound_of(k) == result.scores[k] and result.proved(k) for k in problem.objective)
    best = min(
        route_loads(problem.machine, problem.flows, routes).max() for routes in every_answer_of(problem)
    )
    assert result.scores["max-link"] == best
    assert result.scores["total-link"] == float(counted(problem, "total-link"))
    assert routes_complaint(replace(problem, turns=result.solution.turns), result.solution.routes) is None
    before, after = route_order(result.solution.routes)
    assert (result.solution.numbering[before] < result.solution.numbering[after]).all()
    again = route(problem, time_limit=60, warm_start=result.solution.routes, engines=["route-cpsat"])
    assert again.scores == result.scores
    kept = route(
        problem, time_limit=1, warm_start=result.solution.routes, numbering=result.solution.numbering, engines=["named"]
    )  # fmt: skip
    assert kept.scores == result.scores  # the numbers decide how many turns are prohibited
    wrong = route(
        problem, time_limit=1, warm_start=result.solution.routes, numbering=0 * result.solution.numbering, engines=["named"]
    )  # fmt: skip
    assert wrong.scores["max-link"] == best


def every_answer_of(problem: RoutingProblem):
    """As :func:`every_answer`, flow by flow, dropping choices that are worse than XY on the way."""
    xy = next(named(problem))
    limit = route_loads(problem.machine, problem.flows, xy).max()
    size, found = 4 * problem.machine.size, []

    def deeper(f: int, chosen: list, load: np.ndarray) -> None:
        nonlocal limit
        if load.max(initial=0.0) > limit:
            return
        if f == problem.flows.count:
            routes = joined(problem, chosen)
            if number_of(problem, routes) is not None:
                limit = load.max()
                found.append(routes)
            return
        for links in every_tree(problem, f):
            extra = np.zeros(size)
            extra[list(links)] = problem.flows.rate[f]
            deeper(f + 1, [*chosen, links], load + extra)

    deeper(0, [], np.zeros(size))
    return found


def test_bad_arguments_are_one_line() -> None:
    """Unknown engines, routes of another problem, cyclic routes to start from."""
    machine = mesh(2, 2)
    problem = RoutingProblem(machine, Flows.of_pairs([0, 1, 3, 2], [3, 2, 0, 1], np.ones(4)))
    with pytest.raises(InputError, match="unknown engine 'magic'"):
        route(problem, engines=["magic"])
    with pytest.raises(InputError, match="the gap is 2"):
        route(problem, gap=2)
    ring = Routes.of_paths([[0, 6], [6, 13], [13, 11], [11, 0]])
    with pytest.raises(InputError, match="depend on each other in a cycle"):
        route(problem, warm_start=ring)


def test_no_flows_need_no_routes() -> None:
    """A mapping on one core."""
    problem = RoutingProblem(mesh(2, 2), Flows.of_pairs([], [], []))
    result = route(problem, time_limit=5)
    assert result.status == "optimal" and result.scores == {"max-link": 0, "total-link": 0, "turns": 2}
