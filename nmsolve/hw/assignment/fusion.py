"""Which operators may run as one, and what that saves (M3.4): tensors that stay on chip, launches that fall away.

A group has one way out, its last operator. It holds elementwise operators, before them at most one product (convolution, matrix
product) or at most two reductions (a normalisation or softmax in pieces), and no operator twice. Whether a group is fused is a
decision of the assignment; here are the largest groups that each processor could run as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.roofline import OperatorWork, roofline
from nmsolve.hw.assignment.steps import Program
from nmsolve.model.types import BoolArray, FloatArray

#: Most operators of a group.
LARGEST = 16

#: What a group may begin with.
PRODUCTS = frozenset({
    "Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "MatMul", "MatMulInteger", "QLinearMatMul", "Gemm",
})  # fmt: skip

#: Every element of the result comes from the same place of the operands (a batch normalisation scales and shifts).
ELEMENTWISE = frozenset({
    "Abs", "Add", "And", "BatchNormalization", "BitShift", "Cast", "Ceil", "Celu", "Clip", "Cos", "DequantizeLinear", "Div",
    "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsNaN",
    "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow",
    "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Sub",
    "Sum", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
})  # fmt: skip

#: Results depend on a whole row.
REDUCTIONS = frozenset({
    "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LogSoftmax", "ReduceL2", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceSum", "ReduceSumSquare", "RMSNormalization", "Softmax",
})  # fmt: skip


class Group(NamedTuple):
    """Operators that may run as one.

    Attributes
    ----------
    members : steps, ascending
    inner : bytes of memory that need not be read and written any more, in one run
    largest : bytes of the largest tensor that stays inside
    reduces : it holds a reduction, so that whole rows must stay on chip
    """

    members: tuple[int, ...]
    inner: int
    largest: int
    reduces: bool


def groups_of(program: Program, works: Sequence[OperatorWork | None], possible: BoolArray) -> list[Group]:
    """Return groups, each once, by their last operators.

    Parameters
    ----------
    works : (L,) what one run of each step does, None for ``@in`` and ``@out``
    possible : (L, P) which processors can run which step
    """
    finder = _Finder(program, works)
    found: dict[tuple[int, ...], None] = {}
    for able in {column.tobytes(): column for column in possible.T}.values():
        found.update(dict.fromkeys(finder.largest(able)))
    return [finder.measured(members) for members in sorted(found, key=lambda m: (m[-1], m))]


def savings(
    group: Group, works: Sequence[OperatorWork | None], machine: ProcessorMachine
) -> tuple[FloatArray, FloatArray]:
    """Return (P,) which part of the time and of the energy of its operators a processor saves by fusing a group.

    ``1 - roofline(all at once, without the inner bytes) / sum of rooflines``; the inner bytes are saved if no reduction is there
    or the largest tensor fits the unit's own memory. 0 on processors that cannot fuse, or cannot run one of the operators.
    """
    own = [works[i] for i in group.members]
    work = [w for w in own if w is not None]
    time, energy = np.zeros(len(machine.processors)), np.zeros(len(machine.processors))
    for k, p in enumerate(machine.processors):
        if not p.fuses:
            continue
        kept = not group.reduces or not p.on_chip or group.largest <= p.on_chip
        last = work[-1]
        inside = group.inner if kept else 0
        together = roofline(p, [*work[:-1], last._replace(bytes=last.bytes - inside)])
        apart = [roofline(p, [w]) for w in work]
        for out, which in ((time, 0), (energy, 1)):
            whole = sum(a[which] for a in apart)
            out[k] = max(0.0, 1 - together[which] / whole) if whole > 0 else 0.0
    return time, energy


class _Finder:
    """Who makes what for whom, and the regions that can be closed."""

    def __init__(self, program: Program, works: Sequence[OperatorWork | None]) -> None:
        self.program, self.works = program, works
        steps = program.steps
        self.users: list[set[int]] = [set() for _ in steps]
        self.makers: list[set[int]] = [set() for _ in steps]
        self.made: list[list[int]] = [[] for _ in steps]
        for t, flow in enumerate(program.flows):
            if flow.kept or flow.control:
                continue
            self.made[flow.source].append(t)
            self.users[flow.source].update(flow.users)
            for user in flow.users:
                self.makers[user].add(flow.source)

    def largest(self, able: BoolArray) -> list[tuple[int, ...]]:
        """Return groups of at least two of the steps in ``able`` (L,), none in two of them: from the last step to the first."""
        taken: set[int] = set()
        found = []
        for last in range(len(self.program.steps) - 1, 0, -1):
            if last in taken or not able[last] or self._role(last) not in ("point", "reduce"):
                continue
            members = self._grown(last, able, taken)
            if len(members) > 1:
                found.append(tuple(sorted(members)))
                taken |= members
        return found

    def _role(self, i: int) -> str:
        work, step = self.works[i], self.program.steps[i]
        if work is None or step.operator is None or not step.runs:
            return ""
        if work.bytes == 0 or step.operator.domain not in ("", "ai.onnx"):
            return ""
        kinds = (("product", PRODUCTS), ("point", ELEMENTWISE), ("reduce", REDUCTIONS))
        return next((role for role, names in kinds if work.kind in names), "")

    def _grown(self, last: int, able: BoolArray, taken: set[int]) -> set[int]:
        """Add makers whose results nothing else uses, the latest first, while the group stays of its kind."""
        members = {last}
        while len(members) < LARGEST:
            after = [i for i in members if self._role(i) != "product"]
            ready = sorted({m for i in after for m in self.makers[i]} - members - taken, reverse=True)
            fitting = next((m for m in ready if able[m] and self._fits(members, m)), None)
            if fitting is None:
                break
            members.add(fitting)
        return members

    def _fits(self, members: set[int], new: int) -> bool:
        role, steps, last = self._role(new), self.program.steps, max(members)
        if not role or new > last or steps[new].graph is not steps[last].graph:
            return False
        if not self.users[new] <= members or min(self.users[new]) <= new:
            return False  # wanted elsewhere, or in the next turn of a loop
        roles = [self._role(i) for i in members]
        if role == "product":
            return "product" not in roles and "reduce" not in roles
        if role == "reduce":
            return "product" not in roles and roles.count("reduce") < 2
        return True

    def measured(self, members: tuple[int, ...]) -> Group:
        """Return a group with its inner bytes: what all but the last make is neither written nor read."""
        inner = largest = 0
        for i in members[:-1]:
            sizes = {self.program.flows[t].path: self.program.flows[t].moved for t in self.made[i]}
            inner += sum(sizes.values()) * (1 + len(self.users[i]))
            largest = max(largest, max(sizes.values(), default=0))
        most = sum(w.bytes for i in members if (w := self.works[i]) is not None)
        return Group(members, min(inner, most), largest, any(self._role(i) == "reduce" for i in members))
