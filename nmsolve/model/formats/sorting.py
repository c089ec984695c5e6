"""Connections in the order of a file, to rows in the order of nodes: what readers of lists of connections share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nmsolve.model.network import Connections

if TYPE_CHECKING:
    from nmsolve.model.store.block import Records

#: What a reader may hold at a time (bytes), beside the columns of its nodes; the rest is in a scratch folder.
MEMORY = 2**29


def rows_of(records: Iterable[Records], rows: int, drop_loops: bool = False) -> Iterator[Connections]:
    """Yield the connections of rows ``0 .. rows - 1`` from records in any order; equal ones are added up.

    Raises
    ------
    InputError : the scratch disk is full; whatever ``records`` raises
    """
    from nmsolve.model.store.regroup import regrouped
    from nmsolve.model.store.scratch import Scratch

    with Scratch() as scratch:
        for block in regrouped(records, rows, memory=MEMORY, scratch=scratch, drop_loops=drop_loops):
            synapses = block.size if len(block.size) else None
            yield Connections(block.indptr, block.neighbour, block.weight, synapses)
