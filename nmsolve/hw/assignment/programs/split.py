"""From a model and a unit for every operator to pieces: which run as models of their own, and what goes between them.

Operators are taken in runs of one unit each, as few and as long as a greedy choice makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nmsolve.hw.assignment.programs.manifest import (
    PieceEntry,
    ProgramEntry,
    StackEntry,
    TransferEntry,
    UnitEntry,
)
from nmsolve.hw.assignment.programs.subgraph import (
    Constants,
    Subgraph,
    Types,
    constants_of,
    looks_at_shape,
    shape_input,
    shape_nodes,
)
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.nodes import Node, OperatorPath, Scope
from nmsolve.model.operators.graph import OperatorGraph, Tensor


def runs_of(before: Sequence[Collection[int]], unit: Sequence[int]) -> list[list[int]]:
    """Return numbers 0..n - 1 in runs: one behind the other they are a topological order, and every run is of one unit.

    A unit goes on as long as it has something that can run. Then the unit follows that could run the most without the
    others. As a run needs nothing of later runs, the graph of runs has no circle.

    Parameters
    ----------
    before : (n) what must come before each number; the first that is possible is taken, by rising number
    unit : (n) the unit of each; a negative one stands alone in its run
    """
    after: list[list[int]] = [[] for _ in before]
    for k, needed in enumerate(before):
        for m in needed:
            after[m].append(k)
    missing = [len(needed) for needed in before]
    ready = {k for k, count in enumerate(missing) if not count}
    out: list[list[int]] = []
    while ready:
        own = {j: sorted(k for k in ready if unit[k] == j) for j in sorted({unit[k] for k in ready})}
        choices = {j: _drained(ks if j >= 0 else ks[:1], j, unit, after, missing) for j, ks in own.items()}
        # control flow, which stands alone, waits until nothing else can run: more is in reach before it then
        best = max(choices, key=lambda j: (j >= 0, len(choices[j]), -j))
        run = choices[best]
        ready.difference_update(run)
        for k in run:
            for m in after[k]:
                missing[m] -= 1
                if not missing[m]:
                    ready.add(m)
        ready.difference_update(run)
        out.append(run)
    return out


def _drained(
    start: Sequence[int], own: int, unit: Sequence[int], after: Sequence[Sequence[int]], missing: list[int]
) -> list[int]:
    """Return what one unit can run, beginning with what is ready, before another must go on; ``missing`` is left as it was."""
    found = list(start)
    if own < 0:
        return found
    for k in found:  # grows while it is read
        for m in after[k]:
            missing[m] -= 1
            if not missing[m] and unit[m] == own:
                found.append(m)
    for k in found:
        for m in after[k]:
            missing[m] += 1
    return found


#: Control flow that the runner can execute itself, and its kind in the manifest.
CONTROL: dict[str, Literal["loop", "scan", "if"]] = {"Loop": "loop", "Scan": "scan", "If": "if"}


@dataclass(frozen=True, eq=False)
class Split:
    """What does not change while a model is split.

    Attributes
    ----------
    model : the ``ModelProto``
    where : its file, for errors
    types : of its tensors
    stripped : names of inputs that were weights
    unit : unit of every operator by path; one that is missing has that of the control operator around it, else ``home``
    units : all units by name, in order
    home, target : where inputs come from, where outputs go to
    standing : operators that work on constants only: everyone who uses their results runs them
    store : writes a piece's model, returns file name and hash
    predicted : picoseconds of operators by path, and of transfers by path of tensor, origin and goal site
    names : of the pieces so far
    sizes : bytes of the tensors between the pieces of a program, by the program's ``id``
    kept : by memory, bytes of the constants that pieces there use
    """

    model: Any
    where: str
    types: Types
    stripped: frozenset[str]
    unit: Mapping[OperatorPath, str]
    units: Mapping[str, UnitEntry]
    home: str
    target: str
    standing: frozenset[OperatorPath]
    store: Callable[[str, Any], tuple[str, str]]
    predicted: Mapping[OperatorPath, int] = field(default_factory=dict)
    predicted_transfers: Mapping[tuple[OperatorPath, int, int], int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    sizes: dict[int, dict[str, int | None]] = field(default_factory=dict)
    kept: dict[str, dict[str, int | None]] = field(default_factory=dict)

    def piece_name(self, unit: str) -> str:
        """Return a name for the next piece, good for a file."""
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in unit)[:40]
        self.names.append(f"{len(self.names):05d}-{safe}")
        return self.names[-1]


@dataclass(eq=False)
class _Frame:
    """One graph while it is split, and the graphs around it.

    Attributes
    ----------
    origins : units that may hold a tensor of this graph before a piece needs it; several for what goes round in a loop
    extra : copies of constants that control flow or an output needs as values, by the name of the constant
    copied : the other way round
    sent : transfers of this graph's tensors, by tensor, origin and goal site
    """

    split: Split
    scope: Scope
    graph: OperatorGraph
    constants: Constants
    unit: str
    around: _Frame | None
    path: OperatorPath
    origins: dict[str, tuple[str, ...]]
    extra: dict[str, str] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    sent: dict[tuple[str, str, int], TransferEntry] = field(default_factory=dict)

    def tensor(self, name: str) -> Tensor | None:
        """Return what the operator graph knows of a name."""
        name = self.copied.get(name, name)
        found = self.split.types.tensor(self.graph, name)
        if found is None and self.around is not None:
            return self.around.tensor(name)
        return found

    def number(self, name: str) -> OperatorPath:
        """Return the path of a tensor of this graph."""
        return (*self.path, self.split.types.number(self.graph, self.copied.get(name, name)))

    def owner(self, name: str) -> _Frame:
        """Return the graph, this one or one around it, whose value a name is."""
        if name in self.origins or self.around is None:
            return self
        return self.around.owner(name)

    def origins_of(self, name: str) -> tuple[str, ...]:
        """Return the units that may hold a value."""
        return self.owner(name).origins.get(name, (self.split.home,))

    def bring(self, names: Sequence[str], goal: str) -> None:
        """Note the transfers that something on unit ``goal`` needs; each belongs to the graph of its tensor."""
        units = self.split.units
        for name in names:
            owner = self.owner(name)
            for origin in self.origins_of(name):
                sites = units[origin].site, units[goal].site
                key = (name, origin, sites[1])
                if sites[0] == sites[1] or key in owner.sent:
                    continue
                owner.sent[key] = TransferEntry(
                    name, origin, goal, self.split.types.bytes(owner.tensor(name)),
                    self.split.predicted_transfers.get((owner.number(name), *sites)),
                )  # fmt: skip


def split_program(split: Split, scope: Scope, graph: OperatorGraph) -> ProgramEntry:
    """Split the model's own graph; pieces are stored as they are made.

    Raises
    ------
    InputError : a tensor at a cut has no known type, or control flow other than ``Loop``, ``Scan`` and ``If`` would be cut
    """
    inputs = [i.name for i in scope.graph.input]
    given = {t.name for t in scope.graph.initializer} | {
        s.values.name for s in scope.graph.sparse_initializer
    }
    own = [n for n in inputs if n not in given and n not in split.stripped]
    origins: dict[str, tuple[str, ...]] = dict.fromkeys(own, (split.home,))
    frame = _Frame(
        split,
        scope,
        graph,
        constants_of(scope, split.stripped, split.standing, None),
        split.home,
        None,
        (),
        origins,
    )
    program = _program(frame, own)
    frame.bring(program.outputs, split.target)
    program.transfers = list(frame.sent.values())
    return program


def units_of(split: Split, node: Node, around: str) -> set[str]:
    """Return the units of an operator and of all operators in its bodies."""
    own = split.unit.get(node.path, around)
    found = {own}
    for body in node.bodies:
        for inner in body.nodes:
            if not inner.constant and inner.path not in split.standing:
                found |= units_of(split, inner, own)
    return found


def _program(frame: _Frame, inputs: list[str]) -> ProgramEntry:
    """Return the pieces of one graph; its transfers are in ``frame.sent`` and buffers are added later."""
    split, scope = frame.split, frame.scope
    outputs = [o.name for o in scope.graph.output]
    standing = {id(n) for n in frame.constants.nodes.values()}
    nodes = [n for n in scope.nodes if id(n) not in standing]
    home = {id(n): split.unit.get(n.path, frame.unit) for n in nodes}
    mixed = {id(n) for n in nodes if len(units_of(split, n, frame.unit)) > 1}
    copies: list[Node] = []
    for n in nodes:
        if id(n) in mixed:
            copies += _copies(frame, [k for k in n.proto.input if k], home[id(n)], home)
    copies += _copies(frame, outputs, frame.unit, home)
    needs = {
        id(n): [*n.needs, *(frame.extra[k] for k in n.proto.input if k in frame.extra and id(n) in mixed)]
        for n in (*copies, *nodes)
    }
    nodes = _needed([*copies, *nodes], needs, [frame.extra.get(o, o) for o in outputs])
    maker = {name: k for k, n in enumerate(nodes) for name in n.proto.output if name}
    before = [{maker[name] for name in needs[id(n)] if name in maker} for n in nodes]
    number = {name: j for j, name in enumerate(split.units)}
    runs = runs_of(before, [-1 if id(n) in mixed else number[home[id(n)]] for n in nodes])
    users: dict[str, set[int]] = {}
    for r, run in enumerate(runs):
        for k in run:
            for name in needs[id(nodes[k])]:
                users.setdefault(name, set()).add(r)
        for name in (name for k in run for name in nodes[k].proto.output if name):
            frame.origins[name] = (home[id(nodes[run[0]])],)
    wanted = {frame.extra.get(o, o) for o in outputs}
    pieces = []
    for r, run in enumerate(runs):
        own = [nodes[k] for k in run]
        made = [name for n in own for name in n.proto.output if name]
        later = [name for name in made if name in wanted or users.get(name, set()) - {r}]
        make = _control if id(own[0]) in mixed else _graph
        piece = make(frame, own, home[id(own[0])], later)
        known = [split.predicted[n.path] for n in own if n.path in split.predicted]
        piece.predicted = sum(known) if known and piece.kind == "graph" else piece.predicted
        pieces.append(piece)
    program = ProgramEntry(inputs, [frame.extra.get(o, o) for o in outputs], pieces, [], [])
    between = [*inputs, *(name for piece in pieces for name in piece.outputs)]
    split.sizes[id(program)] = {name: split.types.bytes(frame.tensor(name)) for name in between}
    return program


def _needed(nodes: Sequence[Node], needs: Mapping[int, Sequence[str]], outputs: Sequence[str]) -> list[Node]:
    """Return the nodes, given in topological order, on which an output depends; a model may hold others."""
    wanted, out = set(outputs), []
    for node in reversed(nodes):
        if wanted.intersection(node.proto.output):
            wanted.update(needs[id(node)])
            out.append(node)
    return out[::-1]


def _copies(frame: _Frame, names: Sequence[str], unit: str, home: dict[int, str]) -> list[Node]:
    """Return operators that make values of those names that are constants, for who needs a value and no model."""
    import onnx

    out = []
    for name in names:
        if name in frame.extra or name in frame.origins or frame.constants.find(name) is None:
            continue
        if isinstance(frame.constants.find(name), onnx.ValueInfoProto):
            continue  # a stripped weight: the runner has it by name
        frame.extra[name] = copy = f"{name}/value"
        frame.copied[copy] = name
        proto = onnx.helper.make_node("Identity", [name], [copy])
        node = Node((), f"@copy {name}", f"@copy {name}", proto, (name,), ())
        home[id(node)] = unit
        out.append(node)
    return out


def _graph(frame: _Frame, nodes: list[Node], unit: str, later: list[str]) -> PieceEntry:
    """Make a model of operators of one unit."""
    split, entry = frame.split, frame.split.units[unit]
    name = split.piece_name(unit)
    part = Subgraph(split.model, name, split.where)
    made = {output for n in nodes for output in n.proto.output}
    outside = [k for k in dict.fromkeys(k for n in nodes for k in n.needs) if k not in made]
    shapes = []
    for needed in outside:
        if part.use(needed, frame.constants):
            kept = split.kept.setdefault(entry.memory, {})
            kept[needed] = split.types.bytes(frame.tensor(needed))
        elif _only_shape(frame, needed, nodes, unit):
            shapes.append(needed)
            part.inputs[needed] = shape_input(needed)
        else:
            part.inputs[needed] = split.types.info(frame.tensor(needed), needed, frame.around is None)
    for n in nodes:
        part.nodes += shape_nodes(n.proto) if n.proto.input and n.proto.input[0] in shapes else [n.proto]
    for output in later:
        part.outputs[output] = split.types.info(frame.tensor(output), output, frame.around is None)
    inputs = [k for k in part.inputs if k not in shapes]
    frame.bring(inputs, unit)
    marks = {
        "nmsolve.piece": name, "nmsolve.unit": unit, "nmsolve.processor": entry.processor,
        "nmsolve.core": str(entry.core),
    }  # fmt: skip
    file, digest = split.store(name, part.model(marks))
    operators = [n.title for n in nodes if n.path]
    return PieceEntry(name, "graph", unit, operators, inputs, later, list(part.weights), shapes, file, digest)


def _only_shape(frame: _Frame, name: str, nodes: Sequence[Node], unit: str) -> bool:
    """Return whether a tensor of another site is used by operators that look at its shape only."""
    sites = {frame.split.units[u].site for u in frame.origins_of(name)}
    if sites == {frame.split.units[unit].site}:
        return False
    return all(looks_at_shape(n.proto) for n in nodes if name in n.needs)


def _control(frame: _Frame, nodes: list[Node], unit: str, later: list[str]) -> PieceEntry:
    """Split the bodies of control flow, which the runner will execute."""
    (node,) = nodes
    split, proto = frame.split, node.proto
    if proto.op_type not in CONTROL or proto.domain not in ("", "ai.onnx"):
        raise InputError(
            f"the bodies of operator {node.title!r} ({proto.op_type}) are on several units", split.where,
            "one unit for all of it: only If, Loop and Scan can be cut",
        )  # fmt: skip
    name = split.piece_name(unit)
    operator = _operator(frame.graph, node)
    operands = [frame.extra.get(k, k) if k else "" for k in proto.input]
    bodies = [_body(frame, node, b, operator.bodies[b], unit, operands) for b in range(len(node.bodies))]
    settings = {
        a.name: list(a.ints) if a.ints else [int(a.i)] for a in proto.attribute if not a.HasField("g")
    }
    if proto.op_type == "Loop":  # the body says whether number and condition are numbers or vectors of one
        settings["ranks"] = [len(i.type.tensor_type.shape.dim) for i in list(node.bodies[0].graph.input)[:2]]
    values = [k for k in operands if k and frame.constants.find(k) is None]
    weights = [k for k in operands if k and k not in values]
    captured = [k for k in node.needs if k not in proto.input and frame.constants.find(k) is None]
    inputs = list(dict.fromkeys([*values, *captured]))
    frame.bring(values, unit)
    stacked = [_stack(frame.split, operator.bodies[0], o) for o in _stacked(node, settings)]
    return PieceEntry(
        name, CONTROL[proto.op_type], unit, [node.title], inputs, later, weights, operands=operands,
        results=list(proto.output), bodies=bodies, settings=settings, stacked=stacked,
        predicted=split.predicted.get(node.path),
    )  # fmt: skip


def _body(
    frame: _Frame, node: Node, number: int, graph: OperatorGraph, unit: str, operands: Sequence[str]
) -> ProgramEntry:
    """Split a body; what goes round in a loop may come from outside or from the turn before."""
    scope = node.bodies[number]
    inputs = [i.name for i in scope.graph.input]
    around = [frame.origins_of(k) if k else (unit,) for k in operands]
    first: list[tuple[str, ...]] = [(unit,)] * len(inputs)
    if node.proto.op_type == "Loop":  # number of the turn and condition, then what goes round
        first = [(unit,), (unit,), *around[2:]]
    elif node.proto.op_type == "Scan":
        first = list(around[: len(inputs)])
    constants = constants_of(scope, (), frame.split.standing, frame.constants)
    origins = dict(zip(inputs, first, strict=False))
    path = (*node.path, number)
    inner = _Frame(frame.split, scope, graph, constants, unit, frame, path, origins)
    back = _carried(node, inputs, [o.name for o in scope.graph.output])
    homes = {
        o: frame.split.unit.get(n.path, unit) for n in scope.nodes for o in n.proto.output
    }  # who makes what goes round
    for goes, comes in back:
        inner.origins[goes] = tuple(dict.fromkeys([*inner.origins[goes], homes.get(comes, unit)]))
    program = _program(inner, inputs)
    if node.proto.op_type == "Loop":
        inner.bring(program.outputs[:1], unit)  # the condition
    program.transfers = list(inner.sent.values())
    return program


def _carried(node: Node, inputs: Sequence[str], outputs: Sequence[str]) -> list[tuple[str, str]]:
    """Return what goes round: the body's input and the output that it is in the next turn."""
    if node.proto.op_type == "Loop":
        return list(zip(inputs[2:], outputs[1:], strict=False))
    if node.proto.op_type == "Scan":
        states = len(inputs) - _scans(node)
        return list(zip(inputs[:states], outputs[:states], strict=False))
    return []


def _scans(node: Node) -> int:
    return next((int(a.i) for a in node.proto.attribute if a.name == "num_scan_inputs"), 0)


def _stacked(node: Node, settings: Mapping[str, list[int]]) -> list[str]:
    """Return names of the body's outputs that are stacked."""
    if node.proto.op_type == "If":
        return []
    body = node.bodies[0].graph
    states = len(body.input) - (1 if node.proto.op_type == "Loop" else _scans(node))
    return [o.name for o in body.output][states:]


def _stack(split: Split, graph: OperatorGraph, name: str) -> StackEntry:
    tensor = split.types.tensor(graph, name)
    if tensor is None or not tensor.dtype:
        raise InputError(f"the type of tensor {name!r}, which a loop stacks, is not known", split.where)
    shape = tuple(tensor.shape or ())
    return StackEntry(
        tensor.dtype, [int(d) if getattr(d, "is_Integer", isinstance(d, int)) else 0 for d in shape]
    )


def _operator(graph: OperatorGraph, node: Node) -> Any:
    """Return the operator of a node in its graph."""
    return graph.operators[node.path[-1]]
