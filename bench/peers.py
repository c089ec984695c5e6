"""nmsolve against METIS + SCOTCH, SCOTCH, Mt-KaHyPar, KaMinPar + rig, rig and PACMAN at equal CPU time, losses included.

    python bench/peers.py --peers-python PATH [--only NAME,...] [--seed 1] [--out docs/peers.md]

PATH is a Python with numpy, scipy and the peers; one that is not installed is named, with how to install it. SANA-FE 2.2.9
has no mapping of its own but the order of the neurons, the engine in-order (`nmsolve bench peers` compares with it). A peer
that finishes early runs again with the next seed until its CPU seconds are used up (at least once, at most 50 times), and its
best run counts; one that does not finish one run in three times the budget and a minute is shown as such.
nmsolve runs once with the same number of seconds as its limit, and everything it does counts: loading, bounds,
report. Every mapping, whoever made it, is scored by nmsolve's evaluator and checked against the capacity.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from figures import MESH, ONE_THREAD, ROWS, Row, instance, run
from sparse import delaunay, geometric

from nmsolve.hw.scores import objective_value
from nmsolve.kinds.loading import instance as load
from nmsolve.model.formats import writer
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import make_problem

#: Nodes of random geometric graphs, their seeds, and the CPU seconds that they are mapped with onto 8x8 cores.
POINTS, POINT_SEEDS, POINT_SECONDS = 2**15, (911, 912), (1.5, 5.0, 10.0)
#: The same for Delaunay graphs, with their nodes.
DELAUNAY_SEEDS, DELAUNAY_SECONDS = ((30_000, 921), (200_000, 922)), (3.0, 10.0)
PEERS = ("metis+scotch", "scotch", "mt-kahypar", "kaminpar+rig", "rig", "pacman")
#: What a peer needs: modules of PATH, programs, and what installs them.
NEEDS = {
    "metis+scotch": (("pymetis",), ("scotch_gmap",), "pip install pymetis==2025.2.2; apt install scotch"),
    "scotch": ((), ("scotch_gmap",), "apt install scotch"),
    "mt-kahypar": (("mtkahypar",), (), "pip install mtkahypar==1.7.post1"),
    "kaminpar+rig": (
        ("kaminpar", "rig", "rig_c_sa"),
        (),
        "pip install kaminpar==3.7.3 rig==2.4.1 rig_c_sa==0.4.0",
    ),
    "rig": (("rig", "rig_c_sa"), (), "pip install rig==2.4.1 rig_c_sa==0.4.0"),
    "pacman": (("pacman",), (), "pip install SpiNNaker_PACMAN==1!7.4.1"),
}
#: Spiking networks, mapped onto 8x8 cores for ``SNN_SECONDS``.
SNN_NAMES, SNN_SECONDS = ("reservoir-4096", "microcircuit-10%", "layered-8000", "convolution-6400"), 5.0
NAMES = (
    "snn20k-8x8", "snn100k-16x16", "q256", "q1024", "geo-1000", "layered-1000", "rnd-1000", "comm-256", "comm-1024",
    "delaunay_n15-8x8", *SNN_NAMES, *(f"rgg15-{seed} {seconds:g} s" for seed in POINT_SEEDS for seconds in POINT_SECONDS),
    *(f"del{n // 1000}k-{seed} {seconds:g} s" for n, seed in DELAUNAY_SEEDS for seconds in DELAUNAY_SECONDS),
)  # fmt: skip


def planar_rows(folder: Path) -> list[Row]:
    """Random points in the unit square, joined to near ones or by Delaunay."""
    out = []
    for name, n, seed, make, limits in (
        *((f"rgg15-{seed}", POINTS, seed, geometric, POINT_SECONDS) for seed in POINT_SEEDS),
        *((f"del{n // 1000}k-{seed}", n, seed, delaunay, DELAUNAY_SECONDS) for n, seed in DELAUNAY_SEEDS),
    ):
        path = folder / f"{name}.graph"
        if not path.exists():
            writer(path)(make(n, seed), path)
        out += [Row(f"{name} {s:g} s", str(path), MESH, s, None, None) for s in limits]
    return out


def spiking_rows(folder: Path) -> list[Row]:
    """Networks that users of spiking chips have, generated once."""
    from sanafe import convolution

    make = {
        SNN_NAMES[0]: lambda: generate("reservoir", nodes=4096, fan=60),
        SNN_NAMES[1]: lambda: generate("microcircuit", scale=0.1),
        SNN_NAMES[2]: lambda: generate("snn", nodes=8000, synapses=240000, layers=8),
        SNN_NAMES[3]: lambda: convolution(20, 4, 4),
    }
    for name, graph in make.items():
        path = folder / f"{name}.npz"
        if not path.exists():
            writer(path)(graph(), path)
    return [Row(name, str(folder / f"{name}.npz"), MESH, SNN_SECONDS, None, None) for name in SNN_NAMES]


def missing(python: str) -> dict[str, str]:
    """Peers that are not installed, and how to install them."""
    out = {}
    for peer, (modules, programs, how) in NEEDS.items():
        code = "; ".join(f"import {m}" for m in modules if m != "rig_c_sa") or "pass"
        there = subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
        if not there or not all(shutil.which(program) for program in programs):
            out[peer] = how
    return out


def refuses(peer: str, problem: MappingProblem) -> str:
    """Why a peer cannot take the instance; empty if it can."""
    if peer in ("metis+scotch", "kaminpar+rig") and problem.one_per_core:
        return "no partition to make"
    if peer == "rig" and not problem.one_per_core:
        return "one node per core only"
    if peer == "pacman" and max(problem.machine.rows, problem.machine.cols) > 8:
        return "a board of 8x8 chips only"
    if peer == "mt-kahypar" and problem.cores > 64:
        return "did not finish at > 64 cores"
    return ""


def whole_weights(problem: MappingProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Symmetric traffic with whole weights (scaled by 1000 where they are not), as the peers need them."""
    indptr, indices, weights = problem.graph.traffic
    scale = 1 if problem.graph.integral else 1000
    return indptr, indices, np.maximum(1, np.rint(weights * scale)).astype(np.int64)


def peer_best(
    python: str, peer: str, problem: MappingProblem, budget: float, balance: float, seed: int
) -> str:
    """Best value of a peer within ``budget`` CPU seconds of its own calls, as a table cell."""
    best, feasible, spent, runs = np.inf, True, 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        graph, out = Path(folder) / "graph.npz", Path(folder) / "core.npy"
        indptr, indices, weights = whole_weights(problem)
        np.savez(graph, indptr=indptr, indices=indices, weights=weights)
        size = problem.machine.rows, problem.machine.cols
        while spent < budget and runs < 50:
            command = [
                python,
                Path(__file__).with_name("peer_worker.py"),
                peer,
                graph,
                *size,
                balance,
                seed + runs,
                out,
            ]
            try:
                done = subprocess.run(
                    [str(c) for c in command], capture_output=True, text=True, timeout=3 * budget + 60,
                    env=os.environ | ONE_THREAD, check=True,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"not finished in {3 * budget + 60:.0f} s" if runs == 0 else f"{best:,.6g}"
            except subprocess.CalledProcessError as error:
                return f"failed ({(error.stderr.strip().splitlines() or ['?'])[-1][:60]})"
            spent, runs = spent + max(float(done.stdout.split()[-1]), 1e-3), runs + 1
            core = np.load(out)
            value = objective_value(problem, core)
            if value < best:
                best, feasible = value, not check_mapping(problem, core)
    note = "" if feasible else " (over capacity)"
    return f"{best:,.6g}{note} ({runs} runs, {spent:.1f} s)"


def compare(row: Row, python: str, seed: int, folder: Path, absent: dict[str, str]) -> str:
    """One row of the table."""
    path = instance(row.graph, folder)
    args = dict(zip(row.args[::2], row.args[1::2], strict=True))
    graph, machine = load(path, args.get("--machine"), None)
    balance = float(args["--balance"]) if "--balance" in args else None
    problem = make_problem(graph, machine, balance=balance)
    ours = run(row, row.limit, seed, folder)
    cells, values = [], []
    for peer in PEERS:
        why = "not installed" if peer in absent else refuses(peer, problem)
        cells.append(f"({why})" if why else peer_best(python, peer, problem, row.limit, balance or 0.0, seed))
        if not why and cells[-1][0].isdigit():
            values.append(float(cells[-1].split()[0].replace(",", "")))
    against = min(values) if values else float("nan")
    verdict = f"{100 * (1 - ours['value'] / against):+.1f} %"
    return (
        f"| {row.name} | {row.limit:g} | **{ours['value']:,.6g}** ({ours['cpu']:.1f} s), gap {100 * ours['gap']:.1f} % | "
        + " | ".join(cells)
        + f" | {verdict} |"
    )


def main() -> None:
    """Print the table, row by row, and save it if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers-python", required=True)
    parser.add_argument("--only", help="comma-separated row names")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    a = parser.parse_args()
    folder = a.folder or Path(tempfile.mkdtemp(prefix="nmsolve-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    chosen = a.only.split(",") if a.only else NAMES
    absent = missing(a.peers_python)
    for peer, how in absent.items():
        print(f"{peer} is not installed: {how}", flush=True)
    table = [
        "| instance | CPU s each | nmsolve | " + " | ".join(PEERS) + " | nmsolve better by |",
        "|---" * (len(PEERS) + 4) + "|",
    ]
    print("\n".join(table), flush=True)
    for row in (r for r in (*ROWS, *spiking_rows(folder), *planar_rows(folder)) if r.name in chosen):
        table.append(compare(row, a.peers_python, a.seed, folder, absent))
        print(table[-1], flush=True)
    if a.out:
        a.out.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
