"""The options of every command, one dataclass each. ``--help`` shows its docstring and its fields, in this order.

Only types are imported: asking for help must stay cheap. ``main.py`` says which function runs with which options.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

import typer
from typer import Argument, Option

from nmsolve.model.mapping.objectives import OBJECTIVES


def _reading_too(limit: str) -> str:
    """Make the reading of files count against the time limit, and return the limit."""
    from nmsolve.cli import clock
    from nmsolve.cli.options import seconds
    from nmsolve.model.contained import read_by

    read_by(clock.end(seconds(limit)))
    return limit


# One option, one line:
# fmt: off

Graph = A[Path, Argument(help="Graph: .json, .graph, .hgr, .mtx, .dat, .npz, .nmz, .snn, .csv, .h5, .nir ...")]
Described = A[Path, Argument(help="A graph (.json, .graph, .hgr, .mtx, .dat, .nmz, ...), a model (.onnx) or networks that share "
                            "units (tasks.json, .sm, .rcp, .fjs, ...).")]
Bind = A[str | None, Option(help="ONNX: values of the symbols in input shapes, e.g. batch=8,seq=128.")]
Strict = A[bool, Option("--strict", help="Refuse what would be read with a warning; of ONNX models unknown operators.")]
Pattern = A[bool, Option("--pattern", help="Every stored entry of a matrix (.mtx, .npz of SciPy) weighs 1.")]
Absolute = A[bool, Option("--absolute", help="An entry of a matrix weighs its absolute value.")]
Library = A[Path | None, Option(help="Assignments: function library with measured times (`nmsolve profile` fills it).")]
Machine = A[str | None, Option("--machine", "-m", help="Preset (see `nmsolve hw list`), mesh:RxC[,chips] or a machine.toml. "
                               "[default: the machine that the graph file names]")]
Chips = A[str | None, Option(help="Chips on the board: a number or ROWSxCOLUMNS.")]
Nodes = A[Path | None, Option(help="Table of the nodes of an edge list (.csv): node,neurons,population,multicast,rate, ...")]
Multicast = A[bool | None, Option("--multicast", help="Every node sends one message per step to all its targets, which edge "
                                  "lists cannot say.")]
Constraints = A[Path | None, Option("--constraints", "-c", help="File of side constraints (constraints.json).")]
Balance = A[float | None, Option(help="Limit the nodes per core to (1 + BALANCE) * nodes / cores, rounded up.")]
Turns = A[str | None, Option(help="Turns that no route may take: a turn model (xy, west-first, ...), a list (WS,EN) or a .json "
                             "file.")]
Mapping = A[Path, Argument(help="mapping.json, output folder of `nmsolve map`, .csv (node,core), QAPLIB .sln, or a core per "
                           "line.")]
MappingGraph = A[Path | None, Option("--graph", "-g", help="Graph file. [default: the one named in report.json]")]
Placement = A[Path | None, Option(help="Core of every part, one per line, if the mapping is a partition (METIS .part.k).")]
TimeLimit = A[str, Option("--time-limit", "-t", callback=_reading_too, help="Wall-clock time: 90, 90s or 5m.")]
Gap = A[str | None, Option(help="Stop once this gap is proved: 0.05 or 5%.")]
Seed = A[int, Option(help="Seed for all random choices.")]
Workers = A[int, Option(min=1, help="Number of engines that run at the same time.")]
Cluster = A[str | None, Option(help="Ray cluster whose cores are the workers: auto (the one that this machine is part of), "
                               "HOST:PORT, or local.")]
Engines = A[str | None, Option(help="Comma-separated engines to run. [default: chosen automatically]")]
Memory = A[str | None, Option(help="Memory limit for all processes together, e.g. 2GiB; a .nmz graph that is too large stays "
                              "on disk.")]
Residence = A[str | None, Option("--memory", help="Memory limit, e.g. 2GiB; a .nmz graph that is too large stays on disk.")]
Occupied = A[list[Path] | None, Option(help="Output folder of an earlier run whose network already occupies the "
                                       "machine (repeatable).")]
WriteModel = A[Path | None, Option(help="Also write the exact models (.lp, .mps, CP-SAT proto) to this folder.")]
Points = A[int, Option(help="Number of points on the front.")]
Out = A[Path, Option("--out", "-o", help="Output folder.")]
Proof = A[Path | None, Option("--out", "-o", help="File for the solution found, or for the proof of the conflict.")]
Plain = A[bool, Option("--plain", help="A page of still pictures, without a script to explore it.")]
Json = A[bool, Option("--json", help="Print JSON to stdout, one object per line.")]


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
class ResumeOptions:
    """Continue an earlier run of map, route, pipeline, assign or schedule from its problem, options, best answer and proofs."""

    run: A[Path, Argument(help="Output folder of the earlier run.")]
    time_limit: TimeLimit = "60s"
    gap: Gap = None
    seed: Seed = 0
    workers: Workers = 1
    cluster: Cluster = None
    engines: Engines = None
    memory: Memory = None
    out: A[Path | None, Option("--out", "-o", help="Output folder. [default: the folder of the earlier run]")] = None
    json: Json = False


@dataclass(frozen=True)
class SearchOptions:
    """How routes, stages, assignments and schedules are searched for."""

    time_limit: TimeLimit = "60s"
    gap: Gap = None
    seed: Seed = 0
    workers: Workers = 1
    cluster: Cluster = None
    engines: Engines = None
    write_model: WriteModel = None
    memory: Memory = None
    plain: Plain = False


@dataclass(frozen=True)
class ConflictOptions:
    """How a conflict between limits is searched for."""

    time_limit: TimeLimit = "60s"
    seed: Seed = 0
    out: Proof = None
    json: Json = False


@dataclass(frozen=True)
class RouteProblemOptions(AnswerOptions):
    """Which routes are allowed for a mapping."""

    turns: A[str, Option(help="chosen: prohibited turns are chosen too; or a turn model (xy, west-first, ...), turns to "
                         "prohibit (WS,EN) or a .json file.")] = "chosen"
    form: A[str, Option(help="What decides the next link: flow, source (one tree per core) or destination (one table by "
                        "target).")] = "flow"
    table_limit: A[int | None, Option(min=0, help="Limit on the routing table entries of every core.")] = None
    detour: A[int, Option(min=0, help="Number of links by which a route may exceed a shortest one.")] = 0
    channels: A[int, Option(min=1, help="Number of virtual channels per link.")] = 1


@dataclass(frozen=True)
class RouteOptions(SearchOptions, RouteProblemOptions):
    """Choose routes and prohibited turns together for a mapping: least link load, no deadlock, with a bound."""

    objective: A[str, Option(help="In order of priority: max-link, total-link, turns, reward.")] = "max-link,total-link,turns"
    warm_start: A[Path | None, Option(help="Start from these routes (flow-routes.json, or its folder).")] = None
    pareto: A[str | None, Option(help="Compute the front of two objectives, e.g. max-link,total-link.")] = None
    points: Points = 8
    out: Out = Path("nmsolve-routes")
    json: Json = False


@dataclass(frozen=True)
class PipelineProblemOptions:
    """A network, and which stages it may be split into."""

    model: A[Path, Argument(help="Model (.onnx), or cost graph in the format of msr-fiddle/dnn-partitioning (.json).")]
    cores: A[int | None, Option("--cores", "-n", min=1, help="Number of cores.")] = None
    machine: A[str | None, Option("--machine", "-m", help="Take cores and figures from a preset, mesh:RxC[,chips] or a "
                                  "machine.toml.")] = None
    chips: Chips = None
    stages: A[int | None, Option("--stages", "-k", min=1, help="Most stages allowed. [default: as many as fit]")] = None
    exact_stages: A[bool, Option("--exact-stages", help="Use exactly --stages stages, not fewer.")] = False
    use_all: A[bool, Option("--use-all", help="Leave no core without a stage.")] = False
    core_memory: A[str | None, Option(help="Memory per core, e.g. 2MiB. [default: the machine's]")] = None
    offchip_bandwidth: A[str | None, Option(help="Bandwidth of off-chip memory for all cores together, e.g. 25.6GB/s; what its "
                                            "cores cannot hold is moved in every run. 0: none. [default: the machine's]")] = None
    group_sync: A[str | None, Option(help="Time in which the cores of a group meet before a layer, e.g. 500ns; what they "
                                     "exchange for it counts then, too. [default: the machine's, else neither counts]")] = None
    group_border: A[str | None, Option(help="What a group of cores takes in and gives out through: one core, or a side of the "
                                       "square of its cores. [default: the machine's, else core]")] = None
    overlap: A[bool, Option("--overlap", help="Let cores compute and transfer at the same time.")] = False
    split: A[str | None, Option(help="chain: stages follow the model's order; contiguous: data only flow forwards; any: no rule. "
                                "[default: chain for .onnx, contiguous for .json]")] = None
    bind: Bind = None
    branch: A[str | None, Option(help="How often the condition of an If holds, e.g. exit_1=0.3,exit_2=both; both: both branches "
                                 "count in full; *: all others. [default: 0.5]")] = None
    strict: Strict = False
    objective: A[str | None, Option(help="period: the slowest stage; batch: the time of --batches micro-batches; energy: that of "
                                         "one. [default: period; batch with --training]")] = None
    training: A[str | None, Option(help="Train the model by this schedule, 1f1b or gpipe: backward passes count, and stages keep "
                                        "what these need. An ONNX training graph has its own backward pass.")] = None
    replicas: A[int, Option(min=1, help="Most replicas of a stage: groups of cores that each hold all of it and take "
                                        "micro-batches in turns.")] = 1
    batches: A[int, Option("--batches", "-B", min=1, help="Number of micro-batches whose total time is reported, and with "
                                                          "objective batch minimised; in training those of a step.")] = 8
    recompute: A[bool, Option("--recompute", help="In training: stages may run forward again what they cannot keep.")] = False
    weight_copies: A[float | None, Option(help="In training: memory of the weights with their gradients and what the optimiser "
                                               "keeps, in copies of the weights. [default: 4, as for Adam]")] = None


@dataclass(frozen=True)
class PipelineOptions(SearchOptions, PipelineProblemOptions):
    """Split a network into stages on groups of cores for least time of the slowest stage or a batch, or energy, with a bound."""

    warm_start: A[Path | None, Option(help="Start from this plan (plan.json, or its folder).")] = None
    place: A[bool, Option("--place", help="Also place the stages on the machine's cores (needs --machine).")] = False
    write_onnx: A[Path | None, Option(help="Write a copy of the model that states the stage of every operator.")] = None
    trace: A[bool, Option("--trace", help="Also write trace.json, which Perfetto and chrome://tracing open.")] = False
    pareto: A[str | None, Option(help="Compute the front of two of period (the slowest stage), cores, stages and core-memory, "
                                 "e.g. period,cores, instead of one plan.")] = None
    points: Points = 8
    out: Out = Path("nmsolve-pipeline")
    json: Json = False


@dataclass(frozen=True)
class AssignProblemOptions:
    """A network, the processors it runs on, and what is required of the assignment."""

    model: A[Path, Argument(help="Model (.onnx), or a cost network in the format of the iopddl contest (.json, .json.gz).")]
    machine: A[str | None, Option("--machine", "-m", help="Processors: a preset (see `nmsolve hw list`) or a machine.toml with "
                                  "[[processor]] tables.")] = None
    bind: A[str | None, Option(help="Values of symbols in input shapes and of trip counts, e.g. batch=8,seq=128.")] = None
    strict: Strict = False
    library: Library = None
    constraints: A[Path | None, Option("--constraints", "-c", help="File of pins and limits: pin, forbid, together, "
                                       "memory (.json).")] = None


@dataclass(frozen=True)
class AssignOptions(SearchOptions, AssignProblemOptions):
    """Decide for every operator of a network which processor runs it, with a proof or a bound, and write its programs."""

    objective: A[str, Option(help="latency, energy, load or makespan; or several in order of priority: "
                             "latency,energy.")] = "latency"
    warm_start: A[Path | None, Option(help="Start from this assignment (assignment.json, or its folder).")] = None
    run: A[bool, Option("--run", help="Also execute the programs with onnxruntime and compare them with the model.")] = False
    pareto: A[str | None, Option(help="Compute the front of two objectives, e.g. latency,energy, instead of one "
                                 "assignment.")] = None
    points: Points = 8
    out: Out = Path("nmsolve-assign")
    json: Json = False


@dataclass(frozen=True)
class SimulateOptions:
    """Simulate the network on chip flit by flit: latency, throughput, saturation and energy of a mapping or a pattern."""

    mapping: A[Path | None, Argument(help="mapping.json or the output folder of `nmsolve map`; not needed with --pattern, or "
                                     "--trace and --machine.")] = None
    graph: MappingGraph = None
    machine: Machine = None
    chips: Chips = None
    placement: Placement = None
    nodes: Nodes = None
    multicast: Multicast = None
    routes: A[Path | None, Option(help="Routes (flow-routes.json). [default: those beside the mapping, else --route xy]")] = None
    route: A[str | None, Option(help="Turn model (xy, west-first, ...) to route by, instead of --routes.")] = None
    adaptive: A[bool, Option("--adaptive", help="Let routers choose among the shortest paths of the turn model.")] = False
    pattern: A[str | None, Option(help="Pattern instead of a mapping: uniform, transpose, hotspot, ...")] = None
    load: A[float | None, Option(help="Flits per cycle that the busiest core (pattern: every core) sends. "
                                 "[default: whole steps]")] = None
    steps: A[int, Option(min=1, help="Number of steps of the network, without --load.")] = 1
    period: A[int, Option(min=0, help="Cycles from one step to the next; a trace's first column then counts steps.")] = 0
    trace: A[Path | None, Option(help="CSV file of messages: step,source,targets (separated by spaces),count.")] = None
    sweep: A[bool, Option("--sweep", help="Measure latency over load, and find the load at which the network saturates.")] = False
    config: A[str, Option(help="Router: a, b, spike, or a .toml file of its parameters.")] = "spike"
    cycles: A[int | None, Option(min=1, help="Cycles to measure; for a trace, the most cycles.")] = None
    warmup: A[int, Option(min=0, help="Cycles to run before measuring.")] = 3000
    time_limit: TimeLimit = "60s"
    seed: Seed = 0
    out: Out = Path("nmsolve-simulation")
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
class DrawOptions(AnswerOptions):
    """Draw one picture of a run, as SVG, PNG or PDF."""

    what: A[str | None, Option(help="Which picture: cores, links, resources of a mapping; stages, layers, use, timetable of a "
                               "pipeline; network, costs, memory, schedule of an assignment; links, directions, turns of routes; "
                               "schedule, use, peaks, resources, energy of a schedule; search of all. "
                               "[default: the first]")] = None
    out: A[Path, Option("--out", "-o", help="File of the picture: .svg, .png or .pdf.")] = Path("nmsolve.svg")


@dataclass(frozen=True)
class WatchOptions:
    """Serve the page of a run, also while it goes on, to a browser on this machine (127.0.0.1 alone), until Ctrl-C."""

    run: A[Path, Argument(help="Output folder of the run.")]
    port: A[int, Option(min=0, max=65535, help="Port; 0: any free one.")] = 0


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
class BenchOptions:
    """Run methods on suites of instances, keep every run in a database, and compare them; can be resumed at any time."""

    suites: A[list[str], Argument(help="qaplib, mesh, snn, peers, routes, pipelines, assignments, schedules, or files, folders "
                                  "(with best_known.csv, if there is one).")]
    methods: A[str | None, Option(help="Comma-separated methods: auto, an engine, engines joined by + to run together, or peers "
                                  "(other tools that are installed). [default: auto; of the suite peers auto,peers]")] = None
    seeds: A[int, Option(min=1, max=10_000, help="Run every method with seeds 1 to SEEDS.")] = 10
    time_limit: A[str, Option("--time-limit", "-t", help="Wall-clock time of a run: 90, 90s or 5m.")] = "60s"
    workers: A[int, Option(min=1, help="Number of runs at the same time, one core each.")] = 1
    only: A[str | None, Option(help="Run only these instances, e.g. 'sko*,nug12'.")] = None
    machine: Machine = None
    chips: Chips = None
    balance: Balance = None
    objective: A[str | None, Option(help="Objective for folders. [default: hops; of routes max-link]")] = None
    problem: A[str | None, Option(help="What folders hold: map (graphs), route (output folders of map), pipeline (models, cost "
                                  "graphs), assign (models, cost networks) or schedule (.rcp, .sm, ...). [default: map]")] = None
    set: A[list[str] | None, Option(help="For folders: an option of that command, e.g. cores=16 (repeatable).")] = None
    out: A[Path, Option("--out", "-o", help="Output folder; runs that it already holds are not repeated.")] = Path("bench-out")
    page: A[Path | None, Option(help="Also write the results as Markdown to this file.")] = None
    cluster: A[str | None, Option(help="Ray cluster on whose cores the runs go on, in place of --workers: auto, HOST:PORT or "
                                  "local.")] = None
    json: Json = False


@dataclass(frozen=True)
class BenchLearnOptions:
    """Compare learned parts with what they would replace, at equal CPU time, on graphs they were not trained on."""

    parts: A[list[str] | None, Argument(help="Learned parts, e.g. published. [default: all]")] = None
    graphs: A[int, Option(min=4, max=4000, help="Graphs: a quarter from each of four families, one of them held out.")] = 20
    seeds: A[int, Option(min=1, max=1000, help="Run every rival on every graph with seeds 1 to SEEDS.")] = 3
    seconds: A[float | None, Option(min=0.001, help="CPU seconds of a run. [default: what each part was measured with]")] = None
    out: A[Path, Option("--out", "-o", help="Folder of finished comparisons, which are not repeated.")] = Path("bench-learn")
    page: A[Path | None, Option(help="Also write the tables into this Markdown file, between its marks.")] = None
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
class ExplainRouteOptions(ConflictOptions, RouteProblemOptions):
    """Find out whether a mapping has any routes; if not, show a smallest set of limits that conflict."""


@dataclass(frozen=True)
class ExplainPipelineOptions(ConflictOptions, PipelineProblemOptions):
    """Find out whether a network can be split into stages; if not, show a smallest set of limits that conflict."""


@dataclass(frozen=True)
class ExplainAssignOptions(ConflictOptions, AssignProblemOptions):
    """Find out whether a network can be assigned at all; if not, show a smallest set of pins and limits that conflict."""


@dataclass(frozen=True)
class InfoOptions:
    """Describe a graph file (nodes, messages, resources, traffic, the machine it names) or the operators of a .onnx model."""

    graph: Described
    nodes: Nodes = None
    multicast: Multicast = None
    memory: Residence = None
    bind: Bind = None
    pattern: Pattern = False
    absolute: Absolute = False
    strict: Strict = False
    json: Json = False


@dataclass(frozen=True)
class ConvertOptions:
    """Convert a graph file to another format."""

    source: Graph
    target: A[Path, Argument(help="File to write; its extension decides the format.")]
    nodes: Nodes = None
    multicast: Multicast = None
    rates: A[list[Path] | None, Option(help="Recorded spikes, which become the rates: text (id,time), SONATA, NWB, NIX or "
        "NetPyNE (repeatable).")] = None
    step: A[float | None, Option(help="Milliseconds of a step, for --rates. [default: 1000]")] = None
    recorded: A[float | None, Option(help="Seconds that were recorded, if the file of --rates does not say.")] = None
    pattern: Pattern = False
    absolute: Absolute = False
    strict: Strict = False


@dataclass(frozen=True)
class GenerateOptions:
    """Generate a network: the Potjans-Diesmann microcircuit, layered networks, reservoirs, mesh instances, tasks, assignments.

    The parameters of the kind follow as options, e.g. `nmsolve generate microcircuit --scale 0.05`.
    """

    context: typer.Context
    kind: A[str, Argument(help="What to generate; `nmsolve generate list` shows all kinds and their parameters.")]
    out: A[Path | None, Option("--out", "-o", help="File to write. [default: KIND.json]")] = None
    seed: A[int, Option(help="Seed for all random choices.")] = 1


@dataclass(frozen=True)
class ProfileOptions:
    """Measure what every operator of a model costs on this host with onnxruntime, and write it into a function library.

    A run that was cut short goes on where it ended: what the library has is not measured again.
    """

    model: A[Path, Argument(help="Model (.onnx); weights may be missing.")]
    library: A[Path, Option("--library", "-l", help="The function library, made if it does not exist.")] = Path("library.db")
    threads: A[str, Option(help="Numbers of threads to measure with, e.g. 1,2; each stands for a processor.")] = "1"
    bind: Bind = None
    strict: Strict = False
    processor: A[str, Option(help="Name of this host in the library; a machine file's processors name it, too.")] = "host"
    runs: A[int, Option(min=3, max=10000, help="Most runs of every node.")] = 20
    seconds: A[float, Option(min=0.001, max=3600, help="No more runs of a node begin after that.")] = 0.3
    spread: A[float, Option(help="Refuse a node whose median time is more than this many times its low quantile.")] = 3.0
    fused: A[bool, Option("--fused/--no-fused", help="Also run the model whole, plain and optimised: what fusion gains.")] = True
    integers: A[bool, Option("--integers/--no-integers", help="Also measure float products as products of whole "
                             "numbers.")] = True
    again: A[bool, Option("--again", help="Measure also what the library has.")] = False
    json: Json = False


@dataclass(frozen=True)
class DoctorOptions:
    """Print the versions of everything that nmsolve needs, and report problems."""

    warm: A[bool, Option("--warm", help="Compile and cache all kernels now.")] = False
    json: Json = False


@dataclass(frozen=True)
class ListOptions:
    """List the chip presets."""

    json: Json = False


@dataclass(frozen=True)
class ShowOptions:
    """Show a machine: every figure with its unit and source; unverified figures are marked."""

    machine: A[str, Argument(help="Preset, mesh:RxC[,chips] or machine.toml.")]
    chips: Chips = None
    json: Json = False
    strict: Strict = False

# fmt: on
