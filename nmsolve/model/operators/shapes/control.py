"""Control flow: shapes that hold after either branch, and those that every turn of a loop keeps.

A loop's state starts with the shapes of the first turn. A length that the body changes becomes a symbol of its own, and the body
is gone through again, until nothing changes: what is left then holds for every turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.shapes.facts import UNKNOWN, Call, Fact, axis_of, listed, rule
from nmsolve.model.operators.symbols import ENDLESS, plain, same
from nmsolve.model.types import AnyArray


def merged(call: Call, name: str, a: Fact, b: Fact) -> Fact:
    """Return what holds for both; lengths that differ become symbols named after the tensor."""
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return UNKNOWN
    shape = tuple(
        d if same(d, e) else call.fresh(f"{name}_{k}")
        for k, (d, e) in enumerate(zip(a.shape, b.shape, strict=True))
    )
    return Fact(shape, a.value if _equal(a.value, b.value) else None)


def _equal(a: AnyArray | None, b: AnyArray | None) -> bool:
    if a is None or b is None:
        return a is b
    return a is b or (a.shape == b.shape and a.dtype == b.dtype and bool(np.all(a == b)))


@rule("If")
def branches(call: Call) -> Sequence[Fact]:
    """Bodies 0 and 1: what to do if the condition holds, and if not. A condition that follows from shapes decides."""
    assert call.run_body is not None
    one, other = call.run_body(0, []), call.run_body(1, [])
    condition = call.value(0)
    if condition is not None and condition.dtype != object and condition.size == 1:
        return one if condition.reshape(()).item() else other
    return [merged(call, name, a, b) for name, a, b in zip(call.outputs, one, other, strict=True)]


@rule("Loop")
def loop(call: Call) -> Sequence[Fact]:
    """Inputs: most turns, condition, state. Body: turn, condition, state -> condition, state, one row per collected output."""
    assert call.run_body is not None
    body = call.bodies[0]
    count = max(len(call.inputs) - 2, 0)
    start = [call.fact(2 + k) or UNKNOWN for k in range(count)]
    names = [
        call.outputs[k] if k < len(call.outputs) and call.outputs[k] else f"{call.name}_{k}"
        for k in range(count)
    ]
    state = [Fact(f.shape) for f in start]
    scalar = Fact(())
    while True:
        outs = call.run_body(0, [scalar, scalar, *state])
        after = [merged(call, *x) for x in zip(names, state, outs[1 : 1 + count], strict=True)]
        if all(_unchanged(a, b) for a, b in zip(state, after, strict=True)):
            break
        state = after
    trips = _trips(call, body, outs[0])
    final = [_grown(call, *x, trips) for x in zip(start, state, outs[1 : 1 + count], strict=True)]
    rows = [Fact(None if f.shape is None else (trips, *f.shape)) for f in outs[1 + count :]]
    return [*final, *rows]


def _grown(call: Call, start: Fact, state: Fact, after: Fact, trips: Any) -> Fact:
    """State after the last turn: a length that every turn makes longer by as much is the first one and so much per turn."""
    if start.shape is None or state.shape is None or after.shape is None:
        return state
    shape = list(state.shape)
    for axis, (first, inside, longer) in enumerate(zip(start.shape, state.shape, after.shape, strict=True)):
        if type(longer) is int or same(first, inside):
            continue
        step = plain((longer - inside).expand())
        if call.settled(step):
            shape[axis] = plain(first + trips * step)
    return Fact(tuple(shape), state.value)


def _unchanged(a: Fact, b: Fact) -> bool:
    if a.shape is None or b.shape is None:
        return a.shape is b.shape
    return len(a.shape) == len(b.shape) and all(same(d, e) for d, e in zip(a.shape, b.shape, strict=True))


def _trips(call: Call, body: OperatorGraph, condition: Fact) -> Any:
    """How often the body runs: the most turns, if nothing stops it before; else the symbol of its costs (see ``trips``)."""
    most = call.value(0)
    number = None if most is None else listed(most)[0]
    start = call.value(1)
    begins = not call.has(1) or (start is not None and start.dtype != object and bool(start.all()))
    if not begins or number is None or (type(number) is int and number >= ENDLESS):
        return call.fresh(_trips_name(call.name))
    goes_on = condition.value is not None and condition.value.dtype != object and bool(condition.value.all())
    if goes_on or _passed_on(body):
        return max(number, 0) if type(number) is int else number
    return call.fresh(_trips_name(call.name))


def _trips_name(operator: str) -> str:
    """Return the name that :func:`nmsolve.model.operators.trips.trips_of` gives the symbol."""
    return "trips_" + re.sub(r"\W+", "_", operator).strip("_")


def _passed_on(body: OperatorGraph) -> bool:
    """Return the body gives back the condition it got."""
    tensor = body.outputs[0]
    while (
        body.tensors[tensor].producer >= 0
        and body.operators[body.tensors[tensor].producer].kind == "Identity"
    ):
        tensor = body.operators[body.tensors[tensor].producer].inputs[0]
    return tensor == body.inputs[1]


@rule("Scan")
def scan(call: Call) -> Sequence[Fact]:
    """Inputs: state, then sequences that the body gets one entry of. Body: state, entries -> state, one entry of every output."""
    assert call.run_body is not None
    sequences = call.attributes["num_scan_inputs"]
    if not 0 < sequences <= len(call.inputs):
        raise ValueError(f"{sequences} sequences among {len(call.inputs)} inputs")
    count = len(call.inputs) - sequences
    axes = call.attributes.get("scan_input_axes", (0,) * sequences)
    entries, lengths = [], []
    for k in range(sequences):
        shape = call.shape(count + k)
        axis = axis_of(axes[k], len(shape))
        entries.append(Fact(shape[:axis] + shape[axis + 1 :]))
        lengths.append(shape[axis])
    trips = next((d for d in lengths if type(d) is int), lengths[0])
    state = [Fact((call.fact(k) or UNKNOWN).shape) for k in range(count)]
    while True:
        outs = call.run_body(0, [*state, *entries])
        after = [merged(call, *x) for x in zip(call.outputs, state, outs[:count])]  # noqa: B905
        if all(_unchanged(a, b) for a, b in zip(state, after, strict=True)):
            break
        state = after
    collected = outs[count:]
    axes = call.attributes.get("scan_output_axes", (0,) * len(collected))
    return [*state, *(_row(f, axis, trips) for f, axis in zip(collected, axes, strict=True))]


def _row(fact: Fact, axis: int, count: Any) -> Fact:
    if fact.shape is None:
        return UNKNOWN
    at = axis_of(axis, len(fact.shape) + 1)
    return Fact((*fact.shape[:at], count, *fact.shape[at:]))
