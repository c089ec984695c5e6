"""Application graphs of the literature on networks on chip, one task per core: proved and re-checked by the commands.

    python bench/noc_apps.py [--limit 60] [--only NAME,NAME]

Every row is ``nmsolve map`` and then ``nmsolve verify --bound`` on its folder, in fresh processes.
Exit code 1 if a graph of up to 25 tasks is not proved and recomputed within 20 s each.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path

from measure import measure

GRAPHS = Path(__file__).parent / "instances" / "noc_apps.csv"
#: Graph and mesh; the last one is the only one with more than 25 tasks.
MESHES = (
    ("vopd16", "4x4"), ("vopd", "4x4"), ("mpeg", "3x4"), ("mpeg", "4x4"), ("mwd", "3x4"), ("mwd", "4x4"), ("pip", "3x3"),
    ("263enc", "3x4"), ("263enc", "4x4"), ("263dec", "4x4"), ("mp3enc", "4x4"), ("auto_industry", "5x5"), ("80211ARX", "5x5"),
    ("dvopd", "4x8"),
)  # fmt: skip
SMALL, MOST = 25, 20.0


def edges(name: str) -> list[dict[str, str]]:
    """Return source, target and weight of every edge of a graph."""
    with GRAPHS.open() as file:
        return [row for row in csv.DictReader(file) if row["graph"] == name]


def row_of(name: str, mesh: str, limit: float, folder: Path) -> bool:
    """Print one row; return whether it is as it should be."""
    rows = edges(name)
    path, out = folder / f"{name}.csv", folder / f"{name}-{mesh}"
    lines = (f"{row['source']},{row['target']},{row['weight']}\n" for row in rows)
    path.write_text("source,target,weight\n" + "".join(lines))
    nmsolve = (sys.executable, "-m", "nmsolve")
    words = (
        "--machine",
        f"mesh:{mesh}",
        "--balance",
        "0",
        "--time-limit",
        f"{limit:g}",
        "--out",
        out,
        "--plain",
    )
    found = measure((*nmsolve, "map", path, *words), folder, limit + 60, 2**34)
    checked = measure((*nmsolve, "verify", out, "--bound"), folder, 600, 2**34)
    report = json.loads((out / "report.json").read_text())
    tasks = len({row[end] for row in rows for end in ("source", "target")})
    proved = report["status"] == "optimal" and not checked.ended
    print(
        f"| {name} | {tasks} | {mesh} | {report['objective']:,.10g} | {report['bound']:,.10g} | {report['status']} "
        f"| {found.cpu:.1f} | {'not recomputed' if checked.ended else 'recomputed'} | {checked.cpu:.1f} |",
        flush=True,
    )
    return tasks > SMALL or (proved and max(found.wall, checked.wall) <= MOST)


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    print("| graph | tasks | mesh | hops | bound | status | CPU s | verify --bound | CPU s |\n|" + "---|" * 9)
    with tempfile.TemporaryDirectory() as folder:
        good = [
            row_of(name, mesh, options.limit, Path(folder))
            for name, mesh in MESHES
            if not only or name in only
        ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
