"""What of a graph and its machine has no effect: limits that are not in force because two names differ, weights near nothing."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from nmsolve.model.bound import MARGIN
from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.axons import AXONS_IN, AXONS_OUT
from nmsolve.model.mapping.problem import TABLE_ENTRIES

#: Capacities that count messages, whatever the nodes state.
OF_MESSAGES = (AXONS_IN, AXONS_OUT, TABLE_ENTRIES)
KINDS_PER_CORE = "kinds_per_core"
#: A lower limit, which no method keeps.
LEAST = re.compile(r"(at[_-]?least|least|lowest|min|minimum|minimal)[_-]", re.IGNORECASE)
#: Names at least as similar as this may be meant for each other.
SIMILAR = 0.8
#: Less traffic has bounds that lose 0.1 % and more to :data:`MARGIN`.
SMALL = 1000 * MARGIN


def say_idle(graph: LogicGraph, machine: Machine) -> None:
    """Warn of limits of a machine that limit nothing in a graph, resources that nothing limits, cores that are cut off, and
    weights that bounds cannot tell from 0.

    Capacities with a source are those of a chip, which every graph uses some of: they count where a resource of nearly the same
    name is not limited.

    Raises
    ------
    InputError : a capacity that is a lower limit, or ``kinds_per_core`` among the capacities
    """
    _say_small(graph)
    resources = graph.resources
    idle = [r for r in machine.capacity if r not in resources and r not in OF_MESSAGES]
    _refuse(idle, machine)
    free = [r for r in resources if r not in machine.capacity]
    own = [r for r in machine.capacity if _own(machine, r)]
    said = [r for r in idle if r in own or any(_near(r, other) for other in free)]
    if said:
        names = ", ".join(resources) or "no sizes"
        capacity = "capacity" if len(said) == 1 else "capacities"
        limit = "limits" if len(said) == 1 else "limit"
        doubtful(
            f"{capacity} {', '.join(said)} {limit} nothing here; the nodes state {names}",
            machine.name, "capacities of resources that the nodes state",
        )  # fmt: skip
    elif own and free:
        what = (
            f"nothing limits {', '.join(free)} of the nodes; the machine limits {', '.join(machine.capacity)}"
        )
        doubtful(what, machine.name, "a capacity of every resource that the nodes state")
    if machine.kinds_per_core is not None and graph.kinds is None and _own(machine, KINDS_PER_CORE):
        doubtful(
            f"{KINDS_PER_CORE} limits nothing here; the nodes state no kind", machine.name, "nodes of a kind"
        )
    lost = [p for p in machine.cut_off if machine.healthy[p]]
    if lost:
        at = ", ".join(str(list(divmod(p, machine.cols))) for p in lost[:5])
        at += f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        cores = f"core {at} is" if len(lost) == 1 else f"cores {at} are"
        doubtful(
            f"{cores} not used, since dead links part {'it' if len(lost) == 1 else 'them'} from the other {machine.usable.sum()}",
            machine.name, "links that work both ways between any two cores",
        )  # fmt: skip


def _say_small(graph: LogicGraph) -> None:
    """Bounds keep :data:`~nmsolve.model.bound.MARGIN` back: it must be nothing beside the traffic."""
    traffic = float(graph.rate.sum())
    if 0 < traffic < SMALL:
        what = f"all traffic together is {traffic:.3g}, and bounds are lower by {MARGIN:g} for rounding"
        doubtful(what, graph.name, f"weights in a unit in which they add up to {SMALL:g} or more")


def _refuse(idle: list[str], machine: Machine) -> None:
    where = f"{machine.name}: capacity"
    for r in idle:
        if LEAST.match(r):
            raise InputError(
                f"{r} is a lower limit of what a core holds", where, "upper limits: the most that it holds"
            )
        if r == KINDS_PER_CORE:
            raise InputError(
                f"{r} among the capacities",
                where,
                f"{r} = ... outside [capacity]: it is no resource of the nodes",
            )


def _own(machine: Machine, name: str) -> bool:
    """Return True if the user stated this limit: it has no source, as those of chips do."""
    figure = machine.figures.get(f"capacity.{name}")
    return figure is None or not figure.source


def _near(a: str, b: str) -> bool:
    """Return True if the names are equal but for case, plural and separators, or similar."""
    a, b = (re.sub(r"[^a-z0-9]", "", name.lower()).removesuffix("s") for name in (a, b))
    return a == b or SequenceMatcher(None, a, b).ratio() >= SIMILAR
