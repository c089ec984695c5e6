"""Smallest conflicts: proved, minimal, in words, re-checked by a second model, robust against tampering."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nmsolve
from nmsolve.check.mapping.bounds.parts import CertificateError
from nmsolve.cli.app import application
from nmsolve.model.graph import LogicGraph
from nmsolve.model.limit import Limit
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.limits import limits_of, restricted
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.explain import explain, recheck_conflict


def random_problem(rng: np.random.Generator) -> MappingProblem:
    """A few nodes of two resources on a few cores, with faults and rules of every kind that often conflict."""
    n, cores = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    graph = LogicGraph.from_edges(n, [0], [1], resources=("a", "b"), sizes=rng.integers(0, 4, (n, 2)))
    faulty, taken = (tuple(np.flatnonzero(rng.random(cores) < share).tolist()) for share in (0.2, 0.1))
    limits = {"a": int(rng.integers(3, 8)), "b": int(rng.integers(3, 8))}
    machine = Machine("m", (1, 1), (1, cores), capacity=limits, faulty_cores=faulty, taken_cores=taken)
    rules = []
    for kind in ("together", "apart", "forbid", "region", "pin"):
        for j in range(2):
            if rng.random() < 0.35:
                pairs = kind in ("together", "apart")
                nodes = rng.choice(n, int(rng.integers(1 + pairs, n + 1)), False)
                count = 0 if pairs else 1 if kind == "pin" else int(rng.integers(1, cores))
                where = rng.choice(cores, count, False)
                rules.append(SideConstraint(f"{kind}{j}", kind, tuple(nodes.tolist()), tuple(where.tolist())))
    limit = int(rng.integers(1, 4)) if rng.random() < 0.5 else None
    return MappingProblem(graph, machine, "hops", tuple(rules), limit)


def possible(problem: MappingProblem, limits: list[Limit]) -> bool:
    """Is there a mapping that obeys these limits? By trying every one."""
    alone = restricted(problem, limits)
    every = itertools.product(range(problem.cores), repeat=problem.n)
    return any(not check_mapping(alone, np.array(core)) for core in every)


def test_conflicts_are_conflicts_and_minimal() -> None:
    """Against trying every mapping, over random problems; every certificate passes its re-check."""
    rng = np.random.default_rng(0)
    count = {"feasible": 0, "infeasible": 0}
    for _ in range(100):
        problem = random_problem(rng)
        limits = list(limits_of(problem))
        found = explain(problem, 20.0)
        count[found.status] += 1
        assert (found.status == "feasible") == possible(problem, limits)
        if found.conflict is None:
            assert found.solution is not None and check_mapping(problem, found.solution) == []
            continue
        conflict = found.conflict
        assert conflict.minimal and not possible(problem, list(conflict.limits))
        for x in conflict.limits:
            assert possible(problem, [other for other in conflict.limits if other is not x])
        assert recheck_conflict(problem, conflict.certificate)
        assert conflict.text
    assert min(count.values()) > 10


def chips() -> MappingProblem:
    """20,000 nodes, 64 cores, two nodes too many in one region."""
    graph = LogicGraph.from_edges(20_000, [0], [1])
    rules = (
        SideConstraint("north", "region", tuple(range(1_000)), tuple(range(3))),
        SideConstraint("far", "forbid", tuple(range(500, 900)), (40,)),
        SideConstraint("pair", "together", (3, 19_000)),
        SideConstraint("spares", "apart", tuple(range(2_000, 2_020))),
    )
    return MappingProblem(graph, Machine("m", (1, 1), (8, 8), faulty_cores=(1, 63)), "hops", rules, 340)


def test_many_nodes_are_counted_not_listed() -> None:
    problem = chips()
    found = explain(problem, 20.0)
    assert found.conflict is not None and found.conflict.minimal
    assert [x.words for x in found.conflict.limits] == [
        "region 'north'", "the faulty cores", "the limit of nodes per core (--balance)",
    ]  # fmt: skip
    assert (
        found.conflict.text
        == "region 'north' and the faulty cores leave 2 cores x 340 nodes = 680 places for 1000 nodes"
    )
    assert not recheck_conflict(problem, found.conflict.certificate)  # too large for the second model
    wider = MappingProblem(problem.graph, problem.machine, "hops", problem.constraints, 501)
    assert explain(wider, 20.0).status == "feasible"


@pytest.mark.parametrize(
    ("rules", "limit", "words"),
    [
        ([("a", "region", range(7), (0, 1, 2))], 2, "region 'a' leaves 3 cores x 2 nodes = 6 places for 7 nodes"),
        ([("a", "region", range(3), (0, 1)), ("b", "region", range(4, 8), (1, 2))], 2,
         "region 'a' and region 'b' leave 3 cores x 2 nodes = 6 places for 7 nodes"),
        ([("a", "pin", (0,), (0,)), ("b", "pin", (1,), (0,))], 1,
         "pin 'a' and pin 'b' leave 1 core x 1 node = 1 place for 2 nodes"),
        ([("p", "pin", (0,), (0,)), ("q", "forbid", (0,), (0,))], 4, "leave no core for node 0"),
        ([("t", "together", (0, 1), ()), ("s", "apart", (0, 1), ())], 4, "puts them on one"),
        ([("s", "apart", range(9), ()), ("r", "region", range(9), range(8))], 9, "needs 9 different cores"),
    ],
)  # fmt: skip
def test_reasons_in_words(rules: list[tuple], limit: int, words: str) -> None:
    """What counting can tell is told with its numbers."""
    stated = tuple(SideConstraint(n, k, tuple(nodes), tuple(cores)) for n, k, nodes, cores in rules)
    graph = LogicGraph.from_edges(9, [0], [1])
    problem = MappingProblem(graph, Machine("m", (1, 1), (4, 4)), "hops", stated, limit)
    found = explain(problem, 10.0)
    assert found.conflict is not None and words in found.conflict.text
    assert {x.name for x in found.conflict.limits} - {""} == {r[0] for r in rules}


def test_packing_needs_search() -> None:
    """Sizes 3, 3, 2, 2, 2 into two cores of 6 fit; 4, 4, 2, 1, 1 into 6 and 6 fit; 5, 3, 2, 2 into 6 and 6 do not."""
    for sizes, fits in (((3, 3, 2, 2, 2), True), ((4, 4, 2, 1, 1), True), ((5, 3, 2, 2), False)):
        graph = LogicGraph.from_edges(
            len(sizes), [0], [1], resources=("mem",), sizes=np.array(sizes)[:, None]
        )
        problem = MappingProblem(graph, Machine("m", (1, 1), (1, 2), capacity={"mem": 6}))
        found = explain(problem, 10.0)
        assert (found.status == "feasible") == fits
        if found.conflict is not None:
            assert "counting does not show it" in found.conflict.text
            assert recheck_conflict(problem, found.conflict.certificate)


def test_tampered_certificates_are_refused() -> None:
    graph = LogicGraph.from_edges(9, [0], [1])
    rules = (SideConstraint("a", "region", tuple(range(7)), (0, 1, 2)),)
    problem = MappingProblem(graph, Machine("m", (1, 1), (4, 4), faulty_cores=(9,)), "hops", rules, 2)
    conflict = explain(problem, 10.0).conflict
    assert conflict is not None
    good = conflict.certificate
    assert recheck_conflict(problem, json.loads(json.dumps(good)))

    def tampered(change: object, *path: object) -> dict:
        out = copy.deepcopy(good)
        place = out
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = change
        return out

    bad: list[object] = [
        {}, [], "x", {"limits": 3}, {"limits": [1], "without": []}, {"limits": []},
        tampered([], "limits"),
        tampered(good["limits"][:1], "limits"),
        tampered("nowhere", "limits", 0, "name"),
        tampered(["a"], "limits", 0, "name"),
        tampered([0] * 8, "without", 0, "core"),
        tampered([0] * 9, "without", 0, "core"),
        tampered([99] * 9, "without", 0, "core"),
        tampered([0.5] * 9, "without", 0, "core"),
        tampered([True] * 9, "without", 0, "core"),
        tampered([2**70] * 9, "without", 0, "core"),
        tampered(None, "without", 0, "core"),
        tampered("faulty", "without", 0, "kind"),
    ]  # fmt: skip
    for certificate in bad:
        with pytest.raises(CertificateError):
            recheck_conflict(problem, certificate)


def test_out_of_time_claims_only_what_counting_shows() -> None:
    """Without time there is counting and first fit, and no CP-SAT."""
    graph = LogicGraph.from_edges(9, [0], [1])
    rules = (SideConstraint("a", "region", tuple(range(7)), (0, 1, 2)),)
    problem = MappingProblem(graph, Machine("m", (1, 1), (4, 4)), "hops", rules, 2)
    found = explain(problem, 0.0)
    assert found.conflict is not None and recheck_conflict(problem, found.conflict.certificate)
    sizes = np.array([5, 3, 2, 2])[:, None]
    packing = LogicGraph.from_edges(4, [0], [1], resources=("mem",), sizes=sizes)
    tight = MappingProblem(packing, Machine("m", (1, 1), (1, 2), capacity={"mem": 6}))
    assert explain(tight, 0.0).status == "unknown"


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ring = {
        "nodes": [{"id": i} for i in range(9)],
        "edges": [{"source": i, "target": i + 1} for i in range(8)],
    }
    Path("g.json").write_text(json.dumps(ring))
    rule = {"name": "a", "kind": "region", "nodes": list(range(7)), "rectangle": [0, 0, 1, 3]}
    Path("c.json").write_text(json.dumps({"constraints": [rule]}))
    Path("dead.toml").write_text("cores = [1, 2]\nfaulty_cores = [[0, 0], [0, 1]]\n")

    def run(*args: str) -> tuple[int, str]:
        done = CliRunner().invoke(application(), list(args))
        return done.exit_code, done.stdout

    base = ["explain", "g.json", "-m", "mesh:4x4", "-c", "c.json"]
    code, text = run(*base, "-o", "proof.json")
    assert code == 4 and "region 'a' leaves 3 cores x 1 node = 3 places for 7 nodes" in text
    assert "a second program, node by node, confirms" in text
    assert [x["kind"] for x in json.loads(Path("proof.json").read_text())["limits"]] == [
        "region",
        "node limit",
    ]
    code, text = run(*base, "--json")
    line = json.loads(text)
    assert code == 4 and line["minimal"] and line["confirmed"] and line["status"] == "infeasible"
    code, text = run(*base, "--balance", "4", "-o", "mapping.json")
    assert code == 0 and "can be mapped" in text and json.loads(Path("mapping.json").read_text())["row"]
    code, text = run("explain", "g.json", "-m", "dead.toml")
    assert code == 4 and "all are faulty" in text
    done = CliRunner().invoke(application(), ["map", "g.json", "-m", "mesh:4x4", "-c", "c.json"])
    assert isinstance(done.exception, nmsolve.InputError) and "nmsolve explain" in str(done.exception)
