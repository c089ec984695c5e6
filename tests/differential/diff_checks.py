"""One case against the package: evaluator, verification, every engine, every re-check, the command line.

What is found wrong is a :class:`Finding`; an empty list is agreement. Engines run in this process on budgets of a
fraction of a second.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from diff_bridge import problem_of, write_files
from diff_reference import Number, Reference
from diff_unlike import TABLES
from search_fakes import TimedContext

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.check.mapping.verify import verify
from nmsolve.hw.scores import broken_ceiling, objective_value, score
from nmsolve.model.bound import Bound
from nmsolve.model.errors import DoesNotFitError, InputError, NmsolveError
from nmsolve.model.mapping.fit import require_fit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import TogetherReduction, merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.auto import chosen
from nmsolve.solvers.mapping.explain import explain
from nmsolve.solvers.mapping.registry import REGISTRY

Case = dict[str, Any]
#: Engines that prove an optimum when nothing stops them.
EXACT = ("cpsat", "mip", "branch-bound")
#: Engines that only prove bounds.
BOUNDS = (
    "star", "projection", "split", "spread", "joint", "parts", "tree-parts", "slots", "link-load",
    "step-load", "step-power", "exchange", "cover",
)  # fmt: skip
#: Engines that find mappings, in this process (partitioners of others are extras and run as children).
FINDERS = tuple(e for e in REGISTRY if e not in (*EXACT, *BOUNDS, "metis", "kaminpar", "mtkahypar", "scotch"))
#: Seconds an engine may take: bounds, engines that find mappings, exact engines.
BOUND_TIME, FIND_TIME, EXACT_TIME = 0.3, 0.15, 20.0
#: Sums of doubles in another order, relative.
ROUNDING = 1e-12
#: Optima of models in whole numbers where weights had to be scaled, relative.
SCALED = 1e-6
#: What HiGHS may be off by, as part of all traffic together (its tolerances are absolute, its rows are scaled).
LOOSE = 4e-6
#: What whole numbers below 2^50 lose of weights that lie far apart, as part of all traffic together.
WHOLE = 2.0**-42


@dataclass(frozen=True)
class Finding:
    """A disagreement: who, about what, in words."""

    who: str
    kind: str
    text: str


@dataclass
class Ground:
    """What is known of a case before any engine runs."""

    case: Case
    reference: Reference
    problem: MappingProblem
    reduction: TogetherReduction
    best: tuple[Number, tuple[int, ...]] | None
    some: tuple[int, ...] | None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def optimum(self) -> Number | None:
        """Least objective, None where no mapping is allowed."""
        return None if self.best is None else self.best[0]


def ground_of(case: Case) -> Ground:
    """State the case twice, and look at every mapping."""
    reference, problem = Reference(case), problem_of(case)
    best, some, rng = None, None, random.Random(case["seed"])
    for seen, core in enumerate(reference.mappings(), 1):
        value = reference.value(core)
        if best is None or value < best[0]:
            best = value, core
        if rng.random() * seen < 1:
            some = core
    return Ground(case, reference, problem, merge_together(problem), best, some)


def check_case(case: Case, command: bool = False, every: bool = False) -> tuple[list[Finding], Counter[str]]:
    """All that is wrong with a case, and how often each engine, objective and class was tried.

    Parameters
    ----------
    command : run the command line, too (seconds)
    every : run every engine, not a few chosen by the case's seed
    """
    refused = _refused(case)
    if refused is not None:
        return refused
    ground = ground_of(case)
    rng = random.Random(f"engines {case['seed']}")
    ground.counts.update([case["objective"], *dict.fromkeys(case["classes"])])
    ground.counts["no mapping" if ground.best is None else "has a mapping"] += 1
    fits = _fits(ground)
    found = [*_evaluator(ground, rng), *_fit(ground, fits)]
    names = [*BOUNDS, *EXACT, *FINDERS] if every else [*BOUNDS, rng.choice(EXACT), *rng.sample(FINDERS, 3)]
    for name in (
        names if fits is None else ()
    ):  # no engine sees a problem that counting shows to be impossible
        found += _engine(ground, name, rng)
    if (ground.best is None or rng.random() < 0.1) and not case["ceilings"] and case["migration"] is None:
        found += _explain(ground)
    if command:
        found += _command(ground)
    return found, ground.counts


def _refused(case: Case) -> tuple[list[Finding], Counter[str]] | None:
    """Tables of unlike sizes are refused where they could be full, no other problem is; None: not refused."""
    problem = problem_of(case)
    try:
        _ = problem.axons, problem.table_limit
    except InputError as error:
        if any(r in TABLES for r in case["machine"]["core_capacity"]):
            return [], Counter(["unlike tables refused"])
        return [Finding("problem", "refused", str(error))], Counter()
    return None


def _close(a: float, b: Number, room: float = ROUNDING) -> bool:
    return (
        abs(Fraction(a) - Fraction(b)) <= room * max(abs(Fraction(a)), abs(Fraction(b)))
        if np.isfinite(a)
        else False
    )


# evaluator, walker, rules


def _evaluator(g: Ground, rng: random.Random) -> Iterator[Finding]:
    """Objective, scores and rules of mappings, most of them broken."""
    cores = [tuple(rng.choice(range(g.reference.cores)) for _ in range(g.case["n"])) for _ in range(6)]
    cores += [tuple(rng.choice(g.reference.usable) for _ in range(g.case["n"])) for _ in range(6)]
    if g.best is not None and g.some is not None:
        cores += [g.best[1], g.some]
    for k, core in enumerate(cores):
        at = np.array(core)
        told = bool(check_mapping(g.problem, at))
        broken = g.reference.complaints(core)
        if set(core) <= set(g.reference.usable):  # others may have no route at all
            told = told or broken_ceiling(g.problem, at) is not None
            mine, theirs = g.reference.value(core), objective_value(g.problem, at)
            if not _close(theirs, mine):
                yield Finding(
                    "hw.scores", "objective", f"{core}: {theirs!r}, by the documentation {float(mine)!r}"
                )
            if k % 3 == 0:
                yield from _scores(g, core)
        if told != bool(broken):
            yield Finding("check_mapping", "rules", f"{core}: broken {told}, by the documentation {broken}")


def _scores(g: Ground, core: tuple[int, ...]) -> Iterator[Finding]:
    at, p = np.array(core), g.problem
    walked = verify(p.graph, p.machine, p.constraints, at, node_limit=p.node_limit, migration=p.migration)
    exact = g.reference.scores(core)
    for who, found in (("hw.scores", score(p.graph, p.machine, at)), ("check.mapping.verify", walked.scores)):
        if ("energy" in found) != ("energy" in exact):
            yield Finding(
                who, "score", f"energy is there: {'energy' in found}; it is defined: {'energy' in exact}"
            )
        for name in exact.keys() & found.keys():
            if not _close(found[name], exact[name], 1e-11):
                text = f"{name} of {core}: {found[name]!r}, by the documentation {exact[name]!r}"
                yield Finding(who, "score", text)
    rules = [c for c in g.reference.complaints(core) if not c.startswith("ceiling")]
    told = [c for c in walked.checks if not c.ok and c.name not in ("deadlock",)]
    if bool(told) != bool(rules):
        text = f"{core}: {[c.text for c in told]}, by the documentation {rules}"
        yield Finding("check.mapping.verify", "rules", text)


def _fits(g: Ground) -> str | None:
    """Why the problem has no mapping, as counting says before any search; None if it does not say so."""
    try:
        require_fit(g.problem)
    except DoesNotFitError as error:
        g.counts["shown impossible by counting"] += 1
        return str(error)
    return None


def _fit(g: Ground, told: str | None) -> Iterator[Finding]:
    if told is not None and g.best is not None:
        yield Finding("fit", "infeasible", f"{told}; but {g.best[1]} is a mapping")


# engines


class Recorder(TimedContext):
    """The context of one engine: checks every offer against the reference and keeps every bound."""

    def __init__(
        self, g: Ground, name: str, start: tuple[int, ...] | None, seconds: float, seed: int
    ) -> None:
        super().__init__(seconds)
        self.g, self.name, self.seed = g, name, seed
        self.findings: list[Finding] = []
        if start is not None:
            core = np.array(start)
            self.best = g.reduction.restrict(core)
            self.value = objective_value(g.problem, core)

    def offer(self, core: np.ndarray, move: str = "") -> bool:
        lifted = self.g.reduction.lift(np.array(core, np.int64))
        at = tuple(int(p) for p in lifted)
        broken = self.g.reference.complaints(at)
        if broken and all(b == "table_entries" or b.startswith("ceiling") for b in broken):
            return False  # engine `links` works its way down to ceilings and tables by a price on what is too much
        if broken:
            self.findings.append(Finding(self.name, "illegal offer", f"{at} ({move}): breaks {broken}"))
            return False
        value = objective_value(self.g.problem, lifted)
        if not value < self.value:
            return False
        self.best, self.value = np.array(core, np.int64), value
        return True

    def raise_bound(self, bound: Bound) -> bool:
        self.bounds.append(bound)
        better = bound.value > self.low
        self.low = max(self.low, bound.value) if bound.scope == "full" else self.low
        return better


def _engine(g: Ground, name: str, rng: random.Random) -> Iterator[Finding]:
    """Run an engine if it takes the problem; what it offered, what it claimed, what the re-check says of that."""
    start = rng.choice([None, g.some, None if g.best is None else g.best[1]])
    if name in EXACT and rng.random() < 0.7:
        start = None
    refusals: list[str] = []
    try:
        steps = chosen(g.reduction.reduced, [name], lambda who, why: refusals.append(why))
    except InputError:
        g.counts[f"{name} refused"] += 1
        return
    seconds = EXACT_TIME if name in EXACT else BOUND_TIME if name in BOUNDS else FIND_TIME
    context = Recorder(g, name, start, seconds, rng.randrange(100))
    g.counts[name] += 1
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            steps[0].engine.run(g.reduction.reduced, context)  # type: ignore[arg-type]
        except NmsolveError as error:
            nothing = "found" in str(error) or "nodes in order do not fit" in str(error)
            if name not in FINDERS or not nothing:  # a heuristic may find nothing
                yield Finding(name, "error", str(error))
        except Exception as error:  # noqa: BLE001 -- whatever an engine raises is what is looked for
            at = [
                f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-3:]
            ]
            yield Finding(name, "error", f"{type(error).__name__}: {error} ({' '.join(at)})")
    for w in warned:
        yield Finding(name, "warning", f"{w.message} ({Path(w.filename).name}:{w.lineno})")
    yield from context.findings
    yield from _claims(g, name, context)
    if name in EXACT and context.time_left() > 0:
        yield from _exactness(g, name, context)


def _claims(g: Ground, name: str, context: Recorder) -> Iterator[Finding]:
    best = g.optimum
    for bound in context.bounds:
        if bound.scope != "full":
            continue
        if bound.value == np.inf:
            if best is not None:
                yield Finding(name, "false infeasibility", f"{bound.certificate}; optimum {float(best)!r}")
        elif np.isnan(bound.value) or (
            best is not None and Fraction(bound.value) > Fraction(best) * (1 + Fraction(ROUNDING))
        ):
            yield Finding(name, "bound above optimum", f"{bound.value!r}, optimum {float(best or 0)!r}")
    finite = [b for b in context.bounds if b.scope == "full" and b.value < np.inf]
    if finite and best is not None:
        yield from _recheck(g, name, max(finite, key=lambda b: b.value))


def _recheck(g: Ground, name: str, bound: Bound) -> Iterator[Finding]:
    """An honest certificate, through its file, must be accepted; what it proves must not exceed the optimum."""
    assert g.best is not None
    read = certificates_from_json(certificates_to_json(g.problem, [bound]))[0]
    found = check_bound(g.problem, read, np.array(g.best[1]))
    g.counts[f"{bound.method} re-checked"] += 1
    if not found.ok:
        yield Finding(name, "honest bound refused", f"{bound.method} {bound.value!r}: {found.text}")
    elif np.isfinite(found.value) and Fraction(found.value) > Fraction(g.best[0]) * (1 + Fraction(ROUNDING)):
        yield Finding(name, "re-check above optimum", f"{found.value!r}, optimum {float(g.best[0])!r}")


def _exactness(g: Ground, name: str, context: Recorder) -> Iterator[Finding]:
    """Ended by itself: the optimum was found and proved, or infeasibility was."""
    best = g.optimum
    if best is None:
        if context.low != np.inf:
            yield Finding(name, "infeasibility missed", f"bounds {[b.value for b in context.bounds][-3:]}")
        return
    loose = loose_of(g.case, name)
    if context.value > float(best) * (1 + SCALED) + loose:
        yield Finding(name, "optimum missed", f"{context.value!r}, optimum {float(best)!r}")
    elif name != "branch-bound" and context.low < float(best) * (1 - 3 * SCALED) - loose:
        yield Finding(name, "optimum not proved", f"bound {context.low!r}, optimum {float(best)!r}")


def loose_of(case: Case, name: str) -> float:
    """What a bound or an optimum of an exact engine may be off by; 2e-9 is the margin of every claim."""
    traffic = sum(sum(r["weights"]) + (r["rate"] if r["multicast"] else 0) for r in case["rows"])
    # distances of a matrix become whole by a factor of up to 100, which is missing for the weights; so are prices of energy
    far = max(max(map(float, row)) for row in case["machine"]["distances"] or [[0.0]])
    dear = sum(case["machine"]["energy"].values()) if case["objective"] == "energy" else 0.0
    apart = max(1.0, far * case["n"], 2.0 * float(dear))
    return (LOOSE if "mip" in name else WHOLE * apart) * float(traffic) + 2e-9


def _explain(g: Ground) -> Iterator[Finding]:
    if "table_entries" in g.case["machine"]["capacity"]:
        return  # no limit that `explain` knows
    g.counts["explain"] += 1
    told = explain(g.problem, 10.0, 1).status
    if told != ("infeasible" if g.best is None else "feasible"):
        yield Finding(
            "explain",
            "status",
            f"{told}, by the documentation {'no' if g.best is None else 'a'} mapping exists",
        )


# the command line


def _command(g: Ground) -> Iterator[Finding]:
    """``nmsolve map`` for a few seconds, then ``verify --bound``: status, value and exit codes."""
    with TemporaryDirectory() as folder:
        options = write_files(g.case, Path(folder))
        if options is None:
            return
        g.counts["command"] += 1
        out = Path(folder) / "out"
        done = _run("map", *options, "--time-limit", "4", "--seed", "1", "--out", str(out))
        if done.returncode in (2, 4):
            if g.best is not None:
                yield Finding("map", "false infeasibility", f"exit {done.returncode}: {done.stderr[-300:]}")
            return
        if done.returncode not in (0, 3, 5):
            yield Finding("map", "exit code", f"{done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")
            return
        if done.returncode == 5:
            return
        if g.best is None:
            yield Finding("map", "mapping of an impossible problem", done.stdout[-300:])
            return
        report = json.loads((out / "report.json").read_text())
        best, value = g.best[0], report["objective"]
        if report["status"] == "optimal" and not _close(value, best, SCALED):
            yield Finding("map", "not optimal", f"{value!r}, optimum {float(best)!r}")
        if Fraction(value) < Fraction(best) * (1 - Fraction(ROUNDING)):
            yield Finding("map", "better than possible", f"{value!r}, optimum {float(best)!r}")
        if report["bound"] is not None and Fraction(report["bound"]) > Fraction(best) * (1 + Fraction(1e-9)):
            yield Finding("map", "bound above optimum", f"{report['bound']!r}, optimum {float(best)!r}")
        told = _run("verify", str(out), "--bound")
        if told.returncode not in (0, 6):
            failed = [line for line in told.stdout.splitlines() if line.startswith("FAILED")]
            yield Finding(
                "verify", "honest run refused", f"exit {told.returncode}: {failed} {told.stderr[-300:]}"
            )


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nmsolve", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | {"COLUMNS": "300"}
    )
