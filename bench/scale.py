"""Reruns the figures on large networks, with METIS, KaMinPar and Mt-KaHyPar beside them where they can run at all.

    python bench/scale.py --peers-python PATH [--only 'NAME;NAME'] [--tools nmsolve,metis,...] [--folder DIR] [--out FILE]

PATH is a Python with numpy, scipy, pymetis, kaminpar and mtkahypar; `scotch_gmap` must be on the command path, to place
parts. Every run is a fresh process, measured with all that it starts: wall and CPU seconds of the whole command (start-up,
reading, search, checks, report) and peak resident memory. nmsolve uses one or two workers, the others one thread; so
compare CPU seconds. Of the others' work only their own is measured: input files and part graphs are made for them. Every
answer, whoever gave it, is scored by nmsolve's evaluator, block by block, and checked against the capacity of the cores
(tools that only aim at a balance may exceed it: the table says by how much).
`--folder` keeps generated networks for the next run; `--memory` and `--seconds` end a peer's run.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measure import Use, measure
from scale_runs import GENERATED, NETS, RUNS, Goal, Run

HERE = Path(__file__).resolve().parent
NMSOLVE = Path(sys.executable).with_name("nmsolve")
#: No run of nmsolve itself is let run longer or take more than this.
SECONDS, MEMORY = 3600.0, 16 * 2**30
HEAD = "| run | tool | value | beside nmsolve | CPU s | wall s | peak MiB | must | aim |\n|---|---|---|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Bench:
    """Where things are, and how far a peer may go."""

    folder: Path
    python: str
    seconds: float
    memory: int
    seed: str

    def net(self, name: str) -> Path:
        """A network, generated once."""
        path = self.folder / name
        if not path.exists():
            use = self.command(NMSOLVE, "generate", *NETS[name], "--out", path)
            if use.ended:
                sys.exit(f"{name} was not generated: {use.ended}")
        return path

    def command(self, *words: str | Path, seconds: float = SECONDS, memory: int = MEMORY) -> Use:
        """Run and measure one command."""
        return measure([str(w) for w in words], self.folder, seconds, memory)

    def tool(self, *words: str | Path) -> Use:
        """Run one of scale_tools.py; its time counts for nobody."""
        use = self.command(sys.executable, HERE / "scale_tools.py", *words)
        if use.ended:
            sys.exit(f"scale_tools.py {words[0]}: {use.ended}")
        return use

    def machine(self, run: Run) -> str:
        """The machine as nmsolve reads it: a mesh of cores for ``limit`` neurons, or one node each."""
        rows, cols = run.mesh
        if run.limit is None:
            return f"mesh:{rows}x{cols}"
        path = self.folder / f"{rows}x{cols}-{run.limit}.toml"
        path.write_text(f"cores = [{rows}, {cols}]\n[capacity]\nneurons = {run.limit}\n")
        return str(path)


def ours(bench: Bench, run: Run) -> tuple[float, Use, str]:
    """Value, use and remark of nmsolve."""
    out = bench.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    use = bench.command(
        NMSOLVE, "map", bench.net(run.net), "--machine", bench.machine(run), "--objective", run.objective,
        "--seed", bench.seed, "--out", out, *run.args,
    )  # fmt: skip
    if use.ended:
        return math.nan, use, use.ended
    report = json.loads((out / "report.json").read_text())
    return float(report["objective"]), use, ""


def theirs(bench: Bench, run: Run, peer: str) -> tuple[float, Use, str]:
    """Value, use and remark of a peer: a partitioner, a placer, or one after the other."""
    net, core = bench.net(run.net), bench.folder / "core.npy"
    first, _, second = peer.partition("+")
    part = bench.folder / "part.npy"
    if first == "scotch":
        use = place(bench, run, net.with_suffix(".parhip"), net, core)
    else:
        use = peer_run(bench, first, peer_input(bench, run, first), str(run.cores), str(run.limit), out=part)
        shutil.copy(part, core) if not use.ended else None
    if second and not use.ended:
        small, where = bench.folder / "parts.parhip", bench.folder / "where.npy"
        bench.tool("quotient", net, part, small)
        use = use.plus(place(bench, run, small, None, where))
        if not use.ended:
            bench.tool("compose", part, where, core)
    if use.ended:
        return math.nan, use, use.ended
    share = "0" if run.limit is None else "none"
    found = json.loads(bench.tool("score", net, bench.machine(run), share, run.objective, core).said)
    return found["value"], use, f"{found['over']:.1%} over" if found["over"] > 0 else found["wrong"]


def place(bench: Bench, run: Run, graph: Path, net: Path | None, out: Path) -> Use:
    """SCOTCH: at most one node of ``graph`` per core; the graph is made from ``net`` first if there is none."""
    if net is not None and not graph.exists():
        bench.tool("graph", net, graph)
    return peer_run(bench, "scotch", graph, "x".join(map(str, run.mesh)), out=out)


def peer_input(bench: Bench, run: Run, peer: str) -> Path:
    """The network in the form that a peer reads best, made once."""
    net = bench.net(run.net)
    nets = run.objective in ("connectivity", "multicast-hops")
    what, suffix = ("nets", ".hgr") if nets else ("text", ".graph")
    if peer != "mtkahypar":
        what, suffix = "graph", ".parhip"
    path = net.with_suffix(suffix)
    if not path.exists():
        bench.tool(what, net, path)
    return path


def peer_run(bench: Bench, peer: str, graph: Path, *numbers: str, out: Path) -> Use:
    """One measured run of scale_peer.py."""
    out.unlink(missing_ok=True)
    return bench.command(
        bench.python, HERE / "scale_peer.py", peer, graph, *numbers, bench.seed, out,
        seconds=bench.seconds, memory=bench.memory,
    )  # fmt: skip


def row(name: str, tool: str, value: float, use: Use, beside: str, must: str = "", aim: str = "") -> str:
    """One line of the table."""
    shown = "-" if math.isnan(value) else f"{value:,.10g}"
    return f"| {name} | {tool} | {shown} | {beside} | {use.cpu:.1f} | {use.wall:.1f} | {use.peak / 2**20:,.0f} | {must} | {aim} |"


def generation(bench: Bench) -> str:
    """The row of the microcircuit written to a store: bytes per synapse, time and memory."""
    path = bench.folder / GENERATED
    path.unlink(missing_ok=True)
    use = bench.command(NMSOLVE, "generate", *NETS[GENERATED], "--out", path)
    if use.ended:
        return row("microcircuit, generated", "nmsolve", math.nan, use, use.ended)
    value = path.stat().st_size / int(bench.tool("synapses", path).said)
    must, aim = Goal(2.2, wall=360, peak=1536), Goal(1.8, wall=180, peak=1536)
    return row("microcircuit, generated (bytes per synapse)", "nmsolve", round(value, 3), use, "",
               must.verdict(value, use), aim.verdict(value, use))  # fmt: skip


def main() -> None:
    """Run what is asked for; print and save the table and the count of wins."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument(
        "--only", help="names of runs, `;` between them; `generated` is the microcircuit's file"
    )
    parser.add_argument(
        "--tools", default="nmsolve,metis,kaminpar,mtkahypar,metis+scotch,kaminpar+scotch,scotch"
    )
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--memory", type=float, default=16.0, help="GiB that a peer may take")
    parser.add_argument("--seconds", type=float, default=900.0, help="wall seconds that a peer may take")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--out", type=Path)
    a = parser.parse_args()
    folder = a.folder or Path(tempfile.mkdtemp(prefix="nmsolve-scale-"))
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(folder.resolve(), a.peers_python, a.seconds, int(a.memory * 2**30), a.seed)
    names = a.only.split(";") if a.only else ["generated", *(run.name for run in RUNS)]
    table: list[str] = []

    def say(line: str) -> None:
        table.append(line)
        print(line, flush=True)

    say(HEAD)
    if "generated" in names:
        say(generation(bench))
    wins = compare(bench, [run for run in RUNS if run.name in names], a.tools.split(","), say)
    if sum(wins):
        say(
            f"\nnmsolve's value is the better one in {wins[0]} of {sum(wins)} comparisons with a tool that finished."
        )
    if a.out:
        a.out.write_text("\n".join(table) + "\n")


def compare(bench: Bench, runs: list[Run], tools: list[str], say) -> tuple[int, int]:
    """Every run by every tool; how often nmsolve's value is the better one, and how often not."""
    won = lost = 0
    for run in runs:
        own = math.nan
        if "nmsolve" in tools:
            own, use, remark = ours(bench, run)
            say(
                row(
                    run.name,
                    "nmsolve",
                    own,
                    use,
                    remark,
                    run.must.verdict(own, use),
                    run.aim.verdict(own, use),
                )
            )
        for peer in run.peers:
            if peer not in tools:
                continue
            value, use, remark = theirs(bench, run, peer)
            beside = f"{value / own - 1:+.1%}" if not math.isnan(value / own) else ""
            say(row(run.name, peer, value, use, "; ".join(filter(None, (beside, remark)))))
            won, lost = won + (own < value), lost + (value <= own)
    return won, lost


if __name__ == "__main__":
    main()
