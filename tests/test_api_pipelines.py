"""``nmsolve.pipeline``: what the command plans, for objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_api_answers import command
from test_cli_pipeline import cost_graph, network

import nmsolve


def test_a_plan_is_that_of_the_command(tmp_path: Path) -> None:
    model = cost_graph(tmp_path / "diamond.json")
    mine = nmsolve.pipeline(model, time_limit=60, batches=5)
    assert (mine.status, mine.objective) == ("optimal", 8.0) and set(mine.stage.values()) == {0, 1}
    folder = mine.save(tmp_path / "mine")
    command("pipeline", model, "-t", 60, "--batches", 5, "--out", tmp_path / "its")
    its, own = (json.loads((tmp_path / k / "pipeline-report.json").read_text()) for k in ("its", "mine"))
    for key in ("status", "problem", "objective", "bound", "baselines", "inputs", "work"):
        assert its[key] == own[key], key
    assert its["batch"]["batches"] == own["batch"]["batches"] == mine.report.batch.batches == 5  # type: ignore[union-attr]
    command("verify", folder, "--bound", "--trust-solver")
    assert mine.verify() and nmsolve.verify(folder)
    again = nmsolve.pipeline(model, time_limit=10, warm_start=folder, engines=["chain"])
    assert again.objective == 8.0
    with pytest.raises(nmsolve.InputError, match="no machine to place on"):
        mine.place()
    with pytest.raises(nmsolve.InputError, match="no plan of an ONNX model"):
        mine.write_onnx(tmp_path / "copy.onnx")


def test_a_model_on_a_machine_as_an_object_is_planned_placed_and_drawn(tmp_path: Path) -> None:
    model = network(tmp_path / "chain.onnx")
    machine = nmsolve.Machine("small", (1, 1), (2, 3))
    found = nmsolve.pipeline(
        model, machine=machine, bind={"batch": 4}, stages=3, exact_stages=True, time_limit=20
    )
    assert found.solution is not None and len(found.solution.cores) == 3
    rows = found.to_dataframe()
    assert (
        list(rows.stage) == [0, 1, 2]
        and rows.load.max() == pytest.approx(found.objective)
        and rows.cores.sum() <= 6
    )
    for kind in ("stages", "layers", "use", "timetable", "convergence"):
        found.plot(kind).savefig(tmp_path / f"{kind}.png")
        assert (tmp_path / f"{kind}.png").stat().st_size > 2000
    assert found.verify()
    tiles = found.place(time_limit=10)
    assert len(set(tiles.mapping.values())) == len(tiles.mapping) == rows.cores.sum() and tiles.verify()
    copy = found.write_onnx(tmp_path / "copy.onnx")
    assert copy.stat().st_size > 0
    with pytest.raises(nmsolve.InputError, match="replace this input"):
        found.write_onnx(model)


def test_the_gap_and_the_front_of_plans(tmp_path: Path) -> None:
    """Two cores take 8, one takes 14, the sum of all layers: both points are proved."""
    quick = nmsolve.pipeline(cost_graph(tmp_path / "diamond.json"), time_limit=20)
    found = nmsolve.gap(quick, time_limit=10)
    assert (found.objective, found.bound, found.status) == (8.0, 8.0, "optimal") and found.verify()
    front = nmsolve.pareto(quick, points=3, time_limit=10)
    assert front.names == ("period", "cores") and [p.values for p in front.points] == [
        (8.0, 2.0),
        (14.0, 1.0),
    ]
    assert all(p.proven for p in front.points) and front.points[1].solution.cores.tolist() == [1]
    command("verify", front.save(tmp_path / "front") / "pareto.json", "--bound", "--trust-solver")
    with pytest.raises(nmsolve.InputError, match="unknown objective 'hops'"):
        nmsolve.pareto(quick, objectives="hops,cores")


def test_why_there_is_no_plan(tmp_path: Path) -> None:
    """Memory of one byte per core conflicts with a layer of four; the command says the same."""
    model = cost_graph(tmp_path / "diamond.json")
    why = nmsolve.explain_pipeline(model, core_memory=1, time_limit=20)
    assert why.status == "infeasible" and why.minimal and why.confirmed
    told = command("explain", "pipeline", model, "--core-memory", 1, "-t", 20, "--json", code=4)
    assert [limit["name"] for limit in json.loads(told)["conflict"]] == [limit.name for limit in why.limits]
    fits = nmsolve.explain_pipeline(model, stages=1, time_limit=20)
    assert fits.solution is not None and len(fits.solution.cores) == 1
    again = nmsolve.pipeline(model, stages=1, warm_start=fits.save(tmp_path / "plan.json"), time_limit=10)
    assert again.objective is not None


def test_wrong_models_and_numbers_are_named(tmp_path: Path) -> None:
    with pytest.raises(nmsolve.InputError, match=r"cannot read '\.txt' files"):
        nmsolve.pipeline(tmp_path / "model.txt", cores=2)
    with pytest.raises(nmsolve.InputError, match="--stages K as well"):
        nmsolve.pipeline(cost_graph(tmp_path / "d.json"), exact_stages=True)
    with pytest.raises(nmsolve.InputError, match="9 cores of a machine with 4"):
        nmsolve.pipeline(tmp_path / "d.json", cores=9, machine="mesh:2x2")
    with pytest.raises(nmsolve.DoesNotFitError, match="nmsolve explain pipeline"):
        nmsolve.pipeline(tmp_path / "d.json", core_memory=1)
    with pytest.raises(TypeError, match="tim_limit"):
        nmsolve.pipeline(tmp_path / "d.json", tim_limit=1)  # type: ignore[call-arg]
