"""One list of limits: the check of mappings, counting, ``explain``, its second program and ``verify`` know every kind of them."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from command_support import run_here

import nmsolve
from nmsolve.check.mapping.tables import walked_entries
from nmsolve.check.mapping.verify import verify
from nmsolve.model.between import BetweenCores
from nmsolve.model.errors import CertificateError, InputError, InputWarning
from nmsolve.model.graph import LogicGraph, NodeKinds, node_kinds
from nmsolve.model.limit import Limit
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.idle import say_idle
from nmsolve.model.mapping.limits import LIMITS, limits_of, restricted
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.explain import MappingLimits, explain, recheck_conflict
from nmsolve.solvers.search.conflict import Answer, Limits, smallest_conflict

#: Links of a 2 x 3 board without which core 0 is alone.
CORNER = ((0, 1), (1, 0), (0, 3), (3, 0))


def star(leaves: int = 3, **more: object) -> LogicGraph:
    """Node 0 sends a multicast message to each of the others."""
    made = LogicGraph.from_edges(
        leaves + 1, [0] * leaves, range(1, leaves + 1), multicast=np.ones(leaves + 1, bool), **more
    )  # type: ignore[arg-type]
    return made


def board(rows: int = 2, cols: int = 3, **more: object) -> Machine:
    return Machine("board", (1, 1), (rows, cols), **more)  # type: ignore[arg-type]


def problem(
    graph: LogicGraph, machine: Machine, *rules: SideConstraint, limit: int | None = None, moves: int | None = None
) -> MappingProblem:  # fmt: skip
    migration = None if moves is None else Migration.of(np.zeros(graph.n, np.int64), moves)
    return MappingProblem(graph, machine, "hops", rules, limit, migration)


SIZED = {"resources": ("neurons",), "sizes": np.full((4, 1), 3)}
#: For every kind of limit: a problem, a mapping that breaks this kind alone, and whether the limit forbids every mapping.
BROKEN: dict[str, tuple[MappingProblem, list[int], bool]] = {
    "pin": (problem(star(), board(), SideConstraint("c", "pin", (0,), (1,))), [0, 0, 0, 0], False),
    "region": (problem(star(), board(), SideConstraint("c", "region", (0, 1), (1, 2))), [1, 0, 0, 0], False),
    "forbid": (problem(star(), board(), SideConstraint("c", "forbid", (0,), tuple(range(6)))), [0, 0, 0, 0], True),
    "together": (problem(star(), board(), SideConstraint("c", "together", (0, 1))), [0, 1, 0, 0], False),
    "apart": (problem(star(), board(1, 2), SideConstraint("c", "apart", (0, 1, 2))), [0, 1, 1, 0], True),
    "slices": (problem(star(), board(1, 1), SideConstraint("c", "slices", (0, 1), (), "", 1)), [0, 0, 0, 0], True),
    "faulty": (problem(star(), board(1, 1, faulty_cores=(0,))), [0, 0, 0, 0], True),
    "taken": (problem(star(), board(taken_cores=(0,))), [0, 0, 0, 0], False),
    "node limit": (problem(star(), board(1, 3), limit=1), [0, 1, 2, 2], True),
    "kinds": (
        problem(star(kinds=NodeKinds(("a", "b"), np.array([0, 0, 1, 1]))), board(1, 1, kinds_per_core=1)), [0, 0, 0, 0], True,
    ),
    "capacity": (problem(star(**SIZED), board(1, 2, capacity={"neurons": 2})), [0, 0, 1, 1], True),
    "axons": (problem(star(), board(1, 1, capacity={"axons_in": 0})), [0, 0, 0, 0], True),
    "table_entries": (problem(star(), board(1, 4, capacity={"table_entries": 0}), limit=1), [0, 1, 2, 3], True),
    "cut off": (problem(star(), board(faulty_links=CORNER)), [0, 1, 1, 1], False),
    "migration": (problem(star(), board(), moves=1), [0, 1, 2, 0], False),
}  # fmt: skip


def test_every_kind_of_limit_has_an_example() -> None:
    assert list(BROKEN) == [kind.name for kind in LIMITS]


@pytest.mark.parametrize("kind", LIMITS, ids=lambda kind: kind.name)
def test_every_user_of_the_list_knows_the_limit(kind: object) -> None:
    """The check and ``verify`` see it broken, ``explain`` never gives a mapping that breaks it, and lifts it where it can."""
    stated, broken, hopeless = BROKEN[kind.name]  # type: ignore[attr-defined]
    core = np.array(broken)
    assert check_mapping(stated, core) and check_mapping(stated, core) == kind.broken(stated, core)  # type: ignore[attr-defined]
    told = verify(
        stated.graph, stated.machine, stated.constraints, core, node_limit=stated.node_limit, migration=stated.migration
    )  # fmt: skip
    assert not told.ok
    if kind.name == "migration":  # type: ignore[attr-defined]
        return  # `explain` has no such option
    own = kind.stated(stated)  # type: ignore[attr-defined]
    others = tuple(x for x in limits_of(stated) if x not in own)
    assert own and not check_mapping(restricted(stated, others), core)
    found = explain(stated, 20.0)
    assert found.status == ("infeasible" if hopeless else "feasible")
    if found.conflict is None:
        assert found.solution is not None and not check_mapping(stated, found.solution)
        return
    assert set(own) <= set(found.conflict.limits) and own[0] in found.lift + found.enough
    assert recheck_conflict(stated, found.certificate)
    assert explain_misfit(stated)  # counting refuses these


def random_problem(rng: np.random.Generator) -> MappingProblem:
    """A few nodes on a few cores, with limits of every kind."""
    n, cores = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    rows = 2 if cores == 4 and rng.random() < 0.5 else 1
    edges = [(u, v) for u in range(n) for v in range(n) if u != v and rng.random() < 0.5]
    kinds = node_kinds(rng.integers(0, 3, n).tolist()) if rng.random() < 0.3 else None
    graph = LogicGraph.from_edges(
        n, [u for u, _ in edges], [v for _, v in edges], resources=("a", "b"), sizes=rng.integers(0, 4, (n, 2)),
        multicast=np.full(n, rng.random() < 0.6), kinds=kinds,
    )  # fmt: skip
    capacity = {r: int(rng.integers(2, 9)) for r in ("a", "b") if rng.random() < 0.6}
    capacity |= {r: int(rng.integers(0, 6)) for r in ("axons_in", "axons_out") if rng.random() < 0.2}
    capacity |= {"table_entries": int(rng.integers(0, 5))} if rng.random() < 0.5 else {}
    faulty, taken = (tuple(np.flatnonzero(rng.random(cores) < share).tolist()) for share in (0.15, 0.1))
    whole = Machine("m", (1, 1), (rows, cores // rows))
    links = tuple((p, q) for p in range(cores) for q in whole.neighbours(p) if rng.random() < 0.15)
    machine = Machine(
        "m", (1, 1), (rows, cores // rows), capacity=capacity, faulty_cores=faulty, taken_cores=taken, faulty_links=links,
        kinds_per_core=int(rng.integers(1, 3)) if kinds is not None else None,
    )  # fmt: skip
    rules = []
    for kind in ("together", "apart", "forbid", "region", "pin", "slices"):
        if rng.random() < 0.15:
            pairs = kind in ("together", "apart")
            nodes = tuple(rng.choice(n, int(rng.integers(1 + pairs, n + 1)), False).tolist())
            count = 1 if kind == "pin" else int(rng.integers(1, cores + 1))
            where = () if pairs or kind == "slices" else tuple(rng.choice(cores, count, False).tolist())
            rules.append(SideConstraint(kind, kind, nodes, where, "", 1 if kind == "slices" else 0))
    return MappingProblem(
        graph, machine, "hops", tuple(rules), int(rng.integers(1, 4)) if rng.random() < 0.4 else None
    )


def largest_part(machine: Machine) -> set[int]:
    """Cores of the strongly connected part with most healthy cores, by networkx."""
    net = nx.DiGraph()
    net.add_nodes_from(range(machine.size))
    net.add_edges_from(
        (p, q)
        for p in range(machine.size)
        for q in machine.neighbours(p)
        if (p, q) not in machine.faulty_links
    )
    shut = {*machine.faulty_cores, *machine.taken_cores}
    parts = [part - shut for part in nx.strongly_connected_components(net)]
    return max(parts, key=lambda part: (len(part), -min(part, default=0)))


def legal(stated: MappingProblem, core: tuple[int, ...], used: set[int]) -> bool:
    """The limits as docs/files.md and docs/machines.md have them, one by one."""
    graph, machine, cores = stated.graph, stated.machine, range(stated.cores)
    here: list[list[int]] = [[u for u in range(graph.n) if core[u] == p] for p in cores]
    if not set(core) <= used or any(len(nodes) > (stated.node_limit or graph.n) for nodes in here):
        return False
    for i, r in enumerate(graph.resources):
        if r in machine.capacity and any(graph.sizes[nodes, i].sum() > machine.capacity[r] for nodes in here):
            return False
    most, kinds = machine.kinds_per_core, graph.kinds
    if (
        most is not None
        and kinds is not None
        and any(len(set(kinds.of[nodes].tolist())) > most for nodes in here)
    ):
        return False
    for c in stated.constraints:
        at = [core[u] for u in c.nodes]
        if c.kind in ("pin", "region", "forbid") and any((p in c.cores) == (c.kind == "forbid") for p in at):
            return False
        if (c.kind == "together" and len(set(at)) > 1) or (c.kind == "apart" and len(set(at)) < len(at)):
            return False
        if c.kind == "slices" and any(at.count(p) > c.most for p in at):
            return False
    ends = [
        (core[int(graph.source[m])], {core[t] for t in graph.targets[graph.indptr[m] : graph.indptr[m + 1]].tolist()})
        for m in range(graph.rows)
    ]  # fmt: skip
    most_in, most_out = (machine.capacity.get(name, 99) for name in ("axons_in", "axons_out"))
    if any(sum(p in reached for _, reached in ends) > most_in for p in cores):
        return False
    if any(sum(len(reached) for home, reached in ends if home == p) > most_out for p in cores):
        return False
    if "table_entries" not in machine.capacity:
        return True
    at_cores = BetweenCores(graph, machine, np.array(core, np.int64))
    return walked_entries(at_cores, machine) <= machine.capacity["table_entries"]


@pytest.mark.parametrize("seed", range(6))
def test_explain_agrees_with_trying_every_mapping(seed: int) -> None:
    """Its mapping passes ``verify``; its conflicts are separate; where counting refuses there is none."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        stated = random_problem(rng)
        used = largest_part(stated.machine)
        every = itertools.product(range(stated.cores), repeat=stated.n)
        possible = any(legal(stated, core, used) for core in every)
        found = explain(stated, 20.0)
        assert found.status == ("feasible" if possible else "infeasible")
        assert not (possible and stated.machine.usable.any() and explain_misfit(stated))
        if found.solution is not None:
            assert legal(stated, tuple(found.solution.tolist()), used)
            told = verify(
                stated.graph, stated.machine, stated.constraints, found.solution, node_limit=stated.node_limit
            )
            assert told.ok, [c for c in told.checks if not c.ok]
            continue
        assert all(c.minimal for c in found.conflicts)
        named = [x for c in found.conflicts for x in c.limits]
        assert len(named) == len(set(named)) and set(found.lift) <= set(named)
        kept = tuple(x for x in limits_of(stated) if x not in found.lift)
        assert found.lifted is not None and not check_mapping(restricted(stated, kept), found.lifted)
        for x in found.lift:  # each of them has to go
            assert explain(restricted(stated, (*kept, x)), 20.0).status == "infeasible"
        assert recheck_conflict(stated, json.loads(json.dumps(found.certificate)))


def giant() -> MappingProblem:
    """A node that is too large in two resources."""
    sizes = np.array([[50_000, 205_125_432], [100, 100_000]])
    graph = LogicGraph.from_edges(2, [0], [1], resources=("neurons", "bytes"), sizes=sizes)
    return problem(graph, board(capacity={"neurons": 4352, "bytes": 123_469_792}))


def test_separate_reasons_are_all_named() -> None:
    found = explain(giant(), 20.0)
    assert [c.text for c in found.conflicts] == [
        "node 0 needs 50000 neurons, a core holds 4352: split it into 12 nodes or more",
        "node 0 needs 205125432 bytes, a core holds 123469792: split it into 2 nodes or more",
    ]
    assert [x.name for x in found.lift] == ["neurons", "bytes"] and not found.enough
    assert recheck_conflict(giant(), found.certificate)
    bad = json.loads(json.dumps(found.certificate))
    bad["lift"]["limits"].pop()
    with pytest.raises(CertificateError, match="lift"):
        recheck_conflict(giant(), bad)
    bad = json.loads(json.dumps(found.certificate))
    bad["also"][0]["limits"] = []
    with pytest.raises(CertificateError, match="one of the limits"):
        recheck_conflict(giant(), bad)


def test_overlapping_conflicts_say_which_limit_is_enough() -> None:
    """A pin conflicts with each of two forbids: to lift one forbid is not enough."""
    rules = [SideConstraint("p", "pin", (0,), (1,))]
    rules += [SideConstraint(f"f{k}", "forbid", (0,), (1, k)) for k in (2, 3)]
    found = explain(problem(star(), board(), *rules), 20.0)
    assert found.conflict is not None and found.conflict.minimal and len(found.conflict.limits) == 2
    assert [x.name for x in found.enough] == [x.name for x in found.lift] == ["p"]


class Boastful(Limits[int]):
    """Limits a and b together forbid everything; a solver that says a alone does."""

    every = (Limit("a", "", "a"), Limit("b", "", "b"), Limit("c", "", "c"))

    def ask(
        self, limits: tuple[Limit, ...], seconds: float, seed: int, should_stop: Callable[[], bool]
    ) -> Answer[int]:
        names = {x.kind for x in limits}
        return Answer("infeasible", None, limits[:1]) if {"a", "b"} <= names else Answer("feasible", 0)

    def reason(self, limits: tuple[Limit, ...]) -> str:
        return "because"

    def written(self, solution: int) -> dict[str, object]:
        return {"number": solution}

    def complaint(self, limits: tuple[Limit, ...], entry: object) -> str | None:
        return "both" if {"a", "b"} <= {x.kind for x in limits} else None

    def impossible(self, limits: tuple[Limit, ...], seconds: float) -> bool | None:
        return {"a", "b"} <= {x.kind for x in limits}


def test_what_a_solver_says_is_needed_is_asked_again() -> None:
    """Cores of assumptions may be too small (or-tools issue 5141)."""
    found = smallest_conflict(Boastful(), 20.0)
    assert found.conflict is not None and [x.kind for x in found.conflict.limits] == ["a", "b"]
    assert found.conflict.minimal and found.enough == found.conflict.limits


@pytest.mark.parametrize(
    ("links", "cut"),
    [
        (CORNER, (0,)),
        (((0, 1), (0, 3)), (0,)),  # nothing leaves core 0
        (((1, 0), (3, 0)), (0,)),  # nothing reaches it
        (((0, 1), (3, 0)), ()),  # a round of one-way links is left
        (((0, 1), (1, 0), (3, 4), (4, 3)), (0, 3)),
        (
            ((1, 2), (2, 1), (4, 5), (5, 4), (0, 1), (1, 0), (3, 4), (4, 3)),
            (1, 2, 4, 5),
        ),  # three equal parts: the first
    ],
)
def test_cores_are_in_use_where_messages_pass_both_ways(
    links: tuple[tuple[int, int], ...], cut: tuple[int, ...]
) -> None:
    assert board(faulty_links=links).cut_off == cut
    assert board().cut_off == () == board(faulty_cores=(0, 1, 2, 3, 4, 5), faulty_links=links).cut_off


def test_a_part_with_fewer_healthy_cores_is_not_chosen() -> None:
    halves = ((0, 1), (1, 0), (3, 4), (4, 3))
    machine = board(faulty_links=halves, faulty_cores=(1, 2), taken_cores=(4,))
    assert machine.cut_off == (1, 2, 4, 5) and machine.usable.tolist() == [
        True,
        False,
        False,
        True,
        False,
        False,
    ]
    assert machine.lifting(faulty_cores=()).cut_off == machine.cut_off


CHAIN = {
    "directed": True, "nodes": [{"id": i, "neurons": 1} for i in range(4)],
    "edges": [{"source": i, "target": i + 1} for i in range(3)],
}  # fmt: skip


def test_the_commands_leave_out_a_core_that_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p4.json").write_text(json.dumps(CHAIN))
    Path("iso.toml").write_text("cores=[2,3]\nfaulty_links=[[[0,0],[0,1]],[[0,0],[1,0]]]\n")
    Path("pin.json").write_text(json.dumps({"constraints": [{"kind": "pin", "nodes": [0], "core": [0, 0]}]}))

    def run(*args: str) -> tuple[int, str]:
        done = run_here(*args, code=None)
        return done.returncode, done.stdout + done.stderr

    code, text = run("map", "p4.json", "-m", "iso.toml", "-o", "out", "-t", "60")
    assert code == 0 and "core [0, 0] is not used" in text
    assert "hops 3, bound 3" in text  # four nodes of a chain on five connected cores
    assert run("verify", "out", "--bound")[0] == 0
    code, text = run("explain", "p4.json", "-m", "iso.toml", "-o", "found.json")
    assert code == 0 and run("verify", "found.json", "-g", "p4.json", "-m", "iso.toml")[0] == 0
    code, text = run("explain", "p4.json", "-m", "iso.toml", "-c", "pin.json")
    assert code == 4 and "pin 'pin 0'" in text and "the cores that dead links cut off" in text
    code, text = run("map", "p4.json", "-m", "iso.toml", "-c", "pin.json", "-o", "none")
    assert code != 0 and "pin 'pin 0' leaves no usable core" in text
    answer = json.loads(Path("found.json").read_text())
    answer["row"][0] = answer["col"][0] = 0
    Path("found.json").write_text(json.dumps(answer))
    code, text = run("verify", "found.json", "-g", "p4.json", "-m", "iso.toml")
    assert code == 1 and "dead links cut off" in text


def test_explain_refuses_where_routers_are_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six nodes that all talk, two to a core: a router needs more entries than its table has."""
    monkeypatch.chdir(tmp_path)
    nodes = [{"id": i, "neurons": 1, "multicast": True, "rate": 1} for i in range(6)]
    edges = [{"source": i, "target": j} for i in range(6) for j in range(6) if i != j]
    Path("k6.json").write_text(json.dumps({"directed": True, "nodes": nodes, "edges": edges}))
    for entries, code in ((2, 4), (6, 0)):
        Path("m.toml").write_text(f"cores=[1,3]\n[capacity]\nneurons=2\ntable_entries={entries}\n")
        done = run_here("explain", "k6.json", "-m", "m.toml", "--json", "--strict", code=code)
        line = json.loads(done.stdout)
        if code:
            assert {x["name"] for x in line["conflict"]} == {"neurons", "table_entries"} and line["confirmed"]


def test_a_witness_within_routers_tables_is_found_by_search() -> None:
    """24 nodes in a ring: first fit overfills tables, and the model alone has too many turns to forbid."""
    n = 24
    graph = LogicGraph.from_edges(
        n, range(n), [(7 * u + 1) % n for u in range(n)], multicast=np.ones(n, bool)
    )
    stated = problem(graph, board(4, 4, capacity={"table_entries": 5}), limit=2)
    limits = MappingLimits(stated)
    found = limits.ask(limits.every, 40.0, 0, lambda: False)
    assert found.solution is not None and not check_mapping(stated, found.solution)


@pytest.mark.parametrize(
    ("resources", "machine", "said"),
    [
        (("neurons", "Synapses"), Machine("m", (1, 1), (1, 3), capacity={"neurons": 10, "synapses": 1000}),
         "capacity synapses limits nothing here; the nodes state neurons, Synapses"),
        (("neurons",), Machine("m", (1, 1), (1, 3), capacity={"neuron": 2}),
         "capacity neuron limits nothing here; the nodes state neurons"),
        ((), Machine("m", (1, 1), (1, 3), capacity={"neurons": 2}), "limits nothing here; the nodes state no sizes"),
        (("neurons", "bytes"), Machine("m", (1, 1), (1, 3), capacity={"neurons": 2}), "nothing limits bytes of the nodes"),
        (("neurons",), Machine("m", (1, 1), (1, 3), capacity={"neurons": 2}, kinds_per_core=1), "state no kind"),
        (("neurons", "Synapse"), nmsolve.machine("loihi1"), "capacity synapses limits nothing"),
        (("neurons", "weight"), nmsolve.machine("loihi1"), ""),
        ((), nmsolve.machine("loihi1"), ""),
        (("neurons",), Machine("m", (1, 1), (1, 3), capacity={"neurons": 2, "axons_in": 9, "table_entries": 9}), ""),
        (("neurons",), Machine("m", (1, 1), (1, 3)), ""),
        (("a",), board(capacity={"a": 2}, faulty_links=CORNER), "core [0, 0] is not used"),
    ],
)  # fmt: skip
def test_limits_that_are_not_in_force_are_said(
    resources: tuple[str, ...], machine: Machine, said: str, recwarn: pytest.WarningsRecorder
) -> None:
    sizes = np.ones((2, len(resources)), np.int64)
    say_idle(LogicGraph.from_edges(2, [0], [1], resources=resources, sizes=sizes), machine)
    texts = [str(w.message) for w in recwarn if issubclass(w.category, InputWarning)]
    assert len(texts) == bool(said) and all(said in text for text in texts)


@pytest.mark.parametrize("name", ["least_neurons", "min_neurons", "kinds_per_core"])
def test_capacities_that_mean_something_else_are_refused(name: str) -> None:
    graph = LogicGraph.from_edges(2, [0], [1], resources=("neurons",), sizes=np.ones((2, 1), np.int64))
    with pytest.raises(InputError, match=name):
        say_idle(graph, Machine("m", (1, 1), (1, 3), capacity={"neurons": 5, name: 2}))


@pytest.mark.parametrize(("weight", "said"), [(5e-12, True), (1e-300, True), (1e-5, False), (0.0, False)])
def test_weights_below_what_bounds_keep_back_are_said(weight: float, said: bool) -> None:
    """Conductances in siemens, say: every gap would be 100 %."""
    graph = LogicGraph.from_edges(2, [0], [1], [weight])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        say_idle(graph, Machine("m", (1, 1), (1, 3)))
    assert any("bounds are lower by 1e-09" in str(w.message) for w in told) == said
