"""Rows of the function library (M3.8): what makes two operations the same, what is known of one, what a row may say, and
times of sizes between those that were measured.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.types import FloatArray

#: A small constant input (axes, a new shape) is a setting; one with more elements is data.
MOST_VALUES = 16


class Key(NamedTuple):
    """An operation.

    Attributes
    ----------
    kind : its type, ``domain::type`` outside the standard
    attributes : JSON object of its settings, constant inputs among them (``in1``), keys sorted
    types : types of elements of inputs and results: ``float32,int64>float32``
    sizes : JSON list of the inputs' shapes, null for one that is left out
    """

    kind: str
    attributes: str
    types: str
    sizes: str


def key_of(graph: OperatorGraph, operator: Operator, bindings: Mapping[str, int]) -> Key:
    """Return the key of an operator.

    Raises
    ------
    InputError : a shape that is not known
    """
    where = f"{graph.name}: {operator.kind} {operator.name!r}"
    settings: dict[str, Any] = {name: _plain(value) for name, value in operator.attributes.items()}
    sizes: list[list[int] | None] = []
    for place, k in enumerate(operator.inputs):
        if k < 0:
            sizes.append(None)
            continue
        tensor = graph.tensors[k]
        sizes.append([bind(d, bindings, f"the shape of {tensor.name!r}", where) for d in _shape(tensor)])
        value = small_constant(tensor)
        if value is not None:
            settings[f"in{place}"] = value
    inputs = [graph.tensors[k].dtype if k >= 0 else "" for k in operator.inputs]
    results = [graph.tensors[k].dtype if k >= 0 else "" for k in operator.outputs]
    return Key(
        kind=f"{operator.domain}::{operator.kind}"
        if operator.domain not in ("", "ai.onnx")
        else operator.kind,
        attributes=json.dumps(settings, sort_keys=True, separators=(",", ":")),
        types=",".join(inputs) + ">" + ",".join(results),
        sizes=json.dumps(sizes, separators=(",", ":")),
    )


def family_of(key: Key) -> str:
    """Return the operations that one regression may hold: those of a type; convolutions by their kind.

    A depthwise convolution (each channel by itself), one with a kernel of a single point, and any other do a MAC at very
    different rates.
    """
    if key.kind not in ("Conv", "ConvInteger", "QLinearConv"):
        return key.kind
    settings = json.loads(key.attributes)
    if settings.get("group", 1) not in (1, None):
        return f"{key.kind} by groups"
    kernel = settings.get("kernel_shape")
    return (
        f"{key.kind} at points" if isinstance(kernel, list) and set(map(repr, kernel)) == {"1"} else key.kind
    )


def small_constant(tensor: Tensor) -> list[int | bool] | None:
    """Return the value of a tensor that is a setting: a few known whole numbers or truth values; else None."""
    value = tensor.value
    if (
        value is None
        or value.size > MOST_VALUES
        or not (tensor.dtype == "bool" or tensor.dtype.startswith(("int", "uint")))
    ):
        return None
    flat = value.reshape(-1).tolist()
    if not all(isinstance(x, (int, bool)) for x in flat):
        return None
    return flat


def _shape(tensor: Tensor) -> tuple[Any, ...]:
    return (None,) if tensor.shape is None else tensor.shape


def _plain(value: Any) -> Any:
    """Return a setting as JSON has it; arrays by their type, shape and a hash of their elements."""
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(repr(value.tolist()).encode()).hexdigest()[:16]
        return {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest}
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else repr(float(value))
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return repr(value)


#: Where a figure may come from.
ORIGINS = ("measured", "fitted", "assumed")
#: What copies of tensors are called; their sizes are ``[[bytes]]``.
COPY = "@copy"


@dataclass(frozen=True)
class Entry:
    """What one run of an operation costs.

    Attributes
    ----------
    key, processor, threads : what runs where
    time : ps, a low quantile of the runs
    energy : pJ, None if not known
    memory : bytes of inputs and results, None if not known
    macs, elements, bytes : its work, which regressions go by
    origin : one of :data:`ORIGINS`
    host, runtime : where it was measured, and with what
    runs : how many were measured
    quantile : which one ``time`` is, 0 to 1
    spread : median divided by ``time``, at least 1
    """

    key: Key
    processor: str
    threads: int
    time: float
    energy: float | None = None
    memory: int | None = None
    macs: int = 0
    elements: int = 0
    bytes: int = 0
    origin: str = "measured"
    host: str = ""
    runtime: str = ""
    runs: int = 1
    quantile: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True)
class Fused:
    """What a group of operations costs as one: ``time`` ps against ``apart`` ps one by one, both measured in one run."""

    parts: tuple[Key, ...]
    processor: str
    threads: int
    time: float
    apart: float
    runs: int = 1
    spread: float = 1.0

    @property
    def saved(self) -> float:
        """Return the part of the time that fusion saves, 0 to 1."""
        return max(0.0, 1 - self.time / self.apart)


@dataclass
class Verdict:
    """How often a processor got an operation, and how often it could have run it for less and did not get it."""

    got: int = 0
    failed: int = 0


#: What SQLite calls a type, and what it gives back for it.
_TEXT = ("TEXT NOT NULL", (str,))
_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "str": _TEXT, "int": ("INTEGER NOT NULL", (int,)), "float": ("REAL NOT NULL", (int, float)),
    "int | None": ("INTEGER", (int, type(None))), "float | None": ("REAL", (int, float, type(None))),
}  # fmt: skip


def _columns(record: type[Any]) -> dict[str, tuple[str, tuple[type, ...]]]:
    """Return the columns of a record, its fields in their order: an operation is four texts, several are one of JSON."""
    out: dict[str, tuple[str, tuple[type, ...]]] = {}
    for field in fields(record):
        out |= (
            dict.fromkeys(Key._fields, _TEXT)
            if field.type == "Key"
            else {field.name: _TYPES.get(str(field.type), _TEXT)}
        )
    return out


#: Columns by table; those of the verdicts begin with what they are about.
TABLES = {
    "entry": _columns(Entry), "fused": _columns(Fused),
    "verdict": dict.fromkeys((*Key._fields, "processor"), _TEXT) | _columns(Verdict),
}  # fmt: skip
#: How many of them tell rows apart, from the first on; no operation is twice on one processor with as many threads.
KEYS = {"entry": 6, "fused": 3, "verdict": 5}


def entry_of(row: Sequence[Any], where: str) -> Entry:
    """Return the entry of a row, checked.

    Raises
    ------
    InputError : a value of a wrong type, or one that cannot be
    """
    _require_types(row, where, "entry")
    entry = Entry(Key(*row[:4]), *row[4:])
    check_entry(entry, where)
    return entry


def fused_of(row: Sequence[Any], where: str) -> Fused:
    """Return the group of a row, checked as entries are."""
    _require_types(row, where, "fused")
    try:
        parts = tuple(Key(*(str(x) for x in part)) for part in json.loads(row[0]))
    except (ValueError, TypeError, RecursionError):
        raise InputError("parts that are no operations", where, "a list of operations") from None
    fused = Fused(parts, *row[1:])
    check_fused(fused, where)
    return fused


def verdict_of(row: Sequence[Any], where: str) -> tuple[Key, str, Verdict]:
    """Return operation, processor and verdict of a row, checked as entries are."""
    _require_types(row, where, "verdict")
    if min(row[5:]) < 0:
        raise InputError(f"{min(row[5:])} times", where, "whole numbers >= 0")
    return Key(*row[:4]), row[4], Verdict(*row[5:])


def row_of(record: Entry | Fused) -> tuple[object, ...]:
    """Return an entry or a group as a row."""
    first, *rest = vars(record).values()
    return (*(first if isinstance(record, Entry) else [json.dumps(first)]), *rest)


def check_entry(e: Entry, where: str) -> None:
    """Raise InputError for an entry whose values cannot be."""
    names = f"{where} ({e.key.kind} on {e.processor})"
    if not 0 < e.time < 1e18:
        raise InputError(f"the time is {e.time}", names, "ps, more than 0")
    if e.energy is not None and not 0 <= e.energy < 1e18:
        raise InputError(f"the energy is {e.energy}", names, "pJ, at least 0")
    counts = {"memory": e.memory or 0, "macs": e.macs, "elements": e.elements, "bytes": e.bytes}
    for name, count in counts.items():
        if count < 0:
            raise InputError(f"{name} is {count}", names, "a whole number >= 0")
    if e.origin not in ORIGINS:
        raise InputError(f"the origin is {e.origin!r}", names, "one of " + ", ".join(ORIGINS))
    if e.threads < 1 or e.runs < 1:
        raise InputError(f"{e.threads} threads, {e.runs} runs", names, "at least 1")
    if not 0 <= e.quantile <= 1 or not 1 <= e.spread < math.inf:
        raise InputError(f"quantile {e.quantile}, spread {e.spread}", names, "0 to 1, and at least 1")
    if not _is_json(e.key.sizes, list) or not _is_json(e.key.attributes, dict):
        raise InputError("sizes or attributes are not JSON", names, "a list, and an object")


def check_fused(f: Fused, where: str) -> None:
    """Raise InputError for a group whose values cannot be."""
    if not 0 < f.time < 1e18 or not 0 < f.apart < 1e18 or f.threads < 1 or f.runs < 1 or len(f.parts) < 2:
        what = f"{len(f.parts)} operations in {f.time} ps, {f.apart} ps apart"
        raise InputError(what, where, "at least two operations, times above 0")
    if not 1 <= f.spread < math.inf:
        raise InputError(f"the spread is {f.spread}", where, "at least 1")


def _is_json(text: str, kind: type) -> bool:
    try:
        return isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False


def _require_types(row: Sequence[object], where: str, table: str) -> None:
    for value, (_, kinds) in zip(row, TABLES[table].values(), strict=True):
        if not isinstance(value, kinds):
            raise InputError(
                f"a value {str(value)[:40]!r} of a wrong type", where, "what `nmsolve profile` writes"
            )


#: Fewest samples, and fewest of different work.
FEWEST, DIFFERENT = 4, 3
#: How far beyond the measured sizes a regression is believed.
BEYOND = 2.0
#: Samples left out in turn for the error, at most.
FOLDS = 32


class Sample(NamedTuple):
    """Work of an operation (MACs, elements, bytes), and its measured ps."""

    macs: int
    elements: int
    bytes: int
    time: float


@dataclass(frozen=True)
class Fit:
    """``time = base + macs * per_mac + elements * per_element + bytes * per_byte`` ps, no coefficient below 0.

    Attributes
    ----------
    coefficients : the four
    error : median of ``|predicted / measured - 1|``, each sample predicted by a regression without it
    samples : how many there were
    least, most : of the three features among them
    """

    coefficients: tuple[float, float, float, float]
    error: float
    samples: int
    least: tuple[float, ...]
    most: tuple[float, ...]

    def time(self, macs: int, elements: int, bytes_: int) -> float | None:
        """Return ps; None if the work lies too far outside what was measured."""
        work = (macs, elements, bytes_)
        if any(
            not low / BEYOND <= x <= BEYOND * high
            for x, low, high in zip(work, self.least, self.most, strict=True)
        ):
            return None
        return max(1.0, float(np.dot(self.coefficients, (1.0, *work))))


def fitted(samples: Sequence[Sample]) -> Fit | None:
    """Return the regression with the least sum of squared relative errors; None with too few samples, or too alike."""
    if len(samples) < FEWEST or len({s[:3] for s in samples}) < DIFFERENT:
        return None
    work = np.array([s[:3] for s in samples], np.float64)
    time = np.array([s.time for s in samples])
    coefficients = _solve(work, time)
    errors = []
    for k in range(0, len(samples), max(1, len(samples) // FOLDS)):
        rest = np.arange(len(samples)) != k
        predicted = float(np.dot(_solve(work[rest], time[rest]), (1.0, *work[k])))
        errors.append(abs(predicted / time[k] - 1))
    a, b, c, d = coefficients.tolist()
    return Fit(
        (a, b, c, d), float(np.median(errors)), len(samples), tuple(work.min(axis=0)), tuple(work.max(axis=0))
    )


def _solve(work: FloatArray, time: FloatArray) -> FloatArray:
    """Return (4,) coefficients >= 0; rows are divided by the times, columns by their largest values."""
    from scipy.optimize import nnls

    rows = np.column_stack([np.ones(len(time)), work]) / time[:, None]
    scale = rows.max(axis=0)
    scale[scale == 0] = 1.0
    found: FloatArray = nnls(rows / scale, np.ones(len(time)))[0] / scale
    return found
