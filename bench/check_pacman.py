"""PACMAN reads what ``nmsolve export --to pacman`` writes: placements and tables load, and its own checker follows every key.

Usage: python bench/check_pacman.py --python ENV/bin/python [--seconds 5] [--only NAME]

PACMAN is not part of nmsolve and has an environment of its own: ``python -m venv ENV``, ``ENV/bin/pip install
SpiNNaker_PACMAN==1!7.4.1``. Without it the command says so and ends. Networks are mapped onto ``spinnaker1`` for short steps,
exported, and checked on PACMAN's virtual machine of three boards. Every slice is traced through the tables: it has to reach the
processors of all slices that its nodes send to, no others, in no circle, with all of its keys. Every placement has to be on a
processor that its chip has, which PACMAN itself does not ask. Then one entry is damaged, which the checker has to find.
Ends with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.hw.pacman import export_pacman
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import solve

#: What runs in PACMAN's environment: a folder with the export and who reaches whom; prints what the checker said.
CHECK = """
import json, sys
from pacman.config_setup import unittest_setup
from spinn_utilities.config_holder import set_config
unittest_setup()
for name, value in (("version", "5"), ("width", "12"), ("height", "12")):
    set_config("Machine", name, value)
from spinn_machine.virtual_machine import virtual_machine_generator
from pacman.data.pacman_data_writer import PacmanDataWriter
from pacman.model.placements import Placements
from pacman.model.routing_info import BaseKeyAndMask
from pacman.model.routing_tables.multicast_routing_tables import from_json, to_json
from pacman.operations.multi_cast_router_check_functionality import valid_routes_checker as checker
from pacman.utilities.json_utils import placement_from_json
folder = sys.argv[1]
writer = PacmanDataWriter.mock()
machine = virtual_machine_generator()
writer.set_machine(machine)
tables = from_json(folder + "/routing_tables.json")
places = {}
for row in json.load(open(folder + "/placements.json")):
    places[row["vertex_label"]] = placement_from_json(row)
Placements(places.values())
there = lambda p: machine.is_chip_at(p.x, p.y) and p.p in machine.get_chip_at(p.x, p.y).placable_processors_ids
nowhere = sum(not there(p) for p in places.values())
keys = {row["vertex_label"]: row for row in json.load(open(folder + "/keys.json"))["vertices"]}
same = json.load(open(folder + "/routing_tables.json")) == json.loads(json.dumps(to_json(tables)))
def traced(tables):
    wrong = []
    for label, goals in json.load(open(folder + "/reached.json")).items():
        if goals:
            row = keys[label]
            wanted = [checker.PlacementTuple(places[g].x, places[g].y, places[g].p) for g in goals]
            try:
                checker._search_route(places[label], wanted, BaseKeyAndMask(row["key"], row["mask"]), tables, len(row["nodes"]))
            except Exception as error:
                wrong.append(f"{label}: {str(error)[:120]}")
    return wrong
wrong = traced(tables)
damaged = json.load(open(folder + "/routing_tables.json"))
damaged[0]["entries"][0]["spinnaker_route"] ^= 1 << 7
entries = tables.get_total_number_of_entries()
found = bool(traced(from_json(damaged)))
print("told", json.dumps({"same": same, "wrong": wrong, "found": found, "entries": entries, "nowhere": nowhere}))
"""


def full_board() -> LogicGraph:
    """A population for every processor of 48 chips, each of as many neurons as it holds."""
    rng, n = np.random.default_rng(1), 808
    source, target = rng.integers(0, n, (2, 6 * n))
    sizes = np.full((n, 1), 256)
    return LogicGraph.from_edges(
        n, source, target, multicast=np.ones(n, bool), ids=[f"p{k}/0" for k in range(n)], resources=("neurons",), sizes=sizes,
        name="full",
    )  # fmt: skip


NETWORKS = {
    "microcircuit 5 %": lambda: generate("microcircuit", scale=0.05),
    "microcircuit 10 %": lambda: generate("microcircuit", scale=0.1),
    "reservoir 4,000": lambda: generate("reservoir", nodes=4000, fan=30),
    "layered": lambda: generate("layered", exponent=7, neurons=64),
    "full board": full_board,
}


def checked(python: Path, name: str, seconds: float) -> bool:
    """Map, export and check one network; print a row."""
    graph, machine = NETWORKS[name](), load_machine("spinnaker1")
    result = solve(MappingProblem(graph, machine, "step-time", (), graph.n), time_limit=seconds, seed=1)
    assert result.core is not None
    with TemporaryDirectory() as folder:
        done = export_pacman(graph, machine, result.core, folder)
        vertices = json.loads((Path(folder) / "keys.json").read_text())["vertices"]
        slice_of = {node: v["vertex_label"] for v in vertices for node in v["nodes"]}
        source = np.repeat(graph.source, np.diff(graph.indptr))
        reached: dict[str, set[str]] = {v["vertex_label"]: set() for v in vertices}
        for a, b in zip(source.tolist(), graph.targets.tolist(), strict=True):
            reached[slice_of[graph.node_id(a)]].add(slice_of[graph.node_id(b)])
        (Path(folder) / "reached.json").write_text(json.dumps({k: sorted(v) for k, v in reached.items()}))
        run = subprocess.run([str(python), "-c", CHECK, folder], capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith("told ")]
    if not lines:
        print(f"| {name} | PACMAN ended: {run.stderr.strip().splitlines()[-1:]} |")
        return False
    told = json.loads(lines[0][5:])
    print(
        f"| {name} | {graph.n:,} | {done.slices} | {told['entries']:,} | {int(done.entries.max()):,} | {told['nowhere']} "
        f"| {len(told['wrong'])} | {'yes' if told['found'] else 'NO'} | {'yes' if told['same'] else 'NO'} |"
    )
    for line in told["wrong"][:3]:
        print(line)
    return bool(told["same"] and told["found"] and not told["wrong"] and not told["nowhere"])


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", choices=NETWORKS)
    o = parser.parse_args()
    there = subprocess.run([str(o.python), "-c", "import pacman"], capture_output=True)
    if there.returncode:
        print("no PACMAN there: ENV/bin/pip install 'SpiNNaker_PACMAN==1!7.4.1'")
        return 0
    print(
        "| network | nodes | slices | entries | most on a chip | on missing processors | slices that go wrong | damage found "
        "| tables as written |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---|---|")
    names = NETWORKS if o.only is None else [o.only]
    right = [checked(o.python, name, o.seconds) for name in names]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
