"""Numbers for symbols: ``batch=8`` turns expressions into figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.trips import branch_of, trips_of

if TYPE_CHECKING:
    from nmsolve.model.operators.sizes import Count

#: Figures of operators and tensors stay below this, so that arrays can hold them.
MOST = 2**62


def parse_bindings(text: str | None) -> dict[str, int]:
    """Return ``"batch=8,seq=128"`` as a dictionary.

    Raises
    ------
    InputError : not of that form, not a whole number of at least 1, or a symbol twice
    """
    bindings: dict[str, int] = {}
    for item in (text or "").split(","):
        if not item.strip():
            continue
        name, equals, number = (part.strip() for part in item.partition("="))
        if not equals or not name or not number.isdecimal() or int(number) < 1:
            raise InputError(f"cannot read {item.strip()!r}", "--bind", "SYMBOL=NUMBER, e.g. batch=8,seq=128")
        if name in bindings:
            raise InputError(f"symbol {name!r} is bound twice", "--bind", "each symbol once")
        bindings[name] = int(number)
    return bindings


def stated_bindings(given: Mapping[str, int] | str | None) -> dict[str, int]:
    """Return the values of symbols that are given as a mapping or as text.

    Raises
    ------
    InputError : neither of them; as :func:`parse_bindings`
    """
    if isinstance(given, str) or given is None:
        return parse_bindings(given)
    if not isinstance(given, Mapping):
        raise InputError(
            f"the bindings are a {type(given).__name__}", "bind", "symbol -> number, or batch=8,seq=128"
        )
    return parse_bindings(",".join(f"{name}={number}" for name, number in given.items()))


def partly_bound(count: Count, bindings: Mapping[str, int]) -> Count:
    """Return the expression with its bound symbols replaced; a number if none is left.

    Raises
    ------
    InputError : the number is not whole, or negative: the model does not fit the bindings
    """
    if isinstance(count, int):
        return count
    import sympy

    symbols = {s: sympy.Integer(bindings[str(s)]) for s in count.free_symbols if str(s) in bindings}
    value = count.xreplace(symbols) if symbols else count
    if value.free_symbols:
        return value
    if not value.is_integer or value < 0:
        raise InputError(f"{count} is {value} with {_listed(bindings)}", "--bind", "a whole number >= 0")
    return int(value)


def bind(count: Count | None, bindings: Mapping[str, int], what: str = "", where: str = "") -> int:
    """Return the number that an expression equals.

    Parameters
    ----------
    what, where : what it is and of which operator, for the error

    Raises
    ------
    InputError : a symbol is not bound, nothing is known, or the result is not a whole number from 0 to below :data:`MOST`
    """
    what = what or "a number"
    if count is None:
        raise InputError(
            f"{what} is not known: a shape or an operator could not be understood", where, "a model whose shapes are all known"
        )  # fmt: skip
    value = partly_bound(count, bindings)
    if isinstance(value, int):
        if value >= MOST:
            raise InputError(
                f"{what} is {value:.3g}", where, f"less than {MOST:.3g}: smaller numbers in --bind"
            )
        return value
    missing = sorted(str(s) for s in value.free_symbols)
    names = ", ".join(repr(s) for s in missing)
    raise InputError(
        f"{what} depends on {names}, without a value",
        where,
        "--bind " + ",".join(f"{s}=NUMBER" for s in missing),
    )


def symbols_of(graph: OperatorGraph) -> tuple[str, ...]:
    """Return all symbols of the graph: those of its inputs first, then the others (loop counts, lengths that data decide).

    Branches that are never taken do not count.
    """
    found = dict.fromkeys(graph.symbols)
    more: set[str] = set()
    _collect(graph, more)
    found.update(dict.fromkeys(sorted(more)))
    return tuple(found)


def require_symbols(graph: OperatorGraph, bindings: Mapping[str, int]) -> None:
    """Raise InputError if a name is bound that the model does not have."""
    known = (*symbols_of(graph), *graph.bound) if bindings else ()
    for name in bindings:
        if name not in known:
            raise InputError(
                f"the model has no symbol {name!r}",
                "--bind",
                "one of " + ", ".join(known) if known else "no --bind: all shapes are numbers",
            )


def bound_graph(graph: OperatorGraph, bindings: Mapping[str, int]) -> OperatorGraph:
    """Return the graph with the bound symbols replaced in all shapes and values, bodies included."""
    if not bindings:
        return graph
    return _bound(graph, bindings, {})


def _bound(graph: OperatorGraph, bindings: Mapping[str, int], done: dict[Any, Any]) -> OperatorGraph:
    def number(x: Any) -> Any:
        if isinstance(x, (int, float, np.generic)) or not hasattr(x, "free_symbols"):
            return x
        if x not in done:
            done[x] = partly_bound(x, bindings)
        return done[x]

    def tensor(t: Tensor) -> Tensor:
        symbolic = t.shape is not None and not all(type(d) is int for d in t.shape)
        if not symbolic and (t.value is None or t.value.dtype != object):
            return t
        shape = None if t.shape is None else tuple(number(d) for d in t.shape)
        return replace(t, shape=shape, value=None if t.value is None else _bound_value(t.value, bindings))

    def operator(op: Operator) -> Operator:
        return (
            replace(op, bodies=tuple(_bound(body, bindings, done) for body in op.bodies)) if op.bodies else op
        )

    return replace(
        graph,
        tensors=tuple(tensor(t) for t in graph.tensors),
        operators=tuple(operator(op) for op in graph.operators),
    )


def _bound_value(value: Any, bindings: Mapping[str, int]) -> Any:
    """Return a value with its symbols replaced; values may be negative, fractions or truths, unlike counts."""
    import sympy

    out = np.empty(value.shape, object)
    for k, x in np.ndenumerate(value):
        if isinstance(x, sympy.Basic):
            x = x.xreplace({s: sympy.Integer(bindings[str(s)]) for s in x.free_symbols if str(s) in bindings})
            if x.is_Integer:
                x = int(x)
        out[k] = x
    return out


def _collect(graph: OperatorGraph, found: set[str]) -> None:
    for t in graph.tensors:
        for dim in t.shape or ():
            if not isinstance(dim, (int, np.integer)):
                found.update(str(s) for s in dim.free_symbols)
    for operator in graph.operators:
        trips = trips_of(graph, operator)
        if not isinstance(trips, int):
            found.update(str(s) for s in trips.free_symbols)
        taken = branch_of(graph, operator)
        for k, body in enumerate(operator.bodies):
            if taken in (None, k):
                _collect(body, found)


def _listed(bindings: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={number}" for name, number in bindings.items())
