"""Files of the field are read as scheduling problems, and tasks.json and schedule.json say what they mean."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import Called

from nmsolve.hw.schedule.evaluate import objective
from nmsolve.hw.schedule.simulator import queues_of
from nmsolve.kinds.schedule.python import schedule
from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.files import is_schedule_file, load_schedule
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.schedule.schedule_file import read_schedule, tasks_hash, write_schedule

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
    path = tmp_path / "two.rcmp"
    path.write_text(MPLIB)
    stated = load_schedule(path)
    p = stated.problem
    assert p.labels == ("1/2", "2/2") and p.tasks == ("1", "2") and p.task.tolist() == [0, 1]
    assert p.release.tolist() == [0, 5] and (p.edges.source.tolist(), p.edges.target.tolist()) == ([0], [1])
    assert [row.process for row in stated.table()] == ["2", "2"]


#: Fisher and Thompson's first job shop, mt06 or ft06 (1963); its optimum is 55.
FT06 = """\
6 6
2 1 0 3 1 6 3 7 5 3 4 6
1 8 2 5 4 10 5 10 0 10 3 4
2 5 3 4 5 8 0 9 1 1 4 7
1 5 0 5 2 5 3 3 4 8 5 9
2 9 1 3 4 5 5 4 0 3 3 1
1 3 3 3 5 9 0 10 4 4 2 1
"""


def in_matrices(text: str, base: int = 1) -> str:
    """The same job shop in Taillard's form."""
    head, *rows = ([int(w) for w in line.split()] for line in text.splitlines())
    times = [" ".join(map(str, row[1::2])) for row in rows]
    machines = [" ".join(str(m + base) for m in row[::2]) for row in rows]
    return "\n".join([" ".join(map(str, head)), *times, *machines]) + "\n"


HEADED = (
    "Nb of jobs, Nb of Machines, Time seed, Machine seed, Upper bound, Lower bound\n 6 6 1 2 55 55\nTimes\n"
)


@pytest.mark.parametrize(
    ("name", "text", "first", "warned"),
    [
        ("ft06.jsp", FT06, "0", ""),
        ("ft06.txt", "# ft06\n" + FT06.replace("\n", "  # a row\n"), "0", ""),
        ("ft06", " instance ft06 \n\n +++++\n Fisher and Thompson 6x6\n" + FT06, "0", "Fisher and Thompson"),
        ("ft06.jsp", in_matrices(FT06), "1", ""),
        ("ft06.txt", in_matrices(FT06), "1", ""),
        ("ft06.jsp", HEADED + in_matrices(FT06).split("\n", 1)[1], "1", ""),
        ("ft06.jsp", in_matrices(FT06, base=0), "0", "machines are numbered from 0"),
        ("ft06.jsp", FT06.replace("5 8 0 9", "5 8 5 9"), "0", "ft06.jsp:4: a job is on one machine twice"),
    ],
)  # fmt: skip
def test_classic_job_shops_in_all_their_forms(
    tmp_path: Path, name: str, text: str, first: str, warned: str
) -> None:
    """Machines keep the numbers that the file has for them."""
    path = tmp_path / name
    path.write_text(text)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", InputWarning)
        stated = load_schedule(path)
    assert bool(seen) == bool(warned) and warned in " ".join(str(w.message) for w in seen)
    p = stated.problem
    assert stated.form == "job shop" and (p.count, p.units.count, p.edges.count) == (36, 6, 30)
    assert p.units.names[0] == first and p.labels[:2] == ("1/1", "1/2")
    used = [p.units.names[int(p.sets.members[k])] for k in p.modes.unit_set[:3]]
    assert used == [str(m + int(first)) for m in (2, 0, 1)] and p.modes.span[:3].tolist() == [1, 3, 6]


def test_operations_without_time_are_left_out_with_a_warning(tmp_path: Path) -> None:
    """The benchmark orb07 (Applegate and Cook 1991) has one, the last of a job."""
    path = tmp_path / "zero.jsp"
    path.write_text("2 3\n0 4 1 0 2 5\n1 3 0 2 2 0\n")
    with pytest.warns(InputWarning, match="zero.jsp:2: operation 2 takes no time"):
        p = load_schedule(path).problem
    assert p.labels == ("1/1", "1/3", "2/1", "2/2") and p.modes.span.tolist() == [4, 5, 3, 2]
    assert list(zip(p.edges.source.tolist(), p.edges.target.tolist(), strict=True)) == [(0, 1), (2, 3)]


def test_a_classic_job_shop_is_solved(tmp_path: Path) -> None:
    path = tmp_path / "ft06.jsp"
    path.write_text(FT06)
    assert schedule(path, time_limit=60).objective == 55


#: The first activity has a mode that no capacity allows and one that the budget N 1 forbids.
BUDGETS = (
    PSPLIB.replace("2          1           4", "4          1           4", 1)
    .replace("nonrenewable              :  0", "nonrenewable              :  1")
    .replace("R 1  R 2\n---", "N 1  R 2  R 1\n---")
    .replace("  1      1     0       0    0\n", "  1      1     0       0    0    0\n")
    .replace("  2      1     3       4    0\n         2     5       1    1\n",
             "  2      1     1       0    0    9\n         2     2       8    0    1\n         3     3       2    0    4\n"
             "         4     5       1    1    1\n")
    .replace("  3      1     4       0    2\n", "  3      1     4       3    2    0\n")
    .replace("  4      1     0       0    0\n", "  4      1     0       0    0    0\n")
    .replace("  R 1  R 2\n    4    2\n", "  R 1  N 1  R 2\n    4    5    2\n")
)  # fmt: skip


def test_nonrenewable_resources_are_budgets_and_columns_are_found_by_name(tmp_path: Path) -> None:
    """Mode 1 can never run and is left out; the others keep their numbers, also in schedule.json."""
    path = tmp_path / "budgets.mm"
    path.write_text(BUDGETS)
    p = load_schedule(path).problem
    assert p.resources == ("R1", "R2") and p.capacity.tolist() == [4, 2]
    assert p.budgets.names == ("N1",) and p.budgets.amount.tolist() == [5]
    assert p.modes.span.tolist() == [2, 3, 5, 4] and p.budgets.use[:, 0].tolist() == [8, 2, 1, 3]
    assert p.modes.demand.tolist() == [[1, 0], [4, 0], [1, 1], [0, 2]]
    assert p.modes.numbers.tolist() == [1, 2, 3, 0]
    answer = Schedule(np.array([1, 3]), np.array([0, 0]), np.array([False, False]))
    assert schedule_complaint(p, answer) is None
    write_schedule(tmp_path / "schedule.json", p, answer, queues_of(p, answer), ())
    rows = json.loads((tmp_path / "schedule.json").read_text())["processes"]
    assert [row["mode"] for row in rows] == [2, 0]
    assert read_schedule(tmp_path / "schedule.json", p).answer.mode.tolist() == [1, 3]


def test_the_end_of_a_project_is_late_at_its_cost_and_no_part_of_it_starts_before_its_release(
    tmp_path: Path,
) -> None:
    path = tmp_path / "late.sm"
    path.write_text(PSPLIB.replace("    1      2      0        6        0        6", "1 2 3 6 7 6"))
    p = load_schedule(path).problem
    assert p.labels == ("2", "3", "4") and p.release.tolist() == [3, 3, 3]
    assert p.due[2] == 6 and p.weight.tolist() == [0, 0, 7]
    assert schedule(p, objective="tardiness", time_limit=60).objective == 7


def test_headings_as_in_mmlib(tmp_path: Path) -> None:
    """Tabs, no blanks in names of resources, no project information, a title in two words."""
    text = BUDGETS.replace("R 1", "R1").replace("R 2", "R2").replace("N 1", "N1").replace("  ", "\t")
    text = text.replace("RESOURCEAVAILABILITIES:", "RESOURCE AVAILABILITIES").replace("duration", "dur")
    begin, end = text.index("PROJECT INFORMATION"), text.index("PRECEDENCE")
    path, other = tmp_path / "mmlib.mm", tmp_path / "budgets.mm"
    path.write_text(text[:begin] + text[end:])
    other.write_text(BUDGETS)
    assert tasks_hash(load_schedule(path).problem) == tasks_hash(load_schedule(other).problem)


def test_workflows_count_machines_in_both_spellings(tmp_path: Path) -> None:
    """The schema has ``machine``, instances of WfCommons have ``machines``."""
    content = json.loads((DATA / "helloworld-chain-5-chameleon.json").read_text())
    for k, run in enumerate(content["workflow"]["execution"]["tasks"]):
        run.pop("machines")
        run["machine"] = f"node{k % 3}"
    path = tmp_path / "w.json"
    path.write_text(json.dumps(content))
    assert load_schedule(path).problem.units.count == 3


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
        ("x.rcp", "1 1\n2\n1 1 0 9\n", "x.rcp:3: '9' after the last number of activity 1"),
        ("x.rcp", "1 1\n2\n1 1 0\n9\n", "x.rcp:4: the file goes on"),
        ("x.rcp", "1 1\n2\n-1 1 0\n", "x.rcp:3: the duration of activity 1 is '-1'"),
        ("x.rcp", "9999999 1\n", "the number of activities is '9999999'"),
        ("x.sm", PSPLIB.replace("4 \n", "").replace("jobs", "obs"), "no line 'jobs'"),
        ("x.sm", PSPLIB.replace("nonrenewable              :  0", "nonrenewable :  1"), "0 capacities of nonrenewable"),
        ("x.sm", PSPLIB.replace("constrained        :  0", "constrained :  1"), "doubly constrained resources"),
        ("x.sm", PSPLIB.replace("projects                      :  1", "projects : 2"), "2 projects"),
        ("x.sm", PSPLIB.replace("jobs (incl. supersource/sink ):  4", "jobs : 4.5"), "'jobs' is '4.5'"),
        ("x.sm", PSPLIB.replace("RESOURCES\n", "jobs : 4\n"), "x.sm:8: a second line 'jobs'"),
        ("x.sm", PSPLIB.replace("    1      2      0 ", "    1      3      0 "), "3 jobs besides begin and end"),
        ("x.sm", PSPLIB.replace("   2        2          1 ", "   2        3          1 "), "activity 2 has 2 modes"),
        ("x.sm", PSPLIB.replace("jobnr. mode", "jobnr. cost"), "x.sm:25: a column 'cost'"),
        ("x.sm", PSPLIB.replace("duration  R 1  R 2", "duration  R 1  R 1"), "x.sm:25: two columns 'R1'"),
        ("x.sm", PSPLIB.replace("duration  R 1  R 2", "duration  R 1  R 3"), "x.sm:25: a column 'R3'"),
        ("x.sm", PSPLIB + PSPLIB[PSPLIB.index("PRECEDENCE") :], "x.sm:37: a second section PRECEDENCE RELATIONS"),
        ("x.sm", PSPLIB.replace("    4    2\n", "    4    2\n    4    2\n"), "2 rows"),
        ("x.sm", PSPLIB.replace("  3      1     4       0    2", "  3      1     4       0    9"), "needs 9 of resource R2"),
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
        ("x.fjs", "2 1\n1 1 1 3 1 1 1 2\n", "x.fjs:2: '1' after the last number of job 1"),
        ("x.rcmp", MPLIB.replace("3 5\n1\n", "3 5\n0\n"), "needs 3 of resource 1, which its project does not use"),
        ("x.jsp", "2 2\n0 3 1 2\n", "1 rows of jobs"),
        ("x.jsp", "1 2\n0 3 1 2 1\n", "x.jsp:2: 5 numbers"),
        ("x.jsp", "1 2\n0 3 3 2\n", "x.jsp:2: operation 2 is on machine 3; expected 0..1"),
        ("x.jsp", "1 2\n0 3 1 9999999999999\n", "x.jsp:2: operation 2 takes 9999999999999"),
        ("x.jsp", "1 2\n0 3 1 2.5\n", "x.jsp:2: found '2.5'"),
        ("x.jsp", "words\n", "the first numbers are []"),
        ("x.xml", "<mp/>", "unknown kind of file '.xml'"),
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
        ("ft06.txt", FT06, "processes"),
        ("taillard.txt", in_matrices(FT06), "processes"),
        ("tasks.json", json.dumps(ONE), "processes"),
        ("w.json", (DATA / "helloworld-chain-5-chameleon.json").read_text(), "processes"),
    ):
        (tmp_path / name).write_text(text)
        code, output, _ = call("info", tmp_path / name)
        assert code == 0 and said in output, name
        assert is_schedule_file(tmp_path / name) == (said == "processes")
