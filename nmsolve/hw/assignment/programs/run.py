"""Run the programs of a folder and compare them with the model that they were made from."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.hw.assignment.programs.execute import Clock, Execution
from nmsolve.hw.assignment.programs.manifest import Manifest, all_pieces, piece_file, read_manifest
from nmsolve.hw.assignment.programs.write import file_hash, stripped_of
from nmsolve.hw.assignment.random_values import (
    Roles,
    cases_of,
    counts_turns,
    input_shape_table,
    random_input,
    random_weight,
)
from nmsolve.hw.assignment.runtime import (
    LEVELS,
    require_runtime,
    run_session,
    session_of,
    to_numpy,
    to_runtime,
)
from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited
from nmsolve.model.formats.onnx.parse import PROTOBUF_LIMIT, read_model
from nmsolve.model.host import cores
from nmsolve.model.types import AnyArray


@dataclass(frozen=True)
class OutputCheck:
    """One output.

    Attributes
    ----------
    difference : the largest relative one (:func:`largest_difference`)
    limit : the largest that the type may have
    finite : whether all values of the model's own output are numbers; if not, the comparison says less
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    difference: float
    limit: float
    finite: bool

    @property
    def fine(self) -> bool:
        """Whether the output counts as equal."""
        return self.difference <= self.limit


@dataclass(frozen=True)
class Case:
    """One run with one binding of the symbols.

    Attributes
    ----------
    bindings : values of symbols
    outputs : compared with the whole model
    seconds, whole_seconds : end to end, of the split program and of the model in one session; the least of all repeats
    pieces : seconds of every piece, all turns of loops around it included; those of the repeat that took least
    transfers : seconds of all copies of that repeat
    """

    bindings: Mapping[str, int]
    outputs: tuple[OutputCheck, ...]
    seconds: float
    whole_seconds: float
    pieces: Mapping[str, float]
    transfers: float

    @property
    def difference(self) -> float:
        """The largest relative difference of all outputs."""
        return max((check.difference for check in self.outputs), default=0.0)


@dataclass(frozen=True)
class RunReport:
    """What came of the programs.

    Attributes
    ----------
    cases : one per binding of the symbols
    level : graph optimisation of ONNX Runtime, the same in the pieces and in the whole model
    parallel : whether units ran at the same time
    predicted : seconds of pieces that the assignment says, by name
    predicted_total : seconds end to end that it says, by objective
    """

    cases: tuple[Case, ...]
    level: str
    parallel: bool
    predicted: Mapping[str, float]
    predicted_total: Mapping[str, float]

    @property
    def equal(self) -> bool:
        """Whether every output of every case counts as equal."""
        return all(check.fine for case in self.cases for check in case.outputs)

    @property
    def difference(self) -> float:
        """The largest relative difference of all outputs of all cases."""
        return max((case.difference for case in self.cases), default=0.0)


def run_programs(
    folder: str | Path,
    model_path: str | Path,
    *,
    bindings: Mapping[str, int] | Sequence[Mapping[str, int]] | None = None,
    seed: int = 0,
    level: str = "basic",
    parallel: bool = True,
    repeats: int = 1,
) -> RunReport:
    """Execute the pieces of a folder on random inputs, and compare every output with the model's.

    Parameters
    ----------
    bindings : values of symbols, of which three cases are made (:func:`cases_of`), or the cases themselves
    seed : of inputs and of the values that stripped weights get
    level : graph optimisation of ONNX Runtime, a name of :data:`LEVELS`. It is the same for both sides. With ``off`` both run
        the same kernels on the same numbers; the higher it is, the more the whole model fuses across cuts, and rounds
        differently
    parallel : units work at the same time, each in a thread
    repeats : how often each case runs; times are those of the fastest

    Raises
    ------
    InputError : the manifest is wrong or of another model, ONNX Runtime is missing or fails
    """
    require_runtime(model_path)
    if level not in LEVELS:
        raise InputError(f"unknown graph optimisation {level!r}", "level", "one of " + ", ".join(LEVELS))
    manifest = read_manifest(folder)
    _require_model(manifest, model_path)
    model = read_model(model_path)
    stripped = stripped_of(model)
    inputs = _inputs(manifest, model, stripped, str(model_path))
    roles, infos = Roles(model.graph), {i.name: i for i in model.graph.input}
    weights = {
        n: to_runtime(random_weight(infos[n], roles, seed), infos[n].type.tensor_type.elem_type)
        for n in stripped
    }
    threads = {u.name: min(u.threads, cores()) for u in manifest.units}
    whole = session_of(read_limited(model_path, PROTOBUF_LIMIT), model_path, max(threads.values()), level)
    sessions = {
        piece.name: session_of(
            piece_file(folder, piece), Path(folder) / piece.file, threads[piece.unit], level
        )
        for piece in all_pieces(manifest.program)
        if piece.kind == "graph"
    }
    shapes = input_shape_table(model, inputs)
    if isinstance(bindings, Sequence):
        cases = [dict(b) for b in bindings]
    else:
        counts = [n for n in inputs if counts_turns(list(roles.uses(n)))]
        cases = cases_of(shapes, counts, bindings)
    execution = Execution(manifest, sessions, weights)
    found: list[Case] = []
    for number, case in enumerate(cases):
        feeds = {
            n: to_runtime(
                random_input(infos[n], shapes.get(n, ()), case, roles, seed + number),
                infos[n].type.tensor_type.elem_type,
            )
            for n in inputs
        }
        found.append(_case(manifest, execution, whole, case, feeds, {**feeds, **weights}, parallel, repeats))
    return RunReport(
        tuple(found), level, parallel,
        {p.name: p.predicted / 1e12 for p in all_pieces(manifest.program) if p.predicted is not None},
        {name: value / 1e12 for name, value in manifest.predicted.items()},
    )  # fmt: skip


def _case(
    manifest: Manifest, execution: Execution, whole: Any, case: Mapping[str, int], feeds: Mapping[str, Any],
    all_feeds: Mapping[str, Any], parallel: bool, repeats: int,
) -> Case:  # fmt: skip
    """Run one case: first the model itself, so that bindings that it does not take are told as such."""
    told = ", ".join(f"{name}={value}" for name, value in case.items())
    where = f"{manifest.model.name} with {told}" if told else manifest.model.name
    known = {i.name for i in whole.get_inputs()}
    given = {name: value for name, value in all_feeds.items() if name in known}
    whole_seconds, seconds, clock = math.inf, math.inf, Clock()
    wanted: list[Any] = []
    found: list[Any] = []
    for _ in range(max(1, repeats)):
        start = time.perf_counter()
        wanted = run_session(whole, manifest.outputs, given, where)
        whole_seconds = min(whole_seconds, time.perf_counter() - start)
        found, needed, measured = execution.run(feeds, parallel)
        if needed < seconds:
            seconds, clock = needed, measured
    checks = []
    for name, a, b in zip(manifest.outputs, found, wanted, strict=True):
        own, right = to_numpy(a, name), to_numpy(b, name)
        dtype, difference = right.dtype.name, largest_difference(own, right)
        checks.append(OutputCheck(name, dtype, right.shape, difference, limit_of(dtype), all_finite(right)))
    return Case(
        dict(case), tuple(checks), seconds, whole_seconds, dict(clock.pieces), float(sum(clock.transfers.values()))
    )  # fmt: skip


def _require_model(manifest: Manifest, model_path: str | Path) -> None:
    found = file_hash(model_path)
    if found != manifest.model.hash:
        raise InputError(
            f"the programs are of another model, {manifest.model.name!r} with hash {manifest.model.hash[:16]}",
            str(model_path), f"hash {found[:16]}: the model that they were made from",
        )  # fmt: skip


def _inputs(manifest: Manifest, model: Any, stripped: Sequence[str], where: str) -> list[str]:
    """Return the model's inputs; the manifest's must be the same."""
    given = {t.name for t in model.graph.initializer} | {
        s.values.name for s in model.graph.sparse_initializer
    }
    inputs = [i.name for i in model.graph.input if i.name not in given and i.name not in stripped]
    outputs = [o.name for o in model.graph.output]
    if [manifest.inputs, manifest.program.inputs, manifest.outputs, manifest.weights] != [
        inputs, inputs, outputs, list(stripped)
    ]:  # fmt: skip
        raise InputError(
            "inputs, outputs or weights that are not the model's", where, "programs of this model"
        )
    return inputs


#: Largest difference that is taken for rounding, by type; everything else must be equal.
LIMITS = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-4}


def largest_difference(found: AnyArray, wanted: AnyArray) -> float:
    """Return the largest relative difference of two tensors, inf if their types or shapes differ.

    |found - wanted| / max(|wanted|, mean |wanted|): an element much smaller than the tensor's mean is compared with that mean,
    as it is the rest of a cancellation. Infinities and "not a number" must be at the same places. What is no float is equal
    (0) or not (inf).
    """
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if not wanted.size:
        return 0.0
    if wanted.dtype.kind not in "fV" or wanted.dtype.name not in LIMITS:
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    fine = np.isfinite(b)
    if (np.isfinite(a) != fine).any() or not np.array_equal(a[~fine], b[~fine], equal_nan=True):
        return float("inf")
    if not fine.any():
        return 0.0
    size = np.abs(b[fine])
    scale = np.maximum(size, size.mean())
    gap = np.abs(a[fine] - b[fine])
    with np.errstate(divide="ignore"):  # anything but 0 is infinitely far from a tensor of zeros
        return float((gap[gap > 0] / scale[gap > 0]).max(initial=0.0))


def all_finite(values: AnyArray) -> bool:
    """Return whether there is no infinity and no "not a number"."""
    if values.dtype.kind not in "fV" or values.dtype.name not in LIMITS:
        return True
    return bool(np.isfinite(values.astype(np.float64)).all())


def limit_of(dtype: str) -> float:
    """Return the largest difference that a type may have."""
    return LIMITS.get(dtype, 0.0)
