"""Routes and turns: named rules beside what is found and proved. `python bench/routing.py [SECONDS [SIZE ...]]`.

`layered`: n layers of n cores in random places on n x n, each pair of cores in neighbouring layers exchanges 1 to 10 messages
with probability 0.7 (a fully connected network is denser, a convolution sparser). `transpose`, `complement`: every core sends one
message to the core with row and column exchanged, or all bits inverted. `all-to-all`: one message for every pair.
"""

from __future__ import annotations

import sys

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.named import named_routes
from nmsolve.kinds.routing.bench import layered
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.flows import Flows, flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.solvers.routing.api import route

#: Seconds and the gap that is good enough, by size: small ones are to be proved.
LIMITS = {4: (60.0, 0.0), 6: (60.0, 0.0), 8: (60.0, 0.0), 12: (120.0, 0.0), 16: (120.0, 0.0)}
RULES = ("xy", "yx", "west-first", "north-last", "negative-first", "odd-even")


def pattern(kind: str, n: int) -> Flows:
    """One message per step from every core, or for every pair of cores."""
    p = np.arange(n * n)
    if kind == "all-to-all":
        return Flows.of_matrix(np.ones((n * n, n * n)))
    q = p % n * n + p // n if kind == "transpose" else n * n - 1 - p
    return Flows.of_pairs(p[p != q], q[p != q], np.ones(int((p != q).sum())))


def cases(size: int) -> list[tuple[str, Flows]]:
    """Names and flows of the instances of one size."""
    cores = size * size
    out = [
        (f"layered, seed {s}", flows_of(layered(size, s), np.arange(cores), cores))
        for s in ((1, 2, 3) if size <= 8 else (1,))
    ]
    out += [(kind, pattern(kind, size)) for kind in ("transpose", "complement")]
    return out + ([("all-to-all", pattern("all-to-all", size))] if size <= 4 else [])


def row(name: str, size: int, flows: Flows, seconds: float, enough: float) -> str:
    """One row of the table; every answer is checked again by the rules in plain Python."""
    problem = RoutingProblem(load_machine(f"mesh:{size}x{size}"), flows)
    named = [named_routes(problem.machine, flows, rule) for rule in RULES]
    rules = [route_loads(problem.machine, flows, routes).max() for routes in named]
    found = route(problem, time_limit=seconds, gap=enough)
    if found.solution is None or routes_complaint(problem, found.solution.routes) is not None:
        return f"| {size}x{size} {name} | {flows.count} | {rules[0]:g} | {min(rules):g} | none | | | | {found.cpu_seconds:.1f} |"
    load, bound = found.scores["max-link"], found.bound_of("max-link")
    proved = (
        "all"
        if found.status == "optimal"
        else ", ".join(k for k in problem.objective if found.proved(k)) or "none"
    )
    turns = f"{found.scores['turns']:g} (>= {found.bound_of('turns'):g})"
    return (
        f"| {size}x{size} {name} | {flows.count} | {rules[0]:g} | {min(rules):g} | {load:g} | {bound:g} | "
        f"{100 * (found.gap or 0):.1f} % | {turns} | {proved} | {found.wall_seconds:.1f} | {found.cpu_seconds:.1f} |"
    )


def main() -> None:
    """Print one table row per instance."""
    sizes = [int(a) for a in sys.argv[2:]] or [4, 6, 8]
    print(
        "| instance | flows | XY | best rule | largest load | bound | gap | turns prohibited | proved | wall s | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for size in sizes:
        seconds, enough = LIMITS[size]
        if len(sys.argv) > 1:
            seconds = float(sys.argv[1])
        for name, flows in cases(size):
            print(row(name, size, flows, seconds, enough), flush=True)


if __name__ == "__main__":
    main()
