"""``nmsolve.route`` and ``simulate``: what the commands find, for objects; saved, verified and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from test_api_answers import command

import nmsolve
from nmsolve.kinds.routing import python as routing
from nmsolve.kinds.simulation import python as simulation

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RING = nx.cycle_graph(["a", "b", "c", "d"], nx.DiGraph)
#: Two messages of the ring go to the opposite corner, over two links each.
CROSSED = {"a": (0, 0), "b": (1, 1), "c": (0, 1), "d": (1, 0)}


def test_the_docstring_examples_are_true() -> None:
    import doctest

    for module in (routing, simulation):
        found = doctest.testmod(module)
        assert found.attempted and not found.failed


def test_routes_are_those_of_the_command(tmp_path: Path) -> None:
    """Both prove all three objectives; the loads of two crossed messages: no link carries two."""
    mapped = nmsolve.map(
        RING, "mesh:2x2", warm_start=CROSSED, engines=["first-fit"], time_limit=5, objective="cut"
    )
    found = nmsolve.route(CROSSED, RING, "mesh:2x2", time_limit=30, seed=1)
    assert (found.status, found.objective) == ("optimal", 1.0) and found.proved("total-link")
    folder = found.save(tmp_path / "mine")
    assert {"flow-routes.json", "route-report.json", "route.html", "inputs"} <= {
        p.name for p in folder.iterdir()
    }
    inputs = folder / "inputs"
    command("route", inputs / "mapping.json", "-g", inputs / "graph.json", "-m", "mesh:2x2", "-t", 30, "--seed", 1,
            "--out", tmp_path / "its")  # fmt: skip
    its, mine = (json.loads((tmp_path / k / "route-report.json").read_text()) for k in ("its", "mine"))
    for key in ("status", "flows", "objectives", "rules", "seed"):
        assert its[key] == mine[key], key
    assert found.verify()
    command("verify", inputs / "mapping.json", "-g", inputs / "graph.json", "-m", "mesh:2x2", "--bound", "--trust-solver",
            "--routes", folder / "flow-routes.json")  # fmt: skip
    of_answer = nmsolve.route(mapped, time_limit=30, turns="xy", objective=["max-link"])
    assert of_answer.problem.turns is not None and of_answer.verify()
    again = nmsolve.route(CROSSED, RING, "mesh:2x2", warm_start=folder, time_limit=10)
    assert again.objective == 1.0


def test_routes_as_a_table_and_as_pictures(tmp_path: Path) -> None:
    found = nmsolve.route(CROSSED, RING, "mesh:2x2", turns="west-first", time_limit=10)
    rows = found.to_dataframe()
    assert list(rows.columns) == ["source", "targets", "rate", "links"] and sorted(rows.links) == [1, 1, 2, 2]
    assert rows.links.sum() == found.scores["total-link"]
    for kind in ("links", "turns", "convergence"):
        found.plot(kind).savefig(tmp_path / f"{kind}.png")
        assert (tmp_path / f"{kind}.png").stat().st_size > 2000
    with pytest.raises(nmsolve.InputError, match="one of convergence, links, directions, turns"):
        found.plot("cores")


def test_the_gap_and_the_front_of_routes(tmp_path: Path) -> None:
    """XY routes of the crossed ring are as good as any; the front of two objectives that agree is one proved point."""
    quick = nmsolve.route(CROSSED, RING, "mesh:2x2", engines=["named"], objective=["max-link"], time_limit=5)
    found = nmsolve.gap(quick, time_limit=10)
    assert found.solution is not None and quick.solution is not None
    assert (found.objective, found.bound) == (quick.objective, 1.0) and found.verify()
    with pytest.raises(nmsolve.InputError, match="states already"):
        nmsolve.gap(quick, objective="turns")  # type: ignore[call-overload]
    front = nmsolve.pareto(quick, points=2, time_limit=8)
    assert front.names == ("max-link", "total-link") and front.points[0].values == (1.0, 6.0)
    assert front.points[0].solution.routes.count == 4 and front.points[0].mapping == {}
    folder = front.save(tmp_path / "front")
    command("verify", folder / "pareto.json", "--bound", "--trust-solver")
    assert front.verify()
    with pytest.raises(nmsolve.InputError, match="states already"):
        nmsolve.pareto(quick, "mesh:2x2")


def test_why_there_are_no_routes_and_some_where_there_are(tmp_path: Path) -> None:
    """Tables without entries forbid everything; the command names the same limits."""
    why = nmsolve.explain_route(CROSSED, RING, "mesh:2x2", table_limit=0, form="source", time_limit=20)
    assert (why.status, why.solution, why.mapping) == ("infeasible", None, {}) and why.limits and why.minimal
    proof = json.loads(why.save(tmp_path / "proof.json").read_text())
    inputs = nmsolve.route(CROSSED, RING, "mesh:2x2", time_limit=3).save(tmp_path / "routes") / "inputs"
    words = ("-g", inputs / "graph.json", "-m", "mesh:2x2", "--table-limit", 0, "--form", "source", "-t", 20)
    command("explain", "route", inputs / "mapping.json", *words, "--out", tmp_path / "its.json", code=4)
    assert json.loads((tmp_path / "its.json").read_text()) == proof
    some = nmsolve.explain_route(CROSSED, RING, "mesh:2x2", time_limit=20)
    assert some.status == "feasible" and some.solution is not None and some.solution.count == 4
    path = some.save(tmp_path / "flow-routes.json")
    assert nmsolve.verify(
        inputs / "mapping.json", graph=inputs / "graph.json", machine="mesh:2x2", routes=path, bound=False
    )


def test_wrong_routes_are_named() -> None:
    with pytest.raises(nmsolve.InputError, match="without its graph"):
        nmsolve.route(CROSSED)
    with pytest.raises(nmsolve.InputError, match="states already"):
        nmsolve.score(nmsolve.route(CROSSED, RING, "mesh:2x2", time_limit=2), machine="mesh:2x2")
    with pytest.raises(nmsolve.InputError, match="unknown routing objective"):
        nmsolve.route(CROSSED, RING, "mesh:2x2", objective="hops")
    with pytest.raises(nmsolve.InputError, match="routes are of another mapping"):
        other = nmsolve.route([0, 1, 3, 2], RING, "mesh:2x2", time_limit=5)
        nmsolve.simulate(CROSSED, RING, "mesh:2x2", routes=other)


def test_a_simulation_is_that_of_the_command(tmp_path: Path) -> None:
    """Every cycle of the simulator follows from seed and traffic: the reports differ in time only."""
    routes = nmsolve.route(CROSSED, RING, "mesh:2x2", time_limit=10)
    folder = routes.save(tmp_path / "routes")
    mine = nmsolve.simulate(routes, load=0.2, cycles=3000, seed=4)
    mine.save(tmp_path / "mine")
    inputs = folder / "inputs"
    command("simulate", inputs / "mapping.json", "-g", inputs / "graph.json", "-m", "mesh:2x2", "--load", 0.2, "--cycles", 3000,
            "--seed", 4, "--routes", folder / "flow-routes.json", "--out", tmp_path / "its")  # fmt: skip
    its, own = (json.loads((tmp_path / k / "simulation.json").read_text()) for k in ("its", "mine"))
    for run in (*its["runs"], *own["runs"]):
        run.pop("cycles_per_second")
    for key in ("runs", "energy", "link_flits", "routing", "traffic", "estimates", "deadlock"):
        assert its[key] == own[key], key
    assert not mine.deadlock and (tmp_path / "mine" / "simulation.html").exists()
    chosen = nmsolve.map(RING, "mesh:2x2", route="chosen", time_limit=6)
    assert nmsolve.simulate(chosen, cycles=2000).report.step_drain[0] > 0


def test_patterns_sweeps_tables_and_pictures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    machine, seen = nmsolve.machine("mesh:3x3"), []
    found = nmsolve.simulate(
        machine=machine,
        pattern="uniform",
        sweep=True,
        cycles=2000,
        warmup=500,
        time_limit=20,
        on_progress=seen.append,
    )
    assert found.report.saturation is not None and len(found.report.runs) > 2 and seen
    rows = found.to_dataframe()
    assert {"load", "stable", "mean", "p99"} <= set(rows.columns) and rows.load.is_monotonic_increasing
    for kind in ("links", "latency", "curve"):
        found.plot(kind).savefig(tmp_path / f"{kind}.png")
    found.save(tmp_path / "sim")
    assert (tmp_path / "sim" / "inputs" / "machine.toml").exists()
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pattern": "uniform"}, "a pattern without a machine"),
        ({"pattern": "uniform", "machine": "mesh:2x2"}, "a pattern without a load"),
        ({"pattern": "zigzag", "machine": "mesh:2x2", "load": 0.1}, "zigzag"),
        ({}, "nothing to simulate"),
        (
            {"mapping": CROSSED, "graph": RING, "machine": "mesh:2x2", "pattern": "uniform", "load": 0.1},
            "together with",
        ),
        ({"mapping": CROSSED, "graph": np.zeros((4, 4)), "machine": "mesh:2x2"}, "no core"),
    ],
)
def test_what_cannot_be_simulated_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(nmsolve.InputError, match=words):
        nmsolve.simulate(**given)  # type: ignore[arg-type]
