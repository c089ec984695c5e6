"""Whether tight assignments with a known answer get one, from one script.

``python bench/tight_assignments.py [--time-limit 30] [--workers 1] [--largest 100000] [--only 3,7]`` generates fifty cost
networks (``nmsolve generate assignment``: 100 to 10^5 nodes, up to 10^6 strategies, 85 to 99 % of memory used by the known
answer, 20 to 60 % of all pairs forbidden) and solves each in automatic mode. A line for each: seconds of the first answer, the
best cost and that of the known answer, seconds and CPU seconds of the run. Exit code 1 where there is none, or a rule is broken.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterator

from nmsolve.model import clock
from nmsolve.model.assignment.generate import generate_network
from nmsolve.model.assignment.network import network_complaint, network_cost
from nmsolve.model.bound import Event
from nmsolve.solvers.assignment.api import solve_network

#: Nodes, and strategies of a node on average.
SIZES = (
    (100, 4), (300, 16), (1_000, 8), (1_000, 40), (3_000, 10), (10_000, 6), (10_000, 20), (30_000, 10), (100_000, 5),
    (100_000, 10),
)  # fmt: skip
#: Pairs per node, part of them forbidden, memory used by the known answer, and how thrifty that is.
NAMES = ("pairs", "forbidden", "tightness", "thrift")
KINDS = (
    (1.2, 0.2, 0.99, 0.3), (1.5, 0.3, 0.85, 0.0), (1.5, 0.4, 0.95, 0.5), (1.3, 0.5, 0.99, 0.8), (2.0, 0.6, 0.97, 0.5),
)  # fmt: skip


def cases() -> Iterator[tuple[int, dict[str, float]]]:
    """Number and parameters of every network."""
    number = 0
    for nodes, strategies in SIZES:
        for kind in KINDS:
            number += 1
            given = dict(zip(NAMES, kind, strict=True))
            yield number, {"nodes": nodes, "strategies": strategies, "seed": number, **given}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--only", type=lambda text: [int(x) for x in text.split(",")], default=None)
    asked = parser.parse_args()
    print("| | network | strategies | pairs | first answer, s | cost | of the known answer | s | CPU s |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    fine = True
    for number, given in cases():
        if given["nodes"] <= asked.largest and (asked.only is None or number in asked.only):
            fine = row(number, given, asked) and fine
    return int(not fine)


def row(number: int, given: dict[str, float], asked: argparse.Namespace) -> bool:
    """One line of the table; whether there is an answer that keeps all rules."""
    network, known = generate_network(**given)  # type: ignore[arg-type]
    first: list[float] = []
    before, begun = cpu(), clock.now()

    def seen(event: Event) -> None:
        if not first and event.kind == "incumbent":
            first.append(event.seconds)

    result = solve_network(
        network, time_limit=asked.time_limit, workers=asked.workers, seed=1, observers=[seen]
    )
    fine = result.solution is not None and network_complaint(network, result.solution) is None
    cost = f"{network_cost(network, result.solution):,}" if fine else "NONE"
    cells = [
        str(number), network.name, f"{len(network.cost):,}", f"{len(network.ends):,}", f"{first[0]:.1f}" if first else "-", cost,
        f"{network_cost(network, known):,}", f"{clock.now() - begun:.1f}", f"{cpu() - before:.1f}",
    ]  # fmt: skip
    print(f"| {' | '.join(cells)} |", flush=True)
    return fine


def cpu() -> float:
    """CPU seconds of this process and its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


if __name__ == "__main__":
    sys.exit(main())
