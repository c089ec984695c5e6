"""The options of the commands that solve nothing, one dataclass each. ``--help`` shows docstring and fields, in this order.

Only types are imported: asking for help must stay cheap. ``main.py`` says which function runs with which options.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

import typer
from typer import Argument, Option

from nmsolve.kinds.mapping.options import AnswerOptions
from nmsolve.kinds.options import (
    Absolute,
    Bind,
    Chips,
    Described,
    Graph,
    Json,
    Machine,
    Mapping,
    MappingGraph,
    Multicast,
    Nodes,
    Out,
    Pattern,
    Residence,
    Strict,
)

# One option, one line:
# fmt: off

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
