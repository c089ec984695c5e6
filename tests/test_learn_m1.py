"""Method M1's learned placement against plain definitions, brute force, and torch."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.published.communities import communities_to_chips
from nmsolve.hw.reward import reward_loss
from nmsolve.hw.scores import objective_value
from nmsolve.learn.checkpoint import Checkpoint, save
from nmsolve.learn.mapping.allocate import allocate, by_priority
from nmsolve.learn.mapping.board import board_of
from nmsolve.learn.mapping.engine import M1Policy, greedy, m1_model, placements
from nmsolve.learn.mapping.exchange import exchanges
from nmsolve.learn.mapping.features import node_features, smooth_axes, traffic_of
from nmsolve.learn.mapping.policy import LEAST_LOG, Size, draw, first_arrays, gaussians, probabilities
from nmsolve.learn.mapping.reward import Rewards
from nmsolve.learn.mapping.rounds import Rounds
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reward_terms import OwnTerm, RewardTerms, reward_terms
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import make_problem, solve


def random_graph(seed: int, n: int, edges: int, casts: bool = True) -> LogicGraph:
    """Whole weights; some rows are multicast."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 9, edges).astype(float)
    graph = LogicGraph.from_edges(n, rng.integers(0, n, edges), rng.integers(0, n, edges), weights)
    if not casts:
        return graph
    same = np.repeat(graph.rate, np.diff(graph.indptr))
    return replace(graph, multicast=rng.random(graph.rows) < 0.5, weights=same)


@pytest.mark.parametrize("mean", [False, True])
def test_features_are_what_their_names_say(mean: bool) -> None:
    graph = random_graph(3, 9, 30)
    rows = []
    for u in range(graph.n):
        out = [
            w
            for i in range(graph.rows)
            if graph.source[i] == u
            for w in graph.weights[graph.indptr[i] : graph.indptr[i + 1]]
        ]
        into = [w for t, w in zip(graph.targets, graph.weights, strict=True) if t == u]
        amounts = [(sum(x) / len(x) if mean else sum(x)) if x else 0.0 for x in (into, out)]
        flag = float(any(graph.multicast[i] and graph.source[i] == u for i in range(graph.rows)))
        rows.append([flag, len(into), len(out), len(into) + len(out), *amounts, sum(amounts)])
    table = np.array(rows)
    low, high = table.min(axis=0), table.max(axis=0)
    assert node_features(graph, mean) == pytest.approx((table - low) / (high - low))
    assert np.array_equal(node_features(LogicGraph.from_edges(3, [], [])), np.zeros((3, 7)))


def rounds_of(problem: MappingProblem, size: Size | None = None) -> Rounds:
    """All nodes on the only processor."""
    return Rounds(problem, size or Size(), np.zeros(problem.n, np.int64))


def renamed(graph: LogicGraph, new: np.ndarray) -> LogicGraph:
    """The graph with node u called new[u]."""
    return LogicGraph.from_edges(graph.n, new[graph.edge_source], new[graph.targets], graph.weights)


def random_arrays(size: Size, seed: int) -> dict[str, np.ndarray]:
    """Biases are no zeros."""
    rng = np.random.default_rng(seed)
    return {k: rng.normal(0, 0.4, v).astype(np.float32) for k, v in size.shapes.items()}


def test_the_laplacian_is_that_of_the_definition() -> None:
    """What a node has less the mean of its neighbours, both directions added up; nodes without traffic keep what they have."""
    graph = LogicGraph.from_edges(5, [0, 1, 2, 3, 0], [1, 0, 3, 3, 2], [2.0, 1.0, 4.0, 9.0, 3.0])
    both = np.zeros((5, 5))
    for u, v, w in ((0, 1, 3.0), (2, 3, 4.0), (0, 2, 3.0)):
        both[u, v] = both[v, u] = w
    seen = rounds_of(make_problem(graph, Machine("m", (1, 1), (2, 3)))).seen(np.arange(5))
    values = np.random.default_rng(0).normal(size=(5, 3))
    degree = both.sum(axis=1)
    mean = np.divide(both, degree[:, None], where=degree[:, None] > 0, out=np.zeros((5, 5)))
    assert seen.laplacian(values) == pytest.approx((np.eye(5) - mean) @ values)


def test_the_gaussian_is_cut_in_steps_of_twice_the_bound_over_one_less_than_the_cores() -> None:
    """Lines 3 to 7 are a bound of 2 around line 5."""
    mean, log_deviation, first = np.array([4.3, 7.0]), np.array([0.1, -0.5]), np.array([3, 3])
    found = probabilities(mean, log_deviation, first, 5)
    for node in range(2):
        line = np.linspace(5 - 2.0, 5 + 2.0, 5)
        density = np.exp(-((line - mean[node]) ** 2) / (2 * np.exp(log_deviation[node]) ** 2))
        assert found[node] == pytest.approx(density / sum(density))
    drawn = draw(found, 20_000, np.random.default_rng(1))
    for node in range(2):
        assert np.bincount(drawn[:, node], minlength=5) / 20_000 == pytest.approx(found[node], abs=0.015)
    assert np.array_equal(probabilities(mean, log_deviation, first, 1), np.ones((2, 1)))


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6), st.sampled_from(["manhattan", "euclidean"]),
    st.integers(1, 3),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_conflicts_are_settled_by_priority_and_distance(
    rows: int, cols: int, seed: int, metric: str, holds: int
) -> None:
    """Against the rule word for word; with ``holds`` > 1 cores take nodes of sizes 1 and 2 while there is room."""
    rng = np.random.default_rng(seed)
    cores = rows * cols
    k = int(rng.integers(1, cores + 1))
    wish, weight = rng.integers(0, cores, (3, k)), rng.integers(0, 4, k).astype(float)
    mean = np.stack([rng.uniform(0, rows, k), rng.uniform(0, cols, k)], axis=1)
    size = rng.integers(1, min(holds, 2) + 1, (k, 1))
    may = rng.random((2, cores)) < 0.8
    kind = rng.integers(0, 2, k)
    found = allocate(
        wish,
        mean,
        by_priority(weight),
        cols,
        metric == "euclidean",
        may,
        kind,
        size,
        np.full((cores, 1), holds),
    )

    def distance(p: int, q: int) -> float:
        down, across = abs(p // cols - q // cols), abs(p % cols - q % cols)
        return down + across if metric == "manhattan" else (down**2 + across**2) ** 0.5

    for b in range(3):
        core: dict[int, int] = {}

        def room(u: int, p: int, core: dict[int, int] = core) -> bool:
            there = sum(int(size[v, 0]) for v, q in core.items() if q == p)
            return bool(may[kind[u], p]) and there + int(size[u, 0]) <= holds

        order = sorted(range(k), key=lambda u: (-weight[u], u))
        for u in order:
            if room(u, int(wish[b, u])):
                core[u] = int(wish[b, u])
        for u in [u for u in order if u not in core]:
            free = [p for p in range(cores) if room(u, p)]

            def key(p: int, u: int = u, b: int = b) -> tuple[float, float, int]:
                off = (p // cols - mean[u, 0]) ** 2 + (p % cols - mean[u, 1]) ** 2
                return distance(int(wish[b, u]), p), off, p

            if free:
                core[u] = min(free, key=key)
        assert [core.get(u, int(wish[b, u])) for u in range(k)] == found[b].tolist()


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_what_an_exchange_changes_is_what_recomputing_says(seed: int, several: bool, torus: bool) -> None:
    """Alone, with those on the other core (their mean), and nobody comes where there is room."""
    rng = np.random.default_rng(seed)
    graph = random_graph(seed, 11, 40, casts=False)
    machine = Machine("m", (1, 1), (3, 5), torus=torus)
    problem = make_problem(graph, machine, balance=1.5 if several else None)
    core = rng.integers(0, 15, 11) if several else rng.permutation(15)[:11]
    board, t = board_of(problem, np.zeros(11, np.int64)), traffic_of(graph)
    own, both, target, _ = exchanges(
        core, 1, t.indptr, t.other, t.weight, board.across, board.down, board.may, board.kind, board.size, board.capacity
    )  # fmt: skip
    loops = graph.edge_source == graph.targets
    scale = graph.n / (2 * float(graph.weights[~loops].sum()))
    now = objective_value(problem, core)
    for u, move in itertools.product(range(11), range(9)):
        row, col = core[u] // 5 + move // 3 - 1, core[u] % 5 + move % 3 - 1
        if not (0 <= row < 3 and 0 <= col < 5):
            assert target[u, move] == -1
            continue
        p = row * 5 + col
        assert target[u, move] == p
        alone = core.copy()
        alone[u] = p
        assert own[u, move] == pytest.approx(scale * (objective_value(problem, alone) - now))
        there = [v for v in range(11) if core[v] == p and v != u]
        if p == core[u]:
            assert both[u, move] == pytest.approx(0, abs=1e-12)
            continue
        fits = (np.bincount(core, minlength=15)[p] + 1) <= board.capacity[p, 0]
        changes = []
        for v in there:
            swapped = alone.copy()
            swapped[v] = core[u]
            changes.append(objective_value(problem, swapped) - now)
        alone_change = objective_value(problem, alone) - now
        wanted = alone_change if fits or not changes else float(np.mean(changes))
        assert both[u, move] == pytest.approx(scale * wanted)


TURNS = {
    "mirrored": lambda row, col, last: (row, last - col),
    "turned": lambda row, col, last: (col, last - row),
    "transposed": lambda row, col, last: (col, row),
}


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("seed", range(3))
def test_a_board_turned_or_mirrored_gives_the_answer_turned_or_mirrored(name: str, seed: int) -> None:
    """Means, deviations and cores, for any weights; and again from there."""
    problem = make_problem(generate("mesh-geo", nodes=36, seed=seed), Machine("m", (1, 1), (6, 6)))
    board, arrays = rounds_of(problem), random_arrays(Size(), seed)
    core = board.start()

    def turned(place: np.ndarray) -> np.ndarray:
        return np.stack(TURNS[name](place[..., 0], place[..., 1], 5), axis=-1)

    def onto(core: np.ndarray) -> np.ndarray:
        row, col = np.moveaxis(turned(np.stack(np.divmod(core, 6), axis=-1)), -1, 0)
        return row * 6 + col

    for _ in range(3):
        one, other = board.asked(arrays, core), board.asked(arrays, onto(core))
        assert other.mean == pytest.approx(turned(one.mean), abs=1e-3)
        swap = name != "mirrored"
        assert other.log_deviation == pytest.approx(one.log_deviation[:, :: -1 if swap else 1], abs=1e-3)
        core, there = board.greedy(one), board.greedy(other)
        assert np.array_equal(there, onto(core))


@pytest.mark.parametrize("seed", range(3))
def test_nodes_renamed_give_the_answer_renamed(seed: int) -> None:
    graph = generate("mesh-comm", nodes=36, seed=seed)
    new = np.random.default_rng(seed).permutation(36)
    one, other = (
        rounds_of(make_problem(g, Machine("m", (1, 1), (6, 6)))) for g in (graph, renamed(graph, new))
    )
    arrays = random_arrays(Size(), seed)
    core, again = one.start(), other.start()
    for _ in range(3):
        assert np.array_equal(again[new], core)
        wish, wished = one.asked(arrays, core), other.asked(arrays, again)
        assert wished.mean[new] == pytest.approx(wish.mean, abs=1e-3)
        # Of nodes with equal priority the lower number comes first: settled in the same order, they go to the same cores.
        other.order = new[one.order]
        core, again = one.greedy(wish), other.greedy(wished)
    assert np.array_equal(again[new], core)


def test_means_lie_within_the_bound_of_the_processor() -> None:
    machine = Machine("m", (1, 2), (3, 4))
    problem = make_problem(generate("mesh-geo", nodes=20, seed=1), machine)
    chip = np.repeat([0, 1], 10)
    size = Size()
    wild = {k: 30 * a for k, a in random_arrays(size, 3).items()}
    board = Rounds(problem, size, chip)
    wish = board.asked(wild, board.start())
    assert (np.abs(wish.mean[:, 0] - 1.0) <= 1.0 + 1e-5).all()
    assert (np.abs(wish.mean[:, 1] - (1.5 + 4 * chip)) <= 1.5 + 1e-5).all()
    assert (wish.log_deviation >= LEAST_LOG - 1e-6).all()
    for core in (board.greedy(wish), *board.drawn(wish, 4, np.random.default_rng(0))[1]):
        assert np.array_equal(machine.chip_of[core], chip) and not check_mapping(problem, core)


@pytest.mark.parametrize("casts", [False, True])
def test_the_reward_in_training_is_the_published_one_with_more_terms(casts: bool) -> None:
    graph, machine = random_graph(7, 12, 40, casts), Machine("m", (1, 1), (3, 4))
    rng = np.random.default_rng(2)
    core = np.stack([rng.permutation(12) for _ in range(6)])
    for terms in (RewardTerms(), RewardTerms(horizontal=2.0, vertical=0.5, deadlock=0.25)):
        expected = [-reward_loss(graph, machine, c, terms) for c in core]
        assert Rewards(graph, machine, terms)(core) == pytest.approx(expected)
    row, col = np.divmod(core, 4)
    source = np.repeat(graph.source, np.diff(graph.indptr))
    down, across = (np.abs(a[:, source] - a[:, graph.targets]) for a in (row, col))
    none = {"horizontal": 0.0, "vertical": 0.0}
    assert Rewards(graph, machine, RewardTerms(**none, hops=2.0))(core) == pytest.approx(
        -2 * (down + across) @ graph.weights
    )
    single = (down == 0) | (across == 0)
    assert Rewards(graph, machine, RewardTerms(**none, faults=1.0))(core) == pytest.approx(
        -(single @ graph.weights)
    )
    price = rng.random((12, 12))
    own = RewardTerms(
        own=(OwnTerm("price", 2.0, "pairs", price), OwnTerm("far", 0.5, "distance", np.array([1.0, 3.0])))
    )
    assert Rewards(graph, machine, own)(core) == pytest.approx(
        [-reward_loss(graph, machine, c, own) for c in core]
    )


def test_weights_of_terms_from_text() -> None:
    board = Machine("m", (1, 1), (2, 2))
    assert (
        reward_terms(" deadlock=0, faults = 0.5 ", board) == RewardTerms(deadlock=0.0, faults=0.5)
        and reward_terms("", board) == RewardTerms()
    )
    for text in ("speed=1", "hops", "hops=fast", "hops=-1", "hops=nan"):
        with pytest.raises(InputError):
            reward_terms(text, board)


def test_a_nodes_payments_are_the_published_ones() -> None:
    """``max(left, right) + max(up, down)`` of the node itself (M1.7), in sum the reward of the whole."""
    graph, machine = random_graph(8, 12, 30, casts=False), Machine("m", (1, 1), (3, 4))
    core = np.random.default_rng(2).permutation(12)[None]
    rewards = Rewards(graph, machine, RewardTerms())
    found = rewards.by_node(core)[0]
    row, col = np.divmod(core[0], 4)
    for u in range(12):
        sides = np.zeros(4)
        for a, b, w in zip(graph.edge_source, graph.targets, graph.weights, strict=True):
            for one, other in ((a, b), (b, a)):
                if one == u:
                    sides[0 if col[other] > col[u] else 1] += w * abs(col[other] - col[u])
                    sides[2 if row[other] > row[u] else 3] += w * abs(row[other] - row[u])
        assert found[u] == pytest.approx(max(sides[0], sides[1]) + max(sides[2], sides[3]))
    assert rewards(core)[0] == pytest.approx(-found.sum())


def test_numpy_and_torch_agree() -> None:
    """On three placements of two graphs at once, which training takes together."""
    torch = pytest.importorskip("torch")
    from nmsolve.learn.mapping.train import Round, together

    size = Size(hidden=5, full=7, stages=3)
    arrays = random_arrays(size, 0)
    rounds, expected = [], []
    for seed, side in ((1, 4), (2, 5), (3, 4)):
        problem = make_problem(
            generate("mesh-geo", nodes=side * side, seed=seed), Machine("m", (1, 1), (side, side))
        )
        board = rounds_of(problem, size)
        core = np.random.default_rng(seed).permutation(side * side)
        wish = board.asked(arrays, core)
        rounds.append(Round(board, wish.seen, core, np.zeros((1, 1, 2)), np.zeros((1, 1)), np.zeros(1)))
        expected.append((wish.mean, wish.log_deviation))
    found = gaussians({k: torch.tensor(a) for k, a in arrays.items()}, together(rounds), torch)
    for k in (0, 1):
        assert found[k].numpy() == pytest.approx(np.concatenate([e[k] for e in expected]), abs=1e-4)


class Offers(QuietContext):
    """Keeps all mappings."""

    def __init__(self) -> None:
        super().__init__()
        self.offers: list[np.ndarray] = []

    def offer(self, core: np.ndarray, move: str = "") -> bool:
        self.offers.append(core.copy())
        return True


def test_placements_are_legal_many_and_the_same_for_the_same_seed() -> None:
    problem = make_problem(generate("mesh-geo", nodes=60, seed=2), Machine("m", (1, 1), (8, 8)))
    model, size = m1_model()
    first, second = ([c for _, c in placements(problem, model, size, Offers())] for _ in range(2))
    assert len(first) > 30 and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(not check_mapping(problem, c) for c in first)
    assert len({c.tobytes() for c in first}) > len(first) // 2


def test_draws_of_a_round_go_on_from_the_best() -> None:
    """Draws are as probable as the Gaussians say; the best of them is not worse than their mean."""
    problem = make_problem(generate("mesh-geo", nodes=36, seed=2), Machine("m", (1, 1), (6, 6)))
    model, size = m1_model()
    board = rounds_of(problem, size)
    wish = board.asked(model.arrays, board.start())
    picked, settled = board.drawn(wish, 4000, np.random.default_rng(1))
    for axis in (0, 1):
        expected = probabilities(wish.mean[:, axis], wish.log_deviation[:, axis], np.zeros(36), 6)
        counted = np.stack([np.bincount(p, minlength=6) for p in picked[..., axis].T]) / 4000
        assert counted == pytest.approx(expected, abs=0.04)
    assert all(not check_mapping(problem, c) for c in settled[:50])


def test_several_processors_follow_the_communities_and_taken_cores_stay_free() -> None:
    machine = Machine("m", (1, 2), (4, 4), taken_cores=(0, 1, 17))
    problem = make_problem(generate("mesh-comm", nodes=24, seed=2), machine)
    context = Offers()
    M1Policy().run(problem, context)
    assert context.offers and all(not check_mapping(problem, c) for c in context.offers)
    splits = communities_to_chips(problem, context.seed)
    assert any(np.array_equal(machine.chip_of[context.offers[0]], chip) for chip in splits)
    assert not np.isin(context.offers[-1], [0, 1, 17]).any()


@pytest.mark.parametrize(
    ("nodes", "machine", "balance"),
    [
        (100, Machine("more than the 64 of training", (1, 1), (10, 10)), None),
        (30, Machine("oblong, empty and dead cores", (1, 1), (3, 14), faulty_cores=(0, 5, 20)), None),
        (90, Machine("several per core", (1, 1), (4, 4)), 0.2),
        (90, Machine("several per core and processor", (2, 2), (2, 3), crossing_weight=4.0), 0.2),
        (16, Machine("torus", (1, 1), (4, 4), torus=True), None),
        (5, Machine("one row", (1, 1), (1, 6)), None),
    ],
    ids=lambda value: value.name if isinstance(value, Machine) else "",
)
def test_any_board_and_any_number_of_nodes(nodes: int, machine: Machine, balance: float | None) -> None:
    """Rounds improve on their start, without repair."""
    problem = make_problem(generate("mesh-geo", nodes=nodes, seed=1), machine, balance=balance)
    model, size = m1_model()
    assert M1Policy().refuses(problem) is None
    chip = np.zeros(nodes, np.int64)
    if machine.n_chips > 1:
        chip = communities_to_chips(problem, 1)[0]
    found = [core for _, core in greedy(Rounds(problem, size, chip), model)]
    assert all(not check_mapping(problem, core) for core in found)
    values = [objective_value(problem, core) for core in found]
    assert min(values) < values[0]


def test_sizes_and_several_resources_are_kept() -> None:
    """Nodes of different sizes, two resources: what is offered keeps both."""
    rng = np.random.default_rng(4)
    graph = generate("mesh-geo", nodes=60, seed=3)
    graph = replace(graph, resources=("neurons", "synapses"), sizes=rng.integers(1, 9, (60, 2)))
    machine = Machine("m", (1, 1), (4, 4), capacity={"neurons": 30, "synapses": 28})
    problem = make_problem(graph, machine)
    context = Offers()
    M1Policy().run(problem, context)
    assert context.offers and all(not check_mapping(problem, c) for c in context.offers)


def test_it_refuses_what_does_not_fit_in_memory() -> None:
    problem = make_problem(
        LogicGraph.from_edges(100_000, [0], [1]), Machine("m", (1, 1), (4, 4)), balance=0.1
    )
    assert "looks of nodes at cores" in str(M1Policy().refuses(problem))


def test_the_model_of_the_package_has_learned_something() -> None:
    """Greedy rounds on graphs that it has not seen, beside a network that has learned nothing; a board of another size, too."""
    model, size = m1_model()
    blank = Checkpoint("m1", first_arrays(size, 0), {})
    for nodes, side in ((64, 8), (144, 12)):
        gains = []
        for kind, seed in itertools.product(("geo", "comm", "layered", "rnd"), (1, 2)):
            graph = generate(f"mesh-{kind}", nodes=nodes, seed=seed)
            board = rounds_of(make_problem(graph, Machine("m", (1, 1), (side, side))), size)
            trained, untrained = (
                min(objective_value(board.problem, core) for _, core in greedy(board, m))
                for m in (model, blank)
            )
            gains.append(1 - trained / untrained)
        assert np.mean(gains) > 0.05


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"size": {"hidden": 16, "nodes": 64}},
        {"size": {"stages": 0}},
        {"size": {"reach": "2"}},
        {"size": 3},
    ],
)
def test_a_model_with_other_sizes_is_refused_in_one_line(
    facts: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the model of an earlier version, whose network was tied to 64 nodes."""
    save(tmp_path / "m1.safetensors", Checkpoint("m1", first_arrays(Size(), 0), facts))
    monkeypatch.setenv("NMSOLVE_MODELS", str(tmp_path))
    with pytest.raises(InputError) as refused:
        m1_model()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"not a model", None])
def test_a_damaged_model_is_one_line_and_the_answer_is_a_first_fit(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmsolve.learn.checkpoint import model_path

    data = model_path("m1").read_bytes()
    spoilt = data[:-1] + bytes([data[-1] ^ 1]) if content is None else content
    (tmp_path / "m1.safetensors").write_bytes(spoilt)
    monkeypatch.setenv("NMSOLVE_MODELS", str(tmp_path))
    problem = make_problem(generate("mesh-geo", nodes=30, seed=1), Machine("m", (1, 1), (6, 6)))
    result = solve(problem, time_limit=0.5, engines=["m1-policy"])
    assert result.core is not None and not check_mapping(problem, result.core)
    notes = [e.text for e in result.events if e.kind == "note" and e.engine == "m1-policy"]
    assert len(notes) == 1 and "first fit" in notes[0] and "\n" not in notes[0]


def test_the_command_writes_the_files_of_the_method(call: Called, tmp_path: Path) -> None:
    out = tmp_path / "out"
    graph = tmp_path / "g.json"
    nodes = [{"id": name, "neurons": 1} for name in "abcde"]
    edges = [{"source": a, "target": b, "weight": 1} for a, b in itertools.pairwise("abcde")]
    graph.write_text(json.dumps({"directed": True, "nodes": nodes, "edges": edges}))
    code, _, errors = call(
        "map", str(graph), "-m", "mesh:2x2,1x2", "--engines", "m1-policy,star", "-t", "30s", "--out", str(out)
    )
    assert code == 0, errors
    mapping = json.loads((out / "mapping.json").read_text())
    processors = json.loads((out / "processors.json").read_text())
    cores = json.loads((out / "cores.json").read_text())
    assert cores["node"] == mapping["node"] and cores["processor"] == mapping["chip"]
    for k, node in enumerate(mapping["node"]):
        assert cores["core"][k] == mapping["row"][k] % 2 * 2 + mapping["col"][k] % 2
        assert node in processors["nodes"][mapping["chip"][k]]
    assert sum(map(len, processors["nodes"])) == 5


def test_a_network_without_traffic_has_axes() -> None:
    """No eigenvectors are asked for: there is nothing to be smooth. It is placed all the same."""
    graph = LogicGraph.from_edges(4, [], [])
    assert np.array_equal(smooth_axes(traffic_of(graph), np.arange(4)), np.zeros((2, 4)))
    problem = make_problem(graph, Machine("m", (1, 1), (2, 2)))
    model, size = m1_model()
    assert all(not check_mapping(problem, c) for _, c in greedy(rounds_of(problem, size), model))


def test_smooth_axes_do_not_depend_on_how_nodes_are_numbered() -> None:
    """Small graphs and large ones (sparse eigenvectors); they solve the equation of eigenvectors."""
    for n in (30, 200):
        graph = generate("mesh-geo", nodes=n, seed=4)
        new = np.random.default_rng(0).permutation(n)
        one, other = (smooth_axes(traffic_of(g), np.arange(n)) for g in (graph, renamed(graph, new)))
        assert other[:, new] == pytest.approx(one, abs=1e-2)
        traffic = traffic_of(graph)
        for axis in one:
            moved = traffic.mean @ axis
            rate = moved @ (traffic.load * axis) / (axis @ (traffic.load * axis))
            assert moved == pytest.approx(rate * axis, abs=2e-2)
