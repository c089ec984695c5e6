"""Operator graphs by hand: a tensor per call, consumers filled in at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor


class Sketch:
    """Collects tensors and operators; ``op`` returns the number of its (first) result."""

    def __init__(self, name: str = "sketch") -> None:
        self.name = name
        self.tensors: list[Tensor] = []
        self.operators: list[Operator] = []
        self.inputs: list[int] = []
        self.captured: list[int] = []

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def input(self, *shape: Any, dtype: str = "float32", name: str = "") -> int:
        self.inputs.append(self._add(Tensor(name or f"in{len(self.tensors)}", dtype, shape)))
        return self.inputs[-1]

    def capture(self, name: str, *shape: Any, dtype: str = "float32") -> int:
        self.captured.append(self._add(Tensor(name, dtype, shape)))
        return self.captured[-1]

    def weight(self, *shape: Any, dtype: str = "float32", name: str = "") -> int:
        return self._add(Tensor(name or f"w{len(self.tensors)}", dtype, shape, weight=True))

    def constant(self, value: Any, dtype: str = "int64") -> int:
        value = np.array(value)
        return self._add(Tensor(f"c{len(self.tensors)}", dtype, value.shape, value=value))

    def op(
        self,
        kind: str,
        inputs: list[int],
        *shapes: tuple[Any, ...] | None,
        dtype: str = "float32",
        name: str = "",
        opaque: bool = False,
        bodies: tuple[OperatorGraph, ...] = (),
        **attributes: Any,
    ) -> int:
        number = len(self.operators)
        outputs = tuple(
            self._add(Tensor(f"t{len(self.tensors)}", dtype, shape, producer=number)) for shape in shapes
        )
        self.operators.append(
            Operator(name or f"{kind.lower()}{number}", kind, tuple(inputs), outputs, "", attributes, bodies, opaque)
        )  # fmt: skip
        return outputs[0] if outputs else -1

    def graph(self, *outputs: int) -> OperatorGraph:
        users: dict[int, list[int]] = {}
        for number, operator in enumerate(self.operators):
            for k in dict.fromkeys(k for k in operator.inputs if k >= 0):
                users.setdefault(k, []).append(number)
        tensors = tuple(replace(t, consumers=tuple(users.get(k, ()))) for k, t in enumerate(self.tensors))
        return OperatorGraph(
            self.name, tuple(self.operators), tensors, tuple(self.inputs), outputs, tuple(self.captured)
        )
