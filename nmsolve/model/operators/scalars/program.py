"""Scalar programs: every step makes one number from earlier ones, and every number is made once (SSA form); ``scalars.json``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import msgspec

from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic

#: Numbers are exact: whole ones, fractions, truth values.
Number: TypeAlias = "int | Fraction | bool"
Value: TypeAlias = "int | Fraction | bool | str"

#: No number may have more bits, above or below its line: lengths of tensors are nowhere near, and squares of squares grow fast.
MOST_BITS = 4096


def truncated(a: Number, b: Number) -> Number:
    """Return ``a / b`` rounded towards zero, as whole numbers divide in ONNX."""
    return math.trunc(Fraction(a) / Fraction(b))


def power(a: Number, b: Number) -> Number:
    """Return ``a ** b`` for whole ``b``. ArithmeticError if the result is far too large or no fraction."""
    base, exponent = Fraction(a), Fraction(b)
    bits = (
        max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
    )  # of the result, for every factor, or more
    if exponent.denominator != 1 or abs(exponent) * bits > MOST_BITS:
        raise ArithmeticError("a power that is no length")
    return _plain(base ** int(exponent))


#: Steps that compute nothing.
GIVEN = frozenset({"const", "length", "symbol"})
#: The others by name: what they compute.
STEPS: dict[str, Callable[..., Number]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: _plain(Fraction(a) / Fraction(b)),
    "floordiv": operator.floordiv,
    "truncdiv": truncated,
    "mod": operator.mod,
    "pow": power,
    "min": min,
    "max": max,
    "neg": operator.neg,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "floor": math.floor,
    "ceil": math.ceil,
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "not": lambda a: not a,
    "select": lambda c, a, b: a if c else b,
}


def computed(kind: str, args: Iterable[Number]) -> Number:
    """Return what a step makes of its arguments. ArithmeticError if it cannot, or of more than :data:`MOST_BITS`."""
    value = STEPS[kind](*args)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise ArithmeticError("a number that is no length")
    return value


#: Steps whose arguments may change places.
SYMMETRIC = frozenset({"add", "mul", "min", "max", "eq", "and", "or"})


@dataclass(frozen=True)
class Step:
    """One number of a program.

    Attributes
    ----------
    kind : ``const``; ``length``, of an input, at least 1; ``symbol``, any whole number that data decide; or a name of
        :data:`STEPS`
    args : numbers of earlier steps
    value : of a constant; the name of a length or symbol
    """

    kind: str
    args: tuple[int, ...] = ()
    value: Value = 0


@dataclass(frozen=True)
class ScalarProgram:
    """Steps in an order in which they can run, and the results that are used, by name."""

    steps: tuple[Step, ...]
    results: Mapping[str, int]

    @property
    def count(self) -> int:
        """How many steps compute something."""
        return sum(step.kind not in GIVEN for step in self.steps)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the lengths and symbols, in order."""
        return tuple(dict.fromkeys(str(s.value) for s in self.steps if s.kind in ("length", "symbol")))

    def run(self, bindings: Mapping[str, int]) -> dict[str, Number]:
        """Return all results by name.

        Raises
        ------
        InputError : a symbol has no value, or a step cannot be computed with these values
        """
        known: list[Number] = []
        for step in self.steps:
            if step.kind in ("length", "symbol"):
                if step.value not in bindings:
                    raise InputError(f"symbol {step.value!r} has no value", "--bind", f"{step.value}=NUMBER")
                known.append(bindings[str(step.value)])
            elif step.kind == "const":
                known.append(step.value)  # type: ignore[arg-type]  # only symbols have names
            else:
                try:
                    known.append(computed(step.kind, (known[k] for k in step.args)))
                except ArithmeticError:
                    bound = ", ".join(f"{name}={value}" for name, value in bindings.items())
                    raise InputError(
                        f"the model's shape arithmetic cannot compute {step.kind} with {bound}", "--bind",
                        "values that the model allows",
                    ) from None  # fmt: skip
        return {name: known[k] for name, k in self.results.items()}

    def steps_as_text(self) -> list[str]:
        """Return a line for every step that computes something: ``%3 = mul %1 batch``."""
        return [
            f"%{k} = {s.kind} " + " ".join(map(self._named, s.args))
            for k, s in enumerate(self.steps)
            if s.kind not in GIVEN
        ]

    def text(self) -> list[str]:
        """Return the program as lines, the results at its end."""
        return self.steps_as_text() + [f"{name} = {self._named(k)}" for name, k in self.results.items()]

    def _named(self, k: int) -> str:
        step = self.steps[k]
        return str(step.value) if step.kind in GIVEN else f"%{k}"


@dataclass
class Builder:
    """Writes a program step by step; with ``shared`` equal steps are written once."""

    shared: bool = False
    steps: list[Step] = field(default_factory=list)
    results: dict[str, int] = field(default_factory=dict)
    _known: dict[Step, int] = field(default_factory=dict)

    def add(self, kind: str, *args: int, value: Value = 0) -> int:
        """Append a step; return its number."""
        if self.shared and kind in SYMMETRIC:
            args = tuple(sorted(args))
        step = Step(kind, args, value)
        key = Step(kind, args, f"{type(value).__name__} {value}") if kind == "const" else step
        if (self.shared or kind in GIVEN) and key in self._known:
            return self._known[key]
        self.steps.append(step)
        self._known[key] = len(self.steps) - 1
        return len(self.steps) - 1

    def const(self, value: Number) -> int:
        """Return a constant, written once."""
        return self.add("const", value=_plain(value))

    def symbol(self, name: str, length: bool = False) -> int:
        """Return a symbol, or the length of an input, written once."""
        return self.add("length" if length else "symbol", value=name)

    def program(self) -> ScalarProgram:
        """Return what was written."""
        return ScalarProgram(tuple(self.steps), dict(self.results))


def _plain(value: Number) -> Number:
    """Return a fraction that is whole as a whole number."""
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


class StepEntry(msgspec.Struct, omit_defaults=True):
    """A step: its ``kind``, the numbers of earlier steps that it takes, and a constant's value or a symbol's name as text."""

    kind: str
    args: list[int] = []
    value: str = ""


class ScalarsFile(msgspec.Struct):
    """The content of ``scalars.json``; ``results``: the step of every result by name."""

    format: str
    steps: list[StepEntry]
    results: dict[str, int]


def write_scalars(path: str | Path, program: ScalarProgram) -> None:
    """Write a program, whole or not at all."""
    steps = [
        StepEntry(s.kind, list(s.args), _text(s.value) if s.kind in GIVEN else "") for s in program.steps
    ]
    content = ScalarsFile("nmsolve scalars 1", steps, dict(program.results))
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
