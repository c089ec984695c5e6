"""The queueing estimate beside the flit-level simulator: mean latency over traffic that neither was made for.

``python bench/queueing.py [--cycles 30000]`` prints a Markdown table. 8 x 8 cores; every router of ``ROUTERS`` under every
pattern at a third, two thirds and all of the load at which the estimate is trusted just so, and at 90 % of what it says the
network carries.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.hw.noc import CONFIG_A, CONFIG_B, CONFIG_SPIKE, of_flows, simulate
from nmsolve.hw.routing.latency import estimate_latency
from nmsolve.hw.routing.named import named_routes
from nmsolve.model.routing.flows import Flows

ROUTERS = [
    CONFIG_B, CONFIG_SPIKE, CONFIG_A,
    replace(CONFIG_B, virtual_channels=2, name="b, 2 channels"),
    replace(CONFIG_SPIKE, virtual_channels=2, name="spike, 2 channels"),
    replace(CONFIG_B, packet_flits=8, buffer_flits=16, name="b, packets of 8"),
]  # fmt: skip


def traffic() -> dict[str, tuple[str, Flows]]:
    """Rule of the routes and flows by name; rates are scaled later."""
    core, rng = np.arange(64), np.random.default_rng(1)
    goal = core % 8 * 8 + core // 8
    sparse = np.where(rng.random((64, 64)) < 0.1, rng.integers(1, 10, (64, 64)), 0.0)
    hot = np.full((64, 64), 1.0)
    hot[:, [18, 45]] = 20.0
    away = goal != core
    layers = np.zeros(
        (64, 64)
    )  # 8 layers of 8 parts on random cores, each part sends to all of the next layer
    place = rng.permutation(64).reshape(8, 8)
    for here, there in itertools.pairwise(place):
        layers[np.ix_(here, there)] = rng.integers(1, 10, (8, 8))
    return {
        "uniform, XY": ("xy", Flows.of_matrix(np.ones((64, 64)))),
        "transpose, XY": ("xy", Flows.of_pairs(core[away], goal[away], np.ones(away.sum()))),
        "two hotspots, YX": ("yx", Flows.of_matrix(hot)),
        "sparse matrix, odd-even": ("odd-even", Flows.of_matrix(sparse)),
        "layers on random cores, west-first": ("west-first", Flows.of_matrix(layers)),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=30_000)
    cycles = parser.parse_args().cycles
    machine = load_machine("mesh:8x8")
    print(
        "| router | traffic | share held | simulated | estimated | error | trusted |\n|---|---|---|---|---|---|---|"
    )
    for config in ROUTERS:
        for name, (rule, flows) in traffic().items():
            routes = named_routes(machine, flows, rule)
            full = estimate_latency(machine, flows, routes, config, 1e6).saturation / 1e6
            just = full  # the load that is trusted just so, by bisection
            low = 0.0
            for _ in range(30):
                middle = (low + just) / 2
                trusted = estimate_latency(machine, flows, routes, config, 1 / middle).trusted
                low, just = (middle, just) if trusted else (low, middle)
            for load in (low / 3, low * 2 / 3, low, 0.9 * full):
                sent = replace(flows, rate=flows.rate * load)
                guess = estimate_latency(machine, sent, routes, config)
                run = simulate(machine, routes, of_flows(sent, 1), config, cycles=cycles, warmup=3000, seed=1)
                error = f"{100 * (guess.mean / run.latency.mean - 1):+.1f} %" if run.stable else "unstable"
                row = (
                    config.name, name, f"{guess.share:.2f}", f"{run.latency.mean:.2f}", f"{guess.mean:.2f}", error,
                    "yes" if guess.trusted else "no",
                )  # fmt: skip
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
