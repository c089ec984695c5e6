"""What NetPyNE saves as JSON: cells, connections, spikes; wrong files are one line with its path."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_support import run_here
from formats_support import put, refused

from nmsolve.model.formats import load_graph

SAVED = Path(__file__).parent / "data" / "circuits" / "netpyne.json"


def stated() -> Any:
    return json.loads(SAVED.read_text())


def test_cells_connections_and_kinds_are_those_of_the_file() -> None:
    content, graph = stated(), load_graph(SAVED)
    assert graph.ids == (*(f"E/{k}" for k in range(6)), *(f"I/{k}" for k in range(3)), "bkg/0", "bkg/1")
    assert graph.kinds is not None and graph.kinds.names == ("PYR", "INT", "NetStim")
    wanted = Counter(
        (c["preGid"], cell["gid"])
        for cell in content["net"]["cells"]
        for c in cell["conns"]
        if c["preGid"] != "NetStim"
    )
    assert set(zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True)) == set(wanted)
    assert graph.sizes[:, 1].sum() == wanted.total() and graph.multicast.all() and (graph.weights == 1).all()


def test_gap_junctions_are_no_messages(tmp_path: Path) -> None:
    content, m = stated(), load_graph(SAVED).m
    content["net"]["cells"][1]["conns"].append({"preGid": 2, "gapJunction": True, "weight": 1})
    assert load_graph(put(tmp_path, "n.json", json.dumps(content))).m == m
    content["net"]["cells"][1]["conns"].append({"preGid": 2, "weight": 1})
    assert load_graph(put(tmp_path, "n.json", json.dumps(content))).m == m + 1


def test_its_spikes_become_rates(tmp_path: Path) -> None:
    run_here("convert", SAVED, tmp_path / "o.json", "--rates", SAVED)
    fired = Counter(int(v) for v in stated()["simData"]["spkid"])
    graph = load_graph(tmp_path / "o.json")
    assert graph.rate == pytest.approx([fired[k] / 0.2 for k in range(11)]) and fired.total() > 0


def test_wrong_files_are_refused_with_their_path(tmp_path: Path) -> None:
    def wrong(change: Any) -> str:
        content = stated()
        change(content)
        return refused(put(tmp_path, "n.json", json.dumps(content)))

    cells = lambda c: c["net"]["cells"]  # noqa: E731
    assert "$.net.cells[3].gid: cell 1 is there twice" in wrong(lambda c: cells(c)[3].update(gid=1))
    assert "$.net.cells[2].conns: there is no cell 99" in wrong(
        lambda c: cells(c)[2]["conns"].append({"preGid": 99})
    )
    assert "$.net.cells[4].tags" in wrong(lambda c: cells(c)[4].update(tags={}))
    assert "$.net.cells[0].conns[0]: connections are lists, and nothing says what is in them" in wrong(
        lambda c: cells(c)[0].update(conns=[[1, 2]])
    )
    for without in (
        lambda c: c["net"].update(cells=[]),
        lambda c: c["net"].pop("cells"),
        lambda c: c.pop("net"),
    ):
        assert "$.net.cells: there are no cells" in wrong(without)


def test_files_without_spikes_give_no_rates(tmp_path: Path) -> None:
    content = stated()
    content["simData"]["spkid"].append(77.0)
    bad = put(tmp_path, "b.json", json.dumps(content))
    line = run_here("convert", SAVED, tmp_path / "o.json", "--rates", bad, code=2).stderr
    assert f"$.simData.spkid[{len(content['simData']['spkid']) - 1}]: there is no cell 77" in line
    del content["simData"]
    bad = put(tmp_path, "b.json", json.dumps(content))
    assert (
        "no spikes were saved"
        in run_here("convert", SAVED, tmp_path / "o.json", "--rates", bad, code=2).stderr
    )


def test_other_json_with_a_key_net_is_still_read(tmp_path: Path) -> None:
    for net in ({"x": 1}, "a", 7, [1], None, True):
        text = json.dumps(
            {"net": net, "nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}]}
        )
        assert load_graph(put(tmp_path, "n.json", text)).m == 1
