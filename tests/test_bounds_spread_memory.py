"""The bound ``spread`` within a memory budget: its rows stay within what is left, and what it proves is confirmed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.errors import NmsolveError
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.spread.bound import (
    ENTRY_BYTES,
    FEWEST,
    SPARE,
    spread_bounds,
)
from nmsolve.solvers.mapping.bounds.spread.form import form_bytes
from nmsolve.solvers.mapping.bounds.spread.packing import Packing
from nmsolve.solvers.mapping.bounds.spread.rows import Rows
from nmsolve.solvers.mapping.bounds.spread.sets import Sets

MIB = 2**20


def board(nodes: int, side: int) -> MappingProblem:
    graph = generate("mesh-geo", nodes=nodes, side=side, seed=2)
    return MappingProblem(graph, load_machine(f"mesh:{side}x{side}"), node_limit=1)


def bounds(problem: MappingProblem, rounds: int, memory: Callable[[], int | None]) -> list[Bound]:
    """What is proved within this many rounds, which are its seconds."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > rounds

    context = BoundContext(should_stop=stop, seconds=rounds, clock=lambda: float(asked), memory=memory)
    return list(spread_bounds(problem, context))


def measured(room: int | None) -> None:
    """Print how much more is held at the peak of a search than before it (``room`` MiB may be), and what is proved."""
    from nmsolve.model.host.memory import own_peak
    from nmsolve.solvers.search.memory import held_now, return_freed

    return_freed()
    bounds(board(60, 8), 8, lambda: None)
    problem = board(1000, 32)
    before, asked = max(held_now(), own_peak()), 0

    def left() -> int | None:
        """Enough to begin with; then others take most of it."""
        nonlocal asked
        asked += 1
        return 2**40 if asked == 1 else before + room * MIB - held_now() if room else None

    found = bounds(problem, 16, left)
    text = certificates_to_json(problem, found[-1:])
    print(json.dumps({"peak": own_peak() - before, "certificates": text}))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at processes through /proc")
def test_rows_and_certificate_stay_within_what_is_left() -> None:
    """In a process of its own, whose peak is known: below the limit with it, far above it without; less is proved, but it is."""
    problem, peaks, values = board(1000, 32), [], []
    for room in (40, None):
        code = f"import test_bounds_spread_memory as here; here.measured({room})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
        told = json.loads(done.stdout)
        (bound,) = certificates_from_json(told["certificates"])
        assert check_bound(problem, bound).ok
        peaks.append(told["peak"] / MIB)
        values.append(bound.value)
    assert peaks[0] <= 40 and peaks[1] > 60, peaks
    assert 0 < values[0] < values[1]


def test_too_little_memory_is_said() -> None:
    """One byte less than the network and the fewest rows take; with these the bound is found."""
    problem = board(60, 8)
    need = form_bytes(problem) + SPARE + ENTRY_BYTES * FEWEST
    with pytest.raises(NmsolveError, match=r"take \d+ MiB, \d+ MiB of --memory are left"):
        bounds(problem, 5, lambda: need - 1)
    (*_, bound) = bounds(problem, 20, lambda: need)
    assert check_bound(problem, bound).ok and bound.value > 0


def test_memory_that_others_take_away_costs_rows_of_small_shares() -> None:
    """The largest shares stay, as many as fit together; their sets stay with them."""
    source = np.array([0, -1, 1, -1])
    edge, load = np.arange(9, dtype=np.int32), np.ones(9, np.float32)
    rows = Rows(source, np.array([3, 0, 2, 0]), np.array([0, 3, 5, 7, 9]), edge, load)
    wide = np.zeros((2, 16), np.int64)
    sets = Sets(wide, np.zeros((2, 16, 16), np.int16), np.array([7, 8]), np.ones(2), wide)
    packing = Packing(
        None, *[np.zeros(0)] * 4, rows, sets, np.array([0.1, 3.0, 2.0, 1.0]), np.zeros(4, np.int64)
    )  # type: ignore[arg-type]
    packing.shrink(6)
    assert packing.rows.source.tolist() == [-1, 1, -1] and packing.sets.cost.tolist() == [7, 8]
    packing.shrink(5)
    assert packing.rows.source.tolist() == [-1, 1] and packing.sets.cost.tolist() == [7]
    assert packing.rows.edge.tolist() == [3, 4, 5, 6] and packing.entries == 4


def test_long_arrays_are_the_same_text() -> None:
    """Of whole numbers and of others, longer than what is turned into text at once, or not."""
    for long in (3, 65_536, 65_537, 200_000):
        whole = np.random.default_rng(long).integers(-(2**53), 2**53, long)
        certificate = {"a": whole, "b": whole / 3, "c": 1}
        text = certificates_to_json(board(60, 8), [Bound(1.0, "spread", "full", certificate)])
        (row,) = json.loads(text)["bounds"]
        assert row["certificate"] == {"a": whole.tolist(), "b": (whole / 3).tolist(), "c": 1}
