"""Step time and energy of mappings, predicted and simulated by SANA-FE: errors and rank correlations.

Usage: OPENBLAS_NUM_THREADS=1 python bench/sanafe.py --python ENV/bin/python [--seconds 10] [--steps 200] [--only NAME]

SANA-FE is not part of nmsolve and has an environment of its own: ``python -m venv ENV``, ``ENV/bin/pip install sanafe==2.2.9``.
Without it the command says so and ends. Six networks on Loihi 1, four mappings each: one after the other on as few cores as hold
them, in order over all cores, mapped for ``hops``, mapped for ``step-time``. Rates are scaled so that no neuron fires more than
once per step; SANA-FE's barrier is set to 0 in exported files, so what is compared is the step without it. Energy is that of
messages and hops, of which every copy pays (docs/energy.md).
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import spearmanr

from nmsolve.hw.machines import load_machine
from nmsolve.hw.sanafe import export_sanafe
from nmsolve.hw.step_time import longest, step_costs, step_loads
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.api import solve

#: What runs in SANA-FE's environment: one mapping, this many steps; prints seconds and joules.
SIMULATE = """
import json, sanafe, sys
folder, steps = sys.argv[1], int(sys.argv[2])
arch = sanafe.load_arch(folder + "/arch.yaml")
chip = sanafe.SpikingChip(arch)
chip.load(sanafe.load_net(folder + "/network.yaml", arch))
told = chip.sim(steps)
print("told", json.dumps({"time": told["sim_time"], "energy": told["energy"]["network"]}))
"""


def random_network(n: int, fan: int, seed: int) -> LogicGraph:
    """Every neuron sends to ``fan`` random others, as in Brunel's balanced network; a fifth of them fire four times as often."""
    rng = np.random.default_rng(seed)
    target = np.concatenate([rng.choice(n, fan, replace=False) for _ in range(n)])
    rate = np.where(rng.random(n) < 0.2, 4.0, 1.0)
    source = np.repeat(np.arange(n), fan)
    return LogicGraph.from_edges(n, source, target, rate[source], multicast=np.ones(n, bool))


def convolution(side: int, channels: int, layers: int) -> LogicGraph:
    """Layers of ``channels`` x ``side`` x ``side`` neurons; each hears a 3 x 3 window of all channels of the layer before."""
    at = np.arange(layers * channels * side * side).reshape(layers, channels, side, side)
    source, target = [], []
    for layer in range(layers - 1):
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                ys, xs = slice(max(0, -dy), side - max(0, dy)), slice(max(0, -dx), side - max(0, dx))
                yt, xt = slice(max(0, dy), side - max(0, -dy)), slice(max(0, dx), side - max(0, -dx))
                for a in range(channels):
                    for b in range(channels):
                        source.append(at[layer, a, ys, xs].ravel())
                        target.append(at[layer + 1, b, yt, xt].ravel())
    ends = np.concatenate(source), np.concatenate(target)
    return LogicGraph.from_edges(at.size, *ends, np.ones(len(ends[0])), multicast=np.ones(at.size, bool))


NETWORKS = {
    "random 1,000": lambda: random_network(1000, 100, 1),
    "microcircuit 2 %": lambda: generate("microcircuit", scale=0.02),
    "random 500": lambda: random_network(500, 20, 2),
    "reservoir 1,024": lambda: generate("reservoir", nodes=1024, fan=60),
    "layered snn 2,000": lambda: generate("snn", nodes=2000, synapses=60000, directed=1),
    "convolution 3,136": lambda: convolution(14, 4, 4),
}


@dataclass(frozen=True)
class Row:
    """One mapping: ns per step without the barrier and pJ per step, predicted and simulated."""

    network: str
    mapping: str
    time: float
    simulated_time: float
    energy: float
    simulated_energy: float


def scaled(graph: LogicGraph) -> LogicGraph:
    """The network with rates of at most one message per step."""
    most = float(graph.rate.max())
    return replace(
        graph,
        rate=graph.rate / most,
        weights=graph.weights / most,
        resources=(),
        sizes=np.zeros((graph.n, 0), np.int64),
    )


def mappings(graph: LogicGraph, seconds: float) -> dict[str, IntArray]:
    """The four mappings of a network."""
    machine = load_machine("loihi1")
    machine = replace(
        machine, capacity={"neurons": machine.capacity["neurons"]}
    )  # axon tables are another question
    order, room = np.arange(graph.n), 1024
    out = {"fewest cores": order // room, "in order": order * machine.size // graph.n}
    for objective in ("hops", "step-time"):
        problem = MappingProblem(graph, machine, objective, (), room)
        engines = ["multilevel"] if objective == "hops" else ["steps"]
        out[objective] = solve(problem, time_limit=seconds, engines=engines, seed=1).core
    return out


def measured(name: str, seconds: float, steps: int, python: str, folder: Path) -> list[Row]:
    """All mappings of a network, predicted and simulated."""
    graph, machine = scaled(NETWORKS[name]()), load_machine("loihi1")
    aside, out = step_costs(machine).aside, []
    for mapping, core in mappings(graph, seconds).items():
        place = folder / f"{name} {mapping}".replace(" ", "-").replace(",", "").replace("%", "percent")
        made = export_sanafe(graph, machine, core, place)
        done = subprocess.run(
            [python, "-c", SIMULATE, str(place), str(steps)], capture_output=True, text=True, check=True
        )
        told = json.loads(done.stdout.rsplit("told ", 1)[1])
        out.append(
            Row(
                name, mapping, longest(step_loads(graph, machine, core), aside), told["time"] / steps * 1e9,
                made.expected.network_energy, told["energy"] / steps * 1e12,
            )
        )  # fmt: skip
    return out


def summary(rows: list[Row]) -> list[str]:
    """Lines of the table, and what it comes to."""
    lines = [
        "| network | mapping | ns per step | SANA-FE | off by | pJ per step | SANA-FE | off by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    off = {
        "time": [r.time / r.simulated_time - 1 for r in rows],
        "energy": [r.energy / r.simulated_energy - 1 for r in rows],
    }
    for r, t, e in zip(rows, off["time"], off["energy"], strict=True):
        lines.append(
            f"| {r.network} | {r.mapping} | {r.time:,.0f} | {r.simulated_time:,.0f} | {t:+.1%} "
            f"| {r.energy:,.0f} | {r.simulated_energy:,.0f} | {e:+.2%} |"
        )
    for what, pairs in (
        ("time", [(r.time, r.simulated_time) for r in rows]), ("energy", [(r.energy, r.simulated_energy) for r in rows]),
    ):  # fmt: skip
        rank = float(spearmanr(*zip(*pairs, strict=True)).statistic)
        errors = np.abs(off[what])
        lines.append(
            f"{what}: rank correlation {rank:.3f}, median error {np.median(errors):.1%}, largest {errors.max():.1%}"
        )
    return lines


def main() -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default="", help="Python of an environment with sanafe")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each search for a mapping")
    parser.add_argument("--steps", type=int, default=200, help="that are simulated")
    parser.add_argument("--only", default="", help="networks whose names hold this")
    o = parser.parse_args()
    found = (
        o.python and subprocess.run([o.python, "-c", "import sanafe"], capture_output=True).returncode == 0
    )
    if not found:
        print("skipped: no SANA-FE (--python ENV/bin/python, after ENV/bin/pip install sanafe==2.2.9)")
        return 0
    rows: list[Row] = []
    with TemporaryDirectory() as folder:
        for name in NETWORKS:
            if o.only in name:
                rows += measured(name, o.seconds, o.steps, o.python, Path(folder))
                print("\n".join(summary(rows)[2:-2]), flush=True)
    print("\n".join(summary(rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
