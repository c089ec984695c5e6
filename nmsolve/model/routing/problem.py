"""The routing problem, frozen and solver-ready: a route for every flow, and turns that leave no cycle of channels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, link_works, require_links
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import BoolArray, IntArray

#: Who decides the next link in a router: the flow, the core it comes from, or the core it goes to.
FORMS = ("flow", "source", "destination")


@dataclass(frozen=True, eq=False)
class RoutingProblem:
    """Choose a route for every flow and the turns to prohibit, so that channels depend on each other in no cycle (M1.9).

    Attributes
    ----------
    machine, flows : where, and what
    objective : of ``ROUTING_OBJECTIVES``, minimised one after the other
    form : ``flow``: every flow has its own route; ``source``: the flows of one core use one tree (no core is entered over two
        links by what one core sends); ``destination``: all that goes to one core leaves a router over one link
    detour : number of links by which a route may exceed a shortest one (0: shortest routes only)
    table_limit : most entries in the routing table of any core (:func:`nmsolve.model.routing.check.table_entries`)
    turns : turns that routes may take, or None: any, as long as no cycle of channels comes of it
    channels : virtual channels per link, V; channel ``V * link + v``
    """

    machine: Machine
    flows: Flows
    objective: tuple[str, ...] = ("max-link", "total-link", "turns")
    form: str = "flow"
    detour: int = 0
    table_limit: int | None = None
    turns: TurnSet | None = None
    channels: int = 1

    def __post_init__(self) -> None:
        machine, flows = self.machine, self.flows
        require_links(machine)
        if not self.objective or len(set(self.objective)) < len(self.objective):
            raise InputError(f"objectives {self.objective}", "", "one or more, each once")
        for name in self.objective:
            if name not in ROUTING_OBJECTIVES:
                raise InputError(
                    f"unknown routing objective {name!r}", "", "one of " + ", ".join(ROUTING_OBJECTIVES)
                )
        if self.form not in FORMS:
            raise InputError(
                f"unknown form of routing tables {self.form!r}", "", "one of " + ", ".join(FORMS)
            )
        if self.detour < 0 or self.channels < 1:
            raise InputError(
                f"detour {self.detour}, {self.channels} channels", "", "detour >= 0, channels >= 1"
            )
        if self.table_limit is not None and self.table_limit < 0:
            raise InputError(f"table limit {self.table_limit}", "", "a number >= 0")
        for what, cores in (("source", flows.source), ("target", flows.targets)):
            if len(cores) and not 0 <= int(cores.min()) <= int(cores.max()) < machine.size:
                raise InputError(
                    f"a flow has a {what} core that does not exist", machine.name, f"0..{machine.size - 1}"
                )
        if self.turns is not None and len(self.turns.allowed) != machine.size:
            raise InputError(
                f"turns for {len(self.turns.allowed)} cores", machine.name, f"{machine.size} cores"
            )
        if self.form == "destination" and flows.multicast:
            raise InputError("multicast flows with tables by destination", "", "form flow or source")

    @property
    def integral(self) -> bool:
        """True if all link loads are whole numbers."""
        return self.flows.integral

    @cached_property
    def distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Target cores (T,), rising, and (T, P) links of a shortest route from every core to each of them; -1: none."""
        goals = np.unique(self.flows.targets).astype(np.int64)
        return goals, hop_distances(self.machine, goals)

    @cached_property
    def content_hash(self) -> str:
        """Content hash (hex, 16 digits)."""
        turns = None if self.turns is None else self.turns.allowed.tobytes()
        parts = (
            self.machine.hash, self.flows.hash, self.objective, self.form, self.detour, self.table_limit, turns, self.channels,
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def hop_distances(machine: Machine, targets: np.ndarray | None = None) -> np.ndarray:
    """(T, P) int64 number of links of a shortest route from every core to each of ``targets`` (all cores if None); -1: none."""
    goals = np.arange(machine.size) if targets is None else np.asarray(targets, np.int64)
    far: IntArray = _breadth_first(goals, link_ends(machine), link_works(machine))
    return far


@kernel
def _breadth_first(goals: IntArray, ends: IntArray, works: BoolArray) -> IntArray:
    """Distances to every goal, walking links backwards."""
    cores = ends.shape[0] // 4
    out, queue = np.full((goals.shape[0], cores), -1, np.int64), np.empty(cores, np.int64)
    for row in range(goals.shape[0]):
        far, tail, head = out[row], 1, 0
        far[goals[row]], queue[0] = 0, goals[row]
        while head < tail:
            v = queue[head]
            head += 1
            for d in range(4):
                u = ends[4 * v + (d ^ 1)]
                if u >= 0 and works[4 * u + d] and far[u] < 0:
                    far[u], queue[tail] = far[v] + 1, u
                    tail += 1
    return out
