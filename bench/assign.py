"""Every figure of operator assignment that the project states, from one script.

``python bench/assign.py MODELS [--part cut,rules,server,makespan,iopddl,programs,predicted] [--instances FOLDER] [--seconds 60]
[--models bert_base_dynamic,resnet50]`` prints a Markdown table per part. MODELS is a folder with ONNX models, FOLDER one with
instances of the iopddl contest (``.json`` or ``.json.gz``). CPU seconds are of this process and the children it has waited for.

* ``cut``: two processors (``laptop-npu``): the minimum cut, its CPU seconds, and whether CP-SAT proves the same optimum
* ``rules``: what each rule of compilers loses against that optimum, as a gap
* ``server``: one host and four accelerator cores (``server-4acc``), each with memory for a third of the weights
* ``makespan``: three unlike processors (``soc-3``)
* ``iopddl``: cost, bound and gap of the contest's instances against what is known of them
* ``programs``: models assigned, split and executed with onnxruntime: the largest difference
* ``predicted``: models profiled on this host, assigned to one and two of its threads, split and executed: time against what is
  predicted; needs an idle host
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nmsolve.hw.assignment.constraints import AssignConstraints
from nmsolve.hw.assignment.machine_file import load_processors
from nmsolve.hw.assignment.state import StatedAssignment, state_assignment
from nmsolve.model.bound import Result, gap
from nmsolve.model.formats.iopddl import load_iopddl
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.solvers.assignment.api import solve_assignment, solve_network
from nmsolve.solvers.assignment.registry import RULES

PARTS = ("cut", "rules", "server", "makespan", "iopddl", "programs", "predicted")
#: One and two threads of this host as processors, as the function library measured them.
THREADS = """
name = "threads"
[[memory]]
name = "ram"
[[processor]]
name = "one"
kind = "host"
memory = "ram"
bandwidth = 10
library = "host"
launch = 1
widths = {WIDTHS}
[[processor]]
name = "two"
kind = "accelerator"
threads = 2
memory = "ram"
bandwidth = 10
library = "host"
launch = 1
widths = {WIDTHS}
[[link]]
name = "session"
between = ["one", "two"]
bandwidth = 10
latency = 10
library = "host"
"""
#: What no library says.
WIDTHS = ", ".join(
    f"{name} = {{ macs = 10, elements = 1 }}"
    for name in ("float32", "float64", "int64", "int32", "int8", "bool", "float16", "string")
)
#: Values of the symbols of models that have some.
BINDINGS = {
    "bert_base_dynamic": {"batch": 1, "seq": 128},
    "loop_if_decoder": {"batch": 1, "width": 64, "trips_Loop_32": 16},
}
#: Values of inputs that say how often a loop turns, where the binding of its turns does not.
INPUTS = {"loop_if_decoder": {"steps": 16}}
#: Best known cost and best proved bound of instances (bench/instances/SOURCES.md says from where).
KNOWN = {"A": (6_548_641_531, 6_513_812_172), "G": (217_039, 216_931)}


def cpu() -> float:
    """CPU seconds of this process and its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def stated(path: Path, machine: str, objective: str = "latency", **more: Any) -> StatedAssignment:
    """The problem of a model on a preset."""
    graph = load_onnx(path)
    processors = load_processors(machine)
    return state_assignment(graph, processors, bindings=BINDINGS.get(path.stem), objective=objective, **more)


def timed(problem: Any, seconds: float, engines: Sequence[str] | None = None) -> tuple[Result[Any], float]:
    """A result and its CPU seconds."""
    before = cpu()
    result = solve_assignment(problem, time_limit=seconds, engines=engines)
    return result, cpu() - before


def cut(models: Sequence[Path], seconds: float) -> Iterator[str]:
    """The minimum cut against CP-SAT (on the contracted cost network, after annealing); cut once before the clock starts, so that
    no import is in the figure."""
    yield "| model | operators | latency (ps) | minimum cut, CPU s | CP-SAT | CP-SAT, CPU s |\n|---|---|---|---|---|---|"
    for path in models:
        problem = stated(path, "laptop-npu").problem
        timed(problem, seconds, ["min-cut"])
        found, spent = timed(replace(problem), seconds, ["min-cut"])
        other, longer = timed(problem, seconds, ["subgraphs", "network-cpsat"])
        same = other.status == "optimal" and other.objective == found.objective
        said = (
            "equal" if same else f"{other.status} {other.objective or 0:,.0f} (bound {other.bound or 0:,.0f})"
        )
        yield f"| {path.stem} | {problem.count - 2} | {found.objective:,.0f} | {spent:.3f} | {said} | {longer:.1f} |"


def rules(models: Sequence[Path], seconds: float) -> Iterator[str]:
    """Every rule alone against the optimum of two processors."""
    yield f"| model | {' | '.join(RULES)} |\n|---|{'---|' * len(RULES)}"
    for path in models:
        problem = stated(path, "laptop-npu").problem
        best, _ = timed(problem, seconds, ["min-cut"])
        row = []
        for rule in RULES:
            result, _ = timed(problem, seconds, [rule])
            row.append(
                "-" if result.objective is None else f"{100 * (gap(result.objective, best.bound) or 0):.1f} %"
            )
        yield f"| {path.stem} | {' | '.join(row)} |"


def spread(path: Path, machine: str) -> AssignConstraints:
    """Memories of accelerators that hold a third of the weights each, so that three at least must be used."""
    flows = stated(path, machine).problem.flows
    weights = int(flows.bytes[flows.kept].sum())
    return AssignConstraints(memory={"gddr": weights // 3})


def several(
    models: Sequence[Path], seconds: float, machine: str, objective: str, engines: Sequence[str] | None
) -> Iterator[str]:
    """Automatic mode, or these engines, on more than two units."""
    yield "| model | operators | objective (ps) | bound | gap | status | CPU s |\n|---|---|---|---|---|---|---|"
    for path in models:
        limits = spread(path, machine) if machine == "server-4acc" else None
        problem = stated(path, machine, objective, constraints=limits).problem
        result, spent = timed(problem, seconds, engines)
        values = " | ".join(f"{v or 0:,.0f}" for v in (result.objective, result.bound))
        share = "-" if result.gap is None else f"{100 * result.gap:.2f} %"
        yield f"| {path.stem} | {problem.count - 2} | {values} | {share} | {result.status} | {spent:.1f} |"


def iopddl(folder: Path, seconds: float) -> Iterator[str]:
    """The contest's instances in a folder."""
    heads = (
        "instance",
        "nodes",
        "cost",
        "bound",
        "gap",
        "best known",
        "above it",
        "best bound known",
        "CPU s",
    )
    yield f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|"
    for path in sorted(p for p in folder.iterdir() if p.name.endswith((".json", ".json.gz"))):
        network = load_iopddl(path)
        before = cpu()
        result = solve_network(network, time_limit=seconds)
        name = path.name.split(".")[0].rpartition("-")[2]
        known, low = KNOWN.get(name, (None, None))
        above = (
            "-"
            if known is None or result.objective is None
            else f"{100 * (result.objective / known - 1):.2f} %"
        )
        figures = [result.objective, result.bound, result.gap, known, low]
        shown = [
            "-" if v is None else f"{100 * v:.2f} %" if k == 2 else f"{v:,.0f}" for k, v in enumerate(figures)
        ]
        cells = [name, network.count, *shown[:4], above, shown[4], f"{cpu() - before:.0f}"]
        yield "| " + " | ".join(map(str, cells)) + " |"


def programs(models: Sequence[Path], seconds: float) -> Iterator[str]:
    """Split at the optimum of two processors, executed with three bindings, and compared."""
    from nmsolve.hw.assignment.programs.of_answer import write_programs
    from nmsolve.hw.assignment.programs.run import run_programs

    yield "| model | pieces | largest difference | equal | split, s | whole, s |\n|---|---|---|---|---|---|"
    for path in models:
        given = stated(path, "laptop-npu")
        result, _ = timed(given.problem, seconds, ["min-cut"])
        with tempfile.TemporaryDirectory() as folder:
            manifest = write_programs(path, given, result.solution, folder)
            report = run_programs(folder, path, bindings=BINDINGS.get(path.stem))
        times = [
            statistics.median(getattr(c, name) for c in report.cases) for name in ("seconds", "whole_seconds")
        ]
        yield (
            f"| {path.stem} | {len(manifest.program.pieces)} | {report.difference:.2g} | {'yes' if report.equal else 'no'} "
            f"| {times[0]:.3f} | {times[1]:.3f} |"
        )


def filled(path: Path, folder: Path) -> Path:
    """A copy of a model whose missing weights are there, with random values: sessions lay out only weights that they know."""
    import onnx

    from nmsolve.hw.assignment.fused_profile import filled as with_weights

    graph = load_onnx(path)
    bindings = BINDINGS.get(path.stem, {})
    model, _ = with_weights(onnx.load(path), graph, {**bindings, **INPUTS.get(path.stem, {})})
    onnx.save(model, folder / path.name)
    return folder / path.name


def predicted(models: Sequence[Path], seconds: float) -> Iterator[str]:
    """Profiled on this host, then measured against what the assignment predicts."""
    from nmsolve.hw.assignment.library import Library
    from nmsolve.hw.assignment.programs.of_answer import write_programs
    from nmsolve.hw.assignment.programs.run import run_programs

    yield "| model | pieces | predicted, s | measured, s | error |\n|---|---|---|---|---|"
    errors = []
    for bare in models:
        with tempfile.TemporaryDirectory() as name:
            folder, bound = Path(name), BINDINGS.get(bare.stem, {})
            path = filled(bare, folder)
            machine, file = folder / "threads.toml", folder / "library.db"
            machine.write_text(THREADS.format(WIDTHS="{ " + WIDTHS + " }"))
            bind = ["--bind", ",".join(f"{k}={v}" for k, v in bound.items())] if bound else []
            command = [
                "profile",
                str(path),
                "--library",
                str(file),
                "--threads",
                "1,2",
                "--no-integers",
                "--seconds",
                "0.1",
            ]
            subprocess.run(
                [sys.executable, "-m", "nmsolve", *command, *bind], check=True, capture_output=True
            )
            with Library(file) as library:
                given = stated(path, str(machine), library=library)
            result, _ = timed(given.problem, seconds, ["min-cut"])
            manifest = write_programs(path, given, result.solution, folder / "programs")
            report = run_programs(
                folder / "programs",
                path,
                bindings=[{**bound, **INPUTS.get(bare.stem, {})}],
                parallel=False,
                repeats=30,
                level="extended",
            )
        told, found = result.scores["latency"] / 1e12, report.cases[0].seconds
        errors.append(abs(told - found) / found)
        yield f"| {path.stem} | {len(manifest.program.pieces)} | {told:.4f} | {found:.4f} | {100 * errors[-1]:.0f} % |"
    yield f"\nmedian error {100 * statistics.median(errors):.0f} %"


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path, metavar="MODELS")
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--models", help="names, with commas; all in the folder if not given")
    parser.add_argument("--instances", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--engines", type=lambda names: names.split(","), help="for server and makespan; chosen if not given"
    )
    asked = parser.parse_args()
    wanted = None if asked.models is None else asked.models.split(",")
    models = sorted(p for p in asked.folder.glob("*.onnx") if wanted is None or p.stem in wanted)
    makers = {
        "cut": lambda: cut(models, asked.seconds),
        "rules": lambda: rules(models, asked.seconds),
        "server": lambda: several(models, asked.seconds, "server-4acc", "latency", asked.engines),
        "makespan": lambda: several(models, asked.seconds, "soc-3", "makespan", asked.engines),
        "iopddl": lambda: (
            iopddl(asked.instances, asked.seconds) if asked.instances else iter(["(no --instances)"])
        ),
        "programs": lambda: programs(models, asked.seconds),
        "predicted": lambda: predicted(models, asked.seconds),
    }
    for part in asked.part.split(","):
        print(f"\n{part}\n")
        for line in makers[part]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
