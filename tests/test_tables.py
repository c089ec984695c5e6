"""Routers' tables as a capacity: counting, checks, the search that obeys it, and who refuses."""

from __future__ import annotations

import hw_reference as ref
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.mapping.tables import walked_entries
from nmsolve.check.mapping.verify import verify
from nmsolve.heuristics.mapping.links.moves import move
from nmsolve.heuristics.mapping.links.state import build
from nmsolve.hw.router_tables import router_entries
from nmsolve.hw.routes import route
from nmsolve.hw.scores import score
from nmsolve.model.between import BetweenCores
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.fit import explain_misfit, require_fit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import solve

FAST = settings(max_examples=40, deadline=None)
SEED = st.integers(0, 2**32 - 1)


def counted(graph: LogicGraph, machine: Machine, core: np.ndarray) -> np.ndarray:
    """Entries by the definition: every message's links, router by router."""
    ends, used = link_ends(machine), np.zeros(machine.size, np.int64)
    for p, targets, *_ in ref.messages(graph, core):
        links = {v for q in targets for v in route(machine, p, q)}
        for c in range(machine.size):
            came = {v % 4 for v in links if ends[v] == c}
            left = {v % 4 for v in links if v // 4 == c}
            straight = len(came) == 1 and came == left and c not in targets and c != p
            used[c] += bool(came or left) and not straight
    return used


@FAST
@given(ref.machines(faults=True), ref.graphs(), SEED)
def test_entries_are_what_the_definition_counts(machine, graph, seed) -> None:
    """Evaluator, verifier and score, on boards with chips, rings and dead links."""
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    wanted = counted(graph, machine, core)
    assert router_entries(graph, machine, core).tolist() == wanted.tolist()
    assert walked_entries(BetweenCores(graph, machine, core), machine) == wanted.max()
    assert score(graph, machine, core)["table-entries"] == wanted.max()


def test_a_message_straight_on_needs_no_entry_in_between() -> None:
    row = Machine("row", (1, 1), (1, 5))
    graph = LogicGraph.from_edges(2, [0], [1])
    assert router_entries(graph, row, np.array([0, 4])).tolist() == [1, 0, 0, 0, 1]
    assert router_entries(graph, row, np.array([2, 2])).tolist() == [0] * 5
    board = Machine("board", (1, 1), (3, 3))
    assert router_entries(graph, board, np.array([0, 8])).tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 1], (
        "and the turn"
    )


def limited(limit: int, n: int = 24, seed: int = 0) -> MappingProblem:
    """A random network of messages to three others, two nodes per core of a 4 x 4 board."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(n), 3)
    graph = LogicGraph.from_edges(
        n, source, (source + rng.integers(1, 6, 3 * n)) % n, multicast=np.ones(n, bool)
    )
    machine = Machine("board", (1, 1), (4, 4), capacity={"table_entries": limit})
    return MappingProblem(graph, machine, "hops", node_limit=2)


def test_moves_keep_the_entries_exact() -> None:
    problem, rng = limited(8), np.random.default_rng(1)
    state = build(problem, rng.integers(0, 16, 24))
    for _ in range(60):
        u, q = int(rng.integers(24)), int(rng.integers(16))
        if state.room.core[u] != q:
            move(state, u, q)
        used = router_entries(problem.graph, problem.machine, state.room.core)
        assert state.entries.tolist() == used.tolist()
        assert state.tables[1] == np.maximum(used - 8, 0).sum()


def test_a_run_keeps_the_limit_that_other_mappings_break() -> None:
    """A mapping within the limit is found, checked and verified; one beyond it is told from it."""
    problem = limited(7)
    for seconds in (2.0, 20.0, 60.0):  # the first run may compile all the time
        result = solve(problem, time_limit=seconds, engines=["links"])
        if result.core is not None:
            break
    assert result.core is not None, "a mapping within the limit exists"
    assert router_entries(problem.graph, problem.machine, result.core).max() <= 7
    assert verify(problem.graph, problem.machine, (), result.core, node_limit=2).ok
    spread = np.random.default_rng(0).permutation(np.repeat(np.arange(16), 2))[:24]
    assert router_entries(problem.graph, problem.machine, spread).max() > 7
    told = verify(problem.graph, problem.machine, (), spread, node_limit=2)
    assert [c.name for c in told.checks if not c.ok] == ["feasible", "table_entries"]


def test_engines_that_know_no_tables_refuse_where_the_limit_binds() -> None:
    with pytest.raises(InputError, match="multilevel: it does not support limits on routing tables"):
        solve(limited(10), time_limit=1.0, engines=["multilevel"])
    assert limited(24).table_limit is None, "24 messages need no more than 24 entries anywhere"
    assert limited(23).table_limit == 23


def test_what_cannot_fit_is_said_with_numbers() -> None:
    """A node that sends too much, and too much traffic over all."""
    hub = LogicGraph.from_edges(9, [*range(8), *[8] * 8], [*[8] * 8, *range(8)])
    machine = Machine("board", (1, 1), (3, 3), capacity={"table_entries": 5})
    reasons = explain_misfit(MappingProblem(hub, machine, node_limit=1))
    assert reasons == [
        "node 8 takes part in 9 messages that must leave their core, and a router has 5 table_entries"
    ]
    ring = LogicGraph.from_edges(9, np.arange(9), (np.arange(9) + 1) % 9)
    tight = Machine("board", (1, 1), (3, 3), capacity={"table_entries": 1})
    assert "takes part in 2 messages" in explain_misfit(MappingProblem(ring, tight, node_limit=1))[0]
    with pytest.raises(DoesNotFitError, match="table_entries"):
        require_fit(MappingProblem(ring, tight, node_limit=1))
