"""Bad tasks.json: one clear line each, with the place, the names and by how much."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.schedule.files import load_schedule

UNITS = [{"name": "u1"}, {"name": "u2"}]


def file(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Networks on two units."""
    return {"units": UNITS, "tasks": list(tasks)} | more


def net(*processes: dict[str, Any], name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "processes": list(processes)} | more


def step(name: str = "x", span: int = 3, *after: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "span": span, "after": list(after)} | more


def meeting(**more: Any) -> dict[str, Any]:
    sets = {"a": ["u1"], "b": ["u2"]}
    return {"name": "m", "between": ["a", "b"], "span": 2, "sets": sets} | more


def refusal(tmp_path: Path, content: dict[str, Any]) -> InputError:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as found:
        load_schedule(path)
    assert "\n" not in str(found.value) and str(found.value).startswith(str(path))
    return found.value


CANNOT = {
    "cannot fit": (
        file(net(step(working=70, weights={"name": "w", "bytes": 41})), memory=100),
        "no unit set of process 'a/x' has enough memory: the nearest, {u1}, has 100 bytes per unit, it needs 111",
    ),
    "no common unit": (
        file(net(step()), net(step(), name="b"), interactions=[meeting()]),
        "interaction 'a+b/m' has no common unit: 'a' may use {u1}, 'b' {u2}",
    ),
    "deadline": (
        file(net(step("x", 3), step("y", 4, "x"), step("z", 5, "y", deadline=10))),
        "process 'a/z' ends at 12 at the earliest (a/x -> a/y -> a/z), its deadline is 10: 2 ticks too late",
    ),
    "deadline after a transfer": (
        file(
            net(
                step("x", 3, sets=["u1"]),
                step("y", 1, deadline=9, sets=["u2"]) | {"after": [{"of": "x", "bytes": 9, "convert": 1}]},
            ),
            network={"hop_time": 2, "bandwidth": 4},
        ),
        "'a/y' ends at 10 at the earliest (a/x -> a/y), its deadline is 9: 1 tick too late",
    ),
    "deadline after a load": (
        file(net(step("x", 3, weights={"name": "w", "bytes": 8}), deadline=4), network={"load_bandwidth": 4}),
        "'a/x' ends at 5 at the earliest (a/x), its deadline is 4: 1 tick too late",
    ),
    "period, path": (
        file(net(step("x", 3), step("y", 4, "x"), period=5)),
        "'a/y@0' ends at 7 at the earliest (a/x@0 -> a/y@0), with a period of 5 it must by 5: 2 ticks too late",
    ),
    "period, work": (
        file(net(step("x", 4), step("y", 4), step("z", 4), period=5)),
        "network 'a' with a period of 5: the work takes at least 12 unit ticks, 2 units have 10 in 5 ticks: 2 too few",
    ),
    "period, work, just": (
        file(net(step("x", 4), step("y", 4), step("z", 3), period=5)),
        "the work takes at least 11 unit ticks, 2 units have 10 in 5 ticks: 1 too few",
    ),
    "period, one unit": (
        file(net(step("x", 4, sets=["u1"]), step("y", 4, sets=["u1", ["u1", "u2"]]), period=6)),
        "network 'a' with a period of 6: unit 'u1' alone has at least 8 ticks of work in 6 ticks: 2 too few",
    ),
    "period, work of an interaction": (
        file(
            net(step("y", 1, sets=["u2"]), period=6),
            net(step("x", 4, sets=["u1"]), name="b", period=6),
            interactions=[meeting(span=3, sets={"a": ["u1"], "b": ["u1"]})],
        ),
        "network 'b' with a period of 6: unit 'u1' alone has at least 7 ticks of work in 6 ticks: 1 too few",
    ),
    "periods of two networks": (
        file(net(step("x", 4, sets=["u1"]), period=6), net(step("x", 5, sets=["u1"]), name="b", period=12)),
        "all networks with deadlines: unit 'u1' alone has at least 13 ticks of work in 12 ticks: 1 too few",
    ),
}


@pytest.mark.parametrize("kind", CANNOT)
def test_what_no_schedule_solves_is_refused_with_the_numbers(tmp_path: Path, kind: str) -> None:
    content, line = CANNOT[kind]
    error = refusal(tmp_path, content)
    assert isinstance(error, DoesNotFitError) and line in str(error)


WRONG = {
    "circle": (
        file(net(step("x", 3, "z"), step("y", 3, "x"), step("z", 3, "y"), step("w", 3, "z"))),
        "a circle of 3: a/x -> a/y -> a/z -> a/x",
    ),
    "itself": (file(net(step("x", 3, "x"))), "a circle of 1: a/x -> a/x"),
    "negative span": (file(net(step("x", -3))), "$.tasks[0].processes[0].span: span is -3; expected int >= 1"),
    "no time": (file(net(step("x", 0))), "span is 0; expected int >= 1"),
    "negative span by size": (file(net({"name": "x", "span": {"1": -4}})), "$.tasks[0].processes[0].span"),
    "negative bytes": (
        file(net(step("x"), step("y") | {"after": [{"of": "x", "bytes": -9}]})),
        "$.tasks[0].processes[1].after[0].bytes: bytes is -9; expected int >= 0",
    ),
    "no name": (file(net(step(""))), "name is ''; expected str of length >= 1"),
    "no span": (file(net({"name": "x"})), "process 'a/x' has no span"),
    "span by size": (
        file(net({"name": "x", "span": {"2": 4}})),
        "span has no entry '1'; expected one for the units {u1}",
    ),
    "unknown process": (
        file(net(step("first"), step("y", 3, "frist"))),
        "$.tasks[0].processes[1].after[0]: unknown process 'frist' (did you mean 'first'?)",
    ),
    "unknown unit": (file(net(step(sets=["u3"]))), "$.tasks[0].processes[0].sets[0]: unknown unit 'u3'"),
    "unknown network": (file(net(step()), interactions=[meeting()]), "$.interactions[0].between: unknown network 'b'"),
    "network meets itself": (file(net(step()), interactions=[meeting(between=["a", "a"])]), "a network meets itself"),
    "process twice": (file(net(step("x"), step("x"))), "$.tasks[0].processes[1].name: two processes are called 'a/x'"),
    "interaction like a process": (
        file(net(step("m")), net(step(), name="b"), interactions=[meeting()]),
        "two processes are called 'a+b/m'",
    ),
    "network twice": (file(net(step()), net(step())), "$.tasks[1].name: two networks are called 'a'"),
    "unit twice": (file(net(step()), units=[*UNITS, {"name": "u1"}]), "$.units[2].name: two units are called 'u1'"),
    "unit twice in a set": (file(net(step(sets=[["u1", "u1"]]))), "a unit twice in one set"),
    "set twice": (file(net(step(sets=[["u1", "u2"], ["u2", "u1"]]))), "the units {u1, u2} twice"),
    "no unit in a set": (file(net(step(sets=[[]]))), "a set without units"),
    "no set": (file(net(step(sets=[]))), "no unit set"),
    "set named as a unit": (file(net(step()), unit_sets={"u1": ["u2"]}), "'u1' is a set and a unit"),
    "after twice": (file(net(step("x"), step("y", 1, "x", "x"))), "'a/y' comes after 'a/x' twice"),
    "weights of two sizes": (
        file(net(step("x", weights={"name": "w", "bytes": 1}), step("y", weights={"name": "w", "bytes": 2}))),
        "weights 'w' have 2 bytes here and 1 elsewhere",
    ),
    "both": (
        file(net(step("x") | {"alternatives": [{"units": ["u1"], "span": 1}]})),
        "process 'a/x' has alternatives, and sets or a span besides",
    ),
    "no alternative": (file(net({"name": "x", "alternatives": []})), "process 'a/x' has no alternative"),
    "no units": ({"tasks": [net(step())]}, "the file has no units"),
    "no processes": (file(net()), "no processes"),
    "unknown key": (file(net(step("x", speed=3))), "unknown field speed"),
    "unknown key of two lines": (file(net(step("x", **{"spe\ned": 3}))), r"unknown field spe\ned"),
    "hops": (file(net(step()), hops=[[0, 1]]), "hops of 1 rows; expected 2 rows of 2 numbers"),
    "no hops": (file(net(step()), hops=[[0, 0], [1, 0]]), "hops of a unit to itself, or none between two"),
    "one place": (
        file(net(step()), units=[{"name": "p", "at": [0, 0]}, {"name": "q"}]),
        "$.units[1].at: unit 'q' has no place",
    ),
    "same place": (
        file(net(step()), units=[{"name": "p", "at": [1, 0]}, {"name": "q", "at": [1, 0]}]),
        "units 'p' and 'q' are at the same place",
    ),
    "runs on": (
        file(net(step()), net(step(), name="b"), interactions=[meeting(runs_on="some")]),
        "$.interactions[0].runs_on: runs_on is 'some'",
    ),
    "sets of a third": (
        file(net(step()), net(step(), name="b"), interactions=[meeting(sets={"c": ["u1"]})]),
        "sets of 'c'; expected 'a' and 'b'",
    ),
    "which of two": (
        file(net(step()), net(step(), name="b"), interactions=[meeting(sets={}, after=["x"])]),
        "'x' may be 'a/x' or 'b/x'",
    ),
    "different frames": (
        file(
            net(step(), period=10), net(step(), name="b", period=20), interactions=[meeting(sets={})]
        ),
        "'a' and 'b' are joined, but have different frames",
    ),
    "frames across networks": (
        file(net(step(), period=10), net(step("y", 3, "a/x"), name="b", period=20)),
        "'a' and 'b' are joined, but have different frames",
    ),
    "frames without a period": (file(net(step(), frames=3)), "network 'a' has frames, but no period"),
    "hyperperiod": (
        file(net(step(), period=2**20), net(step(), name="b", period=2**20 - 1), net(step(), name="c", period=2**20 + 1)),
        "no common multiple below 2^40",
    ),
    "slash": (file(net(step(), name="a/b")), "a network is called 'a/b'"),
    "objective": (file(net(step()), objective="speed"), "unknown objective 'speed'"),
    "ceiling": (file(net(step()), ceilings={"speed": 3}), "$.ceilings: ceiling of 'speed'"),
    "energies beyond 64 bits": (
        file(net(step(weights={"name": "w", "bytes": 2**40})), network={"load_energy": 2**30}),
        "multiply or add up to 1.18e+21; expected less than 2^63",
    ),
    "power beyond 64 bits": (file(net(step("x", 2**30)), power={"on": 2**50}), "up to 1.21e+24; expected less than 2^63"),
    "ways beyond 64 bits": (
        file(
            net(step("x"), step("y") | {"after": [{"of": "x", "bytes": 1}]}),
            units=[{"name": "u1", "at": [0, 0]}, {"name": "u2", "at": [2**40, 0]}], network={"hop_time": 2**40},
        ),
        "up to 1.21e+24 ticks",
    ),
    "sums beyond 64 bits": (
        file(
            net(step("x"), *(step(f"y{k}") | {"after": [{"of": "x", "bytes": 2**50}]} for k in range(2**13))),
            units=[{"name": "u1"}], network={"bandwidth": 1},
        ),
        "up to 9.22e+18 ticks",
    ),
    "long": (file(net(step("x", 2**40), step("y", 2**40))), "ticks"),
}  # fmt: skip


def test_files_beyond_64_bits_between_two_tasks_are_refused(tmp_path: Path) -> None:
    names = [f"f{k}" for k in range(2**13)]
    tasks = [{"name": "a", "outputFiles": names}, {"name": "b", "inputFiles": names, "parents": ["a"]}]
    runs = [{"id": name, "runtimeInSeconds": 1} for name in "ab"]
    files = [{"id": name, "sizeInBytes": 2**50} for name in names]
    flow = {"specification": {"tasks": tasks, "files": files}, "execution": {"tasks": runs}}
    assert "up to 9.22e+18" in str(refusal(tmp_path, {"workflow": flow}))


def test_frames_that_are_counted_need_no_common_multiple(tmp_path: Path) -> None:
    """A common multiple of hundreds of digits is neither computed nor said."""
    odd = [2**39 + 2 * k + 1 for k in range(500)]
    path = tmp_path / "tasks.json"
    path.write_text(
        json.dumps(file(*(net(step(), name=f"n{k}", period=t, frames=1) for k, t in enumerate(odd))))
    )
    assert load_schedule(path).problem.count == 500


@pytest.mark.parametrize("kind", WRONG)
def test_what_means_nothing_is_refused_with_its_place(tmp_path: Path, kind: str) -> None:
    content, line = WRONG[kind]
    assert line in str(refusal(tmp_path, content))


def test_a_deadline_that_can_just_be_kept_is_accepted(tmp_path: Path) -> None:
    """The limits of the refusals above are tight."""
    path = tmp_path / "tasks.json"
    for content in (
        file(net(step("x", 3), step("y", 4, "x"), step("z", 5, "y", deadline=12))),
        file(net(step("x", 4), step("y", 4), period=4)),
        file(net(step("x", 4, sets=["u1"]), period=6), net(step("x", 4, sets=["u1"]), name="b", period=12)),
        file(net(step(working=70, weights={"name": "w", "bytes": 30})), memory=100),
    ):
        path.write_text(json.dumps(content))
        assert load_schedule(path).problem.count >= 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.json", b'{"units": {"mesh": [2, 2]}, "tasks": [{"name": "a", "processes": [' + b"{}," * 10**6 + b"{}]}]}"),
        ("t.json", json.dumps(file(net(step(), period=7), net(step(), name="b", period=7 * 10**6))).encode()),
        ("t.rcp", b"1000000 1\n4\n" + b"1 1 0\n" * 10**6),
        ("t.fjs", b"1000000 1\n" + b"1 1 1 1\n" * 10**6),
        ("t.txt", b"1\n1\n4\n1000000 0\n1\n" + b"1 1 0\n" * 10**6),
        ("t.json", b'{"workflow": {"tasks": [' + b'{"name": "x"},' * 10**6 + b'{"name": "y"}]}}'),
    ],
    ids=["processes", "frames", "Patterson", "jobs", "MPLIB", "workflow"],
)  # fmt: skip
def test_a_million_processes_are_refused_soon_and_in_little_memory(
    tmp_path: Path, name: str, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(InputError, match=r"1,000,00\d|1000000"):
        load_schedule(path)
    assert time.process_time() - begin < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20, "less than a GiB"
