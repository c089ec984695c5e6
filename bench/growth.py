"""How cost grows with the network: generating, reading, mapping in memory and from disk; a table and a picture.

    python bench/growth.py [--nodes 10000,100000,1000000] [--disk-only 10000000] [--folder DIR] [--picture FILE]

Networks are ``snn`` with 50 synapses per neuron, 16 layers and a reach of about five neurons, so that only the size
changes. All are mapped to 16x16 cores (hops, balance 3 %, one worker), with a time limit that grows with the synapses:
once with as much memory as it takes, once with ``--memory`` of about a third of that, at least 256 MiB. Every command is
a fresh process, measured with all that it starts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

from measure import Use, measure

NMSOLVE = Path(sys.executable).with_name("nmsolve")
FAN, LAYERS, REACH = 50, 16, 4.74
#: Seconds of search at least, and per million synapses.
SECONDS, PER_MILLION = 10.0, 1.2
#: No command may take more: seconds, bytes.
LONGEST, MEMORY = 3600.0, 20 * 2**30
#: The budget of a run from disk: this at least, else this many bytes per synapse (a run in memory takes about 30).
LEAST_BUDGET, BUDGET = 256 * 2**20, 10
READ = "import sys; from nmsolve.model.store import open_graph; sum(len(b.targets) for b in open_graph(sys.argv[1]).blocks())"


@dataclass(frozen=True)
class Row:
    """One network: CPU seconds, MiB resident, and the first and last answers in memory and from disk (traffic times
    hops, per synapse)."""

    synapses: int
    file_mb: float
    generate: float
    generate_peak: float
    read: float
    memory_first: float
    memory_hops: float
    memory_peak: float
    disk_first: float
    disk_hops: float
    disk_peak: float


def run(words: list[str | Path], folder: Path) -> Use:
    """One measured command; the script ends if it fails."""
    use = measure(words, folder, LONGEST, MEMORY)
    if use.ended:
        sys.exit(f"{' '.join(map(str, words))}: {use.ended}")
    return use


def mapped(net: Path, synapses: int, budget: int | None, folder: Path) -> tuple[float, float, float]:
    """Seconds to the first searched mapping, hops per synapse of the last, peak MiB."""
    limit = SECONDS + PER_MILLION * synapses / 1e6
    out = folder / "out"
    extra = [] if budget is None else ["--memory", str(budget), "--scratch", str(folder)]
    use = run([NMSOLVE, "map", net, "--machine", "mesh:16x16", "--balance", "0.03", "--engines", "external", "--workers", "1",
               "--time-limit", f"{limit:.0f}", "--seed", "1", "--out", out, *extra], folder)  # fmt: skip
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    first = next(e["seconds"] for e in events if e["type"] == "incumbent")
    scores = json.loads((out / "report.json").read_text())["scores"]
    return first, scores["hops"] / synapses, use.peak / 2**20


def measured(nodes: int, in_memory: bool, folder: Path) -> Row:
    """All commands on the network of this many nodes."""
    net, synapses = folder / f"snn{nodes}.nmz", FAN * nodes
    side = max(1, round((nodes // LAYERS) ** 0.5))
    made = run([NMSOLVE, "generate", "snn", "--nodes", str(nodes), "--synapses", str(synapses), "--layers", str(LAYERS),
                "--sigma", f"{REACH / side:.4g}", "--out", net], folder)  # fmt: skip
    read = run([sys.executable, "-c", READ, net], folder)
    here = mapped(net, synapses, None, folder) if in_memory else (float("nan"),) * 3
    disk = mapped(net, synapses, max(LEAST_BUDGET, BUDGET * synapses), folder)
    return Row(synapses, net.stat().st_size / 1e6, made.cpu, made.peak / 2**20, read.cpu, *here, *disk)


def picture(rows: list[Row], path: Path) -> None:
    """Seconds and memory over synapses, both on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = [r.synapses for r in rows]
    for axis, label, values in (
        (left, "generate (CPU s)", [r.generate for r in rows]),
        (left, "read once (CPU s)", [r.read for r in rows]),
        (left, "map, in memory (s, limited)", [r.memory_first for r in rows]),
        (left, "map, --memory (s, limited)", [r.disk_first for r in rows]),
        (right, "generate", [r.generate_peak for r in rows]),
        (right, "map, in memory", [r.memory_peak for r in rows]),
        (right, "map, --memory", [r.disk_peak for r in rows]),
    ):
        axis.loglog(x, values, marker="o", label=label)
    left.set(xlabel="synapses", ylabel="seconds", title="Time")
    right.set(xlabel="synapses", ylabel="MiB", title="Peak resident memory")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    """Measure, print the table, draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default="10000,100000,1000000")
    parser.add_argument("--disk-only", default="", help="sizes too large to be mapped in memory")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--picture", type=Path)
    a = parser.parse_args()
    folder = a.folder or Path(tempfile.mkdtemp(prefix="nmsolve-growth-"))
    folder.mkdir(parents=True, exist_ok=True)
    names = ("synapses", "file MB", "generate CPU s", "peak MiB", "read CPU s", "memory: answer after s",
             "hops per synapse", "peak MiB",
             "--memory: answer after s", "hops per synapse", "peak MiB")  # fmt: skip
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names), flush=True)
    rows = []
    sizes = [(int(s), True) for s in a.nodes.split(",")] + [
        (int(s), False) for s in a.disk_only.split(",") if s
    ]
    for nodes, in_memory in sizes:
        rows.append(measured(nodes, in_memory, folder))
        cells = ["-" if value != value else f"{value:,.4g}" for value in astuple(rows[-1])[1:]]
        print(f"| {rows[-1].synapses:,} | " + " | ".join(cells) + " |", flush=True)
    if a.picture:
        picture(rows, a.picture)


if __name__ == "__main__":
    main()
