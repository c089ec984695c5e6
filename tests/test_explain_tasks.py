"""Smallest conflicts of pipelines and of routes: against trying everything, re-checked, tampered with, and by the command."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from conftest import Called
from pipelines_support import every_plan, random_dag
from plans_support import four_layers
from routing_support import every_answer, every_tree, joined, mesh, some_flows
from test_cli_pipeline import cost_graph

from nmsolve.model.errors import CertificateError, InputError
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.turns import turn_set
from nmsolve.solvers.pipeline.limits import PipelineLimits
from nmsolve.solvers.routing.limits import RoutingLimits
from nmsolve.solvers.search.conflict import Conflict, Limit, Limits, recheck_conflict, smallest_conflict


def random_pipeline(rng: np.random.Generator, seed: int) -> PipelineProblem:
    """A few layers on a few cores under rules that often contradict each other."""
    layers, cores = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    settings: dict[str, object] = {
        "stages": int(rng.integers(1, min(cores, layers) + 1)),
        "exact_stages": bool(rng.random() < 0.5),
        "use_all": bool(rng.random() < 0.3),
        "split": str(rng.choice(["any", "contiguous", "chain"])),
        "memory": float(rng.integers(4, 14)),
        "together": np.where(rng.random(layers) < 0.6, rng.integers(0, 2, layers), -1),
    }
    if rng.random() < 0.3:
        settings |= {"hosts": 1, "host_time": np.where(rng.random(layers) < 0.5, 5.0, np.inf)}
    return random_dag(seed, layers, cores, int(rng.integers(1, cores + 1)), **settings)


def random_routing(rng: np.random.Generator) -> RoutingProblem:
    """Up to four flows on a mesh or a ring, with dead links, prohibited turns, tables, and forms of them."""
    torus = bool(rng.random() < 0.3)
    links = [(0, 1)] if torus else [(0, 1), (1, 0), (1, 4), (4, 1), (3, 4), (1, 2)]
    rows, cols = (1, 5) if torus else (2, 3)
    machine = mesh(rows, cols, torus=torus, faulty_links=tuple(x for x in links if rng.random() < 0.25))
    rules: dict[str, Any] = {}
    if not torus and rng.random() < 0.6:
        rules["turns"] = turn_set(
            str(rng.choice(["xy", "yx", "west-first", "WS,EN", "ES,SW,WN,NE"])), machine
        )
    if rng.random() < 0.5:
        rules["table_limit"] = int(rng.integers(1, 4))
    if rng.random() < 0.3:
        rules["detour"] = 1
    if rng.random() < 0.4:
        rules["form"] = str(rng.choice(["source", "destination"]))
    flows = some_flows(machine, rng, int(rng.integers(1, 5)), 1)
    return RoutingProblem(machine, flows, ("max-link",), **rules)


def has_plan(limits: PipelineLimits, some: tuple[Limit, ...]) -> bool:
    """By trying every plan."""
    return bool(every_plan(limits.restricted(some)))


def has_routes(limits: RoutingLimits, some: tuple[Limit, ...]) -> bool:
    """By trying all routes."""
    problem = limits.restricted(some)
    try:
        if any(x.kind == "deadlock" for x in some):
            return next(iter(every_answer(problem)), None) is not None
        trees = [every_tree(problem, f) for f in range(problem.flows.count)]
        return any(routes_complaint(problem, joined(problem, c)) is None for c in itertools.product(*trees))
    except (InputError, nx.NetworkXNoPath):
        return False


def conflict_of(
    limits: Limits[Any], possible: Callable[[Any, tuple[Limit, ...]], bool]
) -> Conflict[Any] | None:
    """The conflict that is found: it is one, each limit is needed, and the re-check agrees."""
    found = smallest_conflict(limits, 60.0)
    assert (found.status == "feasible") == possible(limits, limits.every)
    if found.conflict is None:
        assert limits.complaint(limits.every, limits.written(found.solution)) is None
        return None
    conflict = found.conflict
    assert conflict.minimal and conflict.text and not possible(limits, conflict.limits)
    for x in conflict.limits:
        if x.kind != "cores":  # as many as there are layers are too many to try
            assert possible(limits, tuple(other for other in conflict.limits if other is not x))
    assert recheck_conflict(limits, json.loads(json.dumps(conflict.certificate)))
    return conflict


def test_conflicts_of_pipelines_are_conflicts_and_minimal() -> None:
    """Over random problems; every kind of limit is named somewhere."""
    rng = np.random.default_rng(0)
    found = [conflict_of(PipelineLimits(random_pipeline(rng, seed)), has_plan) for seed in range(25)]
    kinds = {x.kind for conflict in found if conflict is not None for x in conflict.limits}
    assert kinds >= {"together", "stages", "use all", "cores", "memory"} and found.count(None) > 5


def test_conflicts_of_routes_are_conflicts_and_minimal() -> None:
    rng = np.random.default_rng(1)
    found = [conflict_of(RoutingLimits(random_routing(rng)), has_routes) for _ in range(24)]
    kinds = {x.kind for conflict in found if conflict is not None for x in conflict.limits}
    assert kinds >= {"dead link", "turn", "tables"} and found.count(None) > 5


def test_a_ring_of_short_routes_needs_a_detour_or_a_second_channel() -> None:
    """On a ring of five everybody sends two links on: no single flow shows that this cannot be free of deadlock."""
    flows = Flows.of_pairs(range(5), [(p + 2) % 5 for p in range(5)], [1.0] * 5)
    problem = RoutingProblem(mesh(1, 5, torus=True), flows, ("max-link",))
    conflict = conflict_of(RoutingLimits(problem), has_routes)
    assert conflict is not None and {x.kind for x in conflict.limits} == {"detour", "deadlock"}
    assert "no single flow" in conflict.text
    assert (
        conflict_of(
            RoutingLimits(RoutingProblem(problem.machine, flows, ("max-link",), channels=2)), lambda *_: True
        )
        is None
    )


def test_words_name_what_counting_shows() -> None:
    """Layers of 10, 20, 30 and 40, of which a and d must share a stage."""
    together = np.array([0, -1, -1, 0])
    conflict = conflict_of(PipelineLimits(four_layers(memory=12.0, together=together)), has_plan)
    assert conflict is not None and conflict.text == "the layers need 100 of memory, all 4 cores have 48"
    assert [x.words for x in conflict.limits] == ["the number of cores, 4", "the memory of a core, 12"]
    exact = four_layers(split="any", together=together, stages=4, exact_stages=True)
    conflict = conflict_of(PipelineLimits(exact), has_plan)
    assert conflict is not None
    assert [x.words for x in conflict.limits] == [
        "that 'a', 'd' share a stage",
        "the number of stages, exactly 4",
    ]


def test_out_of_time_only_counting_speaks() -> None:
    """No solver is asked; large problems are counted at once, and their proof is confirmed at any size."""
    assert smallest_conflict(PipelineLimits(four_layers()), 0.0).status == "unknown"
    machine = mesh(12, 12, faulty_links=((0, 1),))
    problem = RoutingProblem(machine, Flows.of_matrix(np.ones((144, 144))), turns=turn_set("xy", machine))
    limits = RoutingLimits(problem)
    found = smallest_conflict(limits, 0.0)
    assert found.conflict is not None and not found.conflict.minimal
    assert {"dead link"} < {x.kind for x in found.conflict.limits}
    assert recheck_conflict(limits, found.conflict.certificate)


@pytest.mark.parametrize("kind", ["pipeline", "routes"])
def test_tampered_certificates_are_refused(kind: str) -> None:
    machine = mesh(2, 2, faulty_links=((0, 1),))
    stated = RoutingProblem(machine, Flows.of_pairs([0], [3], [1.0]), turns=turn_set("xy", machine))
    limits: Limits[Any] = (
        RoutingLimits(stated) if kind == "routes" else PipelineLimits(four_layers(memory=20.0))
    )
    conflict = smallest_conflict(limits, 30.0).conflict
    assert conflict is not None and recheck_conflict(limits, conflict.certificate)
    witness = "routes" if kind == "routes" else "stage"
    for change in ([], "x", None, [[1]], [0.5], [2**70], [-1], [[2**70]], [[-1]], [[True]]):
        bad = copy.deepcopy(conflict.certificate)
        bad["without"][0][witness] = change
        with pytest.raises(CertificateError):
            recheck_conflict(limits, bad)
    for place, key in (("limits", "kind"), ("without", "name")):
        bad = copy.deepcopy(conflict.certificate)
        bad[place][0][key] = "nowhere"
        with pytest.raises(CertificateError):
            recheck_conflict(limits, bad)
    with pytest.raises(CertificateError, match="there is a solution"):
        recheck_conflict(limits, {"limits": conflict.certificate["limits"][:1], "without": []})


def test_the_commands(call: Called, tmp_path: Path) -> None:
    """``explain route`` and ``explain pipeline``; refusals of the commands themselves lead there."""
    graph = {
        "directed": True, "multigraph": False, "graph": {}, "nodes": [{"id": i} for i in range(4)],
        "edges": [{"source": 0, "target": 3, "weight": 2}],
    }  # fmt: skip
    (tmp_path / "g.json").write_text(json.dumps(graph))
    (tmp_path / "m.part").write_text("0\n1\n2\n3\n")
    (tmp_path / "dead.toml").write_text("cores = [2, 2]\nfaulty_links = [[[0, 0], [0, 1]]]\n")
    about = (tmp_path / "m.part", "-g", tmp_path / "g.json", "-m", tmp_path / "dead.toml")
    proof = tmp_path / "proof.json"
    code, text, _ = call("explain", "route", *about, "--turns", "xy", "-o", proof)
    assert code == 4 and "  the dead link 0 -> 1\n  the prohibited turns SE, at 4 cores (--turns)\n" in text
    assert "a second program, which tries all routes, confirms" in text
    assert [x["name"] for x in json.loads(proof.read_text())["limits"]] == ["0 -> 1", "SE"]
    code, text, _ = call("explain", "route", *about, "-o", tmp_path / "r.json", "--json")
    assert code == 0 and json.loads(text)["status"] == "feasible"
    models = ("--write-model", tmp_path / "models")
    for more in ((), models, ("--pareto", "max-link,total-link")):
        code, _, text = call("route", *about, "--turns", "xy", "-o", tmp_path / "o", *more)
        assert code == 2 and text.count("`nmsolve explain route` names a smallest set") == 1, more
    diamond = cost_graph(tmp_path / "diamond.json")
    code, text, _ = call("explain", "pipeline", diamond, "--core-memory", "7", "--json")
    line = json.loads(text)
    assert code == 4 and line["minimal"] and line["confirmed"] and line["model"] == "diamond"
    assert [x["kind"] for x in line["conflict"]] == ["hosts", "cores", "memory"]
    assert call("explain", "pipeline", diamond, "-o", tmp_path / "plan.json")[0] == 0
    assert len(json.loads((tmp_path / "plan.json").read_text())["stage"]) == 4
    for more in ((), models, ("--pareto", "period,cores")):
        code, _, text = call("pipeline", diamond, "--core-memory", "7", "-o", tmp_path / "o", *more)
        assert code == 2 and text.count("`nmsolve explain pipeline` names a smallest set") == 1, more
    for wrong, words in (
        (("route", tmp_path / "none.json"), "none.json"),
        (("route", *about, "--turns", "north"), "turns"),
        (("pipeline", tmp_path / "g.json"), "g.json"),
        (("pipeline", diamond, "--exact-stages"), "--exact-stages"),
        (("pipeline", diamond, "-o", tmp_path / "no" / "x.json"), "there is no such folder"),
    ):
        code, out, text = call("explain", *wrong)
        assert (
            code == 2 and not out and text.startswith("error: ") and words in text and text.count("\n") == 1
        )
