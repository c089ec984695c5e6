"""Automatic mode with other engines before it against without, or against that of another checkout: paired runs of equal time.

    python bench/starts.py KIND ENGINES [ENGINES ...] [--limits 2,5] [--base CHECKOUT] [--only WORD,WORD] [--kept FILE]

ENGINES is what ``--engines`` takes, e.g. ``auto,m2`` (``auto`` with --base). Compile the kernels first (``make warm``). Every run
has a process of its own, one thread, and a clock that counts its CPU seconds, so that other work on the machine costs nothing.
Difference: (with - without) / without, on 36 to 48 instances of a kind; the interval of its mean is
SciPy's bootstrap (BCa, 95 %).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from figures import ONE_THREAD
from scipy.stats import bootstrap
from sparse import box, delaunay, geometric, random_graph, small_world, windows

from nmsolve.hw.machines import load_machine
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.solvers.mapping.api import solve

#: A run: what solves the instance, given engines and seconds.
Solve = Callable[..., Any]


class Case(NamedTuple):
    """An instance: what makes its solver."""

    name: str
    make: Callable[[], Solve]


class Plan(NamedTuple):
    """Engines of a run, and the checkout whose code runs (None: this one)."""

    engines: str
    code: Path | None = None


class Reached(NamedTuple):
    """Objective of a run (inf: none, nan: its engines refuse the instance), and CPU seconds of the engines in question."""

    objective: float
    before: float


def mapping(graph: Callable[[], LogicGraph], board: str, objective: str, room: int) -> Solve:
    """Return the solver of a mapping; ``room``: nodes per core, 0 for what a balance of 0.03 gives."""
    made, machine = graph(), load_machine(board)
    limit = room or default_node_limit(made, machine, 0.03)
    return partial(solve, MappingProblem(made, machine, objective, node_limit=limit))


def networks() -> Iterator[tuple[str, Callable[[], LogicGraph], str]]:
    """Yield networks of 500 to 8,000 nodes with objectives."""
    for n in (2000, 8000):
        for seed in (1, 2):
            yield f"delaunay-{n}-{seed}", partial(delaunay, n, seed), "hops"
            yield f"geometric-{n}-{seed}", partial(geometric, n, seed), "hops"
        yield f"small-world-{n}", partial(small_world, n, 8), "hops"
        yield f"random-{n}", partial(random_graph, n, 6), "hops"
    yield from ((f"box-{side}", partial(box, side), "hops") for side in (12, 20))
    yield from ((f"windows-{k}x{s}", partial(windows, k, s), "hops") for k, s in ((8, 16), (20, 20)))
    for n in (1000, 2000, 4000):
        for seed in (1, 2):
            kind = partial(generate, "snn", nodes=n, synapses=20 * n, layers=6, sigma=0.2, seed=seed)
            yield f"snn-{n}-{seed}", partial(kind, directed=0), "hops"
            yield f"snn-{n}-{seed}-multicast", partial(kind, directed=1), "multicast-hops"
            yield f"snn-{n}-{seed}-cut", partial(kind, directed=0), "cut"
    for family in ("geo", "layered", "rnd", "comm"):
        for n in (500, 1000):
            yield f"mesh-{family}-{n}", partial(generate, f"mesh-{family}", nodes=n), "hops"


def messages() -> Iterator[tuple[str, Callable[[], LogicGraph], str]]:
    """Yield networks whose messages are charged once for many targets."""
    made: list[tuple[str, Callable[[], LogicGraph]]] = []
    for seed in (1, 2):
        for n in (500, 1000, 2000, 4000, 8000):
            wide = partial(
                generate, "snn", nodes=n, synapses=20 * n, layers=6, sigma=0.2, directed=1, seed=seed
            )
            made.append((f"snn-{n}-{seed}", wide))
        for n in (2000, 8000):
            near = partial(generate, "snn", nodes=n, synapses=30 * n, directed=1, seed=seed)
            made.append((f"snn-near-{n}-{seed}", near))
            made.append(
                (
                    f"reservoir-{n // 2}-{seed}",
                    partial(generate, "reservoir", nodes=n // 2, fan=40, seed=seed),
                )
            )
        made.append((f"microcircuit-{seed}", partial(generate, "microcircuit", scale=0.02, seed=seed)))
    yield from (
        (f"{name}-{aim}", graph, aim) for name, graph in made for aim in ("multicast-hops", "connectivity")
    )


def many(board: str) -> list[Case]:
    """Return networks of which many nodes share a core."""
    return [Case(name, partial(mapping, graph, board, aim, 0)) for name, graph, aim in networks()]


def one(boards: Sequence[tuple[int, str]]) -> list[Case]:
    """Return networks with one node per core."""
    return [
        Case(
            f"{family}-{n}-{seed}",
            partial(mapping, partial(generate, f"mesh-{family}", nodes=n, seed=seed), board, "hops", 1),
        )
        for n, board in boards
        for family in ("geo", "layered", "rnd", "comm")
        for seed in (1, 2, 3)
    ]


def cases(kind: str) -> list[Case]:
    """Return the instances of a kind."""
    if kind == "many":
        return many("mesh:8x8")
    if kind == "chips":
        return many("mesh:4x4,2x2")
    if kind.startswith("messages"):
        board = "mesh:8x8" if kind == "messages" else "mesh:4x4,2x2"
        return [Case(name, partial(mapping, graph, board, aim, 0)) for name, graph, aim in messages()]
    if kind == "one":
        return one([(64, "mesh:8x8"), (100, "mesh:10x10"), (144, "mesh:12x12"), (256, "mesh:16x16")])
    return one([(64, "mesh:4x4,2x2"), (144, "mesh:6x6,2x2"), (256, "mesh:8x8,2x2")])


KINDS = ("many", "chips", "messages", "messages-chips", "one", "one-chips")


def work(kind: str, name: str, engines: str, seconds: float) -> None:
    """One run, in a process of its own; prints what it reached."""
    call = next(case for case in cases(kind) if case.name == name).make()
    clock.count_cpu()
    try:
        result = call(time_limit=seconds, engines=None if engines == "auto" else engines.split(","), seed=1)
    except InputError:  # the engines refuse the instance
        print("nan 0")
        return
    names = set(engines.split(","))
    spent = sum(e.cpu_seconds for e in result.engines if e.engine in names)
    print("inf" if result.objective is None else result.objective, spent)


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
