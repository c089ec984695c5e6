"""Branch and bound with several nodes per core: equal to trying every mapping, and repeated by the checker's own search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exact_support import Recorder, optimum, random_graph

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.branch_bound import BranchBound
from nmsolve.solvers.mapping.branch_bound.engine import _packing
from nmsolve.solvers.mapping.branch_bound.packing_state import interchangeable
from nmsolve.solvers.mapping.branch_bound.packings import pack
from nmsolve.solvers.mapping.branch_bound.search import LIMIT, open_bound
from nmsolve.solvers.mapping.exact.data import exact_data
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT

FIGURES = {"message": Figure(1.7), "router": Figure(0.6), "link_x": Figure(3.0), "link_y": Figure(4.2)}
#: Boards with and without symmetries; with distances that are no metric, of one direction only, and between all cores alike.
BOARDS = {
    "square": ((2, 2), {}),
    "oblong": ((2, 3), {}),
    "line": ((1, 4), {}),
    "torus": ((1, 5), {"torus": True}),
    "faults": ((2, 3), {"faulty_cores": (4,), "taken_cores": (0,)}),
    "dead-link": ((2, 2), {"faulty_links": ((0, 1),)}),
    "thirds": ((2, 2), {"link_weight": 1 / 3}),
    "unlike": ((2, 2), {}),
    "matrix": ((1, 4), {}),
}


def random_machine(board: str, rng: np.random.Generator, capacity: dict[str, int]) -> Machine:
    """A machine of one of the ``BOARDS``; where cores are unlike, one holds more than the others."""
    shape, more = BOARDS[board]
    size = shape[0] * shape[1]
    if board == "matrix":
        more = {"distance_matrix": rng.integers(0, 6, (size, size)).astype(float)}
    if board == "unlike" and capacity:
        name = next(iter(capacity))
        more = {"core_capacity": {name: capacity[name] + 2 * (np.arange(size) == 1)}}
    return Machine(board, (1, 1), shape, capacity=capacity, **more)  # type: ignore[arg-type]


def random_rules(n: int, cores: int, rng: np.random.Generator) -> tuple[SideConstraint, ...]:
    """Some of: a pin, a region, forbidden cores, nodes apart."""
    node, core = rng.permutation(n).tolist(), rng.permutation(cores).tolist()
    rules = (
        SideConstraint("a", "pin", (node[0],), (core[0],)),
        SideConstraint("b", "region", tuple(node[1:3]), tuple(core[:2])),
        SideConstraint("c", "forbid", (node[3],), tuple(core[1:3])),
        SideConstraint("d", "apart", tuple(node[:3])),
    )
    return tuple(rule for rule in rules if rng.random() < 0.3)


def random_problem(board: str, seed: int) -> MappingProblem:
    """Five to seven nodes with no, one or two resources, or a limit of nodes; hops, cut or energy."""
    rng = np.random.default_rng([sorted(BOARDS).index(board), seed])
    kinds, n = int(rng.integers(0, 3)), int(rng.integers(5, 8 if board not in ("oblong", "torus") else 7))
    names = ("neurons", "synapses")[:kinds]
    more = {"resources": names, "sizes": rng.integers(0, 5, (n, kinds))} if kinds else {}
    machine = random_machine(board, rng, {name: int(rng.integers(6, 11)) for name in names})
    objective = str(rng.choice(["hops", "hops", "cut", "energy"]))
    if objective == "energy" and board != "matrix":
        machine = replace(machine, energy=FIGURES)
    if board == "matrix":
        objective = "hops"
    most = None if kinds and rng.random() < 0.5 else int(rng.integers(2, 4))
    rules = random_rules(n, machine.size, rng)
    return MappingProblem(random_graph(rng, n, **more), machine, objective, rules, most)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("board", sorted(BOARDS))
def test_agrees_with_trying_every_mapping(board: str, seed: int) -> None:
    """The optimum is found and proved, or the problem is shown to be impossible."""
    problem = random_problem(board, seed)
    best, context = optimum(problem), Recorder(problem)
    BranchBound().run(problem, context)
    assert context.value == (pytest.approx(best, rel=1e-12) if np.isfinite(best) else np.inf)
    assert context.low == (pytest.approx(best, rel=1e-5) if np.isfinite(best) else np.inf)
    assert np.isinf(best) or context.low <= best * (1 + 1e-12)
    assert context.bounds[-1].certificate["status"] == ("optimal" if np.isfinite(best) else "infeasible")


def test_the_random_problems_hold_what_they_should() -> None:
    """The test above would say little if few problems had an answer, or none had a rule."""
    problems = [random_problem(board, seed) for board in BOARDS for seed in range(12)]
    several = [p for p in problems if not p.one_per_core]
    assert len(several) >= 90 and sum(p.objective == "cut" for p in several) >= 10
    assert {c.kind for p in several for c in p.constraints} == {"pin", "region", "forbid", "apart"}
    assert sum(not p.alike for p in several) >= 5


@pytest.mark.parametrize("seed", range(6))
def test_the_checker_searches_again_and_believes_nothing(seed: int) -> None:
    """The claim of a run is recomputed, one step more is refused, whatever the certificate says."""
    problem = random_problem("oblong" if seed % 2 else "line", seed)
    problem = replace(problem, objective="hops", node_limit=problem.node_limit or 3, constraints=())
    context = Recorder(problem)
    BranchBound().run(problem, context)
    claim = context.bounds[-1]
    found = check_bound(problem, claim, context.best)
    assert found.ok and not found.trusted and found.value == context.value
    for forged in (claim.certificate, {"status": "optimal"}, {"nodes": 1}):
        above = Bound(claim.value + 1, "branch-bound", certificate=forged)
        assert not check_bound(problem, above).ok


def ring(n: int) -> LogicGraph:
    """A ring with chords, whole weights."""
    at = np.arange(n)
    return LogicGraph.from_edges(
        n, np.concatenate([at, at]), np.concatenate([(at + 1) % n, (at + 4) % n]), 1.0 + np.arange(2 * n) % 5
    )


def test_open_bound_rises_to_the_optimum_and_never_above() -> None:
    """After every partial mapping the bound of what is left is valid and never falls."""
    problem = MappingProblem(ring(10), Machine("m", (1, 1), (2, 3)), node_limit=2)
    final = Recorder(problem)
    BranchBound().run(problem, final)
    packing, low = _packing(exact_data(problem), OBJECTIVE_LIMIT), 0
    while not pack(packing, 1):
        assert low <= open_bound(packing) <= final.value
        low = open_bound(packing)
    assert int(packing.state[LIMIT]) == 2 * final.value


def test_an_optimal_start_is_proved_without_a_new_mapping() -> None:
    problem = MappingProblem(ring(10), Machine("m", (1, 1), (2, 2)), "cut", node_limit=3)
    first = Recorder(problem)
    BranchBound().run(problem, first)
    again = Recorder(problem, start=first.best)
    BranchBound().run(problem, again)
    assert again.offers == [] and again.low == first.value


def test_stopping_leaves_a_valid_bound_and_a_later_run_ends_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stopped after the first slice, the bound is above 0 and no higher than the optimum; the claim goes with the next run."""
    monkeypatch.setattr("nmsolve.solvers.mapping.branch_bound.engine._SLICE", 1)
    problem = MappingProblem(ring(16), Machine("m", (1, 1), (2, 4)), node_limit=3)
    context = Recorder(problem)

    def raise_and_stop(bound: Bound) -> bool:
        context.stop = True
        return Recorder.raise_bound(context, bound)

    context.raise_bound = raise_and_stop  # type: ignore[method-assign]
    BranchBound().run(problem, context)
    assert context.bounds[-1].certificate["status"] == "running"
    monkeypatch.undo()
    later, engine = Recorder(problem), BranchBound()
    engine.resume(context.bounds[-1])
    engine.run(problem, later)
    assert 0 < context.low < later.low == later.value == objective_value(problem, later.best)


def test_refusals_name_the_reason() -> None:
    """More than 24 nodes, limits on axon tables, route trees, ceilings."""
    board = Machine("m", (1, 1), (2, 2))
    said = BranchBound().refuses
    assert said(MappingProblem(ring(24), board, node_limit=6)) is None
    assert "25 nodes with several per core, the limit is 24" in str(said(MappingProblem(ring(25), board)))
    limited = replace(board, capacity={"axons_in": 3})
    assert "axon tables" in str(said(MappingProblem(ring(8), limited, node_limit=3)))
    net = random_graph(np.random.default_rng(0), 6, multicast=True)
    assert "route tree" in str(said(MappingProblem(net, board, "multicast-hops", node_limit=2)))
    ceiling = MappingProblem(ring(8), board, "hops", (), 3, ceilings=(("cut", 90.0),))
    assert "ceilings" in str(said(ceiling))


def test_cores_are_interchangeable_where_nothing_tells_them_apart() -> None:
    """All of a cut, none of a line but where its ends are told apart from the middle; not those with other capacities."""
    flat = 1 - np.eye(4, dtype=np.int64)
    same = np.ones((2, 4), np.int64)
    assert interchangeable(flat, same).tolist() == [0, 0, 0, 0]
    same[1, 2] = 5
    assert interchangeable(flat, same).tolist() == [0, 0, 2, 0]
    at = np.arange(4)
    assert interchangeable(np.abs(at[:, None] - at), np.ones((1, 4))).tolist() == [0, 1, 2, 3]
