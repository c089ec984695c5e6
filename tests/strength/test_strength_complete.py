"""Every engine has a floor and a mutation that its floor must notice, unless it only runs a program of others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mutations import MUTATIONS

import nmsolve
from nmsolve.solvers.assignment.registry import REGISTRY as ASSIGNMENT
from nmsolve.solvers.mapping.joint.registry import REGISTRY as JOINT
from nmsolve.solvers.mapping.registry import REGISTRY as MAPPING
from nmsolve.solvers.pipeline.registry import REGISTRY as PIPELINE
from nmsolve.solvers.routing.registry import REGISTRY as ROUTING
from nmsolve.solvers.schedule.registry import REGISTRY as SCHEDULE

#: Engines that run a solver or a partitioner of others, or do what another tool does: its strength is not ours.
OUTSIDE = {
    "metis", "kaminpar", "mtkahypar", "scotch", "in-order", "cpsat", "mip", "joint-cpsat", "joint-mip",
    "route-cpsat", "route-mip", "pipeline-cpsat", "pipeline-mip", "assign-cpsat", "assign-highs", "network-cpsat",
    "makespan-cpsat", "schedule-cpsat", "schedule-highs",
}  # fmt: skip
HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize(
    ("registry", "files"),
    [
        (MAPPING, ("many", "placement", "true", "bounds")),
        (JOINT, ("joint",)),
        ({"alternate": None}, ("routed",)),  # runs other engines in turns, and is in no registry
        (ROUTING, ("routing",)),
        (PIPELINE, ("pipeline",)),
        (ASSIGNMENT, ("assign",)),
        (SCHEDULE, ("schedule", "schedule_search")),
    ],
    ids=["mapping", "joint", "routed", "routing", "pipeline", "assignment", "schedule"],
)
def test_every_engine_has_a_floor(registry: dict[str, object], files: tuple[str, ...]) -> None:
    tests = tuple(f"test_strength_{name}.py::" for name in files)
    have = {m.engine for m in MUTATIONS if m.test.startswith(tests)}
    assert set(registry) - OUTSIDE == have


def test_every_mutation_has_its_test_and_every_test_its_mutation() -> None:
    tests = {
        f"{path.name}::{name}"
        for path in HERE.glob("test_strength_*.py")
        if path != Path(__file__).resolve()
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert {m.test for m in MUTATIONS if m.floor} == tests
    assert all((HERE / m.test.split("::")[0]).is_file() for m in MUTATIONS)


@pytest.mark.parametrize("file", sorted({m.file for m in MUTATIONS}))
def test_mutations_fit_the_code(file: str) -> None:
    """Where code was written anew, its mutation has to be, too: else nobody knows whether the floor still notices it."""
    text = (Path(nmsolve.__file__).parent / file).read_text("utf-8")
    assert [m.what for m in MUTATIONS if m.file == file and text.count(m.old) != 1] == []
