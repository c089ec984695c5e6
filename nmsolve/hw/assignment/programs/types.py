"""Types of the tensors at which a model is cut."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.hints import inferred_graph
from nmsolve.model.formats.onnx.values import DTYPES
from nmsolve.model.operators.binding import partly_bound
from nmsolve.model.operators.graph import OperatorGraph, Tensor
from nmsolve.model.operators.sizes import bytes_of


class Types:
    """What is known of tensors, by graph of the model.

    Parameters
    ----------
    model : the ``ModelProto``
    where : its file, for errors
    bindings : values of symbols, for sizes
    """

    def __init__(self, model: Any, where: str, bindings: Mapping[str, int]) -> None:
        self._model, self._where, self._bindings = model, where, bindings
        self._tables: dict[int, dict[str, int]] = {}

    def number(self, graph: OperatorGraph, name: str) -> int:
        """Return the number of the tensor of this name in a graph, -1 if it has none."""
        if id(graph) not in self._tables:
            self._tables[id(graph)] = {t.name: k for k, t in enumerate(graph.tensors)}
        return self._tables[id(graph)].get(name, -1)

    def tensor(self, graph: OperatorGraph, name: str) -> Tensor | None:
        """Return the tensor of this name in a graph, None if it has none."""
        number = self.number(graph, name)
        return None if number < 0 else graph.tensors[number]

    def bytes(self, tensor: Tensor | None) -> int | None:
        """Return its size, None where it is not known with these bindings."""
        size = None if tensor is None else bytes_of(tensor)
        if size is None:
            return None
        number = partly_bound(size, self._bindings)
        return number if isinstance(number, int) else None

    def info(self, tensor: Tensor | None, name: str, named: bool) -> Any:
        """Return the ``ValueInfoProto`` of an input or output called ``name``.

        Parameters
        ----------
        named : lengths that are expressions have them as names; in bodies they have none, as they may differ between turns

        Raises
        ------
        InputError : its type is unknown
        """
        import onnx

        if tensor is not None and tensor.dtype in DTYPES[1:]:
            shape = None if tensor.shape is None else [_length(d, named) for d in tensor.shape]
            return onnx.helper.make_tensor_value_info(name, DTYPES.index(tensor.dtype), shape)
        stated = None if tensor is None else self._inferred.get(tensor.name)
        if stated is None:
            raise InputError(
                f"the type of tensor {name!r} is not known, so the model cannot be cut there", self._where,
                "its makers and users on one unit, or a model that states its type",
            )  # fmt: skip
        info = onnx.ValueInfoProto(name=name)
        info.type.CopyFrom(stated)
        return info

    @cached_property
    def _inferred(self) -> dict[str, Any]:
        """Types that the ``onnx`` package knows: sequences and options, which the operator graph does not tell apart."""
        found: dict[str, Any] = {}

        def collect(graph: Any) -> None:
            for info in (*graph.input, *graph.value_info, *graph.output):
                if info.type.WhichOneof("value"):
                    found.setdefault(info.name, info.type)
            for node in graph.node:
                for attribute in node.attribute:
                    if attribute.HasField("g"):
                        collect(attribute.g)

        collect(inferred_graph(self._model, self._where)[0])
        return found


def _length(dim: Any, named: bool) -> int | str | None:
    """A length for the ``onnx`` package: a number, a name, or None."""
    if getattr(dim, "is_Integer", isinstance(dim, int)):
        return int(dim)
    return str(dim) if named else None
