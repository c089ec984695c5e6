"""The files of ``--write-model``: solvers that know nothing else find the optimum of the problem in them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import exact_support
import numpy as np
import pipelines_support
import pytest
from routing_support import every_answer, mesh
from test_cli_pipeline import cost_graph

from nmsolve.hw.routing.loads import route_loads
from nmsolve.kinds.answer import write_models
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.solvers.mapping.models import models as mapping_models
from nmsolve.solvers.pipeline.exact import models as pipeline_models
from nmsolve.solvers.routing.exact import models as routing_models
from nmsolve.solvers.search.write_model import ENDINGS, write_model

Twins = tuple[Any, Any]


def optima(folder: Path, name: str) -> dict[str, float]:
    """What HiGHS and CP-SAT find the least objective of every file to be, in the user's units."""
    import highspy
    from ortools.sat import cp_model_pb2
    from ortools.sat.python import cp_model

    assert {p.name for p in folder.iterdir()} == {name + ending for ending in ENDINGS}
    found = {}
    for ending in ENDINGS[:2]:
        highs = highspy.Highs()
        highs.silent()
        assert highs.readModel(str(folder / f"{name}{ending}")) == highspy.HighsStatus.kOk
        highs.run()
        assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        found[ending] = highs.getInfo().objective_function_value
    binary = cp_model_pb2.CpModelProto.FromString((folder / f"{name}{ENDINGS[2]}").read_bytes())
    for ending, text in zip(
        ENDINGS[2:], (str(binary), (folder / f"{name}{ENDINGS[3]}").read_text()), strict=True
    ):
        model, solver = cp_model.CpModel(), cp_model.CpSolver()
        assert model.proto.parse_text_format(text)
        assert solver.solve(model) == cp_model.OPTIMAL
        title, _, factor = model.proto.name.partition(", objective times ")
        assert title == name
        found[ending] = solver.objective_value / float(factor)
    return found


def mapping() -> tuple[Twins, float]:
    problem = exact_support.small_problem("chips", 0)
    return mapping_models(problem), exact_support.optimum(problem)


def tiny_mapping() -> tuple[Twins, float]:
    """Traffic so small that the models multiply it."""
    graph = LogicGraph.from_edges(4, [0, 1, 2, 3, 0], [1, 2, 3, 0, 2], np.array([3, 1, 4, 1, 5]) * 2.0**-20)
    problem = MappingProblem(graph, Machine("m", (1, 1), (2, 2)), node_limit=1)
    return mapping_models(problem), exact_support.optimum(problem)


def routes() -> tuple[Twins, float]:
    """Rates of a third: the models count in sixths."""
    flows = Flows.of_pairs([0, 3, 5], [5, 2, 0], [1 / 3, 2 / 3, 0.5])
    problem = RoutingProblem(mesh(2, 3), flows, ("max-link", "turns"))
    best = min(route_loads(problem.machine, flows, routes).max() for routes in every_answer(problem))
    return routing_models(problem), best


def pipeline() -> tuple[Twins, float]:
    problem = pipelines_support.random_dag(3, 4, 3, 2, memory=12.0)
    return pipeline_models(problem), pipelines_support.optimum(problem)


@pytest.mark.parametrize("case", [mapping, tiny_mapping, routes, pipeline])
def test_solvers_find_the_optimum_in_every_file(case: Any, tmp_path: Path) -> None:
    """From scratch."""
    twins, best = case()
    paths = write_model(case.__name__, *twins, tmp_path)
    assert [p.name for p in paths] == [case.__name__ + ending for ending in ENDINGS]
    assert optima(tmp_path, case.__name__) == pytest.approx(dict.fromkeys(ENDINGS, best), rel=1e-6)


def test_variables_have_the_names_of_the_documentation(tmp_path: Path) -> None:
    """``x(3_8)`` and ``x[3,8]`` are node 3 on core 8."""
    graph = exact_support.random_graph(np.random.default_rng(5), 4)
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 3)), node_limit=1)
    paths = write_model("mapping", *mapping_models(problem), tmp_path)
    assert (
        all("x(3_8)" in path.read_text() for path in paths[:2]) and 'name: "x[3,8]"' in paths[3].read_text()
    )


def test_what_cannot_be_stated_or_written_is_refused(tmp_path: Path) -> None:
    """Problems too large, an objective that is no linear one, a folder that is a file."""
    big = exact_support.random_graph(np.random.default_rng(0), 200)
    flows = Flows.of_matrix(np.ones((100, 100)))
    for name, make in (
        ("node and core", lambda: mapping_models(MappingProblem(big, Machine("m", (1, 1), (16, 16)), node_limit=1))),
        ("limit", lambda: routing_models(RoutingProblem(mesh(10, 10), flows))),
        ("reward", lambda: routing_models(RoutingProblem(mesh(2, 2), Flows.of_pairs([0], [3], [1]), ("reward",)))),
        ("limit", lambda: pipeline_models(pipelines_support.random_dag(0, 60, 60, 60))),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"no model is written: .*{name}"):
            make()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        write_model("pipeline", *pipeline()[0], tmp_path / "file")


def test_route_and_pipeline_write_what_they_solve(call: Any, tmp_path: Path) -> None:
    """The files' optimum is the one that the run proves; ``reward`` ends before the search with nothing written."""
    edges = [
        {"source": a, "target": b, "weight": w} for a, b, w in ((0, 3, 2), (1, 2, 3), (0, 1, 1), (3, 1, 1))
    ]
    graph = {
        "directed": True,
        "multigraph": False,
        "graph": {},
        "nodes": [{"id": i} for i in range(4)],
        "edges": edges,
    }
    (tmp_path / "g.json").write_text(json.dumps(graph))
    (tmp_path / "m.part").write_text("0\n1\n2\n3\n")
    about = ("route", tmp_path / "m.part", "--graph", tmp_path / "g.json", "--machine", "mesh:2x2")
    for name, report, words in (
        ("routes", "route-report.json", (*about, "--objective", "max-link", "--engines", "route-cpsat")),
        (
            "pipeline",
            "pipeline-report.json",
            ("pipeline", cost_graph(tmp_path / "diamond.json"), "--engines", "pipeline-cpsat"),
        ),
    ):
        out, folder = tmp_path / f"{name}-out", tmp_path / name
        code, _, text = call(*words, "-t", "60", "--write-model", folder, "--out", out)
        assert code == 0 and text.count("wrote ") == len(ENDINGS)
        said = json.loads((out / report).read_text())
        value = said["objectives"][0]["value"] if name == "routes" else said["objective"]
        assert said["status"] == "optimal"
        assert optima(folder, name) == pytest.approx(dict.fromkeys(ENDINGS, value), rel=1e-6)
    code, _, text = call(
        *about, "--objective", "reward", "--write-model", tmp_path / "no", "--out", tmp_path / "o"
    )
    assert code == 2 and text.startswith("error: --write-model: no model is written: ") and "reward" in text
    assert not (tmp_path / "no").exists() and not list((tmp_path / "o").iterdir())


def test_writing_models_costs_no_search_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither building nor writing them counts against a time limit."""
    monkeypatch.setattr("nmsolve.solvers.search.write_model.write_model", lambda *_: time.sleep(0.3) or [])
    before = clock.now()
    write_models("mapping", lambda: time.sleep(0.3) or ("cpsat", "mip"), tmp_path)
    assert clock.now() - before < 0.1
