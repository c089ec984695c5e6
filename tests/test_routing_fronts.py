"""Several objectives of routes: fronts against all routes there are, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_support import run_here
from test_routing_exact import every_answer, solved, some_problem

from nmsolve.cli.check import run_verify
from nmsolve.hw.routing.loads import route_loads
from nmsolve.kinds.verbs import VerifyOptions
from nmsolve.model.bound import Result
from nmsolve.model.errors import InputError
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import IntArray
from nmsolve.solvers.multi_objective import pareto_front
from nmsolve.solvers.routing.checker import RoutingChecker
from nmsolve.solvers.routing.exact import RouteCpSat
from nmsolve.solvers.routing.multi_objective import RoutingObjectives
from nmsolve.solvers.run import Options


class Exact(RoutingObjectives):
    """Every stage by the exact model in this process."""

    def _solve(self, stage: RoutingStage, seconds: float, start: IntArray | None) -> Result[IntArray]:
        found = solved(stage, RouteCpSat())
        status = "optimal" if found.optimal else "feasible"
        return Result(
            status, "gap", stage.objective, found.lifted, found.objective, found.bound, 0.0, found.bounds
        )


def test_load_against_total_load_where_detours_are_allowed() -> None:
    problem = replace(some_problem("detour"), objective=("max-link", "total-link"))
    loads = [route_loads(problem.machine, problem.flows, routes) for routes in every_answer(problem)]
    values = {(float(x.max()), float(x.sum())) for x in loads}
    truth = {v for v in values if not any(w != v and w[0] <= v[0] and w[1] <= v[1] for w in values)}
    front = pareto_front(Exact(problem, Options()), ("max-link", "total-link"), 6, 60.0)
    found = {p.values for p in front.points}
    assert found <= truth and {min(truth), max(truth)} <= found and all(p.proven for p in front.points)
    assert {p.word for p in front.points} <= {"", "route-cpsat"}
    assert front.ideal == front.bounds == (min(v[0] for v in truth), min(v[1] for v in truth))


def test_a_front_within_tables_begins_with_routes_that_fit() -> None:
    problem = some_problem("tables")
    objectives = RoutingObjectives(problem, Options(engines=["reroute"]))
    stage, result = objectives.minimise("max-link", (), 3.0, None)
    assert stage.problem == problem.content_hash and result.solution is not None
    assert RoutingChecker(RoutingStage(problem, "max-link")).complaint(result.solution) is None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A front of routes on 2x3 cores, by engines that need no other process."""
    folder = tmp_path_factory.mktemp("front")
    edges = [(0, 2, 3), (0, 1, 4), (3, 5, 2), (4, 1, 2), (2, 3, 5)]
    graph = {
        "directed": True, "multigraph": False, "graph": {"name": "g"}, "nodes": [{"id": i, "sizes": {}} for i in range(6)],
        "edges": [{"source": a, "target": b, "weight": w} for a, b, w in edges],
    }  # fmt: skip
    (folder / "g.json").write_text(json.dumps(graph))
    (folder / "at.txt").write_text("\n".join(map(str, range(6))))
    command = ["route", folder / "at.txt", "--graph", folder / "g.json", "-m", "mesh:2x3", "--detour", "2", "-t", "60",
               "--pareto", "max-link,total-link", "--points", "3", "--engines", "named,price-bound"]  # fmt: skip
    run_here(*command, "-o", folder / "out")
    return folder / "out"


def test_the_command_writes_a_front_that_verify_recomputes(made: Path, tmp_path: Path) -> None:
    front = json.loads((made / "pareto.json").read_text())
    assert front["command"] == "route" and front["objectives"] == ["max-link", "total-link"]
    assert run_verify(VerifyOptions(made, bound=True)) == 0
    point = made / front["points"][0]["routes"]
    alone = VerifyOptions(
        made.parent / "at.txt", graph=made.parent / "g.json", machine="mesh:2x3", routes=point
    )
    assert run_verify(alone) == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f["points"][0]["values"].update({"total-link": 1.0}),
        lambda f: f["points"][0].update(bound=1e6),
        lambda f: f["points"][0].update(proven=True, bound=None, values=dict.fromkeys(f["objectives"], 1.0)),
        lambda f: f.update(bounds=[f["ideal"][0] + 1, None]),
        lambda f: f["inputs"].update(detour=0),
        lambda f: f.update(problem={"hash": "0" * 16}),
        lambda f: f.update(command="pipeline"),
    ],
)
def test_no_forged_front_is_believed(change, made: Path, tmp_path: Path) -> None:
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    front = json.loads((made / "pareto.json").read_text())
    change(front)
    (tmp_path / "pareto.json").write_text(json.dumps(front))
    try:
        ended = run_verify(VerifyOptions(tmp_path, bound=True))
    except InputError:
        ended = 2  # it cannot even be read
    assert ended in (1, 2)
