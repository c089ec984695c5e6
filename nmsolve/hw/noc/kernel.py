"""How the kernels of the simulator are compiled.

They allocate nothing, so they go without reference counts: numba would otherwise count the users of some forty arrays for every
flit (measured: four times slower). Pieces become part of the machine code of those that call them, so that no call passes the
state; put in before types are known, they took half as long again to compile.
"""

from __future__ import annotations

from nmsolve.model.compiled import compiled

#: A kernel.
kernel = compiled(error_model="numpy", _nrt=False)
#: A part of kernels: of their machine code, so that nothing is passed, but compiled once.
piece = compiled(error_model="numpy", _nrt=False, forceinline=True)
