"""Every command with its options. Bodies only import and call: this module must stay cheap to load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated as A

import typer
from typer import Argument, Option

Graph = A[
    Path, Argument(help="Graph: .json, .graph, .hgr, .mtx, .dat, .npz, .nmz, .snn, .csv, .h5, .nir ...")
]
Described = A[Path, Argument(help="A graph (.json, .graph, .hgr, .mtx, .dat, .nmz, ...) or a model (.onnx).")]
Bind = A[
    str | None,
    Option("--bind", help="ONNX: numbers for symbols of the inputs' shapes, e.g. batch=8,seq=128."),
]
Machine = A[
    str | None,
    Option(
        "--machine",
        "-m",
        help="Preset (see `nmsolve hw list`), mesh:RxC[,chips] or a machine.toml. [default: the one the graph file names]",
    ),
]
Chips = A[str | None, Option("--chips", help="Chips on the board: a number or ROWSxCOLUMNS.")]
Constraints = A[Path | None, Option("--constraints", "-c", help="Side constraints (constraints.json).")]
Objective = A[
    str,
    Option(
        "--objective",
        help="hops, multicast-hops, cut, connectivity, energy, max-link or reward; several, in order: hops,max-link.",
    ),
]
Balance = A[
    float | None,
    Option("--balance", help="Node capacity of a core: (1 + BALANCE) * nodes / cores, rounded up."),
]
Turns = A[
    str | None,
    Option(
        "--prohibit-turns",
        help="Turns that no route may take: a turn model (xy, west-first, ...), turns (WS,EN), or a .json file of them.",
    ),
]
Json = A[bool, Option("--json", help="Typed JSON on stdout, one object per line.")]
Mapping = A[
    Path, Argument(help="mapping.json, the output folder of `nmsolve map`, QAPLIB .sln, or a core per line.")
]
MappingGraph = A[
    Path | None, Option("--graph", "-g", help="Graph file. [default: the one named in report.json]")
]
Placement = A[
    Path | None,
    Option(
        "--placement",
        help="Core of every part, one per line; the mapping is a file of parts (METIS .part.k).",
    ),
]


def _reading_too(limit: str) -> str:
    """Reading counts against the time limit, and ends with it."""
    from nmsolve.cli.main import STARTED
    from nmsolve.cli.options import seconds
    from nmsolve.model.contained import read_by

    read_by(STARTED + seconds(limit))
    return limit


TimeLimit = A[str, Option("--time-limit", "-t", callback=_reading_too, help="Wall time: 90, 90s or 5m.")]
Gap = A[str | None, Option("--gap", help="Stop at this proven gap: 0.05 or 5%.")]
Seed = A[int, Option("--seed", help="Seed of all random choices.")]
Workers = A[int, Option("--workers", min=1, help="Engines that run at the same time.")]
Memory = A[
    str | None,
    Option(
        "--memory",
        help="Most memory of all processes together, e.g. 2GiB; .nmz graphs too large for it stay on disk.",
    ),
]
Residence = A[str | None, Option("--memory", help="A .nmz graph too large for it stays on disk, e.g. 2GiB.")]
Occupied = A[
    list[Path] | None,
    Option(
        "--occupied",
        help="Output folder of an earlier run whose network is on the machine already (repeatable).",
    ),
]
Out = A[Path, Option("--out", "-o", help="Output folder.")]


def map_command(
    graph: Graph,
    machine: Machine = None,
    chips: Chips = None,
    time_limit: TimeLimit = "60s",
    gap: Gap = None,
    seed: Seed = 0,
    workers: Workers = 1,
    objective: Objective = "hops",
    engines: A[
        str | None, Option("--engines", help="Comma-separated engines instead of automatic choice.")
    ] = None,
    balance: Balance = None,
    constraints: Constraints = None,
    warm_start: A[
        Path | None,
        Option(
            "--warm-start", help="Continue from this mapping; it is repaired where faults or rules broke it."
        ),
    ] = None,
    migration_budget: A[
        int | None,
        Option("--migration-budget", help="At most so many nodes may leave their core in --warm-start."),
    ] = None,
    mip_solver: A[str, Option("--mip-solver", help="MIP solver that Pyomo should use.")] = "highs",
    write_model: A[
        Path | None,
        Option("--write-model", help="Also write the exact models (.lp, .mps, CP-SAT proto) to this folder."),
    ] = None,
    memory: Memory = None,
    scratch: A[
        Path | None,
        Option(
            "--scratch",
            help="Folder for what does not fit in memory. [default: the system's temporary folder]",
        ),
    ] = None,
    resume: A[
        bool,
        Option(
            "--resume", help="Go on from the last finished level of a killed run (same problem and options)."
        ),
    ] = False,
    prohibit_turns: Turns = None,
    route: A[
        str,
        Option(
            "--route",
            help="given: the machine's own; joint: chosen with the mapping (small inputs); chosen: after it, for "
            "max-link in turns with it; or xy, yx, west-first, north-last, negative-first, odd-even.",
        ),
    ] = "given",
    pareto: A[
        str | None,
        Option("--pareto", help="Front of two objectives, e.g. hops,max-link, instead of one mapping."),
    ] = None,
    points: A[int, Option("--points", help="Points of the front.")] = 8,
    occupied: Occupied = None,
    out: Out = Path("nmsolve-out"),
    json: Json = False,
) -> None:
    """Map a graph onto a machine; writes mapping, events and report to the output folder."""
    from nmsolve.cli.map import MapOptions, run_map

    options = MapOptions(
        graph, machine, chips, time_limit, gap, seed, workers, objective, engines, balance, constraints, warm_start,
        migration_budget, mip_solver, write_model, memory, scratch, resume, prohibit_turns, route, pareto, points,
        tuple(occupied or ()), out, json,
    )  # fmt: skip
    raise typer.Exit(run_map(options))


def score_command(
    mapping: Mapping,
    graph: MappingGraph = None,
    machine: Machine = None,
    chips: Chips = None,
    placement: Placement = None,
    memory: Residence = None,
    json: Json = False,
) -> None:
    """Recompute every objective of a mapping from its files."""
    from nmsolve.cli.check import run_score

    raise typer.Exit(run_score(mapping, graph, machine, chips, placement, memory, json))


def verify_command(
    mapping: Mapping,
    graph: MappingGraph = None,
    machine: Machine = None,
    chips: Chips = None,
    placement: Placement = None,
    constraints: Constraints = None,
    balance: Balance = None,
    bound: A[bool, Option("--bound", help="Also re-check the certificate of every bound.")] = False,
    trust_solver: A[
        bool,
        Option("--trust-solver", help="End with 0, not 6, where a bound rests on a solver's word alone."),
    ] = False,
    prohibit_turns: Turns = None,
    routes: A[
        Path | None,
        Option(
            "--routes", help="Routes to check, too (flow-routes.json). [default: the one beside the mapping]"
        ),
    ] = None,
    memory: Residence = None,
    json: Json = False,
) -> None:
    """Check a mapping without trusting what made it: rules, objective, gap, routes, deadlock freedom, bounds."""
    from nmsolve.cli.check import run_verify

    code = run_verify(
        mapping,
        graph,
        machine,
        chips,
        placement,
        constraints,
        balance,
        bound,
        trust_solver,
        prohibit_turns,
        routes,
        memory,
        json,
    )
    raise typer.Exit(code)


def gap_command(
    mapping: Mapping,
    graph: MappingGraph = None,
    machine: Machine = None,
    chips: Chips = None,
    placement: Placement = None,
    constraints: Constraints = None,
    balance: Balance = None,
    objective: A[
        str | None,
        Option("--objective", help="[default: the one in report.json beside the mapping, else hops]"),
    ] = None,
    time_limit: TimeLimit = "300s",
    gap: Gap = None,
    engines: A[
        str | None, Option("--engines", help="Comma-separated engines. [default: all that prove bounds]")
    ] = None,
    seed: Seed = 0,
    workers: Workers = 1,
    memory: Memory = None,
    out: Out = Path("nmsolve-gap"),
    json: Json = False,
) -> None:
    """Prove how far an existing mapping, from any tool, can be from the best one; only the bound is raised."""
    from nmsolve.cli.gap import GapOptions, run_gap

    options = GapOptions(
        mapping, graph, machine, chips, placement, constraints, balance, objective, time_limit, gap, engines, seed,
        workers, memory, out, json,
    )  # fmt: skip
    raise typer.Exit(run_gap(options))


def bench_command(
    suites: A[
        list[str],
        Argument(help="qaplib, mesh, snn, or folders of graph files (best_known.csv beside them is read)."),
    ],
    methods: A[
        str, Option("--methods", help="Comma-separated: auto, an engine, or engines of one run joined by +.")
    ] = "auto",
    seeds: A[int, Option("--seeds", min=1, max=10_000, help="Every method runs with seeds 1 to SEEDS.")] = 10,
    time_limit: A[str, Option("--time-limit", "-t", help="Wall time of a run: 90, 90s or 5m.")] = "60s",
    workers: A[int, Option("--workers", min=1, help="Runs at the same time, one core each.")] = 1,
    only: A[str | None, Option("--only", help="Instances to take, e.g. 'sko*,nug12'.")] = None,
    machine: Machine = None,
    chips: Chips = None,
    balance: Balance = None,
    objective: A[str | None, Option("--objective", help="For folders. [default: hops]")] = None,
    out: A[Path, Option("--out", "-o", help="Output folder; runs that are there are not done again.")] = Path(
        "bench-out"
    ),
    page: A[Path | None, Option("--page", help="Also write the Markdown page to this file.")] = None,
    json: Json = False,
) -> None:
    """Run methods on suites of instances, keep every run in a database, and compare: resumable at any moment."""
    from nmsolve.cli.bench.run import BenchOptions, run_bench

    options = BenchOptions(
        suites, methods, seeds, time_limit, workers, only, machine, chips, balance, objective, out, page, json,
    )  # fmt: skip
    raise typer.Exit(run_bench(options))


def explain_command(
    graph: Graph,
    machine: Machine = None,
    chips: Chips = None,
    occupied: Occupied = None,
    constraints: Constraints = None,
    balance: Balance = None,
    time_limit: TimeLimit = "60s",
    seed: Seed = 0,
    out: A[Path | None, Option("--out", "-o", help="File for the mapping, or the conflict's proof.")] = None,
    json: Json = False,
) -> None:
    """Find out whether any mapping exists, and if not, a smallest set of limits that conflict."""
    from nmsolve.cli.explain import ExplainOptions, run_explain

    options = ExplainOptions(
        graph, machine, chips, tuple(occupied or ()), constraints, balance, time_limit, seed, out, json
    )
    raise typer.Exit(run_explain(options))


def info_command(
    graph: Described,
    memory: Residence = None,
    bind: Bind = None,
    strict: A[bool, Option("--strict", help="ONNX: refuse operators that are not known.")] = False,
    json: Json = False,
) -> None:
    """Describe a graph file (nodes, messages, resources, traffic, the machine it names), or the operators of a .onnx model."""
    from nmsolve.cli.info import run_info

    raise typer.Exit(run_info(graph, memory, json, bind, strict))


def convert_command(
    source: Graph, target: A[Path, Argument(help="File to write; its extension decides the format.")]
) -> None:
    """Convert a graph file to another format."""
    from nmsolve.cli.info import run_convert

    raise typer.Exit(run_convert(source, target))


def generate_command(
    context: typer.Context,
    kind: A[
        str, Argument(help="What to generate; `nmsolve generate list` shows all kinds and their parameters.")
    ],
    out: A[Path | None, Option("--out", "-o", help="File to write. [default: KIND.json]")] = None,
    seed: A[int, Option("--seed", help="Seed.")] = 1,
) -> None:
    """Generate a network: the Potjans-Diesmann microcircuit, layered families, reservoirs, mesh instances.

    Parameters of the kind follow as options, e.g. `nmsolve generate microcircuit --scale 0.05`.
    """
    from nmsolve.cli.generate import run_generate

    raise typer.Exit(run_generate(kind, out, seed, context.args))


def hw_list_command(json: Json = False) -> None:
    """List the chip presets."""
    from nmsolve.cli.hw import run_list

    raise typer.Exit(run_list(json))


def hw_show_command(
    machine: A[str, Argument(help="Preset, mesh:RxC[,chips] or machine.toml.")],
    chips: Chips = None,
    json: Json = False,
) -> None:
    """Show a machine: every figure with its unit and source; unverified ones are marked."""
    from nmsolve.cli.hw import run_show

    raise typer.Exit(run_show(machine, chips, json))


def doctor_command(
    warm: A[bool, Option("--warm", help="Compile and cache all kernels now.")] = False,
    json: Json = False,
) -> None:
    """Print versions and problems of everything nmsolve needs."""
    from nmsolve.cli.doctor import run_doctor

    raise typer.Exit(run_doctor(warm, json))
