"""The options of the commands that solve nothing, one dataclass each. ``--help`` shows docstring and fields, in this order.

Only types are imported: asking for help must stay cheap. ``table.py`` says which function runs with which options.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated as A

from nmsolve.kinds.options import (
    Absolute,
    Bind,
    Chips,
    Cluster,
    Described,
    Engines,
    Gap,
    Graph,
    Json,
    Memory,
    Multicast,
    Nodes,
    Pattern,
    Quiet,
    Residence,
    Seed,
    Strict,
    TimeLimit,
    Workers,
)
from nmsolve.kinds.parameters import Argument, Option
from nmsolve.kinds.registry import FOLDERS, listed

if TYPE_CHECKING:
    import typer

# One option, one line:
# fmt: off

@dataclass(frozen=True)
class ResumeOptions:
    __doc__ = f"Continue an earlier run of {listed(FOLDERS)} from its problem, options, best answer and proofs."

    run: A[Path, Argument(help="Output folder of the earlier run.")]
    time_limit: TimeLimit = "60s"
    gap: Gap = None
    seed: Seed = 0
    workers: Workers = 1
    cluster: Cluster = None
    engines: Engines = None
    memory: Memory = None
    out: A[Path | None, Option("--out", "-o", help="Output folder. [default: the folder of the earlier run]")] = None
    quiet: Quiet = False
    json: Json = False


@dataclass(frozen=True)
class WatchOptions:
    """Serve the page of a run, also while it goes on, to a browser on this machine (127.0.0.1 alone), until Ctrl-C."""

    run: A[Path, Argument(help="Output folder of the run.")]
    port: A[int, Option(min=0, max=65535, help="Port; 0: any free one.")] = 0


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
