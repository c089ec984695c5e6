"""docs/files.md says what the code does: its examples load, its tables are complete."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np

from nmsolve.model.formats import FORMATS, load_graph, load_instance
from nmsolve.model.formats.edge_columns import SOURCE, TARGET, WEIGHT
from nmsolve.model.formats.json_sizes import RESOURCES
from nmsolve.model.formats.node_table import read_nodes
from nmsolve.model.generators import GENERATORS
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints_file import load_constraints
from nmsolve.model.mapping.files import read_mapping
from nmsolve.model.schedule.files import load_schedule
from nmsolve.model.schedule.generate import PARAMETERS
from nmsolve.model.schedule.schedule_file import Entry, ProcessRow, ScheduleContent, UnitRow
from nmsolve.model.schedule.tasks_file import (
    After,
    Alternative,
    Interaction,
    Links,
    Power,
    Process,
    TaskEntry,
    TasksFile,
    Unit,
    Weights,
)

TEXT = (Path(__file__).parent.parent / "docs" / "files.md").read_text()
EXAMPLES = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)


def test_graph_examples_load(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(EXAMPLES[0])
    graph, machine = load_instance(tmp_path / "a.json")
    assert graph.name == "tiny" and graph.ids == ("in", "out") and machine is not None and machine.size == 4
    (tmp_path / "b.json").write_text(EXAMPLES[1])
    assert load_graph(tmp_path / "b.json").m == 2


def test_constraint_and_mapping_examples_load(tmp_path: Path) -> None:
    """The mapping is one of the first example, hashes included."""
    from nmsolve.model.graph import LogicGraph

    graph = LogicGraph.from_edges(5, [0], [1], ids=("in", "a", "b", "c", "d"))
    (tmp_path / "c.json").write_text(EXAMPLES[2])
    found = load_constraints(tmp_path / "c.json", graph, Machine("m", (2, 2), (2, 2)))
    assert [c.kind for c in found] == ["pin", "region", "region", "forbid", "together", "apart", "slices"]
    (tmp_path / "g.json").write_text(EXAMPLES[0])
    (tmp_path / "m.json").write_text(EXAMPLES[3])
    pair, machine = load_instance(tmp_path / "g.json")
    assert machine is not None
    assert np.array_equal(read_mapping(tmp_path / "m.json", pair, machine), [0, 3])


def test_the_example_of_tasks_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(next(text for text in EXAMPLES if '"tasks"' in text))
    stated = load_schedule(tmp_path / "tasks.json")
    assert stated.problem.labels == (
        "camera/conv@0", "camera/pool@0", "radar/fft@0", "radar/track@0", "camera+radar/fuse@0",
    )  # fmt: skip
    fuse = stated.table()[-1]
    assert (fuse.task, fuse.partner, fuse.modes, fuse.span) == ("camera", "radar", 1, (5, 5))


def test_every_key_of_tasks_is_described() -> None:
    section = TEXT[TEXT.index("## Tasks") : TEXT.index("## Schedules")]
    for part in (TasksFile, Unit, Power, Links, TaskEntry, Process, Interaction, Alternative, After, Weights):
        for key in part.__struct_fields__:
            assert f"`{key}`" in section, f"{part.__name__}.{key}"
    section = TEXT[TEXT.index("## Schedules") :]
    for part in (ScheduleContent, ProcessRow, UnitRow, Entry):
        for key in part.__struct_fields__:
            assert f"`{key}`" in section, f"{part.__name__}.{key}"


def test_every_format_and_generator_is_described() -> None:
    for p in PARAMETERS:
        assert f"`{p.name}` ({p.default}): {p.text}" in TEXT
    for extension in FORMATS:
        assert f"`{extension}`" in TEXT
    for kind, generator in GENERATORS.items():
        row = next(line for line in TEXT.splitlines() if line.startswith(f"| `{kind}` |"))
        for p in generator.parameters:
            assert f"`{p.name}` ({p.default}): {p.text}" in row


def test_the_machine_of_unlike_processors_is_a_file() -> None:
    root = Path(__file__).parent.parent
    text = (root / "examples" / "processors.toml").read_text()
    assert f"```toml\n{text}```" in (root / "docs" / "processors.md").read_text()


def test_the_first_example_of_the_readme_is_a_file_and_its_optimum_is_true() -> None:
    """Least hops over all 4^6 mappings, counted here."""
    root = Path(__file__).parent.parent
    readme, path = (root / "README.md").read_text(), root / "examples" / "first.json"
    assert f"```json\n{path.read_text()}```" in readme
    content = json.loads(path.read_text())
    rows, cols = content["graph"]["mesh"]
    size = {node["id"]: node["neurons"] for node in content["nodes"]}
    best = math.inf
    for cores in itertools.product(range(rows * cols), repeat=len(size)):
        at = dict(zip(size, cores, strict=True))
        held = Counter[int]()
        for node, core in at.items():
            held[core] += size[node]
        if max(held.values()) <= content["graph"]["capacity"]["neurons"]:
            ends = [
                (divmod(at[e["source"]], cols), divmod(at[e["target"]], cols), e["weight"])
                for e in content["edges"]
            ]
            best = min(best, sum(w * (abs(a - c) + abs(b - d)) for (a, b), (c, d), w in ends))
    assert f"optimal: hops {best}, bound {best}," in readme


def test_names_of_columns_of_edge_lists_and_node_tables(tmp_path: Path) -> None:
    rows = [
        line.split("|")[1:3] for line in TEXT.split("### Edge lists")[1].split("\n") if line.startswith("| ")
    ]
    named = {what.strip(): set(re.findall(r"`([^`]+)`", names)) for what, names in rows}
    assert named["sender"] == SOURCE and named["receiver"] == TARGET
    assert named["messages per step; 1 without it"] == WEIGHT | {"rate"}
    (tmp_path / "n.csv").write_text(re.findall(r"```csv\n(.*?)```", TEXT, re.DOTALL)[0])
    table = read_nodes(tmp_path / "n.csv")
    assert table.ids == ("retina", "cortex", "spare") and table.kinds is not None
    resources = re.search(r"^\| (`size`.*?) \| \|", TEXT, re.MULTILINE)
    assert resources is not None
    assert set(re.findall(r"`([^`]+)`", resources[1])) == {"size", "sizes.NAME", *RESOURCES}
