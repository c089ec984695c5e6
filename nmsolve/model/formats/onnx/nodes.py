"""The nodes of an ONNX model in topological order, with unique names, the bodies of control flow included."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.ordering import circle, topological

#: Position of an operator in its graph; for one in a body, before it the path of the control operator and the body's number.
OperatorPath = tuple[int, ...]
#: Bodies in the order of ``Operator.bodies``; any other name comes behind them.
_BODIES = {"then_branch": 0, "else_branch": 1}


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
    """Return the nodes of a ``GraphProto``; an operator graph has the same paths and labels.

    Raises
    ------
    InputError : nodes wait for each other in a circle, or a tensor is made twice
    """
    needs = [needs_of(node) for node in graph.node]
    given = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    given |= {t.values.name for t in graph.sparse_initializer}
    taken: dict[str, int] = {}
    nodes: list[Node] = []
    for k in ordered(graph, needs, given, str(where)):
        proto, own = graph.node[k], (*path, len(nodes))
        label = _unique(proto.name or f"{proto.op_type}_{k}", taken)
        full = f"{title}{label}"
        parts = sorted(
            (a for a in proto.attribute if a.HasField("g")), key=lambda a: (_BODIES.get(a.name, 2), a.name)
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


def needs_of(node: Any) -> tuple[str, ...]:
    """Return names of the tensors that a node uses, each once, in order of first use."""
    names = dict.fromkeys(n for n in node.input if n)
    for a in node.attribute:
        if a.HasField("g"):
            names.update(dict.fromkeys(_free(a.g)))
    return tuple(names)


def _free(graph: Any) -> list[str]:
    """Return names that a body uses and does not make."""
    made = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    made |= {t.values.name for t in graph.sparse_initializer}
    made.update(n for node in graph.node for n in node.output)
    used = dict.fromkeys(n for node in graph.node for n in needs_of(node))
    used.update(dict.fromkeys(o.name for o in graph.output if o.name))
    return [n for n in used if n not in made]


def ordered(graph: Any, needs: Sequence[Collection[str]], given: Container[str], where: str) -> list[int]:
    """Return numbers of the nodes in topological order; the order of the file is kept where it is one (Kahn's algorithm).

    Raises
    ------
    InputError : a tensor is made twice, or the nodes wait for each other in a circle
    """
    maker: dict[str, int] = {}
    for k, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in maker or name in given):
                raise InputError(f"tensor {name!r} is produced twice", where, "every tensor produced once")
            if name:
                maker[name] = k
    before = [{maker[n] for n in needs[k] if n in maker} for k in range(len(graph.node))]
    order = topological(before)
    if len(order) < len(before):
        ring = circle(before, order)
        shown = " -> ".join(graph.node[k].name or f"{graph.node[k].op_type}_{k}" for k in ring[:8])
        raise InputError(
            f"nodes depend on each other in a cycle: {shown}{' -> ...' if len(ring) > 8 else ''}",
            where,
            "a graph without cycles",
        )
    return order
