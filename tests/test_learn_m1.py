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
from nmsolve.learn.mapping.allocate import allocate, by_priority, nearest_first
from nmsolve.learn.mapping.engine import SAMPLES, M1Policy, m1_model, placements
from nmsolve.learn.mapping.features import laplacian, node_features, traffic_of
from nmsolve.learn.mapping.numbering import axes_of, curve, node_order
from nmsolve.learn.mapping.policy import Size, core_probabilities, draw, first_arrays, gaussians, places
from nmsolve.learn.mapping.processor import processor, view
from nmsolve.learn.mapping.reward import Rewards, Terms, terms_of
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
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


def test_the_laplacian_is_that_of_the_definition_and_padding_stays_empty() -> None:
    graph = random_graph(5, 6, 14, casts=False)
    nodes = np.array([0, 2, 3, 5])
    traffic = traffic_of(graph, nodes)
    for i, j in itertools.product(range(4), repeat=2):
        between = [
            w
            for u in range(graph.n)
            for t, w in zip(
                *(a[graph.indptr[u] : graph.indptr[u + 1]] for a in (graph.targets, graph.weights)),
                strict=True,
            )
            if {u, int(t)} == {int(nodes[i]), int(nodes[j])}
        ]
        assert traffic[i, j] == (sum(between) if i != j else 0)
    padded = np.zeros((6, 6))
    padded[:4, :4] = traffic
    found, degree = laplacian(padded), padded.sum(axis=1)
    for i, j in itertools.product(range(6), repeat=2):
        scale = np.sqrt(degree[i] * degree[j])
        expected = (float(i == j) - padded[i, j] / scale) if scale > 0 else 0.0
        assert found[i, j] == pytest.approx(expected)


def test_the_gaussian_is_cut_in_steps_of_twice_the_bound_over_one_less_than_the_cores() -> None:
    line = places(5, 2.0)
    assert np.diff(line) == pytest.approx([2 * 2.0 / 4] * 4) and line[0] == -2.0
    mean, log_deviation = np.array([[0.3, -2.0]]), np.array([[0.1, -0.5]])
    found = core_probabilities(mean, log_deviation, 5, 2.0)
    for node in range(2):
        deviation = np.exp(log_deviation[0, node]) * 1.0
        density = [np.exp(-((x - mean[0, node]) ** 2) / (2 * deviation**2)) for x in line]
        assert found[0, node] == pytest.approx(np.array(density) / sum(density))
    drawn = draw(found[0], 20_000, np.random.default_rng(1))
    for node in range(2):
        assert np.bincount(drawn[:, node], minlength=5) / 20_000 == pytest.approx(found[0, node], abs=0.015)
    assert np.array_equal(core_probabilities(mean, log_deviation, 1, 2.0), np.ones((1, 2, 1)))


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6), st.sampled_from(["manhattan", "euclidean"])
)
@settings(max_examples=60, deadline=None)
def test_conflicts_are_settled_by_priority_and_distance(rows: int, cols: int, seed: int, metric: str) -> None:
    """Against the rule word for word, without the sorted tables."""
    rng = np.random.default_rng(seed)
    cores = rows * cols
    k = int(rng.integers(1, cores + 1))
    wish, weight = rng.integers(0, cores, (3, k)), rng.integers(0, 4, k).astype(float)
    at = np.divmod(np.arange(cores), cols)
    found = allocate(wish, by_priority(weight), nearest_first(*at, metric))

    def distance(p: int, q: int) -> float:
        down, across = abs(p // cols - q // cols), abs(p % cols - q % cols)
        return down + across if metric == "manhattan" else (down**2 + across**2) ** 0.5

    for b in range(3):
        core: dict[int, int] = {}
        for p in range(cores):
            claims = [u for u in range(k) if wish[b, u] == p]
            if claims:
                core[max(claims, key=lambda u: (weight[u], -u))] = p
        for u in sorted(set(range(k)) - core.keys(), key=lambda u: (-weight[u], u)):
            free = [p for p in range(cores) if p not in core.values()]
            core[u] = min(free, key=lambda p: (distance(int(wish[b, u]), p), p))
        assert [core[u] for u in range(k)] == found[b].tolist()


@given(st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_the_curve_passes_every_core_once(rows: int, cols: int) -> None:
    place = np.argsort(curve(rows, cols).ravel())
    assert sorted(curve(rows, cols).ravel().tolist()) == list(range(rows * cols))
    steps = np.abs(np.diff(np.array(np.divmod(place, cols)), axis=1)).max(axis=0, initial=0)
    assert steps.max(initial=0) <= 1  # never farther than a diagonal


def test_numbering_does_not_depend_on_how_nodes_are_numbered() -> None:
    traffic = traffic_of(generate("mesh-geo", nodes=30, seed=4), np.arange(30))
    new = np.random.default_rng(0).permutation(30)
    shuffled = np.empty_like(traffic)
    shuffled[np.ix_(new, new)] = traffic
    first = node_order(axes_of(traffic), 5, 6)
    assert np.array_equal(new[first], node_order(axes_of(shuffled), 5, 6))


@pytest.mark.parametrize("casts", [False, True])
def test_the_reward_in_training_is_the_published_one_with_more_terms(casts: bool) -> None:
    graph, machine = random_graph(7, 12, 40, casts), Machine("m", (1, 1), (3, 4))
    rng = np.random.default_rng(2)
    core = np.stack([rng.permutation(12) for _ in range(6)])
    for terms in (Terms(), Terms(horizontal=2.0, vertical=0.5, deadlock=0.25)):
        expected = [-reward_loss(graph, machine, c, terms) for c in core]
        assert Rewards(graph, machine, terms)(core) == pytest.approx(expected)
    row, col = np.divmod(core, 4)
    source = np.repeat(graph.source, np.diff(graph.indptr))
    down, across = (np.abs(a[:, source] - a[:, graph.targets]) for a in (row, col))
    none = {"horizontal": 0.0, "vertical": 0.0}
    assert Rewards(graph, machine, Terms(**none, hops=2.0))(core) == pytest.approx(
        -2 * (down + across) @ graph.weights
    )
    single = (down == 0) | (across == 0)
    assert Rewards(graph, machine, Terms(**none, faults=1.0))(core) == pytest.approx(
        -(single @ graph.weights)
    )
    own = Rewards(graph, machine, Terms(**none), (lambda c: c[:, 0].astype(float),))
    assert own(core) == pytest.approx(-core[:, 0].astype(float))


def test_weights_of_terms_from_text() -> None:
    assert (
        terms_of(" deadlock=0, faults = 0.5 ") == Terms(deadlock=0.0, faults=0.5) and terms_of("") == Terms()
    )
    for text in ("speed=1", "hops", "hops=fast", "hops=-1", "hops=nan"):
        with pytest.raises(InputError):
            terms_of(text)


def test_numpy_and_torch_agree() -> None:
    torch = pytest.importorskip("torch")
    size = Size(nodes=16, hidden=5, read=3, full=7)
    rng = np.random.default_rng(0)
    arrays = {k: rng.normal(0, 0.5, v).astype(np.float32) for k, v in size.shapes.items()}
    shapes = ((2, 16, 16), (2, 16, 7))
    inputs = [rng.normal(0, 1, s).astype(np.float32) for s in shapes]
    here = gaussians(arrays, *inputs, 1.5)
    there = gaussians({k: torch.tensor(a) for k, a in arrays.items()}, *map(torch.tensor, inputs), 1.5, torch)
    for a, b in zip(here, there, strict=True):
        assert a == pytest.approx(b.numpy(), abs=1e-5)
    assert np.abs(here[0]).max() <= 1.5


def test_a_network_that_has_learned_nothing_is_the_numbering() -> None:
    size, machine = Size(), Machine("m", (1, 1), (8, 8))
    place = processor(machine, 0, 64)
    traffic = traffic_of(generate("mesh-comm", nodes=64, seed=3), np.arange(64))
    seen = view(place, 64, axes_of(traffic), traffic, np.zeros((64, 7)), 0.0)
    mean, log_deviation = gaussians(
        first_arrays(size, 0), seen.laplacian[None], seen.features[None], size.bound
    )
    likely = core_probabilities(mean[0, seen.row], log_deviation[0, seen.row], 64, 1.0).argmax(axis=1)
    assert (likely == seen.row).mean() > 0.9


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
    assert len(first) == SAMPLES and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(not check_mapping(problem, c) for c in first)
    assert len({c.tobytes() for c in first}) > SAMPLES // 2


def test_several_processors_follow_the_communities_and_taken_cores_stay_free() -> None:
    machine = Machine("m", (1, 2), (4, 4), taken_cores=(0, 1, 17))
    problem = make_problem(generate("mesh-comm", nodes=24, seed=2), machine)
    context = Offers()
    M1Policy().run(problem, context)
    assert context.offers and all(not check_mapping(problem, c) for c in context.offers)
    splits = communities_to_chips(problem, context.seed)
    assert any(np.array_equal(machine.chip_of[context.offers[0]], chip) for chip in splits)
    assert not np.isin(context.offers[-1], [0, 1, 17]).any()


def test_it_refuses_more_nodes_than_it_was_trained_for() -> None:
    problem = make_problem(generate("mesh-geo", nodes=100, seed=1), Machine("m", (1, 1), (10, 10)))
    assert (
        M1Policy().refuses(problem)
        == "100 nodes may be on one processor, its policy was trained for 64 at most"
    )
    chips = make_problem(generate("mesh-geo", nodes=100, seed=1), Machine("m", (2, 2), (5, 5)))
    assert M1Policy().refuses(chips) is None


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
    """No eigenvectors are asked for: there is nothing to be smooth."""
    assert np.array_equal(axes_of(np.zeros((4, 4))), [[0, 1, 2, 3], [0, 1, 2, 3]])
