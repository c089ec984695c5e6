"""Faults: time and cost of repairs. `python bench/faults.py [TRIALS]` prints a Markdown table.

Random messages between nodes, two on every core, random places, XY routes: traffic that leaves no slack on purpose.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.hw.routing.named import named_routes
from nmsolve.model.graph import LogicGraph
from nmsolve.model.routing.flows import flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.solvers.routed.faults import LOST, FaultPlan, FaultStudy
from nmsolve.solvers.routed.migrate import Placed

#: Rows and columns, messages, dead links, dead cores.
CASES = [(8, 400, 5, 0), (8, 400, 5, 1), (16, 2100, 5, 0), (16, 2100, 20, 2)]


def study_of(side: int, messages: int) -> FaultStudy:
    """The mapping and its XY routes."""
    rng, machine = np.random.default_rng(1), load_machine(f"mesh:{side}x{side}")
    n = 2 * machine.size
    graph = LogicGraph.from_edges(n, rng.integers(0, n, messages), rng.integers(0, n, messages))
    core = rng.permutation(np.repeat(np.arange(machine.size), 2))
    flows = flows_of(graph, core, machine.size)
    routes = named_routes(machine, flows, "xy")
    return FaultStudy(Placed(graph, machine, core, (), 3), RoutingProblem(machine, flows), routes)


def main() -> None:
    """Print the table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for side, messages, links, cores in CASES:
        study = study_of(side, messages)
        study.run(FaultPlan(links, cores, trials=1, seed=99))  # compiles
        begun = time.process_time()
        found = study.run(FaultPlan(links, cores, trials=trials))
        spent = time.process_time() - begun
        alive = [t for t in found if t.outcome != LOST]
        loads = [t.max_link for t in alive if t.max_link is not None]
        what = f"{side}x{side}, {links} links" + (
            f", {cores} core{'s' if cores > 1 else ''}" if cores else ""
        )
        extra = "-" if cores else f"{np.mean([t.extra for t in alive]):.2f}"
        print(
            f"| {what} | {study.problem.flows.count} | {len(alive)} of {trials} | {study.max_link:.0f}, {np.mean(loads):.1f}, "
            f"{max(loads):.0f} | {extra} | {spent:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
