"""Long arrays of random numbers drawn in pieces.

A generator draws several arrays one after the other, each as long as the network has synapses, and the order of the
draws decides the network. Pieces of *all* arrays are needed together. So the random numbers are drawn twice: once
to see where each array begins (:func:`mark`), and then by one generator per array, piece by piece. NumPy fills an array
number by number, hence the pieces are the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from nmsolve.model.network import BLOCK
from nmsolve.model.types import AnyArray, IntArray

Draw = Callable[[np.random.Generator, int], AnyArray]


def mark(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator that goes on where ``rng`` is now; ``rng`` itself stays there."""
    twin = np.random.Generator(type(rng.bit_generator)())
    twin.bit_generator.state = rng.bit_generator.state
    return twin


def pieces(total: int, length: int = BLOCK) -> Iterator[int]:
    """``total`` cut into pieces of at most ``length``."""
    for begin in range(0, total, length):
        yield min(length, total - begin)


def skip(rng: np.random.Generator, draw: Draw, total: int) -> np.random.Generator:
    """Move ``rng`` over an array of ``total`` numbers; returns a generator at its beginning."""
    begin = mark(rng)
    for length in pieces(total):
        draw(rng, length)
    return begin


def row_blocks(degree: IntArray, most: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Consecutive rows ``(first, last)`` with about ``most`` entries in all (and at most ``most`` rows)."""
    end = np.cumsum(degree + 1)
    first = 0
    while first < len(degree):
        before = int(end[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(end, before + most, side="right")))
        yield first, last
        first = last
