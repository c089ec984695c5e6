"""Write the programs of an assignment: a folder with one ONNX model per piece and ``manifest.json``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nmsolve.hw.assignment.programs.manifest import MANIFEST, Manifest, PeakEntry, UnitEntry
from nmsolve.hw.assignment.programs.memory import plan_buffers
from nmsolve.hw.assignment.programs.split import Split, split_program
from nmsolve.hw.assignment.programs.subgraph import Types
from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, reason, write_atomic
from nmsolve.model.formats.onnx import load_onnx, require_package
from nmsolve.model.formats.onnx.build import STRIPPED
from nmsolve.model.formats.onnx.nodes import OperatorPath, all_nodes, scope_of
from nmsolve.model.formats.onnx.parse import PROTOBUF_LIMIT, read_model
from nmsolve.model.identity import Identity
from nmsolve.model.operators.graph import OperatorGraph


class Predicted(NamedTuple):
    """Picoseconds that an assignment says.

    Attributes
    ----------
    total : end to end, by objective
    operators : by path
    transfers : by path of tensor (operator, body, ..., its number), origin site and goal site
    """

    total: Mapping[str, int]
    operators: Mapping[OperatorPath, int]
    transfers: Mapping[tuple[OperatorPath, int, int], int]


def unit_entries(
    names: Sequence[str], hosts: Sequence[str] = (), threads: Mapping[str, int] | None = None
) -> list[UnitEntry]:
    """Return units with a memory and a site each; ``npu/2`` is core 2 of processor ``npu``.

    Parameters
    ----------
    hosts : which of them steer the others; the first unit if there are none
    threads : by unit, 1 if not given
    """
    out = []
    for k, name in enumerate(names):
        processor, slash, core = name.rpartition("/")
        numbered = bool(slash) and core.isdecimal()
        host = name in hosts if hosts else k == 0
        entry = UnitEntry(
            name, processor if numbered else name, int(core) if numbered else 0, host, (threads or {}).get(name, 1), k, name
        )  # fmt: skip
        out.append(entry)
    return out


def write_pieces(
    model_path: str | Path,
    placement: Mapping[OperatorPath, str],
    units: Sequence[UnitEntry],
    folder: str | Path,
    *,
    graph: OperatorGraph | None = None,
    home: str | None = None,
    target: str | None = None,
    standing: Collection[OperatorPath] = (),
    bindings: Mapping[str, int] | None = None,
    assignment: str | None = None,
    predicted: Predicted | None = None,
) -> Manifest:
    """Split a model by the unit of every operator, and write the pieces and the manifest.

    Parameters
    ----------
    placement : unit by path of operator; an operator inside control flow that is missing has the unit of that operator,
        another one ``home``
    units : all units, at least those of the placement
    graph : the model as :func:`nmsolve.model.formats.onnx.load_onnx` reads it; read here if not given
    home : unit where inputs come from; the first host if not given
    target : unit where outputs go to; ``home`` if not given
    standing : operators that only work on constants: every piece that uses what they make has a copy of them, as it has of
        ``Constant`` operators
    bindings : values of symbols, for sizes of tensors
    assignment : hash of what the placement comes from; that of the placement if not given
    predicted : what the assignment says that everything takes

    Raises
    ------
    InputError : no ONNX model, a unit or an operator that does not exist, a cut that is not possible, an unwritable folder
    """
    require_package(model_path)
    where, table = str(model_path), {u.name: u for u in units}
    if len(table) < len(units) or not units:
        raise InputError("no units, or two of one name", where, "units with names of their own")
    home = home or next((u.name for u in units if u.host), units[0].name)
    target = target or home
    graph = graph or load_onnx(model_path)
    model = read_model(model_path)
    scope = scope_of(model.graph, where)
    _require_placement(placement, {n.path for n in all_nodes(scope)}, {*table}, (home, target), where)
    directory = _empty_folder(Path(folder))
    said, stripped = predicted or Predicted({}, {}, {}), stripped_of(model)
    split = Split(
        model, where, Types(model, where, bindings or {}), frozenset(stripped), placement, table, home, target,
        frozenset(standing), _Store(directory), said.operators, said.transfers,
    )  # fmt: skip
    program = split_program(split, scope, graph)
    peaks = plan_buffers(program, (home, target), {u.name: u.memory for u in units}, split.sizes)
    manifest = Manifest(
        format="nmsolve programs 1",
        model=Identity(Path(model_path).name, file_hash(model_path)),
        assignment=assignment or placement_hash(placement),
        home=home,
        target=target,
        inputs=program.inputs,
        outputs=[o.name for o in model.graph.output],
        weights=stripped,
        units=list(units),
        bindings=dict(bindings or {}),
        program=program,
        peaks=_with_weights(peaks, split.kept),
        predicted=dict(said.total),
    )
    write_atomic(directory / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    return manifest


@dataclass(frozen=True)
class _Store:
    """Writes pieces into a folder. Not every piece waits for the disk: the manifest comes last and has their hashes."""

    folder: Path

    def __call__(self, name: str, part: Any) -> tuple[str, str]:
        """Write the ``ModelProto`` of a piece; return the name of its file and its hash."""
        path, data = self.folder / f"{name}.onnx", part.SerializeToString()
        try:
            path.write_bytes(data)
        except OSError as error:
            raise InputError(
                f"cannot write: {reason(error)}", str(path), "a writable folder with enough space"
            ) from None
        return path.name, hashlib.sha256(data).hexdigest()


def placement_hash(placement: Mapping[OperatorPath, str]) -> str:
    """Return the SHA-256 of a unit for every operator."""
    return hashlib.sha256(repr(sorted(placement.items())).encode()).hexdigest()


def file_hash(path: str | Path) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(read_limited(path, PROTOBUF_LIMIT)).hexdigest()


def stripped_of(model: Any) -> list[str]:
    """Return the inputs of a model that its metadata says were weights, in the order of the inputs."""
    names = {n for p in model.metadata_props if p.key == STRIPPED for n in p.value.split("|")}
    given = {t.name for t in model.graph.initializer}
    return [i.name for i in model.graph.input if i.name in names and i.name not in given]


def _with_weights(
    peaks: Mapping[str, PeakEntry], kept: Mapping[str, Mapping[str, int | None]]
) -> list[PeakEntry]:
    """Add constants, which are in memory all the time, to what each memory needs."""
    out = []
    for memory in sorted({*peaks, *kept}):
        peak = peaks.get(memory, PeakEntry(memory, 0, 0))
        sizes = kept.get(memory, {}).values()
        total = sum(size or 0 for size in sizes)
        out.append(
            PeakEntry(
                memory, peak.bytes + total, peak.needed + total, peak.unknown + sum(s is None for s in sizes)
            )
        )
    return out


def _require_placement(
    placement: Mapping[OperatorPath, str],
    paths: set[OperatorPath],
    units: set[str],
    ends: Sequence[str],
    where: str,
) -> None:
    for path, unit in placement.items():
        if path not in paths:
            raise InputError(f"the model has no operator {path}", where, "an assignment of this model")
        if unit not in units:
            raise InputError(f"operator {path} is on {unit!r}", where, "one of " + ", ".join(sorted(units)))
    for end in ends:
        if end not in units:
            raise InputError(f"inputs or outputs are at {end!r}", where, "one of " + ", ".join(sorted(units)))


def _empty_folder(folder: Path) -> Path:
    """Make the folder; an old manifest and the pieces that it names are removed.

    Raises
    ------
    InputError : it cannot be made
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        for old in folder.glob("[0-9][0-9][0-9][0-9][0-9]-*.onnx"):
            os.unlink(old)
    except OSError as error:
        raise InputError(f"cannot write: {reason(error)}", str(folder), "a writable folder") from None
    return folder
