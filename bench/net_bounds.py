"""Bounds on messages, small partitions and hottest links: value, share of a known cost, CPU seconds; a Markdown table.

Usage: OPENBLAS_NUM_THREADS=1 python bench/net_bounds.py [--seconds 20] [--only NAME]

Compile the kernels first (``make warm``). Known costs are those of 12 to 15 s of the engines multilevel and nets (seed 1),
for cuts of 3 s of multilevel; better mappings may exist, so the true gaps are smaller than they look.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.generators import generate
from nmsolve.model.generators.mesh import communities, random_targets
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound, refuses_nets
from nmsolve.solvers.mapping.bounds.partition import refuses_slots, slots_bounds
from nmsolve.solvers.mapping.bounds.parts import parts_bounds, refuses_parts
from nmsolve.solvers.mapping.bounds.trees_parts import refuses_tree_parts, tree_parts_bounds
from nmsolve.solvers.mapping.certificates import check_bound


def casting(graph: LogicGraph) -> LogicGraph:
    """Every row one message to all its targets."""
    return replace(graph, multicast=np.ones(graph.rows, bool))


def snn(nodes: int, synapses: int) -> LogicGraph:
    """Four spiking sheets whose neurons multicast."""
    return generate("snn", nodes=nodes, synapses=synapses, layers=4, directed=1)


def micro() -> LogicGraph:
    """Microcircuit, 3,858 neurons."""
    return generate("microcircuit", scale=0.05)


#: Name, graph, machine, most nodes on a core (0: the machine's capacity, -1: balance 0.03), objective, known cost.
INSTANCES: tuple[tuple[str, Callable[[], LogicGraph], str, int, str, float], ...] = (
    ("microcircuit 5 %", micro, "loihi1", 0, "multicast-hops", 34188.3),
    ("microcircuit 5 %", micro, "mesh:8x8", -1, "connectivity", 562476.98),
    ("snn 2,000", lambda: snn(2000, 60000), "mesh:4x4", -1, "connectivity", 41786),
    ("snn 2,000", lambda: snn(2000, 60000), "mesh:4x4", -1, "multicast-hops", 55046),
    ("snn20k", lambda: generate("snn", directed=1), "mesh:8x8", -1, "connectivity", 648395),
    ("reservoir 2,048", lambda: casting(generate("reservoir", nodes=2048, fan=20)), "mesh:8x8", -1, "connectivity", 16138.06),
    ("snn 256", lambda: snn(256, 2048), "mesh:16x16", 1, "multicast-hops", 15219),
    ("random 256", lambda: casting(random_targets(256, side=16, seed=1)), "mesh:16x16", 1, "multicast-hops", 35946.44),
    ("communities 48", lambda: communities(48, seed=0), "mesh:1x4", 12, "cut", 320),
    ("communities 96", lambda: communities(96, seed=0), "mesh:1x8", 12, "cut", 821),
)  # fmt: skip


def found(problem: MappingProblem, upper: float, seconds: float) -> Iterator[Bound]:
    """The last bound of every method that takes the problem."""
    start = time.process_time()

    def stop() -> bool:
        return time.process_time() - start > seconds

    if refuses_nets(problem) is None:
        yield fan_out_bound(problem)
    start = time.process_time()
    if refuses_parts(problem) is None:
        yield from list(parts_bounds(problem, lambda: upper, 300, stop))[-1:]
    start = time.process_time()
    if refuses_tree_parts(problem) is None:
        yield from list(tree_parts_bounds(problem, lambda: upper, 400, stop))[-1:]
    if refuses_slots(problem) is None:
        yield from list(slots_bounds(problem, lambda: upper, seconds=seconds))[-1:]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds at most for each bound")
    parser.add_argument("--only", default="", help="instances whose names hold this")
    args = parser.parse_args()
    print("| instance | objective, machine | bound | value | of known cost | find, CPU s | re-check, CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name, graph, board, room, objective, known in INSTANCES:
        if args.only not in name:
            continue
        g, machine = graph(), load_machine(board)
        limit = room if room > 0 else default_node_limit(g, machine, 0.03 if room < 0 else None)
        problem = MappingProblem(g, machine, objective, node_limit=limit)
        start = time.process_time()
        for bound in found(problem, known, args.seconds):
            spent, start = time.process_time() - start, time.process_time()
            check = check_bound(problem, bound)
            checked, start = time.process_time() - start, time.process_time()
            verdict = f"{checked:.1f}" if check.ok else f"REFUSED: {check.text}"
            row = (
                name,
                f"{objective}, {board}",
                bound.method,
                f"{bound.value:,.0f}",
                f"{bound.value / known:.1%}",
            )
            print("| " + " | ".join((*row, f"{spent:.1f}", verdict)) + " |", flush=True)


if __name__ == "__main__":
    main()
