"""Every command's options as typed, one dataclass each: its docstring and fields are what ``--help`` shows, in this order.

Only types are imported: asking for help must stay cheap. ``main.py`` says which function runs with which options.
"""

from __future__ import annotations

import shlex
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated as A
from typing import Any

import typer
from typer import Argument, Option

from nmsolve.model.mapping.objectives import OBJECTIVES


def _reading_too(limit: str) -> str:
    """Reading counts against the time limit, and ends with it."""
    from nmsolve.cli import clock
    from nmsolve.cli.options import seconds
    from nmsolve.model.contained import read_by

    read_by(clock.end(seconds(limit)))
    return limit


# One option, one line:
# fmt: off

Graph = A[Path, Argument(help="Graph: .json, .graph, .hgr, .mtx, .dat, .npz, .nmz, .snn, .csv, .h5, .nir ...")]
Described = A[Path, Argument(help="A graph (.json, .graph, .hgr, .mtx, .dat, .nmz, ...) or a model (.onnx).")]
Bind = A[str | None, Option(help="ONNX: numbers for symbols of the inputs' shapes, e.g. batch=8,seq=128.")]
Strict = A[bool, Option("--strict", help="ONNX: refuse operators that are not known.")]
Machine = A[str | None, Option("--machine", "-m", help="Preset (see `nmsolve hw list`), mesh:RxC[,chips] or a machine.toml. "
                               "[default: the one the graph file names]")]
Chips = A[str | None, Option(help="Chips on the board: a number or ROWSxCOLUMNS.")]
Constraints = A[Path | None, Option("--constraints", "-c", help="Side constraints (constraints.json).")]
Balance = A[float | None, Option(help="Node capacity of a core: (1 + BALANCE) * nodes / cores, rounded up.")]
Turns = A[str | None, Option(help="Turns that no route may take: a turn model (xy, west-first, ...), turns (WS,EN), or a .json "
                             "file of them.")]
Mapping = A[Path, Argument(help="mapping.json, the output folder of `nmsolve map`, QAPLIB .sln, or a core per line.")]
MappingGraph = A[Path | None, Option("--graph", "-g", help="Graph file. [default: the one named in report.json]")]
Placement = A[Path | None, Option(help="Core of every part, one per line; the mapping is a file of parts (METIS .part.k).")]
TimeLimit = A[str, Option("--time-limit", "-t", callback=_reading_too, help="Wall time: 90, 90s or 5m.")]
Gap = A[str | None, Option(help="Stop at this proven gap: 0.05 or 5%.")]
Seed = A[int, Option(help="Seed of all random choices.")]
Workers = A[int, Option(min=1, help="Engines that run at the same time.")]
Engines = A[str | None, Option(help="Comma-separated engines instead of automatic choice.")]
Memory = A[str | None, Option(help="Most memory of all processes together, e.g. 2GiB; .nmz graphs too large for it stay on "
                              "disk.")]
Residence = A[str | None, Option("--memory", help="A .nmz graph too large for it stays on disk, e.g. 2GiB.")]
Occupied = A[list[Path] | None, Option(help="Output folder of an earlier run whose network is on the machine already "
                                       "(repeatable).")]
Out = A[Path, Option("--out", "-o", help="Output folder.")]
Json = A[bool, Option("--json", help="Typed JSON on stdout, one object per line.")]


@dataclass(frozen=True)
class MapOptions:
    """Map a graph onto a machine; writes mapping, events and report to the output folder."""

    graph: Graph
    machine: Machine = None
    chips: Chips = None
    time_limit: TimeLimit = "60s"
    gap: Gap = None
    seed: Seed = 0
    workers: Workers = 1
    objective: A[str, Option(help=f"One of {', '.join(OBJECTIVES)}; several, in order: hops,max-link.")] = "hops"
    engines: Engines = None
    balance: Balance = None
    constraints: Constraints = None
    warm_start: A[Path | None, Option(help="Continue from this mapping; it is repaired where faults or rules broke it.")] = None
    migration_budget: A[int | None, Option(help="At most so many nodes may leave their core in --warm-start.")] = None
    mip_solver: A[str, Option(help="MIP solver that Pyomo should use.")] = "highs"
    write_model: A[Path | None, Option(help="Also write the exact models (.lp, .mps, CP-SAT proto) to this folder.")] = None
    memory: Memory = None
    scratch: A[Path | None, Option(help="Folder for what does not fit in memory. "
                                   "[default: the system's temporary folder]")] = None
    resume: A[bool, Option("--resume", help="Go on from the last finished level of a killed run (same problem and "
                           "options).")] = False
    prohibit_turns: Turns = None
    route: A[str, Option(help="given: the machine's own; joint: chosen with the mapping (small inputs); chosen: after it, for "
                         "max-link in turns with it; or xy, yx, west-first, north-last, negative-first, odd-even.")] = "given"
    pareto: A[str | None, Option(help="Front of two objectives, e.g. hops,max-link, instead of one mapping.")] = None
    points: A[int, Option(help="Points of the front.")] = 8
    occupied: Occupied = None
    out: Out = Path("nmsolve-out")
    json: Json = False


@dataclass(frozen=True)
class AnswerOptions:
    """A mapping and what it belongs to: how the commands about a mapping begin."""

    mapping: Mapping
    graph: MappingGraph = None
    machine: Machine = None
    chips: Chips = None
    placement: Placement = None


@dataclass(frozen=True)
class ScoreOptions(AnswerOptions):
    """Recompute every objective of a mapping from its files."""

    memory: Residence = None
    json: Json = False


@dataclass(frozen=True)
class VerifyOptions(AnswerOptions):
    """Check a mapping without trusting what made it: rules, objective, gap, routes, deadlock freedom, bounds."""

    constraints: Constraints = None
    balance: Balance = None
    bound: A[bool, Option("--bound", help="Also re-check the certificate of every bound.")] = False
    trust_solver: A[bool, Option("--trust-solver", help="End with 0, not 6, where a bound rests on a solver's word "
                                 "alone.")] = False
    prohibit_turns: Turns = None
    routes: A[Path | None, Option(help="Routes to check, too (flow-routes.json). "
                                  "[default: the one beside the mapping]")] = None
    memory: Residence = None
    json: Json = False


@dataclass(frozen=True)
class GapOptions(AnswerOptions):
    """Prove how far an existing mapping, from any tool, can be from the best one; only the bound is raised."""

    constraints: Constraints = None
    balance: Balance = None
    objective: A[str | None, Option(help="[default: the one in report.json beside the mapping, else hops]")] = None
    time_limit: TimeLimit = "300s"
    gap: Gap = None
    engines: A[str | None, Option(help="Comma-separated engines. [default: all that prove bounds]")] = None
    seed: Seed = 0
    workers: Workers = 1
    memory: Memory = None
    out: Out = Path("nmsolve-gap")
    json: Json = False


@dataclass(frozen=True)
class ResumeOptions:
    """Go on from an earlier run of map, route or pipeline: its problem, options, best answer and proofs."""

    run: A[Path, Argument(help="Output folder of the earlier run.")]
    time_limit: TimeLimit = "60s"
    gap: Gap = None
    seed: Seed = 0
    workers: Workers = 1
    engines: Engines = None
    memory: Memory = None
    out: A[Path | None, Option("--out", "-o", help="Output folder. [default: that of the earlier run]")] = None
    json: Json = False


@dataclass(frozen=True)
class RouteOptions(AnswerOptions):
    """Choose routes and prohibited turns together for a mapping: least link load, no deadlock, with a bound."""

    objective: A[str, Option(help="In order, of max-link, total-link, turns and reward.")] = "max-link,total-link,turns"
    turns: A[str, Option(help="Turns: chosen, a turn model (xy, west-first, ...), turns to prohibit (WS,EN), or a .json file "
                         "of them.")] = "chosen"
    form: A[str, Option(help="Who decides the next link: flow, source (a tree per core), destination (a table by "
                        "target).")] = "flow"
    table_limit: A[int | None, Option(min=0, help="Most routing table entries of any core.")] = None
    detour: A[int, Option(min=0, help="Links that a route may be longer than a shortest one.")] = 0
    channels: A[int, Option(min=1, help="Virtual channels per link.")] = 1
    time_limit: TimeLimit = "60s"
    gap: Gap = None
    seed: Seed = 0
    workers: Workers = 1
    engines: Engines = None
    warm_start: A[Path | None, Option(help="Continue from these routes (flow-routes.json, or the folder it is in).")] = None
    memory: Memory = None
    out: Out = Path("nmsolve-routes")
    json: Json = False


@dataclass(frozen=True)
class PipelineOptions:
    """Cut a network into stages on groups of cores, the slowest stage as fast as possible, with a bound."""

    model: A[Path, Argument(help="A model (.onnx) or a cost graph of msr-fiddle/dnn-partitioning (.json).")]
    cores: A[int | None, Option("--cores", "-n", min=1, help="How many cores there are.")] = None
    machine: A[str | None, Option("--machine", "-m", help="Cores and figures of a preset, mesh:RxC[,chips] or a "
                                  "machine.toml.")] = None
    chips: Chips = None
    stages: A[int | None, Option("--stages", "-k", min=1, help="Most stages. [default: as many as fit]")] = None
    exact_stages: A[bool, Option("--exact-stages", help="So many stages, no fewer.")] = False
    use_all: A[bool, Option("--use-all", help="Every core belongs to a stage.")] = False
    core_memory: A[str | None, Option(help="Memory of a core, e.g. 2MiB. [default: the machine's]")] = None
    overlap: A[bool, Option("--overlap", help="Cores compute and transfer at the same time, not in turn.")] = False
    split: A[str | None, Option(help="chain: runs of layers in the model's order; contiguous: data pass only forwards; any. "
                                "[default: chain for .onnx, contiguous for .json]")] = None
    bind: Bind = None
    strict: Strict = False
    time_limit: TimeLimit = "60s"
    gap: Gap = None
    seed: Seed = 0
    workers: Workers = 1
    engines: Engines = None
    warm_start: A[Path | None, Option(help="Continue from this plan (plan.json, or the folder it is in).")] = None
    memory: Memory = None
    batches: A[int, Option("--batches", "-B", min=1, help="Micro-batches, for the time that they take together.")] = 8
    place: A[bool, Option("--place", help="Also place the cores of the stages on the machine (needs --machine).")] = False
    write_onnx: A[Path | None, Option(help="Write a copy of the model with the stage of every operator.")] = None
    out: Out = Path("nmsolve-pipeline")
    json: Json = False


@dataclass(frozen=True)
class SimulateOptions:
    """Simulate the network on chip flit by flit: latency, throughput, saturation, energy of a mapping or a pattern."""

    mapping: A[Path | None, Argument(help="mapping.json or the output folder of `nmsolve map`; not needed with --pattern, or "
                                     "--trace and --machine.")] = None
    graph: MappingGraph = None
    machine: Machine = None
    chips: Chips = None
    placement: Placement = None
    routes: A[Path | None, Option(help="flow-routes.json. [default: the one beside the mapping, else --route xy]")] = None
    route: A[str | None, Option(help="A turn model (xy, west-first, ...), instead of chosen routes.")] = None
    adaptive: A[bool, Option("--adaptive", help="Routers choose among the shortest ways that the turn model allows.")] = False
    pattern: A[str | None, Option(help="uniform, bit-complement, transpose, hotspot, ... instead of a mapping.")] = None
    load: A[float | None, Option(help="Flits that the busiest core (pattern: every core) sends per cycle. "
                                 "[default: whole steps]")] = None
    steps: A[int, Option(min=1, help="Steps of the network, without --load.")] = 1
    period: A[int, Option(min=0, help="Cycles from one step to the next; a trace's first column then counts steps.")] = 0
    trace: A[Path | None, Option(help="CSV file of messages: step,source,targets (separated by spaces),count.")] = None
    sweep: A[bool, Option("--sweep", help="Latency over load, and the load at which the network saturates.")] = False
    config: A[str, Option(help="Router: a, b, spike, or a .toml file of its parameters.")] = "spike"
    cycles: A[int | None, Option(min=1, help="Cycles measured; of a trace, the most.")] = None
    warmup: A[int, Option(min=0, help="Cycles before that.")] = 3000
    time_limit: TimeLimit = "60s"
    seed: Seed = 0
    out: Out = Path("nmsolve-simulation")
    json: Json = False


@dataclass(frozen=True)
class ExportOptions(AnswerOptions):
    """Write a mapping as files of another tool, and say what that tool should count."""

    to: A[str, Option(help="Tool to write for: sanafe (SANA-FE's arch.yaml and network.yaml).")] = "sanafe"
    out: Out = Path("nmsolve-export")
    json: Json = False


@dataclass(frozen=True)
class FaultOptions:
    """Kill random links and cores: what survives by other routes or moved nodes, and what that costs."""

    mapping: Mapping
    links: A[int, Option(help="Links that die in every trial, in both directions.")] = 1
    cores: A[int, Option(help="Cores that die in every trial; no node can stay there.")] = 0
    routers: A[bool, Option("--routers", help="The routers of dead cores die, too.")] = False
    trials: A[int, Option(help="Random draws.")] = 100
    migration_budget: A[int | None, Option(help="Most nodes that a repair may move. "
                                           "[default: as many as lie on dead or cut-off cores]")] = None
    routes: A[Path | None, Option(help="flow-routes.json. [default: the one beside the mapping, else XY]")] = None
    graph: MappingGraph = None
    machine: Machine = None
    chips: Chips = None
    placement: Placement = None
    time_limit: TimeLimit = "10m"
    seed: Seed = 0
    out: Out = Path("nmsolve-faults")
    json: Json = False


@dataclass(frozen=True)
class BenchOptions:
    """Run methods on suites of instances, keep every run in a database, and compare: resumable at any moment."""

    suites: A[list[str], Argument(help="qaplib, mesh, snn, or folders of graph files (best_known.csv beside them is read).")]
    methods: A[str, Option(help="Comma-separated: auto, an engine, or engines of one run joined by +.")] = "auto"
    seeds: A[int, Option(min=1, max=10_000, help="Every method runs with seeds 1 to SEEDS.")] = 10
    time_limit: A[str, Option("--time-limit", "-t", help="Wall time of a run: 90, 90s or 5m.")] = "60s"
    workers: A[int, Option(min=1, help="Runs at the same time, one core each.")] = 1
    only: A[str | None, Option(help="Instances to take, e.g. 'sko*,nug12'.")] = None
    machine: Machine = None
    chips: Chips = None
    balance: Balance = None
    objective: A[str | None, Option(help="For folders. [default: hops]")] = None
    out: A[Path, Option("--out", "-o", help="Output folder; runs that are there are not done again.")] = Path("bench-out")
    page: A[Path | None, Option(help="Also write the Markdown page to this file.")] = None
    json: Json = False


@dataclass(frozen=True)
class ExplainOptions:
    """Find out whether any mapping exists, and if not, a smallest set of limits that conflict."""

    graph: Graph
    machine: Machine = None
    chips: Chips = None
    occupied: Occupied = None
    constraints: Constraints = None
    balance: Balance = None
    time_limit: TimeLimit = "60s"
    seed: Seed = 0
    out: A[Path | None, Option("--out", "-o", help="File for the mapping, or the conflict's proof.")] = None
    json: Json = False


@dataclass(frozen=True)
class InfoOptions:
    """Describe a graph file (nodes, messages, resources, traffic, the machine it names), or the operators of a .onnx model."""

    graph: Described
    memory: Residence = None
    bind: Bind = None
    strict: Strict = False
    json: Json = False


@dataclass(frozen=True)
class ConvertOptions:
    """Convert a graph file to another format."""

    source: Graph
    target: A[Path, Argument(help="File to write; its extension decides the format.")]


@dataclass(frozen=True)
class GenerateOptions:
    """Generate a network: the Potjans-Diesmann microcircuit, layered families, reservoirs, mesh instances.

    Parameters of the kind follow as options, e.g. `nmsolve generate microcircuit --scale 0.05`.
    """

    context: typer.Context
    kind: A[str, Argument(help="What to generate; `nmsolve generate list` shows all kinds and their parameters.")]
    out: A[Path | None, Option("--out", "-o", help="File to write. [default: KIND.json]")] = None
    seed: A[int, Option(help="Seed.")] = 1


@dataclass(frozen=True)
class DoctorOptions:
    """Print versions and problems of everything nmsolve needs."""

    warm: A[bool, Option("--warm", help="Compile and cache all kernels now.")] = False
    json: Json = False


@dataclass(frozen=True)
class ListOptions:
    """List the chip presets."""

    json: Json = False


@dataclass(frozen=True)
class ShowOptions:
    """Show a machine: every figure with its unit and source; unverified ones are marked."""

    machine: A[str, Argument(help="Preset, mesh:RxC[,chips] or machine.toml.")]
    chips: Chips = None
    json: Json = False

# fmt: on


def as_command(name: str, o: Any, always: tuple[str, ...] = (), never: tuple[str, ...] = ()) -> str:
    """The command that gives these options, quoted for a shell: what differs from the defaults.

    ``always`` are options that are named even so, ``never`` those that are not: they do not change the answer.
    """
    words, stated = ["nmsolve", name], []
    for field in fields(o):
        value, option = getattr(o, field.name), f"--{field.name.replace('_', '-')}"
        if field.default is MISSING or field.name == "mapping":
            words += [str(v) for v in (value if isinstance(value, list) else [value]) if v is not None]
        elif field.name not in never and (value != field.default or field.name in always):
            stated += [option] if value is True else [option, str(value)]
    return shlex.join([*words, *stated])
