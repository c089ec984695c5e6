"""Core assignments in Lava's words: every neuron is found again on its chip and core, by the lines of the docs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.lava import FILE, export_lava
from nmsolve.hw.machines import load_machine
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, node_kinds

#: The fields of Lava's LoihiAddress (lava-nc 0.10.0, lava/magma/compiler/var_model.py).
FIELDS = {
    "physical_chip_id", "physical_core_id", "logical_chip_id", "logical_core_id", "logical_idx_addr", "length", "stride",
}  # fmt: skip


def read(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / FILE).read_text())
    return content


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_neuron_is_where_the_mapping_has_it(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On several chips; with populations by id, by kind, and without any."""
    folder = tmp_path_factory.mktemp("lava")
    machine = load_machine("mesh:2x3,2x2")
    group = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=25))
    n, ids, kinds = len(group), None, None
    named = data.draw(st.sampled_from(["ids", "kinds", "none"]))
    count = [0, 0, 0]
    if named == "ids":
        names = []
        for g in group:
            names.append(f"pop{g}/{count[g]}")
            count[g] += 1
        ids = tuple(names)
    elif named == "kinds":
        kinds = node_kinds([f"pop{g}" for g in group])
    core = np.array(data.draw(st.lists(st.integers(0, machine.size - 1), min_size=n, max_size=n)))
    graph = LogicGraph.from_edges(n, [], [], ids=ids, kinds=kinds)
    done = export_lava(graph, machine, core, folder)
    content = read(folder)
    found: dict[tuple[str, int], tuple[int, int]] = {}
    slots: set[tuple[int, int]] = set()
    logical: dict[int, tuple[int, int]] = {}
    for p in content["populations"]:
        for a in p["addresses"]:
            assert set(a) == FIELDS | {"first"} and a["stride"] == 1
            at = a["physical_chip_id"], a["physical_core_id"]
            assert logical.setdefault(a["logical_core_id"], at) == at
            for i in range(a["length"]):
                assert (p["name"], a["first"] + i) not in found
                found[p["name"], a["first"] + i] = at
                slots.add((a["logical_core_id"], a["logical_idx_addr"] + i))
    assert (
        len(found) == n == len(slots)
        and sorted(logical) == list(range(len(set(core.tolist()))))
        and done.cores == len(logical)
    )
    for core_id in logical:  # neurons of a core are counted through
        own = sorted(place for k, place in slots if k == core_id)
        assert own == list(range(len(own)))
    seen = [0, 0, 0]
    for g, p in zip(group, core.tolist(), strict=True):
        row, col = divmod(p, 6)
        expected = (row // 2 * 2 + col // 3, row % 2 * 3 + col % 3)
        name = f"pop{g}" if named != "none" else "nodes"
        index = seen[g] if named != "none" else sum(seen)
        assert found[name, index] == expected
        seen[g] += 1


def test_ids_that_are_not_counted_through_are_listed(tmp_path: Path) -> None:
    graph = LogicGraph.from_edges(3, [], [], ids=("a/1", "a/0", "b/0"))
    export_lava(graph, load_machine("mesh:1x2"), [0, 1, 0], tmp_path)
    first, second = read(tmp_path)["populations"]
    assert first["ids"] == ["a/1", "a/0"] and "ids" not in second


def test_the_lines_of_the_docs_read_it(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "docs" / "export.md").read_text()
    lines = next(
        block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "physical_core_id" in block
    )
    graph = LogicGraph.from_edges(4, [], [], ids=("a/0", "a/1", "a/2", "b/0"))
    export_lava(graph, load_machine("mesh:1x2,1x2"), [3, 0, 3, 1], tmp_path)
    names: dict[str, Any] = {}
    exec(lines, names)
    found = {name: (chip.tolist(), core.tolist()) for name, chip, core in names["cores"](tmp_path / FILE)}
    assert found == {"a": ([1, 0, 1], [1, 0, 1]), "b": ([0], [1])}


def test_the_command_and_its_refusals(tmp_path: Path) -> None:
    run_here("generate", "layered", "--exponent", 5, "--out", tmp_path / "g.json")
    (tmp_path / "m.part.4").write_text("0\n1\n" * 16)
    words = (tmp_path / "m.part.4", "--graph", tmp_path / "g.json", "--machine", "mesh:2x2", "--to", "lava")
    told = json.loads(run_here("export", *words, "--out", tmp_path / "out", "--json").stdout)
    assert told["cores"] == 2 and told["files"] == [str(tmp_path / "out" / FILE)]
    assert any("stand for several neurons" in note for note in told["notes"])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        export_lava(LogicGraph.from_edges(1, [], []), load_machine("mesh:1x1"), [0], tmp_path / "file" / "x")
