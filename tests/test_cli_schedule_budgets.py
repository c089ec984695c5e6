"""Nonrenewable resources through the commands: from a file of PSPLIB or ``tasks.json`` to a verified answer or a proof."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from test_schedule_files import PSPLIB

from nmsolve.kinds.schedule.python import schedule
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.files import load_schedule
from nmsolve.model.schedule.generate import generate_problem

#: Budget N 1 has 4: activity 2 must take its second mode, 6 ticks. Then 2 and 3 use all 3 of R 1, and 4 follows: 10 ticks.
TEN = """\
************************************************************************
projects                      :  1
jobs (incl. supersource/sink ):  5
horizon                       :  20
RESOURCES
  - renewable                 :  1   R
  - nonrenewable              :  1   N
  - doubly constrained        :  0   D
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        2          1           4
   3        1          1           5
   4        1          1           5
   5        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  N 1
------------------------------------------------------------------------
  1      1     0       0  0
  2      1     3       2  5
         2     6       1  1
  3      1     5       2  0
  4      1     4       2  0
  5      1     0       0  0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1  N 1
    3  4
************************************************************************
"""


def test_the_budget_decides_the_mode_and_the_optimum_is_recomputed(tmp_path: Path, call: Called) -> None:
    path, out = tmp_path / "ten.mm", tmp_path / "out"
    path.write_text(TEN)
    code, text, said = call("schedule", path, "-t", "1h", "-o", out)
    assert code == 0, said
    assert "makespan is 10 ticks, proved to be the least possible." in text and "N1 1 of 4" in text
    report = json.loads((out / "report.json").read_text())
    assert report["objective"] == 10 and report["budgets"] == [{"name": "N1", "used": 1, "amount": 4}]
    assert "Nonrenewable resources" in (out / "report.html").read_text()
    assert call("verify", out, "--bound")[0] == 0
    content = json.loads((out / "schedule.json").read_text())
    content["processes"][0] |= {"mode": 0, "start": 5, "end": 8}
    content["processes"][2] |= {"start": 8, "end": 12}
    (out / "schedule.json").write_text(json.dumps(content))
    code, text, _ = call("verify", out)
    assert code == 1 and "modes take 5 of nonrenewable resource 'N1', there are 4" in text
    code, text, _ = call("info", path)
    assert code == 0 and "budget N1      4" in text


def test_a_budget_that_is_too_small_is_proved_and_explained(tmp_path: Path, call: Called) -> None:
    path, out = tmp_path / "none.mm", tmp_path / "out"
    path.write_text(TEN.replace("    3  4\n", "    3  0\n"))
    code, _, said = call("schedule", path, "-t", "1h", "-o", out)
    assert code == 4 and "proved infeasible" in said
    code, text, _ = call("explain", "schedule", path, "-o", tmp_path / "why")
    assert code == 4 and "all processes take at least 1 of 'N1', there are 0" in text
    assert "nonrenewable resource 'N1', 0 of it" in text


def test_strict_refuses_what_is_otherwise_named(tmp_path: Path, call: Called) -> None:
    path = tmp_path / "odd.sm"
    path.write_text(PSPLIB + "HOLIDAYS:\n  3  4\n" + "*" * 72 + "\n")
    told = ("--engines", "heft", "-o", tmp_path / "out")
    code, _, said = call("schedule", path, *told)
    assert code == 0 and "warning: " in said and "HOLIDAYS" in said
    for command in (("schedule", path, "--strict", *told), ("explain", "schedule", path, "--strict")):
        code, _, said = call(*command)
        assert code == 2 and said.count("\n") == 1 and "HOLIDAYS" in said


def _networks(**changed: object) -> dict[str, object]:
    """Two processes, each fast at a cost or slow for less; two frames."""
    ways = [{"units": "u", "span": 2, "uses": {"gas": 5}}, {"units": "v", "span": 6, "uses": {"gas": 1}}]
    steps = [{"name": "x", "alternatives": ways}, {"name": "y", "alternatives": ways, "after": ["x"]}]
    task = {"name": "a", "period": 20, "frames": 2, "processes": steps}
    return {"units": [{"name": "u"}, {"name": "v"}], "budgets": {"gas": 12}, "tasks": [task]} | changed


def test_budgets_of_tasks_count_over_all_frames(tmp_path: Path) -> None:
    """12 allow two fast runs of four: those of the last frame, which begins at 20 and takes 4 ticks."""
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(_networks()))
    p = load_schedule(path).problem
    assert p.budgets.names == ("gas",) and p.budgets.use[:, 0].tolist() == [5, 1] * 4
    result = schedule(p, time_limit=60)
    assert result.status == "optimal" and result.objective == 24 and result.solution is not None
    assert p.budgets.spent(result.solution.mode).tolist() == [12]


def test_what_a_process_uses_may_depend_on_the_number_of_units(tmp_path: Path) -> None:
    step = {
        "name": "x",
        "span": {"1": 4, "2": 2},
        "sets": [["u"], ["u", "v"]],
        "uses": {"gas": {"1": 3, "2": 7}},
    }
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(_networks(tasks=[{"name": "a", "processes": [step]}])))
    assert load_schedule(path).problem.budgets.use.tolist() == [[3], [7]]
    step["uses"] = {"gas": {"1": 3}}
    path.write_text(json.dumps(_networks(tasks=[{"name": "a", "processes": [step]}])))
    with pytest.raises(InputError, match=r"uses.gas has no entry '2'"):
        load_schedule(path)


def test_generated_networks_may_have_budgets_that_some_modes_keep() -> None:
    p = generate_problem(2, 4, 4, budgets=2).problem
    least = np.minimum.reduceat(p.budgets.use, p.modes.first[:-1], axis=0).sum(axis=0)
    most = np.maximum.reduceat(p.budgets.use, p.modes.first[:-1], axis=0).sum(axis=0)
    assert p.budgets.names == ("b0", "b1") and (least <= p.budgets.amount).all() and (p.budgets.amount < most).all()  # fmt: skip
    plain = generate_problem(2, 4, 4).problem
    assert not plain.budgets.count and plain.modes.span.tolist() == p.modes.span.tolist()
