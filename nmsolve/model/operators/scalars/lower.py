"""Expressions of SymPy as steps of a scalar program, in whole numbers wherever the expression is whole."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from nmsolve.model.operators.scalars.program import Builder

if TYPE_CHECKING:
    import sympy


class Unlowerable(Exception):
    """An expression that no step computes. Never leaves the package."""


def lower(builder: Builder, expression: Any) -> int:
    """Write the steps of an expression or number; return the number of its value.

    Raises
    ------
    Unlowerable : it has a function that is no step
    """
    if isinstance(expression, int | Fraction):
        return builder.const(expression)
    import sympy

    return _Lowering(builder).write(sympy.sympify(expression))


class _Lowering:
    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def write(self, e: sympy.Basic) -> int:
        """Return the value of an expression."""
        import sympy

        b = self.builder
        if isinstance(e, sympy.Symbol):
            return b.symbol(str(e), bool(e.is_positive))
        if e in (sympy.true, sympy.false):
            return b.const(bool(e))
        if isinstance(e, sympy.Rational):
            return b.const(Fraction(int(e.p), int(e.q)))
        if isinstance(e, sympy.Float):
            return b.const(Fraction(float(e)))
        if isinstance(e, sympy.Add):
            return self._sum(e)
        if isinstance(e, sympy.Mul):
            return self._product(e)
        if isinstance(e, sympy.Pow):
            return self._power(e)
        if isinstance(e, (sympy.floor, sympy.ceiling)):
            return self._rounded(e)
        if isinstance(e, sympy.Piecewise):
            return self._piecewise(e)
        return self._step(e)

    def _step(self, e: sympy.Basic) -> int:
        """Write functions and relations that are one step for every two arguments."""
        import sympy

        chains = {sympy.Max: "max", sympy.Min: "min", sympy.And: "and", sympy.Or: "or"}
        straight = {
            sympy.Mod: "mod", sympy.Abs: "abs", sympy.sign: "sign", sympy.Not: "not", sympy.Eq: "eq", sympy.Lt: "lt",
            sympy.Le: "le",
        }  # fmt: skip
        for kind, name in chains.items():
            if isinstance(e, kind):
                return self._chain(name, [self.write(a) for a in e.args])
        for kind, name in straight.items():
            if isinstance(e, kind):
                return self.builder.add(name, *(self.write(a) for a in e.args))
        if isinstance(e, sympy.Ne):
            return self.builder.add("not", self.builder.add("eq", *(self.write(a) for a in e.args)))
        if isinstance(e, (sympy.Gt, sympy.Ge)):
            less, more = reversed(e.args)
            return self.builder.add(
                "lt" if isinstance(e, sympy.Gt) else "le", self.write(less), self.write(more)
            )
        raise Unlowerable(str(e))

    def _chain(self, name: str, values: list[int]) -> int:
        """Return one step for every value after the first."""
        total = values[0]
        for value in values[1:]:
            total = self.builder.add(name, total, value)
        return total

    def _sum(self, e: sympy.Add) -> int:
        """Terms with a minus are taken off, so that none has to be negated."""
        import sympy

        plus = [t for t in e.args if not t.could_extract_minus_sign()]
        minus = [-t for t in e.args if t.could_extract_minus_sign()]
        if not plus:
            number = next((t for t in e.args if isinstance(t, sympy.Rational)), sympy.Integer(0))
            plus, minus = [number], [t for t in minus if t != -number]
        total = self._chain("add", [self.write(t) for t in plus])
        for term in minus:
            total = self.builder.add("sub", total, self.write(term))
        return total

    def _product(self, e: sympy.Mul) -> int:
        top, bottom = e.as_numer_denom()
        if bottom != 1:
            return self.builder.add("div", self.write(top), self.write(bottom))
        if e.args[0] == -1:
            return self.builder.add("neg", self.write(-e))
        return self._chain("mul", [self.write(t) for t in e.args])

    def _power(self, e: sympy.Pow) -> int:
        base, exponent = e.args
        if exponent == 2:
            value = self.write(base)
            return self.builder.add("mul", value, value)
        if not exponent.is_integer:
            raise Unlowerable(str(e))
        return self.builder.add("pow", self.write(base), self.write(exponent))

    def _rounded(self, e: sympy.Basic) -> int:
        """``floor(a / b)`` is one division where a and b are whole."""
        import sympy

        inner, up = e.args[0], isinstance(e, sympy.ceiling)
        top, bottom = inner.as_numer_denom()
        if bottom == 1 or not (top.is_integer and bottom.is_integer):
            return self.builder.add("ceil" if up else "floor", self.write(inner))
        if up:
            lifted = self.builder.add("floordiv", self.write(-top), self.write(bottom))
            return self.builder.add("neg", lifted)
        return self.builder.add("floordiv", self.write(top), self.write(bottom))

    def _piecewise(self, e: sympy.Piecewise) -> int:
        """The last case holds where no earlier one does."""
        import sympy

        cases = [(value, condition) for value, condition in e.args]
        if cases[-1][1] != sympy.true:
            raise Unlowerable(str(e))
        chosen = self.write(cases[-1][0])
        for value, condition in reversed(cases[:-1]):
            chosen = self.builder.add("select", self.write(condition), self.write(value), chosen)
        return chosen
