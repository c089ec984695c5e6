"""Whole reports of pipelines forged field by field: nothing false passes without naming somebody's word."""

from __future__ import annotations

import copy
import json
import os
import random
from typing import Any

from test_forged_pipelines import mutated, pipeline

from nmsolve.check.certificates import certificates_from_json, certificates_text
from nmsolve.kinds.pipeline.check import claim_checks, plan_checks
from nmsolve.kinds.verdict import headline
from nmsolve.model.bound import gap, meets
from nmsolve.model.errors import InputError
from nmsolve.solvers.pipeline.api import plan

TRIES = int(os.environ.get("NMSOLVE_FORGED", "4000"))
CLAIMS = ("objective", "bound", "gap", "status")


def test_no_forged_report_of_a_pipeline_is_believed() -> None:
    """Report and certificates are changed together; what passes as proved is never above the optimum."""
    cases, passed = 4, 0
    for seed in range(cases):
        problem, optimum = pipeline(seed)
        result = plan(
            problem, time_limit=20, engines=["pipeline-counting", "pipeline-local", "cover"], seed=1
        )
        assert result.solution is not None
        report: dict[str, Any] = {k: getattr(result, k) for k in CLAIMS}
        proofs = json.loads(certificates_text(problem.content_hash, (("", b) for b in result.bounds)))
        rng = random.Random(seed)
        for _ in range(TRIES // cases):
            new, certificates = copy.deepcopy(report), copy.deepcopy(proofs)
            if rng.random() < 0.4:  # what a forger would like to say
                value = rng.choice((float(result.objective or 0), float(optimum) * 1.01, float(optimum)))
                new |= {
                    "bound": value,
                    "gap": gap(result.objective, value),
                    "status": rng.choice(("optimal", "feasible")),
                }
            if rng.random() < 0.5:
                changed = mutated(new, rng)
                new = changed if isinstance(changed, dict) else {}
            for row in certificates["bounds"]:
                draw = rng.random()
                if draw < 0.3:
                    row["certificate"] = mutated(row["certificate"], rng)
                elif draw < 0.5:
                    row["value"] = mutated(row["value"], rng)
                elif draw < 0.55:
                    row["method"] = rng.choice(("downsets", "my-blog", "chain", "work"))
            try:
                bounds = certificates_from_json(json.dumps(certificates))
            except InputError:
                continue
            checks = plan_checks(problem, result.solution, new.get("objective"), bounds, thorough=True)
            checks += claim_checks(new, bounds, checks)
            if not all(c.ok for c in checks) or any(c.word for c in checks if headline(c)):
                continue
            passed += 1
            bound = new.get("bound")
            assert bound is None or bound <= float(optimum) or (
                bound <= float(result.objective or 0) and meets(float(optimum), bound)
            ), (new, certificates)  # fmt: skip
            assert new["status"] == "feasible" or meets(float(optimum), float(new["objective"])), new
    assert passed > TRIES // 100
