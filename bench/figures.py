"""Reruns the figures of docs/results.md through the command line and prints them beside their targets.

    python bench/figures.py [--only NAME,NAME] [--seeds 1,2,3] [--out docs/figures.md]

Every row is one `nmsolve map` run in a fresh process on one thread. CPU seconds are the whole command's (start-up,
loading, search, bounds, reports, children); kernels must be compiled already (`make warm`). Values are read from the
evaluator's report.json. With several seeds, the median and the worst are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NMSOLVE = Path(sys.executable).with_name("nmsolve")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Row:
    """One figure: an instance, how to map it, what is read from the report, and the targets."""

    name: str
    graph: str
    args: tuple[str, ...]
    limit: float
    must: float | None
    aim: float | None
    aim_limit: float | None = None
    read: str = "objective"


SHIPPED = HERE / "instances"
QAPLIB = HERE.parent / "nmsolve" / "benchmarks" / "instances"
GENERATED: dict[str, tuple[str, ...]] = {
    "snn20k.npz": ("snn", "--nodes", "20000", "--synapses", "600000", "--layers", "8"),
    "snn100k.npz": ("snn", "--nodes", "100000", "--synapses", "5000000", "--layers", "16"),
    "geo-1000-s1.json": ("mesh-geo", "--nodes", "1000", "--side", "32"),
    "layered-1000-s1.json": ("mesh-layered", "--nodes", "1000", "--side", "32"),
    "rnd-1000-s1.json": ("mesh-rnd", "--nodes", "1000", "--side", "32"),
    "comm-256-s0.json": ("mesh-comm", "--nodes", "256", "--side", "16", "--seed", "0"),
    "comm-1024-s0.json": ("mesh-comm", "--nodes", "1024", "--side", "32", "--seed", "0"),
}
MESH = "--machine", "mesh:8x8", "--balance", "0.03"
ROWS = (
    Row("snn20k-8x8", "snn20k.npz", MESH, 10, 5.31e6, 5.10e6, 15),
    Row(
        "snn100k-16x16", "snn100k.npz", ("--machine", "mesh:16x16", "--balance", "0.03"), 60, 76.3e6, 74e6, 60
    ),
    Row("q256", "q256.graph", ("--machine", "mesh:16x16"), 10, 93.9e6, 89e6, 15),
    Row("q1024", "q1024.graph", ("--machine", "mesh:32x32"), 10, 193e6, 188e6, 15),
    Row("geo-1000", "geo-1000-s1.json", (), 5, 57.5e3, 55.5e3, 10),
    Row("layered-1000", "layered-1000-s1.json", (), 5, 27.6e3, 27.2e3, 10),
    Row("rnd-1000", "rnd-1000-s1.json", (), 5, 132.5e3, 131.5e3, 10),
    Row("comm-256", "comm-256-s0.json", (), 10, 18.9e3, 18.55e3, 20),
    Row("comm-1024", "comm-1024-s0.json", (), 10, 80.5e3, 78.5e3, 20),
    Row("delaunay_n15-8x8", "delaunay_n15.graph", MESH, 5, 6100, 5600, 10),
    Row(
        "sko100a bound",
        "sko100a.dat",
        ("--engines", "first-fit,projection"),
        2,
        142100,
        None,
        None,
        "bound",
    ),
    Row("sko100a", "sko100a.dat", (), 30, 152118, 152118, 30),
    Row("9 dense on 3x3 proved", "nug9.json", (), 20, 0.0, 0.0, 5, "gap"),
    Row("12 sparse on 3x4 proved", "comm12.json", (), 20, 0.0, 0.0, 5, "gap"),
    Row(
        "8 on 2x2 with room for 2 proved",
        "joint8.json",
        ("--machine", "mesh:2x2", "--balance", "0"),
        20,
        0.0,
        0.0,
        5,
        "gap",
    ),
)


def small_instances(folder: Path) -> None:
    """The three inputs that must be proved optimal: 9 facilities of nug12, communities of 4, a ring with chords."""
    lines = (QAPLIB / "nug12.dat").read_text().split()
    n = int(lines[0])
    values = [int(v) for v in lines[1:]]
    flow = [values[n * n + i * n : n * n + i * n + n] for i in range(n)]
    dense = [(i, j, flow[i][j]) for i in range(9) for j in range(i) if flow[i][j]]
    sparse = [(i, j, 5 + (3 * i + 5 * j) % 11) for i in range(12) for j in range(i) if i // 4 == j // 4]
    sparse += [(4, 1, 3), (8, 5, 4), (9, 6, 2), (10, 2, 1)]
    joint = [(i, (i + 1) % 8, 3 + i % 3) for i in range(8)] + [(0, 4, 2), (1, 6, 5), (2, 7, 1), (3, 5, 4)]
    for name, count, edges, mesh in (
        ("nug9", 9, dense, [3, 3]),
        ("comm12", 12, sparse, [3, 4]),
        ("joint8", 8, joint, [2, 2]),
    ):
        data = {
            "directed": False, "multigraph": False, "graph": {"name": name, "mesh": mesh},
            "nodes": [{"id": i} for i in range(count)],
            "edges": [{"source": a, "target": b, "weight": w} for a, b, w in edges],
        }  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(data))


def instance(name: str, folder: Path) -> Path:
    """Path of an instance: shipped, or generated into ``folder`` once."""
    for shipped in (SHIPPED, QAPLIB):
        if (shipped / name).exists():
            return shipped / name
    path = folder / name
    if not path.exists():
        if name in GENERATED:
            subprocess.run(
                [NMSOLVE, "generate", *GENERATED[name], "--out", path], check=True, stdout=subprocess.DEVNULL
            )
        else:
            small_instances(folder)
    return path


def run(row: Row, limit: float, seed: int, folder: Path) -> dict[str, float]:
    """Map once; value, CPU and wall seconds, peak memory."""
    out = folder / "out" / f"{row.name}-{seed}".replace(" ", "_").replace(",", "")
    command = [
        NMSOLVE,
        "map",
        instance(row.graph, folder),
        *row.args,
        "--time-limit",
        str(limit),
        "--seed",
        str(seed),
        "--out",
        out,
    ]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, capture_output=True, env=os.environ | ONE_THREAD)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads((out / "report.json").read_text())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    value = report[row.read]
    return {
        "value": float("nan") if value is None else value,
        "cpu": cpu,
        "wall": wall,
        "gap": 1.0 if report["gap"] is None else report["gap"],  # without a bound: 0 is one
    }


def line(row: Row, target: float | None, limit: float, kind: str, seeds: list[int], folder: Path) -> str:
    """One Markdown row: target, median and worst over the seeds, whether all seeds met it."""
    runs = [run(row, limit, s, folder) for s in seeds]
    values = [r["value"] for r in runs]
    higher_is_better = row.read == "bound"
    worst = min(values) if higher_is_better else max(values)
    met = target is not None and (worst >= target if higher_is_better else worst <= target)
    cpu, wall = (statistics.median(r[k] for r in runs) for k in ("cpu", "wall"))
    return (
        f"| {row.name} | {row.read} | {kind} {target:,g} in {limit:g} s | {statistics.median(values):,.10g} | {worst:,.10g} "
        f"| {'yes' if met else '**no**'} | {cpu:.1f} | {wall:.1f} |"
    )


def main() -> None:
    """Run the rows asked for and print (and save) the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="comma-separated row names")
    parser.add_argument("--kind", choices=["must", "aim", "both"], default="both")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--folder", type=Path, help="where generated instances are kept")
    parser.add_argument("--out", type=Path, help="also write the table here")
    a = parser.parse_args()
    seeds = [int(s) for s in a.seeds.split(",")]
    folder = a.folder or Path(tempfile.mkdtemp(prefix="nmsolve-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    names = set(a.only.split(",")) if a.only else {r.name for r in ROWS}
    table = [
        "| instance | read | target | median | worst | met | CPU s | wall s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(table), flush=True)
    for row in ROWS:
        if row.name not in names:
            continue
        targets = [("must", row.must, row.limit), ("aim", row.aim, row.aim_limit or row.limit)]
        for kind, target, limit in targets:
            if target is not None and a.kind in (kind, "both"):
                table.append(line(row, target, limit, kind, seeds, folder))
                print(table[-1], flush=True)
    if a.out:
        a.out.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
