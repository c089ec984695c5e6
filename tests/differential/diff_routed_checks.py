"""One case of mapping and routes together against the engines of ``--route joint``, in this process."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from diff_bridge import problem_of
from diff_checks import ROUNDING, SCALED, Finding, loose_of
from diff_routes import Routed
from search_fakes import QuietContext

from nmsolve.model.bound import Bound
from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.mapping.fit import require_fit
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.turns import turn_set
from nmsolve.solvers.mapping.joint.problem import JointChecker
from nmsolve.solvers.mapping.joint.registry import REGISTRY

Case = dict[str, Any]
#: Engines that prove the optimum when nothing stops them.
EXACT = ("joint-cpsat", "joint-mip")
#: How often an engine that runs until it is told to stop is asked whether it should.
POLLS = 400


def check_routed_case(case: Case) -> tuple[list[Finding], Counter[str]]:
    """All that is wrong with a case, and what was tried."""
    routed, problem = Routed(case), problem_of(case)
    if case["turns"] is not None:
        problem = replace(problem, turns=turn_set(case["turns"], problem.machine))
    best, counts = routed.optimum(), Counter([f"routed {case['objective']}", f"turns {case['turns']}"])
    try:
        require_fit(problem)
    except DoesNotFitError as error:
        wrong = [] if best is None else [Finding("fit", "infeasible", f"{error}; optimum {float(best)!r}")]
        return wrong, counts
    found: list[Finding] = []
    rng = random.Random(f"engines {case['seed']}")
    for name in REGISTRY:
        found += _engine(case, routed, best, JointChecker(merge_together(problem)), name, counts, rng)
    return found, counts


class Recorder(QuietContext):
    """The context of one joint engine."""

    def __init__(self, routed: Routed, checker: JointChecker, name: str, start: np.ndarray | None) -> None:
        super().__init__()
        self.routed, self.checker, self.name, self.start = routed, checker, name, start
        self.best, self.value, self.polls = start, np.inf if start is None else checker.score(start), 0
        self.findings: list[Finding] = []

    def time_left(self) -> float:
        return 30.0

    def should_stop(self) -> bool:
        self.polls += 1
        return self.polls > POLLS and self.name not in EXACT

    def offer(self, solution: np.ndarray, move: str = "") -> bool:
        joint = self.checker.problem
        cores, used = joint.split(np.asarray(solution))
        core = tuple(int(p) for p in cores)
        trees = [frozenset((int(a), int(b)) for a, b in joint.ends[row]) for row in used]
        wrong = self._complaint(core, trees)
        if wrong is not None:
            self.findings.append(Finding(self.name, "illegal offer", f"{core} {trees} ({move}): {wrong}"))
            return False
        value = float(self.routed.value(core, trees))
        if not value < self.value:
            return False
        self.best, self.value = np.array(solution), value
        return True

    def _complaint(self, core: tuple[int, ...], trees: list[frozenset[tuple[int, int]]]) -> str | None:
        broken = self.routed.plain.complaints(core)
        if broken:
            return f"breaks {broken}"
        for k, ((s, targets, _), tree) in enumerate(zip(self.routed.messages, trees, strict=True)):
            if not self.routed.legal(tree, core[s], frozenset(core[t] for t in targets)):
                return f"message {k} takes no legal tree"
        return "a ring of links" if self.routed.ring(trees) else None

    def raise_bound(self, bound: Bound) -> bool:
        self.bounds.append(bound)
        better = bound.value > self.low
        self.low = max(self.low, bound.value)
        return better


def _engine(
    case: Case, routed: Routed, best: Fraction | None, checker: JointChecker, name: str, counts: Counter[str],
    rng: random.Random,
) -> Iterator[Finding]:  # fmt: skip
    engine, joint = REGISTRY[name].make(), checker.problem
    if engine.refuses(joint) is not None:
        counts[f"{name} refused"] += 1
        return
    counts[name] += 1
    context = Recorder(
        routed, checker, name, _start(checker, rng) if name not in EXACT or rng.random() < 0.3 else None
    )
    try:
        engine.run(joint, context)
    except Exception as error:  # noqa: BLE001 -- whatever an engine raises is what is looked for
        at = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-3:]]
        yield Finding(name, "error", f"{type(error).__name__}: {error} ({' '.join(at)})")
    yield from context.findings
    for bound in context.bounds:
        if best is not None and (
            bound.value == np.inf or Fraction(bound.value) > best * (1 + Fraction(ROUNDING))
        ):
            yield Finding(name, "bound above optimum", f"{bound.value!r}, optimum {float(best)!r}")
    if name in EXACT and best is None and context.low != np.inf:
        yield Finding(name, "infeasibility missed", f"bound {context.low!r}, best {context.value!r}")
    if name in EXACT and best is not None:
        loose = loose_of(case, name)
        if context.value > float(best) * (1 + SCALED) + loose:
            yield Finding(name, "optimum missed", f"{context.value!r}, optimum {float(best)!r}")
        elif context.low < float(best) * (1 - 3 * SCALED) - loose:
            yield Finding(name, "optimum not proved", f"{context.low!r}, optimum {float(best)!r}")


def _start(checker: JointChecker, rng: random.Random) -> np.ndarray | None:
    """Some legal mapping with the machine's own routes."""
    joint = checker.problem
    usable = np.flatnonzero(joint.mapping.machine.usable).tolist()
    for _ in range(20):
        core = np.array([rng.choice(usable) for _ in range(joint.mapping.n)])
        solution = joint.join(core, joint.given_routes(core))
        if checker.complaint(solution) is None:
            return solution
    return None
