"""The bound ``spread`` of net objectives: valid on every machine it takes, confirmed from JSON, worth its time, not forgeable."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bounds_trees import random_nets
from test_bounds_valid import KINDS, optimum

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.bounds.parts import CertificateError
from nmsolve.check.mapping.bounds.spread import check_messages, message_pairs
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.auto import outdone
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.spread.bound import spread_bounds
from nmsolve.solvers.mapping.bounds.spread.form import refuses_spread, spread_form
from nmsolve.solvers.mapping.bounds.spread.messages import carried, messages_of
from nmsolve.solvers.mapping.bounds.spread.rows import find_rows
from nmsolve.solvers.mapping.bounds.trees_parts import tree_parts_bounds


def found(problem: MappingProblem, most: int = 40) -> list[Bound]:
    """Its bounds within this many rounds, which are its seconds: equal runs do equal work."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > most

    return list(
        spread_bounds(problem, BoundContext(should_stop=stop, seconds=most, clock=lambda: float(asked)))
    )


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_never_above_the_optimum_and_confirmed_after_json(kind: int) -> None:
    """40 random problems of each kind, against brute force."""
    share, tried = [], 0
    for seed in range(kind, 40 * len(KINDS), len(KINDS)):
        problem = random_nets(seed)
        if not problem.uses_nets or refuses_spread(problem) is not None:
            continue
        best = optimum(problem)
        tried += 1
        for bound in found(problem)[-1:]:
            assert bound.value <= best * (1 + 1e-12), (seed, problem.objective, bound.value, best)
            (back,) = certificates_from_json(certificates_to_json(problem, [bound]))
            assert check_bound(problem, back).ok, (seed, check_bound(problem, back).text)
            share.append(bound.value / best)
    assert tried > 5 and len(share) > 1 and np.median(share) > 0.3


@cache
def cast(kind: int) -> tuple[MappingProblem, float]:
    """A tiny problem of messages with 3 to 5 terminals, some edges beside them, and its optimum."""
    rng = np.random.default_rng(kind)
    rows, cols = ((1, 3), (2, 2), (1, 4), (2, 2))[kind % 4]
    n = 6
    some = rng.random((n, n)) < 0.45
    source, target = np.nonzero(some & ~np.eye(n, dtype=bool))
    multicast = rng.random(n) < 0.8
    multicast[0] = True
    graph = LogicGraph.from_edges(
        n, source, target, rng.integers(1, 6, len(source)).astype(float), multicast=multicast
    )
    machine = Machine("m", (1, 1), (rows, cols), torus=kind % 5 == 4)
    objective = ("multicast-hops", "connectivity")[kind % 2]
    problem = MappingProblem(graph, machine, objective, (), 2 if rows * cols > 3 else 3)
    return problem, optimum(problem)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 19), st.data())
def test_no_flow_proves_more_than_the_optimum(kind: int, data: st.DataObject) -> None:
    """Flows along any paths, of any size, with any prices: what the checker makes of them is refused or below the optimum."""
    problem, best = cast(kind)
    low, high, _, _ = message_pairs(problem)
    between = {(int(u), int(v)): k for k, (u, v) in enumerate(zip(low, high, strict=True))}
    flow = np.zeros((problem.n, len(low)), np.int64)
    unit = 2.0 ** data.draw(st.integers(-4, 1))
    for source in range(problem.n):
        for _ in range(data.draw(st.integers(0, 4))):
            path = [source, *data.draw(st.permutations([v for v in range(problem.n) if v != source]))]
            path = path[: 1 + data.draw(st.integers(1, 3))]
            units = data.draw(st.integers(1, 6))
            for u, v in pairwise(path):
                if (min(u, v), max(u, v)) not in between:
                    break
                flow[source, between[min(u, v), max(u, v)]] += units if u < v else -units
    used = [np.flatnonzero(row) for row in flow]
    certificate = {
        "method": "spread", "unit": unit, "sources": np.arange(problem.n), "counts": np.array([len(k) for k in used]),
        "pairs": np.concatenate(used), "flows": np.concatenate([flow[s, k] for s, k in enumerate(used)]),
        "prices": np.array(data.draw(st.lists(st.integers(0, 40), min_size=problem.cores, max_size=problem.cores))),
    }  # fmt: skip
    check = check_bound(problem, Bound(1e-9, "spread", "full", certificate))
    assert not check.value > best, (check.value, best, check.text)


def test_stretched_certificates_prove_no_more_than_the_optimum() -> None:
    """Good certificates, all their flows 5/4, 3/2, 2 and 4 times as large, or some of them: refused, or below the optimum."""
    share = []
    rng = np.random.default_rng(4)
    for kind in range(20):
        problem, best = cast(kind)
        for bound in found(problem)[-1:]:
            c = bound.certificate
            flows, counts = np.array(c["flows"]), np.array(c["counts"])
            share.append(bound.value / best)
            for times, unit in ((5, 0.25), (3, 0.5), (2, 1.0), (4, 1.0)):
                some = np.repeat(np.where(rng.random(len(counts)) < 0.7, times, 1), counts)
                for stretched in (times * flows, some * flows):
                    forged = {**c, "flows": stretched, "unit": unit * c["unit"]}
                    check = check_bound(problem, replace(bound, value=1e-9, certificate=forged))
                    assert not check.value > best, (kind, check.value, best)
    assert len(share) > 15 and np.median(share) > 0.7 and max(share) > 0.9


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 7), st.data())
def test_splits_are_those_of_brute_force(many: int, data: st.DataObject) -> None:
    """Finder and checker agree with all splits, at the limit and one below it."""
    pairs = list(combinations(range(many), 2))
    flow = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(pairs), max_size=len(pairs))), float)
    best = max(
        sum(f for (i, j), f in zip(pairs, flow, strict=True) if side[i] != side[j])
        for side in product((0, 1), repeat=many)
    )
    start, first = np.array([0, many]), np.array([0, len(pairs)])
    assert carried(start, first, flow, 16)[0] == best
    assert carried(start, first, flow, 0)[0] == flow.sum()
    problem, owner = cast(0)[0], np.zeros(len(pairs), np.int64)
    check_messages(problem, owner, flow, np.array([best]))
    if best > 0:
        with pytest.raises(CertificateError, match="more than its rate"):
            check_messages(problem, owner, flow, np.array([best - 0.5]))
    around = replace(problem, machine=replace(problem.machine, torus=True))
    if flow.sum() > best:
        with pytest.raises(CertificateError, match="more than its rate"):
            check_messages(around, owner, flow, np.array([best]))


def test_both_number_the_pairs_of_messages_alike() -> None:
    for seed in range(60):
        problem = random_nets(seed)
        if not problem.uses_nets or refuses_spread(problem) is not None:
            continue
        messages = messages_of(problem)
        low, high, owner, rate = message_pairs(problem)
        np.testing.assert_array_equal(messages.ends(), np.column_stack([low, high]))
        np.testing.assert_array_equal(messages.owner, owner)
        np.testing.assert_allclose(messages.rate, rate)


def test_rows_are_trees_through_messages() -> None:
    """Loads bring one to every target; lengths of ways are those of all pairs of a message alike."""
    graph = generate("snn", nodes=128, synapses=1500, layers=2, directed=1, seed=1)
    form = spread_form(MappingProblem(graph, load_machine("mesh:2x2"), "multicast-hops", (), 33))
    rng = np.random.default_rng(1)
    length = rng.random(len(form.weight)) * 1e-4
    at = np.tile(form.count / form.count.sum(), (form.n, 1))
    source, targets, indptr, edge, load, _ = find_rows(
        np.arange(form.n), form.n - 1, form.network(length), form.least, at
    )
    ends, bearer = form.ends(), form.bearers(edge)
    step = np.full((form.n, form.n), np.inf)
    for m in range(len(length)):
        inside = form.messages.node[form.messages.start[m] : form.messages.start[m + 1]]
        step[np.ix_(inside, inside)] = np.minimum(step[np.ix_(inside, inside)], length[m])
    np.fill_diagonal(step, 0.0)
    for k in range(form.n):
        step = np.minimum(step, step[:, k : k + 1] + step[k])
    assert len(source) >= form.n
    for r in range(len(source)):
        part = slice(indptr[r], indptr[r + 1])
        brought = np.zeros(form.n)
        np.add.at(brought, ends[edge[part], 1], load[part])
        np.add.at(brought, ends[edge[part], 0], -load[part])
        assert brought[source[r]] == -targets[r] and (brought == 1).sum() == targets[r]
        paid = float(length[bearer[part]] @ np.abs(load[part]))
        assert np.isclose(paid, np.sort(step[source[r]])[: targets[r] + 1].sum())


def snn() -> MappingProblem:
    """Few large cores."""
    graph = generate("snn", nodes=256, synapses=4000, layers=4, directed=1, seed=1)
    return MappingProblem(graph, load_machine("mesh:2x2"), "multicast-hops", (), 66)


def forged(problem: MappingProblem, bound: Bound, **fields: object) -> str:
    """What the checker says of a certificate with other fields, for a claim of a millionth."""
    check = check_bound(problem, replace(bound, value=1e-6, certificate={**bound.certificate, **fields}))
    return check.text if not check.ok else f"proves {check.value:g}"


def test_paths_through_messages_say_more_than_eigenvalues_and_forgeries_are_refused() -> None:
    problem = snn()
    bound = found(problem, 120)[-1]
    assert check_bound(problem, bound).ok
    spectral = [b.value for b in tree_parts_bounds(problem, BoundContext(lambda: 3000.0), 60)][-1]
    assert bound.value > 1.2 * spectral > 0
    assert not check_bound(problem, replace(bound, value=bound.value * 1.01)).ok
    c = bound.certificate
    flows, sources, pairs = np.array(c["flows"]), np.array(c["sources"]), np.array(c["pairs"])
    assert "proves" in forged(problem, bound)
    assert "more than its rate" in forged(problem, bound, flows=2 * flows)
    assert "more than its rate" in forged(problem, bound, unit=2 * c["unit"])
    assert "less than is demanded" in forged(problem, bound, flows=-flows)
    assert "less than is demanded" in forged(problem, bound, sources=np.roll(sources, 1))
    assert "proves" not in forged(problem, bound, pairs=np.roll(pairs, 1))
    assert "'pairs'" in forged(problem, bound, pairs=pairs + 10**6)
    assert "'prices'" in forged(problem, bound, prices=np.array(c["prices"]) - 1.0)
    assert "sums over pairs" in forged(problem, bound, set_times=np.array([1]))
    dead = replace(problem, machine=Machine("m", (1, 1), (2, 2), faulty_links=((0, 1), (1, 0))))
    assert "dead links" in forged(dead, bound)
    pairwise = replace(problem, objective="hops")
    assert "proves" not in forged(pairwise, bound)


def test_what_goes_both_ways_through_a_message_counts_more_than_its_rate() -> None:
    """Three terminals, one unit between any two: no split parts more than two of the three."""
    graph = LogicGraph.from_edges(3, [0, 0], [1, 2], [2.0, 2.0], multicast=np.array([True, False, False]))
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 3)), "connectivity", (), 1)
    certificate = {
        "method": "spread", "unit": 1.0, "sources": np.array([0, 1, 2]), "counts": np.array([1, 1, 1]),
        "pairs": np.array([0, 2, 1]), "flows": np.array([1, 1, -1]), "prices": np.zeros(3, np.int64),
    }  # fmt: skip
    assert check_bound(problem, Bound(3.0, "spread", "full", certificate)).ok
    assert not check_bound(problem, Bound(5.0, "spread", "full", certificate)).ok
    twice = {**certificate, "flows": np.array([2, 2, -2])}
    assert "more than its rate" in check_bound(problem, Bound(1.0, "spread", "full", twice)).text


def test_it_refuses_what_trees_may_undercut_and_too_many_pairs() -> None:
    graph = LogicGraph.from_edges(4, [0, 0, 0], [1, 2, 3], np.ones(3), multicast=np.ones(4, bool))
    dead = MappingProblem(
        graph, Machine("m", (1, 1), (2, 2), faulty_links=((0, 1),)), "multicast-hops", (), 1
    )
    assert "detours" in str(refuses_spread(dead))
    assert refuses_spread(replace(dead, objective="connectivity")) is None
    n = 3000
    wide = LogicGraph.from_edges(n, np.zeros(n - 1, int), np.arange(1, n), multicast=np.ones(n, bool))
    many = MappingProblem(wide, load_machine("mesh:2x2"), "multicast-hops", (), 800)
    assert "pairs of terminals" in str(refuses_spread(many))


def test_automatic_mode_runs_it_where_it_is_the_better_one() -> None:
    """Several nodes per core, and not too many nodes."""
    assert outdone("spread", snn()) is None
    assert "one node per core" in str(
        outdone("spread", replace(snn(), machine=load_machine("mesh:16x16"), node_limit=1))
    )
    large = generate("snn", nodes=2312, synapses=20_000, layers=8, directed=1, seed=1)
    many = MappingProblem(large, load_machine("mesh:2x2"), "multicast-hops", (), 600)
    assert "eigenvalues" in str(outdone("spread", many))
