"""Compiled part of the downset search: all stages between two downsets that keep a limit on loads."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from nmsolve.heuristics.pipeline.lattice import Lattice
from nmsolve.model.bits import lowest
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: More cores than any machine has: a state that was not reached, a rest that cannot be done.
FAR = 2**30


class Rules(NamedTuple):
    """What plans must obey.

    ``limit``: most ticks of a stage; ``relief``: most work, in core-ticks, that a host can take off the cores within it;
    ``room``: (C,) most storage of a stage on groups of 1 to C cores; ``area``, ``storage``: sums over all parts; ``counted``:
    states tell numbers of stages apart; ``exact``: fewer stages are no better than more.
    """

    limit: int
    relief: int
    cores: int
    stages: int
    hosts: int
    room: IntArray
    area: int
    storage: int
    overlap: bool
    counted: bool
    exact: bool


class States(NamedTuple):
    """The cheapest ways to R downsets; a state is a number of stages on cores and one of hosts, Q in all.

    ``cores``: (R, Q) fewest cores, ``FAR`` if not reached; ``worst``: (R, Q) largest load on the way; ``origin`` and ``group``:
    (R, Q) the downset before the last stage, and the cores of this stage, 0 for a host; ``need``: (hosts + 1, R) cores that the
    rest takes at least, by hosts used before it; ``found``: (R,) for lists of downsets.
    """

    cores: Int32Array
    worst: IntArray
    origin: Int32Array
    group: Int32Array
    need: Int32Array
    found: IntArray


@plain
def fill_needs(lattice: Lattice, rules: Rules, need: Int32Array) -> None:
    """What the rest behind every downset takes at least: its work, and the nets that enter it, which a stage there pays.

    A host takes ``relief`` of the work, and may spare the cores those nets whose parts in the rest it can hold.
    """
    parts, limit = len(lattice.part_host), max(1, rules.limit)
    for row in range(len(lattice.area)):
        for used in range(rules.hosts + 1):
            hosts = rules.hosts - used
            work = rules.area - lattice.area[row]
            nets = lattice.cross[row]
            if hosts > 0:
                work -= min(work, hosts * rules.relief)
                nets -= _spared(lattice, row, hosts * rules.limit, parts)
            total = max(work, nets) if rules.overlap else work + nets
            need[used, row] = min(FAR, (total + limit - 1) // limit)
            if hosts == 0:
                rest = rules.storage - lattice.storage[row]
                if rest > 0 and rules.room[0] > 0:
                    least = np.ceil(rest / (1.000001 * rules.room[0]))
                    need[used, row] = max(need[used, row], min(least, float(FAR)))


@kernel
def _spared(lattice: Lattice, row: int, time: int, parts: int) -> int:
    """Ticks of the live nets whose parts outside take hosts no longer than ``time``."""
    out = 0
    for v in range(lattice.live.shape[0]):
        live = lattice.live[v, row]
        while live:
            net = 64 * v + lowest(live)
            live &= live - nb.uint64(1)
            held, able = 0, True
            for w in range(lattice.nets.shape[1]):
                outside = lattice.nets[net, w] & ~lattice.bits[w, row]
                while outside:
                    part = 64 * w + lowest(outside)
                    outside &= outside - nb.uint64(1)
                    held += lattice.part_host[part]
                    able &= not lattice.part_stuck[part]
            if able and held <= time:
                out += lattice.weight[net]
    return out


@plain
def run(lattice: Lattice, rules: Rules, states: States, start: int, budget: int) -> int:
    """Enter all stages that begin at the downsets from ``start`` on, in sequence, until about ``budget`` pairs were looked at.

    Returns where to continue.
    """
    width = rules.hosts + 1
    for at in range(start, len(lattice.sequence)):
        if budget <= 0:
            return at
        row = lattice.sequence[at]
        if not rules.exact:
            _drop_dominated(states, row, width)
        fewest, fewest_hosted = FAR, FAR
        for q in range(states.cores.shape[1]):
            used = states.cores[row, q]
            if used < FAR and used + states.need[q % width, row] <= rules.cores:
                fewest = min(fewest, used)
                if q % width < rules.hosts:
                    fewest_hosted = min(fewest_hosted, used)
        if fewest < rules.cores:
            budget -= _on_cores(lattice, rules, states, row, fewest)
        if fewest_hosted < FAR:
            budget -= _on_hosts(lattice, rules, states, row, fewest_hosted)
        budget -= 1
    return len(lattice.sequence)


@plain
def _drop_dominated(states: States, row: int, width: int) -> None:
    """Forget states that use no fewer stages, hosts and cores than another one of the same downset."""
    cores = states.cores
    for q in range(cores.shape[1]):
        for p in range(q):
            if p // width <= q // width and p % width <= q % width and cores[row, p] <= cores[row, q]:
                cores[row, q] = FAR


@plain
def _on_cores(lattice: Lattice, rules: Rules, states: States, row: int, fewest: int) -> int:
    """Enter the stages on cores that begin at ``row``. Returns how many downsets were looked at."""
    most = min(rules.cores - fewest, lattice.time.shape[0])
    first, last = _window(lattice, rules, row, fewest, most)
    spare = rules.cores - fewest - 1
    bits, time, cross = lattice.bits, lattice.time[most - 1], lattice.cross
    for k in range(_list_later(bits, states.need[0], row, first, last, spare, states.found)):
        other = states.found[k]
        compute = time[other] - time[row]
        # Nets that are live at one end only are cut, so the transfer is at least the difference.
        least = _load(compute, abs(cross[other] - cross[row]), rules.overlap)
        if least > rules.limit or not _useful(rules, states, row, other, least):
            continue
        transfer = _transfer(lattice.live, bits, lattice.nets, lattice.weight, row, other)
        transfer += cross[row] + cross[other]
        if _load(compute, transfer, rules.overlap) > rules.limit:
            continue
        group = _least_group(lattice, rules, row, other, most, transfer)
        if group > 0:
            compute = lattice.time[group - 1, other] - lattice.time[group - 1, row]
            _enter(lattice, rules, states, row, other, group, _load(compute, transfer, rules.overlap))
    return int(last - first)


@kernel
def _list_later(
    bits: AnyArray, need: Int32Array, row: int, first: int, last: int, spare: int, found: IntArray
) -> int:
    """List the downsets from ``first`` to ``last`` that hold more than ``row`` and need at most ``spare`` cores; how many."""
    count = 0
    for other in range(first, last):
        if need[other] > spare:
            continue
        missing = nb.uint64(0)
        for w in range(bits.shape[0]):
            missing |= bits[w, row] & ~bits[w, other]
        if missing == 0 and other != row:
            found[count] = other
            count += 1
    return count


@plain
def _useful(rules: Rules, states: States, row: int, other: int, load: int) -> bool:
    """Whether a stage on one core or more with at least this load can make a state of ``other`` cheaper."""
    cores, step = states.cores, rules.hosts + 1 if rules.counted else 0
    for q in range(cores.shape[1] - step):
        new = cores[row, q] + 1
        if new < cores[other, q + step]:
            return True
        if new == cores[other, q + step] and max(load, states.worst[row, q]) < states.worst[other, q + step]:
            return True
    return False


@plain
def _load(compute: int, transfer: int, overlap: bool) -> int:
    return max(compute, transfer) if overlap else compute + transfer


@kernel
def _window(lattice: Lattice, rules: Rules, row: int, fewest: int, most: int) -> tuple[int, int]:
    """Which downsets have an area that one stage more can reach, and after which the rest of the cores can be enough."""
    area, limit = lattice.area, rules.limit
    first, last = np.searchsorted(area, area[row]), len(area)
    behind = float(rules.area) * (1 - 1e-9) - (rules.cores - fewest - 1.0) * limit
    behind -= float(rules.hosts) * rules.relief
    if behind > area[row]:
        first = np.searchsorted(area, nb.int64(behind))
    if limit < (rules.area - area[row]) // most:
        last = np.searchsorted(area, area[row] + most * limit + 1)
    return first, last


@plain
def _least_group(lattice: Lattice, rules: Rules, row: int, other: int, most: int, transfer: int) -> int:
    """Fewest cores on which the stage between two downsets keeps the limits of time and memory; 0 if ``most`` are too few."""
    storage = lattice.storage[other] - lattice.storage[row]
    low, high = 1, most + 1
    while low < high:
        c = (low + high) // 2
        compute = lattice.time[c - 1, other] - lattice.time[c - 1, row]
        if _load(compute, transfer, rules.overlap) <= rules.limit and storage <= rules.room[c - 1]:
            high = c
        else:
            low = c + 1
    return 0 if low > most else low


@kernel
def _transfer(live: AnyArray, bits: AnyArray, nets: AnyArray, weight: IntArray, row: int, other: int) -> int:
    """Ticks of the nets with parts in the stage between two downsets and parts outside it, less those live at either end.

    A net that is live at one end only has parts in the stage. One that is live at both was counted twice; it must be looked at.
    """
    total = 0
    for v in range(live.shape[0]):
        both = live[v, row] & live[v, other]
        while both:
            net = 64 * v + lowest(both)
            both &= both - nb.uint64(1)
            touched = nb.uint64(0)
            for w in range(nets.shape[1]):
                touched |= (bits[w, row] ^ bits[w, other]) & nets[net, w]
            total -= weight[net] if touched else 2 * weight[net]
    return total


@kernel
def _on_hosts(lattice: Lattice, rules: Rules, states: States, row: int, fewest: int) -> int:
    """Enter the stages on a host that begin at ``row``. Returns how many downsets were looked at."""
    first = np.searchsorted(lattice.sorted_host, lattice.host[row])
    last = np.searchsorted(lattice.sorted_host, lattice.host[row] + rules.limit + 1)
    for k in range(first, last):
        other = lattice.by_host[k]
        if fewest + states.need[0, other] > rules.cores or lattice.stuck[other] != lattice.stuck[row]:
            continue
        if _list_later(lattice.bits, states.need[0], row, other, other + 1, rules.cores, states.found):
            _enter(lattice, rules, states, row, other, 0, lattice.host[other] - lattice.host[row])
    return int(last - first)


@plain
def _enter(
    lattice: Lattice, rules: Rules, states: States, row: int, other: int, group: int, load: int
) -> None:
    """Extend every state of ``row`` by a stage up to ``other``, on ``group`` cores or, if that is 0, a host.

    Of two ways with equally few cores the one with the smaller largest load is kept.
    """
    width, cores = rules.hosts + 1, states.cores
    for q in range(cores.shape[1]):
        used = cores[row, q]
        if used == FAR or (group == 0 and q % width == rules.hosts):
            continue
        new, after = used + group, q + 1
        if group > 0:
            after = q + (width if rules.counted else 0)
        if after >= cores.shape[1] or new > cores[other, after]:
            continue
        worst = max(load, states.worst[row, q])
        if new == cores[other, after] and worst >= states.worst[other, after]:
            continue
        if new + states.need[after % width, other] > rules.cores:
            continue
        stages = after // width if rules.counted else (new if lattice.time.shape[0] == 1 else 0)
        rest = 0 if other == len(lattice.area) - 1 else 1
        if stages + after % width + rest <= rules.stages:
            cores[other, after] = new
            states.worst[other, after] = worst
            states.origin[other, after] = row
            states.group[other, after] = group
