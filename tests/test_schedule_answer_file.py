"""schedule.json: what is written is read again; by hand with less; what does not fit is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from schedule_support import random_problem, random_schedule

from nmsolve.hw.schedule.power import gaps_of
from nmsolve.hw.schedule.simulator import queues_of
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.answer_file import read_schedule, write_schedule
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule


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
    assert (found.schedule.packed() == answer.packed()).all()
    queues = queues_of(problem, answer)
    assert found.queues is not None and found.on is not None
    for name in ("indptr", "process", "off_after"):
        assert (getattr(found.queues, name) == getattr(queues, name)).all()
    assert [list(times) for times in found.on] == on_times(problem, answer)


def test_rows_in_any_order_and_without_what_follows(tmp_path: Path) -> None:
    problem, answer, path = written(tmp_path)
    content = json.loads(path.read_text())
    turned = {key: content[key][::-1] for key in ("process", "start", "end", "units")}
    path.write_text(json.dumps({"problem": {"name": ""}, **turned}))
    found = read_schedule(path, problem)
    assert (found.schedule.start == answer.start).all() and found.queues is None
    assert (found.schedule.end(problem) == answer.end(problem)).all()
    item = problem.modes.item[found.schedule.mode]
    assert (found.schedule.loaded == (item >= 0)).all()


CHANGES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda c: c["process"].__setitem__(1, "a/zz"), r"\$\.process\[1\]: unknown process 'a/zz'"),
    (lambda c: c["process"].__setitem__(1, c["process"][0]), "twice"),
    (lambda c: [c[k].pop() for k in ("process", "start", "end", "units", "mode", "loaded")], "'a/8' is missing"),
    (lambda c: c["start"].pop(), r"\$\.start: 8 values"),
    (lambda c: c["mode"].__setitem__(0, 77), "has no mode 77"),
    (lambda c: c["units"].__setitem__(2, ["u7"]), r"\$\.units\[2\]: process 'a/2' does not run on u7"),
    (lambda c: c["end"].__setitem__(3, 10**9), r"\$\.end\[3\]: process 'b/3' runs from"),
    (lambda c: c["start"].__setitem__(3, -1), r"\$\.start\[3\]"),
    (lambda c: c["problem"].__setitem__("hash", "f" * 64), "for another problem"),
    (lambda c: c["queues"].pop(), "queues of 2 units"),
    (lambda c: c["queues"][0]["process"].append("x"), r"queues\[0\]\.off_after"),
    (lambda c: c["queues"][0].update(process=["x"], off_after=[True]), "unknown process 'x'"),
    (lambda c: c["queues"][0].update(on=[[5, 3]]), "times go back"),
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


def test_another_objective_is_read_where_that_is_asked(tmp_path: Path) -> None:
    _, answer, path = written(tmp_path)
    other = random_problem(4, processes=9, objective="energy")
    with pytest.raises(InputError, match="another problem"):
        read_schedule(path, other)
    assert (read_schedule(path, other, other_rules=True).schedule.packed() == answer.packed()).all()
