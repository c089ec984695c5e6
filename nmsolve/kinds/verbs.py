"""The options of commands about an answer of any kind; ``nmsolve map`` and its like have their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.options import (
    AnswerOptions,
    Balance,
    Bind,
    Cluster,
    Constraints,
    Gap,
    Json,
    Library,
    Memory,
    Out,
    Quiet,
    Residence,
    Seed,
    Strict,
    TimeLimit,
    Turns,
    Workers,
)
from nmsolve.kinds.parameters import Option

# One option, one line:
# fmt: off

@dataclass(frozen=True)
class ScoreOptions(AnswerOptions):
    """Recompute every objective of a mapping, an assignment or a schedule from its files."""

    bind: Bind = None
    library: Library = None
    memory: Residence = None
    json: Json = False


@dataclass(frozen=True)
class VerifyOptions(AnswerOptions):
    """Check an answer independently: rules, objective, gap, routes, deadlock freedom, bounds."""

    constraints: Constraints = None
    balance: Balance = None
    bound: A[bool, Option("--bound", help="Also re-check the certificate of every bound.")] = False
    time_limit: A[str | None, Option("--time-limit", "-t", help="Time for the re-checks of --bound: 90, 90s or 5m. [default: "
                                     "as long as the run took, from 60s to 10m]")] = None
    trust_solver: A[bool, Option("--trust-solver", help="Exit with 0, not 6, if a bound rests only on a solver's "
                                 "word.")] = False
    prohibit_turns: Turns = None
    routes: A[Path | None, Option(help="Routes to check as well (flow-routes.json). "
                                  "[default: the one beside the mapping]")] = None
    memory: Residence = None
    strict: Strict = False
    json: Json = False


@dataclass(frozen=True)
class GapOptions(AnswerOptions):
    """Say what is better than an existing answer, from any tool, and prove what no answer can beat; the answer stays."""

    constraints: Constraints = None
    balance: Balance = None
    objective: A[str | None, Option(help="Objective. [default: the one in report.json beside the mapping, else hops]")] = None
    bind: Bind = None
    library: Library = None
    time_limit: TimeLimit = "300s"
    gap: Gap = None
    engines: A[str | None, Option(help="Comma-separated engines that prove bounds, without a search. [default: a search in 30 % "
                                  "of the time, then all engines that prove bounds]")] = None
    seed: Seed = 0
    workers: Workers = 1
    cluster: Cluster = None
    memory: Memory = None
    strict: Strict = False
    out: Out = Path("nmsolve-gap")
    quiet: Quiet = False
    json: Json = False


@dataclass(frozen=True)
class DrawOptions(AnswerOptions):
    """Draw one picture of a run, as SVG, PNG or PDF."""

    what: A[str | None, Option(help="Which picture: cores, links, resources of a mapping; stages, layers, use, timetable of a "
                               "pipeline; network, costs, memory, schedule of an assignment; links, directions, turns of routes; "
                               "schedule, use, peaks, resources, energy of a schedule; search of all. "
                               "[default: the first]")] = None
    out: A[Path, Option("--out", "-o", help="File of the picture: .svg, .png or .pdf.")] = Path("nmsolve.svg")
