"""Options that several commands have, as annotated types and dataclasses.

Only types are imported: asking for help must stay cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.parameters import Argument, Option, Parameter

# One option, one line:
# fmt: off

def _time(limit: str) -> str:
    """Refuse what is no time before any file is read, and return it."""
    from nmsolve.model.quantities import seconds

    seconds(limit)
    return limit


def number_of_workers(text: str | int) -> int:
    """Return how many ``--workers`` asks for (:func:`nmsolve.model.quantities.workers`)."""
    from nmsolve.model.quantities import workers

    return workers(text)


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
TimeLimit = A[str, Option("--time-limit", "-t", callback=_time, help="Wall-clock time: 90, 90s or 5m.")]
Gap = A[str | None, Option(help="Stop once this gap is proved: 0.05 or 5%.")]
Seed = A[int, Option(help="Seed for all random choices.")]
Workers = A[int, Option(parser=number_of_workers, metavar="N|all", help="Cores that search at the same time, with engines of "
                        "their own or threads of one; all: every core of this machine.")]
Cluster = A[str | None, Option(help="Ray cluster whose cores are the workers: auto (the one that this machine is part of), "
                               "HOST:PORT, or local.")]
Engines = A[str | None, Option(help="Comma-separated engines to run. [default: chosen automatically]")]


def published(**methods: str) -> Parameter:
    """Return the option that runs one of these published methods; each with what it does."""
    known = "; ".join(f"{name}: {about}" for name, about in methods.items())

    def one_of(text: str | None) -> str | None:
        from nmsolve.model.errors import InputError, shortened

        if text is not None and text not in methods:
            raise InputError(f"method {shortened(repr(text))}", "--method", " or ".join(methods))
        return text

    return Option(callback=one_of, metavar="|".join(methods), help="Run a published method alone, once, to its end; the rest of "
                  f"the time proves how far its answer is from the best ({known}).")


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
Quiet = A[bool, Option("--quiet", help="Print only the path of the answer, and errors.")]
Json = A[bool, Option("--json", help="Print JSON to stdout, one object per line.")]


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
    quiet: Quiet = False


@dataclass(frozen=True)
class ConflictOptions:
    """How a conflict between limits is searched for."""

    time_limit: TimeLimit = "60s"
    seed: Seed = 0
    out: Proof = None
    json: Json = False


@dataclass(frozen=True)
class TrainOptions:
    """How long a policy is trained, and where it is written."""

    seconds: A[float, Option(min=0, help="CPU seconds to train.")] = 600.0
    updates: A[
        int | None,
        Option(min=0, help="End after this many updates; with the same seed this gives the same file."),
    ] = None
    seed: Seed = 0
    resume: A[bool, Option("--resume", help="Go on from the state beside --out.")] = False
    json: Json = False
