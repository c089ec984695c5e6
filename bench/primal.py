"""How early `nmsolve map` has good mappings, on the instances of bench/figures.py, beside an older checkout.

    python bench/primal.py [--base PATH] [--only NAME,NAME] [--seed 1] [--seconds S] [--folder DIR]

Every run has a process of its own whose clock counts its CPU seconds, from the moment that the problem is stated; no run counts
in which kernels were compiled, another follows it. Distances are those from the best value that any of the runs found:

* first: when the first mapping was there, and how far it was from the best
* 2 %: when a mapping within 2 % of the last one was there
* integral: the mean distance over the run, 100 % before the first mapping (Berthold 2013)

PATH is a checkout, made by `git worktree add PATH COMMIT`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from figures import MESH, NMSOLVE, ONE_THREAD, ROWS, instance

HERE = Path(__file__).resolve().parent.parent
LOIHI = "--machine", "loihi1", "--objective", "hops"
#: More networks, for this table alone.
MORE: dict[str, tuple[str, ...]] = {
    "microcircuit-5.npz": ("microcircuit", "--scale", "0.05"),
    "microcircuit-20.npz": ("microcircuit", "--scale", "0.2"),
    "snn-1000.npz": ("snn", "--nodes", "1000", "--synapses", "30000", "--layers", "4"),
    "snn-5000.npz": ("snn", "--nodes", "5000", "--synapses", "150000", "--layers", "6"),
}
#: Reads a graph, states the problem and runs automatic mode, in the checkout that is first on the path.
WORKER = """
import json, sys
from nmsolve.hw.machines import load_machine
from nmsolve.model import clock
from nmsolve.model.formats import load_graph
from nmsolve.model.formats.implied import implied_machine
from nmsolve.solvers.mapping.api import make_problem, solve
path, machine, balance, objective, seconds, seed = sys.argv[1:]
graph = load_graph(path)
board = load_machine(machine) if machine else implied_machine(graph, path)
given = {"balance": float(balance)} if balance else {}
problem = make_problem(graph, board, objective=objective, **given)
clock.count_cpu()
result = solve(problem, time_limit=float(seconds), seed=int(seed))
print(json.dumps([(e.seconds, e.objective) for e in result.events if e.kind == "incumbent" and e.objective is not None]))
"""


@dataclass(frozen=True)
class Case:
    """An instance, its machine (none: the one in its file) and CPU seconds."""

    name: str
    graph: str
    args: tuple[str, ...]
    seconds: float


CASES = (
    *(Case(row.name, row.graph, row.args, row.limit) for row in ROWS if row.read == "objective"),
    Case("microcircuit-5, loihi1", "microcircuit-5.npz", LOIHI, 10),
    Case("microcircuit-5, 64 cores", "microcircuit-5.npz", ("--machine", "mesh:8x8", "--balance", "0.1"), 10),
    # 128 neurons per core
    Case("microcircuit-20, 132 cores", "microcircuit-20.npz", ("--machine", "mesh:11x12", "--balance", "0.09"), 20),
    Case("snn-1000", "snn-1000.npz", MESH, 5),
    Case("snn-5000", "snn-5000.npz", MESH, 5),
    Case(
        "snn-5000 multicast-hops", "snn-5000.npz", (*MESH, "--objective", "multicast-hops"), 10
    ),
)  # fmt: skip


def curve(case: Case, checkout: Path, seed: int, folder: Path) -> list[tuple[float, float]]:
    """Objectives as ``(CPU second, value)``, of a run in which nothing was compiled."""
    kernels = folder / "kernels" / str(checkout).replace("/", "_")
    kernels.mkdir(parents=True, exist_ok=True, mode=0o700)
    given = dict(zip(case.args[::2], case.args[1::2], strict=True))
    options = [given.get(name, "") for name in ("--machine", "--balance")] + [
        given.get("--objective", "hops")
    ]
    command = [
        sys.executable,
        "-c",
        WORKER,
        graph(case.graph, folder),
        *options,
        str(case.seconds),
        str(seed),
    ]
    setting = os.environ | ONE_THREAD | {"PYTHONPATH": str(checkout), "NUMBA_CACHE_DIR": str(kernels)}
    while True:
        before = sum(1 for _ in kernels.rglob("*.nbc"))
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=setting, cwd=folder)
        if sum(1 for _ in kernels.rglob("*.nbc")) == before:
            return [(at, value) for at, value in json.loads(done.stdout)]


def graph(name: str, folder: Path) -> Path:
    """Path of a graph: shipped, or generated into ``folder`` once."""
    if name not in MORE:
        return instance(name, folder)
    if not (folder / name).exists():
        subprocess.run(
            [NMSOLVE, "generate", *MORE[name], "--out", folder / name], check=True, stdout=subprocess.DEVNULL
        )
    return folder / name


def integral(found: list[tuple[float, float]], best: float, seconds: float) -> float:
    """Mean distance from ``best`` over ``seconds``, a part of the value; 1 before the first mapping."""
    whole, since, distance = 0.0, 0.0, 1.0
    for at, value in found:
        whole += distance * (min(at, seconds) - since)
        since, distance = min(at, seconds), (value - best) / value if value > 0 else 0.0
    return (whole + distance * (seconds - since)) / seconds


def cells(found: list[tuple[float, float]], best: float, seconds: float) -> tuple[str, float]:
    """First mapping, 2 % of the last, integral and last value, as cells of a table; the integral."""
    if not found:
        return "- | - | 100.0 % | -", 1.0
    (first, value), last = found[0], found[-1][1]
    near = next(at for at, value in found if value <= 1.02 * last)
    mean = integral(found, best, seconds)
    far = 100 * (value / best - 1) if best > 0 else 0.0
    return f"{first:.2f} s, +{far:.0f} % | {near:.2f} s | {100 * mean:.1f} % | {last:,.10g}", mean


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, help="checkout to compare with")
    parser.add_argument("--only", help="names, separated by semicolons")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, help="CPU seconds of every run, instead of those of the instance"
    )
    parser.add_argument("--folder", type=Path, help="where graphs and kernels are kept")
    a = parser.parse_args()
    folder = (a.folder or Path(tempfile.mkdtemp(prefix="nmsolve-primal-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    checkouts = [HERE] if a.base is None else [a.base.resolve(), HERE]
    labels = ["now"] if a.base is None else ["base", "now"]
    heads = [f"{what} {label}" for label in labels for what in ("first", "2 %", "integral", "last")]
    print(f"| instance | CPU s | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}", flush=True)
    ratios = []
    for case in CASES:
        if a.only and case.name not in a.only.split(";"):
            continue
        seconds = a.seconds or case.seconds
        case = Case(case.name, case.graph, case.args, seconds)
        curves = [curve(case, checkout, a.seed, folder) for checkout in checkouts]
        best = min((value for found in curves for _, value in found), default=0.0)
        rows = [cells(found, best, seconds) for found in curves]
        print(f"| {case.name} | {seconds:g} | {' | '.join(text for text, _ in rows)} |", flush=True)
        if len(rows) == 2 and rows[0][1] > 0:
            ratios.append(max(rows[1][1], 1e-9) / rows[0][1])
    if ratios:
        mean = statistics.geometric_mean(ratios)
        print(f"\nintegral now over base, geometric mean of {len(ratios)}: {mean:.2f}")


if __name__ == "__main__":
    main()
