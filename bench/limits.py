"""How late commands end that were given a time limit or a Ctrl-C, on an idle machine or beside background load.

    python bench/limits.py                                    # every command at every limit
    python bench/limits.py --kinds --load 4 --limits 1.5,5,20    # the five kinds of problem, beside four busy processes
    python bench/limits.py --kinds --load 4 --limits 20 --signals 3   # Ctrl-C at random moments of three runs each
    python bench/limits.py --only route,gap --limits 3

Prints seconds from ``--time-limit``, or from Ctrl-C if that comes first, to the end of each command, and their least, median and
largest. Marks behind a run: ``p`` its page is missing or has no pictures, ``c`` checks were left out, ``!`` it failed. Ends with
1 if any run failed or was more than a second late. ``nmsolve bench`` has a limit per run: what counts is its slowest run.
Run ``nmsolve doctor --warm`` before: compiling a kernel takes seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NMSOLVE = [sys.executable, "-m", "nmsolve"]
DATA = Path(__file__).parent.parent / "tests" / "data"
#: What a page with pictures holds.
PICTURES = re.compile("<svg|explorer-data")
#: What ``--time-limit`` promises: this many seconds later everything is written.
PROMISE = 1.0


def inputs(folder: Path) -> None:
    """Networks, and a mapping of one, that the commands work on."""

    def make(kind: str, name: str, *words: str) -> None:
        subprocess.run([*NMSOLVE, "generate", kind, *words, "--out", str(folder / name)], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip

    make("mesh-geo", "geo4096.json", "--nodes", "4096", "--side", "64")
    make("snn", "snn.npz", "--nodes", "20000", "--synapses", "600000")
    make("snn", "small.json", "--nodes", "400", "--synapses", "3000", "--layers", "4")
    make("snn", "stored.nmz", "--nodes", "20000", "--synapses", "600000", "--layers", "8")
    make("mesh-comm", "tiny.json", "--nodes", "12", "--side", "4")
    make("snn", "snn100k.npz", "--nodes", "100000", "--synapses", "5000000")
    make("assignment", "costs.json", "--nodes", "2000")
    make("tasks", "tasks.json")
    make("tasks", "tasks6k.json", "--networks", "100", "--processes", "60")
    nodes = [{"id": k, "supportedOnFpga": 1, "cpuLatency": 9.0, "fpgaLatency": 1.0 + k % 7, "isBackwardNode": 0, "size": 4.0}
             for k in range(200)]  # fmt: skip
    edges = [
        {"sourceId": k, "destId": k + j, "cost": 0.2, "size": 8.0}
        for k in range(200)
        for j in (1, 3)
        if k + j < 200
    ]
    (folder / "dag.json").write_text(
        json.dumps({"maxSizePerFPGA": 100.0, "maxFPGAs": 8, "maxCPUs": 1, "nodes": nodes, "edges": edges})
    )
    (folder / "suite").mkdir()
    (folder / "suite" / "geo4096.json").write_bytes((folder / "geo4096.json").read_bytes())
    for name, graph, machine in (("mapped", "small.json", "mesh:6x6"), ("geo", "geo4096.json", "mesh:16x16")):
        words = ["map", graph, "-m", machine, "-t", "2", "--engines", "first-fit,multilevel", "-o", name]
        subprocess.run([*NMSOLVE, *words], check=True, cwd=folder, capture_output=True)


#: Name -> command in the folder of the inputs, one or more of each kind of problem; LIMIT and DATA (``tests/data``) are put in.
KINDS: dict[str, str] = {
    "map geo4096": "map geo4096.json -m mesh:16x16 -t LIMIT",
    "map snn20k": "map snn.npz -m mesh:16x16 -t LIMIT",
    "map snn100k": "map snn100k.npz -m mesh:16x16 -t LIMIT",
    "route": "route mapped -t LIMIT",
    "route geo4096": "route geo -t LIMIT",
    "pipeline dag": "pipeline dag.json --cores 64 -t LIMIT",
    "pipeline bert": "pipeline DATA/onnx/bert.onnx --bind batch=1,seq=128 --cores 64 --core-memory 64MiB -t LIMIT",
    "assign bert": "assign DATA/onnx/bert.onnx --bind batch=1,seq=128 -m server-4acc --objective makespan -t LIMIT",
    "assign costs": "assign costs.json -t LIMIT",
    "schedule": "schedule tasks.json -t LIMIT",
    "schedule tasks6k": "schedule tasks6k.json -t LIMIT",
}
#: The same for other commands and options.
COMMANDS: dict[str, str] = {
    "map small": "map small.json -m mesh:6x6 -t LIMIT",
    "map geo4096 64x64": "map geo4096.json -m mesh:64x64 -t LIMIT",
    "map geo4096 workers": "map geo4096.json -m mesh:16x16 -t LIMIT --workers 2",
    "map snn20k multicast": "map snn.npz -m mesh:16x16 -t LIMIT --objective connectivity",
    "map stored": "map stored.nmz -m mesh:16x16 -t LIMIT --memory 250MiB",
    "map stored resume": "map stored.nmz -m mesh:16x16 -t LIMIT --memory 250MiB --scratch . --resume",
    "map exact": "map tiny.json -m mesh:4x4 -t LIMIT",
    "map max-link": "map geo4096.json -m mesh:16x16 -t LIMIT --objective max-link",
    "map lexicographic": "map small.json -m mesh:6x6 -t LIMIT --objective hops,max-link",
    "map pareto": "map small.json -m mesh:6x6 -t LIMIT --pareto hops,max-link --points 6",
    "map joint": "map tiny.json -m mesh:4x4 -t LIMIT --route joint --objective max-link",
    "map chosen": "map geo4096.json -m mesh:16x16 -t LIMIT --route chosen",
    "map in turns": "map geo4096.json -m mesh:16x16 -t LIMIT --route chosen --objective max-link",
    "gap": "gap mapped -t LIMIT",
    "gap geo4096": "gap geo -t LIMIT",
    "gap again": "gap geo -t LIMIT -o gapped",
    "pipeline place": "pipeline dag.json --machine mesh:8x8 -t LIMIT --place",
    "faults": "faults mapped -t LIMIT --links 2 --trials 100000",
    "simulate": "simulate mapped -t LIMIT --sweep",
    "explain": "explain geo4096.json -m mesh:16x16 -t LIMIT",
    "bench": "bench suite -t LIMIT --seeds 1 -m mesh:16x16",
}


def late(folder: Path, command: str, limit: float, after: float) -> tuple[float, str]:
    """Seconds from the limit, or from Ctrl-C ``after`` seconds if that comes first, to the end of a command, and marks (see
    above). A failure is printed."""
    words = command.replace("LIMIT", f"{limit:g}").replace("DATA", str(DATA)).split()
    if "-o" not in words:
        words += ["-o", "out-" + words[0]]
    begun, begun_at = time.monotonic(), time.time()
    with subprocess.Popen(
        [*NMSOLVE, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        if after < limit:
            time.sleep(after)
            process.send_signal(signal.SIGINT)
        errors = process.communicate()[1]
    spent = time.monotonic() - begun - min(limit, after)
    if process.returncode not in (0, 3, 4, 5, 130 if after < limit else 0):
        print(f"  exit code {process.returncode}: {' '.join(words)}\n  {errors.strip().splitlines()[-1:]}")
        return spent, "!"
    if words[0] == "bench":
        with sqlite3.connect(folder / "out-bench" / "results.sqlite") as store:
            (slowest,) = store.execute('SELECT MAX(wall) FROM runs WHERE "limit" = ?', (limit,)).fetchone()
        return slowest - limit, ""
    out = folder / words[words.index("-o") + 1]
    fresh = [f for f in out.glob("*") if f.stat().st_mtime > begun_at]
    drawn = [f for f in fresh if f.suffix == ".html" and PICTURES.search(f.read_text())]
    left = [
        f for f in fresh if f.name.endswith("report.json") and json.loads(f.read_text()).get("not_checked")
    ]
    return spent, ("" if drawn else "p") + ("c" if left else "") + ("" if process.returncode != 5 else "5")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--load", type=int, default=0, help="busy processes beside the commands")
    parser.add_argument("--limits", default="1,3,8", help="seconds")
    parser.add_argument(
        "--signals", type=int, default=0, help="runs per limit, each ended by Ctrl-C at a random moment"
    )
    parser.add_argument("--kinds", action="store_true", help="only one or more commands per kind of problem")
    parser.add_argument("--only", default="", help="commands whose name begins with one of these, by commas")
    given = parser.parse_args()
    limits = [float(text) for text in given.limits.split(",") for _ in range(max(1, given.signals))]
    names, rng = tuple(given.only.split(",")), random.Random(1)
    chosen = {k: v for k, v in (KINDS if given.kinds else KINDS | COMMANDS).items() if k.startswith(names)}
    rows: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs(folder)
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.load)]
        try:
            print(f"{'command':24}" + "".join(f"{limit:>10g} s" for limit in limits), flush=True)
            for what, command in chosen.items():
                print(f"{what:24}", end="", flush=True)
                for limit in limits:
                    after = rng.uniform(0.5, limit) if given.signals else limit
                    rows.append(late(folder, command, limit, after))
                    print(f"{rows[-1][0]:+9.2f}{rows[-1][1]:3}", end="", flush=True)
                print(flush=True)
        finally:
            for process in busy:
                process.kill()
    values = [seconds for seconds, _ in rows]
    over = sum(v > PROMISE for v in values)
    print(
        f"{len(values)} runs: min {min(values):+.2f} s, median {statistics.median(values):+.2f} s, max {max(values):+.2f} s; "
        f"{over} more than {PROMISE:g} s late, {sum('p' in m for _, m in rows)} without a page, "
        f"{sum('c' in m for _, m in rows)} without all checks"
    )
    sys.exit(1 if over or any("!" in marks for _, marks in rows) else 0)


if __name__ == "__main__":
    main()
