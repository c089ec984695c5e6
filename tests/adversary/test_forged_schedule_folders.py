"""Whole output folders of ``schedule`` forged on purpose: nothing that ``verify --bound`` ends with 0 for is false.

Folders are made by the command itself; then fields are changed, parts dropped and files of other networks put in their place. The
truth is the best of all schedules of the problem that the report states, by the tests' own reference.
``NMSOLVE_FORGED=100000 pytest tests/adversary/test_forged_schedule_folders.py`` tries longer.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from schedule_files import tasks_file
from schedule_reference import optimum
from test_forged_folders import Folder, accepted, command, files_of, say_better_front, write
from test_forged_pipelines import mutated

from nmsolve.kinds.schedule.statement import ScheduleInputs, state_problem
from nmsolve.model.bound import gap
from nmsolve.model.file_set import new_run

TRIES = int(os.environ.get("NMSOLVE_FORGED", "40"))
QUICK = "heft,m4,schedule-counting"
#: Options of the runs.
RUNS: dict[str, tuple[str, ...]] = {
    "makespan": ("--engines", QUICK),
    "energy": ("--objective", "energy", "--engines", QUICK),
    "held": ("--objective", "energy", "--at-most", "makespan=14", "--engines", QUICK),
    "order": ("--objective", "makespan,moved", "--engines", QUICK),
    "front": ("--pareto", "makespan,moved", "--points", "2", "--engines", QUICK),
}
#: What is planned anew when a unit is gone; its folder holds the schedule that ran.
AGAIN = ("--objective", "energy", "--reschedule", "at=3,dead=0,0", "--engines", QUICK)
#: Ticks within which the reference tries all starts.
TICKS = 16


def few(path: Path, span: int) -> Path:
    """Three processes of two networks on two units, small enough to try every schedule."""
    tasks = [
        {
            "name": "a",
            "processes": [
                {"name": "x", "span": span, "sets": "each", "weights": {"name": "w", "bytes": 8}},
                {"name": "y", "span": 3, "sets": [["0,1"]], "after": [{"of": "x", "bytes": 4}]},
            ],
        },
        {"name": "b", "due": 3, "priority": 2, "processes": [{"name": "x", "span": 4, "sets": "each"}]},
    ]
    return tasks_file(path, units={"mesh": [1, 2]}, tasks=tasks)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The output folder of a run on one of two files, made when it is first asked for."""
    base = tmp_path_factory.mktemp("forged")
    few(base / "g.json", 2)
    few(base / "other.json", 3)

    def folder(kind: str, name: str) -> Path:
        out = base / f"{kind}-{name}"
        if not out.exists() and kind == "again":
            command("schedule", "-t", 3, "-o", out, "--from-run", folder("makespan", name), *AGAIN)
        elif not out.exists():
            command("schedule", base / f"{name}.json", "-t", 3, "-o", out, *RUNS[kind])
        return out

    return folder


def best(inputs: str, objective: str, within: tuple[tuple[str, float], ...]) -> float:
    """The least value of an objective over all schedules of the stated problem with these values of others; inf if none."""
    told = json.loads(inputs)
    files = [told["tasks"], *([told["again"]["run"]] if told.get("again") else [])]
    return _best(inputs, tuple(Path(file).read_bytes() for file in files), objective, within)


@functools.cache
def _best(inputs: str, _: tuple[bytes, ...], objective: str, within: tuple[tuple[str, float], ...]) -> float:
    told = msgspec.json.decode(inputs, type=ScheduleInputs)
    problem = state_problem(msgspec.structs.replace(told, before=(), objective=None, weights={})).problem
    return optimum(replace(problem, objective=objective, ceilings=(*problem.ceilings, *within)), TICKS)


def forged(files: Folder, other: Folder, rng: random.Random) -> Folder:
    """The folder with some of it changed; all files of one run."""
    new = copy.deepcopy(files)
    report = new["report.json"]
    value = report["objective"]
    if rng.random() < 0.7:
        bound = value * rng.choice((1, 1, 0.99, 0.7, 1 - 1e-9, 1.2)) + rng.choice((0, 0, -1, 1))
        report |= {"bound": bound, "gap": gap(value, bound), "status": rng.choice(("optimal", "feasible"))}
    if rng.random() < 0.3:
        name = rng.choice(sorted(report["scores"]))
        report |= {"objective_name": name, "objective": report["scores"][name]}
    if rng.random() < 0.3:
        key, told = rng.choice((
            ("objective", "energy"), ("objective", "makespan"), ("objective", None), ("before", []), ("at_most", {}),
            ("at_most", {"makespan": 9}), ("machine", "mesh:1x2"),
            ("before", [{"objective": "makespan", "value": value, "bound": value, "status": "optimal"}]),
        ))  # fmt: skip
        report["inputs"][key] = told
    proofs = new["certificates.json"]
    for row in [*proofs["bounds"], *(b for s in proofs.get("stages", ()) for b in s["bounds"])]:
        draw = rng.random()
        if draw < 0.3 and isinstance(report["bound"], int | float):
            row["value"] = report["bound"]
        elif draw < 0.45:
            row["certificate"] = mutated(row["certificate"], rng)
        elif draw < 0.5:
            row["method"] = rng.choice(("critical-path", "prices", "schedule-cpsat", "my-blog"))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        name, draw = rng.choice(sorted(new)), rng.random()
        if draw < 0.75:
            new[name] = mutated(new[name], rng)
        elif draw < 0.9:
            new[name] = copy.deepcopy(other.get(name, {}))
        elif len(new) > 1:
            del new[name]
    run = new_run()
    for content in new.values():
        if isinstance(content, dict):
            content["run"] = run
    return new


def false_claims(new: Folder) -> Iterator[str]:
    """What the report of an accepted folder says that is not so."""
    report = new["report.json"]
    told = {k: v for k, v in report["inputs"].items() if k in ScheduleInputs.__struct_fields__}
    inputs = msgspec.json.encode(told).decode()
    within: list[tuple[str, float]] = []
    for h in told.get("before") or []:
        low = best(inputs, h["objective"], tuple(within))
        if max(h.get("bound") or 0, h["value"] if h.get("status") == "optimal" else 0) > low:
            yield f"{h}, optimum {low}"
        within.append((h["objective"], h["value"]))
    least = best(inputs, report["objective_name"], tuple(within))
    if report["objective"] < least or (report["bound"] or 0) > least:
        yield f"{report['objective']} with bound {report['bound']}, optimum {least}"
    if report["status"] == "optimal" and report["objective"] > least:
        yield f"optimal at {report['objective']}, optimum {least}"


@pytest.mark.parametrize("kind", [kind for kind in RUNS if kind != "front"])
def test_no_forged_folder_is_believed(made: Callable[[str, str], Path], kind: str, tmp_path: Path) -> None:
    files, other = files_of(made(kind, "g")), files_of(made(kind, "other"))
    write(tmp_path, files)
    whole = accepted(tmp_path)
    assert not [*false_claims(files)]
    rng, believed = random.Random(f"{kind} 1"), 0
    for k in range(TRIES):
        new = forged(files, other, rng)
        write(tmp_path, new)
        if accepted(tmp_path):
            believed += 1
            wrong = [*false_claims(new)]
            assert not wrong, (k, wrong, json.dumps(new)[:2000])
    assert whole and believed > 0


def test_no_forged_folder_of_what_is_planned_anew_is_believed(
    made: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """The schedule that ran is changed, too."""
    files, other = files_of(made("again", "g")), files_of(made("again", "other"))
    inputs = files["report.json"]["inputs"]
    inputs["again"]["run"] = str(tmp_path / "earlier.json")
    write(tmp_path, files)
    assert accepted(tmp_path) and not [*false_claims(files)]
    rng, believed = random.Random("again"), 0
    for k in range(TRIES // 2):
        new = forged(files, other, rng)
        if rng.random() < 0.3 and "report.json" in new:
            new["report.json"]["inputs"]["again"] = rng.choice(
                (None, inputs["again"] | {"at": rng.randrange(20)}, inputs["again"] | {"dead": ["0,1"]})
            )
        write(tmp_path, new)
        if accepted(tmp_path):
            believed += 1
            wrong = [*false_claims(new)]
            assert not wrong, (k, wrong, json.dumps(new)[:2000])
    assert believed > 0


def false_fronts(new: Folder) -> Iterator[str]:
    """What the front of an accepted folder says that is not so."""
    front = new["pareto.json"]
    told = {k: v for k, v in front["inputs"].items() if k in ScheduleInputs.__struct_fields__}
    inputs, (one, two) = msgspec.json.encode(told).decode(), front["objectives"]
    for k, name in enumerate((one, two)):
        if (front["bounds"][k] or 0) > best(inputs, name, ()):
            yield f"bound {front['bounds'][k]} of {name}, optimum {best(inputs, name, ())}"
    for point in front["points"]:
        found, ceiling = point["values"], point["ceiling"]
        within = () if ceiling is None else ((two, float(ceiling)),)
        if (point["bound"] or 0) > best(inputs, one, within):
            yield f"{point}, optimum {best(inputs, one, within)}"
        least = [
            best(inputs, a, ((b, float(found[b])),)) for a, b in ((one, two), (two, one))
        ]  # fmt: skip
        if point["proven"] and [found[one], found[two]] != least:
            yield f"{point} is no point of the front: {least}"


def test_no_forged_front_is_believed(made: Callable[[str, str], Path], tmp_path: Path) -> None:
    files, other = files_of(made("front", "g")), files_of(made("front", "other"))
    write(tmp_path, files)
    assert accepted(tmp_path) and not [*false_fronts(files)]
    rng, believed = random.Random("front"), 0
    for k in range(2 * TRIES):
        new = copy.deepcopy(files)
        say_better_front(new["pareto.json"], rng)
        for stage in new["pareto-certificates.json"]["stages"] if rng.random() < 0.7 else ():
            draw, another = rng.random(), rng.choice(new["pareto-certificates.json"]["stages"])
            if draw < 0.4:
                part = rng.choice(("bounds", "ceilings", "problem", "objective"))
                stage[part], another[part] = another[part], stage[part]
            elif draw < 0.6:
                stage["ceilings"] = rng.choice(({}, {"makespan": 9.0}, {"moved": 8.0}))
            elif draw < 0.8 and stage["bounds"]:
                row = rng.choice(stage["bounds"])
                row["value"] = rng.choice([*new["pareto.json"]["points"][0]["values"].values(), 99.0])
        if rng.random() < 0.3:
            name = rng.choice(sorted(new))
            new[name] = mutated(new[name], rng) if rng.random() < 0.8 else copy.deepcopy(other.get(name, {}))
        run = new_run()
        for content in new.values():
            if isinstance(content, dict):
                content["run"] = run
        write(tmp_path, new)
        if accepted(tmp_path):
            believed += 1
            wrong = [*false_fronts(new)]
            assert not wrong, (k, wrong, json.dumps(new)[:2000])
    assert believed > 0
