"""``--warm-start``, ``gap`` and ``resume`` for every kind of problem: what is known is checked and used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Called
from pipelines_support import every_plan, optimum, random_dag
from routing_support import some_flows

from nmsolve.hw.machines import load_machine
from nmsolve.hw.pipeline.stages import objective
from nmsolve.hw.routing.values import routing_value
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.solvers.pipeline.api import bound_plan, plan
from nmsolve.solvers.routing.api import bound_routes, route
from nmsolve.solvers.run import Options

PIPELINE, ROUTES = "pipeline-report.json", "route-report.json"


def diamond(path: Path) -> Path:
    """Four nodes in a diamond, two accelerators; the best plan takes 8."""
    nodes = [
        {"id": k, "supportedOnFpga": 1, "cpuLatency": 10 * w, "fpgaLatency": w, "isBackwardNode": 0, "size": 4.0}
        for k, w in enumerate((4.0, 3.0, 2.0, 5.0))
    ]  # fmt: skip
    edges = [
        {"sourceId": a, "destId": b, "cost": 0.5, "size": 8.0} for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))
    ]
    path.write_text(
        json.dumps({"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges})
    )
    return path


def star(path: Path) -> list[Any]:
    """Four nodes, the first sends to all others and the last to the second: a graph, and node i on core i of a 2x2 mesh."""
    edges = [{"source": 0, "target": t, "weight": t} for t in (1, 2, 3)] + [
        {"source": 3, "target": 1, "weight": 2}
    ]
    nodes = [{"id": i, "sizes": {"neurons": 1}} for i in range(4)]
    graph = {"directed": True, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges}
    (path / "g.json").write_text(json.dumps(graph))
    (path / "m.part").write_text("0\n1\n2\n3\n")
    return [path / "m.part", "--graph", path / "g.json", "--machine", "mesh:2x2"]


def report_of(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


@pytest.mark.parametrize("seed", range(3))
def test_a_given_plan_stays_and_its_bound_holds(seed: int) -> None:
    """The worst plan of all: it is what the result is about, the bound is below the best of all, that one is handed over."""
    problem = random_dag(seed, 5, 3, 3, split="chain")
    plans = every_plan(problem)
    worst, best = max(plans, key=lambda p: objective(problem, p)), optimum(problem)
    lie = Bound(1e6, "pipeline-cpsat", certificate={"status": "optimal"})
    found = bound_plan(problem, worst, Options(10.0, engines=["chain", "pipeline-counting"], known=[lie]))
    result = found.result
    assert result.solution is not None and (result.solution.stage == worst.stage).all()
    assert result.objective == objective(problem, worst) and result.bound == pytest.approx(best)
    assert found.better is not None and objective(problem, found.better) == pytest.approx(best)
    assert result.status == "feasible" and all(b.method != "pipeline-cpsat" for b in result.bounds)
    broken = PipelinePlan(worst.stage[::-1].copy() + 1, worst.cores)
    with pytest.raises(InputError, match="cannot be used"):
        bound_plan(problem, broken, Options(1.0))


def test_what_was_proved_before_counts_only_if_it_can_be_recomputed() -> None:
    """A bound of a chain is recomputed, so no engine is needed; a higher one is dropped, and costs the true one nothing."""
    problem = random_dag(1, 5, 3, 3, split="chain")
    first = plan(problem, time_limit=10, engines=["chain"])
    assert first.status == "optimal" and first.solution is not None
    lie = Bound(first.objective * 0.999, "work", certificate={"method": "work", "rate": 1.0})
    again = bound_plan(
        problem, first.solution, Options(10.0, engines=["pipeline-counting"], known=[lie, *first.bounds])
    )
    assert again.result.status == "optimal" and again.better is None
    alone = bound_plan(problem, first.solution, Options(10.0, engines=["pipeline-counting"], known=[lie]))
    assert alone.result.bound is not None and alone.result.bound < first.objective * 0.999


def test_given_routes_stay_and_their_bounds_hold() -> None:
    """Long ways round: their own figures stay, no bound is above what a search reaches, and it hands better ones over."""
    machine = load_machine("mesh:2x3")
    flows = some_flows(machine, np.random.default_rng(0), 6, 1)
    problem = RoutingProblem(machine, flows, ("max-link", "total-link"), detour=2)
    best = route(problem, time_limit=2)
    poor = route(replace(problem, objective=("turns",)), time_limit=1, engines=["named"])
    assert best.solution is not None and poor.solution is not None
    given = poor.solution
    found = bound_routes(problem, given.routes, Options(2.0), given.numbering)
    value = routing_value(problem, given.routes, given.numbering, "max-link")
    assert found.result.scores["max-link"] == value == found.result.stages["max-link"].objective
    assert found.result.solution is not None
    assert (found.result.solution.routes.channel == given.routes.channel).all()
    low = found.result.bound_of("max-link")
    assert low is not None and low <= best.scores["max-link"] <= value
    if found.better is not None:
        assert routing_value(problem, found.better.routes, found.better.numbering, "max-link") < value


def test_a_plan_from_file_is_bounded_gone_on_with_and_taken_as_a_start(call: Called, tmp_path: Path) -> None:
    """gap, resume and --warm-start of one folder; a plan of other layers is refused in one line."""
    source, out = diamond(tmp_path / "d.json"), tmp_path / "p"
    assert call("pipeline", source, "-t", 3, "--engines", "pipeline-local", "-o", out)[0] == 0
    assert report_of(out, PIPELINE)["status"] == "feasible"
    code, text, _ = call("gap", out, "-t", 60, "--engines", "cover", "-o", tmp_path / "g")
    assert code == 0 and "proved to be the least possible" in text
    assert call("verify", tmp_path / "g", "--bound")[0] == 0
    given = ("pipeline", source, "-t", 60, "--engines", "pipeline-counting", "-o", tmp_path / "w")
    assert call(*given, "--warm-start", out)[0] == 0
    assert report_of(tmp_path / "w", PIPELINE)["objective"] == report_of(out, PIPELINE)["objective"] == 8.0
    assert call("resume", out, "-t", 60)[0] == 0 and report_of(out, PIPELINE)["status"] == "optimal"
    code, text, _ = call("resume", out)
    assert code == 0 and "nothing is left to do" in text
    for option in (("--balance", 0.1), ("--machine", "mesh:2x2"), ("--objective", "hops")):
        code, _, text = call("gap", out, *option)
        assert code == 2 and text.count("\n") == 1 and option[0] in text
    content = json.loads(source.read_text())
    content["nodes"][0]["id"], content["edges"] = 9, content["edges"][2:]
    (tmp_path / "other.json").write_text(json.dumps(content))
    code, _, text = call("pipeline", tmp_path / "other.json", "--warm-start", out, "-o", tmp_path / "x")
    assert code == 2 and text.count("\n") == 1 and "$.layer" in text


def test_routes_from_file_are_bounded_gone_on_with_and_taken_as_a_start(call: Called, tmp_path: Path) -> None:
    """The same of routes; those of another mapping are refused, naming the flow."""
    where, out = star(tmp_path), tmp_path / "r"
    assert call("route", *where, "-t", 60, "--engines", "named", "-o", out)[0] == 0
    first = report_of(out, ROUTES)
    code, text, _ = call("gap", out, "-t", 60, "--engines", "price-bound", "-o", tmp_path / "g")
    assert code == 0, text
    bounded = report_of(tmp_path / "g", ROUTES)
    for one, two in zip(first["objectives"], bounded["objectives"], strict=True):
        assert one["value"] == two["value"] and two["bound"] is not None and two["bound"] <= two["value"]
    assert call("verify", *where, "--routes", tmp_path / "g" / "flow-routes.json", "--bound")[0] in (0, 6)
    assert call("resume", out, "-t", 60, "--engines", "route-mip")[0] == 0
    assert report_of(out, ROUTES)["status"] == "optimal"
    given = ("-t", 60, "--engines", "route-mip", "--warm-start", out, "-o", tmp_path / "w")
    assert call("route", *where, *given)[0] == 0
    last = [[o["value"] for o in report_of(f, ROUTES)["objectives"]] for f in (out, tmp_path / "w")]
    assert last[1] <= last[0] <= [o["value"] for o in first["objectives"]]
    (tmp_path / "m.part").write_text("1\n0\n2\n3\n")
    code, _, text = call("route", *where, "--warm-start", out, "-o", tmp_path / "x")
    assert code == 2 and text.count("\n") == 1 and "no route from core" in text


def test_a_mapping_is_gone_on_with(call: Called, tmp_path: Path) -> None:
    """Never worse than before, bounds that were proved are kept; a folder of no run is refused."""
    rng = np.random.default_rng(5)
    edges = [
        {"source": u, "target": v, "weight": int(rng.integers(1, 9))} for u in range(6) for v in range(u)
    ]
    content = {"directed": True, "multigraph": False, "graph": {}, "nodes": [{"id": i} for i in range(6)]}
    graph, out = tmp_path / "g.json", tmp_path / "m"
    graph.write_text(json.dumps(content | {"edges": edges}))
    given = ("map", graph, "-m", "mesh:2x3", "-t", 4, "--engines", "star,anneal", "-o", out)
    assert call(*given)[0] == 0
    before = report_of(out, "report.json")
    assert before["status"] == "feasible" and before["bounds"]
    assert call("resume", out, "-t", 60, "--engines", "branch-bound", "-o", tmp_path / "n")[0] == 0
    after = report_of(tmp_path / "n", "report.json")
    assert after["status"] == "optimal" and after["objective"] <= before["objective"]
    assert {b["method"] for b in before["bounds"]} <= {b["method"] for b in after["bounds"]}
    assert call("verify", tmp_path / "n")[0] == 0
    code, _, text = call("resume", tmp_path)
    assert code == 2 and text.count("\n") == 1 and "no report of a run" in text


def test_free_routes_take_a_start_and_are_not_resumed(call: Called, tmp_path: Path) -> None:
    """The start of a run with free routes is read, and such a run cannot be gone on with: its routes would be lost."""
    graph, out, start = tmp_path / "g.json", tmp_path / "m", tmp_path / "start.part"
    nodes = [{"id": i, "multicast": True} for i in range(6)]
    edges = [{"source": u, "target": (u + k) % 6, "weight": 1} for u in range(6) for k in (1, 2)]
    content = {"directed": True, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges}
    graph.write_text(json.dumps(content))
    start.write_text("0\n1\n2\n3\n4\n5\n")
    given = (
        "map",
        graph,
        "-m",
        "mesh:2x3",
        "--objective",
        "multicast-hops",
        "--route",
        "joint",
        "-t",
        3,
        "--engines",
        "tree-search",
    )
    assert call(*given, "--warm-start", start, "-o", out)[0] == 0
    before = (out / "mapping.json").read_bytes()
    code, _, text = call("resume", out)
    assert code == 2 and text.count("\n") == 1 and "free routes" in text
    assert (out / "mapping.json").read_bytes() == before


def test_a_start_reaches_the_ordinary_mapping_of_free_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What joint search begins with is no worse than the start that it was given."""
    from nmsolve.solvers.mapping.api import make_problem
    from nmsolve.solvers.mapping.joint import api

    seen: list[object] = []
    ordinary = api.solve
    monkeypatch.setattr(api, "solve", lambda *a, **k: seen.append(k["warm_start"]) or ordinary(*a, **k))
    n = 6
    pairs = [(u, (u + k) % n, 1.0) for u in range(n) for k in (1, 2)]
    problem = make_problem(
        LogicGraph.from_edges(n, *map(np.array, zip(*pairs, strict=True))), load_machine("mesh:2x3")
    )
    api.solve_joint(problem, time_limit=1.0, warm_start=np.arange(n))
    assert [list(start) for start in seen] == [list(range(n))]


def wide(folder: Path) -> Path:
    """Sixty nodes that send to four others each."""
    rng = np.random.default_rng(3)
    nodes = [{"id": i} for i in range(60)]
    edges = [
        {"source": u, "target": int(v), "weight": int(rng.integers(1, 9))}
        for u in range(60)
        for v in rng.choice([w for w in range(60) if w != u], 4, replace=False)
    ]
    content = {"directed": True, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges}
    (folder / "wide.json").write_text(json.dumps(content))
    return folder / "wide.json"


def test_bounds_of_parts_that_a_run_leaves_are_not_kept(call: Called, tmp_path: Path) -> None:
    """A bound for the first mapping's parts says nothing about those of the last; a low one contradicts nothing."""
    out, last = tmp_path / "m", tmp_path / "n"
    where = (wide(tmp_path), "-m", "mesh:3x3", "--balance", 0.1)
    assert call("map", *where, "-t", 2, "--engines", "first-fit", "-o", out)[0] == 0
    proofs = json.loads((out / "certificates.json").read_text())
    (placed,) = [b for b in proofs["bounds"] if b["scope"] == "placement"]
    placed["value"] = 1.0
    (out / "certificates.json").write_text(json.dumps(proofs))
    assert call("resume", out, "-t", 4, "--engines", "multilevel,parts", "-o", last)[0] == 0
    assert report_of(last, "report.json")["objective"] < report_of(out, "report.json")["objective"]
    assert all(b["value"] > 1.0 for b in report_of(last, "report.json")["bounds"])
    assert call("verify", last, "--bound")[0] == 0


def test_a_report_of_a_stranger_names_no_place_to_write_and_ends_in_one_line(
    call: Called, tmp_path: Path
) -> None:
    """Options that write come from the command line alone; wrong values are refused."""
    out, evil = tmp_path / "m", tmp_path / "evil"
    where = (wide(tmp_path), "-m", "mesh:3x3", "--balance", 0.1)
    assert call("map", *where, "-t", 1, "--engines", "first-fit", "-o", out)[0] == 0
    report = report_of(out, "report.json")
    for more in ({"write_model": str(evil)}, {"scratch": str(evil)}, {"out": str(evil)}):
        (out / "report.json").write_text(json.dumps(report | {"inputs": report["inputs"] | more}))
        assert call("resume", out, "-t", 1, "--engines", "first-fit", "-o", tmp_path / "n")[0] == 0
        assert not evil.exists()
    for key, value in (("objectives", [1]), ("objectives", 5), ("graph", 7), ("chips", [2]), ("route", 3)):
        (out / "report.json").write_text(json.dumps(report | {"inputs": report["inputs"] | {key: value}}))
        code, _, text = call("resume", out, "-t", 1, "-o", tmp_path / "n")
        assert code == 2 and text.count("\n") == 1 and "$.inputs" in text, (key, value)
