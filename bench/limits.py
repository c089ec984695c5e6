"""How late commands end that were given a time limit, on an idle machine or beside background load.

    python bench/limits.py                    # every command at every limit
    python bench/limits.py --load 4           # beside four busy processes
    python bench/limits.py --only route,gap --limits 3

Prints seconds beyond ``--time-limit`` per command, by the wall clock and without those in which its main thread waited for a
processor that others had, and their least, median and largest; a minus stands behind runs that left out pictures. Ends with 1 if
any run was more than two seconds late of its own doing. ``nmsolve bench`` has a limit per run: what counts is its slowest run, by
the wall clock. Run ``nmsolve doctor --warm`` before: compiling a kernel takes seconds.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NMSOLVE = [sys.executable, "-m", "nmsolve"]
#: What ``--time-limit`` promises: this many seconds later everything is written.
PROMISE = 2.0


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


#: Name -> command in the folder of the inputs; LIMIT is put in.
COMMANDS: dict[str, str] = {
    "map small": "map small.json -m mesh:6x6 -t LIMIT",
    "map geo4096": "map geo4096.json -m mesh:16x16 -t LIMIT",
    "map geo4096 64x64": "map geo4096.json -m mesh:64x64 -t LIMIT",
    "map geo4096 workers": "map geo4096.json -m mesh:16x16 -t LIMIT --workers 2",
    "map snn20k": "map snn.npz -m mesh:16x16 -t LIMIT",
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
    "route": "route mapped -t LIMIT",
    "route geo4096": "route geo -t LIMIT",
    "gap": "gap mapped -t LIMIT",
    "gap geo4096": "gap geo -t LIMIT",
    "gap again": "gap geo -t LIMIT -o gapped",
    "pipeline": "pipeline dag.json --cores 64 -t LIMIT",
    "pipeline place": "pipeline dag.json --machine mesh:8x8 -t LIMIT --place",
    "faults": "faults mapped -t LIMIT --links 2 --trials 100000",
    "simulate": "simulate mapped -t LIMIT --sweep",
    "explain": "explain geo4096.json -m mesh:16x16 -t LIMIT",
    "bench": "bench suite -t LIMIT --seeds 1 -m mesh:16x16",
}


def waited(pid: int) -> float:
    """Seconds that the main thread of a process was ready and had no processor (Linux; else 0)."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def late(folder: Path, command: str, limit: float) -> tuple[float, float, bool]:
    """Seconds by which a command overran its limit, and without those it then waited for a processor; whether its page has its
    pictures. A failure is said."""
    words = command.replace("LIMIT", f"{limit:g}").split()
    if "-o" not in words:
        words += ["-o", "out-" + words[0]]
    begun, begun_at, before, idle = time.monotonic(), time.time(), 0.0, 0.0
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            [*NMSOLVE, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=said, text=True
        ) as process,
    ):
        while process.poll() is None:
            idle = waited(process.pid) or idle
            if time.monotonic() - begun <= limit:
                before = idle
            time.sleep(0.005)
        spent = time.monotonic() - begun - limit
        said.seek(0)
        last = said.read().strip().splitlines()[-1:]
    pages = [
        p for p in (folder / words[words.index("-o") + 1]).glob("*.html") if p.stat().st_mtime > begun_at
    ]
    drawn = all("<svg" in page.read_text() for page in pages)
    if process.returncode not in (0, 3, 4, 5):
        print(f"  exit code {process.returncode}: {' '.join(words)}\n  {last}")
    if words[0] == "bench":
        with sqlite3.connect(folder / "out-bench" / "results.sqlite") as store:
            (slowest,) = store.execute('SELECT MAX(wall) FROM runs WHERE "limit" = ?', (limit,)).fetchone()
        return slowest - limit, slowest - limit, drawn
    return spent, spent - (idle - before), drawn


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--load", type=int, default=0, help="busy processes beside the commands")
    parser.add_argument("--limits", default="1,3,8", help="seconds")
    parser.add_argument("--only", default="", help="commands whose name begins with one of these, by commas")
    given = parser.parse_args()
    limits = [float(text) for text in given.limits.split(",")]
    chosen = {
        k: v for k, v in COMMANDS.items() if not given.only or k.startswith(tuple(given.only.split(",")))
    }
    busy = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs(folder)
        try:
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.load)]
            everything = []
            print(f"{'command':24}" + "".join(f"{limit:>16g} s" for limit in limits), flush=True)
            for what, command in chosen.items():
                row = [late(folder, command, limit) for limit in limits]
                everything += row
                print(
                    f"{what:24}"
                    + "".join(f"{wall:+9.2f}{own:+8.2f}{' ' if drawn else '-'}" for wall, own, drawn in row),
                    flush=True,
                )
        finally:
            for process in busy:
                process.kill()
    over = 0
    for name, k in (("wall", 0), ("without waiting for a processor", 1)):
        values = [r[k] for r in everything]
        over = sum(v > PROMISE for v in values)
        print(
            f"{name}, {len(values)} runs: min {min(values):+.2f} s, median {statistics.median(values):+.2f} s, "
            f"max {max(values):+.2f} s; {over} more than {PROMISE:g} s late"
        )
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
