"""Automatic mode with other engines or without some, against itself or that of another checkout: paired runs of equal time.

    python bench/starts.py KIND ENGINES [ENGINES ...] [--limits 2,5] [--base CHECKOUT] [--only WORD,WORD] [--kept FILE]

ENGINES is what ``--engines`` takes, e.g. ``auto,m2`` (``auto`` with --base); ``auto,-tree`` is automatic mode without ``tree``.
Compile the kernels first (``make warm``). Every run has a process of its own, one thread, and a clock that counts its CPU
seconds, so that other work on the machine costs nothing. Engines that would run in a child process run in this one, where the
clock sees them: a run of the command has about a CPU second less, which a child takes to begin. Those of them that only prove
bounds are left out. Difference: (with - without) / without, on 36 to 48 instances of a kind; the interval of its mean is SciPy's
bootstrap (BCa, 95 %).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from figures import ONE_THREAD
from scipy.stats import bootstrap
from start_cases import KINDS, TASKS, Case, cases

from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.solvers.search import cpsat


class Plan(NamedTuple):
    """Engines of a run, and the checkout whose code runs (None: this one)."""

    engines: str
    code: Path | None = None


class Reached(NamedTuple):
    """Objective of a run (inf: none, nan: its engines refuse the instance), and CPU seconds of the engines in question."""

    objective: float
    before: float


def work(kind: str, name: str, engines: str, seconds: float) -> None:
    """One run, in a process of its own; prints what it reached within its time."""
    case = next(case for case in cases(kind) if case.name == name)
    call, names = case.make(), engines.split(",")
    for left in [one[1:] for one in names if one.startswith("-")]:
        leave_out(case.registry, left)
    if kind in TASKS:
        in_one_process(case.registry)
    asked = [one for one in names if not one.startswith("-")]
    clock.count_cpu()
    try:
        result = call(time_limit=seconds, engines=None if asked == ["auto"] else asked, seed=1)
    except InputError:  # the engines refuse the instance
        print("nan 0")
        return
    spent = sum(e.cpu_seconds for e in result.engines if e.engine in names)
    found = [e.objective for e in result.events if e.kind == "incumbent" and e.seconds <= seconds]
    print(min(found, default="inf"), spent)


def leave_out(registry: MutableMapping[str, Any], name: str) -> None:
    """Let an engine refuse every problem."""
    type(registry[name].make()).refuses = lambda self, problem: "left out"


def in_one_process(registry: MutableMapping[str, Any]) -> None:
    """Run engines of child processes in this one, but for those that only prove bounds: some of them cannot be stopped.

    CP-SAT counts wall seconds; it gets as many as this process takes for its CPU seconds.
    """
    for name, entry in registry.items():
        if entry.child and entry.make().finds == "bounds":
            leave_out(registry, name)
        registry[name] = replace(entry, child=False)
    new = cpsat.new_solver
    cpsat.new_solver = lambda seconds=np.inf, *rest: new(seconds * clock.pace(), *rest)


def run_all(case: Case, kind: str, plans: Sequence[Plan], seconds: float) -> list[Reached]:
    """Return what every plan reaches on an instance, two at a time."""
    found = []
    for k in range(0, len(plans), 2):
        running = []
        for plan in plans[k : k + 2]:
            words = [
                sys.executable,
                __file__,
                kind,
                plan.engines,
                "--run",
                case.name,
                "--limits",
                str(seconds),
            ]
            more = {"PYTHONPATH": str(plan.code)} if plan.code else {}
            running.append(
                subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD | more)
            )
        found += [Reached(*map(float, one.communicate()[0].split()[-2:])) for one in running]
    return found


def summary(plan: str, seconds: float, base: Sequence[Reached], found: Sequence[Reached]) -> str:
    """Return the row of the table."""
    pairs = [(b, f) for b, f in zip(base, found, strict=True) if f.objective == f.objective]
    change = np.array([100 * (f.objective / b.objective - 1) for b, f in pairs])
    low, high = change.mean(), change.mean()
    if change.std() > 0:
        low, high = bootstrap((change,), np.mean, rng=np.random.default_rng(1)).confidence_interval
    better, worse = int((change < -1e-9).sum()), int((change > 1e-9).sum())
    spent = 100 * np.mean([f.before for _, f in pairs]) / seconds
    return (
        f"| `{plan}` | {len(change)} | {seconds:g} | {change.mean():+.2f} % | {low:+.2f} to {high:+.2f} % "
        f"| {better} | {worse} | {spent:.1f} % |"
    )


def main() -> None:
    """Print a row for every list of engines and limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("engines", nargs="+")
    parser.add_argument("--limits", default="2,5")
    parser.add_argument(
        "--base", type=Path, help="checkout whose automatic mode is compared with, not that of this one"
    )
    parser.add_argument("--only", default="", help="instances whose names hold one of these words")
    parser.add_argument("--kept", type=Path, help="JSON file that keeps what every run reached")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        work(args.kind, args.run, args.engines[0], float(args.limits))
        return
    kept = json.loads(args.kept.read_text()) if args.kept and args.kept.exists() else {}
    base, plans = Plan("auto", args.base), [Plan(engines) for engines in args.engines]
    chosen = [c for c in cases(args.kind) if any(word in c.name for word in args.only.split(","))]
    print(
        "| engines | instances | limit, s | mean difference | 95 % interval | better | worse | their time |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for seconds in map(float, args.limits.split(",")):
        reached: dict[Plan, list[Reached]] = {plan: [] for plan in (base, *plans)}
        for case in chosen:
            key = {
                plan: f"{args.kind} {case.name} {seconds:g} {plan.engines} {plan.code or ''}"
                for plan in reached
            }
            missing = [plan for plan in reached if key[plan] not in kept]
            for plan, found in zip(missing, run_all(case, args.kind, missing, seconds), strict=True):
                kept[key[plan]] = found
            if args.kept:
                args.kept.write_text(json.dumps(kept, indent=0))
            for plan, row in reached.items():
                row.append(Reached(*kept[key[plan]]))
        for plan in plans:
            print(summary(plan.engines, seconds, reached[base], reached[plan]), flush=True)


if __name__ == "__main__":
    main()
