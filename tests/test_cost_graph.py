"""Cost graphs: what the fields mean, and every way a file can be wrong."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Called

from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.model.errors import InputError
from nmsolve.model.formats.cost_graph import load_cost_graph
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.solvers.pipeline.api import plan

BERT = Path(__file__).parents[1] / "nmsolve/benchmarks/instances/dnn/layer_bert24_inference.json"


def node(number: int, fpga: float, cpu: float = 100.0, **more: object) -> dict[str, object]:
    return {
        "id": number,
        "supportedOnFpga": 1,
        "cpuLatency": cpu,
        "fpgaLatency": fpga,
        "isBackwardNode": 0,
        "size": 1.0,
    } | more


GRAPH: dict[str, Any] = {
    "maxSizePerFPGA": 10.0,
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "nodes": [
        node(7, 1.0), node(3, 2.0, colorClass=40, name="conv"), node(9, 4.0), node(5, 8.0, colorClass=40),
    ],
    "edges": [
        {"sourceId": 7, "destId": 3, "cost": 0.5, "size": 64.0},
        {"sourceId": 7, "destId": 9, "cost": 0.5, "size": 64.0},
        {"sourceId": 3, "destId": 9, "cost": 0.25},
        {"sourceId": 9, "destId": 5, "cost": 0.125},
    ],
}  # fmt: skip


def written(folder: Path, graph: dict[str, Any]) -> Path:
    path = folder / "graph.json"
    path.write_text(json.dumps(graph))
    return path


def chain(times: list[float]) -> dict[str, Any]:
    edges = [{"sourceId": k, "destId": k + 1, "cost": 0.0} for k in range(len(times) - 1)]
    return {
        "maxSizePerFPGA": 1e9, "maxFPGAs": 2, "maxCPUs": 0, "edges": edges,
        "nodes": [node(k, time, time, name=f"n{k}", size=0.0) for k, time in enumerate(times)],
    }  # fmt: skip


@pytest.mark.parametrize("unit", [1e287, 1.0, 1e-240])
def test_the_best_of_a_chain_does_not_depend_on_the_unit(unit: float, tmp_path: Path) -> None:
    """3, 5 | 4, 2 on two cores: the slowest stage takes 8."""
    problem = replace(
        load_cost_graph(written(tmp_path, chain([3 * unit, 5 * unit, 4 * unit, 2 * unit]))),
        split="chain",
        stages=2,
    )
    result = plan(problem, time_limit=60, engines=["chain"])
    assert result.objective == pytest.approx(8 * unit, rel=1e-12) and result.status == "optimal"


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([3e289, 5e289, 4e289], "times add up to 1.2e+290; the largest is 5e+289, of 'n1'"),
        ([1e308, 1e308, 1.7e308], "times add up to inf; the largest is 1.7e+308, of 'n2'"),
        ([1e-300, 2e-300], "times add up to 3e-300; the largest is 2e-300, of 'n1'"),
    ],
)
def test_times_that_ticks_cannot_express_are_refused(times: list[float], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        load_cost_graph(written(tmp_path, chain(times)))


def test_fields_become_the_parts_of_a_pipeline_problem(tmp_path: Path) -> None:
    """Accelerators are cores, CPU cores are hosts, colour classes stay together, one tensor per source."""
    problem = load_cost_graph(written(tmp_path, GRAPH))
    assert problem.labels == ("7", "conv", "9", "5")
    assert (problem.cores, problem.hosts, problem.stages, problem.memory, problem.split) == (
        2,
        1,
        3,
        10.0,
        "contiguous",
    )
    assert problem.time.tolist() == [[1], [2], [4], [8]]
    assert problem.storage.tolist() == [1, 1, 1, 1]
    assert problem.together is not None and problem.together.tolist() == [-1, 0, -1, 0]
    assert problem.tensors.source.tolist() == [0, 1, 2]
    assert problem.tensors.indptr.tolist() == [0, 2, 3, 4]
    assert problem.tensors.targets.tolist() == [1, 2, 2, 3]
    assert problem.tensors.time.tolist() == [0.5, 0.25, 0.125]
    assert problem.tensors.volume.tolist() == [64, 0, 0]


def test_loads_are_those_of_the_published_model(tmp_path: Path) -> None:
    """A device pays a tensor once, in or out; a host pays none (worked out by hand)."""
    problem = load_cost_graph(written(tmp_path, GRAPH))
    plan = PipelinePlan(np.array([0, 1, 2, 1]), np.array([0, 1, 1]))
    loads = stage_loads(problem, plan)
    assert loads.load.tolist() == [100, 10 + 0.5 + 0.25 + 0.125, 4 + 0.5 + 0.25 + 0.125]
    assert objective(problem, plan) == 100


def test_the_published_file_is_read_whole() -> None:
    """32 layers, 55 edges, 6 accelerators and one CPU; all on one accelerator takes the published 92.406."""
    problem = load_cost_graph(BERT)
    assert (problem.count, len(problem.tensors.targets), problem.cores, problem.hosts) == (32, 55, 6, 1)
    assert problem.split == "contiguous"
    single = PipelinePlan(np.zeros(32, np.int64), np.ones(1, np.int64))
    assert objective(problem, single) == pytest.approx(92.406, abs=5e-4)


def test_a_backward_pass_is_planned_without_order_alone(call: Called, tmp_path: Path) -> None:
    """Its nodes are layers like others where no order is asked; with one the graph is refused in one line."""
    path, out = written(tmp_path, changed("nodes.3.isBackwardNode", True)), tmp_path / "out"
    with_order = load_cost_graph(written(tmp_path, GRAPH))
    path = written(tmp_path, changed("nodes.3.isBackwardNode", True))
    problem = load_cost_graph(path)
    assert problem.split == "any" and problem.content_hash == replace(with_order, split="any").content_hash
    for words in ((), ("--split", "contiguous"), ("--split", "chain")):
        code, _, error = call("pipeline", path, *words, "-o", out)
        assert code == 2 and error.count("\n") == 1 and not out.exists()
        assert "the graph holds a backward pass" in error and "expected --split any" in error
    assert call("pipeline", path, "--split", "any", "-t", 9, "-o", out)[0] == 0
    assert call("verify", out, "--bound")[0] == 0


def changed(path: str, value: object) -> dict[str, Any]:
    """GRAPH with one value replaced, or removed if it is ``...``."""
    graph = copy.deepcopy(GRAPH)
    keys = [int(key) if key.isdigit() else key for key in path.split(".")]
    place: Any = graph
    for key in keys[:-1]:
        place = place[key]
    if value is ...:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return graph


@pytest.mark.parametrize(
    ("path", "value", "where", "what"),
    [
        ("nodes", ..., "", "nodes"),
        ("maxFPGAs", ..., "", "maxFPGAs"),
        ("nodes.1.cpuLatency", ..., "$.nodes[1]", "cpuLatency"),
        ("edges.2.cost", ..., "$.edges[2]", "cost"),
        ("nodes", [], "$.nodes", "no nodes"),
        ("maxFPGAs", 0, "$.maxFPGAs", "0 accelerators"),
        ("maxCPUs", -1, "$.maxCPUs", "-1 CPU"),
        ("maxSizePerFPGA", -1.0, "$.maxSizePerFPGA", "-1"),
        ("nodes.2.fpgaLatency", -4.0, "$.nodes[2].fpgaLatency", "-4"),
        ("nodes.2.cpuLatency", float("inf"), "$.nodes[2].cpuLatency", "inf"),
        ("nodes.2.size", float("nan"), "$.nodes[2].size", "nan"),
        ("nodes.2.fpgaLatency", "4", "$.nodes[2].fpgaLatency", "str"),
        ("nodes.2.id", 3, "$.nodes[2].id", "id 3 is already that of $.nodes[1]"),
        ("nodes.0.supportedOnFpga", False, "$.nodes[0].supportedOnFpga", "node 7 runs on CPUs only"),
        ("edges.1.destId", 8, "$.edges[1].destId", "no node 8"),
        ("edges.1.sourceId", 8, "$.edges[1].sourceId", "no node 8"),
        ("edges.1.destId", 7, "$.edges[1]", "edge to itself"),
        ("edges.1.cost", -0.5, "$.edges[1].cost", "-0.5"),
        ("edges.1.cost", 0.75, "$.edges[1].cost", "two costs"),
        ("edges.1.size", -1, "$.edges[1].size", "-1"),
        ("edges.3", {"sourceId": 9, "destId": 7, "cost": 0.125}, "$.edges", "cycle: "),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_path(
    path: str, value: object, where: str, what: str, tmp_path: Path
) -> None:
    """Missing, negative, not finite, of another type, unknown, repeated, cyclic."""
    file = written(tmp_path, changed(path, value))
    with pytest.raises(InputError) as error:
        load_cost_graph(file)
    assert str(error.value).startswith(str(file))
    assert where in str(error.value) and what in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "nodes: []", "\x00\x01", '{"nodes": 3}'])
def test_what_is_no_cost_graph_is_one_line(text: str, tmp_path: Path) -> None:
    """Not JSON, or JSON of another kind."""
    path = tmp_path / "graph.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"graph\.json"):
        load_cost_graph(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is said."""
    monkeypatch.setattr("nmsolve.model.formats.cost_graph.LARGEST_COST_GRAPH", 100)
    with pytest.raises(InputError, match="at most 100"):
        load_cost_graph(written(tmp_path, GRAPH))


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    """No traceback."""
    with pytest.raises(InputError, match="no such file"):
        load_cost_graph(tmp_path / "none.json")


# ---- Piper --------------------------------------------------------------------------------------------------

GNMT = Path(__file__).parent / "data" / "piper" / "gnmt.json"


def piper(folder: Path, path: str = "", value: object = None) -> Path:
    """Three layers in a row on two devices, with the value at ``path`` replaced, or removed if it is ``...``."""
    one = {
        "id": "vanilla",
        "timePerSample": 2.0,
        "parameterSize": 1.0,
        "memoryUsageA": 3.0,
        "memoryUsageB": 5.0,
    }
    other = one | {"id": "activation recomp", "timePerSample": 9.0, "memoryUsageA": 0.0}
    graph: Any = {
        "maxDevices": 2, "maxMemoryPerDevice": 100.0, "bandwidth": 4.0,
        "nodes": [{"id": 7 + k, "TMPCs": {"1": [one, other], "2": [one | {"timePerSample": 1.0}]}} for k in range(3)],
        "edges": [{"sourceId": 7 + k, "destId": 8 + k, "communicationCost": 6.0} for k in range(2)],
    }  # fmt: skip
    graph = json.loads(json.dumps(graph))
    at, keys = graph, [int(key) if key.isdigit() and key != "1" else key for key in path.split(".")]
    for key in keys[:-1]:
        at = at[key]
    if path and value is ...:
        del at[keys[-1]]
    elif path:
        at[keys[-1]] = value
    return written(folder, graph)


def test_a_graph_of_piper_is_planned_as_without_parallel_layers(tmp_path: Path) -> None:
    """2 a layer; an edge takes 2 * 6 / 4 at both ends; memory for two micro-batches, 2 * 3 + 5 a layer."""
    problem = load_cost_graph(piper(tmp_path))
    assert (problem.cores, problem.hosts, problem.stages, problem.memory) == (2, 0, 2, 100.0)
    assert problem.time.tolist() == [[2]] * 3 and problem.storage.tolist() == [11] * 3
    assert problem.labels == ("7", "8", "9") and problem.tensors.volume.tolist() == [6, 6]
    plan = PipelinePlan(np.array([0, 0, 1]), np.array([1, 1]))
    assert stage_loads(problem, plan).load.tolist() == [4 + 3, 2 + 3]


def test_the_published_graph_of_piper_is_read_whole() -> None:
    content, problem = json.loads(GNMT.read_text()), load_cost_graph(GNMT)
    assert (problem.count, len(problem.tensors.targets), problem.cores) == (78, 104, 10)
    single = PipelinePlan(np.zeros(78, np.int64), np.ones(1, np.int64))
    total = sum(n["TMPCs"]["1"][0]["timePerSample"] for n in content["nodes"])
    assert objective(problem, single) == pytest.approx(total)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("bandwidth", 0, "$.bandwidth; expected a finite number > 0"),
        ("bandwidth", ..., "bandwidth"),
        ("maxDevices", 0, "0 devices"),
        ("maxDevices", 2**40, "devices; expected 1.."),
        ("maxDevices", "2", "$.maxDevices"),
        ("nodes.2.TMPCs", {}, "$.nodes[2].TMPCs; expected one of tensor degree 1"),
        ("nodes.2.TMPCs.1", [], "no configuration on one device"),
        ("nodes.0.TMPCs.1.0.timePerSample", -1, "$.nodes[0].TMPCs.1[0].timePerSample"),
        ("nodes.0.TMPCs.1.0.memoryUsageB", 1e400, "memoryUsageB"),
        ("edges.0.communicationCost", -1, "$.edges[0].communicationCost"),
        ("edges.0.sourceId", 9, "$.edges[0]|cycle"),
    ],
)
def test_wrong_graphs_of_piper_are_refused_with_their_path(
    tmp_path: Path, path: str, value: object, message: str
) -> None:
    with pytest.raises(InputError) as error:
        load_cost_graph(piper(tmp_path, path, value))
    assert "\n" not in str(error.value)
    assert any(part in str(error.value) for part in message.replace("; ", "|").split("|"))
