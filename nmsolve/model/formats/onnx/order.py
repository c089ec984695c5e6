"""Operators of a graph in topological order, and what each needs, the names its bodies take from outside included."""

from __future__ import annotations

import heapq
from collections.abc import Container
from typing import Any

from nmsolve.model.errors import InputError


class Needs:
    """Names of the tensors that every node of a graph uses."""

    def __init__(self, graph: Any) -> None:
        self._of = [_needs(node) for node in graph.node]

    def of(self, node: int) -> tuple[str, ...]:
        """Each name once, in order of first use."""
        return self._of[node]


def _needs(node: Any) -> tuple[str, ...]:
    names = dict.fromkeys(n for n in node.input if n)
    for a in node.attribute:
        if a.HasField("g"):
            names.update(dict.fromkeys(_free(a.g)))
    return tuple(names)


def _free(graph: Any) -> list[str]:
    """Names that a body uses and does not make."""
    made = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    made |= {t.values.name for t in graph.sparse_initializer}
    made.update(n for node in graph.node for n in node.output)
    used = dict.fromkeys(n for node in graph.node for n in _needs(node))
    used.update(dict.fromkeys(o.name for o in graph.output if o.name))
    return [n for n in used if n not in made]


def ordered(graph: Any, needs: Needs, given: Container[str], where: str) -> list[int]:
    """Numbers of the nodes in topological order; the order of the file is kept where it is one (Kahn's algorithm).

    Raises
    ------
    InputError : a tensor is made twice, or the nodes wait for each other in a circle
    """
    maker: dict[str, int] = {}
    for k, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in maker or name in given):
                raise InputError(f"tensor {name!r} is made twice", where, "every tensor made once")
            if name:
                maker[name] = k
    before = [{maker[n] for n in needs.of(k) if n in maker} for k in range(len(graph.node))]
    after: list[list[int]] = [[] for _ in before]
    for k, makers in enumerate(before):
        for m in makers:
            after[m].append(k)
    missing = [len(makers) for makers in before]
    ready = [k for k, count in enumerate(missing) if not count]
    order = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for user in after[k]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, user)
    if len(order) < len(before):
        circle = _circle(before, {k for k, count in enumerate(missing) if count})
        shown = " -> ".join(graph.node[k].name or f"{graph.node[k].op_type}_{k}" for k in circle[:8])
        raise InputError(
            f"nodes wait for each other: {shown}{' -> ...' if len(circle) > 8 else ''}",
            where,
            "a graph without cycles",
        )
    return order


def _circle(before: list[set[int]], waiting: set[int]) -> list[int]:
    """A circle among nodes that all wait for one of themselves, in the direction of the data, the first node again at the end."""
    path = [min(waiting)]
    seen = {path[0]: 0}
    while True:
        k = min(before[path[-1]] & waiting)
        if k in seen:
            return [*path[seen[k] :], k][::-1]
        seen[k] = len(path)
        path.append(k)
