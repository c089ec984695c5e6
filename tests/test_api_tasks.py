"""Answers of ``nmsolve.assign`` and ``nmsolve.schedule``: as the commands', saved and verified, drawn, bounded, tabulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from assignments_support import pair_machine, random_problem, small_model
from command_support import run_here

import nmsolve

TASKS = Path(__file__).resolve().parent.parent / "examples" / "tasks.json"
pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def assigned(tmp_path_factory: pytest.TempPathFactory) -> nmsolve.AssignmentAnswer:
    """A chain of operators on two units, solved to optimality."""
    folder = tmp_path_factory.mktemp("assigned")
    model, machine = small_model(folder / "m.onnx"), pair_machine(folder / "pair.toml")
    return nmsolve.assign(model, machine, bindings={"batch": 32}, time_limit=3600)


@pytest.fixture(scope="module")
def planned() -> nmsolve.ScheduleAnswer:
    """The example's networks on the cores of a machine, with a limit on the energy."""
    return nmsolve.schedule(TASKS, objective="energy", at_most={"tardiness": 0}, time_limit=20, seed=1)


@pytest.mark.parametrize("name", ["assigned", "planned"])
def test_an_answer_is_saved_verified_bounded_and_gone_on_from(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A forged value is found; a bound of `gap` is about the same answer; the folder is a warm start and can be resumed."""
    answer: Any = request.getfixturevalue(name)
    folder = answer.save(tmp_path / "out")
    report = json.loads((folder / "report.json").read_text())
    assert report["objective"] == answer.objective and (folder / "report.html").exists()
    assert answer.verify().ok and nmsolve.verify(folder).ok
    assert nmsolve.score(folder) == nmsolve.score(answer) == answer.scores
    bounded = nmsolve.gap(answer, time_limit=20)
    assert bounded.objective == answer.objective and bounded.verify().ok and type(bounded) is type(answer)
    again: Any = nmsolve.assign if name == "assigned" else nmsolve.schedule
    same: dict[str, Any] = (
        {"model": answer.inputs.model, "machine": answer.inputs.machine, "bindings": "batch=32"}
        if name == "assigned"
        else {"tasks": TASKS, "objective": "energy", "at_most": {"tardiness": 0}}
    )
    for start in (answer, folder):
        assert again(**same, warm_start=start, time_limit=5).objective <= answer.objective
    run_here("resume", folder, "-t", 5, code=None)
    assert nmsolve.verify(folder).ok
    report = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps(report | {"objective": report["objective"] - 1}))
    assert not nmsolve.verify(folder)


def test_the_command_finds_the_same(assigned: nmsolve.AssignmentAnswer, tmp_path: Path) -> None:
    assert assigned.inputs is not None
    words = (
        assigned.inputs.model,
        "-m",
        assigned.inputs.machine,
        "--bind",
        "batch=32",
        "-t",
        "1h",
        "-o",
        tmp_path,
    )
    run_here("assign", *words)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["objective"] == assigned.objective and report["graph"] == json.loads(
        (assigned.save(tmp_path / "own") / "report.json").read_text()
    )["graph"]  # fmt: skip


@pytest.mark.parametrize(("name", "kinds", "columns"), [
    ("assigned", ("network", "costs", "memory", "schedule"), ("operator", "unit")),
    ("planned", ("schedule", "use", "peaks", "energy"), ("process", "unit", "start", "end")),
])  # fmt: skip
def test_pictures_and_tables(
    name: str, kinds: tuple[str, ...], columns: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    answer: Any = request.getfixturevalue(name)
    for kind in ("convergence", *kinds):
        assert answer.plot(kind).axes, kind
    with pytest.raises(nmsolve.InputError, match="unknown kind of picture 'cake'"):
        answer.plot("cake")
    pytest.importorskip("pandas")
    table = answer.to_dataframe()
    assert set(columns) <= set(table.columns) and len(table) >= 3
    if name == "assigned":
        assert dict(zip(table["operator"], table["unit"], strict=True)) == answer.unit


def test_what_came_as_an_object_is_not_saved(assigned: nmsolve.AssignmentAnswer, tmp_path: Path) -> None:
    """Nothing is made on the disk; a table and a bound need no file."""
    assert assigned.inputs is not None
    graph = nmsolve.load_model(assigned.inputs.model)
    answers: list[Any] = [
        nmsolve.assign(graph, str(assigned.inputs.machine), bindings={"batch": 32}, time_limit=60),
        nmsolve.assign(random_problem(3, operators=4, units=2), time_limit=5),
        nmsolve.schedule(nmsolve.load_tasks(TASKS), time_limit=2),
    ]
    assert answers[0].objective == assigned.objective
    for answer in answers:
        with pytest.raises(nmsolve.InputError, match="came as an object; expected"):
            answer.save(tmp_path / "none")
        assert not (tmp_path / "none").exists() and nmsolve.gap(answer, time_limit=2).bound is not None
    with pytest.raises(nmsolve.InputError, match="the tasks have units already"):
        nmsolve.schedule(nmsolve.load_tasks(TASKS), machine="mesh:2x2")
