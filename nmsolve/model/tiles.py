"""Tiles of cores that share a router, as SANA-FE has them: numbered down the columns, their cores within them.

A machine says how many cores a tile has by its figure ``cores_per_tile``; a tile is then one of its chips. Without that figure
every core is a tile of its own.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.types import IntArray

#: Name of the figure.
CORES_PER_TILE = "cores_per_tile"


def tile_shape(machine: Machine) -> tuple[int, int]:
    """Return rows and columns of cores in a tile.

    Raises
    ------
    InputError : the figure is not the number of cores of a chip
    """
    figure = machine.figures.get(CORES_PER_TILE)
    if figure is None or figure.value == 1:
        return 1, 1
    if figure.value != machine.cores[0] * machine.cores[1]:
        raise InputError(
            f"{CORES_PER_TILE} is {figure.value:g}",
            machine.name,
            f"{machine.cores[0] * machine.cores[1]}, the cores of a chip, or no such figure",
        )
    return machine.cores


def tile_grid(machine: Machine) -> tuple[int, int]:
    """Return rows and columns of tiles."""
    rows, cols = tile_shape(machine)
    return machine.rows // rows, machine.cols // cols


def tile_and_place(machine: Machine, core: IntArray) -> tuple[IntArray, IntArray]:
    """Return the tile of every core of ``core`` (any shape), and its number within the tile (row by row)."""
    rows, cols = tile_shape(machine)
    row, col = np.divmod(core, machine.cols)
    tile: IntArray = (col // cols) * (machine.rows // rows) + row // rows
    place: IntArray = (row % rows) * cols + col % cols
    return tile, place


def core_at(machine: Machine, tile: IntArray, place: IntArray) -> IntArray:
    """Return the cores at numbers of tiles and places within them, as :func:`tile_and_place` gives them; -1 where none is."""
    (rows, cols), (down, across) = tile_shape(machine), tile_grid(machine)
    column, line = np.divmod(tile, down)
    core: IntArray = (line * rows + place // cols) * machine.cols + column * cols + place % cols
    return np.where((tile >= 0) & (column < across) & (place >= 0) & (place < rows * cols), core, -1)
