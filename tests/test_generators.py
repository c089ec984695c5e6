"""Generated networks are the ones they say they are, number by number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph, save_graph
from nmsolve.model.generators import GENERATORS, generate
from nmsolve.model.generators.microcircuit import NEURONS, synapse_counts

# Recorded from the instance files that the published reference costs belong to.
MESH = [
    ("mesh-geo", 1000, 1, 9069, 14744.409361, "32cbcd664673c777"),
    ("mesh-layered", 1000, 1, 5554, 9020.167251, "7998ae856d09a9a4"),
    ("mesh-rnd", 1000, 1, 7956, 12982.644451, "cf3cc4cb376cc744"),
    ("mesh-comm", 16, 0, 43, 448, "68e6fe9921af71ee"),
    ("mesh-comm", 64, 0, 249, 2259, "76acd984f7e395f6"),
    ("mesh-comm", 256, 0, 1012, 9557, "ec4a25d9a505c5ce"),
    ("mesh-comm", 1024, 0, 3936, 36034, "abdd6f95e9816e63"),
]


@pytest.mark.parametrize(("kind", "nodes", "seed", "edges", "total", "digest"), MESH)
def test_mesh_instances_are_the_published_ones(
    kind: str, nodes: int, seed: int, edges: int, total: float, digest: str
) -> None:
    graph = generate(kind, nodes=nodes, seed=seed)
    assert (graph.n, graph.m, graph.hash) == (nodes, edges, digest)
    assert graph.weights.sum() == pytest.approx(total, abs=1e-6)
    side = int(np.ceil(np.sqrt(nodes)))
    assert graph.meta == {"mesh": [side, side]}


def test_snn20k_is_the_published_one() -> None:
    graph = generate("snn")
    assert (graph.n, graph.m, graph.weights.sum(), graph.hash) == (20000, 543501, 4431881, "2c2a5046931c4d46")


def test_microcircuit_follows_the_published_table() -> None:
    assert synapse_counts(np.array(NEURONS)).sum() == 298_880_970  # 298,880,969 before rounding
    graph = generate("microcircuit", scale=0.05)
    assert graph.n == 3858 and graph.multicast.all() and graph.resources == ("neurons", "synapses")
    small = np.maximum(1, np.rint(np.array(NEURONS) * 0.05)).astype(np.int64)
    drawn = synapse_counts(small)
    cut = np.concatenate([[0], np.cumsum(small)])
    for target in range(8):
        inputs = graph.sizes[cut[target] : cut[target + 1], 1].sum()
        assert inputs == drawn[target].sum()
    # connection probability of the densest and of a thin pair of populations, from the edges themselves
    for target, source, probability in ((4, 5, 0.3726), (0, 0, 0.1009), (3, 1, 0.0029)):
        inside = (graph.targets >= cut[target]) & (graph.targets < cut[target + 1])
        from_source = (graph.edge_source >= cut[source]) & (graph.edge_source < cut[source + 1])
        share = (inside & from_source).sum() / (small[target] * small[source])
        assert share == pytest.approx(probability, rel=0.05)
    assert graph.ids is not None and graph.ids[0] == "L23E/0" and graph.ids[-1] == "L6I/146"
    assert graph.rate[0] == 0.971 and graph.rate[-1] == 7.523
    assert (graph.weights == graph.rate[graph.edge_source]).all()
    assert (graph.edge_source != graph.targets).all()


def test_layered_feeds_a_band_of_the_next_layer() -> None:
    graph = generate("layered", exponent=6, layers=4, fan=4)
    assert graph.n == 64 and graph.m == 48 * 4
    assert (graph.targets // 16 == graph.edge_source // 16 + 1).all()
    assert np.abs(graph.targets % 16 - graph.edge_source % 16).max() <= 4
    assert generate("layered", exponent=2, layers=4, fan=99).m == 3


def test_reservoir_is_local_and_counts_every_synapse() -> None:
    graph = generate("reservoir", nodes=2000, fan=20, far=0.0)
    drawn = graph.sizes[:, 1].sum()
    assert drawn == pytest.approx(2000 * 20, rel=0.02) and graph.m <= drawn
    far = generate("reservoir", nodes=2000, fan=20, far=1.0)
    assert far.m > graph.m  # local synapses hit the same neuron more often
    assert np.median(graph.rate) == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize(("kind", "size"), [("microcircuit", {"scale": 0.01}), ("reservoir", {"nodes": 200})])
def test_a_shorter_step_has_as_many_fewer_spikes(kind: str, size: dict[str, float]) -> None:
    second, tick = generate(kind, **size), generate(kind, **size, step=1.0)
    assert (second.targets == tick.targets).all()
    assert tick.rate == pytest.approx(second.rate / 1000, rel=1e-12)
    assert tick.weights == pytest.approx(second.weights / 1000, rel=1e-12)
    assert "-1ms-" in tick.name and "ms" not in second.name


@pytest.mark.parametrize("kind", GENERATORS)
def test_same_seed_same_graph_and_it_survives_a_file(tmp_path: Path, kind: str) -> None:
    small = {
        "microcircuit": {"scale": 0.003},
        "layered": {"exponent": 5},
        "snn": {"nodes": 200, "synapses": 2000},
    }
    options = small.get(kind, {"nodes": 60})
    graph = generate(kind, **options)
    assert graph.hash == generate(kind, **options).hash
    assert graph.hash != generate(kind, **options, seed=9).hash
    save_graph(graph, tmp_path / "g.json")
    assert load_graph(tmp_path / "g.json").hash == graph.hash


def test_text_values_are_converted() -> None:
    assert generate("mesh-comm", nodes="16", seed="0").hash == MESH[3][-1]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("microcircit", {}, "did you mean microcircuit?"),
        ("snn", {"node": 3}, "snn has no parameter 'node' (did you mean nodes?)"),
        ("snn", {"nodes": "many"}, "snn: nodes is many; expected a whole number from 4"),
        ("snn", {"nodes": 100.5}, "nodes is 100.5"),
        ("snn", {"nodes": 10, "layers": 20}, "10 nodes in 20 layers"),
        ("microcircuit", {"scale": 0}, "scale is 0; expected a number from 0.001 to 1"),
        ("microcircuit", {"scale": float("nan")}, "scale is nan"),
        ("reservoir", {"step": 0}, "step is 0; expected a number from 0.001 to 1e+06"),
        ("reservoir", {"seed": -1}, "seed is -1; expected a whole number >= 0"),
    ],
)
def test_bad_parameters(kind: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as error:
        generate(kind, **options)
    assert message in str(error.value)
