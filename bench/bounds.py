"""Every bound on instances of many kinds: value, share of a known cost, CPU seconds to find and to re-check; a Markdown table.

Usage: OPENBLAS_NUM_THREADS=1 python bench/bounds.py [--seconds 20] [--only NAME] [--engines split,spread]

Compile the kernels first (``make warm``). Known costs are QAPLIB's, or of the best mappings found here; of those with nets
12 to 15 s of the engines multilevel and nets (seed 1), of the cuts 3 s of multilevel. Where better mappings exist, the true
gaps are smaller than they look. The known cost is the aim of the bounds that take one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import nmsolve
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.formats import load_graph
from nmsolve.model.generators import generate
from nmsolve.model.generators.mesh import communities, feed_forward, geometric, random_targets
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.auto import outdone
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine

HERE = Path(__file__).parent / "instances"
QAPLIB = Path(nmsolve.__file__).parent / "benchmarks" / "instances"


def qap(name: str) -> Callable[[], LogicGraph]:
    """A shipped QAPLIB instance."""
    return lambda: load_graph(QAPLIB / f"{name}.dat")


def casting(graph: LogicGraph) -> LogicGraph:
    """Every row one message to all its targets."""
    return replace(graph, multicast=np.ones(graph.rows, bool))


def sheets(nodes: int, synapses: int) -> Callable[[], LogicGraph]:
    """Four spiking sheets whose neurons multicast."""
    return lambda: generate("snn", nodes=nodes, synapses=synapses, layers=4, directed=1)


def micro() -> LogicGraph:
    """Microcircuit, 3,858 neurons."""
    return generate("microcircuit", scale=0.05)


@dataclass(frozen=True)
class Case:
    """An instance: ``room`` is the most nodes on a core (0: what the machine says, -1: balance 0.03), ``known`` a cost."""

    name: str
    graph: Callable[[], LogicGraph]
    board: str
    room: int
    known: float
    objective: str = "hops"


CASES = (
    Case("nug12", qap("nug12"), "mesh:3x4", 1, 578),
    Case("nug20", qap("nug20"), "mesh:4x5", 1, 2570),
    Case("sko42", qap("sko42"), "mesh:6x7", 1, 15812),
    Case("sko100a", qap("sko100a"), "mesh:10x10", 1, 152002),
    Case("comm-64", lambda: communities(64, seed=0), "mesh:8x8", 1, 4182),
    Case("comm-256", lambda: communities(256, seed=0), "mesh:16x16", 1, 18399),
    Case("comm-1024", lambda: communities(1024, seed=0), "mesh:32x32", 1, 76478),
    Case("geo-1000", lambda: geometric(1000, side=32, seed=1), "mesh:32x32", 1, 54391.5),
    Case("geo-4096", lambda: geometric(4096, side=64, seed=1), "mesh:64x64", 1, 378773.5),
    Case("layered-1000", lambda: feed_forward(1000, side=32, seed=1), "mesh:32x32", 1, 26936),
    Case("layered-4000", lambda: feed_forward(4000, side=64, seed=913), "mesh:64x64", 1, 106517),
    Case("rnd-1000", lambda: random_targets(1000, side=32, seed=1), "mesh:32x32", 1, 130996),
    Case("q256", lambda: load_graph(HERE / "q256.graph"), "mesh:16x16", 1, 89.06e6),
    Case("q1024", lambda: load_graph(HERE / "q1024.graph"), "mesh:32x32", 1, 184.67e6),
    Case("delaunay_n15", lambda: load_graph(HERE / "delaunay_n15.graph"), "mesh:8x8", -1, 4672),
    Case("snn20k", lambda: generate("snn"), "mesh:8x8", -1, 5.10e6),
    Case("microcircuit 5 %", micro, "loihi1", 0, 34188.3, "multicast-hops"),
    Case("microcircuit 5 %", micro, "mesh:8x8", -1, 562476.98, "connectivity"),
    Case("snn 2,000", sheets(2000, 60000), "mesh:4x4", -1, 41786, "connectivity"),
    Case("snn 2,000", sheets(2000, 60000), "mesh:4x4", -1, 55046, "multicast-hops"),
    Case("snn20k", lambda: generate("snn", directed=1), "mesh:8x8", -1, 636083, "connectivity"),
    Case("reservoir 2,048", lambda: casting(generate("reservoir", nodes=2048, fan=20)), "mesh:8x8", -1, 16138.06, "connectivity"),
    Case("snn 256", sheets(256, 2048), "mesh:16x16", 1, 15219, "multicast-hops"),
    Case("random 256", lambda: casting(random_targets(256, side=16, seed=1)), "mesh:16x16", 1, 35946.44, "multicast-hops"),
    Case("communities 48", lambda: communities(48, seed=0), "mesh:1x4", 12, 320, "cut"),
    Case("communities 96", lambda: communities(96, seed=0), "mesh:1x8", 12, 821, "cut"),
)  # fmt: skip


@dataclass
class Alone:
    """The context of a bound that runs alone: the known cost is the incumbent, CPU time is the clock."""

    known: float
    seconds: float
    seed: int = 0
    workers: int = 1
    pace: float = 1.0
    memory: int | None = None
    best: Bound | None = None
    began: float = field(default_factory=time.process_time)

    def incumbent(self) -> tuple[IntArray | None, float]:
        """No mapping, but its cost."""
        return None, self.known

    def bound(self) -> float:
        """The best bound so far."""
        return 0.0 if self.best is None else self.best.value

    def time_left(self) -> float:
        """CPU seconds left."""
        return self.seconds - (time.process_time() - self.began)

    def worked(self) -> float:
        """CPU seconds since it began."""
        return time.process_time() - self.began

    def should_stop(self) -> bool:
        """True once they are used up."""
        return self.time_left() <= 0

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Nothing here looks for mappings."""
        raise NotImplementedError

    def subtasks(self, worker: object) -> None:
        """Return None: there is no other machine."""

    def remotes(self, kind: type) -> None:
        """Return None: there is no other machine."""

    def note(self, text: str) -> None:
        """Said nowhere."""

    def raise_bound(self, bound: Bound) -> bool:
        """Keep the best one."""
        better = bound.value > self.bound() or self.best is None
        if better:
            self.best = bound
        return better


def row(case: Case, problem: MappingProblem, engine: str, seconds: float) -> str:
    """One Markdown row: the engine's best bound, re-checked from its certificate."""
    context = Alone(case.known, seconds)
    make_engine(engine).run(problem, context)
    spent, began = time.process_time() - context.began, time.process_time()
    what = f"| {case.name} | {case.objective}, {case.board} | {engine} |"
    if context.best is None:
        return f"{what} – | – | {spent:.1f} | – |"
    check = check_bound(problem, context.best)
    checked = f"{time.process_time() - began:.1f}" if check.ok else f"REFUSED: {check.text}"
    return f"{what} {context.bound():,.0f} | {context.bound() / case.known:.1%} | {spent:.1f} | {checked} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    bounds = [name for name in REGISTRY if make_engine(name).finds == "bounds"]
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds for each bound")
    parser.add_argument("--only", default="", help="instances whose names hold this")
    parser.add_argument("--engines", default=",".join(bounds), help="comma-separated")
    args = parser.parse_args()
    print("| instance | objective, machine | bound | value | of known cost | find, CPU s | re-check, CPU s |")
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        if args.only not in case.name:
            continue
        graph, machine = case.graph(), load_machine(case.board)
        limit = (
            case.room
            if case.room > 0
            else default_node_limit(graph, machine, 0.03 if case.room < 0 else None)
        )
        problem = MappingProblem(graph, machine, case.objective, node_limit=limit)
        for engine in args.engines.split(","):
            if make_engine(engine).refuses(problem) is None and outdone(engine, problem) is None:
                print(row(case, problem, engine, args.seconds), flush=True)


if __name__ == "__main__":
    main()
