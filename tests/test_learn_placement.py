"""The placement policy: the same answer for the same problem, whatever its nodes are called and however its board is turned."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from search_fakes import QuietContext

from nmsolve.hw.scores import objective_value
from nmsolve.learn.checkpoint import load, model_path, save
from nmsolve.learn.placement import engine
from nmsolve.learn.placement.board import board_of
from nmsolve.learn.placement.decode import decoded
from nmsolve.learn.placement.draft import Draft, Stopped
from nmsolve.learn.placement.engine import Policy, policy_model
from nmsolve.learn.placement.features import FEATURES, traffic_of
from nmsolve.learn.placement.network import Scores, Seen, Size, first_arrays, refine, shares
from nmsolve.learn.placement.starts import LAYOUTS, start_scores
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import AnyArray
from nmsolve.solvers.mapping.api import make_problem

SIZE = Size(6, 5, 7)
PINS = (SideConstraint("a", "pin", (3,), (9,)), SideConstraint("b", "region", (1, 2), (0, 1, 4)))


def mesh(rows: int, cols: int, **more: object) -> Machine:
    return Machine("mesh", (1, 1), (rows, cols), **more)  # type: ignore[arg-type]


def renamed(graph: LogicGraph, new: AnyArray) -> LogicGraph:
    """Node ``i`` becomes ``new[i]``."""
    return LogicGraph.from_edges(graph.n, new[graph.edge_source], new[graph.targets], graph.weights)


def weird_arrays(size: Size = SIZE) -> dict[str, AnyArray]:
    """A network with random weights everywhere."""
    return {k: v.astype(np.float64) for k, v in first_arrays(size, 2, spread=0.7).items()}


def seen_of(rng: np.random.Generator, n: int, rows: int, cols: int) -> tuple[Seen, AnyArray, AnyArray]:
    """A random graph on a board with a dead core, and random scores."""
    matrix = rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    matrix = matrix + matrix.T
    load = matrix.sum(axis=1, keepdims=True) + 1e-3
    capacity = np.ones((rows, cols))
    capacity[0, 1] = 0.0
    across, down = (np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float) for k in (cols, rows))
    seen = Seen(
        lambda a: matrix @ a, rng.normal(size=(n, FEATURES)), load, np.ones((n, 1)), capacity, across, down
    )
    return seen, rng.normal(size=(n, cols)), rng.normal(size=(n, rows))


class Keeping(QuietContext):
    """Keeps what is offered last."""

    def offer(self, core: AnyArray, move: str = "") -> bool:
        self.best = core
        return True


def equal(a: Scores, b: Scores, rows: AnyArray | slice = np.s_[:]) -> bool:
    return all(
        np.allclose(p[rows], q, atol=1e-6) for p, q in ((a.x, b.x), (a.y, b.y), (a.share_x, b.share_x))
    )


def test_nodes_renamed_give_the_same_scores_renamed() -> None:
    rng = np.random.default_rng(1)
    seen, x, y = seen_of(rng, 13, 4, 5)
    order, arrays = rng.permutation(13), weird_arrays()
    shuffled = seen._replace(
        near=lambda a: seen.near(a[np.argsort(order)])[order],
        features=seen.features[order],
        load=seen.load[order],
    )
    found, again = refine(arrays, seen, x, y), refine(arrays, shuffled, x[order], y[order])
    assert equal(found, again, order) and not np.allclose(found.x, again.x)


def test_a_board_mirrored_or_turned_gives_the_same_scores_mirrored_or_turned() -> None:
    seen, x, y = seen_of(np.random.default_rng(2), 13, 4, 5)
    arrays = weird_arrays()
    found = refine(arrays, seen, x, y)
    mirrored = refine(arrays, seen._replace(capacity=seen.capacity[:, ::-1]), x[:, ::-1], y)
    assert np.allclose(mirrored.x, found.x[:, ::-1]) and np.allclose(mirrored.y, found.y)
    turned = seen._replace(capacity=seen.capacity.T, across=seen.down, down=seen.across)
    turned_found = refine(arrays, turned, y, x)
    assert np.allclose(turned_found.x, found.y) and np.allclose(turned_found.y, found.x)


def test_torch_computes_the_same_scores_in_batches() -> None:
    torch = pytest.importorskip("torch")
    arrays, cases = weird_arrays(), [seen_of(np.random.default_rng(k), 11, 3, 4) for k in (3, 4)]

    def stack(pick: object) -> object:
        return torch.tensor(np.stack([pick(s, x, y) for s, x, y in cases]))  # type: ignore[operator]

    matrix = stack(lambda s, x, y: s.near(np.eye(11)))
    parts = (stack(lambda s, x, y: s.features), stack(lambda s, x, y: s.load), stack(lambda s, x, y: s.size))
    board = tuple(torch.tensor(a) for a in (cases[0][0].capacity, cases[0][0].across, cases[0][0].down))
    weights = {k: torch.tensor(v) for k, v in arrays.items()}
    both = refine(
        weights,
        Seen(lambda a: matrix @ a, *parts, *board),
        stack(lambda s, x, y: x),
        stack(lambda s, x, y: y),
        torch,
    )
    for k, (seen, x, y) in enumerate(cases):
        one = refine(arrays, seen, x, y)
        assert all(np.allclose(p[k].numpy(), q, atol=1e-9) for p, q in zip(both, one, strict=True))


def test_prices_keep_capacities_and_dead_cores_get_nothing() -> None:
    seen, x, y = seen_of(np.random.default_rng(5), 12, 4, 4)
    share_x, share_y, price = shares(seen, 3 * x, 3 * y, np.ones((4, 4)), 300, np)
    assert np.allclose(share_x.sum(axis=1), 1) and np.allclose(share_y.sum(axis=1), 1)
    weights = np.exp(3 * x[:, None, :] + 3 * y[:, :, None]) * price
    core = weights / weights.sum(axis=(1, 2), keepdims=True)
    assert core.sum(axis=0)[0, 1] == 0 and core.sum(axis=0).max() < 1.01
    assert np.allclose(core.sum(axis=1), share_x, atol=1e-6) and np.allclose(
        core.sum(axis=2), share_y, atol=1e-6
    )


def test_the_whole_policy_costs_the_same_for_renamed_nodes() -> None:
    """Random weights: eigenvectors and assignments have no ties."""
    model, _ = policy_model()
    graph, new = generate("mesh-rnd", nodes=36, seed=7), np.random.default_rng(0).permutation(36)
    problems = [make_problem(g, mesh(6, 6)) for g in (graph, renamed(graph, new))]
    first, second = (Draft(p, model.arrays).placement(0) for p in problems)
    # A sign of an eigenvector only mirrors the board; here it is set by the largest entry, which is renamed too.
    assert np.array_equal(first, second[new])


def test_features_do_not_depend_on_units_or_names() -> None:
    graph, new = generate("mesh-geo", nodes=40, seed=3), np.random.default_rng(1).permutation(40)
    large = LogicGraph.from_edges(40, graph.edge_source, graph.targets, 1e6 * graph.weights)
    first = traffic_of(graph)
    assert first.features.shape == (40, FEATURES) and np.isfinite(first.features).all()
    assert np.allclose(traffic_of(large).features, first.features, atol=1e-6)
    assert np.allclose(traffic_of(renamed(graph, new)).features[new], first.features, atol=1e-6)


def test_starts_spread_nodes_over_what_lines_hold() -> None:
    problem = make_problem(
        generate("mesh-geo", nodes=20, seed=2), mesh(5, 6, faulty_cores=tuple(range(0, 30, 6)))
    )
    x, y = start_scores(traffic_of(problem.graph).axes, board_of(problem), LAYOUTS[0])
    assert np.bincount(x.argmax(axis=1), minlength=6).tolist() == [0] + [4] * 5  # column 0 is dead
    assert np.bincount(y.argmax(axis=1), minlength=5).tolist() == [4] * 5


def test_decoding_is_the_best_assignment() -> None:
    rng = np.random.default_rng(0)
    problem = make_problem(LogicGraph.from_edges(4, [0, 1], [1, 2]), mesh(2, 2))
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    core = decoded(problem, x, y, np.ones((2, 2)))
    from itertools import permutations

    def total(at: tuple[int, ...]) -> float:
        return float(sum(x[u, p % 2] + y[u, p // 2] for u, p in enumerate(at)))

    assert total(tuple(core.tolist())) == pytest.approx(max(map(total, permutations(range(4)))))


@pytest.mark.parametrize(
    ("machine", "nodes", "more"),
    [
        (mesh(3, 9, faulty_cores=(0, 13)), 25, {}),
        (Machine("chips", (2, 2), (2, 3), crossing_weight=4.0), 22, {}),
        (Machine("ring", (1, 1), (4, 5), torus=True), 20, {}),
        (mesh(3, 3), 60, {"balance": 0.1}),
        (mesh(1, 12), 12, {}),
        (mesh(4, 4), 14, {"constraints": PINS}),
    ],
    ids=["dead cores", "chips", "torus", "many per core", "line", "pins"],
)  # fmt: skip
def test_every_kind_of_board_gets_a_legal_placement_better_than_chance(
    machine: Machine, nodes: int, more: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "SAMPLES", 4)
    problem = make_problem(generate("mesh-geo", nodes=nodes, seed=4), machine, **more)  # type: ignore[arg-type]
    context = Keeping()
    assert Policy().refuses(problem) is None
    Policy().run(problem, context)
    assert context.best is not None and not check_mapping(problem, context.best)
    rng = np.random.default_rng(0)
    chance = [objective_value(problem, context.best[rng.permutation(nodes)]) for _ in range(20)]
    assert objective_value(problem, context.best) < 0.8 * float(np.mean(chance))


def test_the_trained_policy_is_much_better_than_the_layout_that_it_starts_from() -> None:
    model, _ = policy_model()
    gains = []
    for family in ("geo", "comm", "layered", "rnd"):
        problem = make_problem(generate(f"mesh-{family}", nodes=64, seed=50), mesh(8, 8))
        draft = Draft(problem, model.arrays)
        start = decoded(
            problem,
            *start_scores(traffic_of(problem.graph).axes, draft.board, LAYOUTS[0]),
            draft.board.capacity,
        )
        gains.append(1 - objective_value(problem, draft.placement(0)) / objective_value(problem, start))
    assert min(gains) > 0.04 and np.mean(gains) > 0.1


def test_draws_stop_when_told() -> None:
    problem = make_problem(generate("mesh-comm", nodes=36, seed=5), mesh(6, 6))
    with pytest.raises(Stopped):
        Draft(problem, policy_model()[0].arrays, lambda: True).placement(0)


def test_a_damaged_model_is_one_line_and_a_first_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, of another method, and with other arrays than its sizes say."""
    problem = make_problem(generate("mesh-geo", nodes=16, seed=1), mesh(4, 4))
    model, _ = policy_model()
    path = tmp_path / "policy.safetensors"
    save(path, replace(model, arrays={"round.heat": np.zeros(3, np.float32)}))
    contents = (b"broken", model_path("m1").read_bytes(), path.read_bytes())
    monkeypatch.setenv("NMSOLVE_MODELS", str(tmp_path))
    for content in contents:
        path.write_bytes(content)
        context = Keeping()
        Policy().run(problem, context)
        assert [("first fit instead" in note, "\n" in note) for note in context.notes] == [(True, False)]
        assert context.best is not None


def test_training_is_repeatable_resumes_and_lowers_the_cost(call: Called, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    common = ("--sides", "3", "--rounds", "4", "--seed", "3", "--json", "--family", "mesh-geo,mesh-comm")

    def train(name: str, *more: str) -> dict[str, object]:
        code, output, errors = call("train", "policy", *common, "--out", str(tmp_path / name), *more)
        assert code == 0, errors
        return json.loads(output)

    first, again = train("a.safetensors", "--updates", "1"), train("b.safetensors", "--updates", "1")
    assert first["hash"] == again["hash"]
    train("a.safetensors", "--updates", "1", "--resume")
    whole = train("c.safetensors", "--updates", "2")
    assert load(tmp_path / "a.safetensors", "policy").hash == whole["hash"] != first["hash"]
    assert (tmp_path / "a.csv").read_text().startswith("update,cpu_seconds,expected")
    code, _, errors = call(
        "train", "policy", "--resume", "--sides", "5", "--out", str(tmp_path / "a.safetensors")
    )
    assert code == 2 and "other options" in errors


def test_updates_lower_the_loss() -> None:
    pytest.importorskip("torch")
    from nmsolve.learn.placement.train import OVERFULL, Settings, Trainer

    trainer = Trainer(Settings(("mesh-comm",), (4,), 6, 1, pool=2, batch=4))
    rows = [trainer.update() for _ in range(24)]
    loss = [row["expected"] + OVERFULL * row["overfull"] for row in rows]
    assert np.mean(loss[-6:]) < np.mean(loss[:6]) - 0.02


def test_the_shipped_model_is_small() -> None:
    assert model_path("policy").stat().st_size < 400_000 and policy_model()[1].rounds >= 16


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--family", "trees"), "unknown family"),
        (("--sides", "2"), "3 to 16"),
        (("--rounds", "1"), "4 to 200"),
    ],
)
def test_wrong_options_are_one_line(
    arguments: tuple[str, ...], words: str, call: Called, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    code, _, errors = call("train", "policy", *arguments, "--out", str(tmp_path / "x.safetensors"))
    assert code == 2 and words in errors and errors.count("\n") == 1
