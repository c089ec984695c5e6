"""No certificate, however made, is believed above the optimum, and none ends in an exception.

Each kind has its hill climb (:mod:`forger`) on tiny cases whose optimum is known from brute force (:mod:`forged_cases`), and
the worst forgeries that were ever believed (``believed_once.jsonl``). More tries: ``python tests/adversary/run.py``.
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from forged_cases import Case, cases
from forged_costs import cost_of
from forger import KINDS, Count, assault, honest, judge

from nmsolve.hw.scores import objective_value
from nmsolve.model.mapping.solution import check_mapping

#: The other kinds are tried in ``test_forged_more.py``: two processes share the files of the tests between them.
HERE = KINDS[::2]
ONCE = [json.loads(line) for line in (Path(__file__).parent / "believed_once.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("kind", HERE)
def test_no_forgery_is_believed(kind: str) -> None:
    """10,000 changed certificates of every kind: nothing above the optimum, nothing raised, and climbs do climb."""
    assault(kind)


@pytest.mark.parametrize("entry", ONCE, ids=lambda e: f"{e['kind']}, {e['case']}")
def test_what_was_believed_once_is_refused(entry: dict) -> None:
    """Forgeries from before the re-checks were exact."""
    count = Count()
    judge(entry["kind"], entry["case"], entry["certificate"], entry["claim"], count)
    assert count.found == []


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_costs_written_from_the_documents_agree(case: Case) -> None:
    """The brute force and the package price and allow the same mappings alike."""
    cost = cost_of(case)
    problem, rng = case.problem(), random.Random(case.name)
    every = list(itertools.product(range(case.cores), repeat=case.n))
    for core in rng.sample(every, min(60, len(every))):
        feasible = not check_mapping(problem, np.array(core))
        assert feasible == case.allowed(core)
        if feasible:
            assert objective_value(problem, np.array(core)) == pytest.approx(float(cost(core)), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_starts_from_real_certificates(kind: str) -> None:
    """The engines leave at least three cases' certificates to start from, except where nothing is to be stated."""
    assert sum(bool(c) for c in honest(kind).values()) >= 3
