"""Forged certificates of assignments and cost networks: no accepted claim is above what brute force finds.

``NMSOLVE_FORGED=1000000 pytest tests/adversary/test_forged_assign.py`` tries longer.
"""

from __future__ import annotations

import functools
import json
import math
import os
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from assign_networks_support import all_solutions, random_network
from assign_reference import Reference, problem_of
from search_fakes import QuietContext
from test_forged_pipelines import climb

from nmsolve.check.assignment.recheck import RECHECKS, WORDS, check_assign_bound
from nmsolve.check.certificates import certificate_from_json, certificate_to_json
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import OBJECTIVES, AssignProblem
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.solvers.assignment.registry import REGISTRY

TRIES = int(os.environ.get("NMSOLVE_FORGED", "1000"))
#: The engine that leaves certificates of a method, where it has another name.
ENGINE = {"counting": "assign-counting"}

Certificate = dict[str, Any]
Problem = AssignProblem | CostNetwork


class Listener(QuietContext):
    """A run in which every bound counts as better, and which ends after some questions."""

    asked = 0

    def bound(self) -> float:
        return 0.0

    def should_stop(self) -> bool:
        self.asked += 1
        return self.asked > 60

    def raise_bound(self, bound: Bound) -> bool:
        self.bounds.append(bound)
        return True


@functools.cache
def cases() -> list[tuple[Problem, Fraction]]:
    """Problems with their optima."""
    out: list[tuple[Problem, Fraction]] = []
    for objective in OBJECTIVES:
        seed = 0
        while sum(not isinstance(p, CostNetwork) and p.objective == objective for p, _ in out) < 2:
            problem = problem_of(seed, objective)
            best = Reference(problem).optimum()
            if best and problem.flows.count > 1 and problem.units.count > 1:
                out.append((problem, Fraction(best)))
            seed += 1
    for seed in range(4):
        network = random_network(seed, 5, capacity=20.0 if seed % 2 else math.inf)
        found = all_solutions(network)
        if found:
            out.append((network, Fraction(min(found.values()))))
    return out


def honest(method: str, problem: Problem) -> list[Certificate]:
    """Certificates as the engine leaves them, written to a file and read back."""
    engine = REGISTRY[ENGINE.get(method, method)].make()
    if engine.refuses(problem) is not None:
        return []
    context = Listener()
    engine.run(problem, context)
    return [
        json.loads(json.dumps(certificate_to_json(b.certificate)))
        for b in context.bounds[:1] + context.bounds[-1:]
        if b.method == method
    ]


def asked(problem: Problem, method: str, certificate: Certificate, claim: float) -> tuple[bool, float]:
    """What the door says, in time."""
    begun = time.process_time()
    found = check_assign_bound(problem, Bound(claim, method, "full", certificate), 1.0)
    assert time.process_time() - begun < 5, (method, certificate)
    return found.ok and not found.trusted, found.value


def door(problem: Problem, method: str, best: Fraction) -> Callable[[Certificate], float]:
    """What a method believes of a certificate: the height to climb. A claim above what it says it proves is never taken."""

    def proved(certificate: Certificate) -> float:
        ok, value = asked(problem, method, certificate, 5e-324)
        for more in (math.nextafter(float(best), math.inf), float(best) * 1.5 + 1, math.inf):
            assert Fraction(0) == best or not asked(problem, method, certificate, more)[0], (
                method,
                certificate,
            )
        return value if ok else math.nan

    return proved


@pytest.mark.parametrize("method", RECHECKS)
def test_no_forged_certificate_is_believed(method: str) -> None:
    mine = [(p, best, honest(method, p)) for p, best in cases()]
    strange = [c for _, _, own in mine for c in own]
    assert strange
    believed = 0
    for k, (problem, best, own) in enumerate(mine):
        starts = own or strange
        if own and k % 2:
            starts = [*own, strange[k % len(strange)]]  # and another problem's
        believed += climb(starts, door(problem, method, best), best, f"{method} {k}", TRIES // len(mine))
    assert believed


def test_certificates_of_one_method_are_none_of_another() -> None:
    for problem, best in cases():
        for method in RECHECKS:
            for certificate in honest(method, problem):
                for other in RECHECKS:
                    read = certificate_from_json({**certificate, "method": other})
                    ok, value = asked(problem, other, read, float(best) + 1)
                    assert not ok and (math.isnan(value) or Fraction(value) <= best), (method, other)


def test_words_and_strange_values_are_no_bounds() -> None:
    """A name that nobody has, values that are none, another problem's word; and a word is marked as one."""
    problem, best = cases()[0]
    for method in ("my-blog", "cpsat", "", "TREE", "route-cpsat"):
        assert not check_assign_bound(problem, Bound(1.0, method)).ok
    for value in (math.nan, math.inf, -math.inf):
        for method in RECHECKS:
            found = check_assign_bound(problem, Bound(value, method))
            assert not found.ok or found.value == 0.0, (method, value)
    for method in WORDS:
        word = check_assign_bound(problem, Bound(float(best) * 10, method))
        assert word.ok and word.trusted
        assert not check_assign_bound(problem, Bound(1.0, method), about="0" * 64).ok
        assert not check_assign_bound(problem, Bound(1.0, method, "placement")).ok


DEEP: list[Any] = []
for _ in range(900):
    DEEP = [DEEP]


@pytest.mark.parametrize("method", RECHECKS)
@pytest.mark.parametrize(
    "what",
    [
        {}, {"method": None}, {"method": "tree", "cases": [{}] * 3000, "parts": 1}, {"cases": DEEP, "parts": 1},
        {"parts": 10**30, "finer": 60, "steps": [], "messages": [], "prices": []},
        {"parts": 1, "finer": 0, "steps": [[0, 0, 1]] * 2000, "messages": [], "prices": []},
        {"parts": 1, "finer": 0, "steps": [], "messages": [[2**60] * 50_000], "prices": []},
        {"parts": 1, "finer": 0, "steps": [], "messages": [], "prices": [[0, k, 2**59] for k in range(9000)]},
        {"prices": [[0, 0, 0, 2**62]] * 9000, "savings": []}, {"prices": [], "savings": [[0, 0, 2**62]] * 9},
        {"kind": "load", "weights": [2**61] * 3}, {"kind": "path"}, {"kind": "sum"}, {"kind": ["sum"]},
    ],
    ids=range(14),
)  # fmt: skip
def test_monsters_are_refused_in_time(method: str, what: Certificate) -> None:
    for problem, best in cases():
        try:
            read = certificate_from_json({**what, "method": method})
        except InputError:
            return
        for claim in (float(best) * 1.01 + 1, math.inf):
            assert not asked(problem, method, read, claim)[0], (method, what)


def test_paths_of_thousands_of_steps_end_no_run() -> None:
    """They went deeper than Python goes."""
    for problem, best in cases():
        places = list(range(50))
        for path in ([[0, places]] * 1500, [[k % 2, [0]] for k in range(1500)]):
            case = {"path": path, "multipliers": [], "prices": []}
            for some in ([case], [case, {**case, "path": [*path[:-1], [0, [1]]]}]):
                forged = {"method": "tree", "parts": 1, "apart": [], "light": [], "cases": some}
                ok, _ = asked(problem, "tree", certificate_from_json(forged), float(best) + 1)
                assert not ok
