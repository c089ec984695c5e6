"""Partitioners of others behind the engine interface: their task, refusals, placement; and themselves if installed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_fakes import TimedContext

from nmsolve.heuristics.mapping.published.backends import engine as module
from nmsolve.heuristics.mapping.published.backends.partitioners import write_parhip
from nmsolve.heuristics.mapping.published.backends.place import placement_problem
from nmsolve.heuristics.mapping.published.backends.task import (
    MOST,
    PartitionTask,
    make_task,
    whole_sizes,
    whole_weights,
)
from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.api import make_problem

TOOLS = {"metis": "pymetis", "kaminpar": "kaminpar", "mtkahypar": "mtkahypar"}


def by_index(task: PartitionTask) -> IntArray:
    """A partition that any machine can make: consecutive nodes."""
    return np.arange(len(task.sizes)) * task.parts // len(task.sizes)


def consecutive(task: PartitionTask) -> Iterator[IntArray]:
    yield by_index(task)


def all_in_one(task: PartitionTask) -> Iterator[IntArray]:
    """A partitioner that ignores the limit."""
    yield np.zeros(len(task.sizes), np.int64)


def backend(partition=consecutive, nets=False) -> module.PartitionBackend:
    return module.PartitionBackend("ours", "numpy", "none", partition, nets)


def communities(objective: str = "hops", multicast: bool = False, seed: int = 0) -> MappingProblem:
    """16 groups of 5 nodes that talk to their own and to the next group, on a 4x4 mesh."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, 80, 600)
    near = rng.random(600) < 0.8
    target = np.where(near, source // 5 * 5 + rng.integers(0, 5, 600), (source + 5) % 80)
    rate = rng.integers(1, 9, 80)
    graph = LogicGraph.from_edges(
        80,
        source,
        target,
        rate[source].astype(float),
        multicast=np.full(80, multicast),
        rate=rate.astype(float),
    )
    return make_problem(graph, load_machine("mesh:4x4"), balance=0.2, objective=objective)


class FakeContext(TimedContext):
    """Judges offers and stops by the clock."""

    seed = 4

    def __init__(self, problem: MappingProblem, seconds: float) -> None:
        super().__init__(seconds)
        self.problem = problem
        self.values: list[float] = []
        self.moves: list[str] = []

    def offer(self, core, move=""):
        assert check_mapping(self.problem, core) == []
        self.values.append(objective_value(self.problem, core))
        self.moves.append(move)
        return True


@pytest.mark.parametrize("objective", ["cut", "connectivity"])
def test_a_partition_is_an_answer_where_distance_does_not_count(objective):
    problem = communities(objective)
    context = FakeContext(problem, 30)
    backend().run(problem, context)
    assert context.moves == ["partition"]
    part = by_index(make_task(problem, False, 1, 1))
    assert context.values == [objective_value(problem, part)]


@pytest.mark.parametrize(
    ("objective", "multicast"), [("hops", False), ("energy", False), ("multicast-hops", True)]
)
def test_parts_are_placed_where_distance_counts(objective, multicast):
    problem = communities(objective, multicast)
    if objective == "energy":
        problem = replace(problem, machine=load_machine("truenorth"))
    context = FakeContext(problem, 1.0)
    backend().run(problem, context)
    assert context.moves[0] == "partition" and any(m.startswith("parts placed") for m in context.moves)
    assert min(context.values) < context.values[0]


def test_parts_over_the_limit_are_repaired_and_said_so():
    problem = communities("cut")
    context = FakeContext(problem, 30)
    backend(all_in_one).run(problem, context)
    assert len(context.values) == 1
    assert context.notes == ["74 nodes moved, because parts held more than a core does"]


@pytest.mark.parametrize(("objective", "multicast"), [("hops", False), ("multicast-hops", True)])
def test_the_placement_of_parts_costs_what_the_mapping_costs(objective, multicast):
    """Exactly for pairs; for trees, hops of one message per part reached are an upper bound."""
    problem = communities(objective, multicast)
    rng = np.random.default_rng(3)
    part = rng.permutation(np.arange(80) % 16)
    quotient = placement_problem(problem, part, 16)
    for _ in range(5):
        core = rng.permutation(16)
        inner, outer = objective_value(quotient, core), objective_value(problem, core[part])
        assert inner == outer if objective == "hops" else inner >= outer > 0


def test_the_task_of_a_graph_and_of_messages():
    problem = communities("connectivity", True)
    graph = problem.graph
    plain = make_task(problem, False, 1, 1)
    assert plain.nets is None and plain.parts == 15 and plain.limit == 6
    assert np.array_equal(plain.weights, graph.traffic[2])
    nets = make_task(problem, True, 1, 1).nets
    assert nets is not None
    indptr, pins, weights = nets
    assert np.array_equal(weights, np.maximum(graph.rate, 1))
    for row in range(graph.rows):
        targets = graph.targets[graph.indptr[row] : graph.indptr[row + 1]]
        assert pins[indptr[row] : indptr[row + 1]].tolist() == [graph.source[row], *targets]


def test_cores_with_room_to_spare_get_fewer_parts():
    graph = LogicGraph.from_edges(100, range(99), range(1, 100))
    machine = replace(load_machine("mesh:8x8"), capacity={"neurons": 10})
    problem = MappingProblem(graph, machine, "cut")
    assert make_task(problem, False, 1, 1).parts == 11


def test_the_scarcest_resource_is_balanced():
    sizes = np.stack([np.ones(20, np.int64), np.arange(20)], axis=1)
    graph = LogicGraph.from_edges(20, range(19), range(1, 20), resources=("neurons", "synapses"), sizes=sizes)
    machine = replace(load_machine("mesh:2x2"), capacity={"neurons": 100, "synapses": 60})
    task = make_task(MappingProblem(graph, machine, "cut"), False, 1, 1)
    assert task.sizes.tolist() == list(range(20)) and task.limit == 60


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=30))
def test_whole_weights_stay_in_32_bits_and_in_order(weights):
    given_weights = np.array(weights)
    whole = whole_weights(given_weights)
    assert whole.min() >= 1 and whole.sum() <= MOST + len(weights)
    assert (np.diff(whole[np.argsort(given_weights)]) >= 0).all()


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=30), st.integers(1, 2**42), st.data())
def test_what_fits_in_rounded_sizes_fits_in_truth(sizes, limit, data):
    exact = np.array(sizes)
    rounded, most = whole_sizes(exact, limit)
    assert rounded.sum() < MOST + len(sizes)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes))))
    if rounded[chosen].sum() <= most:
        assert exact[chosen].sum() <= limit


def test_the_binary_graph_file_is_the_task(tmp_path: Path):
    task = make_task(communities("cut"), False, 1, 1)
    write_parhip(tmp_path / "g", task)
    n, m = 80, len(task.indices)
    head = np.fromfile(tmp_path / "g", np.uint64, n + 4).astype(np.int64)
    assert head[:3].tolist() == [56, n, m]
    assert np.array_equal(head[3:], 8 * (n + 4) + 4 * task.indptr)
    rest = np.fromfile(tmp_path / "g", np.uint32, offset=8 * (n + 4))
    assert np.array_equal(rest, np.concatenate([task.indices, task.sizes, task.weights]))


def test_what_a_partitioner_cannot_do_is_refused_in_words():
    problem = communities()
    pinned = replace(problem, constraints=(SideConstraint("p", "pin", nodes=(0,), cores=(1,)),))
    free = MappingProblem(problem.graph, problem.machine)
    ours = backend()
    assert ours.refuses(problem) is None
    assert "not support side constraints such as 'pin'" in str(ours.refuses(pinned))
    assert "nothing to balance" in str(ours.refuses(free))


@pytest.mark.parametrize("name", TOOLS)
def test_a_missing_package_says_how_to_install_it(name, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda package: None)
    reason = getattr(module, name)().refuses(communities())
    assert reason == f"the package {TOOLS[name]} is not installed: pip install 'nmsolve[{name}]'"


@pytest.mark.parametrize("name", TOOLS)
def test_an_installed_tool_beats_consecutive_nodes(name):
    """In a process of its own, as the engine runs: the tools bring libraries that need not suit ours."""
    pytest.importorskip(TOOLS[name])
    code = f"""
import numpy as np
from nmsolve.heuristics.mapping.published.backends import partitioners
from nmsolve.heuristics.mapping.published.backends.task import make_task
from nmsolve.hw.scores import objective_value
from test_backends import by_index, communities
for objective, nets in (("cut", False), ("connectivity", True)):
    problem = communities(objective, True)
    order = np.random.default_rng(0).permutation(80)
    task = make_task(problem, nets and {name!r} == "mtkahypar", 1, 1)
    found, again = [list(partitioners.{name}(task)) for _ in range(2)]
    shuffled = by_index(task)[order]
    for part in found:
        assert part.shape == (80,) and 0 <= part.min() and part.max() < 16
        assert objective_value(problem, part) < objective_value(problem, shuffled)
    assert np.array_equal(found, again) and len(found) == 2
"""
    tests = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tests)},
    )
    assert done.returncode == 0, done.stderr


def test_of_several_partitions_the_one_with_the_least_cut_is_kept_and_placed():
    """Whatever their order; a partition that does not fit is passed over."""
    problem = communities("cut")
    good = np.arange(80) // 5
    bad = np.random.default_rng(1).permutation(good)

    for order in ((good, bad), (bad, good)):
        context = FakeContext(problem, 30)
        backend(lambda task, order=order: iter(order)).run(problem, context)
        assert min(context.values) == context.values[-1] == objective_value(problem, good)


def test_metis_does_not_lose_to_the_better_of_its_own_calls():
    """Recursive bisection and k-way as pymetis makes them, with four nodes per core."""
    pymetis = pytest.importorskip("pymetis")
    rng = np.random.default_rng(5)
    point = rng.random((256, 2))
    near = np.argwhere(np.triu(((point[:, None] - point) ** 2).sum(2) < 0.012, 1))
    graph = LogicGraph.from_edges(256, near[:, 0], near[:, 1], directed=False)
    problem = make_problem(graph, load_machine("mesh:8x8"), balance=0.03, objective="cut")
    context = FakeContext(problem, 60)
    module.metis().run(problem, context)
    indptr, indices, _ = graph.traffic
    rows = [indices[a:b].tolist() for a, b in itertools.pairwise(indptr)]
    for recursive in (False, True):
        part = np.asarray(pymetis.part_graph(64, rows, recursive=recursive).vertex_part)
        if np.bincount(part, minlength=64).max() <= problem.capacity[0, 0]:
            assert min(context.values) <= 1.03 * objective_value(problem, part)
