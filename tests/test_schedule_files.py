"""Files of the field are read as scheduling problems, and tasks.json and schedule.json say what they mean."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Called

from nmsolve.hw.schedule.evaluate import objective
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.files import is_schedule_file, load_schedule
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule

DATA = Path(__file__).parent / "data" / "schedule"


def ends(problem: ScheduleProblem) -> np.ndarray:
    """Earliest end of every process by least spans, without units, resources and data."""
    least = np.minimum.reduceat(problem.modes.span, problem.modes.first[:-1])
    start = problem.release.copy()
    for e in np.argsort(np.argsort(problem.order)[problem.edges.source], kind="stable"):
        a, b = problem.edges.source[e], problem.edges.target[e]
        start[b] = max(start[b], start[a] + least[a])
    return start + least


#: Two activities side by side between begin and end, one with two modes.
PSPLIB = """\
************************************************************************
file with basedata            : tiny.bas
initial value random generator: 7
************************************************************************
projects                      :  1
jobs (incl. supersource/sink ):  4
horizon                       :  12
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
************************************************************************
PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      2      0        6        0        6
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        2          1           4
   3        1          1           4
   4        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     3       4    0
         2     5       1    1
  3      1     4       0    2
  4      1     0       0    0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1  R 2
    4    2
************************************************************************
"""

#: Two projects that share one resource; the second is released at 5 and waits for the first.
MPLIB = """\
2
1
3

3 0
1
0 0 1 1:2
4 2 2 1:3 2:2
0 0 0

3 5
1
0 0 1 2:2
2 3 1 2:3
0 0 0
"""


def test_patterson_files_give_the_published_critical_path() -> None:
    stated = load_schedule(DATA / "j30_13_1.rcp")
    p = stated.problem
    assert (p.count, p.units.count, len(p.resources), stated.form) == (30, 0, 4, "Patterson")
    assert int(ends(p).max()) == 34
    assert (
        p.labels[0] == "2"
        and p.modes.demand[0].tolist() == [10, 10, 5, 5]
        and p.capacity.tolist() == [19, 18, 19, 17]
    )


def test_psplib_files_of_one_and_several_modes(tmp_path: Path) -> None:
    path = tmp_path / "tiny.mm"
    path.write_text(PSPLIB)
    stated = load_schedule(path)
    p = stated.problem
    assert p.labels == ("2", "3") and p.modes.first.tolist() == [0, 2, 3] and p.edges.count == 0
    assert p.modes.span.tolist() == [3, 5, 4] and p.modes.demand.tolist() == [[4, 0], [1, 1], [0, 2]]
    row = stated.table()[0]
    assert (row.label, row.modes, row.span, row.deadline) == ("2", 2, (3, 5), None)


def test_activities_that_take_nothing_but_order_others_are_kept(tmp_path: Path) -> None:
    """The first activity is no mere begin where another one comes before it."""
    path = tmp_path / "odd.rcp"
    path.write_text("3 1\n2\n0 0 1 3\n5 1 1 1\n2 1 0\n")
    p = load_schedule(path).problem
    assert p.count == 3 and int(ends(p).max()) == 7


def test_mplib_projects_share_resources_and_have_release_times(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_text(MPLIB)
    stated = load_schedule(path)
    p = stated.problem
    assert p.labels == ("1/2", "2/2") and p.tasks == ("1", "2") and p.task.tolist() == [0, 1]
    assert p.release.tolist() == [0, 5] and (p.edges.source.tolist(), p.edges.target.tolist()) == ([0], [1])
    assert [row.process for row in stated.table()] == ["2", "2"]


def test_flexible_job_shops_have_machines_as_units() -> None:
    p = load_schedule(DATA / "la16_edata.fjs").problem
    assert (p.count, p.units.count, len(p.tasks), p.edges.count) == (100, 10, 10, 90)
    assert (np.diff(p.sets.indptr) == 1).all() and int(ends(p).max()) <= 892
    assert p.labels[11] == "2/2"
    mode = p.modes.first[:-1]
    start = np.concatenate([[0], np.cumsum(p.modes.span[mode])[:-1]])
    one_by_one = Schedule(mode, start, np.zeros(p.count, bool))
    assert schedule_complaint(p, one_by_one) is None and objective(p, one_by_one) == p.modes.span[mode].sum()


def test_workflows_have_times_files_and_machines() -> None:
    stated = load_schedule(DATA / "helloworld-chain-5-chameleon.json")
    p = stated.problem
    assert (p.count, p.units.count, stated.tick) == (5, 1, 0.001)
    assert p.modes.span.tolist()[:2] == [100376, 100120]
    assert p.edges.bytes.tolist() == [16666667] * 4


def test_workflows_of_the_earlier_schema_carry_their_files_with_them(tmp_path: Path) -> None:
    tasks = [
        {"name": "a", "runtimeInSeconds": 1.5, "files": [{"link": "output", "name": "f", "sizeInBytes": 7}]},
        {
            "name": "b",
            "parents": ["a"],
            "runtime": 0,
            "files": [{"link": "input", "name": "f", "sizeInBytes": 7}],
        },
    ]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"name": "w", "workflow": {"tasks": tasks}}))
    p = load_schedule(path).problem
    assert p.modes.span.tolist() == [1500, 1] and p.edges.bytes.tolist() == [7]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("x.rcp", "4 1\n2\n", "ends before the duration of activity 1"),
        ("x.rcp", "2 1\n2\n1 1 1 2\n1 3 0\n", "activity 2 needs 3 of resource R1, there are 2"),
        ("x.rcp", "3 1\n2\n1 1 1 2\n1 1 1 3\n1 1 1 1\n", "circle of 3: 1 -> 2 -> 3 -> 1"),
        ("x.rcp", "1 1\n2\n1 1 0 9\n", "x.rcp:3: the file goes on"),
        ("x.rcp", "1 1\n2\n-1 1 0\n", "x.rcp:3: the duration of activity 1 is '-1'"),
        ("x.rcp", "9999999 1\n", "the number of activities is '9999999'"),
        ("x.sm", PSPLIB.replace("4 \n", "").replace("jobs", "obs"), "no line 'jobs'"),
        ("x.sm", PSPLIB.replace("nonrenewable              :  0", "nonrenewable :  1"), "nonrenewable resources"),
        ("x.sm", PSPLIB.replace("   2   3\n", "   2\n"), "x.sm:19: the row of activity 1"),
        ("x.sm", PSPLIB.replace("  3      1     4       0    2", "  3      1     4       0"), "x.sm:31"),
        ("x.sm", PSPLIB.replace("    4    2\n", "    4\n"), "1 capacities"),
        ("x.sm", PSPLIB.replace("    4    2\n", "    4    z\n"), "found 'z'"),
        ("x.sm", "", "no line 'jobs'"),
        ("x.txt", MPLIB.replace("2:2\n0 0 0", "7:2\n0 0 0"), "a successor is '7:2'"),
        ("x.txt", MPLIB.replace("1:3 2:2", "1:3 2:4"), "activity 2 of project 1 precedes 2:4"),
        ("x.fjs", "1 2\n1 1 3 4\n", "a machine of operation 1 of job 1 is '3'"),
        ("x.fjs", "1 2\n1 1 2 0\n", "a time of operation 1 of job 1 is '0'"),
        ("x.fjs", "1 1\n0\n", "no operations"),
        ("x.fjs", "1 1 1 1\n0\n", "4 words in the first line"),
        ("x.abc", "", "unknown kind of file '.abc'"),
    ],
)  # fmt: skip
def test_damaged_files_of_the_field_are_refused_with_their_line(
    tmp_path: Path, name: str, text: str, line: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as found:
        load_schedule(path)
    assert line in str(found.value) and "\n" not in str(found.value)


#: One network of one process.
ONE = {"units": {"mesh": [1, 1]}, "tasks": [{"name": "a", "processes": [{"name": "x", "span": 1}]}]}


def test_edge_lists_and_graphs_are_no_schedules(tmp_path: Path, call: Called) -> None:
    """Both kinds of files are called .txt or .json; ``info`` tells them apart."""
    for name, text, said in (
        ("edges.txt", "0 1 2\n1 2 3.5\n", "nodes"),
        ("graph.json", '{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}]}', "nodes"),
        ("two.txt", MPLIB, "processes"),
        ("tasks.json", json.dumps(ONE), "processes"),
        ("w.json", (DATA / "helloworld-chain-5-chameleon.json").read_text(), "processes"),
    ):
        (tmp_path / name).write_text(text)
        code, output, _ = call("info", tmp_path / name)
        assert code == 0 and said in output, name
        assert is_schedule_file(tmp_path / name) == (said == "processes")
