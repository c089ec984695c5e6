"""Entries of routing tables recounted for verification, message by message on walked routes.

Shares no code with :mod:`nmsolve.hw.router_tables`; the rule is in docs/machines.md.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from nmsolve.check.walker import mesh_links, walk
from nmsolve.model.between import BetweenCores
from nmsolve.model.machine import Machine


def walked_entries(cores: BetweenCores, machine: Machine) -> int:
    """Return the most entries that any router needs: messages that start, end, turn or branch there."""
    b, used = mesh_links(machine, "hops"), np.zeros(machine.size, np.int64)
    for rows in cores.condensed():
        for i, (first, last) in enumerate(pairwise(rows.indptr.tolist())):
            p = int(cores.at[rows.source[i]])
            goals = rows.targets[first:last].astype(np.int64)
            goals = goals[goals != p]
            if not len(goals):
                continue
            links = {int(v) for _, link in walk(b, np.full(len(goals), p), goals) for v in link}
            arrives = {int(b.leads[link // 4, link % 4]): link % 4 for link in links}
            leaves: dict[int, set[int]] = {}
            for link in links:
                leaves.setdefault(link // 4, set()).add(link % 4)
            passed = {c for c, d in arrives.items() if leaves.get(c) == {d}}
            for c in ({p} | set(arrives)) - (passed - set(goals.tolist())):
                used[c] += 1
    return int(used.max(initial=0))
