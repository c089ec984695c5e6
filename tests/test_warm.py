"""`nmsolve doctor --warm`: what is done with files leaves no kernel of readers, writers, generators and checks to compile."""

from __future__ import annotations

import numba as nb
import numpy as np

from nmsolve.solvers.mapping.warm import FILES, missing_kernels, until_compiled, warm_one

#: Modules whose kernels are all compiled by work with files.
ROOMS = (
    "nmsolve.model.formats.", "nmsolve.model.store.", "nmsolve.model.generators.", "nmsolve.hw.scores", "nmsolve.hw.kernels",
    "nmsolve.hw.between", "nmsolve.hw.summed", "nmsolve.hw.deadlock", "nmsolve.hw.detours", "nmsolve.model.mapping.",
    "nmsolve.solvers.mapping.recheck.fan_out", "nmsolve.heuristics.mapping.external.contraction",
    "nmsolve.heuristics.mapping.external.spilled", "nmsolve.heuristics.mapping.external.thinning",
)  # fmt: skip


def test_work_with_files_compiles_all_its_kernels() -> None:
    """A kernel added to one of these modules is in the cache afterwards, or this fails and names it."""
    assert warm_one(FILES)
    assert [name for name in missing_kernels() if name.startswith(ROOMS)] == []


def test_a_run_is_repeated_until_it_compiles_nothing() -> None:
    """A phase that is only reached in the third run has its kernel compiled, and a fourth run finds nothing to do."""
    reached = []

    def kernel(k: int):
        return nb.njit(lambda x: x + k)

    def run() -> None:
        reached.append(len(reached))
        if reached[-1] < 3:
            kernel(reached[-1])(np.int64(1))

    until_compiled(run)
    assert reached == [0, 1, 2, 3]
