"""The commands about routes and networks on chips, with their options. Bodies only import and call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated as A

import typer
from typer import Option

from nmsolve.cli.commands import (
    Chips,
    Gap,
    Json,
    Machine,
    Mapping,
    MappingGraph,
    Memory,
    Placement,
    Seed,
    TimeLimit,
    Workers,
)


def route_command(
    mapping: Mapping,
    graph: MappingGraph = None,
    machine: Machine = None,
    chips: Chips = None,
    placement: Placement = None,
    objective: A[
        str,
        Option("--objective", help="In order, of max-link, total-link, turns and reward."),
    ] = "max-link,total-link,turns",
    turns: A[
        str,
        Option(
            "--turns",
            help="Turns: chosen, a turn model (xy, west-first, ...), turns to prohibit (WS,EN), or a .json file of them.",
        ),
    ] = "chosen",
    form: A[
        str,
        Option(
            "--form",
            help="Who decides the next link: flow, source (a tree per core), destination (a table by target).",
        ),
    ] = "flow",
    table_limit: A[
        int | None, Option("--table-limit", min=0, help="Most routing table entries of any core.")
    ] = None,
    detour: A[
        int, Option("--detour", min=0, help="Links that a route may be longer than a shortest one.")
    ] = 0,
    channels: A[int, Option("--channels", min=1, help="Virtual channels per link.")] = 1,
    time_limit: TimeLimit = "60s",
    gap: Gap = None,
    seed: Seed = 0,
    workers: Workers = 1,
    engines: A[
        str | None, Option("--engines", help="Comma-separated engines instead of automatic choice.")
    ] = None,
    memory: Memory = None,
    out: A[Path, Option("--out", "-o", help="Output folder.")] = Path("nmsolve-routes"),
    json: Json = False,
) -> None:
    """Choose routes and prohibited turns together for a mapping: least link load, no deadlock, with a bound."""
    from nmsolve.cli.route import RouteOptions, run_route

    options = RouteOptions(
        mapping, graph, machine, chips, placement, objective, turns, form, table_limit, detour, channels, time_limit, gap,
        seed, workers, engines, memory, out, json,
    )  # fmt: skip
    raise typer.Exit(run_route(options))


def simulate_command(
    mapping: A[
        Path | None,
        typer.Argument(
            help="mapping.json or the output folder of `nmsolve map`; not needed with --pattern, or --trace and --machine."
        ),
    ] = None,
    graph: MappingGraph = None,
    machine: Machine = None,
    chips: Chips = None,
    placement: Placement = None,
    routes: A[
        Path | None,
        Option("--routes", help="flow-routes.json. [default: the one beside the mapping, else --route xy]"),
    ] = None,
    route: A[
        str | None,
        Option("--route", help="A turn model (xy, west-first, ...), instead of chosen routes."),
    ] = None,
    adaptive: A[
        bool, Option("--adaptive", help="Routers choose among the shortest ways that the turn model allows.")
    ] = False,
    pattern: A[
        str | None,
        Option("--pattern", help="uniform, bit-complement, transpose, hotspot, ... instead of a mapping."),
    ] = None,
    load: A[
        float | None,
        Option(
            "--load",
            help="Flits that the busiest core (pattern: every core) sends per cycle. [default: whole steps]",
        ),
    ] = None,
    steps: A[int, Option("--steps", min=1, help="Steps of the network, without --load.")] = 1,
    period: A[
        int,
        Option(
            "--period",
            min=0,
            help="Cycles from one step to the next; a trace's first column then counts steps.",
        ),
    ] = 0,
    trace: A[
        Path | None,
        Option("--trace", help="CSV file of messages: step,source,targets (separated by spaces),count."),
    ] = None,
    sweep: A[
        bool, Option("--sweep", help="Latency over load, and the load at which the network saturates.")
    ] = False,
    config: A[
        str, Option("--config", help="Router: a, b, spike, or a .toml file of its parameters.")
    ] = "spike",
    cycles: A[int | None, Option("--cycles", min=1, help="Cycles measured; of a trace, the most.")] = None,
    warmup: A[int, Option("--warmup", min=0, help="Cycles before that.")] = 3000,
    time_limit: TimeLimit = "60s",
    seed: Seed = 0,
    out: A[Path, Option("--out", "-o", help="Output folder.")] = Path("nmsolve-simulation"),
    json: Json = False,
) -> None:
    """Simulate the network on chip flit by flit: latency, throughput, saturation, energy of a mapping or a pattern."""
    from nmsolve.cli.simulate import SimulateOptions, run_simulate

    options = SimulateOptions(
        mapping, graph, machine, chips, placement, routes, route, adaptive, pattern, load, steps, period, trace, sweep, config,
        cycles, warmup, time_limit, seed, out, json,
    )  # fmt: skip
    raise typer.Exit(run_simulate(options))


def export_command(
    mapping: Mapping,
    graph: MappingGraph = None,
    machine: Machine = None,
    chips: Chips = None,
    placement: Placement = None,
    to: A[
        str, Option("--to", help="Tool to write for: sanafe (SANA-FE's arch.yaml and network.yaml).")
    ] = "sanafe",
    out: A[Path, Option("--out", "-o", help="Output folder.")] = Path("nmsolve-export"),
    json: Json = False,
) -> None:
    """Write a mapping as files of another tool, and say what that tool should count."""
    from nmsolve.cli.export import run_export

    raise typer.Exit(run_export(mapping, graph, machine, chips, placement, to, out, json))


def faults_command(
    mapping: Mapping,
    links: A[int, Option("--links", help="Links that die in every trial, in both directions.")] = 1,
    cores: A[int, Option("--cores", help="Cores that die in every trial; no node can stay there.")] = 0,
    routers: A[bool, Option("--routers", help="The routers of dead cores die, too.")] = False,
    trials: A[int, Option("--trials", help="Random draws.")] = 100,
    migration_budget: A[
        int | None,
        Option(
            "--migration-budget",
            help="Most nodes that a repair may move. [default: as many as lie on dead or cut-off cores]",
        ),
    ] = None,
    routes: A[
        Path | None,
        Option("--routes", help="flow-routes.json. [default: the one beside the mapping, else XY]"),
    ] = None,
    graph: MappingGraph = None,
    machine: Machine = None,
    chips: Chips = None,
    placement: Placement = None,
    time_limit: TimeLimit = "10m",
    seed: Seed = 0,
    out: A[Path, Option("--out", "-o", help="Output folder.")] = Path("nmsolve-faults"),
    json: Json = False,
) -> None:
    """Kill random links and cores: what survives by other routes or moved nodes, and what that costs."""
    from nmsolve.cli.faults import FaultOptions, run_faults

    options = FaultOptions(
        mapping, graph, machine, chips, placement, links, cores, routers, trials, migration_budget, routes, time_limit, seed,
        out, json,
    )  # fmt: skip
    raise typer.Exit(run_faults(options))
