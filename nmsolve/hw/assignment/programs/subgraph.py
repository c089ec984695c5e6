"""One piece as an ONNX model of its own, and the types of the tensors at which it is cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.build import STRIPPED
from nmsolve.model.formats.onnx.hints import inferred_graph, infos
from nmsolve.model.formats.onnx.nodes import Node, OperatorPath, Scope
from nmsolve.model.formats.onnx.parse import PROTOBUF_LIMIT, first_line
from nmsolve.model.formats.onnx.values import DTYPES
from nmsolve.model.operators.binding import partly_bound
from nmsolve.model.operators.classes import SHAPE_ONLY
from nmsolve.model.operators.graph import OperatorGraph, Tensor
from nmsolve.model.operators.sizes import bytes_of


@dataclass(frozen=True, eq=False)
class Constants:
    """What never changes in a graph and the graphs around it: pieces have copies of it, nothing is sent.

    Attributes
    ----------
    nodes : operators that stand, by the names of their outputs: ``Constant``s, and what is made of constants only
    tensors, sparse : initializers by name
    stripped : inputs of the model that were weights, by name: their ``ValueInfoProto``
    around : those of the graph around this one
    hidden : names that this graph defines otherwise
    """

    nodes: Mapping[str, Node]
    tensors: Mapping[str, Any]
    sparse: Mapping[str, Any]
    stripped: Mapping[str, Any]
    around: Constants | None = None
    hidden: frozenset[str] = frozenset()

    def find(self, name: str) -> Any:
        """Return the node, tensor, sparse tensor or ``ValueInfoProto``; None if the name is none of them."""
        for table in (self.nodes, self.tensors, self.sparse, self.stripped):
            if name in table:
                return table[name]
        return None if self.around is None or name in self.hidden else self.around.find(name)


def constants_of(
    scope: Scope, stripped: Collection[str], standing: Collection[OperatorPath], around: Constants | None
) -> Constants:
    """Return the constants of a graph.

    Parameters
    ----------
    stripped : names of inputs that were weights
    standing : operators that everyone who uses their results runs; one that uses anything but constants, or makes an output of
        the graph, is none
    """
    graph = scope.graph
    outputs = {o.name for o in graph.output}
    tensors = {t.name: t for t in graph.initializer}
    sparse = {s.values.name: s for s in graph.sparse_initializer}
    made = {name for n in scope.nodes for name in n.proto.output} | {i.name for i in graph.input}
    infos = {i.name: i for i in graph.input if i.name in stripped and i.name not in tensors}
    nodes: dict[str, Node] = {}
    found = Constants(nodes, tensors, sparse, infos, around, frozenset(made))
    for n in scope.nodes:
        if not (n.constant or n.path in standing) or outputs.intersection(n.proto.output):
            continue
        if all(found.find(name) is not None for name in n.needs):
            nodes.update((name, n) for name in n.proto.output if name)
    return found


@dataclass(eq=False)
class Subgraph:
    """A model in the making: nodes, and copies of the constants that they use."""

    source: Any
    name: str
    where: str
    nodes: list[Any] = field(default_factory=list)
    before: list[Any] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Any] = field(default_factory=dict)
    sparse: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, Any] = field(default_factory=dict)

    def use(self, name: str, constants: Constants) -> bool:
        """Copy the constant of this name; False if there is none."""
        import onnx

        found = constants.find(name)
        if found is None:
            return False
        if name in self.tensors or name in self.sparse or name in self.weights:
            return True
        if isinstance(found, Node):
            if not any(name in node.output for node in self.before):
                for needed in found.needs:
                    self.use(needed, constants)
                self.before.append(found.proto)
        elif isinstance(found, onnx.TensorProto):
            self.tensors[name] = found
        elif isinstance(found, onnx.SparseTensorProto):
            self.sparse[name] = found
        else:
            self.weights[name] = found
        return True

    def model(self, marks: Mapping[str, str]) -> Any:
        """Return the ``ModelProto``; ``marks``: metadata, to which the names of stripped weights are added.

        Raises
        ------
        InputError : values of a weight in another file are missing
        """
        import onnx

        out = onnx.ModelProto(ir_version=max(self.source.ir_version, 4), producer_name="nmsolve")
        out.opset_import.extend(self.source.opset_import)
        graph = out.graph
        graph.name = self.name
        graph.node.extend([*self.before, *self.nodes])
        graph.input.extend([*self.inputs.values(), *self.weights.values()])
        graph.output.extend(self.outputs.values())
        for tensor in self.tensors.values():
            self._add(graph, tensor)
        graph.sparse_initializer.extend(self.sparse.values())
        for key, value in {**marks, **({STRIPPED: "|".join(self.weights)} if self.weights else {})}.items():
            out.metadata_props.add(key=key, value=value)
        if out.ByteSize() > PROTOBUF_LIMIT:
            raise InputError(
                f"piece {self.name!r} has {out.ByteSize()} bytes, more than a protocol buffer can hold", self.where,
                "at most 2 GB per piece: more units, or a smaller model",
            )  # fmt: skip
        return out

    def _add(self, graph: Any, tensor: Any) -> None:
        """Add an initializer, with its values where they are in another file: the piece stands in another folder."""
        import onnx
        from onnx import external_data_helper

        copy = graph.initializer.add()
        copy.CopyFrom(tensor)
        if copy.data_location != onnx.TensorProto.EXTERNAL:
            return
        try:
            external_data_helper.load_external_data_for_tensor(copy, str(Path(self.where).parent))
        except Exception as error:  # noqa: BLE001  # the package raises what it likes, its own checker errors among them
            raise InputError(
                f"values of weight {tensor.name!r} cannot be read: {first_line(error)}", self.where,
                "its external data beside it",
            ) from None  # fmt: skip
        copy.data_location = onnx.TensorProto.DEFAULT
        copy.ClearField("external_data")


def shape_name(tensor: str) -> str:
    """Return the name of the input that stands for a tensor's shape."""
    return f"{tensor}@shape"


def looks_at_shape(node: Any) -> bool:
    """Return whether a ``NodeProto`` is one of ONNX's own that read no element of what they get."""
    return node.op_type in SHAPE_ONLY and node.domain in ("", "ai.onnx")


def shape_input(tensor: str) -> Any:
    """Return the ``ValueInfoProto`` of the shape of a tensor."""
    import onnx

    return onnx.helper.make_tensor_value_info(shape_name(tensor), onnx.TensorProto.INT64, [None])


def shape_nodes(node: Any) -> list[Any]:
    """Return nodes that compute from the shape what ``Shape`` (also a part of it) or ``Size`` computes from the tensor."""
    import onnx

    given, out = shape_name(node.input[0]), node.output[0]
    if node.op_type == "Size":
        return [onnx.helper.make_node("ReduceProd", [given], [out], name=node.name, keepdims=0)]
    part = {a.name: int(a.i) for a in node.attribute}
    if not part:
        return [onnx.helper.make_node("Identity", [given], [out], name=node.name)]
    ends = {"start": part.get("start", 0), "end": part.get("end", 2**63 - 1)}
    nodes = [
        onnx.helper.make_node("Constant", [], [f"{out}@{name}"], value_ints=[value])
        for name, value in ends.items()
    ]
    return [
        *nodes,
        onnx.helper.make_node("Slice", [given, f"{out}@start", f"{out}@end"], [out], name=node.name),
    ]


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
        graph = inferred_graph(self._model, self._where)[0]
        return {i.name: i.type for i in (*graph.input, *infos(graph)) if i.type.WhichOneof("value")}


def _length(dim: Any, named: bool) -> int | str | None:
    """A length for the ``onnx`` package: a number, a name, or None."""
    if getattr(dim, "is_Integer", isinstance(dim, int)):
        return int(dim)
    return str(dim) if named else None
