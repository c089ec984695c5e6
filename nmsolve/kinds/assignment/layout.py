"""Where the picture of an assignment puts operators: layers along the data, rows of layers one below the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.report.layered import layers_of_nodes, places_in_layers

#: More operators than this are folded; layers of one row of the picture.
MOST, ROW = 300, 40


@dataclass(frozen=True, eq=False)
class Drawing:
    """Nodes of a picture.

    Attributes
    ----------
    names : (N,) of the operator, or of the module or run of operators
    unit, members : (N,) unit that runs them, and how many operators they are
    ends : (E, 2) nodes joined by a tensor, each pair once
    place : (N, 2) column and height within its row; ``row``: (N,) row of the picture
    heights : (rows,) how many nodes a row is high
    folded : operators were folded
    """

    names: tuple[str, ...]
    unit: IntArray
    members: IntArray
    ends: IntArray
    place: FloatArray
    row: IntArray
    heights: IntArray
    folded: bool


def drawing(problem: AssignProblem, unit: IntArray) -> Drawing:
    """Return where the operators of an assignment ``unit`` (L,) are drawn, without ``@in`` and ``@out``."""
    shown = [i for i, label in enumerate(problem.labels) if not label.startswith("@")]
    node, names = _folded(problem, unit, shown)
    count = len(names)
    ends = set()
    flows = problem.flows
    for t in range(flows.count):
        a = int(node[flows.source[t]])
        for k in flows.users(t).tolist():
            b = int(node[k])
            if a >= 0 and b >= 0 and a != b:
                ends.add((a, b))
    first = np.full(count, problem.count)
    np.minimum.at(first, node[shown], shown)
    # what goes back (loops, folded runs that hold each other) does not decide where a node stands
    forward = sorted((a, b) for a, b in ends if first[a] < first[b])
    layer = layers_of_nodes(count, forward, first)
    height = places_in_layers(count, forward, layer)
    row, column = layer // ROW, layer % ROW
    rows = int(row.max(initial=0)) + 1
    members = np.bincount(node[shown], minlength=count)
    at = np.zeros(count, np.int64)
    at[node[shown]] = unit[shown]
    heights = np.ones(rows, np.int64)
    np.maximum.at(heights, row, np.bincount(layer)[layer])
    place = np.column_stack([column.astype(float), height])
    return Drawing(
        tuple(names), at, members, np.array(sorted(ends), np.int64).reshape(-1, 2), place, row, heights,
        count < len(shown),
    )  # fmt: skip


def _folded(problem: AssignProblem, unit: IntArray, shown: list[int]) -> tuple[IntArray, list[str]]:
    """Return (L,) node of every operator (-1: none) and the nodes' names; at most about :data:`MOST`.

    Operators of one module (the part of their names before the last ``/``, or shorter) on one unit are one node; where names
    tell no modules, operators in a row on one unit are.
    """
    node = np.full(problem.count, -1, np.int64)
    if len(shown) <= MOST:
        node[shown] = np.arange(len(shown))
        return node, [problem.labels[i] for i in shown]
    parts = [problem.labels[i].strip("/").split("/")[:-1] for i in shown]
    for depth in range(max(map(len, parts)), 0, -1):
        keys = [("/".join(p[:depth]), int(unit[i])) for p, i in zip(parts, shown, strict=True)]
        seen = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        if 20 <= len(seen) <= MOST:
            node[shown] = [seen[key] for key in keys]
            return node, [name or "(no module)" for name, _ in seen]
    runs: list[list[int]] = []
    limit = -(-len(shown) // (MOST // 2))
    for i in shown:
        if runs and unit[runs[-1][-1]] == unit[i] and len(runs[-1]) < limit:
            runs[-1].append(i)
        else:
            runs.append([i])
    for k, own in enumerate(runs):
        node[own] = k
    return node, [f"{problem.labels[own[0]]} to {problem.labels[own[-1]]}" for own in runs]
