"""How kernels that allocate nothing are compiled: without reference counts.

Numba otherwise counts the users of every array that is taken out of a tuple, each time it is (measured: small kernels that take
their state whole ran at half the speed).
"""

from __future__ import annotations

from typing import Any

import numba as nb

#: For a kernel that makes no array and calls none that returns one.
plain: Any = nb.njit(cache=True, nogil=True, _nrt=False)
