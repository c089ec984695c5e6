"""``assignment.json``: the processor and core of every operator, what is fused, and the order; or strategies of a network."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import settle
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.identity import Identity
from nmsolve.model.types import BoolArray, IntArray

Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class AssignmentFile(msgspec.Struct):
    """The content of ``assignment.json`` for operators.

    Attributes
    ----------
    problem : its name and content hash; an empty hash is not compared
    model : hash of the operators and of what they pass on, whatever the machine and the objective; "" is not compared
    operator, kind : names and types of the operators, in the problem's order
    processor, core : where each runs; a processor of one core has only core 0
    fused : operators that run as one, group by group
    order : operators in the order in which a schedule takes them; empty: the problem's own
    """

    problem: Identity
    operator: list[str]
    processor: list[str]
    core: list[Number]
    fused: list[list[str]] = []
    order: list[str] = []
    kind: list[str] = []
    model: str = ""


class StrategiesFile(msgspec.Struct):
    """The content of ``assignment.json`` for a cost network: the strategy of every node."""

    problem: Identity
    strategy: list[Number]


def model_hash(problem: AssignProblem) -> str:
    """Return the hash of the operators and of what they pass on: the same for every machine and objective."""
    text = hashlib.sha256(repr((problem.labels, problem.kinds, problem.flows.names)).encode())
    for array in (problem.flows.source, problem.flows.indptr, problem.flows.targets):
        text.update(np.ascontiguousarray(array, np.int64).tobytes())
    return text.hexdigest()


def place_of(unit: str) -> tuple[str, int]:
    """Return processor and core of a unit: ``npu/2`` is core 2 of ``npu``, ``host`` is core 0 of ``host``."""
    processor, slash, core = unit.rpartition("/")
    return (processor, int(core)) if slash and core.isdecimal() and len(core) < 10 else (unit, 0)


def write_assignment(path: str | Path, problem: AssignProblem, answer: Assignment) -> None:
    """Write the file, whole or not at all."""
    places = [place_of(problem.units.names[int(j)]) for j in answer.unit]
    labels = problem.labels
    ordered = problem.objective == "makespan"
    content = AssignmentFile(
        problem=Identity(problem.name, problem.content_hash),
        model=model_hash(problem),
        operator=list(labels),
        kind=list(problem.kinds),
        processor=[name for name, _ in places],
        core=[core for _, core in places],
        fused=[[labels[i] for i in problem.groups.of(int(k))] for k in np.flatnonzero(answer.fused)],
        order=[labels[i] for i in np.argsort(answer.rank, kind="stable")] if ordered else [],
    )
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_assignment(path: str | Path, problem: AssignProblem, other_rules: bool = False) -> Assignment:
    """Read the file; its shape is checked here, the rules by :mod:`nmsolve.model.assignment.assignment`.

    Parameters
    ----------
    other_rules : it may be of another problem with the same operators and units: another objective, other costs or limits;
        fused groups that this problem does not have are then left out

    Raises
    ------
    InputError : not of this shape, of another model or problem, or a unit or group that does not exist
    """
    settle(Path(path).parent)
    file = decode_json(read_limited(path), AssignmentFile, path)
    of, same = file.problem, Identity(problem.name, problem.content_hash)
    operators = Identity(problem.name, model_hash(problem))
    Identity(of.name, file.model).require(
        operators, "the assignment is for another model", f"{path}: $.model"
    )
    if not other_rules:
        what = "the assignment is for another problem"
        of.require(same, what, f"{path}: $.problem", ": the same input and options")
    _require_operators(file.operator, problem, path)
    for name, count in (("processor", len(file.processor)), ("core", len(file.core))):
        if count != problem.count:
            raise InputError(f"{count} values", f"{path}: $.{name}", f"{problem.count}, one per operator")
    at = {place_of(name): j for j, name in enumerate(problem.units.names)}
    unit = np.zeros(problem.count, np.int64)
    for i, place in enumerate(zip(file.processor, file.core, strict=True)):
        if place not in at:
            known = ", ".join(problem.units.names[:12])
            raise InputError(
                f"{place[0]!r} has no core {place[1]}", f"{path}: $.processor[{i}]", f"one of {known}"
            )
        unit[i] = at[place]
    return Assignment(unit, _fused(file, problem, path, other_rules), _rank(file, problem, path))


def _require_operators(found: Sequence[str], problem: AssignProblem, path: str | Path) -> None:
    if len(found) != problem.count:
        raise InputError(
            f"{len(found)} operators", f"{path}: $.operator", f"the {problem.count} of {problem.name!r}"
        )
    for i, (name, wanted) in enumerate(zip(found, problem.labels, strict=True)):
        if name != wanted:
            raise InputError(f"operator {name!r}", f"{path}: $.operator[{i}]", repr(wanted))


def _fused(file: AssignmentFile, problem: AssignProblem, path: str | Path, other: bool) -> BoolArray:
    """Return (G,) which groups are fused."""
    known = {tuple(problem.labels[i] for i in problem.groups.of(k)): k for k in range(problem.groups.count)}
    fused = np.zeros(problem.groups.count, bool)
    for n, members in enumerate(file.fused):
        k = known.get(tuple(members))
        if k is not None:
            fused[k] = True
        elif not other:
            what = f"no group of {', '.join(map(repr, members[:4]))} can be fused"
            raise InputError(what, f"{path}: $.fused[{n}]", "a group of this problem")
    return fused


def _rank(file: AssignmentFile, problem: AssignProblem, path: str | Path) -> IntArray:
    """Return (L,) the place of every operator in the order."""
    if not file.order:
        return np.arange(problem.count)
    number = {name: i for i, name in enumerate(problem.labels)}
    if len(file.order) != problem.count or set(file.order) != number.keys():
        raise InputError("not an order of the operators", f"{path}: $.order", "every operator once")
    rank = np.zeros(problem.count, np.int64)
    rank[[number[name] for name in file.order]] = np.arange(problem.count)
    return rank


def write_strategies(path: str | Path, network: CostNetwork, strategy: IntArray) -> None:
    """Write the strategies (N,) of a network, whole or not at all."""
    content = StrategiesFile(Identity(network.name, network.content_hash), strategy.tolist())
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_strategies(path: str | Path, network: CostNetwork) -> IntArray:
    """Read the file, or a list of strategies alone as contests take it: (N,).

    Raises
    ------
    InputError : not of this shape, of another network, or a strategy that does not exist
    """
    settle(Path(path).parent)
    data = read_limited(path)
    if data.lstrip()[:1] == b"[":
        file = StrategiesFile(Identity("", ""), decode_json(data, list[Number], path))
    else:
        file = decode_json(data, StrategiesFile, path)
    same = Identity(network.name, network.content_hash)
    file.problem.require(same, "the strategies are for another network", f"{path}: $.problem")
    if len(file.strategy) != network.count:
        raise InputError(
            f"{len(file.strategy)} values", f"{path}: $.strategy", f"{network.count}, one per node"
        )
    sizes = np.diff(network.ptr).tolist()
    for k, (chosen, count) in enumerate(zip(file.strategy, sizes, strict=True)):
        if chosen >= count:
            raise InputError(
                f"strategy {chosen} does not exist", f"{path}: $.strategy[{k}]", f"0..{count - 1}"
            )
    return np.array(file.strategy, np.int64)
