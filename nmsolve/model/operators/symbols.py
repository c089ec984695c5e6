"""Arithmetic on lengths (M3.2): plain integers stay plain, SymPy expressions appear only where a symbol is in play.

A length (``Dim``) is an ``int`` or a SymPy expression of the symbols of the inputs' shapes. SymPy is slow, so every function here
takes the short way if all its arguments are integers, and imports SymPy only if they are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import sympy

Dim: TypeAlias = "int | sympy.Expr"
Shape: TypeAlias = "tuple[Dim, ...]"

#: Ends of slices from here on mean "to the end".
ENDLESS = 2**31 - 1


class Names:
    """The symbols of one model: a name means one symbol, or one number, whoever asks.

    Parameters
    ----------
    bindings : numbers that take the place of symbols

    Attributes
    ----------
    bound : those that did
    """

    def __init__(self, bindings: Mapping[str, int] | None = None) -> None:
        self._bindings = dict(bindings or {})
        self._given: dict[str, Any] = {}
        self._fresh: dict[str, Any] = {}
        self.bound: dict[str, int] = {}

    def _made(self, name: str, **signs: bool) -> Any:
        if name in self._bindings:
            self.bound[name] = self._bindings[name]
            return self.bound[name]
        import sympy

        return sympy.Symbol(name, integer=True, **signs)

    def given(self, name: str) -> Any:
        """Return the length that the model's inputs call ``name``: an integer >= 1."""
        if name not in self._given:
            self._given[name] = self._made(name, positive=True)
        return self._given[name]

    def fresh(self, name: str, any_sign: bool = False) -> Any:
        """Return a length that only the data decide, named after its tensor; the same again for the same name.

        A name that the inputs use already gets an underscore. ``any_sign``: the symbol is a number, not a length.
        """
        if name not in self._fresh:
            free = name
            while free in self._given:
                free += "_"
            self._fresh[name] = self._made(free, **({} if any_sign else {"nonnegative": True}))
        return self._fresh[name]

    def is_given(self, name: str) -> bool:
        """Return the inputs' shapes use the name."""
        return name in self._given

    def settled(self, length: Any) -> bool:
        """Return a number, or an expression of nothing but the symbols of the inputs' shapes."""
        return type(length) is int or all(self._given.get(str(s)) == s for s in length.free_symbols)


def plain(x: Any) -> Any:
    """Return ``x`` as Python ``int``, ``float`` or ``bool`` if it is a number, else as it is."""
    if type(x) is int:
        return x
    if isinstance(x, (bool, np.bool_)):
        return bool(x)
    if isinstance(x, np.integer):
        return int(x)
    if isinstance(x, (float, np.floating)):
        return float(x)
    if getattr(x, "is_Integer", False):
        return int(x)
    if getattr(x, "is_Float", False):
        return float(x)
    name = type(x).__name__
    if name in ("BooleanTrue", "BooleanFalse"):
        return name == "BooleanTrue"
    return x


def is_number(x: Any) -> bool:
    """No expression: a Python or NumPy number or truth value."""
    return isinstance(x, (int, float, np.number, np.bool_))


def exact(x: Any) -> Any:
    """Return a float as an integer or fraction, so that expressions stay free of decimals: 0.5 h is h / 2.

    Raises
    ------
    ValueError : the float is infinite or not a number
    """
    if not isinstance(x, (float, np.floating)):
        return x
    if not np.isfinite(x):
        raise ValueError("not finite")
    top, bottom = float(x).as_integer_ratio()
    if bottom == 1:
        return top
    import sympy

    return sympy.Rational(top, bottom) if bottom <= 2**20 else sympy.Float(float(x))


def product(dims: Iterable[Any]) -> Any:
    """Return the product of lengths, 1 of none."""
    number, rest = 1, []
    for d in dims:
        if type(d) is int:
            number *= d
        else:
            rest.append(d)
    for d in rest:
        number = number * d
    return plain(number)


def floor_div(a: Any, b: Any) -> Any:
    """floor(a / b) for b > 0, with nested divisions in one: floor((floor(x / 2) + 3) / 2) is floor((x + 6) / 4)."""
    if type(a) is int and type(b) is int:
        return a // b
    if b == 1 and (type(a) is int or getattr(a, "is_integer", False)):
        return plain(a)
    import sympy

    if type(b) is int:
        a = sympy.sympify(a)
        inner = (
            [t for t in a.args if t.func is sympy.floor] if a.is_Add else [a] if a.func is sympy.floor else []
        )
        rest = [t for t in a.args if t not in inner] if a.is_Add else []
        if len(inner) == 1 and all(t.is_integer for t in rest):
            a = inner[0].args[0] + sum(rest)
    return plain(sympy.floor(sympy.expand(a / sympy.sympify(b))))


def ceil_div(a: Any, b: Any) -> Any:
    """ceil(a / b) for b > 0."""
    if type(b) is int:
        return floor_div(a + (b - 1), b)
    return plain(-floor_div(-a, b)) if type(a) is not int or type(b) is not int else -(-a // b)


def exact_div(a: Any, b: Any) -> Any:
    """a / b where it is known to leave no remainder."""
    if type(a) is int and type(b) is int:
        return a // b
    import sympy

    ratio = sympy.sympify(a) / sympy.sympify(b)
    if ratio.is_integer:
        return plain(ratio)
    ratio = sympy.cancel(ratio) if not ratio.has(sympy.floor, sympy.Max, sympy.Min) else ratio
    return plain(ratio)


def truncated_div(a: Any, b: Any) -> Any:
    """a / b rounded towards zero, as integers divide in ONNX."""
    if is_number(a) and is_number(b):
        q = abs(int(a)) // abs(int(b))
        return q if (a < 0) == (b < 0) else -q
    import sympy

    a, b = sympy.sympify(a), sympy.sympify(b)
    if (a / b).is_integer:
        return plain(a / b)
    if a.is_nonnegative and b.is_positive:
        return floor_div(plain(a), plain(b))
    return plain(sympy.sign(a) * sympy.sign(b) * sympy.floor(sympy.Abs(a) / sympy.Abs(b)))


def maximum(*items: Any) -> Any:
    """Return the largest."""
    if all(is_number(x) for x in items):
        return plain(max(items))
    import sympy

    return plain(sympy.Max(*items))


def minimum(*items: Any) -> Any:
    """Return the smallest."""
    if all(is_number(x) for x in items):
        return plain(min(items))
    import sympy

    return plain(sympy.Min(*items))


def same(a: Any, b: Any) -> bool:
    """Both are known to be equal, whatever the symbols are."""
    if is_number(a) and is_number(b):
        return bool(a == b)
    if a is b or a == b:
        return True
    if is_number(a) or is_number(b):
        return False
    import sympy

    return bool(sympy.expand(a - b) == 0)


def broadcast(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Common shape by the rules of NumPy. Two different expressions give their maximum: one of them must be 1.

    Raises
    ------
    ValueError : two integer lengths do not fit
    """
    rank = max(map(len, shapes), default=0)
    out = []
    for axis in range(rank):
        length: Any = 1
        for shape in shapes:
            at = axis - rank + len(shape)
            if at >= 0:
                length = _wider(length, shape[at])
        out.append(length)
    return tuple(out)


def _wider(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        if a != b and 1 not in (a, b):
            raise ValueError(f"lengths {a} and {b} do not fit")
        return b if a == 1 else a
    if type(a) is int:
        return b if a == 1 else a
    if type(b) is int:
        return a if b == 1 else b
    return a if same(a, b) else maximum(a, b)


def clip_index(index: Any, length: Any) -> Any:
    """Return the position that an end of a slice means: negative ones count from the end, all are clipped to ``0..length``."""
    if type(index) is int:
        if index >= ENDLESS:
            return length
        if index >= 0:
            return 0 if index == 0 else minimum(index, length)
        return 0 if index <= -ENDLESS else maximum(length + index, 0)
    if same(index, length):
        return length
    if index.is_nonnegative:
        return minimum(index, length)
    if index.is_negative:
        return maximum(length + index, 0)
    import sympy

    return plain(
        sympy.Piecewise((sympy.Min(index, length), index >= 0), (sympy.Max(length + index, 0), True))
    )
