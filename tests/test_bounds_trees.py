"""Bounds on messages with many targets: valid on every kind of machine, re-checkable, better than equal weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from brute_support import costs_of
from test_bounds_valid import KINDS, _random_machine, all_mappings, optimum

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.bounds import operator
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.model.bound import Bound
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds import eigen, trees_parts
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound
from nmsolve.solvers.mapping.bounds.parts import parts_bounds, refuses_parts
from nmsolve.solvers.mapping.bounds.trees_parts import refuses_tree_parts, tree_parts_bounds


def random_nets(seed: int) -> MappingProblem:
    """A tiny problem with messages of many targets; the kind of machine follows the seed."""
    rng = np.random.default_rng(1000 + seed)
    kind = KINDS[seed % len(KINDS)]
    rows, cols = ((2, 2), (1, 4), (2, 3), (1, 3))[rng.integers(4)]
    usable, room = rows * cols - (kind == "faulty core"), int(rng.integers(2, 4))
    largest = min(usable * room, 6 if usable <= 4 else 5)
    n = int(rng.integers(max(3, largest - 2), largest + 1))
    rate = rng.integers(1, 9, n).astype(float) if rng.random() < 0.6 else rng.random(n) * 4
    sizes = rng.integers(1, 4, (n, 1)) if rng.random() < 0.3 else None
    if rng.random() < 0.4:
        length = rng.integers(1, n + 1, n)
        pins = np.concatenate([rng.permutation(n)[:k] for k in length])
        graph = LogicGraph.from_nets(n, np.concatenate([[0], np.cumsum(length)]), pins, rate, sizes=sizes)
    else:
        some = rng.random((n, n)) < rng.choice([0.3, 0.6, 0.9])
        if rng.random() < 0.4:
            some |= some.T
        source, target = np.nonzero(some & ~np.eye(n, dtype=bool))
        multicast = rng.random(n) < rng.choice([0.5, 1.0])
        graph = LogicGraph.from_edges(n, source, target, multicast=multicast, rate=rate, sizes=sizes)
    objective = str(rng.choice(["multicast-hops", "connectivity", "energy"]))
    capacity = {"neurons": int(graph.sizes.max()) * room} if graph.sizes.max() > 1 else {}
    machine = _random_machine(rng, kind, rows, cols, capacity)
    return MappingProblem(graph, machine, objective, (), None if capacity else room)


def last(problem: MappingProblem, rounds: int, upper: float = np.inf) -> Bound:
    """The best tree-parts bound after this number of steps."""
    none = Bound(0.0, "tree-parts", "full", {"method": "tree-parts"})
    return [none, *tree_parts_bounds(problem, BoundContext(lambda: upper), rounds)][-1]


def test_never_above_the_optimum_and_confirmed_after_json() -> None:
    """184 random problems; old bounds on the same ones, too."""
    useful = 0
    for seed in range(184):
        problem = random_nets(seed)
        if refuses_tree_parts(problem) is not None:
            continue
        best = optimum(problem)
        found = [last(problem, 8, best), fan_out_bound(problem)]
        if refuses_parts(problem) is None:
            found += list(parts_bounds(problem, rounds=3))[-1:]
        useful += found[0].value > 0
        back = certificates_from_json(certificates_to_json(problem, found))
        for bound, read in zip(found, back, strict=True):
            assert bound.value <= best * (1 + 1e-9) + 1e-9, (seed, problem.objective, bound.method)
            check = check_bound(problem, read)
            assert check.ok, (seed, bound.method, check.text)
    assert useful > 55


def test_begun_at_a_mapping_it_is_never_above_the_optimum() -> None:
    """The best mapping, or a random one, of 150 random problems: by the bundle of cuts, which is near the optimum soon."""
    useful = []
    for seed in range(200, 350):
        problem = random_nets(seed)
        if refuses_tree_parts(problem) is not None:
            continue
        maps = all_mappings(problem)
        cost = costs_of(problem, maps)
        core = maps[int(cost.argmin()) if seed % 2 else seed % len(maps)]
        found = list(tree_parts_bounds(problem, BoundContext(core=core), 10))
        for bound in certificates_from_json(certificates_to_json(problem, found)):
            assert bound.value <= cost.min() * (1 + 1e-9) + 1e-9, seed
            check = check_bound(problem, bound)
            assert check.ok, (seed, check.text)
        useful.append(max((bound.value for bound in found), default=0.0) / max(cost.min(), 1e-9))
    assert len(useful) > 60 and np.mean(useful) > 0.3, (len(useful), np.mean(useful))


def test_a_mapping_to_begin_at_saves_steps(spiking: MappingProblem) -> None:
    """Twenty-four steps from a mapping reach what forty from nothing do not."""
    core = np.arange(spiking.n) // 34
    begun = list(tree_parts_bounds(spiking, BoundContext(lambda: 6000.0, core=core), 24))[-1]
    assert begun.value > last(spiking, 40, 6000.0).value and check_bound(spiking, begun).ok


def test_too_many_pulls_for_a_bundle_climb_as_without_a_mapping(
    spiking: MappingProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts hold every pull; where a few would fill the memory there are none."""
    monkeypatch.setattr(trees_parts, "MOST_NUMBERS", 1000)
    monkeypatch.setattr(trees_parts, "PullBundle", None)
    found = list(tree_parts_bounds(spiking, BoundContext(core=np.arange(spiking.n) // 34), 6))
    assert found[-1].value > 0


@pytest.fixture(scope="module")
def spiking() -> MappingProblem:
    """508 neurons that multicast, 33 to a core."""
    graph = generate("snn", nodes=512, synapses=8192, layers=4, directed=1)
    return MappingProblem(graph, Machine("m", (1, 1), (4, 4)), "connectivity", node_limit=34)


def test_beats_equal_weights_and_bears_large_matrices(
    spiking: MappingProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights of the terminals make the bound far better; it survives random vectors instead of dense algebra."""
    equal = list(parts_bounds(spiking, rounds=40))[-1]
    bound = last(spiking, 60, 6000.0)
    assert bound.value > 2.5 * equal.value and check_bound(spiking, bound).ok
    monkeypatch.setattr(eigen, "DENSE", 100)
    monkeypatch.setattr(eigen, "EXACT_STEPS", 100)
    monkeypatch.setattr(operator, "DECOMPOSED", 100)
    large = last(spiking, 30, 6000.0)
    assert 0.4 * bound.value < large.value <= 6000
    assert check_bound(spiking, large).ok  # factored
    monkeypatch.setattr(operator, "FACTORED", 100)
    assert check_bound(spiking, large).ok  # by chance


def test_a_changed_certificate_proves_nothing_more(spiking: MappingProblem) -> None:
    """Fields that are missing, misshapen, not finite or too good are named; a higher claim is refused."""
    bound = last(spiking, 30)
    good = dict(bound.certificate)
    pulls, lam = good["pulls"], good["eigenvalues"]
    for change, word in (
        ({"pulls": pulls[:-1]}, "pulls"),
        ({"pulls": np.where(np.arange(len(pulls)) == 3, np.nan, pulls)}, "pulls"),
        ({"pulls": "all"}, "pulls"),
        ({"eigenvalues": lam + 0.5}, "eigenvalues"),
        ({"eigenvalues": lam[::-1]}, "eigenvalues"),
        ({"shift": good["shift"][:4]}, "shift"),
        ({"rho": float("inf")}, "rho"),
    ):
        check = check_bound(spiking, replace(bound, certificate={**good, **change}))
        assert not check.ok and word in check.text, (word, check.text)
    for key in ("pulls", "eigenvalues", "shift", "rho"):
        rest = {k: v for k, v in good.items() if k != key}
        assert not check_bound(spiking, replace(bound, certificate=rest)).ok
    weaker = {**good, "pulls": pulls * 0.5}
    assert not check_bound(spiking, replace(bound, certificate=weaker)).ok
    assert not check_bound(spiking, replace(bound, value=bound.value * 1.01)).ok


def test_refusals_say_why() -> None:
    """Pairwise objectives, one node per core and room for everything on one core."""
    graph = LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3])
    mesh = Machine("m", (1, 1), (2, 2))
    assert "edge by edge" in (refuses_tree_parts(MappingProblem(graph, mesh, "cut", node_limit=2)) or "")
    for limit in (1, 4):
        assert refuses_tree_parts(MappingProblem(graph, mesh, "connectivity", node_limit=limit))


def test_messages_go_one_way() -> None:
    """Symmetric traffic, asymmetric distances: a -> {b, c} over the long way once beats two messages over it."""
    graph = LogicGraph.from_edges(3, [0, 0, 1, 2], [1, 2, 0, 0], multicast=np.ones(3, bool))
    matrix = np.array([[0.0, 9.0], [1.0, 0.0]])
    machine = Machine("m", (1, 1), (1, 2), distance_matrix=matrix)
    problem = MappingProblem(graph, machine, "multicast-hops", node_limit=2)
    assert optimum(problem) <= 11
    for bound in (last(problem, 40), list(parts_bounds(problem, BoundContext(lambda: 11.0), 40))[-1]):
        assert 0 < bound.value <= optimum(problem) and check_bound(problem, bound).ok
