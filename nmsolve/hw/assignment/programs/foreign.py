"""Assignments of other tools and by hand, as answers to a stated problem: to be scored, bounded or improved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import numpy as np

from nmsolve.hw.assignment.constraints import matching
from nmsolve.hw.assignment.programs.onnx_mlir import Named, matched, read_rules
from nmsolve.hw.assignment.state import StatedAssignment
from nmsolve.model.assignment.assignment import Assignment, fused_where_possible
from nmsolve.model.assignment.files import place_of
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.types import IntArray

#: No file of rules is longer (bytes).
LARGEST_FILE = 2**26


class HandFile(msgspec.Struct, forbid_unknown_fields=True):
    """``{"operators": {"conv*": "npu/0", "kind:Softmax": "cpu", "*": "npu"}}``: names, patterns or types -> unit or processor."""

    operators: dict[str, str]


def is_foreign(path: str | Path) -> bool:
    """Return whether a file is of the forms that are read here, not an ``assignment.json`` of nmsolve or something else.

    Raises
    ------
    InputError : it cannot be read, or is no JSON object
    """
    keys = decode_json(read_limited(path, LARGEST_FILE), dict[str, msgspec.Raw], path).keys()
    return bool(keys & {"device_placement", "nnpa_ops_config", "operators"})


def read_foreign(
    path: str | Path, stated: StatedAssignment, devices: Mapping[str, str] | None = None
) -> Assignment:
    """Return the answer that a file means; groups are fused where its units allow it, those that gain most first.

    Two forms are read, told apart by their keys. By hand, ``operators``: a name counts before patterns, an earlier pattern
    before a later one; a processor of several cores means the first that can run the operator; every operator must be meant.
    Of onnx-mlir, ``device_placement`` or ``nnpa_ops_config``: ``cpu`` is the first host, ``nnpa`` the first unit that is none;
    operators that no rule means, or that the accelerator cannot run, are on the host, as that compiler has it.

    Parameters
    ----------
    devices : units that onnx-mlir's devices are, if others

    Raises
    ------
    InputError : not of these forms, operators or units that do not exist, operators without a unit
    """
    data = read_limited(path, LARGEST_FILE)
    keys = decode_json(data, dict[str, msgspec.Raw], path).keys()
    problem = stated.problem
    if keys & {"device_placement", "nnpa_ops_config"}:
        unit = _of_onnx_mlir(data, path, stated, devices or {})
    elif "operators" in keys:
        unit = _by_hand(data, path, problem)
    else:
        raise InputError("no known form", str(path), "operators, device_placement or nnpa_ops_config")
    return Assignment(unit, fused_where_possible(problem, unit), np.arange(problem.count))


def _of_onnx_mlir(
    data: bytes, path: str | Path, stated: StatedAssignment, devices: Mapping[str, str]
) -> IntArray:
    problem = stated.problem
    host = _ends(problem)
    accelerators = np.flatnonzero(~problem.units.host)
    at = {"cpu": host, "": host, "nnpa": int(accelerators[0]) if len(accelerators) else host}
    for device, name in devices.items():
        if name not in problem.units.names:
            raise InputError(f"no unit {name!r}", device, "one of " + ", ".join(problem.units.names))
        at[device] = problem.units.names.index(name)
    steps = stated.program.steps
    named = [
        Named(kind, step.operator.name if step.operator is not None else "")
        for kind, step in zip(problem.kinds, steps, strict=True)
    ]
    found = matched(read_rules(data, path), named, path)
    unit = np.array([at[device] for device in found], np.int64)
    for i in range(problem.count):
        if steps[i].operator is None or problem.time[i, unit[i]] < 0:
            unit[i] = _first(problem, i, [at["cpu"], host, *range(problem.units.count)])
    return unit


def _by_hand(data: bytes, path: str | Path, problem: AssignProblem) -> IntArray:
    file = decode_json(data, HandFile, path)
    unit = np.full(problem.count, -1, np.int64)
    labels, kinds = problem.labels, problem.kinds
    names = [k for k in file.operators if k in labels]
    for key in [*names, *(k for k in file.operators if k not in labels)]:
        where = f"{path}: $.operators[{key!r}]"
        place = file.operators[key]
        own = [j for j, u in enumerate(problem.units.names) if place in (u, place_of(u)[0])]
        if not own:
            raise InputError(
                f"no unit or processor {place!r}", where, "one of " + ", ".join(problem.units.names)
            )
        for i in matching(key, labels, kinds, where):
            if unit[i] < 0:
                unit[i] = _first(problem, i, own)
    for i in range(problem.count):
        if unit[i] < 0 and labels[i].startswith("@"):
            unit[i] = _first(problem, i, range(problem.units.count))
    left = [labels[i] for i in np.flatnonzero(unit < 0).tolist()]
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        raise InputError(
            f"no unit for {', '.join(map(repr, left[:3]))}{more}", str(path), 'a unit for every operator, e.g. "*": "cpu"'
        )  # fmt: skip
    return unit


def _ends(problem: AssignProblem) -> int:
    """Return the first host."""
    hosts = np.flatnonzero(problem.units.host)
    return int(hosts[0]) if len(hosts) else 0


def _first(problem: AssignProblem, operator: int, units: Iterable[int]) -> int:
    """Return the first of these units that can run an operator, or the first of them."""
    choice = list(units)
    return next((j for j in choice if problem.time[operator, j] >= 0), choice[0])
