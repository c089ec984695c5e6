"""Slices: at most this many neurons of a population on a core. Files, checks, engines and bounds against every mapping tried."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_support import (
    OBJECTIVES,
    engine_keeps_the_rules,
    exact_model_ends_at_the_best,
    explained,
    reasons_and_first_fit_agree,
)

from nmsolve.check.mapping.bounds.stated import contracted
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.check.mapping.verify import slice_checks, verify
from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import objective_value
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph
from nmsolve.model.graph import LogicGraph, node_kinds
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.constraints_file import load_constraints, save_constraints
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.slices import MOST_SLICES, populations
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.explain import explain, recheck_conflict
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine

FAST = settings(max_examples=30, deadline=None)
SEED = st.integers(0, 2**32 - 1)


def random_problem(seed: int, objective: str = "hops", rules: bool = True) -> MappingProblem:
    """At most seven nodes, some of one or two neurons, on at most four cores; two populations that may overlap."""
    rng = np.random.default_rng(seed)
    n, shape = int(rng.integers(2, 8)), [(1, 2), (1, 3), (2, 2)][rng.integers(3)]
    src, dst = np.nonzero(np.triu(rng.random((n, n)) < 0.5, 1))
    sizes = rng.integers(1, 3, (n, 1)) if seed % 2 else None
    graph = LogicGraph.from_edges(
        n, src, dst, rng.integers(1, 9, len(src)), sizes=sizes, multicast=rng.random(n) < 0.5
    )
    capacity = {"neurons": int(rng.integers(3, 9))} if seed % 3 else {}
    machine = Machine("m", (1, 1), shape, capacity=capacity)
    some = []
    for kind in ("together", "apart", "region") if rules else ():
        if rng.random() < 0.3:
            nodes = tuple(rng.choice(n, 2, False).tolist())
            some.append(SideConstraint(kind, kind, nodes, (0, machine.size - 1) if kind == "region" else ()))
    for k in range(2):
        nodes = tuple(np.flatnonzero(rng.random(n) < 0.6).tolist()) or (0,)
        some.append(SideConstraint(f"p{k}", "slices", nodes, most=int(rng.integers(1, 4))))
    return MappingProblem(
        graph, machine, objective, tuple(some), int(rng.integers(2, 5)) if seed % 5 == 0 else None
    )


def keeps(problem: MappingProblem, core: tuple[int, ...]) -> bool:
    """The rule by its definition."""
    graph = problem.graph
    neurons = graph.sizes[:, 0].tolist() if "neurons" in graph.resources else [1] * graph.n
    return all(
        sum(neurons[u] for u in c.nodes if core[u] == p) <= c.most
        for c in problem.constraints
        if c.kind == "slices"
        for p in range(problem.cores)
    )


def legal(problem: MappingProblem) -> list[np.ndarray]:
    """Every mapping that keeps all rules; the checks of ``map`` and of ``verify`` say of each if slices are too large."""
    out = []
    names = {c.name for c in problem.constraints if c.kind == "slices"}
    for core in itertools.product(range(problem.cores), repeat=problem.n):
        broken = check_mapping(problem, np.array(core))
        assert keeps(problem, core) != any(v.rule in names for v in broken)
        assert keeps(problem, core) == all(c.ok for c in slice_checks(problem, np.array(core)))
        if not broken:
            out.append(np.array(core))
    return out


@FAST
@given(SEED)
def test_reasons_are_true_and_first_fit_is_legal(seed: int) -> None:
    problem = random_problem(seed)
    reasons_and_first_fit_agree(problem, legal(problem), seed)


@settings(max_examples=16, deadline=None)
@given(SEED, st.sampled_from(OBJECTIVES), st.booleans())
def test_exact_models_find_the_optimum_of_all_mappings(seed: int, objective: str, cpsat: bool) -> None:
    problem = random_problem(seed, objective)
    some = legal(problem)
    if some:
        exact_model_ends_at_the_best(problem, some, "cpsat" if cpsat else "mip")


@FAST
@given(SEED)
def test_infeasible_is_what_the_model_and_the_second_model_say(seed: int) -> None:
    problem = random_problem(seed)
    explained(problem, legal(problem))


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_for_all_mappings_and_their_certificates_prove_them(seed: int) -> None:
    """Of whatever automatic mode runs, on the problem as stated."""
    problem = random_problem(seed, ("hops", "multicast-hops", "cut", "connectivity")[seed % 4])
    some = legal(problem)
    if not some:
        assert explain(problem, 10.0).status == "infeasible"
        return
    best = min(objective_value(problem, core) for core in some)
    result = solve(problem, time_limit=3, seed=1)
    assert result.objective == pytest.approx(best)
    for bound in result.bounds:
        assert bound.scope != "full" or bound.value <= best * (1 + 1e-9) + 1e-9
        check = check_bound(problem, bound, result.solution)
        assert check.ok, check.text


def test_one_of_each_is_what_apart_says() -> None:
    """Of nodes that are one neuron each: the same optimum, and the same mappings."""
    for seed in range(6):
        problem = random_problem(2 * seed, rules=False)
        nodes = tuple(range(0, problem.n, 2))
        one = replace(problem, constraints=(SideConstraint("a", "slices", nodes, most=1),))
        apart = replace(problem, constraints=(SideConstraint("a", "apart", nodes),))
        assert [c.tolist() for c in legal(one)] == [c.tolist() for c in legal(apart)]


#: Engines that obey side constraints, with an objective that each takes for several nodes per core.
ENGINES = {
    "first-fit": "hops", "multilevel": "hops", "external": "hops", "nets": "multicast-hops", "links": "max-link",
    "steps": "step-time", "reward": "reward", "m2": "hops", "communities": "hops", "remap": "hops", "cpsat": "hops",
    "mip": "hops",
}  # fmt: skip


def network(objective: str) -> MappingProblem:
    """Sixty neurons of three populations on cores that are almost full of each."""
    n, rng = 60, np.random.default_rng(7)
    source, of = np.repeat(np.arange(n), 4), rng.integers(0, 3, n)
    graph = LogicGraph.from_edges(
        n, source, (source + rng.integers(1, 20, 4 * n)) % n, multicast=np.ones(n, bool)
    )
    machine = Machine("m", (1, 2), (3, 2), capacity={"neurons": 7}, figures=load_machine("loihi1").figures)
    rules = tuple(
        SideConstraint(
            f"p{k}", "slices", tuple(np.flatnonzero(of == k).tolist()), most=-(-int((of == k).sum()) // 11)
        )
        for k in range(3)
    )
    return MappingProblem(graph, machine, objective, rules)


@pytest.mark.parametrize("name", ENGINES)
def test_engines_keep_slices(name: str) -> None:
    """No mapping that an engine offers breaks a limit; all but the exact ones find one within a second."""
    problem = network(ENGINES[name])
    engine_keeps_the_rules(name, problem)


def test_engines_that_take_no_side_constraints_refuse() -> None:
    for name in ("metis", "kaminpar", "mtkahypar"):
        if name in REGISTRY:
            assert "'slices'" in str(make_engine(name).refuses(network("hops")))


def test_the_limit_is_part_of_the_problem() -> None:
    one, two = (
        MappingProblem(
            LogicGraph.from_edges(2, [0], [1]), Machine("m", (1, 1), (1, 2)), "hops",
            (SideConstraint("a", "slices", (0, 1), most=most),),
        )
        for most in (1, 2)
    )  # fmt: skip
    assert one.hash != two.hash and one.constraints != two.constraints
    assert one.resources == ("neurons of a",) and one.capacity.tolist() == [[1], [1]]


# words and files

NAMED = LogicGraph.from_edges(5, [0, 1], [1, 2], ids=("E/0", "E/1", "I/x/0", "I/x/1", "alone"), name="net")


def test_populations_are_kinds_else_what_ids_begin_with() -> None:
    assert populations(NAMED) == {"E": (0, 1), "I/x": (2, 3)}
    kinds = replace(NAMED, kinds=node_kinds(["exc", "exc", 2, 2, 2]))
    assert populations(kinds) == {"exc": (0, 1), "2": (2, 3, 4)}
    assert populations(LogicGraph.from_edges(2, [0], [1])) == {}


def constraints(path: Path, *entries: dict[str, object]) -> Path:
    path.write_text(json.dumps({"constraints": entries}))
    return path


def test_a_population_stands_for_its_nodes(tmp_path: Path) -> None:
    machine = Machine("m", (1, 1), (2, 2))
    path = constraints(
        tmp_path / "c.json",
        {"kind": "slices", "population": "*", "most": 2},
        {"kind": "slices", "population": "E", "most": 1, "name": "fine"},
        {"kind": "slices", "population": "*", "most": 9, "name": "wide"},
        {"kind": "slices", "nodes": ["alone", "E/0"], "most": 3},
        {"kind": "region", "population": "E", "at": "west"},
    )
    read = load_constraints(path, NAMED, machine)
    assert read == (
        SideConstraint("E", "slices", (0, 1), most=2),
        SideConstraint("I/x", "slices", (2, 3), most=2),
        SideConstraint("fine", "slices", (0, 1), most=1),
        SideConstraint("wide E", "slices", (0, 1), most=9),
        SideConstraint("wide I/x", "slices", (2, 3), most=9),
        SideConstraint("slices 3", "slices", (4, 0), most=3),
        SideConstraint("region 4", "region", (0, 1), (0, 2)),
    )
    save_constraints(read, NAMED, machine, path)
    assert load_constraints(path, NAMED, machine) == read


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            {"kind": "slices", "population": "L4E", "most": 2},
            ("$.constraints[0].population", "'L4E'", "E, I/x"),
        ),
        ({"kind": "slices", "population": "E"}, ("slices without most",)),
        ({"kind": "region", "population": "E", "at": "west", "most": 2}, ("region with most",)),
        ({"kind": "slices", "population": "E", "most": 0}, ("$.constraints[0].most", "the limit is 0")),
        ({"kind": "slices", "population": "E", "most": -(2**70)}, ("$.constraints[0].most",)),
        ({"kind": "slices", "population": "E", "most": 2**31}, ("$.constraints[0].most",)),
        ({"kind": "slices", "population": "E", "most": 1.5}, ("$.constraints[0].most",)),
        ({"kind": "slices", "population": "E", "nodes": ["E/0"], "most": 1}, ("nodes and a population",)),
        ({"kind": "slices", "most": 1}, ("$.constraints[0].nodes: 0 nodes",)),
        ({"kind": "slices", "nodes": ["E/0"], "most": 1, "chips": [0]}, ("slices with chips", "nodes only")),
        ({"kind": "region", "population": "*", "at": "west"}, ("'*'",)),
        ({"kind": "slices", "population": 3, "most": 1}, ("$.constraints[0].population",)),
    ],
)
def test_bad_slices_are_refused_in_one_line(
    tmp_path: Path, entry: dict[str, object], words: tuple[str, ...]
) -> None:
    path = constraints(tmp_path / "c.json", entry)
    with pytest.raises(InputError) as error:
        load_constraints(path, NAMED, Machine("m", (1, 1), (2, 2)))
    said = str(error.value)
    assert "\n" not in said and all(word in said for word in words), said


def test_names_that_meet_are_refused() -> None:
    machine = Machine("m", (1, 1), (2, 2))
    twice = tuple(SideConstraint("a", "slices", (0, 1), most=k) for k in (1, 2))
    with pytest.raises(InputError, match="two resources are called 'neurons of a'"):
        MappingProblem(NAMED, machine, "hops", twice)
    many = tuple(SideConstraint(f"a{k}", "slices", (0, 1), most=1) for k in range(MOST_SLICES + 1))
    with pytest.raises(InputError, match=f"at most {MOST_SLICES}"):
        MappingProblem(NAMED, machine, "hops", many)
    with pytest.raises(InputError, match="0 neurons per core"):
        MappingProblem(NAMED, machine, "hops", (SideConstraint("a", "slices", (0,)),))


def test_the_command_maps_and_verify_counts_again(tmp_path: Path) -> None:
    run_here("generate", "microcircuit", "--scale", "0.002", "--out", tmp_path / "m.json")
    rules = constraints(tmp_path / "c.json", {"kind": "slices", "population": "*", "most": 3})
    out = tmp_path / "o"
    command = ("map", tmp_path / "m.json", "-m", "mesh:4x4", "--constraints", rules, "-t", "3", "--seed", "1")
    run_here(*command, "--objective", "hops", "--out", out)
    said = run_here("verify", out, "--bound").stdout
    assert "ok      slices" in said and "3 of 3 neurons" in said
    graph = load_graph(tmp_path / "m.json")
    mapping = json.loads((out / "mapping.json").read_text())
    for u in populations(graph)["L4E"]:
        k = mapping["node"].index(graph.node_id(u))
        mapping["row"][k], mapping["col"][k] = 0, 0
    (out / "mapping.json").write_text(json.dumps(mapping))
    line = next(
        t for t in run_here("verify", out, code=1).stdout.splitlines() if "slices" in t and "FAILED" in t
    )
    assert "neurons" in line


def test_too_few_cores_for_a_population_are_explained(tmp_path: Path) -> None:
    """44 neurons of L4E in slices of two need 22 cores; by counting, and by the model."""
    run_here("generate", "microcircuit", "--scale", "0.002", "--out", tmp_path / "m.json")
    rules = constraints(tmp_path / "c.json", {"kind": "slices", "population": "L4E", "most": 2})
    where = (tmp_path / "m.json", "-m", "mesh:4x4", "--constraints", rules)
    refused = run_here("map", *where, code=2).stderr
    assert "44 neurons of L4E in total" in refused and "32 (2 each)" in refused
    said = run_here("explain", *where, code=4).stdout
    assert "slices 'L4E'" in said


def test_verify_names_the_core_that_holds_too_many() -> None:
    told = (SideConstraint("E", "slices", (0, 1), most=1),)
    checks = {
        c.name: c for c in verify(NAMED, Machine("m", (1, 1), (2, 2)), told, np.array([3, 3, 0, 0, 0])).checks
    }
    assert checks["slices"].text == "core 3 has 2 of 1 neurons of 'E'" and not checks["slices"].ok
    assert "slices 'E': core 3 holds 2 neurons, its limit is 1" in checks["feasible"].text


def test_what_counting_does_not_show_the_model_does() -> None:
    """Nodes of 5, 4 and 3 neurons on two cores of six each: twelve in all, and no two fit together."""
    graph = LogicGraph.from_edges(3, [], [], sizes=np.array([[5], [4], [3]]))
    told = (SideConstraint("p", "slices", (0, 1, 2), most=6),)
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 2)), "hops", told)
    assert explain_misfit(problem) == []
    found = explain(problem, 10.0)
    assert found.status == "infeasible" and found.conflict is not None
    assert [x.words for x in found.conflict.limits] == ["slices 'p'"]
    assert recheck_conflict(problem, found.conflict.certificate)
    roomy = replace(problem, constraints=(SideConstraint("p", "slices", (0, 1, 2), most=7),))
    assert explain(roomy, 10.0).status == "feasible"


@pytest.mark.parametrize("seed", range(10))
def test_the_two_ways_to_merge_nodes_agree_on_slices(seed: int) -> None:
    """That of the engines and that of the re-checks: what groups take, and what a core has."""
    problem = random_problem(seed)
    tied = (SideConstraint("t", "together", (0, 1)),)
    problem = replace(problem, constraints=(*(c for c in problem.constraints if c.kind == "slices"), *tied))
    ours, theirs = merge_together(problem).reduced, contracted(problem)
    assert set(ours.resources) == set(theirs.resources) and {"neurons of p0", "neurons of p1"} <= set(
        ours.resources
    )
    for name in ours.resources:
        i, k = ours.resources.index(name), theirs.resources.index(name)
        assert ours.sizes[:, i].tolist() == theirs.sizes[:, k].tolist()
        assert ours.capacity[:, i].tolist() == theirs.capacity[:, k].tolist()
