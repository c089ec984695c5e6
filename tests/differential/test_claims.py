"""Claims of engines on problems whose weights lie many powers of ten apart: each was above what its certificate proves."""

from __future__ import annotations

import diff_cases
import pytest
from diff_cases import make_case
from diff_checks import Recorder, ground_of

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.solvers.mapping.registry import make_engine


@pytest.fixture(autouse=True)
def like_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers name the cases that they were before cores could be unlike."""
    monkeypatch.setattr(diff_cases, "UNLIKE", 0.0)


@pytest.mark.parametrize(
    ("number", "engine"),
    [
        (420000008, "joint"),  # 1.6125498250 claimed, 1.6125497390 proved
        (700000380, "joint"),
        (610000109, "slots"),  # 1.89e-07 claimed, 1.20e-07 proved
        (700001096, "slots"),
        (700001418, "exchange"),
        (700001642, "split"),  # a step along a supergradient of rounding errors, to multipliers of 1e19
        (710003101, "split"),  # prices of a million beside weights of 1e-7
        (
            7770000419,
            "joint",
        ),  # whole weights of 2^41 in groups: rounded up, while what is merged was rounded down
        (7770001487, "cover"),  # whole costs beyond 2^53: rounded up, while nothing counts them exactly
    ],
)
def test_no_engine_claims_more_than_its_certificate_proves(number: int, engine: str) -> None:
    ground = ground_of(make_case(number))
    context = Recorder(ground, engine, None, 2.0, 1)
    make_engine(engine).run(ground.reduction.reduced, context)
    checks = [check_bound(ground.problem, bound) for bound in context.bounds]
    assert checks and all(c.ok for c in checks), [c.text for c in checks]
    assert ground.optimum is not None and 0 < context.low <= ground.optimum


def test_a_claim_that_is_cut_is_still_most_of_what_was_found() -> None:
    """The certificate of 420000008 is worth 1.6; the claim stays there, below what is proved by what that was charged."""
    ground = ground_of(make_case(420000008))
    context = Recorder(ground, "joint", None, 5.0, 1)
    make_engine("joint").run(ground.reduction.reduced, context)
    best = max(context.bounds, key=lambda b: b.value)
    proved = check_bound(ground.problem, best).value
    assert proved * (1 - 1e-6) < best.value < proved and best.value > 1.6
