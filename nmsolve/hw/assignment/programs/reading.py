"""Read ``manifest.json`` back: nothing in it is believed before it is checked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmsolve.hw.assignment.programs.manifest import Manifest, PieceEntry, ProgramEntry
from nmsolve.hw.assignment.programs.write import MANIFEST
from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.formats.onnx.parse import PROTOBUF_LIMIT, read_model
from nmsolve.model.ordering import circle, topological

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
