"""Forged bounds of ``downsets``: a claim is believed if and only if no plan is below it, by trying every plan in fractions.

A bound of ``downsets`` has no certificate, so all that a forger has is the value: a little above the optimum, or the optimum of
another problem. ``NMSOLVE_DOWNSETS=5000 pytest tests/adversary/test_forged_downsets.py`` tries more problems.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from command_support import run_here
from stages_reference import Pipeline, optimum
from stages_support import contiguous, problem_of

from nmsolve.check.pipeline.recheck import check_plan_bound, check_stage_bound
from nmsolve.model.bound import Bound, Stage

COUNT = int(os.environ.get("NMSOLVE_DOWNSETS", "250"))


def least(p: Pipeline) -> float:
    """The optimum as the float next to it; inf if there is no plan."""
    best = optimum(p)
    return math.inf if best is None else float(best)


def test_the_optimum_is_believed_and_nothing_above_it() -> None:
    """One float more, a little more, twice as much, no plan at all: refused, without anybody's word."""
    none = 0
    for seed in range(COUNT):
        problem, best = problem_of(p := contiguous(seed)), least(p)
        none += math.isinf(best)
        claims = {0.0, best, best / 2, best * (1 - 1e-15)} | {
            math.nextafter(best, math.inf), best * (1 + 1e-9), 1.001 * best, 2 * best + 1.0, math.inf,
        }  # fmt: skip
        for claim in claims:
            check = check_plan_bound(problem, Bound(claim, "downsets"))
            assert (check.ok, check.word) == (claim <= best, ""), (seed, claim, best, check)
    assert COUNT / 10 < none < COUNT / 2


def others(p: Pipeline) -> Iterator[tuple[str, Pipeline]]:
    """Problems that differ by one rule, which a forger may have solved instead."""
    least_cores = max(1, p.stages - p.hosts if p.exact else 1)
    yield "cores", replace(p, cores=p.cores + 1)
    yield "cores", replace(p, cores=max(least_cores, p.cores - 1))
    yield "memory", replace(p, memory=None)
    yield "memory", replace(p, memory=2.0)
    yield "memory", replace(p, memory=None if p.memory is None else p.memory * (1 - 1e-15))
    yield "exact stages", replace(p, exact=not p.exact)
    yield "stages", replace(p, stages=max(1, p.stages - 1))
    yield "stages", replace(p, stages=min(p.count, p.cores + p.hosts))
    yield "all cores", replace(p, use_all=not p.use_all)
    yield "overlap", replace(p, overlap=not p.overlap)
    yield "classes", replace(p, classes=() if p.classes else (0, *(-1,) * (p.count - 2), 0))
    yield "tensors", replace(p, tensors=())
    if p.hosts and not p.exact:
        yield "hosts", replace(p, hosts=0, host=(), stages=min(p.stages, p.cores))
    if p.hosts:
        yield (
            "hosts",
            replace(p, host=tuple(min(2.0 * t, 1e30) if math.isfinite(t) else 1e-3 for t in p.host)),
        )


def test_the_optimum_of_another_problem_is_believed_only_where_it_bounds_this_one() -> None:
    """Every rule makes some problems dearer, whose optimum is no bound, and others cheaper, whose optimum is one."""
    above: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for seed in range(COUNT // 2):
        problem, best = problem_of(p := contiguous(seed, 6)), least(p)
        for rule, other in others(p):
            claim = least(other)
            check = check_plan_bound(problem, Bound(claim, "downsets"))
            assert (check.ok, check.word) == (claim <= best, ""), (seed, rule, claim, best, check)
            above[rule] += claim > best
            below[rule] += claim < best
    assert set(above) == set(below) == {rule for seed in range(20) for rule, _ in others(contiguous(seed, 6))}
    assert min(n for rule, n in above.items() if rule != "tensors") >= 3, above
    assert min(below.values()) >= 3, below


@pytest.mark.parametrize("split", ["any", "chain"])
def test_downsets_say_nothing_of_other_splits(split: str) -> None:
    """Not even what is true: the engine makes no such claim, so somebody else did."""
    problem = problem_of(replace(contiguous(3), split=split))
    for claim in (1e-12, 1.0, math.inf):
        check = check_plan_bound(problem, Bound(claim, "downsets"))
        assert not check.ok and "no bound of downsets" in check.text, check


def test_a_word_about_another_problem_counts_for_nothing() -> None:
    """Where there is no time to list downsets the word is left, but only if it was given about this problem."""
    problem = problem_of(next(p for p in map(contiguous, range(99)) if math.isfinite(least(p))))
    claim = Bound(1e6, "downsets")
    for about, ok in ((problem.content_hash, True), ("0" * 64, False)):
        check = check_stage_bound(problem, Stage("period", (), about, (claim,)), claim, seconds=-1.0)
        assert check.ok == ok, check


def cost_graph(path: Path) -> Path:
    """A fork of five layers on three accelerators and a CPU core."""
    nodes = [
        {"id": k, "supportedOnFpga": 1, "cpuLatency": 9.0, "fpgaLatency": 2.0 + k, "isBackwardNode": 0, "size": 1.0}
        for k in range(5)
    ]  # fmt: skip
    edges = [{"sourceId": a, "destId": b, "cost": 0.5} for a, b in ((0, 1), (0, 2), (1, 3), (2, 4))]
    graph = {"maxSizePerFPGA": 3.0, "maxFPGAs": 3, "maxCPUs": 1, "nodes": nodes, "edges": edges}
    path.write_text(json.dumps(graph))
    return path


def test_a_folder_that_passes_a_narrower_problem_off_as_this_one(tmp_path: Path) -> None:
    """The proof of a run with two stages is none of the graph's own limits, whatever hashes the files are given."""
    graph = cost_graph(tmp_path / "fork.json")
    runs = {"own": (), "narrow": ("--stages", "2")}
    for name, more in runs.items():
        run_here("pipeline", graph, *more, "--engines", "downsets", "-t", "9", "--out", tmp_path / name)
        assert "recomputed: no sequence of downsets" in run_here("verify", tmp_path / name, "--bound").stdout
    own, narrow = (json.loads((tmp_path / name / "pipeline-report.json").read_text()) for name in runs)
    assert own["status"] == narrow["status"] == "optimal" and own["objective"] < narrow["objective"]
    files = [
        tmp_path / "narrow" / file for file in ("pipeline-report.json", "plan.json", "certificates.json")
    ]
    told = (
        (2, "the plan is for another problem"),
        (1, "report or certificates are about another problem"),
        (1, "recomputed: some sequence of downsets is below"),
    )
    about = {"problem": own["problem"]}
    changes = (
        about | {"inputs": own["inputs"]},
        {"problem": {"name": "fork", "hash": own["problem"]}},
        about,
    )
    for path, change, (code, text) in zip(files, changes, told, strict=True):
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        done = run_here("verify", tmp_path / "narrow", "--bound", code=code)
        assert text in done.stdout + done.stderr
    assert "another problem" not in done.stdout
