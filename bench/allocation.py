"""Plans of automatic mode (`map --allocate`) on held-out generated problems of all families, beside the fixed plan.

Usage: OPENBLAS_NUM_THREADS=1 python bench/allocation.py [--seconds 2] [--instances 70] [--rivals learned,constant,uniform]
[--alone] [--kept FILE]

Every run has a process of its own and a clock that counts its CPU seconds. Gains are those over the fixed plan: parts of the
objective and of the bound; differences of primal integral and gap, in points. ``--alone`` also runs every heuristic and bound
alone with all of the time, and says how far the plans are behind the best of them, family by family. ``--kept`` keeps runs, and
goes on from there. ``nmsolve bench learn allocation`` does the same on the graphs of its suite.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median

import numpy as np

from nmsolve.solvers.mapping.allocation.apply import allocated
from nmsolve.solvers.mapping.allocation.instances import Instance, held_out
from nmsolve.solvers.mapping.allocation.measures import worth
from nmsolve.solvers.mapping.allocation.slices import Curves, alone
from nmsolve.solvers.mapping.auto import automatic

#: Bootstrap samples of a mean (Efron 1979).
SAMPLES = 10_000


class Runs:
    """Runs by instance, seconds and what ran, kept in a file of lines if there is one."""

    def __init__(self, kept: Path | None) -> None:
        self._kept, self._runs = kept, dict[tuple[str, float, str], Curves]()
        for line in kept.read_text().splitlines() if kept is not None and kept.exists() else ():
            one = json.loads(line)
            self._runs[one["instance"], one["seconds"], one["what"]] = Curves(
                one["objectives"], one["bounds"], None, one["took"]
            )

    def of(self, instance: Instance, seconds: float, what: str) -> Curves:
        """Return a run of an allocation, or of ``@engine`` alone."""
        key = (instance.name, seconds, what)
        if key not in self._runs:
            problem = instance.problem()
            engine = what[1:] if what.startswith("@") else None
            more = {} if engine else {"allocate": what}
            self._runs[key] = run = alone(problem, engine, seconds, **more)
            if self._kept is not None:
                kept = dict(zip(("instance", "seconds", "what"), key, strict=True))
                kept |= {"objectives": run.objectives, "bounds": run.bounds, "took": run.took}
                with self._kept.open("a") as file:
                    file.write(json.dumps(kept) + "\n")
        return self._runs[key]


def interval(values: Sequence[float]) -> str:
    """A mean with its 95 % bootstrap interval, in per cent."""
    picks = np.random.default_rng(1).integers(0, len(values), (SAMPLES, len(values)))
    low, high = np.percentile(np.array(values)[picks].mean(axis=1), [2.5, 97.5])
    return f"{100 * fmean(values):+.2f} ({100 * low:+.2f} to {100 * high:+.2f}; median {100 * median(values):+.2f})"


def table(runs: Runs, instances: Sequence[Instance], seconds: float, rivals: Sequence[str]) -> None:
    """Print gains over the fixed plan, a line per rival, and the losses."""
    print(
        f"\n{len(instances)} problems, {seconds:g} CPU s; gains in per cent and points, 95 % interval of the mean\n"
    )
    print(
        "| plan | objective | primal integral | bound | gap | objective lost by > 0.5 % |\n|---|---|---|---|---|---|"
    )
    for rival in rivals:
        gains: dict[str, list[float]] = defaultdict(list)
        for one in instances:
            all_of = [runs.of(one, seconds, what) for what in ("fixed", *rivals)]
            best = min(run.best for run in all_of)
            base, other = (worth(runs.of(one, seconds, what), best, seconds) for what in ("fixed", rival))
            for what, gain in other.gains(base).items():
                gains[what].append(gain)
        lost = sum(gain < -0.005 for gain in gains["objective"])
        cells = " | ".join(interval(gains[what]) for what in ("objective", "primal integral", "bound", "gap"))
        print(f"| {rival} | {cells} | {lost} of {len(instances)} |", flush=True)


def planned(instance: Instance) -> bool:
    """Return True if the fixed plan does not stay anyway."""
    problem, notes = instance.problem(), list[str]()
    allocated("learned", automatic(problem, 2.0, 1, lambda name, why: None), problem, 2.0, 1, notes.append)
    return not notes


def behind(runs: Runs, instances: Sequence[Instance], seconds: float, plans: Sequence[str]) -> None:
    """Print by family how far plans are behind the engine that is best on that family, on average, with all of the time."""
    losses: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for one in instances:
        kind = f"{one.family}, {'a core per node' if one.alone else 'several per core'}, {one.objective}"
        engines = [s.engine for s in automatic(one.problem(), seconds, 1, lambda name, why: None)]
        values = {e.name: runs.of(one, seconds, f"@{e.name}") for e in engines}
        for plan in plans:
            run = runs.of(one, seconds, plan)
            for e in engines:
                own = values[e.name]
                if e.finds != "bounds":
                    loss = run.best / own.best - 1 if own.best < math.inf else -1.0
                    losses[kind][f"{plan} objective"][e.name].append(loss)
                else:
                    ours, theirs = (max(0.0, r.bounds[-1][1]) if r.bounds else 0.0 for r in (run, own))
                    losses[kind][f"{plan} bound"][e.name].append((theirs - ours) / max(theirs, ours, 1e-12))
    print(f"\nbehind the best single engine of the family, {seconds:g} CPU s\n")
    heads = [f"{plan} {what}" for plan in plans for what in ("objective", "bound")]
    print(f"| family | problems | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}")
    for kind, of in sorted(losses.items()):
        cells, count = [], 0
        for head in heads:
            if not of[head]:
                cells.append("-")
                continue
            engine = max(of[head], key=lambda name: fmean(of[head][name]))
            count = max(count, len(of[head][engine]))
            cells.append(f"{100 * fmean(of[head][engine]):+.1f} % ({engine})")
        print(f"| {kind} | {count} | {' | '.join(cells)} |")


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of every run")
    parser.add_argument("--instances", type=int, default=70)
    parser.add_argument(
        "--first", type=int, default=240, help="number of the first problem; plans were tuned on those below"
    )
    parser.add_argument("--every", type=int, default=1, help="only every so many-th instance")
    parser.add_argument("--rivals", default="learned,constant,uniform")
    parser.add_argument("--alone", action="store_true", help="also every engine alone")
    parser.add_argument("--kept", type=Path)
    args = parser.parse_args()
    runs, rivals = Runs(args.kept), args.rivals.split(",")
    numbers = range(args.first, args.first + args.instances, args.every)
    instances = [one for one in map(held_out, numbers) if planned(one)]
    for one in instances:
        for what in ("fixed", *rivals):
            runs.of(one, args.seconds, what)
    table(runs, instances, args.seconds, rivals)
    for unseen in (False, True):
        some = [one for one in instances if (one.family == "mesh-rnd") is unseen]
        print(f"\n{'the family that was held out' if unseen else 'families of training'}:")
        if some:
            table(runs, some, args.seconds, rivals)
    if args.alone:
        behind(runs, instances, args.seconds, ("fixed", "learned"))


if __name__ == "__main__":
    main()
