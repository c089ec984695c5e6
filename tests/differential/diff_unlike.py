"""Cores that are not alike: capacities of their own (``[[core]]``) and what other networks hold (``--occupied``).

Keys of a case's ``machine``: ``core_capacity`` and ``held``, resource -> one number per core. Nothing of the package is imported.
"""

from __future__ import annotations

import random
from typing import Any

Case = dict[str, Any]
#: Capacities that count entries of tables; cores that differ in them are refused unless no table can be full.
TABLES = ("axons_in", "axons_out", "table_entries")
#: Share of the cases with such a capacity that have unlike ones.
TABLES_SHARE = 0.4


def make_unlike(rng: random.Random, case: Case) -> None:
    """Change a case so that its cores differ in one resource or two."""
    machine, n = case["machine"], case["n"]
    capacity, size = machine["capacity"], _size(machine)
    broken = machine["faulty_cores"] + machine["taken_cores"]
    if rng.random() < 0.35 and n <= size - len(broken):
        _one_per_core(rng, case, size)
    else:
        if not any(r in capacity for r in case["sizes"]):
            capacity["neurons"] = rng.randint(1, n)
        named = [r for r in case["sizes"] if r in capacity]
        for r in rng.sample(named, rng.randint(1, len(named))):
            shares = rng.choice([(0, 1), (0.5, 1, 1), (0, 0.5, 1, 1.5), (1, 1, 2), (0.6, 1.2)])
            machine["core_capacity"][r] = [int(capacity[r] * rng.choice(shares) + 0.5) for _ in range(size)]
    case["classes"].append("unlike cores")
    if rng.random() < 0.4:
        _held(rng, case, size, broken)
    for r in TABLES:
        if r in capacity and rng.random() < TABLES_SHARE:
            machine["core_capacity"][r] = _table(rng, capacity[r], size)


def _table(rng: random.Random, stated: int, size: int) -> list[int]:
    """Unlike tables around what ``[capacity]`` says, or alike ones of another size."""
    low = rng.choice([stated, stated + 6, max(0, stated - 3)])
    spread = rng.choice([0, 3, 9])
    return [low + rng.randint(0, spread) for _ in range(size)]


def _size(machine: Case) -> int:
    out: int = machine["chips"][0] * machine["chips"][1] * machine["cores"][0] * machine["cores"][1]
    return out


def _one_per_core(rng: random.Random, case: Case, size: int) -> None:
    """Two nodes fit nowhere, and some cores are too small for some nodes or for all."""
    machine = case["machine"]
    case["sizes"]["neurons"] = [rng.randint(3, 5) for _ in range(case["n"])]
    machine["capacity"]["neurons"] = 5
    machine["core_capacity"]["neurons"] = [rng.choice([5, 5, 5, 4, 3, 0]) for _ in range(size)]
    case["classes"].append("one per core, some too small")


def _held(rng: random.Random, case: Case, size: int, broken: list[int]) -> None:
    """Loads of other networks, now and then more than a core holds, now and then on cores that are all alike otherwise."""
    machine, n = case["machine"], case["n"]
    own = machine["core_capacity"]
    named = [r for r in case["sizes"] if r in machine["capacity"]]
    if rng.random() < 0.3:
        own.clear()
    wild = rng.random() < 0.25
    for r in rng.sample(named, rng.randint(1, len(named))):
        room = own.get(r, [machine["capacity"][r]] * size)
        load = [rng.choice([0, 0, 1, 2, rng.randint(0, n)]) for _ in range(size)]
        if not wild:  # what a mapped network can hold
            load = [0 if p in broken else min(a, b) for p, (a, b) in enumerate(zip(load, room, strict=True))]
        machine["held"][r] = load
    case["classes"].append("held")
