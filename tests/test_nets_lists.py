"""Which messages reach each vertex, against brute force."""

from __future__ import annotations

import tempfile

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from nets_support import some_problem

from nmsolve.heuristics.mapping.nets.incidence import incidence, one_list
from nmsolve.heuristics.mapping.nets.levels import Messages
from nmsolve.model.graph import LogicGraph


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), coarse=st.booleans(), workers=st.integers(1, 3), own=st.booleans())
def test_lists_are_the_transpose_of_the_contracted_graph(seed, coarse, workers, own):
    """Brute force over all edges; in a file as in memory, in one part or many, for any number of threads."""
    problem = some_problem(seed)
    graph, rng = problem.graph, np.random.default_rng(seed)
    count = 7 if coarse else graph.n
    label = (rng.integers(0, count, graph.n) if coarse else rng.permutation(graph.n)).astype(np.int32)
    charged = Messages.of(problem).listed
    expected = [set() for _ in range(count)]
    for row in np.flatnonzero(charged):
        for target in graph.targets[graph.indptr[row] : graph.indptr[row + 1]]:
            if label[target] != label[graph.source[row]]:
                expected[label[target]].add(int(row))
    with tempfile.TemporaryFile() as file:
        found = incidence(
            graph, charged, label, count, workers=workers, memory=9 if own else None, scratch=file.fileno
        )
        assert [one_list(found, v).tolist() for v in range(count)] == [sorted(rows) for rows in expected]
        assert found.entries == sum(len(rows) for rows in expected)
        assert (found.data is None) == (own and int(found.at[-1]) > 9)


def test_rows_of_any_distance_are_listed():
    """Gaps of one, two and three bytes."""
    n = 40_000
    rows = np.array([0, 127, 128, 200, 17_000, 39_999])
    graph = LogicGraph.from_edges(n, rows, np.full(6, 5), multicast=np.ones(n, bool), rate=np.ones(n))
    found = incidence(graph, np.ones(n, bool), np.arange(n, dtype=np.int32), n)
    assert one_list(found, 5).tolist() == rows.tolist()
    assert int(found.at[-1]) == 1 + 1 + 1 + 1 + 3 + 3
