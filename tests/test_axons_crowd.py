"""Crowds: incoming axon tables too small for nodes that many messages reach, against every set of nodes and every mapping."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_axons import feasible, split

from nmsolve.check.mapping.bounds.conflict import overcrowded
from nmsolve.check.mapping.bounds.stated import contracted
from nmsolve.kinds.mapping.warm_files import stored
from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.axons_crowd import crowd
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import explain_misfit, require_fit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.explain import explain, recheck_conflict


def dense(seed: int, n: int, share: float) -> LogicGraph:
    """A network in which every node sends to each other one with probability ``share``."""
    rng = np.random.default_rng(seed)
    source, target = np.nonzero(rng.random((n, n)) < share)
    return LogicGraph.from_edges(n, source, target, multicast=np.ones(n, bool))


def crowded(graph: LogicGraph, most: int, shape: tuple[int, int], **more) -> MappingProblem:
    """``graph`` on a mesh whose only limit is on incoming axon tables."""
    return MappingProblem(graph, Machine("m", (1, 1), shape, capacity={"axons_in": most}), **more)


def received(problem: MappingProblem) -> np.ndarray:
    """Distinct messages that reach every group, with sets."""
    graph, group = problem.graph, problem.group_of
    out = np.zeros(int(group.max()) + 1, np.int64)
    for e in range(graph.rows):
        for g in {int(group[t]) for t in graph.targets[graph.indptr[e] : graph.indptr[e + 1]]}:
            out[g] += 1
    return out


def reached_by(problem: MappingProblem, groups: tuple[int, ...]) -> int:
    """Messages that reach any of the groups, with sets."""
    graph, group = problem.graph, problem.group_of
    rows = range(graph.rows)
    targets = [{int(group[t]) for t in graph.targets[graph.indptr[e] : graph.indptr[e + 1]]} for e in rows]
    return sum(bool(ends & set(groups)) for ends in targets)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.1, 0.2, 0.4]), st.booleans(), st.booleans()
)
def test_no_smaller_crowd_is_reached_by_fewer_messages(seed, cores, share, tied, blocks):
    """Every set of s of the busiest groups, for every limit up to where nothing is found."""
    graph = dense(seed, 12, share)
    ties = (SideConstraint("t", "together", (0, 5)), SideConstraint("v", "together", (2, 3))) if tied else ()
    found = 0
    for most in range(1, 12):
        problem = crowded(split(graph) if blocks else graph, most, (1, cores), constraints=ties)
        degrees = received(problem)
        answer = crowd(problem, degrees, most)
        if answer is None:
            continue
        found += 1
        nodes, s, messages = answer
        busiest = np.argsort(-degrees, kind="stable")[:nodes].tolist()
        assert nodes > cores * (s - 1) and most < messages
        assert messages <= min(reached_by(problem, some) for some in itertools.combinations(busiest, s))
        assert overcrowded(contracted(problem), np.inf)
    assert found or degrees.max() <= 3


@pytest.mark.parametrize("seed", range(12))
def test_what_a_crowd_rules_out_has_no_mapping(seed):
    """Every mapping of six nodes is tried, for the tightest limit that is possible and one less."""
    graph = dense(seed, 6, 0.35)
    limits = range(1, 7)
    possible = [most for most in limits if feasible(crowded(graph, most, (1, 2)))]
    ruled_out = [most for most in limits if explain_misfit(crowded(graph, most, (1, 2)))]
    assert not set(possible) & set(ruled_out)
    checked = [most for most in limits if overcrowded(contracted(crowded(graph, most, (1, 2))), np.inf)]
    assert not set(possible) & set(checked)


def test_a_network_too_dense_for_its_chip_is_refused_at_once():
    """800 neurons that 80 others reach each, on 16 cores with 200 entries. A second count confirms it."""
    problem = crowded(dense(3, 800, 0.1), 200, (4, 4))
    words = r"(\d+) of the \d+ nodes that most messages reach must share one of 16 cores; any \1 of them receive at least 2"
    with pytest.raises(DoesNotFitError, match=words):
        require_fit(problem)
    found = explain(problem, 3)
    assert found.conflict is not None and [x.name for x in found.conflict.limits] == ["axons_in"]
    assert recheck_conflict(problem, found.conflict.certificate, 3)
    roomy = crowded(dense(3, 800, 0.1), 800, (4, 4))
    assert not explain_misfit(roomy) and not overcrowded(contracted(roomy), np.inf)


def test_a_graph_on_disk_is_counted_in_passes(tmp_path):
    """As in memory."""
    graph = dense(3, 800, 0.1)
    lying = stored(graph, tmp_path / "g.nmz")
    assert explain_misfit(crowded(lying, 200, (4, 4))) == explain_misfit(crowded(graph, 200, (4, 4))) != []
