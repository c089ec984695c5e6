"""The nodes of an ONNX model in the order and with the names of its operator graph, bodies of control flow included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmsolve.model.formats.onnx.build import BODIES
from nmsolve.model.formats.onnx.order import needs_of, ordered

#: Position of an operator in its graph; for one in a body, before it the path of the control operator and the body's number.
OperatorPath = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """One operator of the file.

    Attributes
    ----------
    path : ``(i,)`` for operator i of the model, ``(i, b, k)`` for operator k in body b of operator i, and so on
    label : its name, unique in its graph, as in :class:`~nmsolve.model.operators.graph.Operator`
    title : the labels on its path, joined by ``/``
    proto : the ``NodeProto``
    needs : names of the tensors that it uses, those that its bodies take from outside included
    bodies : of control flow
    """

    path: OperatorPath
    label: str
    title: str
    proto: Any
    needs: tuple[str, ...]
    bodies: tuple[Scope, ...]

    @property
    def constant(self) -> bool:
        """Whether it is a ``Constant``: it runs nowhere, whoever uses it has a copy."""
        return self.proto.op_type == "Constant" and self.proto.domain in ("", "ai.onnx")


@dataclass(frozen=True, eq=False)
class Scope:
    """A graph of the file: its ``GraphProto`` and its nodes in topological order."""

    graph: Any
    nodes: tuple[Node, ...]


def scope_of(graph: Any, where: str | Path, path: OperatorPath = (), title: str = "") -> Scope:
    """Return the nodes of a ``GraphProto`` in the order of :func:`nmsolve.model.formats.onnx.load_onnx`, so that paths agree.

    Raises
    ------
    InputError : nodes wait for each other in a circle, or a tensor is made twice
    """
    needs = [needs_of(node) for node in graph.node]
    taken: dict[str, int] = {}
    nodes: list[Node] = []
    for k in ordered(graph, needs, (), str(where)):
        proto, own = graph.node[k], (*path, len(nodes))
        label = _unique(proto.name or f"{proto.op_type}_{k}", taken)
        full = f"{title}{label}"
        parts = sorted(
            (a for a in proto.attribute if a.HasField("g")), key=lambda a: (BODIES.get(a.name, 2), a.name)
        )
        bodies = tuple(scope_of(a.g, where, (*own, b), f"{full}/") for b, a in enumerate(parts))
        nodes.append(Node(own, label, full, proto, needs[k], bodies))
    return Scope(graph, tuple(nodes))


def all_nodes(scope: Scope) -> Iterator[Node]:
    """Yield every node, those of bodies after the operator that holds them."""
    for node in scope.nodes:
        yield node
        for body in node.bodies:
            yield from all_nodes(body)


def _unique(name: str, taken: dict[str, int]) -> str:
    """Return the name, made unique by a number."""
    label = name
    while label in taken:
        taken[name] += 1
        label = f"{name}_{taken[name]}"
    taken[label] = 0
    return label
