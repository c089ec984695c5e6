"""The event heap of the simulated component, and what happens at an event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import embedded, kernel, plain
from nmsolve.model.types import AnyArray, IntArray

#: Kinds of events; of those at one tick the smaller kind comes first.
END, ARRIVED, AWAKE, LOADED, BEGIN, START = range(6)


class Plan(NamedTuple):
    """What the controllers know. P processes, U units, Q entries of queues, E dependencies, R resources.

    Attributes
    ----------
    queue_ptr, queue, off_after : (U + 1,), (Q,), (Q,) queues
    unit_ptr, unit : (P + 1,), (Q,) units of every process
    begin, start : (P,) not before these ticks
    load, span : (P,) ticks
    inputs : (P,) dependencies into it
    out_ptr, out, delay : (P + 1,), (E,), (E,) dependencies out of every process: their targets and ticks
    gain, work, drop : (P,) bytes on every unit: loaded at its begin, needed while it runs, dropped at its end
    demand, capacity : (P, R), (R,)
    turn_ptr, turn : (R + 1,), (T,) who takes of a resource, in this order
    off_time, wake_time : (U,) ticks
    """

    queue_ptr: IntArray
    queue: IntArray
    off_after: IntArray
    unit_ptr: IntArray
    unit: IntArray
    begin: IntArray
    start: IntArray
    load: IntArray
    span: IntArray
    inputs: IntArray
    out_ptr: IntArray
    out: IntArray
    delay: IntArray
    gain: IntArray
    work: IntArray
    drop: IntArray
    demand: IntArray
    capacity: IntArray
    turn_ptr: IntArray
    turn: IntArray
    off_time: IntArray
    wake_time: IntArray


class Component(NamedTuple):
    """The state while events happen, and what was seen.

    Attributes
    ----------
    when, what, size : the heap: ticks (X,), kind and number in one (X,), its length (1,)
    begin, start, end : (P,) when it happened, -1 before
    wants : (P,) units that are not yet free for a process
    missing : (P,) inputs, and its begin, that a process still waits for
    at : (U,) place in the queue; ended : (U,) when its last process ended, or the unit was awake again
    bytes, peak : (U,) held now, and at most
    busy, idle, dark, switches : (U,) ticks, ticks, ticks, times
    left, next : (R,) of every resource: what is left, whose turn it is
    dark_begin : (Q,) when a unit was switched off after this entry, -1 if it was not
    """

    when: IntArray
    what: IntArray
    size: IntArray
    begin: IntArray
    start: IntArray
    end: IntArray
    wants: IntArray
    missing: IntArray
    at: IntArray
    ended: IntArray
    bytes: IntArray
    peak: IntArray
    busy: IntArray
    idle: IntArray
    dark: IntArray
    switches: IntArray
    left: IntArray
    next: IntArray
    dark_begin: IntArray


@plain
def _push(c: Component, tick: int, kind: int, number: int) -> None:
    """Add an event."""
    k, code = c.size[0], (kind << 40) | number
    c.size[0] = k + 1
    while k > 0:
        up = (k - 1) >> 1
        if c.when[up] < tick or (c.when[up] == tick and c.what[up] <= code):
            break
        c.when[k], c.what[k] = c.when[up], c.what[up]
        k = up
    c.when[k], c.what[k] = tick, code


@plain
def _pop(c: Component) -> None:
    """Take off the first event."""
    size = c.size[0] - 1
    c.size[0] = size
    tick, code = c.when[size], c.what[size]
    k = 0
    while True:
        low = 2 * k + 1
        if low >= size:
            break
        if low + 1 < size and (
            c.when[low + 1] < c.when[low]
            or (c.when[low + 1] == c.when[low] and c.what[low + 1] < c.what[low])
        ):
            low += 1
        if tick < c.when[low] or (tick == c.when[low] and code <= c.what[low]):
            break
        c.when[k], c.what[k] = c.when[low], c.what[low]
        k = low
    c.when[k], c.what[k] = tick, code


@embedded
def _hold(c: Component, u: int, change: int) -> None:
    """Take or give back bytes of a memory."""
    c.bytes[u] += change
    c.peak[u] = max(c.peak[u], c.bytes[u])


@plain
def _ready(plan: Plan, c: Component, p: int, now: int) -> None:
    """Begin with a process whose units are all free, once its time has come."""
    if now < plan.begin[p]:
        _push(c, plan.begin[p], BEGIN, p)
        return
    c.begin[p] = now
    for i in range(plan.unit_ptr[p], plan.unit_ptr[p + 1]):
        u = plan.unit[i]
        c.idle[u] += now - c.ended[u]
        _hold(c, u, plan.gain[p])
    _push(c, now + plan.load[p], LOADED, p)


@plain
def _arrived(plan: Plan, c: Component, p: int, now: int) -> None:
    """One thing less to wait for; then start, once the time has come."""
    c.missing[p] -= 1
    if c.missing[p] == 0:
        _push(c, max(now, plan.start[p]), START, p)


@plain
def _start(plan: Plan, c: Component, p: int, now: int) -> bool:
    """Start a process if it is its turn at all resources and they suffice; False if it has to wait."""
    for r in range(len(plan.capacity)):
        if plan.demand[p, r] > 0 and (
            c.left[r] < plan.demand[p, r] or plan.turn[plan.turn_ptr[r] + c.next[r]] != p
        ):
            return False
    for r in range(len(plan.capacity)):
        if plan.demand[p, r] > 0:
            c.left[r] -= plan.demand[p, r]
            c.next[r] += 1
    c.start[p] = now
    for i in range(plan.unit_ptr[p], plan.unit_ptr[p + 1]):
        _hold(c, plan.unit[i], plan.work[p])
    _push(c, now + plan.span[p], END, p)
    return True


@plain
def _turns(plan: Plan, c: Component, now: int) -> None:
    """Start those that waited for resources, as long as there is one whose turn it is."""
    moved = True
    while moved:
        moved = False
        for r in range(len(plan.capacity)):
            k = plan.turn_ptr[r] + c.next[r]
            if k < plan.turn_ptr[r + 1]:
                p = plan.turn[k]
                # -2: it asked at its START event and had to wait
                if c.start[p] == -2 and _start(plan, c, p, now):
                    moved = True


@plain
def _free(plan: Plan, c: Component, u: int, now: int) -> None:
    """Go on in the queue of a unit that is free and awake."""
    k = plan.queue_ptr[u] + c.at[u]
    if k < plan.queue_ptr[u + 1]:
        q = plan.queue[k]
        c.wants[q] -= 1
        if c.wants[q] == 0:
            _ready(plan, c, q, now)


@plain
def _end(plan: Plan, c: Component, p: int, now: int) -> None:
    """End a process: send its data, give back memory and resources, go on or switch off."""
    c.end[p] = now
    for i in range(plan.out_ptr[p], plan.out_ptr[p + 1]):
        _push(c, now + plan.delay[i], ARRIVED, plan.out[i])
    for r in range(len(plan.capacity)):
        c.left[r] += plan.demand[p, r]
    for i in range(plan.unit_ptr[p], plan.unit_ptr[p + 1]):
        u = plan.unit[i]
        _hold(c, u, -plan.work[p] - plan.drop[p])
        c.busy[u] += now - c.begin[p]
        c.ended[u] = now
        entry = plan.queue_ptr[u] + c.at[u]
        c.at[u] += 1
        if entry + 1 == plan.queue_ptr[u + 1]:
            continue
        due = plan.begin[plan.queue[entry + 1]]
        # a controller that is late stays on: waking would be later still (M4.6)
        if plan.off_after[entry] and due - now >= plan.off_time[u] + plan.wake_time[u]:
            c.dark_begin[entry] = now
            c.switches[u] += 1
            c.dark[u] += due - now
            _push(c, due, AWAKE, u)
        else:
            _free(plan, c, u, now)


@kernel
def run_events(plan: Plan, c: Component) -> int:
    """Let everything happen; ``c`` is filled in. Return the number of events."""
    events = 0
    for p in range(len(plan.span)):
        if plan.unit_ptr[p] == plan.unit_ptr[p + 1]:
            _ready(plan, c, p, 0)
    for u in range(len(plan.off_time)):
        if plan.queue_ptr[u] < plan.queue_ptr[u + 1]:
            c.switches[u] += 1
            _push(c, plan.begin[plan.queue[plan.queue_ptr[u]]], AWAKE, u)
    while c.size[0] > 0:
        now, code = c.when[0], c.what[0]
        _pop(c)
        events += 1
        kind, number = code >> 40, code & ((1 << 40) - 1)
        if kind == END:
            _end(plan, c, number, now)
            _turns(plan, c, now)
        elif kind == AWAKE:
            c.ended[number] = now
            _free(plan, c, number, now)
        elif kind in (ARRIVED, LOADED):
            _arrived(plan, c, number, now)
        elif kind == BEGIN:
            _ready(plan, c, number, now)
        else:
            c.start[number] = -2
            if _start(plan, c, number, now):
                _turns(plan, c, now)
    return events


def component(plan: Plan) -> Component:
    """Return the state before anything has happened."""
    count, units = len(plan.span), len(plan.off_time)
    most = 4 * count + len(plan.out) + 2 * len(plan.queue) + units + 1

    def zeros(n: int) -> AnyArray:
        return np.zeros(n, np.int64)

    return Component(
        zeros(most), zeros(most), zeros(1), zeros(count) - 1, zeros(count) - 1, zeros(count) - 1,
        np.diff(plan.unit_ptr), plan.inputs + 1, zeros(units), zeros(units), zeros(units), zeros(units), zeros(units),
        zeros(units), zeros(units), zeros(units), plan.capacity.copy(), zeros(len(plan.capacity)), zeros(len(plan.queue)) - 1,
    )  # fmt: skip
