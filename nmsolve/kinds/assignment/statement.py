"""The assignment problem that options state, the same for ``nmsolve assign`` and ``nmsolve verify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nmsolve.kinds.loading import Held
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.hw.assignment.machine import ProcessorMachine
    from nmsolve.hw.assignment.state import StatedAssignment
    from nmsolve.kinds.assignment.options import AssignProblemOptions
    from nmsolve.model.assignment.network import CostNetwork
    from nmsolve.model.assignment.problem import AssignProblem
    from nmsolve.model.assignment.thresholds import Thresholds
    from nmsolve.model.operators.graph import OperatorGraph

#: Name of the command in report.json, which tells its folders from those of ``map``.
COMMAND = "assign"


class AssignInputs(msgspec.Struct, frozen=True):
    """The options that state the problem, as in report.json.

    ``whole`` : control flow stays whole, since the makespan is among the objectives; ``threshold``: Th1 and Th2 of method M3, as
    stated; ``before``: objectives that were minimised first, with the values that they are held at
    """

    model: str
    machine: str | None = None
    bind: str | None = None
    strict: bool = False
    library: str | None = None
    constraints: str | None = None
    objective: str = "latency"
    whole: bool = False
    threshold: str | None = None
    before: tuple[Held, ...] = ()


@dataclass(frozen=True, eq=False)
class Given:
    """A stated problem with what it was made from; ``network`` for cost networks, else the others.

    ``unbound`` : the model with its symbols, where they have values and programs are written
    """

    network: CostNetwork | None = None
    stated: StatedAssignment | None = None
    graph: OperatorGraph | None = None
    machine: ProcessorMachine | None = None
    own: AssignProblem | None = None
    unbound: OperatorGraph | None = None

    @property
    def problem(self) -> AssignProblem | CostNetwork:
        """What is solved."""
        found = self.network if self.own is None else self.own
        assert found is not None
        return found

    @property
    def operators(self) -> AssignProblem:
        """The problem of a model; only where there is one."""
        assert self.own is not None
        return self.own


def stated_inputs(
    o: AssignProblemOptions, names: tuple[str, ...] = ("latency",), threshold: str | None = None
) -> AssignInputs:
    """Return the part of the options that states the problem of the first objective, and the thresholds of method M3."""
    from nmsolve.kinds import values as opt

    return AssignInputs(
        model=str(o.model.resolve()), machine=opt.text_or_file(o.machine), bind=o.bind, strict=o.strict,
        library=opt.whole(o.library), constraints=opt.whole(o.constraints), objective=names[0], whole="makespan" in names,
        threshold=threshold,
    )  # fmt: skip


def thresholds_of(text: str | None, objective: str) -> Thresholds | None:
    """Return the thresholds that a text like ``benefit=2us,cost=500ns`` states, in the objective's unit. InputError otherwise."""
    from nmsolve.kinds import values as opt
    from nmsolve.model.assignment.problem import OBJECTIVES
    from nmsolve.model.assignment.thresholds import Thresholds

    return None if text is None else Thresholds(**opt.thresholds(text, OBJECTIVES[objective]))


def require_threshold(text: str | None, names: Sequence[str], engines: Sequence[object] | None) -> None:
    """Raise InputError for thresholds of several objectives, or where the rule that they are for does not run."""
    if text is None:
        return
    if len(names) > 1:
        raise InputError(
            "thresholds of several objectives", "--threshold", "one objective, of which they are"
        )
    if engines is not None and not {"threshold", "auto"} & {e for e in engines if isinstance(e, str)}:
        raise InputError("thresholds without the rule of method M3", "--threshold", "--engines threshold")


def state_problem(inputs: AssignInputs) -> Given:
    """Load the model and the machine and state the problem.

    Raises
    ------
    InputError : a wrong file, a symbol or trip count without a number, an operator that no processor supports, options that
        do not belong together
    """
    name = inputs.model.lower()
    if name.endswith((".json", ".json.gz")):
        return _network(inputs)
    if not name.endswith(".onnx"):
        suffix = Path(name).suffix
        what = f"cannot read {suffix!r} files" if suffix else "a file without extension"
        raise InputError(what, inputs.model, "a .onnx model or a .json cost network")
    from nmsolve.hw.assignment.constraints import read_constraints
    from nmsolve.hw.assignment.library import Library
    from nmsolve.hw.assignment.machine_file import load_processors
    from nmsolve.hw.assignment.state import state_assignment
    from nmsolve.model.formats.onnx import load_onnx
    from nmsolve.model.operators.binding import parse_bindings

    if inputs.machine is None:
        raise InputError("the processors are missing", inputs.model, "--machine PRESET or machine.toml")
    machine = load_processors(inputs.machine)
    bindings = parse_bindings(inputs.bind)
    graph = load_onnx(inputs.model, strict=inputs.strict, bindings=bindings)
    stated = state_assignment(
        graph,
        machine,
        bindings=bindings,
        library=None if inputs.library is None else Library(inputs.library),
        objective="makespan" if inputs.whole else inputs.objective,
        constraints=None if inputs.constraints is None else read_constraints(inputs.constraints),
    )
    ceilings = tuple((held.objective, held.value) for held in inputs.before)
    own = replace(
        stated.problem, name=Path(inputs.model).stem, objective=inputs.objective, ceilings=ceilings,
        thresholds=thresholds_of(inputs.threshold, inputs.objective),
    )  # fmt: skip
    return Given(stated=replace(stated, problem=own), graph=graph, machine=machine, own=own)


def _network(inputs: AssignInputs) -> Given:
    """State a cost network: it has its own costs and limits."""
    from nmsolve.model.formats.iopddl import load_iopddl

    given = {
        "--machine": inputs.machine,
        "--bind": inputs.bind,
        "--library": inputs.library,
        "--constraints": inputs.constraints,
        "--threshold": inputs.threshold,
    }
    for option, value in given.items():
        if value is not None:
            raise InputError("a cost network has its own costs and limits", option, "none, or a .onnx model")
    if inputs.objective != "latency" or inputs.whole or inputs.before:
        raise InputError("a cost network has one objective, its cost", "--objective", "none")
    return Given(network=load_iopddl(inputs.model))
