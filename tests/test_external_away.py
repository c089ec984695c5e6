"""Connections spread over other machines: what these propose is what the run itself would, also when machines die."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_external import ALONE, mesh, run_on

from nmsolve.heuristics.mapping.external.away import GRAIN, Away, cut_up
from nmsolve.heuristics.mapping.external.build import finest, symmetric
from nmsolve.heuristics.mapping.external.clustering import STRIDE as CLUSTERING
from nmsolve.heuristics.mapping.external.clustering import cluster
from nmsolve.heuristics.mapping.external.engine import cores_of
from nmsolve.heuristics.mapping.external.holder import Holder
from nmsolve.heuristics.mapping.external.lawful import placed, scattered
from nmsolve.heuristics.mapping.external.levels import Level, Resident
from nmsolve.heuristics.mapping.external.search import search
from nmsolve.heuristics.mapping.external.sweep import STRIDE, sweep
from nmsolve.model.engine import RemoteLost
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping


class Elsewhere:
    """Holders that get and give copies only, read-only ones as from a cluster; they are lost at call number ``last`` of all."""

    def __init__(self, count: int = 1, last: float = np.inf) -> None:
        self.holders, self.last, self.calls = [Holder(1) for _ in range(count)], last, 0

    def __len__(self) -> int:
        return len(self.holders)

    def ask(self, method: str, *args: object) -> Callable[[], list[Any]]:
        return self.ask_each(method, [args] * len(self))

    def ask_each(self, method: str, each: Sequence[Sequence[object]]) -> Callable[[], list[Any]]:
        self.calls += 1
        if self.calls > self.last:
            raise RemoteLost
        answers = []
        for holder, args in zip(self.holders, each, strict=True):
            sent = pickle.loads(pickle.dumps(args))
            for x in sent:
                if isinstance(x, np.ndarray):
                    x.flags.writeable = False
            answers.append(pickle.dumps(getattr(holder, method)(*sent)))
        return lambda: [pickle.loads(x) for x in answers]


def network(nodes: int = 1600, seed: int = 1) -> MappingProblem:
    graph = generate("snn", seed=seed, nodes=nodes, synapses=20 * nodes, layers=4, sigma=0.08)
    return MappingProblem(graph, mesh(4, 4, nodes // 14))


def in_blocks(problem: MappingProblem, count: int) -> Level:
    """The finest level, in several blocks."""
    level = finest(problem, symmetric(problem.graph, ALONE))
    source = level.source
    assert isinstance(source, Resident)
    cuts = tuple(int(x) for x in np.linspace(0, level.n, count + 1))
    return replace(level, source=replace(source, cuts=cuts))


def spread(level: Level, problem: MappingProblem, machines: list[Elsewhere]) -> Level:
    """The level held elsewhere: each time that somebody is hired, the next of ``machines``, then nobody."""
    turns = iter(machines)
    known = (cores_of(problem), level.volume, level.domain, level.apart_ptr)
    away = Away(lambda: next(turns, None), level.source.blocks, known)
    assert away.spread() == len(machines[0])
    return replace(level, away=away)


def swept(
    level: Level, problem: MappingProblem, cut: bool, passes: int = 3
) -> tuple[np.ndarray, list[float]]:
    """Where nodes are after some sweeps from nowhere, and what these said."""
    run = run_on(problem)
    s = placed(level, scattered(level, run.cores.allowed), run)
    said = []
    for k in range(passes):
        one = sweep(level, run.cores, s, cut, run.unit(level) / (k + 1), 5 + k, ALONE)
        said += [one.cost, one.rise, one.moves]
    return s.pos, said


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.booleans(), st.integers(1, 99))
def test_any_number_of_machines_answers_as_the_run_alone(
    machines: int, blocks: int, cut: bool, seed: int
) -> None:
    """Sweeps, prices and clusters, bit by bit; costs up to the order in which they are added."""
    problem = network(seed=seed)
    level = in_blocks(problem, blocks)
    away = spread(level, problem, [Elsewhere(machines)])
    (pos, said), (here, alone) = swept(away, problem, cut), swept(level, problem, cut)
    assert np.array_equal(pos, here)
    assert said == pytest.approx(alone, rel=1e-9)
    label, count = cluster(away, 0.05, seed, ALONE)
    own, number = cluster(level, 0.05, seed, ALONE)
    assert count == number
    assert np.array_equal(label, own)


@pytest.mark.parametrize("last", [1, 3, 9, 17, 40])
def test_a_machine_that_dies_changes_nothing(last: int) -> None:
    """While it is given its part, in the first sweep or later: the others take over."""
    problem = network()
    level = in_blocks(problem, 4)
    wanted, _ = swept(level, problem, False)
    clusters, _ = cluster(level, 0.05, 1, ALONE)
    for passed in (swept, cluster):
        dying = Elsewhere(2)
        away = spread(level, problem, [dying, Elsewhere()])
        dying.last = dying.calls + last
        if passed is swept:
            assert np.array_equal(swept(away, problem, False)[0], wanted)
        else:
            assert np.array_equal(cluster(away, 0.05, 1, ALONE)[0], clusters)
        assert away.machines == 1


def test_the_run_goes_on_alone_where_all_machines_die() -> None:
    problem = network()
    level = in_blocks(problem, 4)
    dying = Elsewhere()
    away = spread(level, problem, [dying])
    dying.last = dying.calls + 60
    found: list[np.ndarray] = []
    search(away, run_on(problem), 1.0, lambda pos, _: found.append(pos.copy()) is None)
    assert away.machines == 0
    assert check_mapping(problem, found[-1].astype(np.int64)) == []


def test_one_that_dies_while_it_is_given_its_part_is_left_out() -> None:
    problem = network()
    level = in_blocks(problem, 4)
    turns = iter([Elsewhere(2, 2), Elsewhere()])
    known = (cores_of(problem), level.volume, level.domain, level.apart_ptr)
    away = Away(lambda: next(turns, None), level.source.blocks, known)
    assert away.spread() == 1
    assert away.weight == pytest.approx(2 * problem.graph.weights.sum(), rel=1e-6)


def test_parts_cover_a_block_at_whole_strides() -> None:
    """Else batches would not be those of one machine."""
    assert GRAIN % (16 * STRIDE) == 0 == GRAIN % (16 * CLUSTERING)
    problem = network(nodes=2304)
    (arcs,) = in_blocks(problem, 1).source.blocks()
    for count in (1, 2, 3, 7, 20):
        parts = cut_up(arcs, count)
        assert len(parts) == count
        assert sum(p.nodes for p in parts) == arcs.nodes
        assert np.array_equal(np.concatenate([p.neighbour for p in parts]), arcs.neighbour)
        assert np.array_equal(np.concatenate([p.weight for p in parts]), arcs.weight)
        at = arcs.first
        for p in parts:
            assert p.first == at
            assert (p.first - arcs.first) % GRAIN == 0 or p.nodes == 0
            assert p.indptr[0] == 0
            at += p.nodes
