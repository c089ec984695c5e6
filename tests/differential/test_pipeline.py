"""Random small pipelines at all magnitudes: both exact models, the exact partitions and every bound against brute force.

The reference below is written from docs/pipeline.md in fractions and shares nothing with the package but the problem's arrays.
``NMSOLVE_PIPELINES=5000 pytest tests/differential/test_pipeline.py`` runs as many problems as one likes.
"""

from __future__ import annotations

import itertools
import math
import os
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.recheck import CERTIFIED, recheck_bound
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.stop import Stop
from nmsolve.solvers.pipeline.bounds import CountingBounds
from nmsolve.solvers.pipeline.checker import PipelineChecker
from nmsolve.solvers.pipeline.cover_engine import CoverBound
from nmsolve.solvers.pipeline.exact import PipelineCpSat, PipelineMip
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.pipeline.partition import Chain, Downsets
from nmsolve.solvers.pipeline.resplit import Resplit
from nmsolve.solvers.search.context import LocalContext
from nmsolve.solvers.search.incumbent import Incumbent

COUNT = int(os.environ.get("NMSOLVE_PIPELINES", "60"))
#: Problems of one test.
BATCH = 15


def problem_of(seed: int) -> PipelineProblem:
    """Two to five layers; whole times or fractions in units from 1e-9 to 1e9; every rule on and off."""
    rng = Random(seed)
    layers, groups = rng.randint(2, 5), rng.randint(1, 2)
    unit = 10.0 ** rng.randint(-9, 9) if rng.random() < 0.7 else 1.0

    def number() -> float:
        drawn = rng.choice([rng.randint(0, 99), rng.random() * 99, round(rng.random() * 99, 2)])
        return float(drawn) * unit

    first = np.array([number() for _ in range(layers)])
    time = np.stack([first, first * np.array([rng.uniform(0.4, 1) for _ in range(layers)])], axis=1)[
        :, :groups
    ]
    edges = [(a, users, number()) for a in range(layers - 1)
             if (users := [b for b in range(a + 1, layers) if rng.random() < 0.4])]  # fmt: skip
    tensors = Tensors(
        np.array([a for a, _, _ in edges], np.int64),
        np.cumsum([0, *(len(u) for _, u, _ in edges)]).astype(np.int64),
        np.array([b for _, u, _ in edges for b in u], np.int64),
        np.array([t for _, _, t in edges], np.float64),
        np.zeros(len(edges)),
    )
    hosts = rng.choice([0, 0, 1])
    host = np.array([rng.choice([number(), math.inf]) for _ in range(layers)]) if hosts else None
    cores = rng.randint(1, 3)
    stages = rng.randint(1, min(4, layers, cores + hosts))
    split = rng.choice(["chain", "contiguous", "any", "any"])
    return PipelineProblem(
        f"seed {seed}", tuple("abcde"[:layers]), time, np.array([float(rng.randint(0, 4)) for _ in range(layers)]),
        tensors, cores, stages, exact_stages=rng.random() < 0.4, use_all=rng.random() < 0.2,
        memory=rng.choice([None, None, 4.0, 7.0]), overlap=rng.random() < 0.2, split=split, host_time=host, hosts=hosts,
        together=np.array([rng.randint(-1, 1) for _ in range(layers)]) if split == "any" and rng.random() < 0.2 else None,
    )  # fmt: skip


def load(p: PipelineProblem, stage: tuple[int, ...], cores: tuple[int, ...], s: int) -> Fraction | None:
    """Load of stage ``s`` in exact numbers; None: a layer cannot run there."""
    mine = [k for k in range(p.count) if stage[k] == s]
    if cores[s] == 0:
        assert p.host_time is not None
        times = [float(p.host_time[k]) for k in mine]
        return None if math.inf in times else sum(map(Fraction, times), Fraction(0))
    busy = sum((Fraction(float(p.time[k, cores[s] - 1])) for k in mine), Fraction(0))
    moved = Fraction(0)
    for t in range(p.tensors.count):
        users = p.tensors.targets[p.tensors.indptr[t] : p.tensors.indptr[t + 1]].tolist()
        ends = {stage[k] == s for k in [int(p.tensors.source[t]), *users]}
        moved += Fraction(float(p.tensors.time[t])) if len(ends) == 2 and (
            stage[int(p.tensors.source[t])] == s or s in {stage[u] for u in users}
        ) else 0  # fmt: skip
    return max(busy, moved) if p.overlap else busy + moved


def legal(p: PipelineProblem, stage: tuple[int, ...], cores: tuple[int, ...]) -> bool:
    """Every rule of docs/pipeline.md but the loads."""
    used = len(cores)
    if set(stage) != set(range(used)) or used > p.stages or (p.exact_stages and used != p.stages):
        return False
    if sum(cores) > p.cores or (p.use_all and sum(cores) != p.cores) or cores.count(0) > p.hosts:
        return False
    for s, c in enumerate(cores):
        if (
            c
            and p.memory is not None
            and sum(p.storage[k] for k in range(p.count) if stage[k] == s) > c * p.memory
        ):
            return False
    if p.together is not None:
        for a, b in itertools.combinations(range(p.count), 2):
            if p.together[a] == p.together[b] >= 0 and stage[a] != stage[b]:
                return False
    if p.split == "chain":
        return all(stage[k] <= stage[k + 1] for k in range(p.count - 1))
    if p.split == "contiguous":
        for t in range(p.tensors.count):
            users = p.tensors.targets[p.tensors.indptr[t] : p.tensors.indptr[t + 1]].tolist()
            if any(stage[int(p.tensors.source[t])] > stage[u] for u in users):
                return False
    return True


def optimum(p: PipelineProblem) -> Fraction | None:
    """The least largest load of all plans, None if there is none."""
    best: Fraction | None = None
    sizes = range(0 if p.hosts else 1, min(int(p.time.shape[1]), p.cores) + 1)
    for used in range(1, p.stages + 1):
        for cores in itertools.product(sizes, repeat=used):
            for stage in itertools.product(range(used), repeat=p.count):
                if not legal(p, stage, cores):
                    continue
                loads = [load(p, stage, cores, s) for s in range(used)]
                if None not in loads:
                    worst = max(x for x in loads if x is not None)
                    best = worst if best is None else min(best, worst)
    return best


def run(engine: object, p: PipelineProblem, start: bool = False) -> Incumbent:
    """One engine on its own, or after the partitions."""
    budget = Stop(20.0)
    incumbent = Incumbent(PipelineChecker(p), budget)
    for one in [*([Chain(), Downsets()] if start else []), engine]:
        if one.refuses(p) is None:  # type: ignore[attr-defined]
            one.run(p, LocalContext(one.name, incumbent, budget, seed=1, workers=1, deadline=budget.deadline))  # type: ignore[attr-defined]
    return incumbent


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_exact_engines_and_bounds_against_brute_force(first: int) -> None:
    for seed in range(first, min(first + BATCH, COUNT)):
        p = problem_of(seed)
        best = optimum(p)
        try:
            require_fit(p)
        except InputError:
            assert best is None, p.name
            continue
        exact = [PipelineCpSat(), PipelineMip()]
        exact += [Chain()] if p.split == "chain" else [Downsets()] if p.split == "contiguous" else []
        for engine in [*exact, CountingBounds(), CoverBound(), Resplit()]:
            found = run(engine, p, start=isinstance(engine, Resplit))
            told = [e.text for e in found.events if e.kind == "error"]
            assert not told, (p.name, engine.name, told)
            if best is None:
                assert found.lifted is None, (p.name, engine.name)
                assert not any(engine is e for e in exact) or found.infeasible, (p.name, engine.name)
                continue
            assert not found.infeasible, (p.name, engine.name)
            for bound in found.bounds:
                assert Fraction(bound.value) <= best * (1 + Fraction(1, 10**15)), (
                    p.name,
                    engine.name,
                    bound,
                    float(best),
                )
                if bound.method in CERTIFIED:
                    proof = recheck_bound(p, bound.method, bound.certificate)
                    assert proof is not None and Fraction(bound.value) <= Fraction(proof) <= best, (
                        p.name,
                        bound,
                    )
            if engine in exact:  # HiGHS is off by its tolerance, 1e-6, which its bound leaves out
                room = 3e-6 if engine.name == "pipeline-mip" else 1e-9
                assert found.lifted is not None, (p.name, engine.name)
                assert found.objective == pytest.approx(float(best), rel=room), (p.name, engine.name)
                assert found.bound >= float(best) * (1 - room), (p.name, engine.name, found.bound)
            if found.lifted is not None:
                plan = PipelinePlan.unpacked(p, np.array(found.lifted))
                assert legal(p, tuple(plan.stage.tolist()), tuple(plan.cores.tolist())), (p.name, engine.name)
        if p.split == "chain" and best is not None:
            assert chain_bound_holds(p, float(best) * (1 - 1e-12))
            assert float(best) == 0 or not chain_bound_holds(p, float(best) * (1 + 1e-12))
