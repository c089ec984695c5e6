"""Graphs as JSON."""

from __future__ import annotations

from nmsolve.model.formats import load_graph
from unknown import Row

ROWS = [
    Row(
        "model.formats.json_columns", load_graph, "columns.json",
        '{"nmsolve": 1, "form": "columns", "nodes": {"n": 2, "colour": ["red", "blue"]},'
        ' "edges": {"source": [0], "target": [1]}}',
        "colour",
    ),
]  # fmt: skip
