"""How the kernels of the simulator are compiled.

They allocate nothing, so they go without reference counts: numba would otherwise count the users of some forty arrays for every
flit (measured: four times slower). Small pieces are put in where they are called, for the same reason.
"""

from __future__ import annotations

from nmsolve.model.compiled import compiled

#: A kernel that is called from Python.
kernel = compiled(error_model="numpy", _nrt=False)
#: A part of kernels, compiled into each of them.
piece = compiled(error_model="numpy", _nrt=False, inline="always")
