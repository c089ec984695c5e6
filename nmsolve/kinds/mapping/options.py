"""The options of ``nmsolve map``, and of the commands about a mapping."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.options import (
    Absolute,
    AnswerOptions,
    Balance,
    Chips,
    Cluster,
    Constraints,
    Engines,
    Gap,
    Graph,
    Json,
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
    Quiet,
    Seed,
    Strict,
    TimeLimit,
    TrainOptions,
    Turns,
    Workers,
    WriteModel,
    published,
)
from nmsolve.kinds.parameters import Argument, Option
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
    method: A[str | None, published(m1="learned placement", m2="multilevel, bisection, forces")] = None
    balance: Balance = None
    constraints: Constraints = None
    warm_start: A[Path | None, Option(help="Start from this mapping or run; nodes that now break a rule are moved.")] = None
    migration_budget: A[int | None, Option(help="Most nodes that may leave their core in --warm-start.")] = None
    mip_solver: A[str, Option(help="MIP solver that Pyomo calls.")] = "highs"
    write_model: WriteModel = None
    memory: Memory = None
    scratch: A[Path | None, Option(help="Folder for data that does not fit in memory. "
                                   "[default: the system's temporary folder]")] = None
    resume: A[bool, Option("--resume", help="Continue a killed run from its last finished level, or from what was open "
                           "of branch-bound (same problem and options).")] = False
    prohibit_turns: Turns = None
    reward: A[str | None, Option(help="Weights of the terms of --objective reward: vertical=2,deadlock=0,hops=0.5,faults=0.1, "
                                 "others as published; or a file of these and of terms of your own (.toml).")] = None
    route: A[str, Option(help="given: the machine's own routes; joint: chosen together with the mapping (small inputs); "
                         "chosen: after it; or xy, yx, west-first, north-last, negative-first, odd-even.")] = "given"
    pareto: A[str | None, Option(help="Compute the front of two objectives, e.g. hops,max-link, instead of one mapping.")] = None
    points: Points = 8
    occupied: Occupied = None
    pattern: Pattern = False
    absolute: Absolute = False
    strict: Strict = False
    out: Out = Path("nmsolve-map")
    plain: Plain = False
    quiet: Quiet = False
    json: Json = False


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


@dataclass(frozen=True)
class ExportOptions(AnswerOptions):
    """Write a mapping as input files of another tool, and print what that tool should count."""

    to: A[str, Option(help="Target tool: sanafe (SANA-FE's arch.yaml and network.yaml), pacman (SpiNNaker: placements, routing "
                      "tables, keys), lava (cores of Loihi), csv (nodes and cores), dot (Graphviz), graphml, perfetto (any "
                      "run's search).")] = "sanafe"
    out: Out = Path("nmsolve-export")
    json: Json = False


@dataclass(frozen=True)
class CompareOptions:
    """Compare two mappings of one network: every objective, recomputed, and a page with a slider between both."""

    one: Mapping
    other: A[Path, Argument(help="The same of the other run.")]
    graph: MappingGraph = None
    machine: Machine = None
    out: A[Path, Option("--out", "-o", help="File of the page.")] = Path("nmsolve-compare.html")
    json: Json = False


@dataclass(frozen=True)
class TrainM1Options(TrainOptions):
    """Train the policy of method M1 (engine m1-policy): logical nodes to the cores of a processor."""

    family: A[str, Option(help="Generators of training graphs, with commas.")] = (
        "mesh-geo,mesh-comm,mesh-layered"
    )
    side: A[int, Option(min=2, max=16, help="Rows and columns of the processor.")] = 8
    algorithm: A[str, Option(help="ppo (clipped ratio) or gradient (plain policy gradient).")] = "ppo"
    mean: A[bool, Option("--mean", help="A node's weights are means per channel, not sums.")] = False
    distance: A[str, Option(help="To the nearest free core: manhattan or euclidean.")] = "manhattan"
    reward: A[
        str,
        Option(help="Weights of the reward's terms, or a file of terms, as of `map`."),
    ] = "hops=4"
    updates: A[
        int, Option(min=0, help="End after this many updates; with the same seed this gives the same file.")
    ] = 240
    out: A[Path, Option("--out", "-o", help="Model file.")] = Path("m1.safetensors")


@dataclass(frozen=True)
class TrainDualsOptions(TrainOptions):
    """Train what a bound's multipliers begin with (engines joint, parts, cover); needs no torch."""

    bound: A[str, Option(help="joint, parts or cover.")] = "joint"
    family: A[str, Option(help="Generators of training graphs, with commas.")] = (
        "mesh-geo,mesh-comm,mesh-layered"
    )
    nodes: A[str, Option(help="Nodes of training graphs, with commas.")] = "64,256"
    pool: A[int, Option(min=1, help="Training graphs.")] = 192
    out: A[Path, Option("--out", "-o", help="Model file.")] = Path("duals.safetensors")


@dataclass(frozen=True)
class BenchLearnOptions:
    """Compare learned parts with what they would replace, at equal CPU time, on graphs they were not trained on."""

    parts: A[list[str] | None, Argument(help="Learned parts, e.g. published. [default: all]")] = None
    graphs: A[int, Option(min=4, max=4000, help="Graphs: a quarter from each of four families, one of them held out.")] = 20
    seeds: A[int, Option(min=1, max=1000, help="Run every rival on every graph with seeds 1 to SEEDS.")] = 3
    seconds: A[float | None, Option(min=0.001, help="CPU seconds of a run. [default: what each part was measured with]")] = None
    out: A[Path, Option("--out", "-o", help="Folder of finished comparisons, which are not repeated."
        )] = Path("nmsolve-bench-learn")
    page: A[Path | None, Option(help="Also write the tables into this Markdown file, between its marks.")] = None
    json: Json = False


#: Of the command, and of ``nmsolve explain``.
OPTIONS, EXPLAIN = MapOptions, ExplainOptions
#: Where the names of its objectives are.
OBJECTIVE_TABLE = "model.mapping.objectives:OBJECTIVES"
#: What folders of instances hold, for ``nmsolve bench``.
BENCHED = "graphs"
