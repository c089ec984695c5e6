"""The environment of method M5: its states are plans, its actions do what the method says, its reward is the evaluator's."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines_support import random_dag

from nmsolve.heuristics.pipeline.actions import act, even
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.heuristics.pipeline.intervals import intervals_of
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.kinds.pipeline.statement import PipelineInputs, state_problem
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.reward import OwnAmount, Reward
from nmsolve.model.types import FloatArray

MODEL = Path(__file__).parent / "data" / "onnx" / "small_cnn.onnx"


def random_problem(seed: int, layers: int, cores: int, largest: int, **settings: object) -> PipelineProblem:
    """A random graph of layers as a chain."""
    return random_dag(seed, layers, cores, largest, **({"split": "chain"} | settings))


def hottest(plan: PipelinePlan, amount: FloatArray) -> float:
    """The largest amount of a stage's layers, shared by its cores."""
    return max(float(amount[plan.stage == k].sum()) / cores for k, cores in enumerate(plan.cores))


@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.integers(1, 7),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_state_is_a_plan_and_its_reward_is_what_the_evaluator_says(
    seed: int, layers: int, cores: int, largest: int, overlap: bool, inside: bool
) -> None:
    problem = random_problem(
        seed, layers, cores, largest, overlap=overlap, memory=9.0, stages=1 + seed % cores
    )
    heat, none = np.random.default_rng(seed + 1).random(layers), (0.0,) * layers
    own = (OwnAmount("heat", 0.75, tuple(heat.tolist())), OwnAmount("none", 3.0, none))
    weights = Reward(a=2.0, compute=0.5, storage=0.25, routing=0.125, penalty=100.0, own=own)
    macs = problem.time[:, 0]  # where none are known
    if seed % 2:
        macs = np.random.default_rng(seed).integers(0, 10**9, layers).astype(np.float64)
        problem = replace(problem, macs=macs)
    env = GroupsEnv(replace(problem, reward=weights), inside=inside, steps=50)
    env.reset(seed=seed)
    first = stage_loads(problem, env.plan())
    parts = [first.load.max(), first.compute.max(), (first.storage / first.cores).max()]
    parts.append((first.transfer_in + first.transfer_out).max())
    load0, compute0, storage0, transfer0 = (part or 1.0 for part in parts)
    heat0 = hottest(env.plan(), heat)
    rng = np.random.default_rng(seed)
    for _ in range(40 if cores > 1 else 0):
        before = env.arranged_core
        observation, reward, _, _, info = env.step(int(rng.integers(env.action_space.n)))
        state = env.arranged_core
        assert info["changed"] == (not np.array_equal(before, state))
        assert state.sum() == layers and state[-1] > 0 and state.min() >= 0
        plan = env.plan()
        complaint = plan_complaint(problem, plan)
        loads = stage_loads(problem, plan)
        per_core = (loads.storage / loads.cores).max()
        assert (complaint is None) == (per_core <= 9.0) == info["fits"]
        assert info["objective"] == objective(problem, plan)
        transfer = (loads.transfer_in + loads.transfer_out).max()
        expected = -(2 * loads.load.max() / load0 + loads.compute.max() / compute0 / 2)
        expected -= per_core / storage0 / 4 + transfer / transfer0 / 8 + 0.75 * hottest(plan, heat) / heat0
        assert reward == pytest.approx(expected - (100 if per_core > 9 else 0))
        assert observation.shape == env.observation_space.shape
        np.testing.assert_array_equal(observation[0], state)
        sums = [macs[plan.stage == k].sum() for k in range(len(plan.cores))]
        np.testing.assert_allclose(observation[1][state > 0], sums)
        assert not observation[1][state == 0].any()


def test_the_state_of_a_model_holds_macs() -> None:
    """``arranged_macs``: the work of the layers that a core ends with, counted here from the shapes that onnx infers."""
    counted = _macs(MODEL)
    env = GroupsEnv(state_problem(PipelineInputs(str(MODEL), cores=4, bind="batch=2")).problem)
    state, _ = env.reset()
    ends = np.cumsum(env.arranged_core).tolist()
    expected = [sum(counted[end - n : end]) for n, end in zip(env.arranged_core.tolist(), ends, strict=True)]
    assert state[1].tolist() == expected and len(counted) == ends[-1] and sum(expected) > 1e5


def _macs(path: Path) -> list[int]:
    """MACs of every node: of products, places of the result times the weights of one channel; others have none."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    size = {
        v.name: [d.dim_value or 2 for d in v.type.tensor_type.shape.dim]
        for v in (*model.graph.value_info, *model.graph.input, *model.graph.output)
    }
    size |= {w.name: list(w.dims) for w in model.graph.initializer}
    products = [node.op_type in ("Conv", "Gemm") for node in model.graph.node]
    ends = [(size.get(node.output[0], []), size.get([*node.input, ""][1], [])) for node in model.graph.node]
    pairs = zip(products, ends, strict=True)
    return [
        math.prod(made) * math.prod(weights) // made[1] if product else 0
        for product, (made, weights) in pairs
    ]


def test_weights_decide_between_equal_times() -> None:
    """Two plans of one time: the one that moves less is better by default, and equal with the weights at 0."""
    problem = random_problem(5, 6, 3, 3)
    still = replace(problem, time=np.ones_like(problem.time))
    whole = PipelinePlan(np.zeros(6, np.int64), np.array([3]))
    plain, weighed = (GroupsEnv(still, reward=r) for r in (Reward(compute=0, storage=0, routing=0), None))
    for env, alike in ((plain, True), (weighed, False)):
        _, info = env.reset(options={"plan": whole})
        only_time = -info["objective"] / objective(still, GroupsEnv(still).plan())
        assert (info["reward"] == pytest.approx(only_time)) == alike


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_plans_and_states_turn_into_each_other(seed: int, layers: int, cores: int) -> None:
    problem = random_problem(seed, layers, cores, cores)
    env = GroupsEnv(problem, inside=True)
    env.reset(seed=seed, options={"shuffle": 30})
    state, plan = env.arranged_core, env.plan()
    assert plan.cores.sum() == cores
    np.testing.assert_array_equal(env.encode(plan), state)
    env.reset(options={"plan": plan})
    np.testing.assert_array_equal(env.arranged_core, state)
    again = env.plan()
    assert np.array_equal(again.stage, plan.stage) and np.array_equal(again.cores, plan.cores)


#: state, kind, earlier core, state after (None: nothing changes), each as the method's text has it
ACTIONS = [
    (
        [2, 0, 3, 1],
        0,
        0,
        [0, 2, 3, 1],
    ),  # the earlier's layers go to the later, whose core joins: it leaves the later group
    ([2, 1, 3, 1], 0, 1, [2, 0, 4, 1]),  # both groups become one
    ([2, 0, 3, 1], 0, 1, None),  # cores 1 and 2 are one group already
    ([2, 1, 3, 1], 1, 0, [3, 0, 3, 1]),  # core 0 takes all, core 1 joins the group of core 2
    ([2, 0, 3, 1], 1, 0, None),  # core 1 holds nothing to merge
    ([2, 0, 3, 1], 1, 2, None),  # there is no core after the last whose group core 3 could join
    ([2, 0, 3, 1], 2, 0, [1, 1, 3, 1]),  # the last layer of core 0 makes core 1 a stage of its own
    ([1, 4, 0, 1], 2, 0, [0, 5, 0, 1]),  # the only layer: the core joins the later group
    ([2, 0, 3, 1], 2, 1, None),  # one group: nothing to pass on
    ([2, 2, 1, 1], 3, 0, [3, 1, 1, 1]),
    ([2, 1, 1, 2], 3, 0, [3, 0, 1, 2]),
    ([2, 0, 3, 1], 3, 1, None),  # one group
    ([2, 0, 3, 1], 3, 2, None),  # the last core would be without a group
    ([2, 0, 3, 1], 3, 0, None),  # core 1 holds nothing
]


@pytest.mark.parametrize(("state", "kind", "core", "after"), ACTIONS)
def test_the_four_kinds_of_actions(state: list[int], kind: int, core: int, after: list[int] | None) -> None:
    array = np.array(state)
    stages = act(array, kind * 3 + core, int(np.count_nonzero(array)), 4, False)
    assert array.tolist() == (state if after is None else after)
    assert stages == (-1 if after is None else np.count_nonzero(array))


def test_a_group_is_split_from_within_only_where_that_is_asked_for() -> None:
    state = np.array([0, 3, 1])
    assert act(state, 3 * 2 + 0, 2, 3, False) == -1
    assert act(state, 3 * 2 + 0, 2, 2, True) == -1  # two stages are the most
    assert act(state, 3 * 2 + 0, 2, 3, True) == 3
    assert state.tolist() == [1, 2, 1]


def test_from_within_every_plan_can_be_reached() -> None:
    def around(state: tuple[int, ...]) -> set[tuple[int, ...]]:
        out = set()
        for action in range(4 * (len(state) - 1)):
            array = np.array(state)
            if act(array, action, int(np.count_nonzero(array)), 4, True) >= 0:
                out.add(tuple(array.tolist()))
        return out

    start = tuple(even(4, 4, 4).tolist())
    seen, new = {start}, {start}
    while new:
        new = set().union(*(around(s) for s in new)) - seen
        seen |= new
    assert len(seen) == 20  # three numbers >= 0 that add up to 3 at most, and the last core's


def test_episodes_end_at_the_target_or_after_the_steps() -> None:
    problem = random_problem(5, 6, 3, 3)
    env = GroupsEnv(problem, steps=2, target=-1e9)
    env.reset()
    assert env.step(0)[2:4] == (True, False)
    env = GroupsEnv(problem, steps=2)
    env.reset()
    assert [env.step(0)[2:4], env.step(1)[2:4]] == [(False, False), (False, True)]
    first = [env.reset(seed=3, options={"shuffle": 20})[0].tolist() for _ in range(2)]
    assert first[0] == first[1]


def test_layers_that_stay_together_move_as_one() -> None:
    together = np.array([-1, 4, -1, 4, -1, -1])
    problem = random_problem(8, 6, 4, 4, together=together)
    env = GroupsEnv(problem, inside=True)
    assert env.merged.problem.count == 4  # layers 1 to 3 are one
    env.reset(seed=1, options={"shuffle": 50})
    assert plan_complaint(problem, env.plan()) is None
    assert env.step(0)[4]["objective"] == objective(problem, env.plan())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"exact_stages": True, "stages": 2}, "fixed number of stages"),
        ({"use_all": True}, "groups of at most 2"),
    ],
)
def test_problems_whose_rules_the_actions_could_break_are_refused(
    change: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        GroupsEnv(random_problem(1, 6, 4, 2, **change))


def test_wrong_arguments_are_named() -> None:
    problem = random_problem(1, 6, 4, 4)
    with pytest.raises(InputError, match="weight storage"):
        Reward(storage=-1.0)
    with pytest.raises(InputError, match="0 steps"):
        GroupsEnv(problem, steps=0)
    with pytest.raises(InputError, match="not a permutation"):
        GroupsEnv(problem, order=np.zeros(6, np.int64))
    with pytest.raises(InputError, match="passes data backwards"):
        GroupsEnv(problem, order=np.arange(6)[::-1])
    with pytest.raises(InputError, match="action 12"):
        GroupsEnv(problem).step(12)
    with pytest.raises(InputError, match="not intervals"):
        GroupsEnv(problem).encode(PipelinePlan(np.array([0, 1, 0, 1, 0, 1]), np.array([1, 1])))


@given(st.integers(0, 10**6), st.integers(1, 10), st.booleans())
@settings(max_examples=60, deadline=None)
def test_tables_of_runs_hold_for_any_order(seed: int, layers: int, overlap: bool) -> None:
    problem = random_problem(seed, layers, 3, 2, split="any", overlap=overlap)
    order = np.random.default_rng(seed).permutation(layers)
    runs = intervals_of(problem, order)
    for i in range(layers):
        for j in range(i + 1, layers + 1):
            stage = np.ones(layers, np.int64)
            stage[order[i:j]] = 0
            loads = stage_loads(problem, PipelinePlan(stage, np.array([2, 1])))
            assert runs.transfer[i, j] * runs.unit == loads.transfer_in[0] + loads.transfer_out[0]
            assert (runs.time[1, j] - runs.time[1, i]) * runs.unit == loads.compute[0]


@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from(["chain", "contiguous", "any"]))
@settings(max_examples=80, deadline=None)
def test_merged_problems_have_the_same_loads(seed: int, layers: int, split: str) -> None:
    rng = np.random.default_rng(seed)
    together = rng.integers(-1, 3, layers)
    problem = random_problem(seed, layers, 3, 2, split=split, together=together)
    merged = merge(problem)
    assert (merged.before < merged.after).all()
    small = merged.problem
    stage = np.sort(rng.integers(0, 3, small.count))
    stage = np.unique(stage, return_inverse=True)[1]
    plan = PipelinePlan(stage, np.ones(stage.max() + 1, np.int64))
    lifted = merged.lift(plan)
    assert plan_complaint(problem, lifted) is None
    np.testing.assert_allclose(stage_loads(small, plan).load, stage_loads(problem, lifted).load)
    np.testing.assert_array_equal(merged.lower(lifted).stage, plan.stage)
