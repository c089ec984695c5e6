"""Limits on axon tables as every exact model sees them: who reaches whom, and what the rows need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.mapping.axons import BIG
from nmsolve.model.mapping.problem import MappingProblem


@dataclass(frozen=True)
class AxonMessage:
    """A message with targets: the node that sends it and the nodes it reaches (its own, where a target was merged with it)."""

    source: int
    reaches: tuple[int, ...]


@dataclass(frozen=True)
class AxonData:
    """Limits that could bind, None where unlimited, and the messages that count.

    ``most_sent[u]``: entries that the messages of node u need at most.
    """

    most_in: int | None
    most_out: int | None
    messages: tuple[AxonMessage, ...]
    most_sent: dict[int, int]


def axon_data(problem: MappingProblem) -> AxonData | None:
    """Return the data, or None where no limit could bind."""
    limits = problem.axons
    if limits is None:
        return None
    graph, usable = problem.graph, int(problem.machine.usable.sum())
    messages: list[AxonMessage] = []
    most_sent: dict[int, int] = {}
    for e in range(graph.rows):
        source = int(graph.source[e])
        reaches = set(graph.targets[graph.indptr[e] : graph.indptr[e + 1]].tolist())
        reaches |= {source} if limits.inner[e] else set()
        if reaches:
            messages.append(AxonMessage(source, tuple(sorted(reaches))))
            most_sent[source] = most_sent.get(source, 0) + min(len(reaches), usable)
    most_in, most_out = (None if limit == BIG else limit for limit in (limits.most_in, limits.most_out))
    return AxonData(most_in, most_out, tuple(messages), most_sent)


def axon_terms(problem: MappingProblem) -> int:
    """Estimate of the non-zeros of the rows."""
    if problem.axons is None:
        return 0
    pins = int(np.diff(problem.graph.indptr).sum()) + problem.graph.rows
    return 2 * pins * problem.cores
