"""How the kernels of the simulator are compiled.

They allocate nothing, so they go without reference counts: numba would otherwise count the users of some forty arrays for every
flit (measured: four times slower). Small pieces are put in where they are called, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba as nb

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
#: A kernel that is called from Python.
kernel: Callable[[F], F] = nb.njit(**_OPTIONS)
#: A part of kernels, compiled into each of them.
piece: Callable[[F], F] = nb.njit(**_OPTIONS, inline="always")
