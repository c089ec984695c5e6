"""Every command with its options. Bodies only import and call: this module must stay cheap to load."""

from __future__ import annotations

from pathlib import Path

import typer

GRAPH = typer.Argument(..., help="Graph file: .json, .graph (METIS), .hgr (hMETIS), .mtx, .dat (QAPLIB), .npz.")
MACHINE = typer.Option(
    None,
    "--machine",
    "-m",
    help="Preset (see `nmsolve hw list`), mesh:RxC[,chips], or a machine.toml; may be left out where the graph file names one.",
)
CHIPS = typer.Option(None, "--chips", help="Chips on the board: a number or RxC.")
CONSTRAINTS = typer.Option(None, "--constraints", "-c", help="Side constraints (constraints.json).")
OBJECTIVE = typer.Option(
    "hops", "--objective", help="hops, multicast-hops, cut, connectivity or energy (docs/objectives.md)."
)
BALANCE = typer.Option(
    None, "--balance", help="Node capacity of a core: (1 + BALANCE) * nodes / cores, rounded up. [default: see docs/files.md]"
)
JSON = typer.Option(False, "--json", help="Typed JSON on stdout, one object per line.")


def map_command(
    graph: Path = GRAPH,
    machine: str | None = MACHINE,
    chips: str | None = CHIPS,
    time_limit: str = typer.Option("60s", "--time-limit", "-t", help="Wall time: 90, 90s or 5m."),
    gap: str | None = typer.Option(None, "--gap", help="Stop at this proven gap: 0.05 or 5%."),
    seed: int = typer.Option(0, "--seed", help="Seed of all random choices."),
    workers: int = typer.Option(1, "--workers", min=1, help="Engines that run at the same time."),
    objective: str = OBJECTIVE,
    engines: str | None = typer.Option(None, "--engines", help="Comma-separated engines instead of automatic choice."),
    balance: float | None = BALANCE,
    constraints: Path | None = CONSTRAINTS,
    warm_start: Path | None = typer.Option(None, "--warm-start", help="Start from this mapping.json."),
    mip_solver: str = typer.Option("highs", "--mip-solver", help="MIP solver Pyomo should use."),
    write_model: Path | None = typer.Option(
        None, "--write-model", help="Also write the exact models (.lp, .mps, CP-SAT proto) to this folder."
    ),
    memory_limit: str | None = typer.Option(None, "--memory-limit", help="Per solver process, e.g. 4GiB."),
    prohibit_turns: str | None = typer.Option(
        None, "--prohibit-turns", help="Check routes against a turn model (xy, west-first, ...) or turns (WS,EN)."
    ),
    out: Path = typer.Option(Path("nmsolve-out"), "--out", "-o", help="Output folder."),
    json: bool = JSON,
) -> None:
    """Map a graph onto a machine; writes mapping, events and report to the output folder."""
    from nmsolve.cli.map import MapOptions, run_map

    options = MapOptions(
        graph, machine, chips, time_limit, gap, seed, workers, objective, engines, balance, constraints, warm_start,
        mip_solver, write_model, memory_limit, prohibit_turns, out, json,
    )  # fmt: skip
    raise typer.Exit(run_map(options))


def score_command(
    mapping: Path = typer.Argument(..., help="mapping.json, or the output folder of `nmsolve map`."),
    graph: Path | None = typer.Option(None, "--graph", "-g", help="Graph file. [default: the one named in report.json]"),
    machine: str | None = MACHINE,
    chips: str | None = CHIPS,
    json: bool = JSON,
) -> None:
    """Recompute every objective of a mapping from its files."""
    from nmsolve.cli.check import run_score

    raise typer.Exit(run_score(mapping, graph, machine, chips, json))


def verify_command(
    mapping: Path = typer.Argument(..., help="mapping.json, or the output folder of `nmsolve map`."),
    graph: Path | None = typer.Option(None, "--graph", "-g", help="Graph file. [default: the one named in report.json]"),
    machine: str | None = MACHINE,
    chips: str | None = CHIPS,
    constraints: Path | None = CONSTRAINTS,
    balance: float | None = BALANCE,
    bound: bool = typer.Option(False, "--bound", help="Also re-check the certificates of all bounds."),
    prohibit_turns: str | None = typer.Option(
        None, "--prohibit-turns", help="Check routes against a turn model (xy, west-first, ...) or turns (WS,EN)."
    ),
    json: bool = JSON,
) -> None:
    """Check a mapping without trusting what made it: rules, objective, gap, deadlock freedom, bounds."""
    from nmsolve.cli.check import run_verify

    raise typer.Exit(run_verify(mapping, graph, machine, chips, constraints, balance, bound, prohibit_turns, json))


def info_command(graph: Path = GRAPH, json: bool = JSON) -> None:
    """Describe a graph file: nodes, messages, resources, traffic, and the machine it names."""
    from nmsolve.cli.info import run_info

    raise typer.Exit(run_info(graph, json))


def convert_command(
    source: Path = GRAPH, target: Path = typer.Argument(..., help="File to write; its extension decides the format.")
) -> None:
    """Convert a graph file to another format."""
    from nmsolve.cli.info import run_convert

    raise typer.Exit(run_convert(source, target))


def generate_command(
    kind: str = typer.Argument(..., help="microcircuit, layered, reservoir, snn, geo, layers, rnd, comm ... (`generate list`)."),
    out: Path | None = typer.Option(None, "--out", "-o", help="File to write. [default: KIND.json]"),
    seed: int = typer.Option(1, "--seed", help="Seed."),
    scale: float | None = typer.Option(None, "--scale", help="microcircuit: fraction of the full size."),
    nodes: int | None = typer.Option(None, "--nodes", "-n", help="Number of nodes (or clusters)."),
    edges: int | None = typer.Option(None, "--edges", help="snn: number of synapses drawn."),
    layers: int | None = typer.Option(None, "--layers", help="snn, layered: number of layers."),
    side: int | None = typer.Option(None, "--side", help="Mesh instances: side of the square mesh."),
) -> None:
    """Generate a network: the Potjans-Diesmann microcircuit, layered families, reservoirs, mesh instances."""
    from nmsolve.cli.generate import run_generate

    given = {"scale": scale, "nodes": nodes, "edges": edges, "layers": layers, "side": side}
    raise typer.Exit(run_generate(kind, out, seed, {k: v for k, v in given.items() if v is not None}))


def hw_list_command(json: bool = JSON) -> None:
    """List the chip presets."""
    from nmsolve.cli.hw import run_list

    raise typer.Exit(run_list(json))


def hw_show_command(
    machine: str = typer.Argument(..., help="Preset, mesh:RxC[,chips] or machine.toml."),
    chips: str | None = CHIPS,
    json: bool = JSON,
) -> None:
    """Show a machine: every figure with its unit and source; unverified ones are marked."""
    from nmsolve.cli.hw import run_show

    raise typer.Exit(run_show(machine, chips, json))


def doctor_command(
    warm: bool = typer.Option(False, "--warm", help="Compile and cache all kernels now."),
    json: bool = JSON,
) -> None:
    """Print versions and problems of everything nmsolve needs."""
    from nmsolve.cli.doctor import run_doctor

    raise typer.Exit(run_doctor(warm, json))
