"""Links that would decide the period of a placed pipeline: the search for cooler ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_support import run_here

pytest.importorskip("sympy")
onnx = pytest.importorskip("onnx")


def nested(path: Path, depth: int) -> Path:
    """Products of 16 rows and 64 columns; the first half of the results are added to the second half, the last one first."""
    from onnx import TensorProto, helper

    nodes, weights, last, kept = [], [], "x", []
    for k in range(2 * depth):
        data = bytes(4 * 64 * 64)
        weights.append(helper.make_tensor(f"w{k}", TensorProto.FLOAT, [64, 64], data, raw=True))
        nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [f"h{k}"], f"matmul{k}"))
        last = f"h{k}"
        if k < depth:
            kept.append(last)
        else:
            nodes.append(helper.make_node("Add", [last, kept.pop()], [f"a{k}"], f"add{k}"))
            last = f"a{k}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, 64]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "nested", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def line(path: Path, bandwidth: float, cores: int = 28) -> Path:
    """All cores in a row: what passes between far stages goes over every link between them."""
    rates = "mac_rate = 1e9\nelement_rate = 1e9\ntile_channels = 16\ntile_rows = 16\n"
    path.write_text(f"cores = [1, {cores}]\n[figures]\n{rates}bandwidth = {bandwidth}\n")
    return path


def test_cooler_links_are_sought_where_links_decide(tmp_path: Path) -> None:
    """The placement is then one of the coolest links; ``verify`` accepts both folders."""
    source, machine, out = nested(tmp_path / "n.onnx", 14), line(tmp_path / "l.toml", 0.4e9), tmp_path / "out"
    words = ("--objective", "batch", "--batches", "100", "-t", "8", "--place")
    said = run_here("pipeline", source, "-m", machine, *words, "-o", out, code=None).stderr
    assert "cooler links are sought" in said
    assert json.loads((out / "placement" / "report.json").read_text())["objective_name"] == "max-link"
    run_here("verify", out / "placement")
    assert "links, not cores" in run_here("verify", out).stdout
