"""CPU seconds of whole commands outside their searches: start, statement, files, checks and page.

    python bench/outside.py                       # the five kinds, medians of 10 runs
    python bench/outside.py --base CHECKOUT       # the same beside another checkout, in turns
    python bench/outside.py --only map --runs 20

A command's own CPU seconds and those of the processes that it waited for, without what its report says of the search. Run
``nmsolve doctor --warm`` before: compiling a kernel takes seconds.
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
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
#: What is made before, name -> words of ``nmsolve generate``; and ``mapped``, a mapping of comm64.
INPUTS = {
    "comm64.json": "mesh-comm --nodes 64 --seed 0",
    "costs.json": "assignment --nodes 200",
    "tasks.json": "tasks",
}
#: Name -> command, and its report.
COMMANDS = {
    "map": ("map comm64.json -m mesh:8x8 -t LIMIT", "report.json"),
    "route": ("route mapped -t LIMIT", "route-report.json"),
    "pipeline": ("pipeline dag.json --cores 16 -t LIMIT", "pipeline-report.json"),
    "assign": ("assign costs.json -t LIMIT", "report.json"),
    "schedule": ("schedule tasks.json -t LIMIT", "report.json"),
}


def dag(layers: int) -> dict[str, object]:
    """A chain of layers with some skips, as `nmsolve pipeline` reads it."""
    node = {"supportedOnFpga": 1, "cpuLatency": 9.0, "isBackwardNode": 0, "size": 4.0}
    nodes = [{"id": k, "fpgaLatency": 1.0 + k % 7} | node for k in range(layers)]
    ends = [(k, k + j) for k in range(layers) for j in (1, 3) if k + j < layers]
    edges = [{"sourceId": a, "destId": b, "cost": 0.2, "size": 8.0} for a, b in ends]
    return {"maxSizePerFPGA": 100.0, "maxFPGAs": 8, "maxCPUs": 1, "nodes": nodes, "edges": edges}


def nmsolve(checkout: Path, folder: Path, words: list[str]) -> float:
    """Run a command of a checkout in a folder; return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "nmsolve", *words], cwd=folder, env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3, 4):
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def outside(checkout: Path, folder: Path, name: str, limit: float) -> float:
    """CPU seconds of a command outside its search."""
    words, report = COMMANDS[name]
    out = folder / f"out-{name}"
    spent = nmsolve(checkout, folder, [*words.replace("LIMIT", f"{limit:g}").split(), "-o", str(out)])
    return spent - float(json.loads((out / report).read_text())["cpu_seconds"])


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--base", type=Path, help="another checkout")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds; short ones leave pictures out")
    parser.add_argument("--only", default="", help="commands, by commas")
    given = parser.parse_args()
    chosen = [name for name in COMMANDS if not given.only or name in given.only.split(",")]
    checkouts = [HERE] if given.base is None else [given.base.resolve(), HERE]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, words in INPUTS.items():
            nmsolve(HERE, folder, ["generate", *words.split(), "--out", file])
        (folder / "dag.json").write_text(json.dumps(dag(60)))
        nmsolve(HERE, folder, ["map", "comm64.json", "-m", "mesh:8x8", "-t", "3", "-o", "mapped"])
        print("command     " + "".join(f"{c.name[:20]:>22}" for c in checkouts) + "   (median, least)")
        for name in chosen:
            seconds: list[list[float]] = [[] for _ in checkouts]
            for _ in range(given.runs):
                for into, checkout in zip(seconds, checkouts, strict=True):
                    into.append(outside(checkout, folder, name, given.limit))
            found = "".join(f"{statistics.median(s):>15.2f}{min(s):>7.2f}" for s in seconds)
            print(f"{name:12}{found}", flush=True)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    print(f"load {load:.1f}")


if __name__ == "__main__":
    main()
