"""What inputs and weights of a model are for, by the operators that use them: so that random values make sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

#: Operators that hand their first input on, rearranged at most.
CARRIERS = frozenset({
    "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Transpose", "Slice", "Tile",
})  # fmt: skip


class Use(NamedTuple):
    """A node that uses a tensor as its input number ``position``; ``turned``: after an odd number of transpositions."""

    node: Any
    position: int
    turned: bool


class Roles:
    """Uses of the tensors of a model, by name; bodies of control flow take part with their own names.

    This is for guessing only: where names of different bodies are equal, uses of both are found.
    """

    def __init__(self, graph: Any) -> None:
        self._users: dict[str, list[tuple[Any, int]]] = {}
        self._same: dict[str, list[str]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._collect(graph)

    def _collect(self, graph: Any) -> None:
        for tensor in graph.initializer:
            self.shapes[tensor.name] = tuple(tensor.dims)
        for info in graph.input:
            if info.type.HasField("tensor_type"):
                dims = info.type.tensor_type.shape.dim
                self.shapes.setdefault(info.name, tuple(d.dim_value for d in dims))
        for node in graph.node:
            for position, name in enumerate(node.input):
                if name:
                    self._users.setdefault(name, []).append((node, position))
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    first = 0 if node.op_type == "Scan" else 2 if node.op_type == "Loop" else None
                    pairs = [] if first is None else list(node.input)[first:]
                    for outer, inner in zip(pairs, list(attribute.g.input)[first:], strict=False):
                        self._same.setdefault(outer, []).append(inner.name)
                    self._collect(attribute.g)

    def uses(self, name: str) -> Iterator[Use]:
        """Yield all uses of a tensor, also of what carriers make of it."""
        seen, todo = {name}, [(name, False)]
        while todo:
            at, turned = todo.pop()
            onward = [(other, turned) for other in self._same.get(at, ())]
            for node, position in self._users.get(at, ()):
                yield Use(node, position, turned)
                if node.op_type in CARRIERS and position == 0:
                    onward += [(o, turned ^ (node.op_type == "Transpose")) for o in node.output]
            for other in onward:
                if other[0] and other[0] not in seen:
                    seen.add(other[0])
                    todo.append(other)
