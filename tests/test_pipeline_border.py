"""What groups of cores take in and give out through: one core, or a side of them. The chains of other tests draw both."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pipelines_support import best_chain, random_dag

from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.check.pipeline.reevaluate import reevaluated_loads
from nmsolve.hw.machines import load_machine
from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.figures import machine_figures
from nmsolve.model.pipeline.groups import Groups
from nmsolve.model.pipeline.plan import PipelinePlan

Called = Any


def test_nine_cores_move_data_three_times_as_fast() -> None:
    """A tensor of 12 takes that on up to three cores, 6 on up to eight, 4 on nine; at both ends."""
    base = random_dag(1, 2, 20, 10, split="chain", memory=None)
    tensors = replace(
        base.tensors, source=np.array([0]), indptr=np.array([0, 1]), targets=np.array([1]),
        time=np.array([12.0]), volume=np.ones(1),
    )  # fmt: skip
    problem = replace(base, time=np.ones((2, 10)), tensors=tensors, groups=Groups(border=True))
    for cores, takes in ((1, 12), (3, 12), (4, 6), (8, 6), (9, 4), (10, 4)):
        plan = PipelinePlan(np.array([0, 1]), np.array([cores, 1]))
        loads = stage_loads(problem, plan)
        assert loads.load.tolist() == [1 + takes, 13] == pytest.approx(reevaluated_loads(problem, plan))
        assert loads.transfer_out[0] == takes and loads.transfer_in[1] == 12


def test_a_side_is_never_slower_and_bounds_of_one_core_do_not_count() -> None:
    """The optimum with sides is at most that without; a bound that counts tensors over one core is refused."""
    better = 0
    for seed in range(20):
        base = random_dag(seed, 8, 12, 9, split="chain", memory=20.0)
        base = replace(base, tensors=replace(base.tensors, time=5 * base.tensors.time))
        wide = best_chain(replace(base, groups=Groups(border=True))).value
        assert wide <= best_chain(base).value
        better += wide < best_chain(base).value
        claim = Bound(wide, "layer-cut", certificate={"method": "layer-cut"})
        assert not check_plan_bound(replace(base, groups=Groups(border=True)), claim).ok
        assert check_plan_bound(replace(base, groups=Groups(border=True)), replace(claim, method="chain")).ok
        above = replace(claim, method="chain", value=math.nextafter(wide, math.inf))
        assert not check_plan_bound(replace(base, groups=Groups(border=True)), above).ok
    assert better


@pytest.mark.parametrize("words", [[], ["--objective", "batch", "-B", "64"]])
def test_the_command_plans_with_sides_and_verify_recomputes_it(
    call: Called, tmp_path: Path, words: list[str]
) -> None:
    """Faster than through one core, proved, and recomputed by the second program."""
    values = {}
    for border in ("core", "side"):
        given = [
            "pipeline",
            "tests/data/onnx/mobilenet_v2.onnx",
            "--cores",
            "96",
            "--group-border",
            border,
            *words,
        ]
        code, text, _ = call(*given, "-o", str(tmp_path / border))
        assert code == 0, text
        values[border] = json.loads((tmp_path / border / "pipeline-report.json").read_text())["objective"]
        assert call("verify", str(tmp_path / border), "--bound")[0] == 0
    assert values["side"] < values["core"]


def test_a_machine_states_its_border(tmp_path: Path) -> None:
    """``group_border`` under ``[figures]``: 1, or 0, or nothing."""
    for value, border in (("1", True), ("0", False)):
        (tmp_path / "m.toml").write_text(f'preset = "wormhole"\n[figures]\ngroup_border = {value}\n')
        assert machine_figures(load_machine(str(tmp_path / "m.toml"))).border is border
    assert machine_figures(load_machine("wormhole")).border is False


def test_what_borders_do_not_go_with_is_refused(call: Called, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--split chain"):
        random_dag(3, 4, 4, 4, groups=Groups(border=True))
    model = "tests/data/onnx/mobilenet_v2.onnx"
    for words, word in (
        (["--group-border", "edge"], "core, side"),
        (["--group-border", "side", "--split", "any"], "chain"),
    ):
        code, _, line = call("pipeline", model, "--cores", "8", *words, "-o", str(tmp_path / "o"))
        assert code == 2 and word in line
