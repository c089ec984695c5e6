"""A hill-climbing forger of certificates: it changes numbers until the checker believes more than is true.

Every try calls the door that ``nmsolve verify --bound`` calls: the JSON form of a certificate is read back and
:func:`check_bound` is asked. What it says it has proved is the height to climb. A claim that it accepts above the
optimum of the case (brute force, :mod:`forged_cases`) is a forgery, and so is any exception.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from forged_cases import Case, cases
from remembered import remember
from search_fakes import QuietContext

from nmsolve.check.certificates import certificate_from_json, certificate_to_json
from nmsolve.check.mapping.recheck import RECHECKS, BoundCheck, check_bound
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.solvers.mapping.bounds.pairs import refuses_pairs
from nmsolve.solvers.mapping.bounds.placement import part_problem
from nmsolve.solvers.mapping.registry import make_engine

Certificate = dict[str, Any]
KINDS = tuple(RECHECKS)
#: Engines that leave certificates of a kind under another name.
ENGINE = {"fan-out": "star", "chessboard": "parts"}
#: A claim that anything above 0 proves.
PROBE = 5e-324
#: Tries of each kind in a test.
TRIES = int(os.environ.get("NMSOLVE_FORGER_TRIES", "10000"))
#: Tries of one climb before it starts again.
CLIMB = 250
#: Whole numbers from here on are too long for a float.
LONG = 2**1000


@dataclass
class Count:
    """What the tries of one kind came to."""

    tries: int = 0
    believed: int = 0
    raised: int = 0
    forged: int = 0
    worst: float = 0.0
    cases: int = 0
    found: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: Count) -> None:
        """Add the figures of another batch."""
        self.tries += other.tries
        self.believed += other.believed
        self.raised += other.raised
        self.forged += other.forged
        self.worst = max(self.worst, other.worst)
        self.cases = max(self.cases, other.cases)
        for entry in other.found:
            self.keep(entry)

    def keep(self, entry: dict[str, Any]) -> None:
        """Keep a find; of every case and outcome the highest claim."""
        for i, old in enumerate(self.found):
            if (old["case"], _sort(old)) == (entry["case"], _sort(entry)):
                if entry["claim"] > old["claim"]:
                    self.found[i] = entry
                return
        self.found.append(entry)


class _Context(QuietContext):
    """A run in which every bound counts as better, and which ends after some questions."""

    asked = 0

    def bound(self) -> float:
        return 0.0

    def time_left(self) -> float:
        return 0.3

    def should_stop(self) -> bool:
        self.asked += 1
        return self.asked > 300

    def raise_bound(self, bound: Bound) -> bool:
        self.bounds.append(bound)
        return True


@functools.cache
def problem_of(name: str) -> tuple[Case, Any]:
    """A case by name, and its problem."""
    case = next(c for c in cases() if c.name == name)
    problem = case.problem()
    remember(problem)
    return case, problem


@functools.cache
def honest(kind: str) -> dict[str, list[Certificate]]:
    """Certificates of one kind by case as the engines leave them; a case that no engine takes has none.

    Engines see groups that must share a core merged, and of claims about placements the parts as nodes; the door never does.
    """
    out = {}
    engine = make_engine(ENGINE.get(kind, kind))
    for case in cases():
        problem = merge_together(problem_of(case.name)[1]).reduced
        if case.parts and refuses_pairs(problem) is None:
            problem = part_problem(problem, np.array(case.parts))
        if engine.refuses(problem) is not None:
            continue
        context = _Context()
        engine.run(problem, context)
        mine = [b for b in context.bounds if b.method == kind]
        # as written to the file and read back, so numbers and lists only
        chosen = [mine[0], mine[len(mine) // 2], mine[-1]] if mine else []
        out[case.name] = [json.loads(json.dumps(certificate_to_json(b.certificate))) for b in chosen]
    return out


def batch(kind: str, seed: int, tries: int) -> Count:
    """This many tries; the same for the same arguments."""
    rng = random.Random(f"{kind} {seed}")
    count, stock = Count(), honest(kind)
    names = sorted(stock)
    count.cases = len(names)
    strange = [c for certificates in stock.values() for c in certificates]
    while count.tries < tries:
        name = rng.choice(names)
        starts = stock[name] or strange
        _climb(
            kind,
            name,
            rng,
            dict(rng.choice(starts)),
            strange,
            min(CLIMB, tries - count.tries),
            count,
        )
    return count


def assault(kind: str) -> None:
    """All tries of a test: an AssertionError if one was believed or raised, or if climbs did not climb."""
    total = Count()
    for seed in range(-(-TRIES // 1000)):
        total.add(batch(kind, seed, min(1000, TRIES)))
    assert not total.found, "\n".join(plain(entry)[:2000] for entry in total.found)
    assert total.tries >= TRIES and total.believed > total.tries // 20
    assert 0.3 < total.worst <= 1


def _climb(
    kind: str,
    name: str,
    rng: random.Random,
    best: Certificate,
    strange: list[Certificate],
    steps: int,
    count: Count,
) -> None:
    height = judge(kind, name, best, PROBE, count)
    for _ in range(steps - 1):
        new = dict(best)  # values are replaced, never changed in place
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            new = mutated(new, rng, strange)
        claim = (
            PROBE if rng.random() < 0.99 else rng.choice((math.nan, math.inf, 1e308, -math.inf, 10.0**300))
        )
        value = judge(kind, name, new, claim, count)
        if value >= height:
            best, height = new, value


def judge(kind: str, name: str, certificate: Certificate, claim: float, count: Count) -> float:
    """Height of one certificate for the claim; forgeries are kept in ``count``."""
    case, problem = problem_of(name)
    count.tries += 1
    try:
        found = _asked(case, problem, kind, certificate, claim)
        if found.ok and not claim <= case.optimum:
            _forged(kind, name, certificate, claim, count)
        height = float(found.value)
        if not math.isfinite(height):
            return -math.inf
        if found.ok:
            count.believed += 1
            count.worst = max(count.worst, height / float(case.optimum))
        # tolerances of the door itself count, so the claim is a little above what is proved, too
        for more in (height * (1 + 1e-9) + 1e-9, height * (1 + 1e-9), height):
            if _above(more, case.optimum) and _asked(case, problem, kind, certificate, more).ok:
                _forged(kind, name, certificate, more, count)
                break
        return height
    except InputError:
        return -math.inf
    except Exception as error:  # noqa: BLE001 - whatever gets out of the door is a find
        count.raised += 1
        _keep(count, kind, name, certificate, claim, f"{type(error).__name__}: {error}")
        return -math.inf


def believed(kind: str, name: str, certificate: Certificate, claim: float) -> bool:
    """True if the door takes the claim."""
    try:
        return _asked(*problem_of(name), kind, certificate, claim).ok
    except InputError:
        return False


def _asked(case: Case, problem: Any, kind: str, certificate: Certificate, claim: float) -> BoundCheck:
    """What the door says to the claim."""
    scope, core = ("placement", np.array(case.parts)) if case.parts else ("full", None)
    return check_bound(problem, Bound(claim, kind, scope, certificate_from_json(certificate)), core)


def _above(claim: float, optimum: Fraction | float) -> bool:
    """True if the claim is above the optimum; exactly, or within rounding where the optimum is itself a float."""
    if isinstance(optimum, Fraction):
        return Fraction(claim) > optimum
    return claim > optimum * (1 + 1e-12)


def _forged(kind: str, name: str, certificate: Certificate, claim: float, count: Count) -> None:
    count.forged += 1
    count.worst = max(count.worst, claim / float(problem_of(name)[0].optimum))
    _keep(count, kind, name, certificate, claim, "believed")


def _keep(count: Count, kind: str, name: str, certificate: Certificate, claim: float, what: str) -> None:
    count.keep(
        {"kind": kind, "case": name, "claim": claim, "what": what, "certificate": copy.deepcopy(certificate)}
    )


def _sort(entry: dict[str, Any]) -> tuple[str, bool]:
    """What kind of find it is: of exceptions their type, of beliefs whether the claim is a number at all."""
    return entry["what"].split(":")[0], math.isfinite(entry["claim"])


# -- changes ----------------------------------------------------------------------------------------------------


def mutated(certificate: Certificate, rng: random.Random, strange: list[Certificate]) -> Certificate:
    """The certificate with one change; fields may be replaced in place, what they hold never is."""
    keys = [k for k in certificate if k != "method"]
    if not keys:
        certificate[rng.choice(("dual", "shift", "x"))] = _any(rng)
        return certificate
    kind = rng.random()
    lists = [k for k in keys if _numeric(certificate[k])]
    if kind < 0.25 and lists:  # several fields at once
        change = _change_of_all(rng)
        for key in rng.sample(lists, rng.randint(1, len(lists))):
            certificate[key] = [change(x) for x in certificate[key]]
    elif kind < 0.80:
        key = rng.choice(lists or keys)
        certificate[key] = _changed(certificate[key], rng)
    elif kind < 0.90:
        other = rng.choice(strange)
        if rng.random() < 0.2:
            return dict(other)
        shared = [k for k in other if k != "method"]
        if shared:
            key = rng.choice(shared)
            certificate[key] = other[key]
    elif kind < 0.94:
        a, b = rng.choice(keys), rng.choice(keys)
        certificate[a], certificate[b] = certificate[b], certificate[a]
    elif kind < 0.96:
        del certificate[rng.choice(keys)]
    else:
        certificate[rng.choice(keys)] = _any(rng)
    return certificate


def _numeric(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    kinds = set(map(type, value))
    if kinds == {int}:  # in two passes that are not in Python: every second list is asked about at every try
        return min(value) > -LONG and max(value) < LONG
    return kinds == {float} or all(_plain(x) for x in value)


def _plain(x: Any) -> bool:
    """True for a number that can be reckoned with, neither a bool nor a whole number too long for a float."""
    return type(x) is float or (type(x) is int and -LONG < x < LONG)


def magnitude(rng: random.Random) -> float:
    """A number of either sign; half of them moderate, the others anywhere from 1e-300 to 1e300."""
    size = 10 ** rng.uniform(-4, 4) if rng.random() < 0.5 else 10 ** rng.uniform(-300, 300)
    if rng.random() < 0.3:
        size = 10 ** rng.uniform(4, 20)
    return rng.choice((-1, 1)) * size


def _change_of_all(rng: random.Random) -> Callable[[float], float]:
    """One change for all numbers of a list."""
    what = rng.randrange(5)
    if what == 0:
        more = magnitude(rng)
        return lambda x: x + more
    if what == 1:
        factor = rng.choice((-1.0, 0.5, 2.0, 10.0, rng.uniform(0.5, 1.5), 1 + 10 ** rng.uniform(-16, -1)))
        return lambda x: x * factor
    if what == 2:
        level = rng.choice((0.0, magnitude(rng)))
        return lambda x: level
    if what == 3:
        tail = 1 + 10 ** rng.uniform(-16, -6) * rng.choice((-1, 1))
        return lambda x: x * tail
    spread = 10 ** rng.uniform(-6, 3)
    return lambda x: x + rng.gauss(0, spread)


def _number(x: Any, rng: random.Random) -> Any:
    """Another number instead of ``x``."""
    what = rng.randrange(11)
    if not _plain(x) or what == 0:
        return magnitude(rng)
    if what == 1:
        return rng.choice(
            (math.nan, math.inf, -math.inf, 0, -0.0, 1, -1, 2**53, 2**63, -(2**63), 10**400, True)
        )
    if what == 2:
        return -x
    if what == 3:
        return x * rng.uniform(0.5, 2)
    if what == 4:
        return math.nextafter(x, rng.choice((-math.inf, math.inf))) if abs(x) < 1e308 else x
    if what in (5, 6):
        return x + rng.choice((-1, 1))
    if what == 7:
        return x * (1 + 10 ** rng.uniform(-16, -3) * rng.choice((-1, 1))) if abs(x) < 1e300 else x
    if what == 8:
        return round(x) if math.isfinite(x) else x
    return x + rng.gauss(0, 10 ** rng.uniform(-6, 3)) if abs(x) < 1e300 else x


def _changed(value: Any, rng: random.Random) -> Any:
    """Another value of the same sort."""
    if not isinstance(value, list):
        return (
            rng.choice(("all", "columns", "rows", *KINDS)) if isinstance(value, str) else _number(value, rng)
        )
    if not value:
        return [magnitude(rng)]
    value = list(value)
    what = rng.randrange(10)
    i, j = rng.randrange(len(value)), rng.randrange(len(value))
    if what < 5:
        value[i] = _number(value[i], rng)
    elif what == 5 and _numeric(value):
        change = _change_of_all(rng)
        value = [change(x) for x in value]
    elif what == 6:
        value[i], value[j] = value[j], value[i]
    elif what == 7:
        rng.shuffle(value)
    elif what == 8:
        value = value[: i + 1] + value[i:] if rng.random() < 0.5 else value[:i] + value[i + 1 :]
    else:
        value = sorted(value, key=repr) if not _numeric(value) else sorted(value)
    return value


def _any(rng: random.Random) -> Any:
    """Something of any sort."""
    number = magnitude(rng)
    return rng.choice(
        (None, "x", "", True, {}, [], [[number]], [number, None], ["1"], {"a": number}, number, [number] * 4,
         [[number, 1.0]] * 3, 10**400, [10**400], [True, False], [math.nan], math.inf)
    )  # fmt: skip


def plain(entry: dict[str, Any]) -> str:
    """A find as one line of JSON."""

    def simple(x: Any) -> Any:
        return x.item() if isinstance(x, np.generic) else str(x)

    return json.dumps(entry, default=simple)
