"""tasks.json says what it means: names, unit sets, spans, weights, frames, interactions; generated networks too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Called
from schedule_support import random_problem, random_schedule

from nmsolve.hw.machines import load_machine
from nmsolve.hw.schedule.evaluate import energies
from nmsolve.hw.schedule.units import units_of
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.feasible import earliest_ends, least_delays, require_feasible
from nmsolve.model.schedule.generate import generate_problem, generate_tasks
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.schedule.statement import Stated
from nmsolve.model.schedule.tasks import load_tasks, stated
from nmsolve.model.schedule.tasks_file import read_tasks, write_tasks

UNITS = [{"name": "u1"}, {"name": "u2"}, {"name": "u3"}]


def read(tmp_path: Path, content: dict[str, Any], machine: str | None = None) -> Stated:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(content))
    return load_tasks(path, units_of(load_machine(machine)) if machine else None)


def one(*processes: dict[str, Any], **task: Any) -> dict[str, Any]:
    """A file with one network."""
    return {"units": UNITS, "tasks": [{"name": "a", "processes": list(processes), **task}]}


def modes(stated: Stated, label: str) -> list[tuple[str, int, int, int]]:
    """Units, span, energy and working bytes of every mode of a process."""
    p = stated.problem
    k = p.labels.index(label)
    rows = range(p.modes.first[k], p.modes.first[k + 1])
    names = ["+".join(p.units.names[u] for u in p.sets.of(int(p.modes.unit_set[m]))) for m in rows]
    numbers = [(int(p.modes.span[m]), int(p.modes.energy[m]), int(p.modes.working[m])) for m in rows]
    return [(name, *row) for name, row in zip(names, numbers, strict=True)]


def test_alternatives_sets_and_spans_by_size(tmp_path: Path) -> None:
    content = one(
        {
            "name": "x",
            "alternatives": [{"units": ["u2", "u1"], "span": 3}, {"units": "u3", "span": 5, "energy": 7, "working": 9}],
        },
        {"name": "y", "sets": [["u1"], "both"], "span": {"1": 8, "2": 5}, "working": {"1": 4, "2": 2}},
        {"name": "z", "span": 2, "energy": 1},
        {"name": "w", "span": 2},
        sets=["u3"],
    )  # fmt: skip
    content |= {"unit_sets": {"both": ["u2", "u3"]}, "power": {"on": 10}}
    content["units"] = [{"name": "u1", "power": {"on": 1}}, {"name": "u2"}, {"name": "u3"}]
    content["tasks"][0]["processes"][3]["sets"] = "each"
    found = read(tmp_path, content)
    assert modes(found, "a/x") == [("u1+u2", 3, 33, 0), ("u3", 5, 7, 9)]
    assert modes(found, "a/y") == [("u1", 8, 8, 4), ("u2+u3", 5, 100, 2)]
    assert modes(found, "a/z") == [("u3", 2, 1, 0)]
    assert [name for name, *_ in modes(found, "a/w")] == ["u1", "u2", "u3"]


def test_weights_are_shared_by_name_in_equal_parts_and_loaded_at_the_bandwidth(tmp_path: Path) -> None:
    weights = {"name": "k", "bytes": 101}
    content = one(
        {"name": "x", "sets": [["u1", "u2"], "u3"], "span": 1, "weights": weights},
        {"name": "y", "sets": ["u3"], "span": 1, "weights": weights, "after": ["x"]},
    )
    content |= {"network": {"load_bandwidth": 10, "load_energy": 2}, "memory": 100}
    content["units"] = [{"name": "u1"}, {"name": "u2"}, {"name": "u3", "memory": 101}]
    p = read(tmp_path, content).problem
    assert p.modes.item.tolist() == [0, 1, 1] and p.items.names == ("k", "k")
    assert (
        p.items.bytes.tolist() == [51, 101]
        and p.items.load.tolist() == [6, 11]
        and p.items.energy.tolist() == [202, 202]
    )
    assert p.units.memory.tolist() == [100, 100, 101]


def test_sets_without_enough_memory_are_left_out(tmp_path: Path) -> None:
    content = one(
        {
            "name": "x",
            "sets": ["u1", ["u2", "u3"]],
            "span": 1,
            "weights": {"name": "k", "bytes": 30},
            "working": 5,
        }
    )
    found = read(tmp_path, content | {"memory": 20})
    assert [name for name, *_ in modes(found, "a/x")] == ["u2+u3"]


def test_places_hops_and_delays(tmp_path: Path) -> None:
    content = one({"name": "x", "sets": ["1,2"], "span": 1}, {"name": "y", "sets": ["0,0"], "span": 1, "after": [
        {"of": "x", "bytes": 10, "convert": 4}]})  # fmt: skip
    p = read(
        tmp_path, content | {"units": {"mesh": [2, 3]}, "network": {"hop_time": 5, "bandwidth": 4}}
    ).problem
    assert p.units.names[-1] == "1,2" and p.units.hops[0, 5] == 3
    assert p.delay(whole := np.array([0]), p.modes.first[:1], p.modes.first[1:2]).tolist() == [
        4 + 15 + 3
    ] and len(whole)
    placed = [{"name": "l", "at": [0, 0]}, {"name": "r", "at": [4, 3]}]
    other = one({"name": "x", "span": 1})
    assert read(tmp_path, other | {"units": placed}).problem.units.hops.tolist() == [[0, 7], [7, 0]]
    listed = read(tmp_path, other | {"hops": [[0, 2, 3], [1, 0, 1], [9, 9, 0]]}).problem
    assert listed.units.hops.tolist() == [[0, 2, 3], [1, 0, 1], [9, 9, 0]] and listed.sets.hops[2, 0] == 9


def test_units_of_a_machine_have_its_distances_and_memories(tmp_path: Path) -> None:
    content = one({"name": "x", "sets": ["1,1", ["0,0", "0,1"]], "span": 1})
    del content["units"]
    found = read(tmp_path, content | {"memory": 7, "power": {"idle": 3, "wake_time": 2}}, "mesh:2x2")
    u = found.problem.units
    assert u.names == ("0,0", "0,1", "1,0", "1,1") and u.hops[0].tolist() == [0, 1, 1, 2]
    assert u.memory.tolist() == [7] * 4 and u.idle.tolist() == [3] * 4 and u.wake_time.tolist() == [2] * 4
    with pytest.raises(InputError, match="units of its own"):
        read(tmp_path, one({"name": "x", "span": 1}), "mesh:2x2")


def test_interactions_run_where_the_unit_sets_of_both_networks_meet(tmp_path: Path) -> None:
    content = {
        "units": [*UNITS, {"name": "u4"}],
        "tasks": [
            {"name": "a", "processes": [{"name": "1", "span": 1}, {"name": "2", "span": 1, "after": ["x"]}]},
            {"name": "b", "processes": [{"name": "1", "span": 1}], "sets": [["u2"], ["u3", "u4"]]},
        ],
        "interactions": [
            {"name": "x", "between": ["a", "b"], "span": {"1": 4, "2": 3, "3": 2, "4": 2}, "sets": {"a": [["u1", "u2"], ["u4"]]},
             "after": ["a/1", "b/1"]},
        ],
    }  # fmt: skip
    found = read(tmp_path, content)
    p = found.problem
    assert modes(found, "a+b/x") == [("u2", 4, 0, 0), ("u4", 4, 0, 0)]
    k = p.labels.index("a+b/x")
    assert (p.task[k], p.partner[k]) == (0, 1)
    ends = {(p.labels[a], p.labels[b]) for a, b in zip(p.edges.source, p.edges.target, strict=True)}
    assert ends == {("a/1", "a+b/x"), ("b/1", "a+b/x"), ("a+b/x", "a/2")}
    x = content["interactions"][0]
    x["runs_on"] = "all"  # type: ignore[index]
    assert modes(read(tmp_path, content), "a+b/x") == [("u1+u2", 3, 0, 0), ("u3+u4", 3, 0, 0)]
    x["sets"] = {"a": [["u1", "u2"], ["u2", "u4"]], "b": [["u2", "u1", "u3"]]}  # type: ignore[index]
    assert modes(read(tmp_path, content), "a+b/x") == [("u1+u2+u3", 2, 0, 0), ("u1+u2+u3+u4", 2, 0, 0)]
    x["runs_on"] = "common"  # type: ignore[index]
    assert modes(read(tmp_path, content), "a+b/x") == [("u1+u2", 3, 0, 0), ("u2", 4, 0, 0)]
    x["runs_on"] = "one"  # type: ignore[index]
    assert modes(read(tmp_path, content), "a+b/x") == [("u1", 4, 0, 0), ("u2", 4, 0, 0)]


def test_periodic_networks_are_unrolled_over_the_hyperperiod(tmp_path: Path) -> None:
    content = one(
        {"name": "x", "span": 2, "weights": {"name": "k", "bytes": 1}},
        {"name": "y", "span": 3, "after": [{"of": "x", "bytes": 5}], "deadline": 8},
        period=10,
        release=1,
    )
    content["tasks"].append(
        {"name": "b", "processes": [{"name": "z", "span": 1}], "period": 15, "due": 4, "priority": 6}
    )
    found = read(tmp_path, content)
    p = found.problem
    assert p.labels == ("a/x@0", "a/y@0", "a/x@1", "a/y@1", "a/x@2", "a/y@2", "b/z@0", "b/z@1")
    assert p.release.tolist() == [1, 1, 11, 11, 21, 21, 0, 15]
    assert p.deadline.tolist() == [11, 8, 21, 18, 31, 28, 15, 30]
    assert p.due.tolist() == [NEVER] * 6 + [4, 19] and p.weight.tolist() == [0] * 6 + [6, 6]
    assert (p.edges.source.tolist(), p.edges.target.tolist()) == ([0, 2, 4], [1, 3, 5])
    assert (
        p.edges.bytes.tolist() == [5] * 3
        and p.items.count == 3
        and p.modes.first.tolist() == list(range(0, 25, 3))
    )
    assert [row.frame for row in found.table()] == [0, 0, 1, 1, 2, 2, 0, 1]
    assert found.periods == (10, 15)
    content["tasks"][0]["frames"], content["tasks"][1]["frames"] = 2, 1
    assert read(tmp_path, content).problem.count == 5


def test_due_times_of_networks_are_those_of_their_last_processes(tmp_path: Path) -> None:
    content = one(
        {"name": "x", "span": 2},
        {"name": "y", "span": 3, "after": ["x"]},
        {"name": "z", "span": 3, "after": ["x"], "due": 9, "priority": 0},
        due=5,
    )
    p = read(tmp_path, content).problem
    assert p.due.tolist() == [NEVER, 5, 9] and p.weight.tolist() == [0, 1, 0]


def test_objectives_and_what_a_tick_is(tmp_path: Path) -> None:
    content = one({"name": "x", "span": 2})
    content |= {
        "objective": "weighted",
        "objective_weights": {"makespan": 2, "energy": 1},
        "ceilings": {"makespan": 50},
    }
    found = read(tmp_path, content | {"tick": 1e-6, "joule": 1e-9, "name": "n"})
    p = found.problem
    assert (p.name, p.objective, p.weights, p.ceilings) == (
        "n", "weighted", (("makespan", 2), ("energy", 1)), (("makespan", 50.0),),
    )  # fmt: skip
    assert (found.tick, found.joule) == (1e-6, 1e-9)


@pytest.mark.parametrize("chains", [0.0, 0.5, 1.0])
def test_generated_networks_are_the_same_again_and_can_run(tmp_path: Path, chains: float) -> None:
    file = generate_tasks(4, 7, 6, seed=3, chains=chains, meet=1.0)
    write_tasks(tmp_path / "t.json", file)
    assert read_tasks(tmp_path / "t.json") == file == generate_tasks(4, 7, 6, seed=3, chains=chains, meet=1.0)
    p = load_tasks(tmp_path / "t.json").problem
    assert p.content_hash == generate_problem(4, 7, 6, seed=3, chains=chains, meet=1.0).problem.content_hash
    assert (p.partner >= 0).sum() == len(file.interactions) > 0
    answer = random_schedule(p, 1)
    assert schedule_complaint(p, answer) is None
    assert energies(p, answer)["load"] > 0 and (p.units.break_even < NEVER).all()
    held = np.zeros(p.units.count, np.int64)
    for d in range(p.items.count):
        held[p.sets.of(int(p.items.unit_set[d]))] += p.items.bytes[d]
    assert (held > p.units.memory).any(), "memories hold not all weights"


def test_generated_families_without_memory_and_gating() -> None:
    p = generate_problem(2, 5, 4, memory=0, gating=0).problem
    assert p.items.count == 0 and not p.units.idle.any() and (p.units.memory == NEVER).all()


def test_generate_writes_tasks(tmp_path: Path, call: Called) -> None:
    path = tmp_path / "t.json"
    words = ("--networks", 3, "--processes=5", "--units", 6, "--seed", 2, "--out", path)
    code, said, _ = call("generate", "tasks", *words)
    assert code == 0 and "3 networks, 16 processes" in said
    assert read_tasks(path) == generate_tasks(3, 5, 6, seed=2)
    assert "--chains (0.5)" in call("generate", "list")[1]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--networks", 0), "networks is 0; expected a whole number from 1"),
        (("--unit", 3), "no parameter 'unit' (did you mean units?)"),
        (("--networks", 10**5), "3,100,000 processes; expected at most 262,144"),
        (("--out", "t.txt"), "a name that ends in .json"),
    ],
)
def test_generate_refuses_what_it_cannot_make(words: tuple[object, ...], line: str, call: Called) -> None:
    code, _, complaint = call("generate", "tasks", *words)
    assert code == 2 and line in complaint


def test_every_frame_is_a_copy_of_the_network(tmp_path: Path) -> None:
    """Modes, dependencies and data of every frame are those of the file without periods."""
    file = generate_tasks(4, 7, 6, seed=5, meet=1.0)
    once = stated(file, "once").problem
    for task in file.tasks:
        task.period, task.frames = 10**5, 3
    often = stated(file, "often").problem
    number = {label: p for p, label in enumerate(often.labels)}
    assert (
        often.count == 3 * once.count and len(file.interactions) > 0 and often.items.count == once.items.count
    )

    def described(p: ScheduleProblem, e: int, names: tuple[str, ...]) -> tuple[object, ...]:
        return (
            names[p.edges.source[e]],
            names[p.edges.target[e]],
            int(p.edges.bytes[e]),
            int(p.edges.convert[e]),
        )

    found = sorted(described(often, e, often.labels) for e in range(often.edges.count))
    wanted = [
        described(once, e, tuple(f"{label}@{k}" for label in once.labels))
        for k in range(3)
        for e in range(once.edges.count)
    ]
    assert found == sorted(wanted)
    for k in range(3):
        for p, label in enumerate(once.labels):
            q = number[f"{label}@{k}"]
            mine, theirs = (slice(m.first[j], m.first[j + 1]) for m, j in ((once.modes, p), (often.modes, q)))
            for column in ("span", "unit_set", "energy", "item", "working"):
                assert (getattr(once.modes, column)[mine] == getattr(often.modes, column)[theirs]).all()
            assert often.release[q] == once.release[p] + k * 10**5 and often.task[q] == once.task[p]
            assert often.due[q] == (NEVER if once.due[p] >= NEVER else once.due[p] + k * 10**5)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_can_run_is_refused(seed: int) -> None:
    """Deadlines at the ends of a legal schedule can be kept, so counting must not say that they cannot."""
    problem = random_problem(seed, processes=8)
    answer = random_schedule(problem, seed)
    end = answer.end(problem)
    assert (earliest_ends(problem)[0] <= end).all()
    e = problem.edges
    chosen = problem.delay(np.arange(e.count), answer.mode[e.source], answer.mode[e.target])
    assert (least_delays(problem) <= chosen).all()
    kept = replace(problem, deadline=end)
    frames = np.zeros(problem.count, np.int64)
    require_feasible(Stated(kept, "tasks", frame=frames, periods=(int(end.max()),) * 2), "here")
