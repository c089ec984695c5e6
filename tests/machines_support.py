"""Machines of unlike processors whose costs can be worked out by hand."""

from __future__ import annotations

import copy
from typing import Any

from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.machine_file import processors_from_table

#: A host of 1 GMAC/s, 1 Gelement/s, 1 GB/s, 1 us a launch; an accelerator ten times as fast that needs 2 us a launch and 5 us
#: to be interrupted; a link of 1 GB/s and 3 us.
TWO: dict[str, Any] = {
    "name": "two",
    "memory": [{"name": "ram"}, {"name": "own"}],
    "processor": [
        {
            "name": "cpu", "kind": "host", "memory": "ram", "bandwidth": 1, "launch": 1, "energy_byte": 2,
            "widths": {w: {"macs": 1, "elements": 1, "energy": 3} for w in ("float32", "int64", "int8")},
        },
        {
            "name": "acc", "kind": "accelerator", "memory": "own", "bandwidth": 10, "launch": 2, "interrupt": 5, "energy_byte": 1,
            "widths": {w: {"macs": 10, "elements": 10, "energy": 1} for w in ("float32", "int8")},
        },
    ],
    "link": [{"name": "bus", "between": ["ram", "own"], "bandwidth": 1, "latency": 3, "energy_byte": 4}],
}  # fmt: skip


def table(**changes: Any) -> dict[str, Any]:
    """The table of the two, with entries changed by path: ``processor__1__launch=0``."""
    out = copy.deepcopy(TWO)
    for path, value in changes.items():
        at: Any = out
        *way, last = path.split("__")
        for key in way:
            at = at[int(key)] if key.isdigit() else at[key]
        at[last] = value
    return out


def two(**changes: Any) -> ProcessorMachine:
    """The machine of such a table."""
    return processors_from_table(table(**changes), "two")
