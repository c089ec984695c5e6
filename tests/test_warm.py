"""`nmsolve doctor --warm`: what it runs leaves no kernel of its modules to compile."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from nmsolve.solvers.warm.kernels import missing_kernels, until_compiled
from nmsolve.solvers.warm.run import warm_one

#: Modules whose kernels are all compiled by one kind of work.
ROOMS = {
    "files": (
        "nmsolve.model.formats.", "nmsolve.model.store.", "nmsolve.model.generators.", "nmsolve.hw.scores", "nmsolve.hw.kernels",
        "nmsolve.hw.between", "nmsolve.hw.summed", "nmsolve.hw.deadlock", "nmsolve.hw.detours", "nmsolve.model.mapping.",
        "nmsolve.solvers.mapping.recheck.fan_out", "nmsolve.heuristics.mapping.external.contraction",
        "nmsolve.heuristics.mapping.external.spilled", "nmsolve.heuristics.mapping.external.thinning",
    ),
    "routing": ("nmsolve.model.routing.", "nmsolve.hw.routing.", "nmsolve.heuristics.routing.", "nmsolve.solvers.routing."),
    "simulation": ("nmsolve.hw.noc.",),
}  # fmt: skip


@pytest.mark.parametrize("work", ROOMS)
def test_work_compiles_all_kernels_of_its_modules(work: str) -> None:
    """A kernel added to one of these modules is in the cache afterwards, or this fails and names it."""
    assert warm_one(work)
    assert [name for name in missing_kernels() if name.startswith(ROOMS[work])] == []


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
