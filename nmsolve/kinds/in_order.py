"""Several objectives in order: each is minimised with those before it held."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nmsolve.report.figures import amount

if TYPE_CHECKING:
    from nmsolve.model.bound import Ceilings, Result, Stage
    from nmsolve.solvers.multi_objective import Objectives

InputsT = TypeVar("InputsT", bound=msgspec.Struct | None)
#: Objectives without units.
PLAIN: Mapping[str, str] = {}


def to_errors(text: str) -> None:
    """Print a sentence to standard error."""
    print(text, file=sys.stderr)


def tell_stage(
    name: str, ceilings: Ceilings, seconds: float, units: Mapping[str, str] = PLAIN,
    say: Callable[[str], None] = to_errors,
) -> None:  # fmt: skip
    """Say which problem is being solved; ``units`` of objectives, where they have any."""
    held = ", ".join(f"{other} at most {amount(most, units.get(other, ''))}" for other, most in ceilings)
    say(f"{name}{' with ' + held if held else ''}: {seconds:.1f} s")


def run_in_order(
    objectives: Objectives[Any], inputs: InputsT, names: Sequence[str], seconds: float, units: Mapping[str, str],
    say: Callable[[str], None] = to_errors,
) -> tuple[InputsT, Stage, Result[Any], list[Stage]]:  # fmt: skip
    """Minimise several objectives in order, and ``say`` what each came to; ``units``: of their values.

    Returns
    -------
    tuple
        the ``inputs`` of the last problem, with what the earlier ones are held at; it and its result; the problems before
    """
    from nmsolve.kinds.loading import Held
    from nmsolve.solvers.multi_objective import lexicographic

    *earlier, (stage, result) = lexicographic(
        objectives, names, seconds, partial(tell_stage, units=units, say=say)
    )
    held = tuple(Held(s.objective, r.objective or 0.0, r.bound, r.status) for s, r in earlier)
    for s, r in earlier:
        value = amount(r.objective, units[s.objective])
        say(f"first {s.objective} {value} ({r.status}), then {stage.objective}")
    if inputs is not None:
        inputs = msgspec.structs.replace(inputs, objective=stage.objective, before=held)
    return inputs, stage, result, [s for s, _ in earlier]
