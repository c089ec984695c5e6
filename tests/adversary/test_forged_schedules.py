"""Forged certificates of schedules: no accepted claim is above what brute force finds.

``NMSOLVE_FORGED=1000000 pytest tests/adversary/test_forged_schedules.py`` tries longer.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import os
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from schedule_reference import optimum
from schedule_support import random_problem, random_schedule
from search_fakes import QuietContext
from test_forged_pipelines import climb

from nmsolve.check.certificates import certificate_from_json, certificate_to_json
from nmsolve.check.schedule.recheck import RECHECKS, WORDS, check_schedule_bound
from nmsolve.kinds.check_bounds import Proofs, _Passed
from nmsolve.kinds.schedule.check import ScheduleBounds
from nmsolve.model.bound import Bound, Stage
from nmsolve.model.schedule.budgets import Budgets
from nmsolve.model.schedule.files import load_schedule
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.solvers.schedule.bounds import ScheduleCounting

TRIES = int(os.environ.get("NMSOLVE_FORGED", "1000"))
#: Objectives that are bounded by counting, with the weights of a sum.
KINDS: dict[str, tuple[tuple[str, int], ...]] = {
    "makespan": (), "energy": (), "moved": (), "tardiness": (), "weighted": (("makespan", 2), ("energy", 1), ("tardiness", 1)),
}  # fmt: skip
#: No start later than this is tried; the optima of these problems have none.
TICKS = 16

Certificate = dict[str, Any]


@functools.cache
def cases() -> list[tuple[ScheduleProblem, Fraction]]:
    """Problems with their optima."""
    out = []
    for objective, weights in KINDS.items():
        for seed in (3, 5):
            problem = random_problem(
                seed, 4, 2, 1, objective=objective, weights=weights, release=np.zeros(4, np.int64), ready=None
            )
            out.append((problem, Fraction(optimum(problem, TICKS))))
    return out


def honest(method: str, problem: ScheduleProblem) -> list[Certificate]:
    """Certificates as the engine leaves them, written to a file and read back."""
    context = QuietContext()
    ScheduleCounting().run(problem, context)
    return [
        json.loads(json.dumps(certificate_to_json(b.certificate)))
        for b in context.bounds
        if b.method == method
    ]


def door(problem: ScheduleProblem, method: str, best: Fraction) -> Callable[[Certificate], float]:
    """What a method believes of a certificate: the height to climb. A claim above what it says it proves is never taken."""

    def asked(certificate: Certificate, claim: float) -> tuple[bool, float]:
        found = check_schedule_bound(problem, Bound(claim, method, "full", certificate), 1.0)
        return found.ok and not found.trusted, found.value

    def proved(certificate: Certificate) -> float:
        ok, value = asked(certificate, 5e-324)
        for more in (math.nextafter(float(best), math.inf), float(best) * 1.5 + 1, math.inf):
            assert best == 0 or not asked(certificate, more)[0], (method, certificate)
        return value if ok else math.nan

    return proved


@pytest.mark.parametrize("method", [method for method in RECHECKS if method != "budgets"])
def test_no_forged_certificate_is_believed(method: str) -> None:
    mine = [(p, best, honest(method, p)) for p, best in cases()]
    strange: list[Certificate] = [c for _, _, own in mine for c in own]
    # where no window is full, one that claims to be is a beginning
    strange = strange or [{"method": method, "rows": [0, 0, 1], "window": [0, 4, 4]}]
    believed = 0
    for k, (problem, best, own) in enumerate(mine):
        starts = [*own, strange[k % len(strange)]]  # and another problem's
        believed += climb(starts, door(problem, method, best), best, f"{method} {k}", TRIES // len(mine))
    assert believed


def test_no_prices_prove_that_budgets_are_too_small_where_some_modes_keep_them() -> None:
    """Prices are believed only where the cheapest modes cost more than there is: never where there is enough."""
    rng, believed = random.Random(1), 0
    for k in range(TRIES // 10):
        problem = random_problem(k % 50)
        use = np.random.default_rng(k).integers(0, 9, (problem.modes.count, 3))
        spent = use[random_schedule(problem, k % 50).mode].sum(axis=0)
        enough = replace(problem, budgets=Budgets(("a", "b", "c"), spent, use))
        short = replace(problem, budgets=Budgets(("a", "b", "c"), spent // 2, use))
        starts = [c["prices"] for c in honest("budgets", short)]
        for _ in range(10):
            prices = list(rng.choice(starts)) if starts and rng.random() < 0.5 else [0, 0, 0]
            prices[rng.randrange(3)] += rng.choice((1, 3, 2**20, 2**90))
            bound = Bound(math.inf, "budgets", "full", {"method": "budgets", "prices": prices})
            assert not check_schedule_bound(enough, bound, 1.0).ok, prices
            believed += check_schedule_bound(short, bound, 1.0).ok
    assert believed


def stepped(certificate: Certificate, rng: random.Random) -> Certificate:
    """The certificate with one to three of its numbers changed by whole prices, or large parts of one."""
    new = copy.deepcopy(certificate)
    signed = [x for x in new["messages"] if x]
    lists = [new[key] for key in ("rows", "shares", "flow", "last") if new[key]] + signed
    for _ in range(rng.choice((1, 1, 2, 3))):
        some = rng.choice(lists)
        k = rng.randrange(len(some))
        some[k] += rng.choice((1, 1, 2, -1)) * new["parts"] // rng.choice((1, 1, 2, 3))
        some[k] = some[k] if any(some is x for x in signed) else max(0, some[k])
    return new


@functools.cache
def loaded_cases() -> list[tuple[ScheduleProblem, Fraction]]:
    """Three processes with loads and resources, on units that take much energy while they are off; also with the least makespan
    as a ceiling, and a tick more."""
    out = []
    for seed, objective in ((11, "energy"), (12, "energy"), (14, "makespan"), (16, "weighted")):
        problem = random_problem(
            seed,
            3,
            2,
            1,
            objective=objective,
            weights=KINDS[objective],
            release=np.zeros(3, np.int64),
            ready=None,
        )
        units = replace(problem.units, off=1 + problem.units.idle // 2)
        problem = replace(problem, units=units)
        out.append((problem, Fraction(optimum(problem, TICKS))))
        if objective == "energy":
            least = float(optimum(replace(problem, objective="makespan"), TICKS))
            for more in (0, 1):
                held = replace(problem, ceilings=(("makespan", least + more),))
                out.append((held, Fraction(optimum(held, TICKS))))
    return out


def test_no_steps_of_whole_prices_are_believed() -> None:
    """A price is many small parts: steps of a whole one climb faster than any other change."""
    rng, climbed = random.Random(5), 0
    for problem, best in [*cases(), *loaded_cases()]:
        for now in honest("prices", problem):
            height = -1.0
            for _ in range(TRIES // 14):
                new = stepped(now, rng) if height >= 0 else now
                found = check_schedule_bound(problem, Bound(5e-324, "prices", "full", new)).value
                assert not found > best, (problem.name, problem.objective, new)
                if found >= height:
                    climbed += found > height >= 0
                    now, height = new, found
    assert climbed >= 0


def test_more_does_not_flow_in_than_out(tmp_path: Path) -> None:
    """It would say that a process starts as early as it ever can, and so that its source must be fast."""
    slow_or_fast = [{"units": "u", "span": 5, "energy": 1}, {"units": "u", "span": 1, "energy": 10}]
    steps = [
        {"name": "x", "alternatives": slow_or_fast},
        {"name": "y", "span": 1, "energy": 0, "after": ["x"]},
    ]
    path = tmp_path / "tasks.json"
    tasks = [{"name": "a", "processes": steps}]
    path.write_text(json.dumps({"units": [{"name": "u"}], "tasks": tasks, "objective": "energy"}))
    problem = load_schedule(path).problem
    assert optimum(problem, TICKS) == 1
    certificate = {"method": "prices", "parts": 1, "rows": [0], "shares": [], "messages": [], "tables": False}
    for flow, ok in ((0, True), (10, False)):
        claim = Bound(1.0, "prices", "full", certificate | {"flow": [flow], "last": [0, 0]})
        assert check_schedule_bound(problem, claim).ok == ok


def test_prices_that_once_would_have_passed(tmp_path: Path) -> None:
    """One by one what a re-check must not forget: loads before heads, ceilings, capacities."""
    path, bare = tmp_path / "tasks.json", {"parts": 1, "shares": [], "messages": [], "tables": False}
    loading = {"name": "x", "span": 3, "weights": {"name": "w", "bytes": 8}}
    content = {
        "units": [{"name": "u"}],
        "network": {"load_bandwidth": 4},
        "tasks": [{"name": "a", "processes": [loading]}],
    }
    path.write_text(json.dumps(content))
    problem = load_schedule(path).problem
    claim = Bound(5e-324, "prices", "full", bare | {"rows": [1], "shares": [2]})
    assert check_schedule_bound(problem, claim).value == optimum(problem, TICKS) == 5
    for most in (5.0, 4.0):  # what just keeps a ceiling is a schedule
        held = replace(problem, ceilings=(("makespan", most),))
        none = Bound(math.inf, "critical-path", "full", {"status": "infeasible"})
        assert check_schedule_bound(held, none).ok == (most < 5)
    steps = [{"name": name, "span": 3} for name in "xy"]
    path.write_text(
        json.dumps(content | {"tasks": [{"name": "a", "processes": steps}], "objective": "energy"})
    )
    held = replace(load_schedule(path).problem, ceilings=(("makespan", 10.0),))
    assert check_schedule_bound(held, Bound(5e-324, "prices", "full", bare | {"rows": [5]})).value <= 0
    project = tmp_path / "p.rcp"
    project.write_text("2 1\n2\n3 1 0\n3 1 0\n")
    both = load_schedule(project).problem
    assert not check_schedule_bound(both, Bound(5e-324, "prices", "full", bare | {"rows": [1]})).value > 3


def test_certificates_of_one_method_are_none_of_another() -> None:
    for problem, best in cases():
        for method in RECHECKS:
            for certificate in honest(method, problem):
                for other in RECHECKS:
                    read = certificate_from_json({**certificate, "method": other})
                    claim = Bound(float(best) + 1, other, "full", read)
                    assert not check_schedule_bound(problem, claim).ok, (method, other)


def test_words_and_strange_values_are_no_bounds() -> None:
    """A name that nobody has, values that are none, another problem's word; and a word is marked as one."""
    problem, best = cases()[0]
    for method in ("my-blog", "cpsat", "", "PRICES", "assign-cpsat"):
        assert not check_schedule_bound(problem, Bound(1.0, method)).ok
    for value in (math.nan, math.inf, -math.inf):
        for method in RECHECKS:
            found = check_schedule_bound(problem, Bound(value, method))
            assert not found.ok or found.value == 0.0, (method, value)
    for method in WORDS:
        word = check_schedule_bound(problem, Bound(float(best) * 10, method))
        assert word.ok and word.trusted
        assert not check_schedule_bound(problem, Bound(1.0, method), about="0" * 64).ok


def test_huge_numbers_are_refused_or_counted_exactly() -> None:
    """Numbers around 2^53, 2^63 and 2^100 in every place: no exception, and nothing above the optimum."""
    sizes = [2**53 + 1, 2**63 - 1, 2**63, 2**100, 2**100 + 1, 2**1100, -1, -(2**63) - 1]
    for problem, best in cases():
        for method in RECHECKS:
            believes = door(problem, method, best)
            for own in honest(method, problem)[:1]:
                for key in (k for k, v in own.items() if isinstance(v, int | list)):
                    for huge in sizes:
                        values = [huge, [huge]]
                        if isinstance(own[key], list):
                            values += [
                                [*own[key][:-1], huge],
                                [huge] * len(own[key]),
                                [[huge]] * len(own[key]),
                            ]
                        for value in values:
                            found = believes(own | {key: value})
                            assert not found > float(best), (method, key, huge)


def test_late_windows_of_what_cannot_be_done_are_counted_exactly() -> None:
    """Where a deadline is missed, a window proves any tick: also one that no machine word holds."""
    problem, _ = cases()[0]
    deadline = problem.deadline.copy()
    deadline[-1] = 0
    late = replace(problem, deadline=deadline)
    row = [0] * (problem.units.count + len(problem.resources))
    for tick in (2**53, 2**63, 2**100):
        claim = Bound(
            2.0**52, "energetic", "full", {"method": "energetic", "rows": row, "window": [0, 1, tick]}
        )
        found = check_schedule_bound(late, claim)
        assert found.ok and found.value <= tick + 1
        assert not check_schedule_bound(problem, claim).ok


def test_what_was_proved_under_a_ceiling_is_claimed_under_that_ceiling_only() -> None:
    """A tight makespan makes energy dear; the bound says nothing of schedules that take longer."""
    for seed in range(200):
        free = random_problem(seed, 6, 3, objective="energy")
        least = min(int(random_schedule(free, k).end(free).max()) for k in range(3))
        tight = replace(free, ceilings=(("makespan", float(least)),))
        alone, held = (_prices(problem) for problem in (free, tight))
        if held is None or alone is None or held.value <= alone.value:
            continue
        proofs = Proofs(ScheduleBounds(free), [])
        parts = proofs.take(Stage("energy", tight.ceilings, tight.content_hash, (held,)))
        assert all(part.ok for part in parts)
        inside, beyond = {"makespan": float(least)}, {"makespan": float(least + 1)}
        assert proofs.claim("bound", held.value, None, "energy", inside).ok
        assert not proofs.claim("bound", held.value, None, "energy", beyond).ok
        return
    pytest.fail("no ceiling mattered")


def test_ceilings_are_compared_to_the_tick() -> None:
    """A part of a billion of a long schedule are many ticks."""
    name, huge = "energy", 2.0**40
    proofs = Proofs(ScheduleBounds(random_problem(3, 4, 2, objective=name)), [])
    proofs._passed.append(_Passed(name, "full", (("makespan", huge),), 5.0, ""))
    assert proofs.claim("bound", 5.0, None, name, {"makespan": huge}).ok
    assert not proofs.claim("bound", 5.0, None, name, {"makespan": huge + 1}).ok


def _prices(problem: ScheduleProblem) -> Bound | None:
    context = QuietContext()
    ScheduleCounting().run(problem, context)
    return next((b for b in context.bounds if b.method == "prices"), None)
