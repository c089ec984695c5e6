"""Networks that are generated straight into a store are the ones that memory would have held."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nmsolve.cli.main import main
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph
from nmsolve.model.generators import generate, generate_file, microcircuit
from nmsolve.model.generators.draws import mark, pieces, row_blocks, skip
from nmsolve.model.graph import LogicGraph
from nmsolve.model.store import Store

KINDS: list[tuple[str, dict[str, int | float]]] = [
    ("microcircuit", {"scale": 0.02}),
    ("microcircuit", {"scale": 0.001, "seed": 4}),
    ("microcircuit", {"scale": 0.005, "step": 1.0}),
    ("layered", {"exponent": 7, "layers": 5, "fan": 3}),
    ("reservoir", {"nodes": 3000, "fan": 12, "seed": 2}),
    ("reservoir", {"nodes": 3, "fan": 0}),
    ("reservoir", {"nodes": 300, "fan": 5, "step": 0.1}),
    ("snn", {"nodes": 900, "synapses": 20000, "layers": 4}),
    ("snn", {"nodes": 900, "synapses": 20000, "layers": 4, "directed": 1}),
    ("mesh-rnd", {"nodes": 50}),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_stored_network_is_the_one_in_memory(
    tmp_path: Path, kind: str, options: dict[str, int | float]
) -> None:
    wanted = generate(kind, **options)
    path = tmp_path / "g.nmz"
    assert generate_file(kind, path, 1, **options) == (wanted.name, wanted.n, wanted.m)
    found = load_graph(path)
    for key in ("indptr", "targets", "weights", "source", "multicast", "rate", "sizes"):
        assert np.array_equal(getattr(found, key), getattr(wanted, key)), key
    assert (found.ids, found.directed, found.resources) == (wanted.ids, wanted.directed, wanted.resources)
    assert (found.name, found.meta) == (wanted.name, wanted.meta)
    first = path.read_bytes()
    generate_file(kind, path, 2, **options)
    assert path.read_bytes() == first


@pytest.mark.parametrize(("kind", "options"), KINDS[:-1])
def test_networks_do_not_depend_on_the_length_of_pieces(
    monkeypatch: pytest.MonkeyPatch, kind: str, options: dict[str, int | float]
) -> None:
    wanted = generate(kind, **options).hash
    monkeypatch.setattr(pieces, "__defaults__", (97,))
    monkeypatch.setattr(row_blocks, "__defaults__", (41,))
    assert generate(kind, **options).hash == wanted


def whole_microcircuit(scale: float, seed: int) -> LogicGraph:
    """The microcircuit as it is defined, all synapses of a pair of populations drawn at once."""
    rng = np.random.default_rng(seed)
    neurons = np.maximum(1, np.rint(np.array(microcircuit.NEURONS) * scale)).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(neurons)])
    counts = microcircuit.synapse_counts(neurons)
    sender, receiver = [], []
    for source in range(8):
        for target in range(8):
            k = int(counts[target, source])
            sender.append(first[source] + rng.integers(0, neurons[source], k))
            receiver.append(rng.integers(first[target], first[target + 1], k))
    s, t = np.concatenate(sender), np.concatenate(receiver)
    pair = np.unique(s * first[-1] + t)
    rate = np.repeat(microcircuit.RATES, neurons)
    return LogicGraph.from_edges(
        int(first[-1]), pair // first[-1], pair % first[-1], rate[pair // first[-1]], rate=rate,
        sizes=np.bincount(t, minlength=first[-1])[:, None],
    )  # fmt: skip


def test_microcircuit_is_drawn_as_defined(tmp_path: Path) -> None:
    """Edges and synapses agree with the definition; the store also keeps how many synapses an edge stands for."""
    wanted, path = whole_microcircuit(0.01, 3), tmp_path / "g.nmz"
    generate_file("microcircuit", path, scale=0.01, seed=3)
    found = load_graph(path)
    assert np.array_equal(found.indptr, wanted.indptr) and np.array_equal(found.targets, wanted.targets)
    assert np.array_equal(found.weights, wanted.weights) and np.array_equal(found.sizes[:, 1:], wanted.sizes)
    with Store.open(path) as store:
        blocks = list(store.blocks())
    synapses = np.zeros(found.n, np.int64)
    for block in blocks:
        np.add.at(synapses, block.neighbour, block.size if len(block.size) else 1)
    autapses = wanted.sizes[:, 0] - synapses
    assert (autapses >= 0).all() and 0 < autapses.sum() < 0.01 * synapses.sum()


def test_snn_traffic_is_the_sum_of_both_directions() -> None:
    """The undirected network is the directed one, each synapse with its sender's rate."""
    options = {"nodes": 500, "synapses": 20000, "layers": 3}
    directed, traffic = generate("snn", **options, directed=1), generate("snn", **options)
    sums = np.zeros((directed.n, directed.n))
    low, high = (
        np.minimum(directed.edge_source, directed.targets),
        np.maximum(directed.edge_source, directed.targets),
    )
    np.add.at(sums, (low, high), directed.weights)
    found = np.zeros_like(sums)
    found[traffic.edge_source, traffic.targets] = traffic.weights
    assert np.array_equal(found, sums)
    assert traffic.directed is False


def test_a_smaller_sigma_keeps_synapses_together() -> None:
    """Neurons then share more of their targets, and more synapses become one connection."""
    wide, narrow = (generate("snn", nodes=5000, synapses=200000, layers=2, sigma=s).m for s in (0.06, 0.02))
    assert narrow < 0.8 * wide


def test_skip_stands_at_the_beginning_and_the_end_of_an_array() -> None:
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    rng.integers(0, 7, 3), twin.integers(0, 7, 3)  # half of a 64-bit number is left over
    begin = skip(rng, lambda r, k: r.normal(0, 1, k), 3 * 2**20 + 5)
    assert np.array_equal(begin.normal(0, 1, 10), mark(twin).normal(0, 1, 10))
    twin.normal(0, 1, 3 * 2**20 + 5)
    assert np.array_equal(rng.integers(0, 7, 9), twin.integers(0, 7, 9))


def test_row_blocks_cover_every_row_once() -> None:
    degree = np.array([0, 0, 5, 1, 90, 0, 3, 3, 3, 0])
    blocks = list(row_blocks(degree, 10))
    assert [b for _, b in blocks][:-1] == [a for a, _ in blocks][1:]
    assert blocks[0][0] == 0 and blocks[-1][1] == len(degree)
    assert all(b - a == 1 or (degree[a:b] + 1).sum() <= 10 for a, b in blocks)


def test_the_command_writes_a_store_in_little_memory(tmp_path: Path) -> None:
    """4 M synapses: less than 200 MiB more than the same command takes for a few."""
    code = (
        "import sys\nfrom nmsolve.model.generators import generate_file\nfrom pathlib import Path\n"
        "generate_file('reservoir', Path(sys.argv[1]), nodes=int(sys.argv[2]))\n"
        "print(next(int(line.split()[1]) // 1024 for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    peak = []
    for nodes in ("100", "40000"):
        command = [sys.executable, "-c", code, str(tmp_path / f"{nodes}.nmz"), nodes]
        peak.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert peak[1] - peak[0] < 200


def test_generate_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "g.nmz"
    command = ["nmsolve", "generate", "snn", "--nodes", "200", "--synapses", "2000", "--out", str(path)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code and "nodes" in capsys.readouterr().out
    assert load_graph(path).m == generate("snn", nodes=200, synapses=2000).m
    monkeypatch.setattr(sys, "argv", [*command[:-1], str(tmp_path / "none" / "g.nmz")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and "cannot write" in capsys.readouterr().err


def test_an_unknown_extension_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """This network would take minutes and more memory than there is."""
    for name, message in (("g.nmx", "did you mean .nmz?"), ("g.h5", "read but not written")):
        with pytest.raises(InputError, match=message):
            generate_file("snn", tmp_path / name, nodes=10**8, synapses=10**9)
