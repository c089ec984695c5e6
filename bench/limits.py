"""How late commands end that were given a time limit or a Ctrl-C, on an idle machine or beside background load.

    python bench/limits.py                                    # every command at every limit
    python bench/limits.py --kinds --load 4 --limits 1.5,5,20    # the five kinds of problem, beside four busy processes
    python bench/limits.py --kinds --load 4 --limits 20 --signals 3   # Ctrl-C at random moments of three runs each
    python bench/limits.py --only route,gap --limits 3

Prints seconds from ``--time-limit``, or from Ctrl-C if that comes first, to the end of each command: by the wall clock, and
without those in which its main thread waited for a processor that others had. Marks behind a run: ``b`` a page without pictures,
``p`` no page, ``c`` checks were left out, ``0`` no answer, ``!`` it failed. Ends with 1 if any run failed or was more than a
second late of its own doing. ``nmsolve bench`` has a limit per run: what counts is its slowest run.
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


def waited(pid: int) -> float:
    """Seconds that the main thread of a process was ready and had no processor (Linux; else 0)."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def late(folder: Path, command: str, limit: float, after: float) -> tuple[float, float, str]:
    """Seconds from the limit, or from Ctrl-C ``after`` seconds if that comes first, to the end of a command; without those in
    which it waited for a processor; and marks (see above). A failure is printed."""
    words = command.replace("LIMIT", f"{limit:g}").replace("DATA", str(DATA)).split()
    if "-o" not in words:
        words += ["-o", "out-" + words[0]]
    begun, begun_at, end = time.monotonic(), time.time(), min(limit, after)
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen([*NMSOLVE, *words], cwd=folder, stdout=said, stderr=said) as process,
    ):
        before = idle = 0.0
        while process.poll() is None:
            idle = waited(process.pid) or idle
            if not before and time.monotonic() - begun >= end:
                before = idle
                if after < limit:
                    process.send_signal(signal.SIGINT)
            time.sleep(0.005)
        spent = time.monotonic() - begun - end
        own = spent - (idle - before) if spent > 0 else spent
        said.seek(0)
        last = said.read().strip().splitlines()[-1:]
    if process.returncode not in (0, 3, 4, 5, 130 if after < limit else 0):
        print(f"  exit code {process.returncode}: {' '.join(words)}\n  {last}")
        return spent, own, "!"
    if words[0] == "bench":
        with sqlite3.connect(folder / "out-bench" / "results.sqlite") as store:
            (slowest,) = store.execute('SELECT MAX(wall) FROM runs WHERE "limit" = ?', (limit,)).fetchone()
        return slowest - limit, slowest - limit, ""
    fresh = [f for f in (folder / words[words.index("-o") + 1]).glob("*") if f.stat().st_mtime > begun_at]
    pages = [f.read_text() for f in fresh if f.suffix == ".html"]
    left = [
        f for f in fresh if f.name.endswith("report.json") and json.loads(f.read_text()).get("not_checked")
    ]
    page = "" if any(PICTURES.search(text) for text in pages) else "b" if pages else "p"
    return spent, own, page + ("c" if left else "") + ("0" if process.returncode in (5, 130) else "")


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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have background processes ignore it
    limits = [float(text) for text in given.limits.split(",") for _ in range(max(1, given.signals))]
    names, rng = tuple(given.only.split(",")), random.Random(1)
    chosen = {k: v for k, v in (KINDS if given.kinds else KINDS | COMMANDS).items() if k.startswith(names)}
    rows: list[tuple[float, float, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs(folder)
        # each in a session of its own: Linux shares processors among sessions first
        spin = [sys.executable, "-c", "while True: pass"]
        busy = [subprocess.Popen(spin, start_new_session=True) for _ in range(given.load)]
        try:
            print(f"{'command':20}" + "".join(f"{limit:>14g} s    " for limit in limits), flush=True)
            for what, command in chosen.items():
                print(f"{what:20}", end="", flush=True)
                for limit in limits:
                    after = rng.uniform(0.5, limit) if given.signals else limit
                    rows.append(late(folder, command, limit, after))
                    print("{:+9.2f}{:+7.2f} {:3}".format(*rows[-1]), end="", flush=True)
                print(flush=True)
        finally:
            for process in busy:
                process.kill()
    for name, values in (("wall", [r[0] for r in rows]), ("own", [r[1] for r in rows])):
        over = sum(v > PROMISE for v in values)
        print(
            f"{name}, {len(values)} runs: min {min(values):+.2f} s, median {statistics.median(values):+.2f} s, "
            f"max {max(values):+.2f} s; {over} more than {PROMISE:g} s late"
        )
    sys.exit(1 if over or any("!" in marks for _, _, marks in rows) else 0)


if __name__ == "__main__":
    main()
