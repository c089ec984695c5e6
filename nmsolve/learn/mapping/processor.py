"""One processor as method M1 sees it: its free cores on a line, and the padded graph of the nodes that go onto it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.learn.mapping.allocate import nearest_first
from nmsolve.learn.mapping.features import FEATURES, laplacian
from nmsolve.learn.mapping.numbering import curve, node_order
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True)
class Processor:
    """Cores that nodes may get.

    Attributes
    ----------
    rows, cols : of the processor
    cores : (c,) core numbers, healthy and not taken by other networks, along the curve
    near : (c, c) their places on the line, nearest first (:func:`nearest_first`)
    """

    rows: int
    cols: int
    cores: IntArray
    near: IntArray


def processor(machine: Machine, chip: int, most: int, metric: str = "manhattan") -> Processor:
    """Return a chip of the machine; of its usable cores the first ``most`` along the curve."""
    rows, cols = machine.cores
    cores = np.flatnonzero(machine.usable & (machine.chip_of == chip))
    row, col = np.divmod(cores, machine.cols)
    line = np.argsort(curve(rows, cols)[row % rows, col % cols], kind="stable")[:most]
    cores = cores[line]
    return Processor(rows, cols, cores, nearest_first(*np.divmod(cores, machine.cols), metric))


@dataclass(frozen=True)
class View:
    """The nodes of one processor in the order in which the network sees them.

    Attributes
    ----------
    row : (k,) every node's row of the padded graph
    laplacian, features : (N, N) and (N, 7) float32
    """

    row: IntArray
    laplacian: FloatArray
    features: FloatArray


def view(
    place: Processor, size: int, axes: FloatArray, traffic: FloatArray, features: FloatArray, degrees: float
) -> View:
    """Return the view of k nodes, k <= c <= ``size``, laid out by ``axes`` (2, k) turned by an angle.

    The node in the middle of the i-th of c parts of the line has the row in the middle of the i-th of c parts of all rows.
    """
    k, count = len(traffic), len(place.cores)
    row = np.empty(k, np.int64)
    row[node_order(axes, place.rows, place.cols, degrees)] = ((2 * np.arange(k) + 1) * size) // (2 * count)
    matrix, padded = np.zeros((size, size)), np.zeros((size, FEATURES))
    matrix[np.ix_(row, row)], padded[row] = traffic, features
    return View(row, laplacian(matrix).astype(np.float32), padded.astype(np.float32))
