"""The options of ``nmsolve simulate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.options import (
    Chips,
    Json,
    Machine,
    MappingGraph,
    Multicast,
    Nodes,
    Out,
    Placement,
    Seed,
    TimeLimit,
)
from nmsolve.kinds.parameters import Argument, Option

# One option, one line:
# fmt: off

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
    out: Out = Path("nmsolve-simulate")
    json: Json = False
