"""Making scalar programs short (M3.5): constants, common steps, algebra, dead steps; every pass is counted and checked."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.operators.scalars.lower import Unlowerable, lower
from nmsolve.model.operators.scalars.program import GIVEN, Builder, Number, ScalarProgram, Step, computed
from nmsolve.model.operators.symbols import floor_div, truncated_div

#: A product of sums with more terms is not multiplied out.
MOST_TERMS = 256
#: Random values of the symbols with which a pass must keep every result, and the largest of them.
TRIALS, LARGEST = 8, 4096


@dataclass(frozen=True)
class PassCount:
    """What a pass did: steps that compute something, before and after."""

    name: str
    before: int
    after: int


def optimised(program: ScalarProgram, seed: int = 0) -> tuple[ScalarProgram, list[PassCount]]:
    """Return a program with the same results and fewer steps, and what every pass did.

    Raises
    ------
    AssertionError : a pass changed a result for random values of the symbols: an error of nmsolve
    """
    counts = []
    for name, shorten in PASSES.items():
        shorter = shorten(program)
        different = first_difference(program, shorter, seed)
        if different is not None:
            raise AssertionError(f"pass {name!r} changes {different}")
        counts.append(PassCount(name, program.count, shorter.count))
        program = shorter
    return program, counts


def first_difference(one: ScalarProgram, other: ScalarProgram, seed: int = 0) -> str | None:
    """Return a result, and values of the symbols, in which two programs differ; None if :data:`TRIALS` random ones find none.

    Where the first cannot be computed (a division by zero), the second may do anything.
    """
    rng = random.Random(seed)
    least = {
        str(s.value): int(s.kind == "length")
        for p in (one, other)
        for s in p.steps
        if s.kind in ("length", "symbol")
    }
    for trial in range(TRIALS):
        most = LARGEST if trial % 2 else 8
        bindings = {name: rng.randint(1 if low else -most, most) for name, low in sorted(least.items())}
        try:
            wanted = one.run(bindings)
        except InputError:
            continue
        found = other.run(bindings)
        for name, value in wanted.items():
            if found.get(name) != value:
                return f"{name} from {value} to {found.get(name)} at {bindings}"
    return None


def fold(program: ScalarProgram) -> ScalarProgram:
    """Compute steps whose arguments are all constants; also ``0 + a``, ``1 a``, ``a / 1``, and choices that are known."""
    return _rewritten(program, _folded, Builder())


def share(program: ScalarProgram) -> ScalarProgram:
    """Write equal steps once."""
    return _rewritten(program, lambda b, step, args: None, Builder(shared=True))


def drop_dead(program: ScalarProgram) -> ScalarProgram:
    """Leave out what no result needs."""
    place: dict[int, int] = {}
    kept: list[Step] = []
    for k in _behind(program, program.results.values()):
        step = program.steps[k]
        place[k] = len(kept)
        kept.append(Step(step.kind, tuple(place[a] for a in step.args), step.value))
    return ScalarProgram(tuple(kept), {name: place[k] for name, k in program.results.items()})


def simplify(program: ScalarProgram) -> ScalarProgram:
    """Write every result anew from the shortest form that SymPy knows of it; keep the old program if that is not longer."""
    if program.count == 0:
        return program
    builder, values = Builder(shared=True), _expressions(program)
    for name, k in program.results.items():
        try:
            builder.results[name] = lower(builder, values[k])
        except (Unlowerable, KeyError):
            builder.results[name] = _copied(program, k, builder)
    shorter = drop_dead(builder.program())
    return shorter if shorter.count <= program.count else program


#: The passes in their order.
PASSES: Mapping[str, Callable[[ScalarProgram], ScalarProgram]] = {
    "dead steps": drop_dead,
    "constants": fold,
    "common steps": share,
    "algebra": simplify,
}


def _rewritten(
    program: ScalarProgram, change: Callable[[Builder, Step, tuple[int, ...]], int | None], builder: Builder
) -> ScalarProgram:
    """Write the program anew; ``change`` gives what a step becomes, or None for the step itself."""
    place: list[int] = []
    for step in program.steps:
        args = tuple(place[a] for a in step.args)
        new = change(builder, step, args)
        place.append(builder.add(step.kind, *args, value=step.value) if new is None else new)
    builder.results = {name: place[k] for name, k in program.results.items()}
    return drop_dead(builder.program())


def _folded(builder: Builder, step: Step, args: tuple[int, ...]) -> int | None:
    if step.kind in GIVEN:
        return None
    known = [_constant(builder, a) for a in args]
    values = [v for v in known if v is not None]
    if len(values) == len(known):
        try:
            return builder.const(computed(step.kind, values))
        except ArithmeticError:
            return None  # it fails when it runs, if it runs
    return _neutral(builder, step.kind, args, known)


def _neutral(builder: Builder, kind: str, args: tuple[int, ...], known: list[Number | None]) -> int | None:
    """Return the argument that a step leaves as it is."""
    if kind == "select":
        return None if known[0] is None else args[1] if known[0] else args[2]
    if len(args) != 2:
        return None
    (a, b), (x, y) = args, known
    same = {"min", "max", "and", "or"}
    if kind in same and a == b:
        return a
    first = {"add": 0, "mul": 1}.get(kind)
    if first is not None and x is not None and x == first and not isinstance(x, bool):
        return b
    second = {"add": 0, "sub": 0, "mul": 1, "div": 1, "pow": 1}.get(kind)
    if second is not None and y is not None and y == second and not isinstance(y, bool):
        return a
    if kind == "mul" and 0 in (x, y):
        return builder.const(0)
    return None


def _constant(builder: Builder, k: int) -> Number | None:
    step = builder.steps[k]
    return step.value if step.kind == "const" else None  # type: ignore[return-value]  # only symbols have names


def _expressions(program: ScalarProgram) -> dict[int, Any]:
    """Return the value of every step as an expression, as far as SymPy has one; lengths are at least 1."""
    import sympy

    forms: dict[str, Callable[..., Any]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "floordiv": floor_div,
        "truncdiv": truncated_div,
        "mod": sympy.Mod,
        "min": sympy.Min,
        "max": sympy.Max,
        "neg": lambda a: -a,
        "abs": sympy.Abs,
        "sign": sympy.sign,
        "floor": sympy.floor,
        "ceil": sympy.ceiling,
        "eq": sympy.Eq,
        "lt": sympy.Lt,
        "le": sympy.Le,
        "and": sympy.And,
        "or": sympy.Or,
        "not": sympy.Not,
        "select": lambda c, a, b: sympy.Piecewise((a, c), (b, True)),
    }
    values: dict[int, Any] = {}
    for k, step in enumerate(program.steps):
        if step.kind in ("length", "symbol"):
            signs = {"positive": True} if step.kind == "length" else {}
            values[k] = sympy.Symbol(str(step.value), integer=True, **signs)
        elif step.kind == "const":
            v = step.value
            values[k] = (
                sympy.Rational(v.numerator, v.denominator) if isinstance(v, Fraction) else sympy.sympify(v)
            )
        elif step.kind in forms and all(a in values for a in step.args):
            try:
                values[k] = _expanded(forms[step.kind](*(values[a] for a in step.args)))
            except (TypeError, ValueError, ArithmeticError):
                continue  # a truth value where SymPy wants a number, or too many terms: the step stays as it is
    return values


def _expanded(e: Any) -> Any:
    """Return a sum of products, so that like terms meet; what is not a number as it is. ValueError if it has too many terms."""
    import sympy

    if not isinstance(e, sympy.Expr) or e.is_Atom:
        return e
    if sum(map(_terms, sympy.Add.make_args(e))) > MOST_TERMS:
        raise ValueError("too many terms")
    return sympy.expand(e)


def _terms(product: Any) -> int:
    """Return about how many terms a product has when it is multiplied out."""
    import sympy

    count = 1
    for factor in sympy.Mul.make_args(product):
        base, exponent = factor.as_base_exp()
        times = min(int(exponent), MOST_TERMS) if exponent.is_Integer and exponent > 0 else 1
        count *= len(sympy.Add.make_args(base)) ** times
    return count


def _copied(program: ScalarProgram, result: int, builder: Builder) -> int:
    """Write the steps behind one number as they are."""
    place: dict[int, int] = {}
    for k in _behind(program, [result]):
        step = program.steps[k]
        place[k] = builder.add(step.kind, *(place[a] for a in step.args), value=step.value)
    return place[result]


def _behind(program: ScalarProgram, wanted: Iterable[int]) -> list[int]:
    """Return the steps that some numbers need, these included, in order."""
    needed, stack = set[int](), list(wanted)
    while stack:
        k = stack.pop()
        if k not in needed:
            needed.add(k)
            stack.extend(program.steps[k].args)
    return sorted(needed)
