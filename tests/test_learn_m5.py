"""Method M5's learned policy: what it sees, that it acts within the rules, and how near it gets to the optimum."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from pipelines_support import Recorder, random_dag

from nmsolve.heuristics.pipeline.actions import LAST_TO_LATER, MERGE_LATER, act, worst
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.heuristics.pipeline.intervals import run_load
from nmsolve.hw.pipeline.stages import StageLoads, objective, stage_loads
from nmsolve.kinds.pipeline.python import pipeline
from nmsolve.learn.pipeline.engine import M5Policy, m5_model
from nmsolve.learn.pipeline.policy import CHOICES, Network, Size, first_arrays, network, score, scores
from nmsolve.learn.pipeline.teacher import costs_of, lessons, needs_of
from nmsolve.learn.pipeline.walk import action_of, rules_of, start, walk
from nmsolve.learn.pipeline.window import (
    BEYOND,
    FEATURES,
    LATER_USE,
    MOST,
    PER_STAGE,
    USE,
    WHOLE,
    View,
    look,
    reach_of,
    view_of,
)  # fmt: skip
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.reward import USUAL, OwnAmount, Reward
from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline.api import plan
from nmsolve.solvers.pipeline.registry import plan_of

MODEL = Path(__file__).parent / "data" / "onnx" / "small_cnn.onnx"


def chain_env(seed: int, layers: int = 24, cores: int = 8) -> GroupsEnv:
    return GroupsEnv(random_dag(seed, layers, cores, 4, split="chain"))


def target_of(env: GroupsEnv, above: float = 0.0) -> float:
    """The load of the fastest chain, in ticks."""
    return ChainPartition(env.problem).in_order(np.arange(env.problem.count))[1] * (1 + above) / env.runs.unit


def untrained(seed: int, scale: float = 0.0) -> Network:
    arrays = first_arrays(Size(hidden=6), seed)
    arrays["out.weight"] = arrays["out.weight"] * (1 + scale)
    return network(arrays)


def test_reach_is_the_most_layers_that_keep_the_target() -> None:
    for seed in (1, 2):
        env = GroupsEnv(random_dag(seed, 14, 5, 3, split="chain", memory=40.0))
        runs, target = env.runs, 1.3 * target_of(env)
        reach = reach_of(runs, 5, target)
        for cores in range(1, 6):
            used = min(cores, 3)  # groups of three at most
            for first in range(14):
                fits = [first] + [
                    end for end in range(first + 1, 15)
                    if run_load(runs, first, end, used) <= target
                    and runs.storage[end] - runs.storage[first] <= used * runs.memory
                ]  # fmt: skip
                assert reach.last[cores, first] == max(fits)


def test_the_view_is_of_the_last_two_borders() -> None:
    for state, expected in (
        ([9, 0, 0, 1], View(-1, 0, 0, 0, 0, 1, 4)),
        ([0, 9, 0, 1], View(-1, 1, 0, 0, 0, 2, 4)),
        ([0, 4, 5, 0, 0, 1], View(1, 2, 0, 4, 2, 1, 4)),
        ([3, 0, 2, 4, 0, 1], View(2, 3, 3, 5, 2, 1, 3)),
        ([3, 0, 2, 0, 4, 1], View(2, 4, 3, 5, 2, 2, 3)),
        ([3, 0, 2, 0, 3, 2], View(4, 5, 5, 8, 2, 1, 1)),
    ):
        assert view_of(np.array(state)) == expected
    assert view_of(np.array([3, 0, 0, 7])).b == -1 and view_of(np.array([0, 0, 10])).b == -1


def test_features_compare_loads_and_uses_with_the_target() -> None:
    env, found = chain_env(4), np.empty(FEATURES)
    runs, target = env.runs, 1.1 * target_of(env)
    reach = reach_of(runs, 8, target)
    look(runs, reach, View(2, 3, 0, 7, 3, 1, 5), found)
    assert found[-1] == 1 and found[0] == pytest.approx(min(run_load(runs, 0, 7, 3) / target, MOST))
    assert found[PER_STAGE] == pytest.approx(min(run_load(runs, 7, 23, 1) / target, MOST))
    assert found[BEYOND] == np.sign(7 - reach.last[3, 0])
    alone = runs.time[0]
    uses = [
        (alone[reach.last[c, 7]] - alone[7]) / (c * target) if reach.last[c, 7] < 24 else WHOLE
        for c in range(1, 6)
    ]
    assert found[PER_STAGE + USE] == pytest.approx(uses[0])
    assert found[PER_STAGE + LATER_USE] == pytest.approx(max(uses[1:]))
    look(runs, reach, View(2, 5, 0, 7, 3, 3, 5), found)
    assert not found[:PER_STAGE].any() and found[-1] == 0


def test_numpy_torch_and_kernels_agree() -> None:
    torch = pytest.importorskip("torch")
    rng, size = np.random.default_rng(0), Size(hidden=6)
    arrays = {k: rng.normal(0, 0.5, v).astype(np.float32) for k, v in size.shapes.items()}
    features = rng.normal(size=(7, FEATURES)).astype(np.float32)
    here = scores(arrays, features)
    there = scores({k: torch.tensor(a) for k, a in arrays.items()}, torch.tensor(features), torch)
    kernel = np.stack([score(network(arrays), row.astype(np.float64)) for row in features])
    assert here.shape == (7, CHOICES) and here == pytest.approx(there.numpy(), abs=1e-5)
    assert here == pytest.approx(kernel, abs=1e-4)


@pytest.mark.parametrize("heat", [0.0, 1.0])
def test_episodes_take_actions_of_the_environment(heat: float) -> None:
    """The environment, given the same actions one by one, has the same rewards and ends in the same state."""
    for seed in range(4):
        env = chain_env(seed)
        begin = start(24, 8)
        env.reset(options={"plan": env.plan(begin)})
        assert np.array_equal(env.arranged_core, begin)
        reach, rng = reach_of(env.runs, 8, target_of(env, 0.05)), np.random.default_rng(seed)
        episode = walk(env.runs, reach, rules_of(env), untrained(seed, 50), begin, heat, True, rng)
        assert len(episode.choice) > 0
        rewards, loads = [], []
        for choice, view in zip(episode.choice.tolist(), episode.view.tolist(), strict=True):
            assert view_of(env.arranged_core) == View(*view)
            _, reward, _, _, info = env.step(action_of(choice, View(*view), 8))
            assert info["changed"]
            rewards.append(reward)
            loads.append(info["objective"])
        assert np.array_equal(env.arranged_core, episode.last)
        assert episode.reward >= max(rewards) - 1e-9 and episode.load <= min(loads)
        assert env.reset(options={"plan": env.plan(episode.best)})[1]["reward"] == pytest.approx(
            episode.reward
        )


def test_actions_are_drawn_by_their_probability() -> None:
    env = chain_env(3, cores=2)  # two cores: merge, or hand on a layer
    arrays = {name: np.zeros(shape, np.float32) for name, shape in Size(hidden=1).shapes.items()}
    arrays["out.bias"][MERGE_LATER] = np.log(3.0)
    reach, rng = reach_of(env.runs, 2, 0.5 * target_of(env)), np.random.default_rng(2)
    rules = rules_of(env)._replace(steps=1)
    found = [
        walk(env.runs, reach, rules, network(arrays), start(24, 2), 1.0, True, rng).choice[0]
        for _ in range(4000)
    ]
    assert np.bincount(found, minlength=3)[[MERGE_LATER, LAST_TO_LATER]] / 4000 == pytest.approx(
        [0.75, 0.25], abs=0.03
    )


def test_an_episode_ends_when_every_stage_keeps_the_target() -> None:
    env = chain_env(2)
    begin, rng = start(24, 8), np.random.default_rng(0)
    easy = walk(
        env.runs,
        reach_of(env.runs, 8, 1e3 * target_of(env)),
        rules_of(env),
        untrained(0),
        begin,
        1.0,
        True,
        rng,
    )
    assert len(easy.choice) == 0


def test_the_teacher_leads_to_the_optimum() -> None:
    """Its number of cores is within the chip just where the exact chain says so, and its choices keep the target."""
    for seed in range(6):
        env = chain_env(seed)
        runs, target = env.runs, target_of(env)
        assert needs_of(reach_of(runs, 8, 0.999 * target))[0] > 8
        reach = reach_of(runs, 8, target)
        need, state, rng = needs_of(reach), start(24, 8), np.random.default_rng(seed)
        assert need[0] <= 8
        for _ in range(500):
            view = view_of(state)
            if view.b < 0 or worst(runs, state)[0] <= target * runs.unit:
                break
            right, least = lessons(reach, need, np.array([view]))
            assert least[0] <= (
                8 - (view.a - view.cores_a + 1 if view.cores_b == 1 and view.a >= 0 else view.a + 1)
            )
            action = action_of(int(rng.choice(np.flatnonzero(right[0]))), view, 8)
            assert act(state, action, int(np.count_nonzero(state)), 8, False) >= 0
        assert worst(runs, state)[0] <= target * runs.unit * (1 + 1e-12)
        assert costs_of(runs, reach, state, np.array([View(-1, 0, 0, 0, 0, 1, 8)]))[0] <= 8


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
    for only in ("a", "compute", "storage", "routing", "count"):
        own = (OwnAmount("count", 1.0, (1.0,) * 30),) if only == "count" else ()
        weights = Reward(
            **{name: float(name == only) for name in ("a", "compute", "storage", "routing")}, own=own
        )
        offers = Offers(replace(problem, reward=weights))
        M5Policy().run(offers.problem, offers)
        worst = [_amount(only, stage_loads(problem, plan), plan) for plan in offers.plans]
        assert worst == sorted(set(worst), reverse=True)
        assert worst[0] == _amount(only, even, GroupsEnv(problem).plan())
        better += len(worst) > 1
    assert better >= 3


def _amount(name: str, loads: StageLoads, plan: PipelinePlan) -> float:
    if name == "count":
        return float((np.bincount(plan.stage) / plan.cores).max())
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
    file, heat = (
        tmp_path / "heat.toml",
        [1] * len(json.loads((out / "plan.json").read_text("utf-8"))["stage"]),
    )
    file.write_text(f"a = 0\n[heat]\nlayers = {heat}\n", "utf-8")
    assert call(*common, "--engines", "m5-policy", "--reward", file, "-o", tmp_path / "own")[0] in (0, 3)
    assert call("verify", tmp_path / "own")[0] == 0
    code, _, said = call("train", "m5", "--reward", file, "--updates", 1, "-o", tmp_path / "no.safetensors")
    assert code == 2 and "weights alone" in said
    file.write_text("[heat]\nlayers = [1, 2]\n", "utf-8")
    for more, words in (
        (("--reward", "storage=1", "--engines", "chain"), "--engines m5-policy"),
        (("--reward", "speed=1", "--engines", "m5-policy"), "no term 'speed'"),
        (("--reward", "a=-1", "--engines", "m5-policy"), "weight a is -1"),
        (("--reward", file, "--engines", "m5-policy"), "amounts of shape 2"),
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
    assert optimum <= recorder.value < even and recorder.value <= 1.05 * optimum


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
