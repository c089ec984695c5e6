"""Files for SpiNNaker: routers as PACMAN's documents describe them, simulated here, bring every key where its node sends to.

``python bench/check_pacman.py`` has PACMAN itself check the same.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.machines import load_machine
from nmsolve.hw.pacman import export_pacman
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, node_kinds
from nmsolve.model.machine import Machine

#: SpiNNaker's links by number: east, north, west, south as steps of (x, y); the diagonal ones are not used.
STEPS = {0: (1, 0), 2: (0, 1), 3: (-1, 0), 5: (0, -1)}
OPPOSITE = {0: 3, 3: 0, 2: 5, 5: 2}


class Routers:
    """The tables as routers have them; assertion errors where a rule is broken."""

    def __init__(self, folder: Path, width: int, height: int) -> None:
        read = lambda name: json.loads((folder / name).read_text())  # noqa: E731
        self.width, self.height = width, height
        tables = read("routing_tables.json")
        self.tables: dict[Any, list[dict[str, Any]]] = {(t["x"], t["y"]): t["entries"] for t in tables}
        self.placed = {p["vertex_label"]: (p["x"], p["y"], p["p"]) for p in read("placements.json")}
        self.keys = {v["vertex_label"]: v for v in read("keys.json")["vertices"]}
        assert len(set(self.placed.values())) == len(self.placed) and set(self.keys) == set(self.placed)
        assert all(0 <= x < width and 0 <= y < height and 1 <= p <= 17 for x, y, p in self.placed.values())

    def entry(self, at: tuple[int, int], key: int) -> dict[str, Any]:
        """The one entry of a router that a key meets."""
        (found,) = [e for e in self.tables.get(at, []) if key & e["mask"] == e["key"]]
        return found

    def sent(self, start: tuple[int, int], key: int) -> set[tuple[int, int, int]]:
        """Every processor that a packet with this key gets to; each router is passed once."""
        reached, open_, seen = set(), [(start, -1)], set()
        while open_:
            at, came = open_.pop()
            assert at not in seen, "a packet came twice"
            seen.add(at)
            entry = self.entry(at, key)
            way = entry["spinnaker_route"]
            links = [d for d in range(6) if way >> d & 1]
            assert entry["defaultable"] is (came >= 0 and way == 1 << came)
            reached |= {(*at, p) for p in range(18) if way >> (6 + p) & 1}
            for d in links:
                x, y = at[0] + STEPS[d][0], at[1] + STEPS[d][1]
                open_.append(((x % self.width, y % self.height), d))
        return reached


def board(rows: int, cols: int, **more: Any) -> Machine:
    return replace(
        Machine("b", (1, 1), (rows, cols)),
        capacity={"neurons": 17 * 4, "processors": 17},
        **more,
    )


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_key_gets_to_the_processors_of_its_slices_targets_and_nowhere_else(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On meshes, tori and round dead links, for nodes of several populations."""
    folder, torus = tmp_path_factory.mktemp("pacman"), data.draw(st.booleans())
    rows, cols = data.draw(st.tuples(st.integers(2, 4), st.integers(2, 4)))
    dead = () if torus else data.draw(st.sampled_from([(), ((0, 1), (1, 0))]))
    machine = board(rows, cols, torus=torus, faulty_links=dead)
    rng, n = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))), data.draw(st.integers(1, 40))
    source, target = rng.integers(0, n, (2, 2 * n))
    kinds = (
        node_kinds([f"k{k}" for k in rng.integers(0, 3, n).tolist()]) if data.draw(st.booleans()) else None
    )
    graph = replace(LogicGraph.from_edges(n, source, target, multicast=rng.random(n) < 0.5), kinds=kinds)
    core = rng.integers(0, machine.size, n)
    done = export_pacman(graph, machine, core, folder)
    routers = Routers(folder, cols, rows)
    slice_of = {v: label for label, k in routers.keys.items() for v in k["nodes"]}
    assert sorted(slice_of) == list(range(n)) and done.slices == len(routers.placed)
    wanted: dict[str, set[tuple[int, int, int]]] = {label: set() for label in routers.placed}
    for a, b in zip(source.tolist(), target.tolist(), strict=True):
        if a != b:
            wanted[slice_of[a]].add(routers.placed[slice_of[b]])
    keys = []
    for label, told in routers.keys.items():
        x, y, _ = routers.placed[label]
        nodes = told["nodes"]
        assert {int(core[v]) for v in nodes} == {y * cols + x} and len(nodes) <= 4
        assert kinds is None or len({int(kinds.of[v]) for v in nodes}) == 1
        own = [told["key"] + k for k in range(len(nodes))]
        assert all(k & told["mask"] == told["key"] for k in own)
        keys += own
        for key in own if wanted[label] else ():
            assert routers.sent((x, y), key) == wanted[label]
    assert len(keys) == len(set(keys))
    assert done.entries.tolist() == [
        len(routers.tables.get((p % cols, p // cols), [])) for p in range(machine.size)
    ]


def test_what_does_not_fit_processors_or_is_no_spinnaker_is_refused(tmp_path: Path) -> None:
    """The chip is named; nothing is written."""
    graph = LogicGraph.from_edges(18, [0], [1], ids=[f"p{k}/0" for k in range(18)])
    with pytest.raises(InputError, match=r"chip \(0, 1\) needs 18 processors"):
        export_pacman(graph, board(2, 2), np.ones(18, np.int64), tmp_path / "out")
    heavy = LogicGraph.from_edges(2, [0], [1], resources=("neurons",), sizes=[[5], [1]])
    with pytest.raises(InputError, match="a node of 5 neurons"):
        export_pacman(heavy, board(2, 2), np.zeros(2, np.int64), tmp_path / "out")
    with pytest.raises(InputError, match="no capacity processors"):
        export_pacman(graph, load_machine("mesh:2x2"), np.zeros(18, np.int64), tmp_path / "out")
    assert not (tmp_path / "out").exists()


#: (x, y) of the chips of a board of 48 with 16 usable processors, by SpiNNMachine 7.4.1; all others have 17.
SMALLER = {(1, 1), (1, 3), (3, 1), (3, 3), (3, 5), (5, 2), (5, 4), (5, 6)}


def test_a_full_board_is_filled_and_no_placement_is_on_a_processor_that_its_chip_lacks(
    tmp_path: Path,
) -> None:
    """The board of a chip follows from the three boards of PACMAN's machine of 12 x 12 chips."""
    boards = {(x0 + x, y0 + y) for x0, y0 in ((0, 0), (4, 8), (8, 4)) for x, y in SMALLER}
    smaller = {(x % 12, y % 12) for x, y in boards}
    for chips in (None, (2, 3)):
        machine = load_machine("spinnaker1", chips)
        y, x = np.divmod(np.arange(machine.size), machine.cols)
        wanted = [
            16 if at in smaller else 17 for at in zip((x % 12).tolist(), (y % 12).tolist(), strict=True)
        ]
        assert machine.limits("processors").tolist() == wanted
        assert machine.limits("neurons").tolist() == [256 * w for w in wanted]
    graph = LogicGraph.from_edges(
        808, np.arange(807), np.arange(1, 808), ids=[f"p{k}/0" for k in range(808)], resources=("neurons",),
        sizes=np.full((808, 1), 256),
    )  # fmt: skip
    machine = load_machine("spinnaker1")
    core = np.repeat(np.arange(48), machine.limits("processors"))
    export_pacman(graph, machine, core, tmp_path)
    for p in json.loads((tmp_path / "placements.json").read_text()):
        assert 1 <= p["p"] <= (16 if (p["x"], p["y"]) in smaller else 17)
    full = core.copy()
    full[core == 10] = 9  # chip (1, 1) has 16
    with pytest.raises(InputError, match=r"chip \(1, 1\).* at most 16"):
        export_pacman(graph, machine, np.where(full == 8, 9, full), tmp_path / "out")


def test_the_command_writes_them_and_says_what_they_cannot_say(tmp_path: Path) -> None:
    run_here("generate", "reservoir", "--nodes", "300", "--fan", "5", "--out", tmp_path / "r.json")
    run_here("map", tmp_path / "r.json", "-m", "spinnaker1", "-t", "3", "-o", tmp_path / "run")
    (row,) = map(
        json.loads,
        run_here(
            "export", tmp_path / "run", "--to", "pacman", "-o", tmp_path / "out", "--json"
        ).stdout.splitlines(),
    )
    assert [Path(f).name for f in row["files"]] == ["placements.json", "routing_tables.json", "keys.json"]
    routers = Routers(tmp_path / "out", 8, 6)
    assert row["slices"] == len(routers.placed) and "three boards" in row["notes"][0]
    assert (
        "one of sanafe, pacman, lava, csv, dot, graphml, perfetto"
        in run_here("export", tmp_path / "run", "--to", "brian", code=2).stderr
    )
