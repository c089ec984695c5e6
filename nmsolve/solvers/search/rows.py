"""Rules of exact models stated once, for CP-SAT and for MIP solvers (Pyomo): how variables and rows get into a model.

Sums of variables, products with numbers and comparisons are the same for both. What each says in its own way is a method here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from nmsolve.model.types import IntArray

K = TypeVar("K")
#: Whether a 0-1 variable is 1 in a solution.
Value = Callable[[Any], bool]


class CpSatRows:
    """Makes a CP-SAT model."""

    def __init__(self, model: Any = None) -> None:
        from ortools.sat.python import cp_model

        self.model = cp_model.CpModel() if model is None else model

    def rule(self, name: str) -> None:
        """The rows that follow belong to this rule; they have no names here."""

    def part(self, name: str) -> CpSatRows:
        """Return a part of the model with names of its own."""
        return self

    def per(self, whole: Any, unit: float) -> Any:
        """Return a whole number, or an array of them, as rows have it: as it is; for a MIP divided by ``unit``."""
        return whole

    def binary(self, name: str, index: Iterable[K], implied: bool = False) -> dict[K, Any]:
        """0-1 variables by index; ``implied``: 0 or 1 wherever the others are, so that a MIP need not say so."""
        return {k: self.model.new_bool_var(f"{name}[{_text(k)}]") for k in index}

    def amounts(
        self, name: str, index: Iterable[K], low: float, high: float, whole: bool = True
    ) -> dict[K, Any]:
        """Return variables from ``low`` to ``high`` by index: whole numbers, in a MIP only where ``whole`` says so."""
        return {k: self.model.new_int_var(int(low), int(high), f"{name}[{_text(k)}]") for k in index}

    def add(self, row: Any) -> None:
        """A comparison; also one of numbers, which holds or leaves no solution."""
        if not (isinstance(row, bool | np.bool_) and row):
            self.model.add(row)

    def add_if(self, on: Any, low: Any, high: Any, excess: float) -> None:
        """``low <= high`` where ``on`` is 1; elsewhere ``low`` is above ``high`` by ``excess`` at most."""
        self.model.add(low <= high).only_enforce_if(on)

    def dot(self, weights: Iterable[Any], terms: Iterable[Any]) -> Any:
        """Return ``sum_k weights[k] * terms[k]`` without a chain of additions; a number where no variable is left."""
        from ortools.sat.python import cp_model

        kept = [(int(w), t) for w, t in zip(weights, terms, strict=True) if w]
        fixed = sum(w * t for w, t in kept if isinstance(t, int))
        free = [(w, t) for w, t in kept if not isinstance(t, int)]
        if not free:
            return fixed
        return cp_model.LinearExpr.weighted_sum([t for _, t in free], [w for w, _ in free]) + fixed

    def total(self, terms: Iterable[Any]) -> Any:
        """Return ``sum_k terms[k]``, as :meth:`dot` with all weights 1."""
        listed = list(terms)
        return self.dot([1] * len(listed), listed)

    def exactly_one(self, some: Iterable[Any], on: Any = None) -> None:
        """One of some 0-1 variables is 1; with ``on``, where that is 1, and none elsewhere."""
        self.model.add_exactly_one(some if on is None else [~on, *some])

    def at_most_one(self, some: Iterable[Any]) -> None:
        """No two of some 0-1 variables are 1."""
        self.model.add_at_most_one(some)

    def any_of(self, yes: Sequence[Any], no: Sequence[Any] = ()) -> None:
        """One of ``yes`` is 1, or one of ``no`` is 0."""
        self.model.add_bool_or([*(~x for x in no), *yes])

    def implies(self, one: Any, other: Any) -> None:
        """Where a 0-1 variable is 1, so is the other."""
        self.model.add_implication(one, other)

    def hint(self, variable: Any, value: int) -> None:
        """What a known solution has for a variable."""
        self.model.add_hint(variable, int(value))

    def minimise(self, cost: Any) -> None:
        """The objective."""
        self.model.minimize(cost)


class MipRows:
    """Makes a Pyomo model: one list of rows per rule, which bears its name. The methods are those of :class:`CpSatRows`."""

    def __init__(self, name: str, model: Any = None) -> None:
        import pyomo.environ as pyo

        self.model = pyo.ConcreteModel(name=name) if model is None else model
        self._rule, self._lists = "rows", dict[str, Any]()

    def rule(self, name: str) -> None:
        """The list of rows of this name, made with its first row."""
        self._rule = name

    def part(self, name: str) -> MipRows:
        """Return a block."""
        import pyomo.environ as pyo

        block = pyo.Block()
        self.model.add_component(name, block)
        return MipRows(name, block)

    def per(self, whole: Any, unit: float) -> Any:
        """Return ``whole / unit``."""
        return whole / unit

    def binary(self, name: str, index: Iterable[K], implied: bool = False) -> dict[K, Any]:
        """Binary variables, or ones from 0 to 1."""
        import pyomo.environ as pyo

        return self._variables(name, index, domain=pyo.Reals if implied else pyo.Binary, bounds=(0, 1))

    def amounts(
        self, name: str, index: Iterable[K], low: float, high: float, whole: bool = False
    ) -> dict[K, Any]:
        """Any numbers, or whole ones; ``high`` may be inf."""
        import pyomo.environ as pyo

        most = high if np.isfinite(high) else None
        return self._variables(name, index, domain=pyo.Integers if whole else pyo.Reals, bounds=(low, most))

    def _variables(self, name: str, index: Iterable[K], **kind: Any) -> dict[K, Any]:
        import pyomo.environ as pyo

        keys = list(index)
        self.model.add_component(name, pyo.Var(keys, **kind))
        var = self.model.component(name)
        return {k: var[k] for k in keys}

    def add(self, row: Any) -> None:
        """A row; of numbers only if they do not hold, and then one that nothing meets."""
        import pyomo.environ as pyo

        if isinstance(row, bool | np.bool_):
            if row:
                return
            row = self._nothing() == 1.0
        if self._rule not in self._lists:
            self._lists[self._rule] = pyo.ConstraintList()
            self.model.add_component(self._rule, self._lists[self._rule])
        self._lists[self._rule].add(row)

    def add_if(self, on: Any, low: Any, high: Any, excess: float) -> None:
        """``low <= high + excess (1 - on)``."""
        self.add(low <= high + excess * (1 - on))

    def dot(self, weights: Iterable[Any], terms: Iterable[Any]) -> Any:
        """Return the sum of what has a weight."""
        return sum(float(w) * t for w, t in zip(weights, terms, strict=True) if w)

    def total(self, terms: Iterable[Any]) -> Any:
        """Return the sum."""
        return sum(terms)

    def exactly_one(self, some: Iterable[Any], on: Any = 1) -> None:
        """``sum = on``."""
        self.add(sum(some) == on)

    def at_most_one(self, some: Iterable[Any]) -> None:
        """``sum <= 1``."""
        self.add(sum(some) <= 1)

    def any_of(self, yes: Sequence[Any], no: Sequence[Any] = ()) -> None:
        """``sum(no) <= sum(yes) + |no| - 1``."""
        self.add(sum(no) <= sum(yes) + len(no) - 1)

    def implies(self, one: Any, other: Any) -> None:
        """``one <= other``."""
        self.add(one <= other)

    def hint(self, variable: Any, value: int) -> None:
        """Its value at the start."""
        variable.set_value(int(value))

    def minimise(self, cost: Any) -> None:
        """The objective, with a variable in it even where it is a number: Pyomo's compilers want one."""
        import pyomo.environ as pyo

        self.model.cost = pyo.Objective(expr=cost + self._nothing(), sense=pyo.minimize)

    def _nothing(self) -> Any:
        """0 as an expression of a variable."""
        import pyomo.environ as pyo

        return 0.0 * next(self.model.model().component_data_objects(pyo.Var))


#: What rules take.
Rows = CpSatRows | MipRows


@dataclass(frozen=True, eq=False)
class Built:
    """A model that is stated, for either kind of solver.

    Attributes
    ----------
    model : the ``cp_model.CpModel`` or the Pyomo model, with hints or values of a known solution
    claim : what its objective says of the user's, as :class:`nmsolve.solvers.search.scaling.Scale`
    mapping : reads a solution as engines offer it
    numbers : reads it where whole numbers of CP-SAT are needed too, instead of ``mapping``
    data, v : the numbers and the variables that it was stated with
    level : how much of it CP-SAT's linear relaxation holds, unless asked for otherwise; 2: clauses too
    flags : other parameters of CP-SAT that suit it, by name
    """

    model: Any
    claim: Any
    mapping: Callable[[Value], IntArray]
    data: Any = None
    v: Any = None
    numbers: Callable[[Callable[[Any], int]], IntArray] | None = None
    level: int = 1
    flags: Mapping[str, Any] = field(default_factory=dict)


def _text(index: object) -> str:
    """Return ``(1, 2)`` as ``1,2``."""
    return ",".join(map(str, index)) if isinstance(index, tuple) else str(index)
