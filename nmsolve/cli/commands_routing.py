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
