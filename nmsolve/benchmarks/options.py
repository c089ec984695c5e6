"""The options of ``nmsolve bench``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.options import Balance, Chips, Json, Machine, number_of_workers
from nmsolve.kinds.parameters import Argument, Option
from nmsolve.kinds.registry import FOLDERS, listed, options_of

#: What instances in folders are, by the name of the command that solves them.
HELD = listed(f"{name} ({options_of(name).BENCHED})" for name in FOLDERS)

# One option, one line:
# fmt: off

@dataclass(frozen=True)
class BenchOptions:
    """Run methods on suites of instances, keep every run in a database, and compare them; can be resumed at any time."""

    suites: A[list[str], Argument(help="qaplib, mesh, snn, peers, routes, pipelines, assignments, schedules, or files, folders "
                                  "(with best_known.csv, if there is one).")]
    methods: A[str | None, Option(help="Comma-separated methods: auto, an engine, engines joined by + to run together, or peers "
                                  "(other tools that are installed). [default: auto; of the suite peers auto,peers]")] = None
    seeds: A[int, Option(min=1, max=10_000, help="Run every method with seeds 1 to SEEDS.")] = 10
    time_limit: A[str, Option("--time-limit", "-t", help="Wall-clock time of a run: 90, 90s or 5m.")] = "60s"
    workers: A[int, Option(parser=number_of_workers, metavar="N|all", help="Number of runs at the same time, one core each; all: "
                           "on every core of this machine.")] = 1
    only: A[str | None, Option(help="Run only these instances, e.g. 'sko*,nug12'.")] = None
    machine: Machine = None
    chips: Chips = None
    balance: Balance = None
    objective: A[str | None, Option(help="Objective for folders. [default: hops; of routes max-link]")] = None
    problem: A[str | None, Option(help=f"What folders hold: {HELD}. [default: map]")] = None
    set: A[list[str] | None, Option(help="For folders: an option of that command, e.g. cores=16 (repeatable).")] = None
    out: A[Path, Option("--out", "-o", help="Output folder; runs that it already holds are not repeated."
        )] = Path("nmsolve-bench")
    page: A[Path | None, Option(help="Also write the results as Markdown to this file.")] = None
    cluster: A[str | None, Option(help="Ray cluster on whose cores the runs go on, in place of --workers: auto, HOST:PORT or "
                                  "local.")] = None
    json: Json = False
