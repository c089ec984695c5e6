"""The five published methods, prior art and automatic mode, beside the optimum or the bound; the tables of docs/compared.md.

``python bench/methods.py [--parts one,many,assign,schedule,pipeline,route] [--seeds 1,2] [--seconds 20] [--models FOLDER]``
prints a Markdown table per part and size. Every answer has the same time limit and one worker; methods mostly need far less. A
cell is the gap in percent, (value - bound) / value, of the value as the evaluator has it to the bound of automatic mode: to the
optimum where that is proved (``=``), as on most small instances. ``–`` is a method that refuses the instance or is not installed.

* ``one``: 16 and 144 nodes of four families, one per core. Prior art: metaheuristics of the literature, the order of the file
* ``many``: 16 nodes on 2x2 cores and 2,000 on 4x4. Prior art: METIS, SCOTCH, KaMinPar, Mt-KaHyPar, the order of the file
* ``assign``: ONNX models of FOLDER on a host and an accelerator (``laptop-npu``): latency. Prior art: rules of two compilers
* ``schedule``: 3 and 20 networks on units: makespan. Prior art: HEFT, PEFT
* ``pipeline``: chains of 12 and 120 layers on 8 and 32 cores: slowest stage. None of the prior art is about groups of cores
* ``route``: layered networks on 4x4 and 8x8 cores: hottest link. Prior art: the best of XY, YX and four turn models
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmsolve.hw.assignment.machine_file import load_processors
from nmsolve.hw.assignment.state import state_assignment
from nmsolve.hw.machines import load_machine
from nmsolve.kinds.routing.bench import layered
from nmsolve.learn.pipeline.chains import random_chain
from nmsolve.model.bound import gap
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.generators import generate
from nmsolve.model.routing.flows import flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.schedule.generate import generate_problem
from nmsolve.solvers.assignment.api import solve_assignment
from nmsolve.solvers.mapping.api import make_problem, solve
from nmsolve.solvers.pipeline.api import plan
from nmsolve.solvers.routing.api import route
from nmsolve.solvers.schedule.api import solve_schedule

FAMILIES = ("geo", "comm", "layered", "rnd")
#: Values of the symbols of the models that have some.
BINDINGS = {"bert_base_dynamic": {"batch": 1, "seq": 128}}
AUTO = "automatic"


class Instance(NamedTuple):
    """A problem and its size: instances of one size share a table."""

    name: str
    size: str
    problem: Any


class Part(NamedTuple):
    """A table: how its problems are solved, its published methods and its prior art, both by the names of engines."""

    instances: Callable[[argparse.Namespace], Iterator[Instance]]
    solve: Callable[..., Any]
    methods: dict[str, str]
    prior: tuple[str, ...]


def graphs(nodes: int, side: int, seeds: list[int]) -> Iterator[tuple[str, Any]]:
    """Yield a network of every family and seed, by name."""
    for family in FAMILIES:
        for seed in seeds:
            yield f"{family}-{nodes}-{seed}", generate(f"mesh-{family}", nodes=nodes, side=side, seed=seed)


def one(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield networks with a core for every node."""
    for side in (4, 12):
        for name, graph in graphs(side * side, side, options.seeds):
            yield Instance(
                name, f"{side * side} nodes", make_problem(graph, load_machine(f"mesh:{side}x{side}"))
            )


def many(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield networks with several nodes per core."""
    for nodes, side, board in ((16, 4, 2), (2000, 45, 4)):
        for name, graph in graphs(nodes, side, options.seeds):
            problem = make_problem(graph, load_machine(f"mesh:{board}x{board}"), balance=0.03)
            yield Instance(name, f"{nodes:,} nodes", problem)


def assign(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield the models of the folder."""
    machine = load_processors("laptop-npu")
    for path in sorted(options.models.glob("*.onnx")) if options.models else ():
        bindings = BINDINGS.get(path.stem, {})
        try:
            stated = state_assignment(load_onnx(path, bindings=bindings), machine, bindings=bindings)
        except InputError as error:
            print(f"{path.stem} is left out: {error}")
            continue
        yield Instance(path.stem, "models", stated.problem)


def schedule(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield networks on units."""
    for networks, processes, units in ((3, 5, 6), (20, 30, 64)):
        for seed in options.seeds:
            problem = generate_problem(networks=networks, processes=processes, units=units, seed=seed).problem
            yield Instance(f"tasks-{networks}-{seed}", f"{networks} networks", problem)


def pipeline(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield chains of layers, none of which the policy was trained on."""
    for layers, cores in ((12, 8), (120, 32)):
        for seed in options.seeds:
            yield Instance(
                f"chain-{layers}-{seed}", f"{layers} layers", random_chain(10**6 + seed, cores, layers)
            )


def routes(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield flows between the layers of networks in random places."""
    for side in (4, 8):
        machine, cores = load_machine(f"mesh:{side}x{side}"), side * side
        for seed in options.seeds:
            flows = flows_of(layered(side, seed), np.arange(cores), cores)
            problem = RoutingProblem(machine, flows, objective=("max-link",))
            yield Instance(f"layered-{cores}-{seed}", f"{cores} cores", problem)


PARTS = {
    "one": Part(
        one,
        solve,
        {"M1": "m1-policy", "M2": "m2"},
        ("simple-annealing", "genetic", "ant-colony", "particle-swarm", "in-order"),
    ),
    "many": Part(many, solve, {"M2": "m2"}, ("metis", "scotch", "kaminpar", "mtkahypar", "in-order")),
    "assign": Part(assign, solve_assignment, {"M3": "threshold"}, ("priority", "greedy-growth")),
    "schedule": Part(schedule, solve_schedule, {"M4": "m4"}, ("heft", "peft")),
    "pipeline": Part(pipeline, plan, {"M5": "m5-policy"}, ()),
    "route": Part(routes, route, {}, ("named",)),
}


def value(part: Part, problem: Any, seconds: float, engine: str) -> float | None:
    """Return the best value of one engine; None where it refuses the problem, is not installed, or found none."""
    try:
        found = part.solve(problem, time_limit=seconds, seed=1, engines=[engine])
    except InputError:
        return None
    return None if found.solution is None else float(found.objective)


def table(part: Part, size: str, instances: list[Instance], seconds: float) -> None:
    """Print one table."""
    columns = {**part.methods, **{name: name for name in part.prior}}
    print(
        f"\n| {size} | best bound | " + " | ".join(columns) + f" | {AUTO} |\n|" + "---|" * (3 + len(columns))
    )
    gaps: dict[str, list[float]] = {name: [] for name in [*columns, AUTO]}
    for each in instances:
        best = part.solve(each.problem, time_limit=seconds, seed=1)
        bound = float(best.bound or 0.0)
        proved = "=" if best.status == "optimal" else ""
        cells = []
        for name in [*columns, AUTO]:
            got = float(best.objective) if name == AUTO else value(part, each.problem, seconds, columns[name])
            lost = gap(got, bound)
            if lost is not None:
                gaps[name].append(100 * lost)
            cells.append("–" if lost is None else f"{100 * lost:.1f}")
        print(f"| {each.name} | {proved}{bound:,.6g} | " + " | ".join(cells) + " |", flush=True)
    means = [f"{statistics.fmean(found):.1f}" if found else "–" for found in gaps.values()]
    print("| mean gap, % | | " + " | ".join(means) + " |", flush=True)


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seeds", default="1,2", type=lambda text: [int(x) for x in text.split(",")])
    parser.add_argument("--seconds", default=20.0, type=float, help="time limit of every run")
    parser.add_argument("--models", type=Path, help="folder with ONNX models")
    options = parser.parse_args()
    for name in options.parts.split(","):
        part = PARTS[name]
        print(f"\n## {name}")
        instances = list(part.instances(options))
        for size in dict.fromkeys(each.size for each in instances):
            table(part, size, [each for each in instances if each.size == size], options.seconds)


if __name__ == "__main__":
    main()
