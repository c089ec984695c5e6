"""From layers to a pipeline problem: tile quantisation, transfers, storage, figures of machines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.heuristics.pipeline.baselines import RULES, best_by_hand, equal_stages, one_group, proportional
from nmsolve.hw.machines import load_machine
from nmsolve.hw.pipeline.stages import objective
from nmsolve.hw.pipeline.tiles import LARGEST_TABLE, layer_times, pipeline_problem
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.operators.layers import Layers
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.figures import ASSUMED, CoreFigures, machine_figures
from nmsolve.model.pipeline.problem import Tensors

#: One MAC, one element and one byte per microsecond, tiles of 4 channels by 2 rows.
SLOW = CoreFigures(1e6, 1e6, 1e6, 4, 2)


def layers(
    macs: list[int], channels: list[int], rows: list[int], elements: list[int] | None = None
) -> Layers:
    """A chain; layer k makes a tensor of ``10 * (k + 1)`` bytes and has ``k`` bytes of weights."""
    count = len(macs)
    numbers = np.arange(count)
    return Layers(
        name="chain",
        names=tuple(f"l{k}" for k in range(count)),
        kinds=("Conv",) * count,
        operators=numbers,
        macs=np.array(macs),
        elements=np.zeros(count, np.int64) if elements is None else np.array(elements),
        weight_bytes=numbers,
        channels=np.array(channels),
        rows=np.array(rows),
        tensors=Tensors(
            numbers[:-1], np.arange(count), numbers[1:], np.zeros(count - 1), 10.0 * (numbers[:-1] + 1)
        ),
    )


def test_times_follow_tiles() -> None:
    """10 x 5 results are 3 x 3 tiles of 8 results each; at 2 MACs per result a tile takes 16 us, one at the edge too."""
    times = layer_times(layers([100], [10], [5]), SLOW, 10)
    assert times[0].tolist() == [144, 80, 48, 48, 32, 32, 32, 32, 16, 16]


def test_narrow_layers_have_narrow_tiles() -> None:
    """One result is one tile of one result: no waste, and no gain from more cores. Elements take time like MACs."""
    times = layer_times(layers([7, 0], [1, 1], [1, 1], [0, 5]), SLOW, 3)
    assert times.tolist() == [[7, 7, 7], [5, 5, 5]]


@given(
    st.lists(st.tuples(*[st.integers(0, 10**12), *[st.integers(1, 5000)] * 2]), min_size=1, max_size=5),
    st.integers(1, 40),
)
@settings(max_examples=50, deadline=None)
def test_times_lie_between_even_shares_and_one_core(rows: list[tuple[int, int, int]], cores: int) -> None:
    """Never faster than MACs shared evenly, never slower on more cores, and c cores never beat one by more than c."""
    chain = layers(*(list(column) for column in zip(*rows, strict=True)))
    times = layer_times(chain, ASSUMED, cores)
    shares = 1e6 * chain.macs[:, None] / ASSUMED.mac_rate / np.arange(1, cores + 1)
    assert (times >= shares * (1 - 1e-12)).all()
    assert (np.diff(times, axis=1) <= 0).all()
    assert (times * np.arange(1, cores + 1) >= times[:, :1] * (1 - 1e-12)).all()


def test_problem_of_layers() -> None:
    """Transfers by bandwidth, storage by weights and results (views make none), memory by the figures unless another is given."""
    figures = CoreFigures(1e6, 1e6, 2e6, 4, 2, memory=64.0)
    problem = pipeline_problem(layers([8, 8, 8], [4] * 3, [2] * 3), figures, 2)
    assert problem.tensors.time.tolist() == [5, 10]
    assert problem.storage.tolist() == [10, 21, 2]
    view = pipeline_problem(layers([8, 0, 8], [4] * 3, [2] * 3), figures, 2)
    assert view.storage.tolist() == [10, 1, 2]
    assert (problem.memory, problem.cores, problem.stages, problem.split) == (64, 2, 2, "chain")
    assert pipeline_problem(layers([8], [1], [1]), figures, 2, memory=7.0).memory == 7
    with pytest.raises(InputError, match="at most"):
        pipeline_problem(layers([8], [1], [1]), figures, LARGEST_TABLE + 1)


def test_baselines_are_plans() -> None:
    """One group has every core; equal stages have about equal work, all cores and no empty stage."""
    problem = pipeline_problem(layers([80, 80, 80, 80, 0, 320], [64] * 6, [64] * 6), SLOW, 8)
    whole, parts = one_group(problem), equal_stages(problem, 3)
    assert plan_complaint(problem, whole) is None and whole.cores.tolist() == [8]
    assert plan_complaint(problem, parts) is None
    assert parts.stage.tolist() == [0, 0, 0, 1, 1, 2] and parts.cores.tolist() == [3, 3, 2]
    assert objective(problem, whole) == float(problem.time[:, 7].sum())
    still = pipeline_problem(layers([0, 0], [1, 1], [1, 1]), SLOW, 8)
    assert equal_stages(still, 5).stage.tolist() == [0, 0]


@given(st.lists(st.integers(0, 500), min_size=1, max_size=9), st.integers(1, 12), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_cuts_by_hand_are_plans_and_the_best_of_all_numbers_of_stages(
    macs: list[int], cores: int, most: int
) -> None:
    """Every layer in order, every core in use, cores by work; no number of stages is better than the one that is named."""
    n = len(macs)
    problem = replace(pipeline_problem(layers(macs, [3] * n, [5] * n), SLOW, cores), stages=most)
    for rule, cut in RULES.items():
        values = []
        for stages in range(2, min(n, cores, most) + 1):
            stage = cut(problem.time[:, 0], stages)
            assert stage[0] == 0 and set(np.diff(stage).tolist()) <= {0, 1} and stage[-1] < stages
            plan = proportional(problem, stage)
            work = np.bincount(stage, problem.time[:, 0])
            assert plan.cores.sum() == cores and plan.cores.min() >= 1
            order = np.argsort(work, kind="stable")
            assert (np.diff(plan.cores[order]) >= -1).all()
            values.append(objective(problem, plan))
        best, wrong = best_by_hand(problem, rule)
        assert wrong is None
        assert objective(problem, best) == min(values, default=objective(problem, one_group(problem)))


def test_figures_of_machines() -> None:
    """A preset's figures, a plain mesh's assumed ones, and one message that names everything missing."""
    wormhole = machine_figures(load_machine("wormhole"))
    assert wormhole.memory == 1464 * 1024 and not wormhole.assumed
    assert machine_figures(None).assumed and machine_figures(load_machine("mesh:4x4")).assumed
    with pytest.raises(InputError, match=r"mac_rate \(MACs/s\).*tile_rows"):
        machine_figures(load_machine("loihi1"))
    part = Machine("own", (1, 1), (2, 2), figures={"mac_rate": Figure(1e9)})
    with pytest.raises(InputError, match="bandwidth") as error:
        machine_figures(part)
    assert "mac_rate" not in str(error.value)
    wrong = replace(
        load_machine("wormhole"),
        figures={**load_machine("wormhole").figures, "bandwidth": Figure(64, "GB/s")},
    )
    with pytest.raises(InputError, match="unit of bandwidth is 'GB/s'"):
        machine_figures(wrong)


@pytest.mark.parametrize("wrong", [{"mac_rate": 0.0}, {"bandwidth": float("inf")}, {"tile_rows": 0}])
def test_wrong_figures_are_refused(wrong: dict[str, float]) -> None:
    """Rates must be finite and above 0, tiles hold something."""
    right = {"mac_rate": 1.0, "element_rate": 1.0, "bandwidth": 1.0, "tile_channels": 1, "tile_rows": 1}
    with pytest.raises(InputError, match=next(iter(wrong))[:4]):
        CoreFigures(**(right | wrong))  # type: ignore[arg-type]
