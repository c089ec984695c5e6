"""The exact engines as the search sees them: starts, bounds, infeasibility, stopping, refusing."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from exact_support import Recorder, optimum, random_graph, small_problem

import nmsolve
from nmsolve.hw.scores import objective_value
from nmsolve.model.errors import BackendError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.branch_bound import BranchBound
from nmsolve.solvers.mapping.exact import model as cpsat_model
from nmsolve.solvers.mapping.exact.data import exact_data
from nmsolve.solvers.mapping.exact.model import CpSat, Mip
from nmsolve.solvers.mapping.exact.symmetry import board_symmetry, cores_alike, first_come
from nmsolve.solvers.search.scaling import to_whole, whole_factor

ENGINES = [CpSat, Mip]


def square(seed: int = 0, n: int = 5, limit: int = 1, **machine: object) -> MappingProblem:
    """``n`` dense nodes on a 3x3 mesh."""
    graph = random_graph(np.random.default_rng(seed), n)
    return MappingProblem(graph, Machine("m", (1, 1), (3, 3), **machine), node_limit=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_impossible_problem_is_a_bound_of_infinity(engine: type) -> None:
    """Two apart nodes that may only use one core: bound inf, certificate status ``infeasible``, no offer."""
    rules = (SideConstraint("a", "apart", (0, 1)), SideConstraint("b", "region", (0, 1), (4,)))
    context = Recorder(MappingProblem(random_graph(np.random.default_rng(0), 4), Machine("m", (1, 1), (3, 3)),
                                      "hops", rules, 2))  # fmt: skip
    engine().run(context.problem, context)
    assert context.low == np.inf
    assert context.bounds[-1].certificate["status"] == "infeasible"
    assert context.offers == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ceiling_that_no_choice_can_keep_is_infeasible(engine: type) -> None:
    """Both nodes are pinned, so the cut is fixed at 1 and a ceiling of 0 is a row without variables."""
    rules = (SideConstraint("a", "pin", (0,), (0,)), SideConstraint("b", "pin", (1,), (1,)))
    graph = LogicGraph.from_edges(2, [0], [1])
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 2)), "hops", rules, 1, ceilings=(("cut", 0.0),))
    context = Recorder(problem)
    engine().run(problem, context)
    assert context.low == np.inf and not context.offers


@pytest.mark.parametrize("engine", ENGINES)
def test_optimal_start_and_bound_are_taken_up(engine: type) -> None:
    """A start outside the symmetry rows is reflected into them; a tight bound row does no harm."""
    problem = square(1, 4)
    best = optimum(problem)
    first = Recorder(problem)
    engine().run(problem, first)
    assert first.best is not None
    corner = board_symmetry(exact_data(problem))
    assert corner is not None
    for g in corner.maps:
        context = Recorder(problem, start=g[first.best], bound=best)
        engine().run(problem, context)
        assert context.value == context.low == best


@pytest.mark.parametrize("engine", ENGINES)
def test_stop_is_obeyed_and_unknown_claims_nothing(engine: type) -> None:
    """With no time left the engine returns at once and raises no bound above the truth."""
    problem = square(2, 9)
    context = Recorder(problem)
    context.stop = True
    engine().run(problem, context)
    assert all(b.value <= objective_value(problem, np.arange(9)) for b in context.bounds)


@pytest.mark.parametrize("weight", [2.0**-40 / 3, 1e-5, 1.0, 1e12 / 3])
@pytest.mark.parametrize("objective", ["hops", "max-link"])
def test_a_mip_bound_is_as_tight_for_tiny_weights_and_stated_at_the_end(
    weight: float, objective: str
) -> None:
    """Absolute tolerances do not eat tiny weights nor cut off large ones; only what HiGHS says when it has ended is told."""
    problem = square(4, 4)
    graph = replace(problem.graph, weights=problem.graph.weights * weight, rate=problem.graph.rate * weight)
    problem = replace(problem, graph=graph, objective=objective)
    best = min(objective_value(problem, np.array(core)) for core in permutations(range(9), 4))
    context = Recorder(problem)
    Mip().run(problem, context)
    assert [b.certificate["status"] for b in context.bounds] == ["optimal"]
    assert context.value == pytest.approx(best, rel=1e-9)
    # round_up takes 1e-9 off every number, which is nothing beside the tolerance of the solver except for the tiniest
    assert best * (1 - 2e-6) - 1.1e-9 <= context.low <= best


@pytest.mark.parametrize("engine", ENGINES)
def test_too_large_and_unmodelled_problems_are_refused(engine: type) -> None:
    """The refusal names the limit; route trees on a torus are not stated."""
    rng = np.random.default_rng(0)
    big = MappingProblem(random_graph(rng, 200), Machine("m", (1, 1), (16, 16)), node_limit=1)
    assert "51200 pairs of node and core" in engine().refuses(big)
    long = MappingProblem(random_graph(rng, 2), Machine("m", (1, 1), (40, 40)), node_limit=1)
    assert "1600 cores" in engine().refuses(long)
    dense = MappingProblem(random_graph(rng, 140), Machine("m", (1, 1), (10, 14)), node_limit=1)
    assert "terms of distance" in engine().refuses(dense)
    torus = Machine("t", (1, 1), (3, 3), torus=True)
    routed = MappingProblem(random_graph(rng, 4, multicast=True), torus, "multicast-hops", node_limit=1)
    assert "torus" in engine().refuses(routed)
    assert engine().refuses(replace(routed, objective="connectivity")) is None


def test_symmetry_is_found_as_far_as_it_holds() -> None:
    """Octant on a square, quadrant on an oblong, one core on a torus, half with a fault, none with a pin."""
    cores = {
        "square": square(),
        "oblong": MappingProblem(square().graph, Machine("m", (1, 1), (2, 4)), node_limit=1),
        "torus": MappingProblem(square().graph, Machine("m", (1, 1), (3, 3), torus=True), node_limit=1),
        "fault": square(faulty_cores=(1,)),
    }
    found = {k: board_symmetry(exact_data(p)) for k, p in cores.items()}
    left = {k: None if s is None else s.cores for k, s in found.items()}
    assert left == {"square": (0, 1, 4), "oblong": (0, 1), "torus": (0,), "fault": (0, 1, 3, 4, 6, 7)}
    pinned = replace(square(), constraints=(SideConstraint("a", "pin", (0,), (1,)),))
    kept = board_symmetry(exact_data(pinned))
    assert kept is not None and len(kept.maps) == 2  # the mirror through the pinned column
    corner = replace(square(), constraints=(SideConstraint("a", "region", (0,), (1, 3, 0, 2)),))
    assert board_symmetry(exact_data(corner)) is None
    netted = replace(square(), graph=random_graph(np.random.default_rng(0), 5, multicast=True))
    routed = board_symmetry(exact_data(replace(netted, objective="multicast-hops")))
    assert routed is not None and len(routed.maps) == 4  # routes go along rows first: no transpose


def test_reflection_keeps_the_objective_and_enters_the_part() -> None:
    """Every mapping is moved to an equally good one that the symmetry row allows."""
    for problem in (square(3, 6), MappingProblem(square().graph, Machine("m", (1, 1), (3, 4), torus=True),
                                                 node_limit=1)):  # fmt: skip
        data = exact_data(problem)
        symmetry = board_symmetry(data)
        assert symmetry is not None
        rng = np.random.default_rng(4)
        for _ in range(30):
            core = rng.permutation(problem.cores)[: problem.n]
            moved = symmetry.reflect(core)
            assert int(moved[symmetry.node]) in symmetry.cores
            assert objective_value(problem, moved) == objective_value(problem, core)


def test_equal_cores_are_renumbered_in_order_of_use() -> None:
    """For the cut, cores may be renumbered: node u ends on one of the first u + 1 usable cores."""
    machine = Machine("m", (1, 1), (2, 3), faulty_cores=(1,))
    problem = MappingProblem(random_graph(np.random.default_rng(0), 6), machine, "cut", node_limit=2)
    data = exact_data(problem)
    assert cores_alike(data)
    core = np.array([5, 5, 0, 3, 0, 2])
    assert first_come(data, core).tolist() == [0, 0, 2, 3, 2, 4]
    assert not cores_alike(exact_data(replace(problem, objective="hops")))


@pytest.mark.parametrize("kind", ["spare-cores", "several-per-core", "cut", "torus", "multicast-hops"])
def test_symmetry_rows_keep_an_optimum(kind: str) -> None:
    """The model with and without symmetry rows has the same least objective, also when a start is known."""
    from ortools.sat.python import cp_model

    problem = small_problem(kind, 11)
    start = np.repeat(np.arange(problem.cores), 2)[: problem.n]
    if problem.one_per_core:
        start = np.arange(problem.n)
    values = []
    for broken, known in ((False, None), (True, None), (True, start)):
        built = cpsat_model.build(problem, start=known, break_symmetry=broken)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.solve(built.model) == cp_model.OPTIMAL
        values.append(solver.objective_value)
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize("kind", ["several-per-core", "torus", "matrix", "cut", "multicast-hops"])
def test_hint_is_complete_and_feasible(kind: str) -> None:
    """Fixing every variable to its hint is feasible and costs what the start costs."""
    from ortools.sat.python import cp_model

    problem = small_problem(kind, 12)
    slots = np.repeat(np.flatnonzero(problem.machine.usable), 1 if problem.one_per_core else 2)
    start = slots[: problem.n]
    built = cpsat_model.build(problem, start=start)
    hinted = built.model.proto.solution_hint
    assert len(hinted.vars) == len(built.model.proto.variables)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(built.model) == cp_model.OPTIMAL
    assert solver.objective_value == built.data.value(start)


def test_other_solvers_go_through_pyomo() -> None:
    """A solver Pyomo finds by name gives the same answer; an unknown one is a back end error."""
    problem = square(6, 4)
    context = Recorder(problem)
    Mip("appsi_highs").run(problem, context)
    assert context.value == context.low == optimum(problem)
    assert context.bounds[-1].certificate["solver"] == "appsi_highs"
    with pytest.raises(BackendError, match="no-such-solver"):
        Mip("no-such-solver").run(problem, Recorder(problem))


EDGES = {
    "one node": MappingProblem(LogicGraph.from_edges(1, [], []), Machine("m", (1, 1), (2, 2)), node_limit=1),
    "no edge": MappingProblem(LogicGraph.from_edges(3, [], []), Machine("m", (1, 1), (2, 2)), node_limit=1),
    "no weight": MappingProblem(LogicGraph.from_edges(2, [0], [1], [0.0]), Machine("m", (1, 1), (1, 2)), node_limit=1),
    "no capacity": MappingProblem(LogicGraph.from_edges(3, [0, 1], [1, 2]), Machine("m", (1, 1), (2, 2))),
    "one core": MappingProblem(LogicGraph.from_edges(3, [0], [2]), Machine("m", (1, 1), (1, 1)), node_limit=3),
    "constant cost": MappingProblem(
        LogicGraph.from_edges(3, [0, 1], [1, 2], [2.0, 3.0]), Machine("m", (1, 1), (2, 2)), "cut", node_limit=1
    ),
    "no room": MappingProblem(LogicGraph.from_edges(2, [0], [1]), Machine("m", (1, 1), (1, 1)), node_limit=1),
    "nowhere": MappingProblem(
        LogicGraph.from_edges(2, [0], [1]), Machine("m", (1, 1), (1, 2)), "hops", (SideConstraint("a", "region", (0,)),)
    ),
    "large weights": MappingProblem(
        LogicGraph.from_edges(3, [0, 1], [1, 2], [1e15, 1e15 + 1]), Machine("m", (1, 1), (1, 3)), node_limit=1
    ),
    "mixed weights": MappingProblem(
        LogicGraph.from_edges(3, [0, 1], [1, 2], [1e-9, 1e9]), Machine("m", (1, 1), (1, 3)), node_limit=1
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", [*ENGINES, BranchBound])
@pytest.mark.parametrize("case", EDGES)
def test_corner_cases(case: str, engine: type) -> None:
    """Nothing to decide, nothing to pay, no room, and weights beyond whole numbers: right answer, valid bound."""
    problem = EDGES[case]
    if engine().refuses(problem) is not None:
        assert engine is BranchBound
        return
    best = optimum(problem)
    context = Recorder(problem)
    engine().run(problem, context)
    assert context.value == best
    assert best * (1 - 1e-5) <= context.low <= best


def test_bounds_are_reported_while_searching() -> None:
    """CP-SAT tells rising bounds before the end, none above the optimum (with a constant in the objective)."""
    figures = {"message": Figure(3.0), "link_x": Figure(1.0), "link_y": Figure(2.0), "router": Figure(1.0)}
    problem = replace(square(2, 6, energy=figures), objective="energy")
    proof, context = Recorder(problem), Recorder(problem)
    BranchBound().run(problem, proof)
    CpSat().run(problem, context)
    assert context.low == context.value == proof.value
    running = [b.value for b in context.bounds if b.certificate["status"] == "running"]
    assert len(running) > 1 and running == sorted(running) and running[-1] <= proof.value


def test_start_values_are_the_pyomo_values() -> None:
    """The start handed to other solvers is the reflected one."""
    problem = square(7, 4)
    built = cpsat_model.build(problem, cpsat=False, start=np.array([8, 7, 6, 5]))
    symmetry = board_symmetry(built.data)
    assert symmetry is not None
    values = np.array([[x.value for x in xs] for xs in built.v.x])
    assert (values.sum(axis=1) == 1).all() and int(values[symmetry.node].argmax()) in symmetry.cores


def test_whole_numbers_are_found_and_rounding_goes_down() -> None:
    """Decimal and simple fractions become whole exactly; others are rounded down below the limit."""
    assert whole_factor(np.array([3.0, 0.0]), 100) == (1.0, True)
    assert whole_factor(np.array([3.0, 4.2]), 1e6) == (10.0, True)
    assert whole_factor(np.array([1 / 3, 0.5]), 1e6) == (6.0, True)
    assert whole_factor(np.zeros(0), 10) == (1.0, True)
    values = np.array([np.pi, np.e, 1e-3])
    factor, exact = whole_factor(values, 2.0**20)
    whole = to_whole(values, factor, exact)
    assert not exact and whole.max() <= 2**20
    assert (whole <= values * factor).all() and (whole > values * factor - 1).all()
    factor, exact = whole_factor(np.array([1e17, 3.0]), 2.0**30)
    assert not exact and 1e17 * factor <= 2**30


def test_a_mapping_refutes_a_solver_that_says_there_is_none(tmp_path: Path) -> None:
    """CP-SAT 9.15 alone calls this problem infeasible; coefficients of its model are near 10^13."""
    (tmp_path / "net.json").write_text(
        '{"nmsolve": 1, "form": "columns", "directed": true, "graph": {"name": "net"}, "nodes": {"n": 2, "sizes": '
        '{"neurons": [1, 1]}}, "nets": {"source": [0, 0, 1, 1], "target": [1, 1], "indptr": [0, 1, 2, 2, 2], "weight": '
        '[2.5246268066167152, 0.7417164113504432], "rate": [2.5246268066167152, 1.6413111216808751, 0, 0], "multicast": '
        "[false, true, false, true]}}"
    )
    (tmp_path / "machine.toml").write_text(
        "chips = [1, 2]\ncores = [3, 1]\nlink_weight = 1\ncrossing_weight = 3\n[energy]\nmessage = 111\nlink_x = 3\n"
        "link_y = 4.2\n[figures]\n" + "".join(
            f"{name} = {{ value = {value}, unit = '{unit}' }}\n"
            for name, value, unit in (
                ("latency_neuron_access", 1, "ns"), ("latency_neuron_update", 0, "ns"), ("latency_spike_out", 2, "ns"),
                ("latency_axon_out", 3, "ns"), ("latency_axon_in", 1, "ns"), ("latency_synaptic_op", 0.5, "ns"),
                ("latency_link_message", 8, "ns"), ("latency_barrier", 0, "ns"), ("receives_while_sending", 1.0, ""),
            )
        )
    )  # fmt: skip
    answer = nmsolve.map(
        tmp_path / "net.json",
        tmp_path / "machine.toml",
        objective="step-time",
        engines="cpsat",
        time_limit=10,
    )
    assert answer.objective == pytest.approx(33.3275, abs=1e-4) and answer.bound in (None, answer.objective)
