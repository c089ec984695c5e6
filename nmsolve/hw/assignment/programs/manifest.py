"""``manifest.json``: which pieces there are, what runs when and where, what is sent, and where tensors lie in memory.

Nothing that is read is believed before it is checked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from nmsolve.hw.assignment.machine import MOST_THREADS
from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.formats.onnx.parse import PROTOBUF_LIMIT, read_model
from nmsolve.model.identity import Identity
from nmsolve.model.ordering import circle, topological

Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Position = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Threads = Annotated[int, msgspec.Meta(ge=1, le=MOST_THREADS)]
Name = Annotated[str, msgspec.Meta(max_length=4096)]


class UnitEntry(msgspec.Struct):
    """A processor or one of its cores.

    Attributes
    ----------
    name : as in the assignment, e.g. ``npu/2``
    processor, core : the processor and the number of the core
    host : it steers the others
    threads : that stand for it when the programs are executed
    site : units of one site exchange tensors for nothing
    memory : in which its tensors lie
    """

    name: Name
    processor: Name
    core: Position = 0
    host: bool = False
    threads: Threads = 1
    site: Position = 0
    memory: Name = ""


class StackEntry(msgspec.Struct):
    """A tensor that control flow builds from one slice per turn: its type and the shape of a slice, 0 where not known."""

    dtype: Name
    shape: list[Number]


class TransferEntry(msgspec.Struct):
    """A tensor that is sent from the site of one unit to that of another, in a body once per turn.

    ``bytes`` is None where its shape is not known; ``predicted``: picoseconds of all turns, where the assignment knows.
    """

    tensor: Name
    origin: Name
    goal: Name
    bytes: Number | None = None
    predicted: Number | None = None


class BufferEntry(msgspec.Struct):
    """A tensor in a memory: from before piece ``first`` to after piece ``last`` it lies at ``offset`` (bytes)."""

    tensor: Name
    memory: Name
    first: Position
    last: Position
    bytes: Number
    offset: Number


class PieceEntry(msgspec.Struct, omit_defaults=True):
    """What one unit does in one go.

    Attributes
    ----------
    kind : ``graph``: a model to run; ``loop``, ``scan``, ``if``: control flow that the runner executes, as its bodies are on
        several units
    operators : which, by name; in bodies with the names of the operators around them. Those on which no output depends are in
        no piece
    inputs, outputs : tensors that it needs from before and makes for later
    shapes : tensors of other sites of which it needs the shape only, which is known where the tensor is not: its file has an
        input ``NAME@shape`` for each
    weights : stripped weights of the model that it uses, inputs of its file
    file, sha256 : of a ``graph``: the model's file in the folder of the manifest, and its hash
    operands, results : of control flow: its inputs and outputs in order, empty where one is left out
    bodies : the body of a loop or scan; of ``if`` what to do if the condition holds, then what to do if not
    settings : attributes of a scan
    stacked : what a loop or scan builds from slices, in order
    predicted : picoseconds that the assignment says it takes, all turns of loops around it included
    """

    name: Name
    kind: Literal["graph", "loop", "scan", "if"]
    unit: Name
    operators: list[Name]
    inputs: list[Name]
    outputs: list[Name]
    weights: list[Name] = []
    shapes: list[Name] = []
    file: Name = ""
    sha256: Name = ""
    operands: list[Name] = []
    results: list[Name] = []
    bodies: list[ProgramEntry] = []
    settings: dict[str, list[int]] = {}
    stacked: list[StackEntry] = []
    predicted: Number | None = None


class ProgramEntry(msgspec.Struct):
    """Pieces in an order in which they can run one after the other.

    Attributes
    ----------
    inputs, outputs : tensors from and to outside; a body may use tensors of the graphs around it, too
    transfers : each before its first use at the goal
    buffers : for execution in this order; a body's memory is a buffer of the program around it, named ``@`` and its piece
    """

    inputs: list[Name]
    outputs: list[Name]
    pieces: list[PieceEntry]
    transfers: list[TransferEntry]
    buffers: list[BufferEntry]


class PeakEntry(msgspec.Struct):
    """A memory: ``bytes`` of its plan, ``needed`` by any plan (what lives at once), ``unknown`` tensors without a size."""

    memory: Name
    bytes: Number
    needed: Number
    unknown: Number = 0


class Manifest(msgspec.Struct):
    """The content of ``manifest.json``.

    Attributes
    ----------
    format : of this file
    model : its file's name, and the SHA-256 of its content
    assignment : hash of the assignment that it was made from
    home, target : unit where inputs come from, and unit where outputs go to
    inputs, outputs : of the model, without stripped weights; ``program.outputs`` says which tensor each output is
    weights : the model's stripped weights: whoever runs it gives them a value
    bindings : values of symbols for which bytes were computed
    predicted : picoseconds end to end that the assignment says, by objective
    """

    format: Literal["nmsolve programs 1"]
    model: Identity
    assignment: Name
    home: Name
    target: Name
    inputs: list[Name]
    outputs: list[Name]
    weights: list[Name]
    units: list[UnitEntry]
    bindings: dict[str, int]
    program: ProgramEntry
    peaks: list[PeakEntry]
    predicted: dict[str, Number] = {}


#: Name of the manifest in its folder.
MANIFEST = "manifest.json"
#: Bytes of a manifest.
LARGEST = 256 * 2**20
#: Bodies inside bodies.
DEEPEST = 32
#: Control flow: how many bodies it has.
BODIES = {"graph": 0, "loop": 1, "scan": 1, "if": 2}


def read_manifest(folder: str | Path) -> Manifest:
    """Return the manifest of a folder; all of it fits together, and pieces can run in its order.

    Raises
    ------
    InputError : no manifest, not of its form, pieces that wait for each other or for what nothing makes, files outside the
        folder, units that do not exist
    """
    path = Path(folder) / MANIFEST
    manifest = decode_json(read_limited(path, LARGEST), Manifest, path)
    units = {u.name for u in manifest.units}
    if len(units) < len(manifest.units) or not {manifest.home, manifest.target} <= units:
        raise InputError("units of one name, or no unit of the name of home or target", f"{path}: $.units")
    if len(manifest.outputs) != len(manifest.program.outputs):
        raise InputError(
            f"{len(manifest.program.outputs)} tensors for {len(manifest.outputs)} outputs", f"{path}: $.program.outputs"
        )  # fmt: skip
    taken: set[str] = set()
    for piece in all_pieces(manifest.program):
        where = f"{path}: piece {piece.name!r}"
        if piece.name in taken:
            raise InputError("two pieces of this name", where, "names of their own")
        taken.add(piece.name)
        if piece.unit not in units:
            raise InputError(f"it is on unit {piece.unit!r}", where, "a unit of the manifest")
        _require_form(piece, where)
    _require_flow(manifest.program, set(manifest.weights), str(path))
    return manifest


def piece_file(folder: str | Path, piece: PieceEntry) -> bytes:
    """Return the content of a piece's file.

    Raises
    ------
    InputError : it is not in the folder, unreadable, not the one that the manifest was written with, no model, or one that
        reads other files
    """
    path = Path(folder) / piece.file
    if path.resolve().parent != Path(folder).resolve():
        raise InputError("a file outside the folder of the manifest", str(path), "a file in the folder")
    data = read_limited(path, PROTOBUF_LIMIT)
    if hashlib.sha256(data).hexdigest() != piece.sha256:
        raise InputError("the piece is damaged or of another run", str(path), f"SHA-256 {piece.sha256[:16]}")
    if any(tensor.data_location == 1 for tensor in _tensors(read_model(path).graph)):  # 1 is EXTERNAL
        raise InputError(
            "values of the piece are in another file", str(path), "all values in the piece itself"
        )
    return data


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield all constants of a ``GraphProto`` and of the bodies in it."""
    yield from graph.initializer
    yield from (part for sparse in graph.sparse_initializer for part in (sparse.values, sparse.indices))
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            yield from _tensors(attribute.g)


def all_pieces(program: ProgramEntry, depth: int = 0) -> Iterator[PieceEntry]:
    """Yield all pieces, those of bodies after the one that holds them.

    Raises
    ------
    InputError : bodies are nested too deeply
    """
    if depth > DEEPEST:
        raise InputError("bodies are nested too deeply", MANIFEST, f"at most {DEEPEST} levels")
    for piece in program.pieces:
        yield piece
        for body in piece.bodies:
            yield from all_pieces(body, depth + 1)


def _require_form(piece: PieceEntry, where: str) -> None:
    """Check what its kind says that a piece has."""
    if len(piece.bodies) != BODIES[piece.kind]:
        raise InputError(f"{piece.kind} with {len(piece.bodies)} bodies", where, str(BODIES[piece.kind]))
    if piece.kind == "graph":
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,200}\.onnx", piece.file):
            raise InputError(f"file {piece.file!r}", where, "the name of a .onnx file in the same folder")
        return
    made = {name for name in piece.results if name}
    if not made >= set(piece.outputs):
        raise InputError("outputs that are no results", where, "outputs among the results")
    if not {n for n in piece.operands if n} <= {*piece.inputs, *piece.weights}:
        raise InputError("operands that are no inputs", where, "operands among the inputs")
    operands, results, stacked = len(piece.operands), len(piece.results), len(piece.stacked)
    sizes = [(len(body.inputs), len(body.outputs)) for body in piece.bodies]
    if piece.kind == "if":
        fine = operands == 1 and bool(piece.operands[0]) and sizes == [(0, results)] * 2
    elif piece.kind == "loop":
        carried = operands - 2
        fine = carried >= 0 and all(piece.operands[2:]) and sizes == [(operands, 1 + carried + stacked)]
        fine = fine and results <= carried + stacked
        ranks = piece.settings.get("ranks", [0, 0])
        fine = fine and len(ranks) == 2 and set(ranks) <= {0, 1}
    else:
        scans = (piece.settings.get("num_scan_inputs") or [0])[0]
        states = operands - scans
        fine = 0 < scans <= operands and all(piece.operands) and sizes == [(operands, states + stacked)]
        fine = fine and results <= states + stacked
        for key, count in (("input", scans), ("output", stacked)):
            for of in ("axes", "directions"):
                fine = fine and len(piece.settings.get(f"scan_{key}_{of}") or [0] * count) == count
    if not fine:
        raise InputError(
            f"{piece.kind} of {operands} operands and {results} results whose bodies have {sizes} inputs and outputs",
            where, "numbers that fit",
        )  # fmt: skip


def _require_flow(program: ProgramEntry, around: set[str], where: str) -> None:
    """Check that every tensor is made, once, before it is used."""
    maker: dict[str, int] = {}
    for k, piece in enumerate(program.pieces):
        for name in piece.outputs:
            if name in maker or name in program.inputs:
                raise InputError(f"tensor {name!r} is made twice", where, "every tensor made once")
            maker[name] = k
    given = around | set(program.inputs)
    for piece in program.pieces:
        for name in (*piece.inputs, *piece.shapes, *piece.weights):
            if name not in maker and name not in given:
                raise InputError(
                    f"piece {piece.name!r} needs tensor {name!r}, which nothing makes", where, "all pieces of the model"
                )  # fmt: skip
    for name in program.outputs:
        if name not in maker and name not in given:
            raise InputError(f"nothing makes output {name!r}", where, "all pieces of the model")
    before = [{maker[n] for n in (*piece.inputs, *piece.shapes) if n in maker} for piece in program.pieces]
    order = topological(before)
    names = [piece.name for piece in program.pieces]
    if len(order) < len(names):
        ring = " -> ".join(repr(names[k]) for k in circle(before, order)[:8])
        raise InputError(
            f"pieces wait for each other in a circle: {ring}", where, "an order in which they can run"
        )
    for k, needed in enumerate(before):
        if max(needed, default=-1) >= k:
            raise InputError(
                f"piece {names[k]!r} comes before {names[max(needed)]!r}, whose tensors it uses", where,
                "pieces in an order in which they can run",
            )  # fmt: skip
    for piece in program.pieces:
        for body in piece.bodies:
            _require_flow(body, given | set(maker), where)
