"""Files are written whole or not at all; mapping.json and constraints.json are checked against graph and machine."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, write_atomic
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.constraints_file import load_constraints, save_constraints
from nmsolve.model.mapping.files import Route, read_mapping, write_mapping

GRAPH = LogicGraph.from_edges(3, [0, 1], [1, 2], ids=("a", "b", 7), name="net")
MACHINE = Machine("board", (1, 2), (2, 2))


def test_write_atomic_replaces_and_keeps_permissions(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_atomic(path, "one")
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    path.chmod(0o640)
    write_atomic(path, b"two")
    assert path.read_text() == "two" and path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x.json"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(InputError, match="no space left on device"):
        write_atomic(path, "new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["x.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_really_full_device_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary file is opened on a device that is always full."""
    import tempfile

    def opened(**_: object) -> tuple[int, str]:
        return os.open("/dev/full", os.O_WRONLY), str(tmp_path / "temporary")

    monkeypatch.setattr(tempfile, "mkstemp", opened)
    with pytest.raises(InputError, match="no space left"):
        write_atomic(tmp_path / "x.json", "new")
    assert os.listdir(tmp_path) == []


def test_interrupt_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "x.json", "new")
    assert os.listdir(tmp_path) == []


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write: no such file or directory"):
        write_atomic(tmp_path / "none" / "x.json", "new")


def test_read_limited(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert read_limited(path, 5) == b"12345"
    with pytest.raises(InputError, match="the file has 5 bytes; expected at most 4"):
        read_limited(path, 4)
    if Path("/dev/zero").exists():
        with pytest.raises(InputError, match="the input does not end"):
            read_limited("/dev/zero", 10**6)


# ---- mapping.json -------------------------------------------------------------------------------------------


def test_mapping_file_has_the_documented_columns(tmp_path: Path) -> None:
    path = tmp_path / "mapping.json"
    write_mapping(path, GRAPH, MACHINE, np.array([0, 6, 3]))
    assert json.loads(path.read_text()) == {
        "graph": {"name": "net", "hash": GRAPH.hash},
        "machine": {"name": "board", "hash": MACHINE.hash},
        "node": ["a", "b", 7],
        "row": [0, 1, 0],
        "col": [0, 2, 3],
        "chip": [0, 1, 1],
    }
    assert read_mapping(path, GRAPH, MACHINE).tolist() == [0, 6, 3]


def test_mapping_in_another_order_and_with_routes(tmp_path: Path) -> None:
    path = tmp_path / "mapping.json"
    route = Route("a", "b", [(0, 0), (0, 1), (1, 1)])
    write_mapping(path, GRAPH, MACHINE, np.array([0, 5, 3]), [route])
    content = json.loads(path.read_text())
    assert content["routes"] == [{"source": "a", "target": "b", "path": [[0, 0], [0, 1], [1, 1]]}]
    for key in ("node", "row", "col", "chip"):
        content[key].reverse()
    path.write_text(json.dumps(content))
    assert read_mapping(path, GRAPH, MACHINE).tolist() == [0, 5, 3]


def mapping(**changes: object) -> str:
    content: dict[str, object] = {
        "graph": {"name": "net", "hash": GRAPH.hash},
        "machine": {"name": "board", "hash": ""},
        "node": ["a", "b", 7],
        "row": [0, 1, 0],
        "col": [0, 2, 3],
    }
    return json.dumps({**content, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (mapping(graph={"name": "old", "hash": "beef"}), f"graph 'old' with hash beef, not for 'net' with hash {GRAPH.hash}"),
        (mapping(machine={"name": "old", "hash": "beef"}), "machine 'old' with hash beef, not for 'board'"),
        (mapping(node=["a", "b", "7"]), "$.node[2]: no node has id '7'"),
        (mapping(node=["a", "b", "b"]), "$.node: node 'b' is listed 2 times"),
        (mapping(node=["a", "b"], row=[0, 1], col=[0, 2]), "$.node: node 7 is missing"),
        (mapping(row=[0, 1]), "$.row: 2 values; expected 3"),
        (mapping(row=[0, 2, 0]), "$.row[1]: 2 is outside the board; expected 0..1"),
        (mapping(col=[0, 4, 0]), "$.col[1]: 4 is outside the board; expected 0..3"),
        (mapping(col=[0, -1, 0]), "$.col[1]: -1 is outside"),
        (mapping(col=[0, 10**30, 0]), "$.col[1]"),
        (mapping(chip=[0, 0, 1]), "$.chip[1]: chip 0 does not hold core [1, 2]; expected 1"),
        (mapping(col=[0, "2", 3]), "$.col[1]: found str; expected int"),
        (mapping(routes=[{"source": "a", "target": "b", "path": [[0, 0], [1, 2]]}]), "share no link"),
        (mapping(routes=[{"source": "a", "target": "b", "path": [[0, 0], [0, 1]]}]), "does not join"),
        (mapping(routes=[{"source": "a", "target": "b", "path": [[0, 0], [9, 1]]}]), "leaves the board"),
        (mapping(routes=[{"source": "a", "target": "x", "path": [[0, 0]]}]), "no node has id 'x'"),
        (mapping()[:40], "JSON"),
    ],
)  # fmt: skip
def test_bad_mapping_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mapping.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_mapping(path, GRAPH, MACHINE)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("core", [[0, 1], [0, 1, 8], [0, 1, -1]])
def test_a_mapping_that_does_not_belong_is_not_written(tmp_path: Path, core: list[int]) -> None:
    with pytest.raises(InputError, match="one core number"):
        write_mapping(tmp_path / "m.json", GRAPH, MACHINE, np.array(core))
    assert os.listdir(tmp_path) == []


# ---- constraints.json ---------------------------------------------------------------------------------------


def constraints(*entries: dict[str, object]) -> str:
    return json.dumps({"constraints": entries})


def test_constraints_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(
        constraints(
            {"name": "p", "kind": "pin", "nodes": [7], "core": [1, 2]},
            {"name": "r", "kind": "region", "nodes": ["a", "b"], "rectangle": [0, 1, 2, 3]},
            {"kind": "forbid", "nodes": ["a"], "chips": [1]},
            {"kind": "together", "nodes": ["a", 7]},
            {"name": "x", "kind": "apart", "nodes": ["b", "a"]},
            {"name": "odd", "kind": "region", "nodes": ["b"], "cores": [[1, 2], [0, 0], [1, 2]]},
        )
    )
    read = load_constraints(path, GRAPH, MACHINE)
    assert read == (
        SideConstraint("p", "pin", (2,), (6,)),
        SideConstraint("r", "region", (0, 1), (1, 2, 5, 6)),
        SideConstraint("forbid 2", "forbid", (0,), (2, 3, 6, 7)),
        SideConstraint("together 3", "together", (0, 2)),
        SideConstraint("x", "apart", (1, 0)),
        SideConstraint("odd", "region", (1,), (0, 6)),
    )
    save_constraints(read, GRAPH, MACHINE, path)
    assert load_constraints(path, GRAPH, MACHINE) == read


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": "glue", "nodes": ["a"]}, "$.constraints[0].kind: unknown kind 'glue'"),
        ({"kind": "apart", "nodes": ["a", "x"]}, "$.constraints[0].nodes[1]: no node has id 'x'"),
        ({"kind": "apart", "nodes": ["a", "a"]}, "$.constraints[0].nodes[1]: node 'a' is listed twice"),
        ({"kind": "apart", "nodes": ["a"]}, "$.constraints[0].nodes: 1 nodes; expected at least 2"),
        ({"kind": "pin", "nodes": [], "core": [0, 0]}, "0 nodes"),
        ({"kind": "pin", "nodes": ["a"]}, "pin with no cores; expected core"),
        ({"kind": "pin", "nodes": ["a"], "core": [2, 0]}, "$.constraints[0].core: core [2, 0] is outside"),
        ({"kind": "pin", "nodes": ["a"], "core": [0]}, "$.constraints[0].core"),
        ({"kind": "region", "nodes": ["a"], "core": [0, 0]}, "region with core"),
        ({"kind": "region", "nodes": ["a"], "chips": [0], "rectangle": [0, 0, 1, 1]}, "rectangle and chips"),
        (
            {"kind": "region", "nodes": ["a"], "cores": [[0, 0]], "rectangle": [0, 0, 1, 1]},
            "rectangle and cores",
        ),
        (
            {"kind": "region", "nodes": ["a"], "cores": []},
            "$.constraints[0].cores: no cores; expected at least one",
        ),
        (
            {"kind": "forbid", "nodes": ["a"], "cores": [[0, 0], [0, 9]]},
            "$.constraints[0].cores[1]: core [0, 9]",
        ),
        ({"kind": "pin", "nodes": ["a"], "cores": [[0, 0]]}, "pin with cores; expected core"),
        ({"kind": "region", "nodes": ["a"], "rectangle": [0, 0, 0, 1]}, "is empty or outside"),
        ({"kind": "region", "nodes": ["a"], "rectangle": [0, 0, 3, 1]}, "is empty or outside"),
        (
            {"kind": "forbid", "nodes": ["a"], "chips": [2]},
            "$.constraints[0].chips[0]: no chip 2",
        ),
        (
            {"kind": "together", "nodes": ["a", "b"], "core": [0, 0]},
            "together with core; expected nodes only",
        ),
        ({"kind": "region", "nodes": ["a"], "rectangel": [0, 0, 1, 1]}, "rectangel"),
    ],
)
def test_bad_constraints(tmp_path: Path, entry: dict[str, object], message: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(constraints(entry))
    with pytest.raises(InputError) as error:
        load_constraints(path, GRAPH, MACHINE)
    assert message in str(error.value)


def test_constraint_names_are_unique(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    pin = {"name": "p", "kind": "pin", "nodes": ["a"], "core": [0, 0]}
    path.write_text(constraints(pin, pin))
    with pytest.raises(InputError, match="constraint 0 has the same name 'p'"):
        load_constraints(path, GRAPH, MACHINE)
