"""Th1 and Th2 of method M3 as the user states them: the rule as the source's paragraphs 53 to 56 have it, written once more."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assign_support import random_problem, run_alone
from assignments_support import pair_machine, small_model

from nmsolve.heuristics.assignment.threshold import Threshold
from nmsolve.hw.assignment.evaluate import terms_of
from nmsolve.kinds.assignment.python import assign
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.problem import AssignProblem, Complexity
from nmsolve.model.assignment.thresholds import Thresholds
from nmsolve.model.errors import InputError

Called = Any


def published(problem: AssignProblem, th: Thresholds) -> list[int]:
    """The unit of every operator, decided one after the other: units in turn, then fusion, then what is best.

    The record (paragraphs 54 and 55): an operator pays to bring what it uses from where that was made; units that operators of
    its type and cost got come first, those that they failed to get last.
    """
    benefit, run = terms_of(problem).benefit.tolist(), problem.time.tolist()
    hosts, site = problem.units.host.tolist(), problem.units.site.tolist()
    source, kept = problem.flows.source.tolist(), problem.flows.kept.tolist()
    before: dict[int, tuple[int, int]] = {}
    for k in range(problem.groups.count):
        own = problem.groups.of(k).tolist()
        before |= {b: (a, k) for a, b in pairwise(own)}
    unit: list[int] = []
    paid: list[float] = []
    verdict: dict[tuple[object, ...], int] = {}
    for i in range(problem.count):
        like = (problem.kinds[i], tuple(max(0, c) for c in run[i]))
        able = [j for j in range(problem.units.count) if run[i][j] >= 0]
        used = [
            t
            for t in range(problem.flows.count)
            if i in problem.flows.users(t) and not kept[t] and source[t] != i
        ]
        cost = {
            j: run[i][j] + sum(int(problem.flows.time[t, site[unit[source[t]]], site[j]]) for t in used)
            for j in able
        }

        def accepted(p: float, c: float) -> bool:
            return (th.benefit is None or p >= th.benefit) and (th.cost is None or c <= th.cost)

        found = -1
        for j in sorted(able, key=lambda j: (-verdict.get((*like, j), 0), hosts[j], j)):
            if accepted(benefit[i][j], cost[j]):
                found = j
                break
            verdict[*like, j] = verdict.get((*like, j), 0) - 1
        a, k = before.get(i, (-1, -1))
        if found < 0 and a >= 0 and unit[a] in able:
            j = unit[a]
            gain = int(problem.groups.time[k, j]) // (len(problem.groups.of(k)) - 1)
            if accepted(as_one(problem, (a, i), j, gain) / 2, (paid[a] + cost[j] - gain) / 2):
                found = j
        if found < 0:
            found = (
                max(able, key=lambda j: benefit[i][j])
                if th.cost is None
                else min(able, key=lambda j: cost[j])
            )
        unit.append(found)
        paid.append(cost[found])
        verdict[*like, found] = verdict.get((*like, found), 0) + 1
    return unit


def as_one(problem: AssignProblem, pair: tuple[int, int], j: int, gain: int) -> float:
    """The benefit of two operators as one, from the tables: works and runs are added up, less what fusing saves."""
    assert problem.complexity is not None
    work, run = problem.complexity.time.tolist(), problem.time.tolist()
    host = 0
    here = sum(run[i][host] for i in pair)
    there = sum(run[i][j] for i in pair) - gain
    mine = sum(work[i][host] for i in pair)
    faster = round(mine * (1 - there / here)) if here else 0
    return faster + mine - sum(work[i][j] for i in pair)


def test_the_stated_thresholds_decide_as_the_source_says() -> None:
    """Random problems, all three variants; one answer, and not that of other thresholds."""
    rng, seen, decided = np.random.default_rng(0), set(), 0
    for seed in range(40):
        problem = random_problem(seed, operators=7)
        work = np.where(problem.time >= 0, rng.integers(0, 30, problem.time.shape), 0)
        problem = replace(problem, complexity=Complexity(work, work))
        terms = terms_of(problem)
        th1 = float(rng.choice(terms.benefit[terms.possible]))
        th2 = float(rng.choice(terms.cost[terms.possible]))
        for th in (Thresholds(th1), Thresholds(None, th2), Thresholds(th1, th2)):
            context = run_alone(Threshold(), replace(problem, thresholds=th))
            assert Assignment.unpacked(problem, context.best).unit.tolist() == published(problem, th)
            seen.add((seed, *published(problem, th)))
            decided += problem.count
    assert len(seen) > 60 and decided == 40 * 3 * 9


def test_thresholds_are_advice_and_need_a_number() -> None:
    problem = random_problem(1)
    assert replace(problem, thresholds=Thresholds(1.0)).content_hash == problem.content_hash
    for wrong in ((None, None), (float("nan"), None), (1.0, float("inf"))):
        with pytest.raises(InputError, match="at least one"):
            Thresholds(*wrong)


def test_the_command_states_them(call: Called, tmp_path: Path) -> None:
    """They are in the report with their units; ``resume`` goes on with them; what makes no sense is one line."""
    small_model(tmp_path / "m.onnx")
    pair_machine(tmp_path / "pair.toml")
    where = ("assign", tmp_path / "m.onnx", "-m", tmp_path / "pair.toml", "--bind", "batch=32", "-t", 30)
    only, values = ("--engines", "threshold"), {}
    for text in ("cost=0", "benefit=-1s", "benefit=1s"):
        out = tmp_path / text.replace(",", "-")
        code, _, said = call(*where, *only, "--threshold", text, "-o", out)
        assert code in (0, 3), said
        report = json.loads((out / "report.json").read_text("utf-8"))
        assert report["inputs"]["threshold"] == text and call("verify", out)[0] == 0
        values[text] = [row["unit"] for row in report["operators"]]
    assert "fast" in values["benefit=-1s"] and values["benefit=-1s"] != values["benefit=1s"]
    assert call("resume", tmp_path / "cost=0", "-t", 20, "-o", tmp_path / "on")[0] in (0, 3)
    on = json.loads((tmp_path / "on" / "report.json").read_text("utf-8"))
    assert on["inputs"]["threshold"] == "cost=0"
    for more, words in (
        (("--threshold", "benefit=2pJ"), "benefit=VALUE,cost=VALUE"),
        (("--threshold", "gain=2"), "threshold 'gain=2'"),
        (("--threshold", "cost=1,cost=2"), "threshold 'cost=2'"),
        (("--threshold", ""), "threshold ''"),
        (("--threshold", "cost=1", "--objective", "latency,energy"), "one objective"),
        (("--threshold", "cost=1", "--engines", "min-cut"), "--engines threshold"),
    ):
        code, _, said = call(*where, *more, "-o", tmp_path / "no")
        assert code == 2 and words in said and said.count("\n") == 1
    assert not (tmp_path / "no").exists()
    answer = assign(
        tmp_path / "m.onnx", tmp_path / "pair.toml", bindings={"batch": 32}, time_limit=10.0, engines=["threshold"],
        objective="energy", threshold="cost=2nJ",
    )  # fmt: skip
    assert answer.problem.thresholds == Thresholds(None, 2000.0)
    assert any("C <= 2000, stated" in str(e) for e in answer.events)
