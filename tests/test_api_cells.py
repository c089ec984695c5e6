"""Every verb of every kind of problem from Python: one table, and what the command accepts of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_support import run_here
from golden_runs import EXAMPLES
from test_cli_pipeline import network

import nmsolve

HOW: dict[str, Any] = {"time_limit": 20.0}
KINDS = ("mapping", "routing", "pipeline", "assignment", "schedule")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the inputs of all kinds."""
    folder = tmp_path_factory.mktemp("cells")
    network(folder / "m.onnx")
    return folder


@pytest.fixture(scope="module")
def mapped() -> Any:
    return nmsolve.map(str(EXAMPLES / "first.json"), "mesh:2x2", **HOW)


def solved(kind: str, files: Path, mapped: Any, **more: Any) -> Any:
    """The answer of a kind's function."""
    model: dict[str, Any] = {"bindings": "batch=8"}
    runs: dict[str, Callable[[], Any]] = {
        "mapping": lambda: nmsolve.map(str(EXAMPLES / "first.json"), "mesh:2x2", **HOW, **more),
        "routing": lambda: nmsolve.route(mapped, **HOW, **more),
        "pipeline": lambda: nmsolve.pipeline(files / "m.onnx", machine="mesh:2x2", bind="batch=8", **HOW, **more),
        "assignment": lambda: nmsolve.assign(files / "m.onnx", "laptop-npu", **model, **HOW, **more),
        "schedule": lambda: nmsolve.schedule(EXAMPLES / "tasks.json", **HOW, **more),
    }  # fmt: skip
    return runs[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_of_a_kind(kind: str, files: Path, mapped: Any, tmp_path: Path) -> None:
    answer = solved(kind, files, mapped)
    assert answer.objective is not None and answer.bound is not None
    folder = answer.save(tmp_path / "run")
    assert nmsolve.verify(folder) and answer.verify()
    for name, value in nmsolve.score(folder).items():
        assert nmsolve.score(answer)[name] == value
    assert nmsolve.score(folder)
    assert len(answer.to_dataframe())
    assert answer.plot().get_axes() and answer.plot("convergence").get_axes()
    html = answer._repr_html_()
    assert answer.status in html and "<table" in html and answer.objective_name in html
    bounded = nmsolve.gap(answer, **HOW)
    assert bounded.objective == answer.objective and bounded.bound is not None
    again = solved(kind, files, mapped, warm_start=answer)
    assert again.objective == answer.objective or answer.status != "optimal"


@pytest.mark.parametrize("kind", KINDS)
def test_fronts_and_explanations(kind: str, files: Path, mapped: Any, tmp_path: Path) -> None:
    graph, model, tasks = str(EXAMPLES / "first.json"), files / "m.onnx", EXAMPLES / "tasks.json"
    about = {"mapping": (graph, "mesh:2x2")}.get(kind) or (solved(kind, files, mapped),)
    front = nmsolve.pareto(*about, points=2, **HOW)
    assert front.points and len(front.to_dataframe()) == len(front.points)
    assert nmsolve.verify(front.save(tmp_path / "front")), front.verify()
    found: dict[str, Callable[[], Any]] = {
        "mapping": lambda: nmsolve.explain(graph, "mesh:2x2", **HOW),
        "routing": lambda: nmsolve.explain_route(mapped, **HOW),
        "pipeline": lambda: nmsolve.explain_pipeline(model, machine="mesh:2x2", bind="batch=8", **HOW),
        "assignment": lambda: nmsolve.explain_assign(model, "laptop-npu", bindings="batch=8", **HOW),
        "schedule": lambda: nmsolve.explain_schedule(tasks, **HOW),
    }
    why = found[kind]()
    assert why.status == "feasible" and why.save(tmp_path / "why.json").exists()


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("mapping", ("hops", "max-link")),
        ("routing", ("turns", "max-link")),
        ("assignment", ("energy", "latency")),
        ("assignment", ("latency", "makespan")),
        ("pipeline", ("energy", "period")),
        ("pipeline", ("period", "batch")),
        ("schedule", ("makespan", "energy")),
    ],
)
def test_objectives_in_order(
    kind: str, names: tuple[str, str], files: Path, mapped: Any, tmp_path: Path
) -> None:
    answer = solved(kind, files, mapped, objective=names)
    alone = solved(kind, files, mapped, objective=names[0])
    if alone.status == "optimal":
        assert nmsolve.score(answer)[names[0]] == pytest.approx(nmsolve.score(alone)[names[0]])
    assert nmsolve.verify(answer.save(tmp_path / "run")), answer.verify()


def test_objects_instead_of_files(files: Path) -> None:
    """What states the problem may be objects; what these state already is not stated again."""
    model = nmsolve.load_model(files / "m.onnx")
    board = nmsolve.processors("laptop-npu")
    why = nmsolve.explain_assign(model, board, bindings={"batch": 8}, time_limit=10)
    assert why.status == "feasible"
    answer = nmsolve.assign(model, board, bindings={"batch": 8}, objective="latency,energy", time_limit=10)
    assert answer.objective_name == "energy"
    other = nmsolve.assign(answer.problem, objective="latency", time_limit=10)
    assert other.objective_name == "latency"
    with pytest.raises(nmsolve.InputError, match="states it already"):
        nmsolve.assign(answer.problem, board, time_limit=10)
    tasks = nmsolve.load_tasks(EXAMPLES / "tasks.json")
    assert nmsolve.explain_schedule(tasks, time_limit=10).status == "feasible"
    assert nmsolve.schedule(tasks, objective=["makespan", "energy"], time_limit=10).objective_name == "energy"


def test_explanations_of_what_cannot_be(files: Path, tmp_path: Path) -> None:
    """Limits that conflict are those that the command names."""
    late = nmsolve.explain_schedule(EXAMPLES / "tasks.json", at_most={"makespan": 1}, time_limit=20)
    assert late.status == "infeasible" and late.save(tmp_path / "why.json").exists()
    told = run_here(
        "explain", "schedule", EXAMPLES / "tasks.json", "--at-most", "makespan=1", "-t", 20, "--json", code=4
    )
    assert [x.name for x in late.limits] == [x["name"] for x in json.loads(told.stdout)["conflict"]]
    (tmp_path / "pin.json").write_text('{"pin": {"@in": "no such unit"}}')
    with pytest.raises(nmsolve.InputError):
        nmsolve.explain_assign(
            files / "m.onnx", "laptop-npu", bindings="batch=8", constraints=tmp_path / "pin.json"
        )
