"""Several objectives of pipelines: fronts and bounds against trying every plan."""

from __future__ import annotations

import functools
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from command_support import run_here
from test_cli_pipeline import cost_graph

from nmsolve.check.pipeline.recheck import check_stage_bound
from nmsolve.cli.check import run_verify
from nmsolve.hw.pipeline.stages import objective
from nmsolve.kinds.verbs import VerifyOptions
from nmsolve.model.bound import Bound, Stage
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.objectives import LIMITS, PERIOD, limited, used
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.solvers.multi_objective import pareto_front
from nmsolve.solvers.pipeline.multi_objective import PlanObjectives
from nmsolve.solvers.run import Options

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

Called = Any


def some_problem(seed: int, split: str = "chain", layers: int = 4, cores: int = 3) -> PipelineProblem:
    """A diamond of layers whose times fall with the cores, but not in proportion."""
    random = Random(seed)
    first = np.array([random.randint(2, 20) for _ in range(layers)], float)
    sizes = np.arange(1, cores + 1)
    tensors = Tensors(
        np.array([0, 1, 2]),
        np.array([0, 2, 3, 4]),
        np.array([1, 2, 3, 3]),
        np.array([1.0, 2.0, 1.0]),
        np.ones(3),
    )
    return PipelineProblem(
        f"p{seed}", tuple(f"l{k}" for k in range(layers)), np.ceil(first[:, None] * (0.5 + 0.5 / sizes)),
        np.array([float(random.randint(1, 9)) for _ in range(layers)]), tensors, cores, cores, split=split,
        memory=30.0,
    )  # fmt: skip


def every_plan(problem: PipelineProblem) -> Iterator[PipelinePlan]:
    """All plans that keep the rules."""
    for stage in itertools.product(range(problem.count), repeat=problem.count):
        count = max(stage) + 1
        for cores in itertools.product(range(1, problem.cores + 1), repeat=count):
            plan = PipelinePlan(np.array(stage), np.array(cores))
            if plan_complaint(problem, plan) is None:
                yield plan


@functools.cache
def table(seed: int, split: str) -> list[dict[str, float]]:
    """All objectives of all plans."""
    problem = some_problem(seed, split)
    return [
        {PERIOD: objective(problem, p)} | {k: float(used(problem, p, k)) for k in LIMITS}
        for p in every_plan(problem)
    ]


@pytest.mark.parametrize(
    ("names", "split", "seed"),
    [
        ((PERIOD, "cores"), "chain", 1),
        (("cores", PERIOD), "chain", 1),
        ((PERIOD, "stages"), "chain", 4),
        ((PERIOD, "core-memory"), "chain", 4),
        (("cores", "core-memory"), "chain", 4),
        ((PERIOD, "cores"), "contiguous", 6),
    ],
)
def test_the_whole_front_is_found_and_proved(names: tuple[str, str], split: str, seed: int) -> None:
    """Of whole numbers few lie between the ends, so that ceilings can be as many."""
    problem, rows = some_problem(seed, split), table(seed, split)
    values = {(row[names[0]], row[names[1]]) for row in rows}
    truth = {v for v in values if not any(w != v and w[0] <= v[0] and w[1] <= v[1] for w in values)}
    front = pareto_front(PlanObjectives(problem, Options()), names, 10, 600.0)
    found = {p.values for p in front.points}
    assert found <= truth and all(p.proven for p in front.points) and len(found) > 1
    assert found == truth or names[1] == PERIOD
    assert front.ideal == tuple(min(v[k] for v in truth) for k in (0, 1)) == front.bounds
    for stage in front.stages:
        best = min(row[stage.objective] for row in rows if all(row[k] <= most for k, most in stage.ceilings))
        for b in stage.bounds:
            assert b.value <= best * (1 + 1e-9)
            assert check_stage_bound(problem, stage, b).ok
            assert not check_stage_bound(problem, stage, replace(b, value=best + 1), best).ok


def test_a_proof_that_no_plan_has_less_needs_no_period() -> None:
    """Certificates say ``null`` for the period where an engine proved that there is no plan at all with less."""
    problem = some_problem(1)
    stage = Stage("cores", ((PERIOD, 30.0),), problem.content_hash, ())
    proof = Bound(2.0, "pipeline-cpsat", certificate={"status": "infeasible", "most": 1, "period": None})
    check = check_stage_bound(problem, stage, proof)
    assert check.ok and check.value == 2 and check.word == "pipeline-cpsat"
    assert "with 1 of cores there is no plan" in check.text
    more = replace(proof, value=3.0)
    assert not check_stage_bound(problem, stage, more).ok


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A front of a chain on four cores, as the command leaves it."""
    folder = tmp_path_factory.mktemp("front")
    source = cost_graph(folder / "diamond.json", maxFPGAs=4)
    command = [
        "pipeline",
        source,
        "--split",
        "chain",
        "--pareto",
        "period,cores",
        "--points",
        "4",
        "-t",
        "60",
    ]
    done = run_here(*command, "-o", folder / "out")
    assert "point-2" in done.stdout and "proved" in done.stdout and "cores with period at most" in done.stderr
    return folder / "out"


def code(path: Path) -> int:
    """Exit code of ``nmsolve verify PATH --bound``; 2 for what cannot be read."""
    try:
        return run_verify(VerifyOptions(path, bound=True))
    except InputError:
        return 2


def test_the_command_writes_a_front_that_is_verified_without_any_word(made: Path) -> None:
    front = json.loads((made / "pareto.json").read_text())
    assert front["command"] == "pipeline" and front["objectives"] == ["period", "cores"]
    assert len(front["points"]) > 1 and all(p["proven"] for p in front["points"])
    assert all((made / p["plan"]).exists() for p in front["points"])
    assert "<svg" in (made / "pareto.html").read_text()
    assert code(made) == code(made / "pareto.json") == 0


Change = Callable[[dict[str, Any], list[dict[str, Any]]], None]


def with_fewer(stages: list[dict[str, Any]]) -> dict[str, Any]:
    """The first bound that says what plans with fewer cores cannot do."""
    found: dict[str, Any] = next(b for s in stages for b in s["bounds"] if "most" in b["certificate"])
    return found


def more_cores(front: dict[str, Any], stages: list[dict[str, Any]]) -> None:
    bound = with_fewer(stages)
    bound["value"] += 1
    bound["certificate"]["most"] += 1


#: What somebody would like to have proved of the front or its points.
FORGED: dict[str, Change] = {
    "a faster point": lambda f, s: f["points"][0]["values"].update(period=1.0),
    "a bound above its point": lambda f, s: f["points"][0].update(bound=1e6),
    "a bound of all": lambda f, s: f.update(bounds=[f["bounds"][0], 2.0]),
    "an ideal that nobody reached": lambda f, s: f.update(ideal=[1.0, 1.0]),
    "another problem": lambda f, s: f.update(problem={"hash": "0" * 64}),
    "another kind of problem": lambda f, s: f.update(command="route"),
    "other inputs": lambda f, s: f["inputs"].update(cores=3),
    "another plan": lambda f, s: f["points"][0].update(plan=f["points"][1]["plan"]),
    "no stages": lambda f, s: s.clear(),
    "a stage under a looser ceiling": lambda f, s: next(t for t in s if "cores" in t["ceilings"])["ceilings"].update(cores=9),
    "an unknown ceiling": lambda f, s: s[0]["ceilings"].update(heat=1.0),
    "more cores needed": more_cores,
    "slower with fewer cores": lambda f, s: with_fewer(s)["certificate"].update(period=1e6),
    "as fast with fewer cores": lambda f, s: with_fewer(s)["certificate"].update(period=1.0),
    "fewer cores that are no number": lambda f, s: with_fewer(s)["certificate"].update(most="3"),
    "a word for a proof": lambda f, s: with_fewer(s).update(method="pipeline-cpsat"),
    "nobody's word": lambda f, s: with_fewer(s).update(method="my-blog"),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_no_forged_front_is_believed(what: str, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    names = ("pareto.json", "pareto-certificates.json")
    front, proofs = (json.loads((made / name).read_text()) for name in names)
    FORGED[what](front, proofs["stages"])
    for name, content in zip(names, (front, proofs), strict=True):
        (tmp_path / name).write_text(json.dumps(content))
    assert code(tmp_path) != 0


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--pareto", "period"), "1 objectives"),
        (("--pareto", "period,heat"), "unknown objective 'heat'"),
        (("--pareto", "period,cores", "--points", 1), "1 points"),
        (("--pareto", "period,cores", "--gap", "5%"), "--gap"),
        (("--pareto", "period,cores", "--use-all"), "--use-all fixes the number of cores"),
        (("--pareto", "period,stages", "--stages", 2, "--exact-stages"), "--exact-stages"),
        (("--pareto", "period,cores", "--batches", 9), "--batches"),
    ],
)
def test_what_a_front_cannot_be_is_one_line(
    call: Called, made: Path, tmp_path: Path, more: Any, word: str
) -> None:
    ended, _, text = call("pipeline", made.parent / "diamond.json", "-o", tmp_path / "out", *more)
    assert ended == 2 and len(text.strip().splitlines()) == 1 and word in text, text
    assert not (tmp_path / "out" / "pareto.json").exists()


def test_used_limits_are_the_lowest_with_which_a_plan_is_legal() -> None:
    """Also where the storage of a stage is no multiple of its cores."""
    problem = some_problem(4)
    for plan in every_plan(problem):
        for name, (field, _) in LIMITS.items():
            least = used(problem, plan, name)
            assert plan_complaint(limited(problem, ((name, least + 0.5),)), plan) is None
            if least > 1:
                assert plan_complaint(replace(problem, **{field: least - 1}), plan) is not None
