"""Training of chains: evaluator, rules, engine and second proof against plain definitions and all plans.

``NMSOLVE_TRAINING=5000 pytest tests/test_pipeline_training.py`` tries longer.
"""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines_support import best_is_least, every_chain
from test_pipeline_live import chains, live_at, pair

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.training_bound import kept_tables
from nmsolve.check.pipeline.walk import walked_loads
from nmsolve.heuristics.pipeline.training import kept_bytes
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.check import kept_needs, memory_needs, plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.training import Training
from nmsolve.solvers.pipeline.registry import REGISTRY, plan_of

TRIES = int(os.environ.get("NMSOLVE_TRAINING", "200"))


@st.composite
def trained(draw: st.DrawFn, largest: int = 5) -> PipelineProblem:
    """Small chains that are trained, with memory that is scarce in most."""
    problem = replace(draw(chains(largest)), offchip=0.0, together=None, turns=None)
    assert problem.buffers is not None
    needing = [
        sorted(draw(st.sets(st.integers(0, problem.count - 1), max_size=3)))
        for _ in range(problem.buffers.count)
    ]
    part = draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    memory = draw(st.one_of(st.none(), st.integers(0, 90).map(float)))
    return replace(
        problem,
        memory=memory,
        training=Training(
            draw(st.sampled_from(["1f1b", "gpipe"])),
            draw(st.integers(1, 5)),
            draw(st.booleans()),
            problem.time * part,
            np.cumsum([0, *map(len, needing)]).astype(np.int64),
            np.array([k for own in needing for k in own], np.int64),
        ),
    )


def by_definition(problem: PipelineProblem, plan: PipelinePlan) -> list[tuple[int, int, int]]:
    """Per stage: bytes that it keeps of a micro-batch, bytes that come in, micro-batches in flight."""
    assert problem.training is not None and problem.buffers is not None
    training, buffers = problem.training, problem.buffers
    out = []
    count = len(plan.cores)
    for s in range(count):
        own = set(np.flatnonzero(plan.stage == s).tolist())
        kept = entering = 0
        for b in range(buffers.count):
            needing = training.layer[training.indptr[b] : training.indptr[b + 1]].tolist()
            events = buffers.layer[buffers.indptr[b] : buffers.indptr[b + 1]].tolist()
            made_here = buffers.made[buffers.indptr[b]] == MADE and events[0] in own
            kept += int(buffers.size[b]) if own & set(needing) else 0
            entering += int(buffers.size[b]) if own & set(events) and not made_here else 0
        flights = training.batches if training.schedule == "gpipe" else min(training.batches, count - s)
        out.append((kept, entering, flights))
    return out


@given(trained())
@settings(max_examples=150, deadline=None, report_multiple_bugs=False)
def test_what_stages_keep_by_the_definition(problem: PipelineProblem) -> None:
    """Rules, evaluator and walk agree with the definition on bytes, on who runs forward again, and on loads."""
    assert problem.training is not None
    for plan in itertools.islice(every_chain(problem), 40):
        found, loads = by_definition(problem, plan), stage_loads(problem, plan)
        count = len(plan.cores)
        assert list(zip(*kept_needs(problem, plan.stage.tolist(), count), strict=True)) == [
            x[:2] for x in found
        ]
        assert loads.flights.tolist() == [x[2] for x in found]
        assert loads.load == pytest.approx(walked_loads(problem, plan), rel=1e-12, abs=1e-9)
        assert objective(problem, plan) == loads.load.max()
        for s, (kept, entering, flights) in enumerate(found):
            own = np.flatnonzero(plan.stage == s).tolist()
            base = int(problem.storage[own].sum()) + max(live_at(problem, own, x) for x in own)
            room = math.inf if problem.memory is None else problem.memory * plan.cores[s]
            repeats = problem.training.recompute and base + flights * kept > room
            needed = base + kept + flights * entering if repeats else base + flights * kept
            assert loads.storage[s] == needed
            assert loads.kept[s] == (entering if repeats else kept)
            again = float(problem.training.forward[own, plan.cores[s] - 1].sum())
            assert loads.again[s] == pytest.approx(again if repeats else 0.0)


@given(trained())
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_no_chain_of_stages_is_better(problem: PipelineProblem) -> None:
    """Least objective over all plans without a complaint, of those fewest stages; the second proof knows it to the last digit."""
    answer = best_is_least(problem)
    assert chain_bound_holds(problem, answer.value)
    if math.isfinite(answer.value):
        assert not chain_bound_holds(problem, math.nextafter(answer.value, math.inf))


@given(trained(8))
@settings(max_examples=100, deadline=None, report_multiple_bugs=False)
def test_tables_of_all_runs(problem: PipelineProblem) -> None:
    """The engine's and the second proof's, against the definition."""
    problem = replace(problem, memory=9.0)
    count, (kept, entering), (needed, again) = problem.count, kept_bytes(problem), kept_tables(problem)
    for i in range(count):
        for j in range(i + 1, count + 1):
            stage = np.array([0 if k < i else 1 if k < j else 2 for k in range(count)])
            stage -= stage.min()
            plan = PipelinePlan(stage, np.ones(int(stage.max()) + 1, np.int64))
            expected = by_definition(problem, plan)[int(stage[i])]
            assert (kept[i, j], entering[i, j]) == (needed[i, j], again[i, j]) == expected[:2]


def small(**changes: object) -> PipelineProblem:
    """Two layers of 100 bytes of weights each. Backward, the second needs what the first makes, 50 bytes, and its own 20."""
    given: dict[str, object] = {"schedule": "1f1b", "batches": 3, "recompute": False} | changes
    base = pair(memory=given.pop("memory", 400.0))
    return replace(
        base,
        training=Training(forward=base.time / 4, indptr=np.array([0, 1, 2]), layer=np.array([1, 1]), **given),  # type: ignore[arg-type]
    )


def test_by_hand() -> None:
    """The last stage keeps 70 bytes once, or three times with GPipe; run again, it keeps the 50 that come in, and 70 for a
    while."""
    two = PipelinePlan(np.arange(2), np.array([2, 2]))
    assert memory_needs(small(), [0, 1], 2) == [100 + 50, 100 + 70 + 70]
    assert memory_needs(small(schedule="gpipe"), [0, 1], 2) == [100 + 50, 100 + 70 + 3 * 70]
    assert memory_needs(small(schedule="gpipe"), [0, 1], 2, True) == [100 + 50, 100 + 70 + 70 + 3 * 50]
    assert memory_needs(small(), [0, 0], 1) == [200 + 70 + 70]
    assert plan_complaint(small(schedule="gpipe", memory=190.0), two) is None
    wrong = plan_complaint(small(schedule="gpipe", memory=189.0), two)
    assert wrong == "stage 1 needs 190 of memory per core, the limit is 189"
    again = small(schedule="gpipe", batches=9, memory=345.0, recompute=True)
    assert plan_complaint(again, two) is None
    loads = stage_loads(again, two)
    assert (loads.again.tolist(), loads.kept.tolist(), loads.storage.tolist()) == (
        [0, 1],
        [0, 50],
        [150, 690],
    )
    assert loads.load.tolist() == [4 + 1, 4 + 1 + 1]


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize("recompute", [False, True])
def test_memory_from_scarce_to_plenty(schedule: str, recompute: bool) -> None:
    """At every limit the best plan: stages run forward again where that is faster than more cores, and nowhere else."""
    ran_again = set()
    for memory in range(100, 460, 20):
        problem = small(schedule=schedule, batches=4, recompute=recompute, memory=float(memory))
        assert problem.training is not None
        for time in (problem.time, np.array([[8.0, 4, 3, 2], [9, 5, 5, 5]])):
            own = replace(problem, time=time, training=replace(problem.training, forward=time / 2))
            answer = best_is_least(own)
            assert chain_bound_holds(own, answer.value)
            if answer.plan is not None:
                ran_again.add(bool(stage_loads(own, answer.plan).again.any()))
    assert (True in ran_again) == (recompute and schedule == "gpipe")
    assert False in ran_again


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"schedule": "chimera"}, "unknown schedule"),
        ({"batches": 0}, "0 micro-batches"),
        ({"batches": 2**52}, "micro-batches: bytes in flight"),
        ({"forward": np.zeros((2, 3))}, "times of the forward pass"),
        ({"forward": np.full((2, 4), 9.0)}, "times of the forward pass"),
        ({"forward": np.array([[1.0, 1, 1, 2], [0, 0, 0, 0]])}, "slower on more cores"),
        ({"indptr": np.array([0, 2])}, "differ in length"),
        ({"layer": np.array([1, 2])}, "do not exist"),
        ({"indptr": np.array([0, 2, 2]), "layer": np.array([1, 0])}, "do not rise"),
    ],
)
def test_training_that_makes_no_sense(changes: dict[str, object], text: str) -> None:
    """One line each."""
    good = small()
    assert good.training is not None
    with pytest.raises(InputError, match=text):
        replace(good, training=replace(good.training, **changes))


def test_what_does_not_go_with_training() -> None:
    """Other splits, off-chip memory and loops are refused; so are engines that know nothing of it."""
    for changes in ({"split": "any"}, {"buffers": None}, {"offchip": 1.0}, {"turns": np.zeros(2, np.int64)}):
        with pytest.raises(InputError, match="training"):
            replace(small(), **changes)
    assert REGISTRY.keys() - plan_of(small(), None)[1].keys() == {
        "chain", "pipeline-counting", "groups-local", "m5-policy", "pipeline-mip",
    }  # fmt: skip
    for name in ("groups-local", "m5-policy", "pipeline-mip", "pipeline-cpsat"):
        assert "training" in plan_of(small(memory=None), [name])[1][name]


def test_the_hash_knows_training() -> None:
    """Two problems that differ in any part of it are not the same."""
    base = small()
    assert base.training is not None
    others = [
        replace(base, training=None),
        small(schedule="gpipe"),
        small(batches=4),
        small(recompute=True),
        replace(base, training=replace(base.training, forward=base.time / 2)),
        replace(base, training=replace(base.training, layer=np.array([0, 1]))),
    ]
    assert len({p.content_hash for p in (base, *others)}) == 1 + len(others)
