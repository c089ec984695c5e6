"""Cost graphs of pipelines, cost networks of the iopddl contest."""

from __future__ import annotations

import json
from typing import Any

from nmsolve.model.formats.cost_graph import load_cost_graph
from nmsolve.model.formats.iopddl import load_iopddl
from unknown import Row

GRAPH: dict[str, Any] = {
    "maxSizePerFPGA": 10.0, "maxFPGAs": 2, "maxCPUs": 0, "edges": [{"sourceId": 0, "destId": 1, "cost": 0.0}],
    "nodes": [
        {"id": k, "supportedOnFpga": True, "cpuLatency": 1.0, "fpgaLatency": 1.0, "isBackwardNode": False} for k in (0, 1)
    ],
}  # fmt: skip
PIPER: dict[str, Any] = {
    "maxDevices": 2, "maxMemoryPerDevice": 9.0, "bandwidth": 1.0, "edges": [],
    "nodes": [{"id": 0, "TMPCs": {"1": [{"timePerSample": 1.0, "memoryUsageA": 1.0, "memoryUsageB": 1.0}]}}],
}  # fmt: skip
NETWORK: dict[str, Any] = {
    "problem": {
        "name": "n", "usage_limit": 4, "edges": {"nodes": [[0, 1]], "costs": [[1, 2]]},
        "nodes": {"intervals": [[0, 1], [0, 1]], "costs": [[3], [4, 5]], "usages": [[1], [1, 1]]},
    }
}  # fmt: skip

NODES: dict[str, Any] = NETWORK["problem"]["nodes"] | {"devices": []}

ROWS = [
    Row(f"model.formats.{read.__module__.rpartition('.')[2]}", read, name, json.dumps(content), unknown)
    for read, name, content, unknown in (
        (load_cost_graph, "graph.json", GRAPH | {"maxGPUs": 1}, "maxGPUs"),
        (load_cost_graph, "node.json", GRAPH | {"nodes": [GRAPH["nodes"][0], GRAPH["nodes"][1] | {"tpu": 1}]}, "tpu"),
        (load_cost_graph, "edge.json", GRAPH | {"edges": [GRAPH["edges"][0] | {"delay": 1}]}, "delay"),
        (load_cost_graph, "piper.json", PIPER | {"latency": 1}, "latency"),
        (load_iopddl, "root.json", NETWORK | {"solution": [0, 0]}, "solution"),
        (load_iopddl, "problem.json", {"problem": NETWORK["problem"] | {"links": []}}, "links"),
        (load_iopddl, "nodes.json", {"problem": NETWORK["problem"] | {"nodes": NODES}}, "devices"),
    )
]  # fmt: skip
