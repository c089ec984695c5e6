"""The options of ``nmsolve assign``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.options import (
    Bind,
    ConflictOptions,
    Json,
    Library,
    Out,
    Points,
    SearchOptions,
    Strict,
    published,
)
from nmsolve.kinds.parameters import Argument, Option

# One option, one line:
# fmt: off

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
    method: A[str | None, published(m3="thresholds of cost and benefit")] = None
    threshold: A[str | None, Option(help="Th1 and Th2 of method M3 for the engine threshold: benefit=2us,cost=500ns, or one "
                                    "of them. [default: several are tried]")] = None
    warm_start: A[Path | None, Option(help="Start from this assignment (assignment.json, or its folder).")] = None
    run: A[bool, Option("--run", help="Also execute the programs with onnxruntime and compare them with the model.")] = False
    pareto: A[str | None, Option(help="Compute the front of two objectives, e.g. latency,energy, instead of one "
                                 "assignment.")] = None
    points: Points = 8
    out: Out = Path("nmsolve-assign")
    json: Json = False


@dataclass(frozen=True)
class ExplainAssignOptions(ConflictOptions, AssignProblemOptions):
    """Find out whether a network can be assigned at all; if not, show a smallest set of pins and limits that conflict."""


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


#: Of the command, and of ``nmsolve explain``.
OPTIONS, EXPLAIN = AssignOptions, ExplainAssignOptions
#: Where the names of its objectives are.
OBJECTIVE_TABLE = "model.assignment.problem:OBJECTIVES"
#: What folders of instances hold, for ``nmsolve bench``.
BENCHED = "models, cost networks"
#: What lists the presets of its machines.
MACHINES = "hw.assignment.machine_file:processor_presets"
