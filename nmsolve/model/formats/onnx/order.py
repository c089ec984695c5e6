"""Operators of a graph in topological order, and what each needs, the names its bodies take from outside included."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.ordering import circle, topological


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
