"""schedule.json: what is written is read again; by hand with less; what does not fit is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from schedule_support import random_problem, random_schedule

from nmsolve.hw.schedule.evaluate import gaps_of
from nmsolve.hw.schedule.simulator import queues_of
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.schedule.schedule_file import read_schedule, write_schedule


def on_times(problem: ScheduleProblem, answer: Schedule) -> list[list[tuple[int, int]]]:
    """From the first activity to the last one, without the gaps in which a unit is off."""
    gaps = gaps_of(problem, answer)
    out = []
    for u in range(problem.units.count):
        times = [int(gaps.first[u]), int(gaps.last[u])] if gaps.last[u] >= 0 else []
        mine = np.flatnonzero((gaps.unit == u) & gaps.off)
        times[1:1] = [int(t) for k in mine for t in (gaps.begin[k], gaps.end[k])]
        out.append(list(zip(times[::2], times[1::2], strict=True)))
    return out


def written(tmp_path: Path, seed: int = 4) -> tuple[ScheduleProblem, Schedule, Path]:
    problem = random_problem(seed, processes=9)
    answer = random_schedule(problem, seed)
    path = tmp_path / "schedule.json"
    write_schedule(path, problem, answer, queues_of(problem, answer), on_times(problem, answer))
    return problem, answer, path


@pytest.mark.parametrize("seed", range(6))
def test_what_is_written_is_read_again(tmp_path: Path, seed: int) -> None:
    problem, answer, path = written(tmp_path, seed)
    found = read_schedule(path, problem)
    assert (found.answer.packed() == answer.packed()).all() and not found.wrong
    queues = queues_of(problem, answer)
    assert found.queues is not None and found.on is not None
    for name in ("indptr", "process", "off_after"):
        assert (getattr(found.queues, name) == getattr(queues, name)).all()
    assert [list(times) for times in found.on] == on_times(problem, answer)


def test_rows_in_any_order_and_by_hand(tmp_path: Path) -> None:
    """Without a number of the mode, units and end say which it is; a row that loads says from when."""
    problem, answer, path = written(tmp_path)
    rows = json.loads(path.read_text())["processes"][::-1]
    path.write_text(
        json.dumps({"processes": [{key: row[key] for key in row if key != "mode"} for row in rows]})
    )
    found = read_schedule(path, problem)
    assert (found.answer.start == answer.start).all() and (found.answer.loaded == answer.loaded).all()
    assert (found.answer.end(problem) == answer.end(problem)).all()
    assert found.queues is None and not found.wrong


CHANGES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda c: c["processes"][1].update(process="a/zz"), "no process 'b/1'"),
    (lambda c: c["processes"].append({"process": "a/zz", "start": 1}), "unknown process 'a/zz'"),
    (lambda c: c["processes"][1].update(process="a/0"), r"\$\.processes\[1\]\.process: process 'a/0' twice"),
    (lambda c: c["processes"].pop(), "no process 'a/8'"),
    (lambda c: c["processes"][0].update(mode=77), "has no mode 77"),
    (lambda c: c["processes"][2].update(mode=None, units=["u7"]), "'a/2' cannot run on"),
    (lambda c: c["processes"][2].update(start="soon"), r"\$\.processes\[2\]\.start: found str"),
    (lambda c: c["problem"].update(hash="f" * 64), "for another problem"),
    (lambda c: c.update(tasks="f" * 64), "for other networks or units"),
    (lambda c: c["units"].pop(), "other units"),
    (lambda c: c["units"][0].update(queue=[{"process": "x"}]), r"units\[0\]\.queue\[0\]\.process: an unknown process 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "line"), CHANGES, ids=[line for _, line in CHANGES])
def test_what_does_not_fit_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], line: str
) -> None:
    problem, _, path = written(tmp_path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=line):
        read_schedule(path, problem)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"end": 10**9}, "said to end at 1,000,000,000"),
        ({"units": ["u0", "u9"]}, "said to run on"),
        ({"load": 10**8}, "said to load from 100,000,000"),
    ],
)
def test_rows_that_disagree_with_themselves_are_noticed(
    tmp_path: Path, change: dict[str, Any], line: str
) -> None:
    problem, _, path = written(tmp_path)
    content = json.loads(path.read_text())
    content["processes"][3].update(change)
    path.write_text(json.dumps(content))
    assert line in read_schedule(path, problem).wrong


def test_another_objective_is_read_where_that_is_asked(tmp_path: Path) -> None:
    _, answer, path = written(tmp_path)
    other = random_problem(4, processes=9, objective="energy")
    with pytest.raises(InputError, match="another problem"):
        read_schedule(path, other)
    assert (read_schedule(path, other, other_rules=True).answer.packed() == answer.packed()).all()
