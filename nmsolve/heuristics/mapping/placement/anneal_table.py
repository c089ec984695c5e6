"""Kernels on position tables (separable distances): annealed moves and swaps, and the final descent."""

from __future__ import annotations

from nmsolve.heuristics.mapping.placement.proposals import anneal, descend
from nmsolve.heuristics.mapping.placement.tables import Tabled, make_swap, table_price
from nmsolve.model.compiled import plain
from nmsolve.model.types import FloatArray, IntArray


@plain
def anneal_table(
    s: Tabled, order: IntArray, first: int, visits: int, tries: int, temperature: float, reach: int, rng: IntArray,
    quantiles: FloatArray, stats: FloatArray,
) -> None:  # fmt: skip
    """:func:`~nmsolve.heuristics.mapping.placement.proposals.anneal` in float32; ``stats[2]`` counts entries updated."""
    anneal(s, table_price, make_swap, order, first, visits, tries, temperature, reach, rng, quantiles, stats)


@plain
def descend_table(s: Tabled, first: int, end: int, reach: int, least: float) -> int:
    """:func:`~nmsolve.heuristics.mapping.placement.proposals.descend`."""
    return descend(s, table_price, make_swap, first, end, reach, least)  # type: ignore[no-any-return]
