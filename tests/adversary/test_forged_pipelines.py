"""Forged certificates of pipelines and routes: no accepted claim is above what brute force finds, whatever is in the file.

``NMSOLVE_FORGED=1000000 pytest tests/adversary/test_forged_pipelines.py`` tries longer.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import os
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from nmsolve.check.certificates import certificate_from_json
from nmsolve.check.pipeline.recheck import recheck_bound
from nmsolve.check.routing.recheck import check_routing_bound
from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem

TRIES = int(os.environ.get("NMSOLVE_FORGED", "10000"))
#: Numbers that break arithmetic that is not careful.
STRANGE: tuple[Any, ...] = (
    0, -0.0, 1, -1, 0.5, 1e-300, 1e-12, 1e-7, 1e9, 4e11, 1e15, 2**52, 2**53 + 1, 1e300, 10**400, -1e300, math.nan,
    math.inf, -math.inf, True, None, "7", [], {}, [[1, 2]],
)  # fmt: skip


def mutated(value: Any, rng: random.Random) -> Any:
    """The JSON value with one thing changed: a number scaled, nudged or strange; a part dropped, doubled or swapped."""
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value))
        if rng.random() < 0.03:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: mutated(value[key], rng)}
    if isinstance(value, list) and value:
        at, draw = rng.randrange(len(value)), rng.random()
        if draw < 0.05:
            return value[:at] + value[at + 1 :]
        if draw < 0.1:
            return [*value[:at], value[at], *value[at:]]
        if draw < 0.2:
            other = rng.randrange(len(value))
            out = list(value)
            out[at], out[other] = out[other], out[at]
            return out
        return [*value[:at], mutated(value[at], rng), *value[at + 1 :]]
    if isinstance(value, bool) or not isinstance(value, int | float) or rng.random() < 0.05:
        return copy.deepcopy(rng.choice(STRANGE))
    if not abs(value) < 1e300:
        return rng.choice((0, 1, 2.0**40))
    step = rng.choice((1, -1, 2, -2, value, -value / 2, value * 1e-9, value * rng.uniform(-1, 1), 1e-7, 0.3))
    new = value + step if abs(value) < 1e290 else value / 2
    return int(new) if isinstance(value, int) and rng.random() < 0.8 and abs(new) < 1e15 else new


def climb(
    starts: list[dict[str, Any]], proved: Callable[[dict[str, Any]], float], optimum: Fraction, seed: str, tries: int
) -> int:  # fmt: skip
    """Change certificates towards higher proofs; an AssertionError for any above ``optimum``. How many were believed."""
    rng, believed = random.Random(seed), 0
    best, height = starts[0], -math.inf
    for k in range(tries):
        if k % 250 == 0:
            best, height = copy.deepcopy(rng.choice(starts)), -math.inf
        new = best
        for _ in range(rng.choice((1, 1, 2, 3))):
            changed = mutated(new, rng)
            new = changed if isinstance(changed, dict) else {}
        try:
            value = proved(certificate_from_json(new))
        except (InputError, OverflowError) as refused:
            assert isinstance(refused, InputError) or "10000" in str(new), (new, refused)
            continue
        if math.isnan(value):
            continue
        believed += value > 0
        assert Fraction(value) <= optimum, (new, value, float(optimum))
        if value >= height:
            best, height = new, value
    return believed


def pipeline(seed: int, largest: int = 1) -> tuple[PipelineProblem, Fraction]:
    """Three or four layers on two cores (three, in groups of up to ``largest``), perhaps with a host, and its optimum."""
    rng = random.Random(seed)
    layers, unit = rng.randint(3, 4), rng.choice((1.0, 1.0, 0.1, 1e-9, 1e9 / 3))
    time = np.array([
        sorted((rng.randint(1, 20) * unit for _ in range(largest)), reverse=True) for _ in range(layers)
    ])  # fmt: skip
    most = 2 if largest == 1 else 3
    sent = np.array([rng.randint(0, 6) * unit for _ in range(layers - 1)])
    tensors = Tensors(
        np.arange(layers - 1), np.arange(layers), np.arange(1, layers), sent, np.zeros(layers - 1)
    )
    hosts = int(rng.random() < 0.3)
    host = np.array([rng.randint(5, 60) * unit for _ in range(layers)]) if hosts else None
    problem = PipelineProblem(
        f"forged {seed}", tuple("abcd"[:layers]), time, np.ones(layers), tensors, most, 2 + hosts,
        split=rng.choice(("contiguous", "any")), memory=rng.choice((None, 3.0)), overlap=rng.random() < 0.2,
        host_time=host, hosts=hosts,
    )  # fmt: skip
    best: Fraction | None = None
    for used in range(1, 3 + hosts):
        for cores in itertools.product(range(0 if hosts else 1, largest + 1), repeat=used):
            if sum(cores) > most or cores.count(0) > hosts:
                continue
            for stage in itertools.product(range(used), repeat=layers):
                value = _plan_value(problem, stage, cores)
                if value is not None:
                    best = value if best is None else min(best, value)
    assert best is not None
    return problem, best


def _plan_value(p: PipelineProblem, stage: tuple[int, ...], cores: tuple[int, ...]) -> Fraction | None:
    """The largest load in fractions; None where a rule is broken."""
    if p.split == "contiguous" and any(a > b for a, b in itertools.pairwise(stage)):
        return None
    worst = Fraction(0)
    for s, c in enumerate(cores):
        mine = [k for k in range(p.count) if stage[k] == s]
        if c and p.memory is not None and len(mine) > c * p.memory:
            return None
        if c == 0:
            assert p.host_time is not None
            load = sum((Fraction(float(p.host_time[k])) for k in mine), Fraction(0))
        else:
            busy = sum((Fraction(float(p.time[k, c - 1])) for k in mine), Fraction(0))
            cut = [k for k in range(p.count - 1) if stage[k] != stage[k + 1] and s in stage[k : k + 2]]
            moved = sum((Fraction(float(p.tensors.time[k])) for k in cut), Fraction(0))
            load = max(busy, moved) if p.overlap else busy + moved
        worst = max(worst, load)
    return worst


@pytest.mark.parametrize(
    ("kind", "tries", "few", "states", "largest"),
    [
        ("work", TRIES, 6, 0, 1),
        ("layer", TRIES, 6, 0, 1),
        ("layer-cut", TRIES, 6, 0, 1),
        ("cover", TRIES, 6, 0, 1),
        ("cover", TRIES // 2, 6, 0, 3),
        ("cover", TRIES // 5, 0, 1000, 3),
    ],
)
def test_no_forged_pipeline_bound_is_believed(
    kind: str, tries: int, few: int, states: int, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``cover`` by trying all sets, and by partial blocks alone."""
    monkeypatch.setattr("nmsolve.check.pipeline.cover.FEW", few)
    monkeypatch.setattr("nmsolve.check.pipeline.sweep.STATES", states)
    cases, believed = 8, 0
    for seed in range(cases):
        problem, optimum = pipeline(seed, largest)
        count, unit = problem.count, float(problem.time.max()) / 20 or 1.0
        starts: list[dict[str, Any]] = [{"rate": 0.0}, {"rate": 0.5}]
        if kind.startswith("layer"):
            starts = [{"layer": 0}, {"layer": count - 1}]
        if kind == "cover":
            price = [int(t / unit * 100) + 1 for t in problem.time[:, 0]]
            core = {} if largest == 1 else {"core": sum(price) // 5, "turn": list(range(count))}
            starts = [
                {"ceiling": ceiling, "factor": factor, "price": price, "item": list(range(count)), **core}
                for ceiling, factor in ((3, 1 / unit), (int(float(optimum) / unit) - 1, 1 / unit), (2**30, 2.0**30 / unit))
            ]  # fmt: skip

        def proved(certificate: dict[str, Any], problem: PipelineProblem = problem) -> float:
            found = recheck_bound(problem, kind, certificate, 5.0)
            return math.nan if found is None else found

        believed += climb(starts, proved, optimum, f"{kind} {seed}", tries // cases)
    assert believed > tries // 100


def routing(seed: int) -> tuple[RoutingProblem, Fraction]:
    """Three flows on 2x2, shortest routes; the least largest load by trying all of them (deadlock or not)."""
    rng = random.Random(seed)
    machine = load_machine("mesh:2x2")
    pairs = rng.sample([(a, b) for a in range(4) for b in range(4) if a != b], 4)
    unit = rng.choice((1.0, 0.1, 1 / 3, 1e9))
    flows = Flows(
        np.array([a for a, _ in pairs], np.int32), np.arange(5), np.array([b for _, b in pairs], np.int32),
        np.array([rng.randint(1, 9) * unit for _ in pairs]),
    )  # fmt: skip
    ends = link_ends(machine)
    ways: list[list[tuple[int, ...]]] = []
    for a, b in pairs:
        first = [k for k in range(4 * a, 4 * a + 4) if ends[k] >= 0]
        direct = [(k,) for k in first if ends[k] == b]
        two = [(k, j) for k in first for j in range(4 * int(ends[k]), 4 * int(ends[k]) + 4) if ends[j] == b]
        ways.append(direct or two)  # type: ignore[arg-type]
    best = None
    for chosen in itertools.product(*ways):
        loads: dict[int, Fraction] = {}
        for f, links in enumerate(chosen):
            for link in links:
                loads[link] = loads.get(link, Fraction(0)) + Fraction(float(flows.rate[f]))
        worst = max(loads.values())
        best = worst if best is None else min(best, worst)
    assert best is not None
    return RoutingProblem(machine, flows), best


@pytest.mark.parametrize("kind", ["split-flow", "counting"])
def test_no_forged_route_bound_is_believed(kind: str) -> None:
    cases, believed = 4, 0
    for seed in range(cases):
        problem, optimum = routing(seed)
        starts: list[dict[str, Any]] = [
            {"length": [1] * 16},
            {"length": [1, 0] * 8, "shares": {"0": [[[1, 1]]]}},
        ]

        seen = [0.0]

        def proved(
            certificate: dict[str, Any], problem: RoutingProblem = problem, seen: list[float] = seen
        ) -> float:
            # what it is willing to believe at all, and then that it believes nothing more
            found = check_routing_bound(problem, "max-link", Bound(5e-324, kind, "full", certificate))
            if not found.ok:
                return math.nan
            if found.value <= seen[0]:
                return found.value
            seen[0] = found.value
            for more in (found.value * (1 + 1e-9) + 1e-9, math.nextafter(found.value, math.inf)):
                assert not check_routing_bound(problem, "max-link", Bound(more, kind, "full", certificate)).ok
            return found.value

        believed += climb(starts, proved, optimum, f"{kind} {seed}", TRIES // cases)
    assert believed > TRIES // 100


def test_words_and_strange_values_are_no_bounds_of_routes() -> None:
    problem, optimum = routing(0)
    for method in ("my-blog", "cpsat", "", "SPLIT-FLOW"):
        assert not check_routing_bound(problem, "max-link", Bound(1.0, method)).ok
    for value in (math.nan, math.inf, -1.0):
        for method in ("counting", "route-cpsat"):
            assert not check_routing_bound(problem, "max-link", Bound(value, method)).ok
    word = check_routing_bound(problem, "max-link", Bound(float(optimum) * 10, "route-cpsat"))
    assert word.ok and word.trusted
    assert not check_routing_bound(problem, "max-link", Bound(1.0, "route-mip", "placement")).ok
    assert json.dumps(word.text)
