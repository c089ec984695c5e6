"""One chain: ONNX models to stages, stages to cores, and one schedule of all of them on one chip."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cli_pipeline import cost_graph, network

from nmsolve.hw.machines import load_machine
from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.hw.schedule.from_runs import LEAST_TICKS, PlannedRun, tasks_from_runs
from nmsolve.hw.schedule.units import units_of
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.schedule.tasks import stated

Called = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models in stages for a chip of nine cores, ``one`` placed on its cores, and ``both`` scheduled together."""
    folder = tmp_path_factory.mktemp("chain")
    plan = ("--machine", "mesh:3x3", "--core-memory", "64KiB", "--exact-stages", "-t", "600s")
    for name, layers, stages, more in (("one", 6, 3, ("--place",)), ("two", 4, 2, ())):
        model = network(folder / f"{name}.onnx", layers)
        run_here(
            "pipeline",
            model,
            *plan,
            "--bind",
            "batch=4",
            "--stages",
            stages,
            *more,
            "--gap",
            "0",
            "-o",
            folder / name,
        )
    told = (
        "--frames",
        3,
        "--engines",
        "m4,schedule-counting",
        "-t",
        "600s",
        "--trace",
        "--csv",
        "-o",
        folder / "both",
    )
    run_here("schedule", "--from", folder / "one", "--from", folder / "two", *told)
    return folder


def test_two_models_share_a_chip_from_onnx_to_a_verified_schedule(runs: Path, call: Called) -> None:
    out = runs / "both"
    tasks = {t["name"]: t for t in json.loads((out / "tasks.json").read_text())["tasks"]}
    for name, stages in (("one", 3), ("two", 2)):
        plan = json.loads((runs / name / "pipeline-report.json").read_text())
        steps = tasks[name]["processes"]
        assert [p["name"] for p in steps] == [f"s{k}" for k in range(stages)]
        tick = json.loads((out / "tasks.json").read_text())["tick"]
        for p, stage in zip(steps, plan["stages"], strict=True):
            assert (p["span"] - 1) * tick < stage["load"] * 1e-6 <= p["span"] * tick * (1 + 1e-9)
            assert (
                p["weights"]["bytes"] == stage["storage"] * stage["cores"]
                and len(p["sets"][0]) == stage["cores"]
            )
        for p, stage in zip(steps[1:], plan["stages"][1:], strict=True):
            assert sum(a["bytes"] for a in p["after"]) == stage["volume_in"]
        assert tasks[name]["period"] == max(p["span"] for p in steps) and tasks[name]["frames"] == 3
    assert all(len(p["sets"]) == 1 for p in tasks["one"]["processes"]), "the cores where it was placed"
    assert all(len(p["sets"]) > 1 for p in tasks["two"]["processes"]), "any cores in a row"
    report = json.loads((out / "report.json").read_text())
    assert report["graph"]["nodes"] == 15 and report["inputs"]["machine"] == "mesh:3x3"
    assert call("verify", out, "--bound")[0] == 0


def test_placed_stages_run_on_the_cores_of_their_tiles(runs: Path) -> None:
    mapping = json.loads((runs / "one" / "placement" / "mapping.json").read_text())
    where = zip(mapping["row"], mapping["col"], strict=True)
    core = dict(zip(mapping["node"], (f"{r},{c}" for r, c in where), strict=True))
    file = json.loads((runs / "both" / "schedule.json").read_text())
    for row in file["processes"]:
        if row["process"].startswith("one/"):
            stage = row["process"].removeprefix("one/").partition("@")[0]
            own = {c for node, c in core.items() if node.startswith(f"{stage}/")}
            assert own == set(row["units"]) and own


def test_trace_and_table_are_written_only_when_asked_for(runs: Path, tmp_path: Path, call: Called) -> None:
    file = json.loads((runs / "both" / "schedule.json").read_text())
    rows = list(csv.DictReader((runs / "both" / "schedule.csv").open()))
    assert len(rows) == sum(len(p["units"]) for p in file["processes"])
    assert {(r["process"], int(r["start"]), int(r["end"])) for r in rows} == {
        (p["process"], p["start"], p["end"]) for p in file["processes"]
    }
    trace = json.loads((runs / "both" / "trace.json").read_text())
    assert trace["run"] == file["run"]
    assert sum(e["ph"] == "X" and "args" in e for e in trace["traceEvents"]) == len(rows)
    told = ("--machine", "mesh:3x3", "--engines", "m4", "-t", "600s", "-o", runs / "both")
    assert call("schedule", runs / "both" / "tasks.json", *told)[0] == 0
    assert not (runs / "both" / "trace.json").exists() and not (runs / "both" / "schedule.csv").exists()


def made(loads: list[float], cores: list[int], edges: list[tuple[int, int]], name: str = "net") -> PlannedRun:
    """A plan with a layer per stage of these times, and a tensor of 10 bytes per edge that takes no time."""
    count = len(loads)
    source = np.array([a for a, _ in edges], np.int64)
    tensors = Tensors(
        source, np.arange(len(edges) + 1), np.array([b for _, b in edges], np.int64), np.zeros(len(edges)),
        np.full(len(edges), 10.0),
    )  # fmt: skip
    time = np.repeat(np.array(loads)[:, None], max(cores), axis=1)
    labels = tuple(f"l{k}" for k in range(count))
    problem = PipelineProblem(
        name, labels, time, np.full(count, 7.0), tensors, sum(cores), count, split="any"
    )
    return PlannedRun("runs/x", problem, PipelinePlan(np.arange(count), np.array(cores)), "us", 1e15)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.floats(1e-3, 1e6), st.integers(1, 6)), min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(1, 4),
)  # fmt: skip
def test_any_plans_become_networks_that_can_be_scheduled(
    plans: list[list[tuple[float, int]]], frames: int
) -> None:
    machine = load_machine("mesh:2x4")
    runs = [
        made([t for t, _ in plan], [c for _, c in plan], [(k, k + 1) for k in range(len(plan) - 1)])
        for plan in plans
    ]
    file = tasks_from_runs(runs, machine, frames)
    assert file.tick is not None
    assert len({t.name for t in file.tasks}) == len(plans)
    spans = []
    for task, run in zip(file.tasks, runs, strict=True):
        wanted = stage_loads(run.problem, run.plan).load * 1e-6 / file.tick
        own = np.array([p.span for p in task.processes], float)
        assert (own >= wanted * (1 - 1e-9)).all() and (own <= wanted * (1 + 1e-9) + 1).all()
        spans.append(own.max())
    total = sum(float(stage_loads(r.problem, r.plan).load.sum()) for r in runs)
    assert min(spans) >= LEAST_TICKS or total * 1e-6 / file.tick > 2**32
    problem = stated(file, "tasks.json", units_of(machine)).problem
    assert problem.count == frames * sum(map(len, plans))


def refusal(*runs: PlannedRun) -> str:
    with pytest.raises(InputError) as raised:
        tasks_from_runs(runs, load_machine("mesh:2x2"))
    return str(raised.value)


def test_plans_that_are_no_processes_are_refused_in_one_line() -> None:
    from dataclasses import replace

    fine = made([1.0, 2.0], [2, 2], [(0, 1)])
    assert tasks_from_runs([fine], load_machine("mesh:2x2")).tasks
    assert "runs/x: a core takes in 0.001 bytes per tick" in refusal(replace(fine, bandwidth=1e6))
    assert (
        tasks_from_runs([replace(fine, bandwidth=0.0)], load_machine("mesh:2x2")).network.load_bandwidth == 0
    )
    assert "stage 1 runs on a host" in refusal(
        replace(fine, plan=PipelinePlan(np.array([0, 1]), np.array([2, 0])), problem=replace(
            fine.problem, hosts=1, host_time=np.array([1.0, 1.0])))
    )  # fmt: skip
    assert "stages 1 and 2 wait for each other" in refusal(
        made([1.0] * 4, [1] * 4, [(0, 1), (1, 2), (2, 1), (2, 3)])
    )
    assert "stage 0 takes 5 cores of mesh:2x2 with 4" in refusal(made([1.0], [5], []))
    assert "times in no unit and 'us'" in refusal(fine, replace(fine, unit=""))
    assert "placed on core 2,0, which mesh:2x2 lacks" in refusal(
        replace(fine, cores=[["0,0", "0,1"], ["1,0", "2,0"]])
    )


def said(done: tuple[int, str, str]) -> str:
    code, _, text = done
    assert code == 2 and text.startswith("error: ") and text.count("\n") == 1, text
    return text


def test_wrong_folders_and_options_are_refused_in_one_line(runs: Path, tmp_path: Path, call: Called) -> None:
    one, two, out = runs / "one", runs / "two", ("-o", tmp_path / "out")
    assert "no plan.json" in said(call("schedule", "--from", tmp_path / "nothing", *out))
    broken = tmp_path / "broken"
    shutil.copytree(two, broken)
    (broken / "pipeline-report.json").unlink()
    assert "no pipeline-report.json" in said(call("schedule", "--from", broken, *out))
    shutil.copy(two / "pipeline-report.json", broken)
    shutil.copy(one / "plan.json", broken)
    assert "belongs to run" in said(call("schedule", "--from", broken, *out))
    assert "placed on mesh:3x3" in said(call("schedule", "--from", one, "--machine", "mesh:4x4", *out))
    assert "none with --from" in said(call("schedule", runs / "both" / "tasks.json", "--from", one, *out))
    assert "there are no plans" in said(call("schedule", runs / "both" / "tasks.json", "--frames", 2, *out))
    alone = tmp_path / "alone"
    run_here("pipeline", cost_graph(tmp_path / "graph.json"), "-t", "600s", "-o", alone)
    assert "a plan is for no machine" in said(call("schedule", "--from", alone, *out))
    assert "times in" in said(call("schedule", "--from", alone, "--from", two, "--machine", "mesh:3x3", *out))
    assert not (tmp_path / "out").exists()
