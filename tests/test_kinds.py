"""Kinds of nodes that may not share a core: files, checks, engines against every mapping tried, reasons, bad input."""

from __future__ import annotations

import itertools
import json
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

from nmsolve.check.mapping.verify import verify
from nmsolve.heuristics.mapping.multilevel.graph import finest_graph
from nmsolve.heuristics.mapping.multilevel.lines import lines_of
from nmsolve.heuristics.mapping.multilevel.mapper import map_multilevel
from nmsolve.heuristics.mapping.multilevel.pack import make_feasible
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.cost import core_distance
from nmsolve.hw.machine_write import save_machine
from nmsolve.hw.machines import load_machine
from nmsolve.hw.occupied import beside
from nmsolve.hw.scores import objective_value
from nmsolve.model.errors import InputError
from nmsolve.model.features import Takes
from nmsolve.model.formats import convert, load_graph, save_graph
from nmsolve.model.generators import generate, generate_file
from nmsolve.model.graph import LogicGraph, node_kinds
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.features import FEATURES
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine

FAST = settings(max_examples=30, deadline=None)
SEED = st.integers(0, 2**32 - 1)


def random_problem(seed: int, objective: str = "hops", rules: bool = True) -> MappingProblem:
    """At most seven nodes of up to four kinds on at most four cores, often too few of them."""
    rng = np.random.default_rng(seed)
    n, shape = int(rng.integers(2, 8)), [(1, 2), (1, 3), (2, 2)][rng.integers(3)]
    src, dst = np.nonzero(np.triu(rng.random((n, n)) < 0.5, 1))
    kinds = node_kinds([f"k{k}" for k in rng.integers(0, rng.integers(2, 5), n)])
    graph = LogicGraph.from_edges(
        n, src, dst, rng.integers(1, 9, len(src)), sizes=rng.integers(1, 3, (n, 1)), kinds=kinds,
        multicast=rng.random(n) < 0.5,
    )  # fmt: skip
    machine = Machine(
        "m", (1, 1), shape, capacity={"neurons": int(rng.integers(3, 9))},
        kinds_per_core=int(rng.integers(1, 3)),
    )  # fmt: skip
    some = []
    for kind in ("together", "apart", "region") if rules else ():
        if rng.random() < 0.3:
            nodes = tuple(rng.choice(n, 2, False).tolist())
            some.append(SideConstraint(kind, kind, nodes, (0, machine.size - 1) if kind == "region" else ()))
    return MappingProblem(graph, machine, objective, tuple(some))


def legal(problem: MappingProblem) -> list[np.ndarray]:
    """Every mapping that keeps all rules; kinds by their definition."""
    out, machine, kinds = [], problem.machine, problem.graph.kinds
    assert kinds is not None and machine.kinds_per_core is not None
    for core in itertools.product(range(machine.size), repeat=problem.n):
        here: dict[int, set[int]] = {}
        for u, p in enumerate(core):
            here.setdefault(p, set()).add(int(kinds.of[u]))
        many = max(map(len, here.values())) > machine.kinds_per_core
        broken = check_mapping(problem, np.array(core))
        assert many == any(v.rule == "kinds" for v in broken)
        if not broken:
            out.append(np.array(core))
    return out


@FAST
@given(SEED)
def test_reasons_are_true_and_first_fit_is_legal(seed: int) -> None:
    problem = random_problem(seed)
    reasons_and_first_fit_agree(problem, legal(problem), seed)


@settings(max_examples=12, deadline=None)
@given(SEED, st.sampled_from(OBJECTIVES), st.booleans())
def test_exact_models_find_the_optimum_of_all_mappings(seed: int, objective: str, cpsat: bool) -> None:
    problem = random_problem(seed, objective)
    some = legal(problem)
    if some and problem.n >= 2:
        exact_model_ends_at_the_best(problem, some, "cpsat" if cpsat else "mip")


@FAST
@given(SEED)
def test_infeasible_is_what_the_model_and_the_second_model_say(seed: int) -> None:
    problem = random_problem(seed)
    found = explained(problem, legal(problem))
    if found.conflict is not None and any(x.kind == "kinds" for x in found.conflict.limits):
        assert "counting does not show it" in found.conflict.text or "kind" in found.conflict.text


#: Engines that keep to kinds, with an objective that each takes.
ENGINES = {
    "multilevel": "hops",
    "first-fit": "hops",
    "m2": "hops",
    "nets": "multicast-hops",
    "links": "max-link",
    "reward": "reward",
    "steps": "step-time",
    "remap": "hops",
    "communities": "hops",
    "cpsat": "hops",
    "mip": "hops",
}


def network(
    most: int, objective: str = "hops", n: int = 60, cores: tuple[int, int] = (3, 4)
) -> MappingProblem:
    """Nodes of five kinds that do not keep to themselves, on cores that are almost full."""
    rng = np.random.default_rng(7)
    source = np.repeat(np.arange(n), 4)
    kinds = np.sort(rng.integers(0, 5, n))
    graph = LogicGraph.from_edges(
        n, source, (source + rng.integers(1, 20, 4 * n)) % n, multicast=np.ones(n, bool),
        kinds=node_kinds([f"k{k}" for k in rng.permutation(kinds)]),
    )  # fmt: skip
    room = 7 if most == 1 else 6
    machine = Machine(
        "m", (1, 2), (cores[0], cores[1] // 2), capacity={"neurons": room}, kinds_per_core=most,
        figures=load_machine("loihi1").figures,
    )  # fmt: skip
    return MappingProblem(graph, machine, objective)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("name", ENGINES)
def test_engines_that_take_kinds_keep_to_them(name: str, most: int) -> None:
    """No mapping that an engine offers breaks the limit."""
    problem = network(most, ENGINES[name])
    assert problem.kinds is not None
    engine_keeps_the_rules(name, problem)


def test_every_engine_that_finds_mappings_keeps_to_kinds_or_refuses() -> None:
    """Nobody else may list the feature unseen."""
    problem = network(1)
    finders = [name for name in REGISTRY if make_engine(name).finds != "bounds"]
    rules = {name: getattr(make_engine(name), "refuses", None) for name in finders}
    taking = {name for name, rule in rules.items() if isinstance(rule, Takes) and rule.handles("kinds")}
    assert taking == {*ENGINES}
    assert "kinds per core" in str(make_engine("external").refuses(problem))


def test_without_more_kinds_than_fit_there_is_no_feature() -> None:
    problem = network(1)
    many = MappingProblem(problem.graph, Machine("m", (1, 1), (3, 4), kinds_per_core=5))
    plain = MappingProblem(problem.graph, Machine("m", (1, 1), (3, 4)))
    single = MappingProblem(problem.graph, Machine("m", (1, 1), (8, 8), kinds_per_core=1), node_limit=1)
    assert not any(FEATURES["kinds"].has(p) for p in (many, plain, single))
    assert FEATURES["kinds"].has(problem)


@pytest.mark.parametrize("most", [1, 2])
def test_the_packing_search_finds_room_kind_by_kind(most: int) -> None:
    """From everything on one core; cores are as full as kinds allow."""
    problem = network(most)
    net, board = finest_graph(problem), lines_of(problem, core_distance(problem))
    found = make_feasible(net, board, np.zeros(problem.n, np.int32), new_rng(1))
    assert found is not None and not check_mapping(problem, found.astype(np.int64))


def test_multilevel_is_as_good_as_the_best_of_all_mappings() -> None:
    """Small cases, both limits; the mapper alone."""
    good = 0
    for seed in range(12):
        problem = random_problem(seed, rules=False)
        some = legal(problem)
        if not some or problem.kinds is None:
            continue
        core = map_multilevel(problem, seed, 2e7, lambda: False, lambda core, move: None)
        assert core is not None and not check_mapping(problem, core)
        best = min(objective_value(problem, other) for other in some)
        good += 1
        assert objective_value(problem, core) <= 1.5 * best + 1e-9
    assert good >= 4


def test_a_board_of_two_kinds_is_sorted_and_solved() -> None:
    """Two kinds of 32 nodes each in cliques of eight: eight cores of one kind each, no traffic between them."""
    n = 64
    clique = np.arange(n) // 8
    src, dst = np.nonzero(np.triu(clique[:, None] == clique[None, :], 1))
    graph = LogicGraph.from_edges(n, src, dst, kinds=node_kinds([int(c % 2) for c in clique]))
    machine = Machine("m", (1, 1), (2, 4), capacity={"neurons": 8}, kinds_per_core=1)
    core = map_multilevel(MappingProblem(graph, machine), 1, 1e8, lambda: False, lambda core, move: None)
    assert core is not None and objective_value(MappingProblem(graph, machine), core) == 0


# words


def kinds_of(*kinds: str | int, machine: Machine, rules: tuple[SideConstraint, ...] = ()) -> MappingProblem:
    graph = LogicGraph.from_edges(len(kinds), [], [], kinds=node_kinds(kinds), name="net")
    return MappingProblem(graph, machine, "hops", rules)


def test_too_few_cores_for_all_kinds_says_how_many_each_needs() -> None:
    machine = Machine("m", (1, 1), (1, 3), capacity={"neurons": 2}, kinds_per_core=1)
    said = explain_misfit(kinds_of("a", "a", "a", "b", 7, machine=machine))
    assert said == [
        "with one kind per core the nodes need at least 4 cores: kind 'a' 2, kind 'b' 1, kind 7 1; m has 3 usable"
    ]


def test_a_kind_that_may_not_be_on_as_many_cores_as_it_needs_is_named() -> None:
    machine = Machine("m", (1, 1), (1, 4), capacity={"neurons": 2}, kinds_per_core=1)
    rules = (SideConstraint("left", "region", (0, 1, 2), (0,)),)
    assert explain_misfit(kinds_of("a", "a", "b", "c", machine=machine, rules=rules)) != []
    rules = (SideConstraint("left", "region", (0, 1), (0,)),)
    said = explain_misfit(kinds_of("a", "b", "c", machine=machine, rules=rules))
    assert said == [
        "core 0 would have to hold nodes of 2 kinds ('a' and 'b'), its limit is 1 (kinds_per_core)"
    ]
    two = Machine("m", (1, 1), (1, 4), capacity={"neurons": 2}, kinds_per_core=2)
    rules = (SideConstraint("left", "region", (0, 1, 2), (0, 1)),)
    said = explain_misfit(kinds_of("a", "a", "a", "b", "c", machine=two, rules=rules))
    assert said == []


def test_a_group_of_too_many_kinds_is_named() -> None:
    machine = Machine("m", (1, 1), (1, 3), kinds_per_core=1)
    said = explain_misfit(
        kinds_of("a", "b", machine=machine, rules=(SideConstraint("t", "together", (0, 1)),))
    )
    assert said == [
        "nodes 0, 1 (together 't') are of kinds 'a' and 'b', a core takes 1 kind (kinds_per_core)"
    ]


def test_checks_name_core_kinds_and_limit() -> None:
    machine = Machine("m", (1, 1), (1, 2), kinds_per_core=1)
    problem = kinds_of("a", "b", "a", machine=machine)
    core = np.array([0, 0, 1])
    said = [v.text for v in check_mapping(problem, core)]
    assert said == ["core 0 holds nodes of 2 kinds ('a' and 'b'), its limit is 1"]
    checks = {c.name: c for c in verify(problem.graph, machine, (), core).checks}
    assert not checks["feasible"].ok and not checks["kinds per core"].ok
    assert checks["kinds per core"].text == "core 0 has most: 2 of 1 kinds ('a', 'b')"
    checks = {c.name: c for c in verify(problem.graph, machine, (), np.array([0, 1, 0])).checks}
    assert checks["kinds per core"].ok and checks["feasible"].ok


def test_kinds_of_another_network_on_the_board_are_refused() -> None:
    """What it has on a core would not count."""
    graph = LogicGraph.from_edges(2, [0], [1], kinds=node_kinds(["a", "b"]), name="first")
    machine = Machine("m", (1, 1), (1, 2), capacity={"neurons": 4}, kinds_per_core=1)
    with pytest.raises(InputError, match="first has kinds of nodes"):
        beside(machine, [(graph, np.array([0, 1]))])
    plain = LogicGraph.from_edges(2, [0], [1])
    assert beside(machine, [(plain, np.array([0, 1]))]).kinds_per_core == 1


# files


def test_kinds_survive_every_format_that_has_them(tmp_path: Path) -> None:
    graph = LogicGraph.from_edges(4, [0, 1, 3], [1, 2, 0], kinds=node_kinds(["exc", 2, "exc", "2"]), name="g")
    nets = LogicGraph.from_nets(
        3, np.array([0, 3, 5]), np.array([0, 1, 2, 2, 0]), kinds=node_kinds([1, 1, 0])
    )
    plain = LogicGraph.from_edges(4, [0, 1, 3], [1, 2, 0], name="g")
    assert len({graph.hash, plain.hash}) == 2
    for one in (graph, nets, plain):
        for name in ("a.json", "a.npz", "a.nmz"):
            save_graph(one, tmp_path / name)
            again = load_graph(tmp_path / name)
            assert again.hash == one.hash and (again.kinds is None) == (one.kinds is None)
            if one.kinds is not None and again.kinds is not None:
                assert again.kinds.names == one.kinds.names
                assert again.kinds.of.tolist() == one.kinds.of.tolist()
        convert(tmp_path / "a.npz", tmp_path / "b.nmz")
        convert(tmp_path / "b.nmz", tmp_path / "c.nmz")
        assert load_graph(tmp_path / "c.nmz").hash == one.hash


def test_populations_of_the_microcircuit_are_kinds_if_asked_for(tmp_path: Path) -> None:
    graph = generate("microcircuit", scale=0.01, kinds=1)
    plain = generate("microcircuit", scale=0.01)
    assert plain.kinds is None and graph.kinds is not None and len(graph.kinds.names) == 8
    assert graph.kinds.names[:2] == ("L23E", "L23I")
    generate_file("microcircuit", tmp_path / "a.nmz", scale=0.01, kinds=1)
    assert load_graph(tmp_path / "a.nmz").hash == graph.hash


BAD = {
    "missing": ({"kind": None}, "$.nodes[1].kind", "no kind, but node 0 has one"),
    "number": ({"kind": 1.5}, "$.nodes[1].kind", "found 1.5"),
    "truth": ({"kind": True}, "$.nodes[1].kind", "found True"),
    "list": ({"kind": ["a"]}, "$.nodes[1].kind", "found ['a']"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_kind_is_one_line(case: str, tmp_path: Path) -> None:
    change, place, what = BAD[case]
    nodes = [{"id": 0, "kind": "a"}, {"id": 1, **change}]
    if change["kind"] is None:
        del nodes[1]["kind"]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"nodes": nodes, "edges": []}))
    done = run_here("map", path, "--machine", "mesh:1x2", code=2)
    assert len(done.stderr.splitlines()) == 1 and place in done.stderr and what in done.stderr


def test_a_column_of_kinds_has_the_length_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    columns = {"form": "columns", "nodes": {"n": 2, "kind": ["a"]}, "edges": {"source": [0], "target": [1]}}
    path.write_text(json.dumps(columns))
    with pytest.raises(InputError, match=r"\$\.nodes\.kind: 1 values; expected 2"):
        load_graph(path)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "true", '"many"', "[1]", "nan"])
def test_a_wrong_limit_of_a_machine_is_one_line(value: str, tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(f"cores = [1, 2]\nkinds_per_core = {value}\n")
    done = run_here("hw", "show", path, code=2)
    assert len(done.stderr.splitlines()) == 1 and "$.kinds_per_core" in done.stderr


def test_the_limit_is_read_written_shown_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text('cores = [1, 2]\nkinds_per_core = { value = 2, source = "a book", verified = true }\n')
    machine = load_machine(str(path))
    assert machine.kinds_per_core == 2
    save_machine(machine, tmp_path / "again.toml")
    again = load_machine(str(tmp_path / "again.toml"))
    assert again.hash == machine.hash and again.figures == machine.figures
    assert again.hash != load_machine("mesh:1x2").hash
    shown = run_here("hw", "show", path).stdout
    assert "kinds of nodes" in shown and "a book" in shown


def test_the_command_line_keeps_to_kinds_explains_and_verifies(tmp_path: Path) -> None:
    nodes = [{"id": f"n{i}", "kind": "exc" if i % 3 else "inh"} for i in range(9)]
    edges = [{"source": f"n{i}", "target": f"n{(i + j) % 9}"} for i in range(9) for j in (1, 2)]
    graph, machine = tmp_path / "g.json", tmp_path / "m.toml"
    graph.write_text(json.dumps({"nodes": nodes, "edges": edges}))
    machine.write_text('name = "small"\ncores = [2, 2]\nkinds_per_core = 1\n[capacity]\nneurons = 3\n')
    assert "2 kinds" in run_here("info", graph).stdout
    out = tmp_path / "run"
    run_here("map", graph, "--machine", machine, "--time-limit", "20s", "--out", out)
    report = json.loads((out / "report.json").read_text())
    assert report["status"] == "optimal"
    assert "kinds per core" in run_here("verify", out).stdout
    assert "rests on the word of cpsat" in run_here("verify", out, "--bound", code=6).stdout
    machine.write_text('name = "small"\ncores = [1, 3]\nkinds_per_core = 1\n[capacity]\nneurons = 4\n')
    run_here("map", graph, "--machine", machine, "--time-limit", "5s")
    machine.write_text('name = "small"\ncores = [1, 2]\nkinds_per_core = 1\n[capacity]\nneurons = 5\n')
    done = run_here("map", graph, "--machine", machine, code=2)
    assert "kind 'exc' 2, kind 'inh' 1; small has 2 usable" in done.stderr
    done = run_here("explain", graph, "--machine", machine, code=4)
    assert "the limit of kinds per core" in done.stdout and "a second program" in done.stdout
