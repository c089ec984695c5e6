"""Method M5's learned policy: what it sees, that it acts within the rules, and how near it gets to the optimum."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from pipelines_support import Recorder, random_dag

from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.hw.pipeline.stages import StageLoads, objective, stage_loads
from nmsolve.kinds.pipeline.python import pipeline
from nmsolve.learn.pipeline.engine import M5Policy, m5_model
from nmsolve.learn.pipeline.policy import FEATURES, Size, core_features, draw, scores
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.reward import USUAL, Reward
from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline.api import plan
from nmsolve.solvers.pipeline.registry import plan_of

MODEL = Path(__file__).parent / "data" / "onnx" / "small_cnn.onnx"


def test_features_say_what_every_core_has_to_do() -> None:
    problem = random_dag(4, 11, 6, 3, split="chain")
    env = GroupsEnv(problem)
    states = [env.reset(seed=k, options={"shuffle": 5 * k})[0] for k in range(4)]
    found = core_features(np.stack(states))
    assert found.shape == (4, 6, FEATURES)
    for state, seen in zip(states, found, strict=True):
        first = 0
        ends = np.flatnonzero(state[0])
        loads = [state[1, e] / n for e, n in zip(ends, np.diff(ends, prepend=-1), strict=True)]
        for end, load in zip(ends.tolist(), loads, strict=True):
            cores = end + 1 - first
            for core in range(first, end + 1):
                expected = [
                    core == end, state[0, end] / cores / (11 / 6), load / (state[1].sum() / 6), load / max(loads), cores / 6, 1,
                ]  # fmt: skip
                assert seen[core] == pytest.approx(np.minimum(expected, 8), rel=1e-5)
            first = end + 1


def test_numpy_and_torch_agree_and_the_order_of_actions_is_that_of_the_environment() -> None:
    torch = pytest.importorskip("torch")
    rng, size = np.random.default_rng(0), Size(hidden=6)
    arrays = {k: rng.normal(0, 0.5, v).astype(np.float32) for k, v in size.shapes.items()}
    features = rng.random((3, 7, FEATURES)).astype(np.float32)
    here = scores(arrays, features)
    there = scores({k: torch.tensor(a) for k, a in arrays.items()}, torch.tensor(features), torch)
    assert here.shape == (3, 4 * 6) and here == pytest.approx(there.numpy(), abs=1e-5)
    # The bias of the third kind of action belongs to actions 2 (N - 1) to 3 (N - 1) - 1.
    arrays["out.bias"] = arrays["out.bias"] + np.array([0, 0, 5, 0], np.float32)
    assert scores(arrays, features)[:, 12:18] == pytest.approx(here[:, 12:18] + 5, abs=1e-5)


def test_actions_are_drawn_by_their_probability() -> None:
    score = np.tile(np.log([0.1, 0.6, 0.3]), (20_000, 1))
    found = np.bincount(draw(score, np.random.default_rng(2)), minlength=3) / 20_000
    assert found == pytest.approx([0.1, 0.6, 0.3], abs=0.015)


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_plans_are_legal_and_repeatable(cores: int) -> None:
    problem = random_dag(cores, 14, cores, 3, split="chain", memory=120.0 / cores)
    recorders = [Recorder(problem, seed=2) for _ in range(2)]
    for recorder in recorders:
        M5Policy().run(problem, recorder)
        assert recorder.values and not recorder.complaints
    assert recorders[0].values == recorders[1].values
    assert recorders[0].value >= ChainPartition(problem).in_order(np.arange(14))[1]


class Offers(Recorder):
    """Keeps every plan that is offered, also those that are no better by the objective."""

    def __init__(self, problem: PipelineProblem) -> None:
        super().__init__(problem, seed=1)
        self.plans: list[PipelinePlan] = []

    def offer(self, core: IntArray, move: str = "") -> bool:
        self.plans.append(PipelinePlan.unpacked(self.problem, core))
        return super().offer(core, move)


def test_the_weights_decide_which_plans_are_offered() -> None:
    """Every plan has a better reward than those before, counted from the loads of its stages; weight by weight."""
    problem = random_dag(7, 30, 6, 6, split="chain")
    even, better = stage_loads(problem, GroupsEnv(problem).plan()), 0
    for only in ("a", "compute", "storage", "routing"):
        weights = Reward(**{name: float(name == only) for name in ("a", "compute", "storage", "routing")})
        offers = Offers(replace(problem, reward=weights))
        M5Policy().run(offers.problem, offers)
        worst = [_amount(only, stage_loads(problem, plan)) for plan in offers.plans]
        assert worst == sorted(set(worst), reverse=True) and worst[0] == _amount(only, even)
        better += len(worst) > 1
    assert better >= 3


def _amount(name: str, loads: StageLoads) -> float:
    amounts = {
        "a": loads.load, "compute": loads.compute, "storage": loads.storage / loads.cores,
        "routing": loads.transfer_in + loads.transfer_out,
    }  # fmt: skip
    return float(amounts[name].max())


def test_the_command_states_the_weights(call: Called, tmp_path: Path) -> None:
    """They are in the report, ``resume`` goes on with them, and no other engine takes them."""
    out, common = tmp_path / "run", ("pipeline", MODEL, "--bind", "batch=2", "--cores", 4, "-t", 20)
    code, _, said = call(*common, "--engines", "m5-policy", "--reward", "a=0,storage=1", "-o", out)
    assert code in (0, 3), said
    report = json.loads((out / "pipeline-report.json").read_text("utf-8"))
    assert report["inputs"]["reward"] == "a=0,storage=1" and call("verify", out)[0] == 0
    assert call("resume", out, "-t", 20, "-o", tmp_path / "on")[0] in (0, 3)
    on = json.loads((tmp_path / "on" / "pipeline-report.json").read_text("utf-8"))
    assert on["inputs"]["reward"] == "a=0,storage=1"
    for more, words in (
        (("--reward", "storage=1", "--engines", "chain"), "--engines m5-policy"),
        (("--reward", "speed=1", "--engines", "m5-policy"), "no term 'speed'"),
        (("--reward", "a=-1", "--engines", "m5-policy"), "weight a is -1"),
    ):
        code, _, said = call(*common, *more, "-o", tmp_path / "no")
        assert code == 2 and words in said
    answer = pipeline(MODEL, 4, bind={"batch": 2}, time_limit=5.0, engines=["m5-policy"], reward="routing=3")
    assert answer.problem.reward == Reward(routing=3.0) and answer.inputs.reward == "routing=3"
    with pytest.raises(InputError, match="without its policy"):
        pipeline(MODEL, 4, bind={"batch": 2}, time_limit=5.0, engines=["chain"], reward="routing=3")
    names = [
        [step.engine.name for step in plan_of(p, None)[0]]
        for p in (answer.problem, replace(answer.problem, reward=USUAL))
    ]
    assert "m5-policy" in names[0] and "m5-policy" not in names[1]


def test_it_gets_near_the_optimum_of_a_chain_and_nearer_than_the_even_cut() -> None:
    problem = random_dag(3, 40, 8, 8, split="chain")
    recorder = Recorder(problem, seconds=10.0)
    M5Policy().run(problem, recorder)
    even = objective(problem, GroupsEnv(problem).plan())
    optimum = ChainPartition(problem).in_order(np.arange(40))[1]
    assert optimum <= recorder.value < even and recorder.value <= 1.3 * optimum


def test_without_a_model_it_says_so_and_offers_the_best_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m5.safetensors").write_bytes(b"{}")
    monkeypatch.setenv("NMSOLVE_MODELS", str(tmp_path))
    problem = random_dag(5, 12, 4, 3, split="chain")
    result = plan(problem, time_limit=2.0, engines=["m5-policy"])
    assert result.objective == ChainPartition(problem).in_order(np.arange(12))[1]
    assert [e.text for e in result.events if e.kind == "note" and "no policy" in e.text]
    monkeypatch.delenv("NMSOLVE_MODELS")
    assert m5_model()[0].method == "m5"
