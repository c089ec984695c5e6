"""``nmsolve schedule`` from files to page, what ``verify`` finds in its answers, and every way its options can be wrong."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from schedule_files import one_unit, tasks_file

import nmsolve
from nmsolve.check.schedule.recheck import RECHECKS, WORDS
from nmsolve.kinds.mapping.report import Report
from nmsolve.kinds.schedule.again import parse_again
from nmsolve.kinds.schedule.statement import amounts
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.problem import OBJECTIVES
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.schedule.schedule_file import read_schedule
from nmsolve.solvers.schedule.api import ScheduleTask, bound_schedule, solve_schedule
from nmsolve.solvers.schedule.registry import GENERAL, REGISTRY, RULES, SPECIAL, shares_for

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

Called = Callable[..., tuple[int, str, str]]
DATA = Path(__file__).parent / "data" / "schedule"
#: Engines that end after a moment, whose bounds are recomputed: they prove the small networks optimal.
QUICK = ("--engines", "heft,m4,schedule-counting")


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, its networks beside it."""
    folder = tmp_path_factory.mktemp("schedule")
    tasks = tasks_file(folder / "three.json")
    told = ("-t", "1h", "--noise", "10%", "--runs", 5, "-o", folder / "out", "--json")
    done = run_here("schedule", tasks, *QUICK, *told, code=None)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[-1]["type"] == "result" and {"incumbent", "bound"} <= {r["type"] for r in rows}
    assert "proved to be the least possible" in done.stderr and "every deadline" in done.stderr
    return folder


def test_a_run_leaves_all_files_and_the_keys_of_map(answered: Path) -> None:
    out = answered / "out"
    for name in ("schedule.json", "report.json", "certificates.json", "events.jsonl", "report.html"):
        assert (out / name).stat().st_size > 0
    report = json.loads((out / "report.json").read_text())
    assert set(Report.__struct_fields__) <= report.keys()
    assert report["status"] == "optimal" and report["gap"] == 0 and report["objective_name"] == "makespan"
    assert report["objective"] == report["scores"]["makespan"] == 20 and report["unit"] == "ticks"
    assert sum(report["energy"].values()) == report["scores"]["energy"]
    assert [t["name"] for t in report["tasks"]] == ["a", "b"] and len(report["units"]) == 3
    for u in report["units"]:
        assert u["busy"] + u["idle"] + u["off"] == 20 and u["peak"] <= u["memory"] == 100
    assert {c["name"] for c in report["checks"]} >= {
        "rules",
        "objective",
        "scores",
        "executed",
        "gap",
        "status",
    }
    assert report["noise"]["runs"] == 5 and report["noise"]["makespan"][0] <= report["noise"]["makespan"][2]
    assert report["reschedule"] is None and [r["name"] for r in report["rules"]] == ["heft", "m4"]


def test_the_page_needs_no_network_and_shows_units_and_energy(answered: Path) -> None:
    page = (answered / "out" / "report.html").read_text()
    assert not re.search(r'(?:src|href)="(?!#)', page) and "url(http" not in page
    assert page.count("<svg") == 4 and "nmsolve verify" in page and "parts of the energy" in page
    assert page.count("<canvas") == 2 and "What the makespan hangs on" in page


def test_schedule_json_says_who_runs_where_and_when_units_are_on(answered: Path) -> None:
    file = json.loads((answered / "out" / "schedule.json").read_text())
    assert [p["process"] for p in file["processes"]] == ["a/x", "a/y", "a/z", "b/x", "b/y"]
    first = file["processes"][0]
    assert first["task"] == "a" and first["load"] == first["start"] - 5 and first["end"] == first["start"] + 5
    queues = {u["unit"]: [e["process"] for e in u["queue"]] for u in file["units"]}
    for p in file["processes"]:
        assert all((p["process"] in queue) == (name in p["units"]) for name, queue in queues.items())
    assert all(len(u["on"]) == 1 if u["queue"] else not u["on"] for u in file["units"])


@pytest.mark.parametrize(
    ("file", "change", "check"),
    [
        ("schedule.json", lambda c: c["processes"][0].update(start=0, end=5, load=-5), "rules"),
        ("schedule.json", lambda c: c["processes"][0].update(end=99), "file"),
        ("schedule.json", lambda c: c["processes"][0].update(units=["0,2", "0,1"]), "file"),
        ("schedule.json", lambda c: c["units"][0]["queue"][0].update(off=True), "queues"),
        ("schedule.json", lambda c: c["units"][0]["queue"].reverse(), "queues"),
        ("schedule.json", lambda c: c["units"][0]["on"][0].__setitem__(1, 21), "queues"),
        ("report.json", lambda c: c.update(objective=19), "objective"),
        ("report.json", lambda c: c["scores"].update(energy=1), "scores"),
        ("report.json", lambda c: c.update(gap=0.5), "gap"),
        ("report.json", lambda c: c["inputs"].update(objective="energy"), "problem"),
        ("certificates.json", lambda c: c.update(bounds=[]), "full bound"),
        ("certificates.json", lambda c: [b.update(value=21) for b in c["bounds"]], "bound"),
    ],
)  # fmt: skip
def test_verify_finds_what_was_changed(
    answered: Path, tmp_path: Path, call: Called, file: str, change: object, check: str
) -> None:
    """One field at a time; untouched it ends with 0."""
    out = tmp_path / "out"
    shutil.copytree(answered / "out", out)
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "executed" in text and "recomputed is 20" in text
    content = json.loads((out / file).read_text())
    change(content)  # type: ignore[operator]
    (out / file).write_text(json.dumps(content))
    code, text, error = call("verify", out, "--bound")
    failed = [line for line in text.splitlines() if line.startswith("FAILED")]
    assert (code == 1 and any(line.split(None, 1)[1].startswith(check) for line in failed)) or (
        check == "problem" and code == 2 and "another problem" in error
    ), text + error  # fmt: skip


def test_score_and_gap_read_schedules_by_hand(answered: Path, tmp_path: Path, call: Called) -> None:
    """Processes, units and starts are enough: modes, queues and intervals follow."""
    file = json.loads((answered / "out" / "schedule.json").read_text())
    rows = [{k: p[k] for k in ("process", "units", "start", "load")} for p in file["processes"]]
    hand = tmp_path / "mine.json"
    hand.write_text(json.dumps({"processes": rows}))
    code, text, _ = call("score", hand, "--graph", answered / "three.json", "--json")
    assert code == 0 and json.loads(text)["scores"]["makespan"] == 20
    told = (
        "--graph",
        answered / "three.json",
        "--engines",
        "schedule-counting",
        "-t",
        "1h",
        "-o",
        tmp_path / "gap",
    )
    code, text, _ = call("gap", hand, *told)
    assert code == 0 and "proved to be the least possible" in text
    assert call("verify", tmp_path / "gap", "--bound")[0] == 0
    rows[0]["units"] = ["0,1", "0,2"]
    hand.write_text(json.dumps({"processes": rows}))
    code, _, error = call("score", hand, "--graph", answered / "three.json")
    assert code == 2 and "'a/x' cannot run on ['0,1', '0,2']" in error


def test_resume_goes_on_with_limits_and_weights(tmp_path: Path, call: Called) -> None:
    tasks, out = tasks_file(tmp_path / "t.json"), tmp_path / "out"
    told = ("--objective", "weighted", "--weights", "makespan=3,energy=1", "--at-most", "idle=9")
    assert call("schedule", tasks, *told, "--engines", "heft", "-t", "1h", "-o", out)[0] == 0
    before = json.loads((out / "report.json").read_text())
    assert before["status"] == "feasible" and before["scores"]["weighted"] == before["objective"]
    assert before["objective"] == 3 * before["scores"]["makespan"] + before["scores"]["energy"]
    code, text, _ = call("resume", out, "--engines", "schedule-counting", "-t", "1h")
    after = json.loads((out / "report.json").read_text())
    assert code == 0 and after["inputs"]["at_most"] == {"idle": 9} and after["bound"] > 0
    assert after["graph"]["problem"] == before["graph"]["problem"] and "idle at most 9" in text


def test_objectives_in_order_hold_the_first(tmp_path: Path, call: Called) -> None:
    tasks, out = tasks_file(tmp_path / "t.json"), tmp_path / "out"
    told = ("--engines", "heft,schedule-counting,schedule-cpsat", "-t", "20s", "-o", out)
    code, text, _ = call("schedule", tasks, "--objective", "makespan,energy", *told)
    report = json.loads((out / "report.json").read_text())
    assert code == 0 and report["inputs"]["before"][0] | {"status": "", "bound": 0} == {
        "objective": "makespan", "value": 20, "bound": 0, "status": "",
    }  # fmt: skip
    assert report["objective_name"] == "energy" and "Among schedules with makespan at most 20 ticks" in text
    code, text, _ = call("verify", out, "--bound")
    assert code in (0, 6) and "held makespan" in text and "FAILED" not in text


def test_a_front_is_written_and_verified(tmp_path: Path, call: Called) -> None:
    tasks, out = tasks_file(tmp_path / "t.json"), tmp_path / "out"
    told = ("--points", 2, "--engines", "heft,schedule-counting,schedule-search", "-t", "6s", "-o", out)
    code, _, error = call("schedule", tasks, "--pareto", "makespan,moved", *told)
    assert code == 0, error
    front = json.loads((out / "pareto.json").read_text())
    assert front["command"] == "schedule" and front["points"][0]["schedule"] == "point-1.json"
    assert call("verify", out, "--bound")[0] in (0, 6)
    code, text, _ = call("score", out / "point-1.json", "--json")
    least = front["points"][0]["values"]["makespan"]
    assert code == 0 and json.loads(text)["scores"]["makespan"] == least
    content = json.loads((out / "point-1.json").read_text())
    content["processes"][0]["start"] += 1
    (out / "point-1.json").write_text(json.dumps(content))
    assert call("verify", out)[0] == 1


def test_a_unit_dies_and_the_rest_is_planned_anew(answered: Path, tmp_path: Path, call: Called) -> None:
    out, code = tmp_path / "again", 0
    told = ("--from-run", answered / "out", *QUICK, "-t", "1h", "-o", out)
    code, text, error = call("schedule", "--reschedule", "at=6,dead=0,1", *told)
    assert code == 0 and "Planned anew from 6 on without 0,1" in text, error
    report = json.loads((out / "report.json").read_text())
    part = report["reschedule"]
    assert part["at"] == 6 and part["dead"] == ["0,1"] and part["history"] + part["lost"] >= 1
    assert not any(u["processes"] for u in report["units"] if u["name"] == "0,1") or part["history"]
    assert call("verify", out, "--bound")[0] == 0
    # the run that it came from is not needed any more
    moved = shutil.move(out, tmp_path / "moved")
    for folder, wanted in ((moved, 0), (shutil.copytree(moved, tmp_path / "gone" / "on"), 0)):
        code, text, _ = call("verify", folder, "--bound")
        assert code == wanted, text
    report["status"] = "feasible"
    (Path(moved) / "report.json").write_text(json.dumps(report))
    code, text, error = call("resume", moved, "-t", "1h", "-o", out)
    assert code == 0 and "Planned anew from 6 on" in text, error
    assert (out / "earlier.json").exists() and call("verify", out, "--bound")[0] == 0
    again = ("--from-run", out, "--reschedule", "at=9,dead=0,0", "-o", tmp_path / "twice")
    code, _, error = call("schedule", *again)
    assert code == 2 and "planned anew" in error


def test_the_fields_own_files_run_directly(tmp_path: Path, call: Called) -> None:
    out = tmp_path / "j30"
    code, text, _ = call(
        "schedule", DATA / "j30_13_1.rcp", "--engines", "schedule-counting,heft", "-t", "1h", "-o", out
    )
    assert code == 0 and "0 of 0 units" not in text
    report = json.loads((out / "report.json").read_text())
    assert report["graph"]["form"] == "Patterson" and report["objective"] >= 58 and report["bound"] <= 58
    assert call("verify", out, "--bound")[0] == 0
    code, text, _ = call("info", DATA / "la16_edata.fjs")
    assert code == 0 and "flexible job shop" in text and "nmsolve schedule" in text


def test_cores_of_a_machine_are_units(tmp_path: Path, call: Called) -> None:
    tasks = tasks_file(tmp_path / "t.json")
    content = json.loads(tasks.read_text())
    del content["units"]
    tasks.write_text(json.dumps(content))
    out = tmp_path / "out"
    code, text, error = call("schedule", tasks, "-m", "mesh:1x3", *QUICK, "-t", "1h", "-o", out)
    assert code == 0 and "makespan 20 ticks" in text, error
    report = json.loads((out / "report.json").read_text())
    assert report["machine"]["name"] == "mesh:1x3" and report["machine"]["units"] == 3
    assert call("verify", out)[0] == 0
    assert call("schedule", tasks_file(tmp_path / "own.json"), "-m", "mesh:1x3", "-o", out)[0] == 2


def test_explain_names_the_deadlines_that_conflict(tmp_path: Path, call: Called) -> None:
    proof = tmp_path / "why.json"
    code, text, _ = call(
        "explain", "schedule", one_unit(tmp_path / "late.json", (12, 12)), "-t", "60s", "-o", proof
    )
    assert code == 4 and "unit 'u' alone has 15 ticks of work between 0 and 12" in text
    assert "the 2 deadlines of 'a'" in text and "the deadline of 'b'" in text and "confirms" in text
    assert len(json.loads(proof.read_text())["without"]) == 2
    found = tmp_path / "found.json"
    code, text, _ = call(
        "explain", "schedule", one_unit(tmp_path / "fine.json", (15, 15)), "-t", "60s", "-o", found
    )
    assert code == 0 and "can be scheduled" in text and json.loads(found.read_text())["processes"]
    code, _, error = call("schedule", tmp_path / "late.json", "-o", tmp_path / "out")
    assert code == 2 and "nmsolve explain schedule" in error


def test_a_bench_runs_the_built_in_suite(tmp_path: Path, call: Called) -> None:
    told = ("--methods", "heft", "--seeds", 1, "-t", "5s", "--only", "networks-3x5", "-o", tmp_path / "bench")
    code, _, error = call("bench", "schedules", *told)
    assert code == 0, error


def test_what_is_proved_impossible_ends_with_4(tmp_path: Path, call: Called) -> None:
    """Only trying orders shows it: longest paths and the work of the unit leave room."""
    tasks, out = one_unit(tmp_path / "t.json", (15, 12), release=6), tmp_path / "out"
    code, text, error = call("schedule", tasks, "--engines", "heft,schedule-cpsat", "-t", "1h", "-o", out)
    assert code == 4 and "alone: no schedule" in text and "nmsolve explain schedule" in error
    assert json.loads((out / "report.json").read_text())["status"] == "infeasible"
    assert not (out / "schedule.json").exists() and call("verify", out)[0] == 2
    code, text, _ = call("resume", out)
    assert code == 0 and "nothing is left to do" in text


def test_exact_models_are_written(tmp_path: Path, call: Called) -> None:
    tasks, models = one_unit(tmp_path / "t.json", (15, 15)), tmp_path / "models"
    told = ("--engines", "heft", "-t", "1h", "-o", tmp_path / "out")
    assert call("schedule", tasks, "--write-model", models, *told)[0] == 0
    names = {p.name for p in models.iterdir()}
    assert names == {f"schedule{ending}" for ending in (".lp", ".mps", ".cpsat.pb", ".cpsat.pbtxt")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--objective", "speed"), "unknown objective 'speed'"),
        (("--objective", "weighted"), "no weights are given"),
        (("--objective", "weighted,energy"), "weighted alone"),
        (("--weights", "energy=1"), "nothing to weigh"),
        (("--objective", "weighted", "--weights", "energy=0"), "a whole number from 1 on"),
        (("--at-most", "energy"), "a whole number"),
        (("--at-most", "speed=1"), "NAME=NUMBER"),
        (("--noise", "200%"), "less than 100%"),
        (("--noise", "much"), "noise 'much'"),
        (("--pareto", "makespan,energy", "--noise", "5%"), "--noise: it cannot be combined with --pareto"),
        (("--from-run", "x"), "what happens to it is missing"),
        (("--reschedule", "at=3,dead=0,1"), "the earlier run is missing"),
        (("--engines", "hope"), "unknown engine 'hope'"),
        (("--gap", "1"), "gap 1.0"),
    ],
)
def test_wrong_options_are_refused_before_any_search(
    tmp_path: Path, call: Called, options: tuple[str, ...], message: str
) -> None:
    code, _, error = call("schedule", tasks_file(tmp_path / "t.json"), *options, "-o", tmp_path / "out")
    assert code == 2 and message in error.replace("\n", " "), error


def test_no_networks_are_refused(tmp_path: Path, call: Called) -> None:
    code, _, error = call("schedule", "-o", tmp_path / "out")
    assert code == 2 and "no networks given" in error


@pytest.mark.parametrize(
    "text", ["at=1", "dead=a", "at=x,dead=a", "at=1,at=2,dead=a", "at=1,dead=a,stay=maybe", "soon"]
)
def test_what_happens_must_be_stated(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--reschedule"):
        parse_again(text, tmp_path)


def test_units_with_commas_can_die(tmp_path: Path) -> None:
    again = parse_again("at=4,dead=0,1,dead=npu,stay=yes", tmp_path)
    assert (again.at, again.dead, again.stay) == (4, ("0,1", "npu"), True)
    assert parse_again(again.text, tmp_path) == again


def test_amounts_are_whole_and_named_once() -> None:
    assert amounts("energy=5, idle=0", "--at-most") == {"energy": 5, "idle": 0}
    for wrong in ("energy=1,energy=2", "energy=1.5", f"energy={10**18}", "weighted=1", ""):
        with pytest.raises(InputError):
            amounts(wrong, "--at-most")


def test_python_has_the_same(tmp_path: Path) -> None:
    tasks = nmsolve.load_tasks(tasks_file(tmp_path / "t.json"))
    told = {"engines": ["heft", "schedule-counting"], "time_limit": 3600.0}
    result = nmsolve.schedule(tasks, **told)  # type: ignore[arg-type]
    assert result.status == "optimal" and result.objective == 20 and isinstance(result.solution, Schedule)
    bounded = bound_schedule(tasks.problem, result.solution, nmsolve_options())
    assert bounded.result.status == "optimal" and bounded.better is None
    light = nmsolve.schedule(tmp_path / "t.json", objective="energy", at_most={"makespan": 25}, **told)  # type: ignore[arg-type]
    assert light.scores["makespan"] <= 25 and light.objective == light.scores["energy"]


def nmsolve_options() -> object:
    from nmsolve.solvers.run import Options

    return Options(time_limit=3600.0, engines=["schedule-counting"])


def test_a_warm_start_that_breaks_a_rule_is_refused(answered: Path) -> None:
    problem = nmsolve.load_tasks(answered / "three.json").problem
    good = read_schedule(answered / "out" / "schedule.json", problem).answer
    late = Schedule(good.mode, np.maximum(good.start - 5, 0), good.loaded)
    with pytest.raises(InputError, match="cannot be used"):
        solve_schedule(problem, warm_start=late, time_limit=1.0)
    task = ScheduleTask(problem, good)
    assert task.checker.complaint(np.append(good.packed(), 0)) is not None
    wrong = good.packed()
    wrong[-1] = 2
    assert "loads (1) or does not (0)" in str(task.checker.complaint(wrong))


def test_plans_name_engines_that_are_registered() -> None:
    assert set(GENERAL) | {n for shares in SPECIAL.values() for n in shares} <= REGISTRY.keys()
    assert set(RULES) <= REGISTRY.keys() and not set(WORDS) & RECHECKS.keys()
    assert set(WORDS) <= REGISTRY.keys()
    page = (DATA.parents[2] / "docs" / "schedule.md").read_text("utf-8")
    assert not [name for name in [*REGISTRY, *OBJECTIVES] if f"`{name}`" not in page]


@pytest.mark.parametrize(
    ("file", "first"), [("j30_13_1.rcp", "activity-lists"), ("la16_edata.fjs", "tabu-blocks")]
)
def test_a_run_takes_the_search_that_is_made_for_the_problem(file: str, first: str) -> None:
    assert shares_for(nmsolve.load_tasks(DATA / file).problem) == SPECIAL[first]


def test_what_the_next_process_finds_at_once_stays_in_memory(tmp_path: Path, call: Called) -> None:
    """Two processes in a row share weights: the simulated memory holds them until the second one ends, as planned."""
    steps = [
        {"name": f"s{k}", "span": 3, "sets": [["0,0"]], "weights": {"name": "w", "bytes": 40}, "working": k, "after": after}
        for k, after in enumerate([[], ["s0"]])
    ]  # fmt: skip
    tasks = tasks_file(tmp_path / "t.json", tasks=[{"name": "a", "processes": steps}])
    out = tmp_path / "out"
    code, text, _ = call("schedule", tasks, *QUICK, "-t", "1h", "-o", out)
    assert code == 0 and "FAILED" not in text
    report = json.loads((out / "report.json").read_text())
    assert report["objective"] == 11 and report["units"][0]["peak"] == 41


def test_verify_reads_the_schedule_that_ran_before(answered: Path, call: Called, tmp_path: Path) -> None:
    """The copy beside what was planned anew counts, wherever the first run is; all of it but the problem that it was made for."""
    out, copied = tmp_path / "again", tmp_path / "copied"
    again = ("--from-run", answered / "out", "--reschedule", "at=6,dead=0,1", "--engines", "heft", "-t", 20)
    assert call("schedule", *again, "-o", out)[0] in (0, 3)
    shutil.copytree(out, copied)
    code, text, _ = call("verify", copied)
    assert code == 0 and "fields of earlier.json" in text and "earlier.json problem" in text.splitlines()[-1]
    good = json.loads((copied / "earlier.json").read_text())
    for change in ({"beauty": 1}, {"units": good["units"][:-1]}, {"format": "other"}):
        (copied / "earlier.json").write_text(json.dumps(good | change))
        assert call("verify", copied)[0] in (1, 2), change


def test_certificates_of_another_problem_are_refused_also_without_bounds(
    answered: Path, call: Called, tmp_path: Path
) -> None:
    out = tmp_path / "rules"
    assert call("schedule", answered / "three.json", "--engines", "heft", "-t", 20, "-o", out)[0] in (0, 3)
    content = json.loads((out / "certificates.json").read_text())
    assert not content["bounds"] and call("verify", out, "--bound")[0] == 0
    (out / "certificates.json").write_text(json.dumps(content | {"problem": "0" * 64}))
    code, text, _ = call("verify", out, "--bound")
    assert code == 1 and "certificates.json is about problem 000" in text
