"""The options of ``nmsolve map``, and of the commands about a mapping."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from typer import Option

from nmsolve.kinds.options import (
    Absolute,
    Balance,
    Bind,
    Chips,
    Cluster,
    Constraints,
    Engines,
    Gap,
    Graph,
    Json,
    Library,
    Machine,
    Mapping,
    MappingGraph,
    Memory,
    Multicast,
    Nodes,
    Occupied,
    Out,
    Pattern,
    Placement,
    Plain,
    Points,
    Proof,
    Residence,
    Seed,
    Strict,
    TimeLimit,
    Turns,
    Workers,
    WriteModel,
)
from nmsolve.model.mapping.objectives import OBJECTIVES

# One option, one line:
# fmt: off

@dataclass(frozen=True)
class MapOptions:
    """Map a graph onto a machine, and write the mapping, events and a report to the output folder."""

    graph: Graph
    nodes: Nodes = None
    multicast: Multicast = None
    machine: Machine = None
    chips: Chips = None
    time_limit: TimeLimit = "60s"
    gap: Gap = None
    seed: Seed = 0
    workers: Workers = 1
    cluster: Cluster = None
    objective: A[str | None, Option(help=f"One of {', '.join(OBJECTIVES)}; or several in order of priority: hops,max-link. "
                                    "[default: step-time where the machine has its figures, else hops]")] = None
    limit: A[list[str] | None, Option(help="Most of another objective, e.g. step-time=200us or hops=1e6 (repeatable).")] = None
    engines: Engines = None
    balance: Balance = None
    constraints: Constraints = None
    warm_start: A[Path | None, Option(help="Start from this mapping or run; nodes that now break a rule are moved.")] = None
    memory_of: A[Path | None, Option(help="Store of solved runs (.sqlite; made if there is none): a fifth of the time goes "
                                     "to relatives of this graph, and the answer is kept there.")] = None
    migration_budget: A[int | None, Option(help="Most nodes that may leave their core in --warm-start.")] = None
    mip_solver: A[str, Option(help="MIP solver that Pyomo calls.")] = "highs"
    write_model: WriteModel = None
    memory: Memory = None
    scratch: A[Path | None, Option(help="Folder for data that does not fit in memory. "
                                   "[default: the system's temporary folder]")] = None
    resume: A[bool, Option("--resume", help="Continue a killed run from its last finished level, or from what was open "
                           "of branch-bound (same problem and options).")] = False
    prohibit_turns: Turns = None
    route: A[str, Option(help="given: the machine's own routes; joint: chosen together with the mapping (small inputs); "
                         "chosen: after it; or xy, yx, west-first, north-last, negative-first, odd-even.")] = "given"
    pareto: A[str | None, Option(help="Compute the front of two objectives, e.g. hops,max-link, instead of one mapping.")] = None
    points: Points = 8
    occupied: Occupied = None
    pattern: Pattern = False
    absolute: Absolute = False
    strict: Strict = False
    out: Out = Path("nmsolve-out")
    plain: Plain = False
    json: Json = False


@dataclass(frozen=True)
class AnswerOptions:
    """A mapping with its graph and machine: the first options of every command about a mapping."""

    mapping: Mapping
    graph: MappingGraph = None
    machine: Machine = None
    chips: Chips = None
    placement: Placement = None
    nodes: Nodes = None
    multicast: Multicast = None
    pattern: Pattern = False
    absolute: Absolute = False
    strict: Strict = False


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
    """Prove how far an existing answer, from any tool, is from the best one; only bounds are computed."""

    constraints: Constraints = None
    balance: Balance = None
    objective: A[str | None, Option(help="Objective. [default: the one in report.json beside the mapping, else hops]")] = None
    bind: Bind = None
    library: Library = None
    time_limit: TimeLimit = "300s"
    gap: Gap = None
    engines: A[str | None, Option(help="Comma-separated engines. [default: all engines that prove bounds]")] = None
    seed: Seed = 0
    workers: Workers = 1
    cluster: Cluster = None
    memory: Memory = None
    strict: Strict = False
    out: Out = Path("nmsolve-gap")
    json: Json = False


@dataclass(frozen=True)
class DrawOptions(AnswerOptions):
    """Draw one picture of a run, as SVG, PNG or PDF."""

    what: A[str | None, Option(help="Which picture: cores, links, resources of a mapping; stages, layers, use, timetable of a "
                               "pipeline; network, costs, memory, schedule of an assignment; links, directions, turns of routes; "
                               "schedule, use, peaks, resources, energy of a schedule; search of all. "
                               "[default: the first]")] = None
    out: A[Path, Option("--out", "-o", help="File of the picture: .svg, .png or .pdf.")] = Path("nmsolve.svg")


@dataclass(frozen=True)
class FaultOptions:
    """Test random failures of links and cores: what survives by new routes or moved nodes, and at what cost."""

    mapping: Mapping
    links: A[int, Option(help="Links that fail in every trial, in both directions.")] = 1
    cores: A[int, Option(help="Cores that fail in every trial; no node can stay on them.")] = 0
    routers: A[bool, Option("--routers", help="The routers of failed cores fail too.")] = False
    trials: A[int, Option(help="Number of random trials.")] = 100
    migration_budget: A[int | None, Option(help="Most nodes that a repair may move. "
                                           "[default: the number on failed or cut-off cores]")] = None
    routes: A[Path | None, Option(help="Routes (flow-routes.json). [default: those beside the mapping, else XY]")] = None
    graph: MappingGraph = None
    machine: Machine = None
    chips: Chips = None
    placement: Placement = None
    nodes: Nodes = None
    multicast: Multicast = None
    time_limit: TimeLimit = "10m"
    seed: Seed = 0
    out: Out = Path("nmsolve-faults")
    json: Json = False


@dataclass(frozen=True)
class ExplainOptions:
    """Find out whether any mapping exists; if not, show a smallest set of limits that conflict."""

    graph: Graph
    nodes: Nodes = None
    multicast: Multicast = None
    machine: Machine = None
    chips: Chips = None
    occupied: Occupied = None
    constraints: Constraints = None
    balance: Balance = None
    pattern: Pattern = False
    absolute: Absolute = False
    strict: Strict = False
    time_limit: TimeLimit = "60s"
    seed: Seed = 0
    out: Proof = None
    json: Json = False


#: Of the command, and of ``nmsolve explain``.
OPTIONS, EXPLAIN = MapOptions, ExplainOptions
#: Where the names of its objectives are.
OBJECTIVE_TABLE = "model.mapping.objectives:OBJECTIVES"
