"""The flit-level simulator beside BookSim 2, and how fast it is.

    python bench/noc.py [--only latency|saturation|speed] [--chip GRAPH MAPPING --machine SPEC] [--cycles 60000]

References (instances/noc_booksim.csv) were measured with BookSim 2 (commit 28f43299) built from source: 8x8 mesh, iq router,
islip allocators with one iteration, routing, VC and switch allocation delays of 1, credit delay 1, no speed-up, three samples of
warm-up and samples of 10,000 cycles (100,000 at load 0.01), seed 1; "accepted" at an offered load of 1 over six samples of 5,000
cycles (here: mean of three seeds). BookSim knows XY; turn models, the matrix (instances/noc_matrix.txt) and rates per node
were added to a private copy: shortest paths a turn model allows, least used credit, ties at random. Saturation: highest load
found stable and lowest found not to be, samples of 5,000 cycles, three of warm-up and up to ten, mean latency at most 500.
One seed each: at load 0.01 its own standard error is about 0.3 %.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from nmsolve.hw.noc import (
    CONFIG_B,
    CONFIGS,
    RouterConfig,
    Traffic,
    matrix,
    pattern,
    saturation,
    simulate,
    steps_of_flows,
)
from nmsolve.model.machine import Machine
from nmsolve.model.turns import turn_set

INSTANCES = Path(__file__).resolve().parent / "instances"
BOARD = Machine("8x8", (1, 1), (8, 8))


def traffic(name: str, load: float, config: RouterConfig) -> Traffic:
    """Traffic as the references had it."""
    if name == "matrix":
        return matrix(BOARD, np.loadtxt(INSTANCES / "noc_matrix.txt"), load, config)
    return pattern(BOARD, name, load, config, hotspots=(27,), share=1.0)


def references(quantities: set[str]) -> list[dict[str, str]]:
    with (INSTANCES / "noc_booksim.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["quantity"] in quantities]


def latencies(cycles: int) -> None:
    """Mean latency, and the rate accepted beyond saturation."""
    print(f"| config | rule | pattern | load | BookSim | nmsolve ({cycles:,} cycles) | off by |")
    print("|---|---|---|---|---|---|---|")
    for row in references({"latency", "accepted"}):
        config, load = CONFIGS[row["config"]], float(row["load"])
        over = row["quantity"] == "accepted"
        window = (
            {"cycles": 15_000, "warmup": 15_000}
            if over
            else {"cycles": cycles * (5 if load <= 0.01 else 1), "warmup": 10_000}
        )
        runs = [
            simulate(
                BOARD,
                turn_set(row["rule"], BOARD),
                traffic(row["pattern"], load, config),
                config,
                seed=seed,
                **window,
            )
            for seed in ((1, 2, 3) if over else (1,))
        ]
        ours = float(np.mean([run.accepted if over else run.latency.mean for run in runs]))
        theirs = float(row["value"])
        off = f"{100 * (ours / theirs - 1):+.2f} %"
        what = f"{load:g} (accepted)" if over else f"{load:g}"
        print(
            f"| {row['config']} | {row['rule']} | {row['pattern']} | {what} | {theirs:.4g} | {ours:.4g} | {off} |"
        )


def saturations() -> None:
    """The interval in which the network saturates, by backlogs; the references go by mean latency."""
    print("| config | rule | pattern | BookSim | nmsolve | middles off by |")
    print("|---|---|---|---|---|---|")
    rows = references({"stable", "unstable"})
    for low, high in zip(rows[::2], rows[1::2], strict=True):
        config, a, b = CONFIGS[low["config"]], float(low["value"]), float(high["value"])
        found = saturation(
            BOARD, turn_set(low["rule"], BOARD), lambda load, low=low, config=config: traffic(low["pattern"], load, config),
            config, low=0.6 * a, high=1.3 * b, tolerance=0.015, cycles=80_000, warmup=15_000, seed=1,
        )  # fmt: skip
        off = 100 * ((found.stable + found.unstable) / (a + b) - 1)
        print(f"| {low['config']} | {low['rule']} | {low['pattern']} | {a:.4f}-{b:.4f} "
              f"| {found.stable:.4f}-{found.unstable:.4f} | {off:+.2f} % |")  # fmt: skip


def speed() -> None:
    """Cycles per CPU second, best of five runs."""
    print("| config | load | cycles per CPU second |")
    print("|---|---|---|")
    for name in ("b", "a"):
        config = CONFIGS[name]
        for load in (0.01, 0.1, 0.2, 1.0):
            best = 0.0
            for _ in range(5):
                begin = time.process_time()
                result = simulate(
                    BOARD, turn_set("xy", BOARD), pattern(BOARD, "uniform", load, config), config, cycles=100_000, seed=1
                )  # fmt: skip
                best = max(best, result.total_cycles / (time.process_time() - begin))
            print(f"| {name} | {load:g} | {best:,.0f} |")


def chip(graph_file: Path, mapping_file: Path, machine_spec: str) -> None:
    """One step of a mapped network: all messages due at once, four messages of a core pair to a packet, one to a flit."""
    from nmsolve.hw.machines import load_machine
    from nmsolve.model.formats import load_graph
    from nmsolve.model.mapping.files import read_mapping
    from nmsolve.model.routing.flows import flows_of

    machine, graph = load_machine(machine_spec), load_graph(graph_file)
    flows = flows_of(graph, read_mapping(mapping_file, graph, machine), machine.size)
    step = steps_of_flows(flows, 1, 0, 1, CONFIG_B.packet_flits)
    begin, wall = time.process_time(), time.perf_counter()
    result = simulate(machine, turn_set("xy", machine), step, CONFIG_B)
    spent = time.process_time() - begin
    print(
        f"{machine.size} cores, {flows.count:,} flows, {flows.rate.sum():,.0f} messages: {result.ended} after "
        f"{result.total_cycles:,} cycles, {result.router_flits.sum():,} flits through routers, {spent:.1f} CPU s, "
        f"{time.perf_counter() - wall:.1f} s wall"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("latency", "saturation", "speed", "chip"))
    parser.add_argument("--cycles", type=int, default=60_000)
    parser.add_argument("--chip", nargs=2, type=Path, metavar=("GRAPH", "MAPPING"))
    parser.add_argument("--machine", default="mesh:32x32")
    asked = parser.parse_args()
    simulate(BOARD, turn_set("xy", BOARD), traffic("uniform", 0.1, CONFIG_B), CONFIG_B, cycles=10)  # compiles
    if asked.only in (None, "latency"):
        latencies(asked.cycles)
    if asked.only in (None, "saturation"):
        saturations()
    if asked.only in (None, "speed"):
        speed()
    if asked.chip:
        chip(*asked.chip, asked.machine)


if __name__ == "__main__":
    main()
