"""Links that would decide the period of a placed pipeline: the cut that gives way to them, and the search for cooler ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_support import run_here

from nmsolve.check.pipeline.reevaluate import reevaluated_value
from nmsolve.kinds.pipeline import links as pipeline_links
from nmsolve.kinds.pipeline.links import cut_for_links, slowest_us
from nmsolve.kinds.pipeline.statement import Given, PipelineInputs, state_problem
from nmsolve.model.bound import Result
from nmsolve.model.clock import now
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.solvers.pipeline.api import plan

pytest.importorskip("sympy")
onnx = pytest.importorskip("onnx")
HOW = {"seed": 0, "workers": 1, "memory": None}


def nested(path: Path, depth: int) -> Path:
    """Products of 16 rows and 64 columns; the first half of the results are added to the second half, the last one first."""
    from onnx import TensorProto, helper

    nodes, weights, last, kept = [], [], "x", []
    for k in range(2 * depth):
        data = bytes(4 * 64 * 64)
        weights.append(helper.make_tensor(f"w{k}", TensorProto.FLOAT, [64, 64], data, raw=True))
        nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [f"h{k}"], f"matmul{k}"))
        last = f"h{k}"
        if k < depth:
            kept.append(last)
        else:
            nodes.append(helper.make_node("Add", [last, kept.pop()], [f"a{k}"], f"add{k}"))
            last = f"a{k}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, 64]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "nested", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def line(path: Path, bandwidth: float, cores: int = 28) -> Path:
    """All cores in a row: what passes between far stages goes over every link between them."""
    rates = "mac_rate = 1e9\nelement_rate = 1e9\ntile_channels = 16\ntile_rows = 16\n"
    path.write_text(f"cores = [1, {cores}]\n[figures]\n{rates}bandwidth = {bandwidth}\n")
    return path


def found(tmp_path: Path, bandwidth: float) -> tuple[Given, PipelineInputs, Result[PipelinePlan]]:
    inputs = PipelineInputs(
        model=str(nested(tmp_path / "n.onnx", 14)), machine=str(line(tmp_path / "l.toml", bandwidth))
    )
    given = state_problem(inputs)
    return given, inputs, plan(given.problem, time_limit=20)


def test_layers_are_cut_again_where_links_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan obeys the rules of the problem as stated; what was proved stays, and holds for it."""
    given, inputs, first = found(tmp_path, 0.4e9)
    assert first.status == "optimal" and first.solution is not None and given.machine is not None
    again = cut_for_links(given, inputs, given.machine, first, now() + 20, HOW)
    assert again.solution is not None and again.bounds == first.bounds and again.bound == first.bound
    assert (again.status, again.solution.stage.tolist()) != ("optimal", first.solution.stage.tolist())
    assert again.objective == pytest.approx(reevaluated_value(given.problem, again.solution), rel=1e-12)
    assert again.objective > first.objective and again.gap == pytest.approx(1 - again.bound / again.objective)
    said = capsys.readouterr().err
    after, before = map(float, re.findall(r"([0-9.]+) us", said))
    assert again.objective < after < before


def test_a_plan_that_links_can_bear_stays(tmp_path: Path) -> None:
    given, inputs, first = found(tmp_path, 8e9)
    assert (
        given.machine is not None
        and cut_for_links(given, inputs, given.machine, first, now() + 5, HOW) is first
    )


@pytest.mark.parametrize(
    ("links", "chosen"),
    [((1.5, 0.5), 1), ((1.5, 1.4, 1.3, 1.2), 3), ((1.5, 1.6, 1.2, 1.3), 2), ((1.5, 9, 9, 9), 0)],
)
def test_the_least_period_of_all_cuts_stays(
    links: tuple[float, ...], chosen: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hottest links as parts of the first plan's slowest stage; later plans are seen until links are cool or rounds are over."""
    given, inputs, first = found(tmp_path, 0.4e9)
    assert first.solution is not None and given.machine is not None
    unit, looked = slowest_us(given, first.solution), []

    def look(given: Given, machine: object, plan: PipelinePlan, *rest: object) -> float:
        looked.append(plan)
        return links[len(looked) - 1] * unit

    monkeypatch.setattr(pipeline_links, "_look", look)
    again = cut_for_links(given, inputs, given.machine, first, now() + 60, HOW)
    assert len(looked) == len(links) and again.solution is looked[chosen]


def test_cooler_links_are_sought_where_the_cut_is_not_made_for_links(tmp_path: Path) -> None:
    """With another objective the cut stays. The placement is then one of the coolest links; ``verify`` accepts both folders."""
    source, machine, out = nested(tmp_path / "n.onnx", 14), line(tmp_path / "l.toml", 0.4e9), tmp_path / "out"
    words = ("--objective", "batch", "--batches", "100", "-t", "8", "--place")
    said = run_here("pipeline", source, "-m", machine, *words, "-o", out, code=None).stderr
    assert "cut again" not in said and "cooler links are sought" in said
    assert json.loads((out / "placement" / "report.json").read_text())["objective_name"] == "max-link"
    run_here("verify", out / "placement")
    assert "links, not cores" in run_here("verify", out).stdout
