"""Training of both policies: repeatable, can be resumed, and gets better; files of models are checked before use."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from conftest import Called

from nmsolve.learn.checkpoint import Checkpoint, load, model_path, save
from nmsolve.model.errors import InputError

SHORT = {
    "m1": ("--side", "4", "--updates", "3"),
    "m5": ("--cores", "6", "--layers", "8-12", "--updates", "2"),
}


def train(call: Called, method: str, out: Path, *more: str) -> dict[str, object]:
    """Train for a moment; the last line as JSON."""
    code, output, errors = call(
        "train", method, *SHORT[method], "--seed", "3", "--json", "--out", str(out), *more
    )
    assert code == 0, errors
    return json.loads(output)


@pytest.mark.parametrize("method", ["m1", "m5"])
def test_training_gives_the_same_file_twice_and_goes_on_as_if_never_stopped(
    method: str, call: Called, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    one, two, three = (tmp_path / f"{k}.safetensors" for k in "abc")
    first, again = train(call, method, one), train(call, method, two)
    assert first["hash"] == again["hash"] and one.read_bytes() == two.read_bytes()
    train(call, method, one, "--resume")
    whole = train(call, method, three, "--updates", str(2 * int(SHORT[method][-1])))
    assert load(one, method).hash == load(three, method).hash == whole["hash"] != first["hash"]
    lines = one.with_suffix(".csv").read_text().splitlines()
    assert len(lines) == 2 * int(SHORT[method][-1]) + 1 and lines[0].startswith("update,cpu_seconds")
    assert f"`{whole['hash']}`" in one.with_suffix(".md").read_text()
    code, _, errors = call("train", method, "--resume", "--seed", "4", "--out", str(one))
    assert code == 2 and "other options" in errors and errors.count("\n") == 1


def test_ppo_and_the_plain_gradient_both_raise_the_reward() -> None:
    """From a network that has learned nothing, without imitation, on one graph."""
    pytest.importorskip("torch")
    from nmsolve.learn.mapping.train import Settings, Trainer

    for algorithm in ("ppo", "gradient"):
        settings = Settings(
            ("mesh-comm",), 4, 1, algorithm, pool=1, imitation=0, threshold=1.0, rate=5e-3, rounds=2
        )
        trainer = Trainer(settings)
        rewards = [trainer.update()["reward"] for _ in range(40)]
        assert np.mean(rewards[-8:]) > np.mean(rewards[:8]) + 0.03


def test_training_improves_on_a_network_that_has_learned_nothing() -> None:
    """Greedy rounds on graphs that training did not see, after a few updates."""
    pytest.importorskip("torch")
    from nmsolve.hw.scores import objective_value
    from nmsolve.learn.mapping.engine import greedy
    from nmsolve.learn.mapping.rounds import Rounds
    from nmsolve.learn.mapping.train import Settings, Trainer
    from nmsolve.model.generators import generate
    from nmsolve.solvers.mapping.api import make_problem

    trainer = Trainer(Settings(side=6, imitation=25, rounds=4, threshold=1.5))
    boards = [
        Rounds(
            make_problem(generate(f"mesh-{kind}", nodes=36, seed=seed), trainer.machine),
            trainer.size,
            np.zeros(36, np.int64),
        )
        for kind in ("geo", "comm", "layered", "rnd")
        for seed in (1, 2, 3)
    ]

    def hops() -> np.ndarray:
        model = trainer.checkpoint()
        return np.array([min(objective_value(b.problem, c) for _, c in greedy(b, model)) for b in boards])

    untrained = hops()
    for _ in range(30):
        trainer.update()
    assert np.mean(hops() / untrained) < 0.95


def test_training_goes_on_as_if_never_stopped_where_imitation_ends(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from nmsolve.learn.mapping.train import Settings, Trainer

    how = Settings(("mesh-geo",), 4, imitation=2, pool=2)
    whole, first = Trainer(how), Trainer(how)
    for _ in range(4):
        whole.update()
    for _ in range(2):
        first.update()
    save(tmp_path / "state.safetensors", first.state())
    second = Trainer(how, state=load(tmp_path / "state.safetensors", "m1"))
    for _ in range(2):
        second.update()
    assert second.checkpoint().hash == whole.checkpoint().hash


def test_ppo_clips_the_ratio_of_every_node() -> None:
    """Probabilities, aim and gradient against the definition, number by number."""
    torch = pytest.importorskip("torch")
    from nmsolve.learn.mapping.train import clipped_aim, log_chosen, log_probabilities

    rng = np.random.default_rng(3)
    mean, old = rng.uniform(0, 4, (6, 2)), rng.uniform(0, 4, (6, 2))
    deviation, action = rng.uniform(-0.5, 0.5, (6, 2)), rng.integers(0, 5, (3, 6, 2))
    gain, clip = rng.normal(size=(3, 6)), 0.2

    def log_probability(mean: np.ndarray, s: int, u: int) -> float:
        out = 0.0
        for axis in (0, 1):
            density = [
                np.exp(-0.5 * ((x - mean[u, axis]) / np.exp(deviation[u, axis])) ** 2) for x in range(5)
            ]
            out += np.log(density[action[s, u, axis]] / sum(density))
        return out

    def aim(mean: np.ndarray) -> float:
        total = 0.0
        for s in range(3):
            for u in range(6):
                ratio = np.exp(log_probability(mean, s, u) - log_probability(old, s, u))
                total += min(ratio * gain[s, u], np.clip(ratio, 1 - clip, 1 + clip) * gain[s, u])
        return total / 18

    place = torch.tensor(mean, requires_grad=True)
    line, actions = torch.arange(5.0), torch.tensor(action)
    chosen = log_chosen(log_probabilities(place, torch.tensor(deviation), line), actions)
    before = log_chosen(log_probabilities(torch.tensor(old), torch.tensor(deviation), line), actions)
    for s in range(3):
        for u in range(6):
            assert float(chosen[s, u]) == pytest.approx(log_probability(mean, s, u))
    found = clipped_aim(chosen, before, torch.tensor(gain), clip)
    assert float(found) == pytest.approx(aim(mean))
    found.backward()
    for at in np.ndindex(6, 2):
        up, down = mean.copy(), mean.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        assert float(place.grad[at]) == pytest.approx((aim(up) - aim(down)) / 2e-5, abs=1e-5)


def test_credit_is_what_an_exchange_changes_for_both_nodes() -> None:
    """Of placements that differ by one exchange, both nodes get what both gain, whether most draws make it or not."""
    pytest.importorskip("torch")
    from nmsolve.learn.mapping.policy import Size
    from nmsolve.learn.mapping.train import Settings, credits, task_of
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.reward_terms import RewardTerms

    how = Settings(terms=RewardTerms(0.0, 0.0, 0.0, 1.0))
    task = task_of("mesh-geo", 1, Machine("m", (1, 1), (4, 4)), Size(), how.terms)
    core = np.random.default_rng(1).permutation(16)
    swapped = core.copy()
    swapped[[3, 8]] = core[[8, 3]]
    before, after = task.rewards.by_node(np.stack([core, swapped]))
    gain = before - after
    both = np.array([core, *[swapped] * 999]), np.array([swapped, *[core] * 999])
    for draws, likely, sign in ((both[0], swapped, -1), (both[1], core, 1)):
        found, whole, _ = credits(task, core, likely, draws, how)
        rare = sign * task.chance * (found[0] - found[1])
        assert rare[[3, 8]] == pytest.approx([gain[3] + gain[8]] * 2, rel=0.02)
        assert np.delete(rare, [3, 8]) == pytest.approx(np.delete(gain, [3, 8]))
        assert sign * task.chance * (whole[0] - whole[1]) == pytest.approx(gain.sum())


def test_all_tensors_of_training_are_on_the_gpu_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said to have a GPU, torch is asked for it every time; here the processor answers in its place."""
    torch = pytest.importorskip("torch")
    from nmsolve.learn.mapping import train as m1
    from nmsolve.learn.pipeline import train as m5

    asked, real = [], torch.as_tensor

    def as_tensor(array: object, dtype: object = None, device: str | None = None) -> object:
        asked.append(device)
        return real(array, dtype=dtype)

    monkeypatch.setattr(torch, "as_tensor", as_tensor)
    monkeypatch.setattr(torch, "from_numpy", None)
    for gpu in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda gpu=gpu: gpu)
        for trainer in (
            m1.Trainer(m1.Settings(("mesh-comm",), 4, pool=1)),
            m5.Trainer(m5.Settings((4,), (4, 6))),
        ):
            asked.clear()
            trainer.update()
            assert len(asked) > 1 and set(asked) == {"cuda" if gpu else "cpu"}


def test_placing_does_as_training_did(call: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means of weights and the distance to free cores are kept with the model, and change the answer."""
    pytest.importorskip("torch")
    from nmsolve.learn.mapping.engine import m1_model

    train(call, "m1", tmp_path / "m1.safetensors", "--mean", "--distance", "euclidean")
    monkeypatch.setenv("NMSOLVE_MODELS", str(tmp_path))
    _, size = m1_model()
    assert (size.mean, size.distance) == (True, "euclidean")


def test_the_threshold_triggers_updates_and_so_does_the_limit_on_graphs() -> None:
    pytest.importorskip("torch")
    from nmsolve.learn.mapping.train import Settings, Trainer

    for threshold, most, graphs in ((1e-9, 5, 1), (1e9, 3, 3)):
        trainer = Trainer(Settings(("mesh-comm",), 4, threshold=threshold, most_graphs=most, pool=2))
        assert trainer.update()["graphs"] == graphs


def test_reinforce_and_imitation_each_raise_the_reward() -> None:
    pytest.importorskip("torch")
    from nmsolve.learn.pipeline.train import Settings, Trainer

    for imitation, updates in ((0, 60), (30, 30)):
        trainer = Trainer(
            Settings((6,), (12, 16), seed=1, imitation=imitation, rate=1e-2, imitation_rate=1e-2)
        )
        rewards = [trainer.update()["reward"] for _ in range(updates)]
        assert np.mean(rewards[-10:]) > np.mean(rewards[:5]), imitation


@pytest.mark.parametrize("method", ["m1", "m5"])
def test_shipped_models_are_whole_and_small(method: str) -> None:
    from nmsolve.learn.mapping.engine import m1_model
    from nmsolve.learn.pipeline.engine import m5_model

    path = model_path(method)
    assert path.stat().st_size < 1_200_000
    model, size = m1_model() if method == "m1" else m5_model()
    assert load(path, method, size.shapes).hash == model.hash


def test_files_that_are_no_model_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "m1.safetensors"
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3)}
    save(path, Checkpoint("m1", arrays, {"size": {}}))
    assert np.array_equal(load(path, "m1", {"a": (2, 3)}).arrays["a"], arrays["a"])
    good = path.read_bytes()
    with pytest.raises(InputError, match="shape"):
        load(path, "m1", {"a": (3, 2)})
    with pytest.raises(InputError, match="'b'"):
        load(path, "m1", {"a": (2, 3), "b": (1,)})
    with pytest.raises(InputError, match="something else"):
        load(path, "m5")
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none", "m1")
    changed = good[:-1] + bytes([good[-1] ^ 1])
    foreign = [pickle.dumps(arrays), b"\x00" * 40, good[:30], good[:-3], changed, good.replace(b"m1", b"m5")]
    for content in foreign:
        path.write_bytes(content)
        with pytest.raises(InputError) as refused:
            load(path, "m1")
        assert "\n" not in str(refused.value)
    save(path, Checkpoint("m1", {"a": np.array([np.inf], np.float32)}, {}))
    with pytest.raises(InputError, match="finite"):
        load(path, "m1")


def test_doctor_says_which_models_are_there(
    call: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmsolve.cli.doctor import _models

    rows = {row["name"]: row for row in _models()}
    assert rows["model m1"]["ok"] and "m1-policy" in str(rows["model m1"]["text"])
    (tmp_path / "m5.safetensors").write_bytes(b"broken")
    monkeypatch.setenv("NMSOLVE_MODELS", str(tmp_path))
    rows = {row["name"]: row for row in _models()}
    assert (
        rows["model m1"]["ok"] and not rows["model m5"]["ok"] and "damaged" in str(rows["model m5"]["text"])
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("m1", "--family", "trees"), "unknown family"),
        (("m1", "--reward", "speed=1"), "no term"),
        (("m1", "--algorithm", "luck"), "ppo or gradient"),
        (("m1", "--distance", "far"), "manhattan or euclidean"),
        (("m1", "--out", "x.pt"), ".safetensors"),
        (("m1", "--resume", "--out", "nothing"), "no such file"),
        (("m5", "--cores", "1"), "cores"),
        (("m5", "--cores", "many"), "whole numbers"),
        (("m5", "--layers", "9"), "LEAST-MOST"),
        (("m5", "--reward", "routing=-1"), "routing"),
        (("m5", "--reward", "speed=1"), "no term"),
    ],
)
def test_wrong_options_are_one_line(
    arguments: tuple[str, ...], words: str, call: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    code, _, errors = call("train", *arguments)
    assert code == 2 and words in errors and errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
