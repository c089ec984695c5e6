"""Slices: at most this many neurons of a population on a core, as one more resource of every mapping problem.

Tools of SpiNNaker cut a population into slices of at most ``max_atoms_per_core`` neurons. A constraint of kind ``slices`` says
so here. Its nodes take what they count of a resource of its own, of which every core has ``most``; so whatever keeps to
capacities keeps to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.constraints import SLICES, SideConstraint
from nmsolve.model.types import IntArray

#: Most constraints of this kind: each is a column of sizes.
MOST_SLICES = 256


class Slice(NamedTuple):
    """``resource``: its name; ``size`` (n,) int64 what every node takes of it; ``most``: what a core has."""

    resource: str
    size: IntArray
    most: int


def slices_of(graph: LogicGraph, constraints: Sequence[SideConstraint]) -> tuple[Slice, ...]:
    """Return the resources that the constraints of kind ``slices`` stand for.

    A node counts as many neurons as its resource ``neurons`` says, as 1 without that resource.

    Raises
    ------
    InputError : too many of them, a limit below 1, two of one name, or a name that the graph has for a resource
    """
    found = [c for c in constraints if c.kind == SLICES]
    if len(found) > MOST_SLICES:
        raise InputError(f"{len(found)} constraints of kind {SLICES!r}", graph.name, f"at most {MOST_SLICES}")
    neurons = np.ones(graph.n, np.int64)
    if found and "neurons" in graph.resources:
        neurons = graph.sizes[:, graph.resources.index("neurons")]
    out: dict[str, Slice] = {}
    for c in found:
        resource = f"neurons of {c.name}"
        if not 1 <= c.most < 2**31:
            raise InputError(f"constraint {c.name!r}: {c.most} neurons per core", graph.name, "1 to 2^31")
        if resource in out or resource in graph.resources:
            raise InputError(
                f"two resources are called {resource!r}", graph.name, "another name of the constraint"
            )
        size = np.zeros(graph.n, np.int64)
        nodes = np.asarray(c.nodes, np.int64)
        size[nodes] = neurons[nodes]
        out[resource] = Slice(resource, size, c.most)
    return tuple(out.values())


def populations(graph: LogicGraph) -> Mapping[str, tuple[int, ...]]:
    """Return the nodes of every population by its name: of one kind; else with equal ids up to the last ``/``."""
    names = [
        "" if graph.ids is None or not isinstance(v, str) else v.rpartition("/")[0] for v in graph.ids or ()
    ]
    if graph.kinds is not None:
        names = [str(graph.kinds.names[k]) for k in graph.kinds.of.tolist()]
    out: dict[str, list[int]] = {}
    for u, name in enumerate(names):
        if name:
            out.setdefault(name, []).append(u)
    return {name: tuple(nodes) for name, nodes in out.items()}
