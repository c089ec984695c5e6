"""SONATA edges and NIR graphs become the networks they describe; damaged ones and missing packages are one line."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import h5py
import nir
import numpy as np
import pytest
from formats_support import adjacency, put, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.model.errors import InputError
from nmsolve.model.formats import convert, load_graph, save_graph
from nmsolve.model.formats.nir_file import Node
from nmsolve.model.formats.nir_layers import matrix, shape_behind

# ---- SONATA -------------------------------------------------------------------------------------------------

Ends = tuple[str, list[int]]


def sonata(path: Path, populations: dict[str, tuple[Ends, Ends]], nsyns: list[int] | None = None) -> Path:
    """Write an edges file; ``nsyns`` are those of the first population."""
    with h5py.File(path, "w") as file:
        for name, ends in populations.items():
            group = file.create_group(f"edges/{name}")
            for key, (nodes, numbers) in zip(("source_node_id", "target_node_id"), ends, strict=True):
                data = group.create_dataset(
                    key, data=np.array(numbers, np.uint64), compression="gzip", chunks=True
                )
                data.attrs["node_population"] = nodes
            if nsyns:
                edges = len(nsyns)
                group["edge_group_id"] = np.zeros(edges, np.uint32)
                group["edge_group_index"] = np.arange(edges)[::-1]
                group["0/nsyns"] = np.array(nsyns[::-1])
                nsyns = None
    return path


def test_sonata_edges_are_read_and_streamed(tmp_path: Path) -> None:
    path = sonata(
        tmp_path / "e.h5",
        {
            "v1_to_v1": (("v1", [0, 0, 0, 3, 2]), ("v1", [1, 1, 2, 3, 0])),
            "lgn_to_v1": (("lgn", [1, 0]), ("v1", [0, 0])),
        },
        [2, 3, 1, 7, 1],
    )
    graph = load_graph(path)
    assert graph.ids == ("lgn/0", "lgn/1", "v1/0", "v1/1", "v1/2", "v1/3")
    edges = list(zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True))
    assert edges == [(0, 2), (1, 2), (2, 3), (2, 4), (4, 2)]
    assert graph.sizes[:, 1].tolist() == [0, 0, 3, 5, 1, 7]  # the autapse of v1/3 is no traffic
    assert (graph.weights == 1).all() and (graph.rate == 1).all() and graph.multicast.all() and graph.directed
    assert convert(path, tmp_path / "e.nmz") == (6, 5)
    back = load_graph(tmp_path / "e.nmz")
    assert back.ids == graph.ids and np.array_equal(adjacency(back), adjacency(graph))
    assert np.array_equal(back.sizes, graph.sizes)
    with pytest.raises(InputError, match="read but not written"):
        save_graph(graph, tmp_path / "back.h5")


def test_one_population_keeps_its_numbers(tmp_path: Path) -> None:
    graph = load_graph(sonata(tmp_path / "e.h5", {"a": (("a", [0, 4]), ("a", [4, 0]))}))
    assert graph.ids is None and graph.n == 5 and graph.m == 2


def test_wrong_sonata_files_are_refused(tmp_path: Path) -> None:
    path = sonata(tmp_path / "a.h5", {"a": (("a", [0, 1]), ("a", [1]))})
    assert "a.h5: edges/a: its data sets have different lengths; expected 2 edges each" in refused(path)
    path = sonata(tmp_path / "b.h5", {"a": (("a", [0, 2**40]), ("a", [1, 1]))})
    assert f"found node {2**40}" in refused(path)
    path = sonata(tmp_path / "c.h5", {"a": (("a", [0, 1]), ("a", [1, 1]))}, [1, 0])
    assert "0 to 1 synapses" in refused(path)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("edges/a/source_node_id", shape=(10**12,), dtype="u8", chunks=(1024,))
    assert "promises 8000000000000 bytes and stores 0" in refused(tmp_path / "d.h5")
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file["nodes"] = [1]
    assert "there are no edges" in refused(tmp_path / "e.h5")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["edges/a/source_node_id"] = [1.5]
    assert "the list of whole numbers 'source_node_id' is missing" in refused(tmp_path / "f.h5")
    assert "cannot be read" in refused(put(tmp_path, "g.h5", b"no HDF5"))
    assert "no such file" in refused(tmp_path / "none.h5")


@pytest.mark.parametrize("extension", [".h5", ".nir"])
def test_damaged_bytes_are_refused_in_one_line_or_harmless(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"g{extension}"
    if extension == ".h5":
        sonata(path, {"a": (("a", [0, 1, 2] * 50), ("a", [1, 2, 0] * 50))}, [1, 2, 3] * 50)
    else:
        nir.write(path, net(("input", nir.Input(np.array([3]))), ("fc", linear(2, 3)), ("lif", lif(2))))
    whole = path.read_bytes()
    rng = np.random.default_rng(5)
    for _ in range(40):  # each in a process of its own
        data = bytearray(whole)
        for k in rng.integers(0, len(data), 3):
            data[k] = rng.integers(256)
        path.write_bytes(data[: int(rng.integers(1, len(data)))] if rng.random() < 0.3 else data)
        try:
            assert load_graph(path).n >= 1
        except InputError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("extension", "module", "extra"), [(".h5", "h5py", "sonata"), (".nir", "h5py", "nir")]
)
def test_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    text = refused(put(tmp_path, f"g{extension}", b""))
    assert f"this format needs the package {module}" in text and f"pip install 'nmsolve[{extra}]'" in text


# ---- NIR ----------------------------------------------------------------------------------------------------


def lif(*shape: int) -> nir.LIF:
    one = np.ones(shape)
    return nir.LIF(tau=one, r=one, v_leak=one, v_threshold=one)


def linear(out: int, into: int) -> nir.Linear:
    return nir.Linear(weight=np.arange(out * into, dtype=float).reshape(out, into))  # the first weight is 0


def net(*nodes: tuple[str, nir.NIRNode], more: tuple[tuple[str, str], ...] = ()) -> nir.NIRGraph:
    """A chain of nodes with ``more`` edges."""
    names = [name for name, _ in nodes]
    edges = [*pairwise(names), *more]
    return nir.NIRGraph(nodes=dict(nodes), edges=edges, type_check=False)


def read(tmp_path: Path, graph: nir.NIRGraph) -> tuple[list[str], set[tuple[str, str]], list[int]]:
    """Ids, edges by id, synapses."""
    nir.write(tmp_path / "g.nir", graph)
    found = load_graph(tmp_path / "g.nir")
    assert found.directed and found.multicast.all() and (found.weights == 1).all() and (found.rate == 1).all()
    ids = [str(found.node_id(i)) for i in range(found.n)]
    pairs = zip(found.edge_source.tolist(), found.targets.tolist(), strict=True)
    return ids, {(ids[a], ids[b]) for a, b in pairs}, found.sizes[:, 1].tolist()


def test_nir_layers_between_populations_are_multiplied(tmp_path: Path) -> None:
    """in(1x1x4) -> pool by 2 -> flatten -> weights -> lif(2) with recurrent weights through a delay -> output."""
    graph = net(
        ("in", nir.Input(np.array([1, 1, 4]))),
        (
            "pool",
            nir.SumPool2d(kernel_size=np.array([1, 2]), stride=np.array([1, 2]), padding=np.array([0, 0])),
        ),
        ("flat", nir.Flatten(input_type=np.array([1, 1, 2]), start_dim=0)),
        ("fc", linear(2, 2)),
        ("lif", lif(2)),
        ("out", nir.Output(np.array([2]))),
        more=(("lif", "rec"), ("rec", "wait"), ("wait", "lif")),
    )
    graph.nodes |= {"rec": linear(2, 2), "wait": nir.Delay(delay=np.ones(2))}
    ids, edges, synapses = read(tmp_path, graph)
    assert ids == ["in/0", "in/1", "in/2", "in/3", "lif/0", "lif/1"]
    wanted = {(f"in/{i}", "lif/1") for i in range(4)} | {("in/2", "lif/0"), ("in/3", "lif/0")}
    wanted |= {("lif/0", "lif/1"), ("lif/1", "lif/0")}  # lif/1 -> lif/1 is no traffic, but a synapse
    assert edges == wanted and synapses == [0, 0, 0, 0, 3, 6]


def test_nir_subgraphs_and_several_ways_in(tmp_path: Path) -> None:
    inner = net(
        ("input", nir.Input(np.array([2]))),
        ("a", linear(2, 2)),
        ("lif", lif(2)),
        ("output", nir.Output(np.array([2]))),
    )
    graph = net(("in", nir.Input(np.array([2]))), ("sub", inner), ("top", lif(2)), more=(("in", "top"),))
    ids, edges, _ = read(tmp_path, graph)
    assert ids == ["in/0", "in/1", "sub.lif/0", "sub.lif/1", "top/0", "top/1"]
    assert edges == {
        ("in/0", "sub.lif/1"), ("in/1", "sub.lif/0"), ("in/1", "sub.lif/1"),
        ("sub.lif/0", "top/0"), ("sub.lif/1", "top/1"), ("in/0", "top/0"), ("in/1", "top/1"),
    }  # fmt: skip


WINDOWS = st.fixed_dictionaries(
    {
        "groups": st.integers(1, 2), "inside": st.integers(1, 2), "outside": st.integers(1, 2),
        "kernel": st.tuples(st.integers(1, 3), st.integers(1, 3)), "stride": st.tuples(st.integers(1, 2), st.integers(1, 3)),
        "padding": st.one_of(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.sampled_from(["same", "valid"])),
        "dilation": st.tuples(st.integers(1, 2), st.integers(1, 2)), "size": st.tuples(st.integers(5, 6), st.integers(5, 7)),
        "flat": st.booleans(),
    }
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(WINDOWS, st.integers(0, 2**32 - 1))
def test_convolutions_connect_what_their_definition_says(case: dict[str, object], seed: int) -> None:
    c = SimpleNamespace(**case)
    kernel, stride, dilation, size = (
        (1, *v[1:]) if c.flat else v for v in (c.kernel, c.stride, c.dilation, c.size)
    )
    weight = np.random.default_rng(seed).integers(0, 3, (c.outside * c.groups, c.inside, *kernel))
    pad = c.padding
    if pad == "same":
        stride = (1, 1)
        low = [d * (k - 1) // 2 for d, k in zip(dilation, kernel, strict=True)]
        high = [d * (k - 1) - b for d, k, b in zip(dilation, kernel, low, strict=True)]
    else:
        low = high = [0, 0] if pad == "valid" else [0 if c.flat else pad[0], pad[1]]
    options = {"stride": stride, "padding": pad, "dilation": dilation, "groups": c.groups}
    if c.flat:
        options |= {
            "stride": stride[1],
            "dilation": dilation[1],
            "padding": pad if isinstance(pad, str) else pad[1],
        }
        node = nir.Conv1d(input_shape=None, weight=weight[:, :, 0], bias=np.zeros(1), **options)
    else:
        node = nir.Conv2d(input_shape=None, weight=weight, bias=np.zeros(1), **options)
    channels = c.inside * c.groups
    padded = [size[i] + low[i] + high[i] for i in (0, 1)]
    out = [(padded[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1)]
    wanted = np.zeros((len(weight), *out, channels, *size), bool)
    for o, y, x, i, ky, kx in np.ndindex(len(weight), *out, c.inside, *kernel):
        row, col = (y * stride[0] + ky * dilation[0] - low[0], x * stride[1] + kx * dilation[1] - low[1])
        if 0 <= row < size[0] and 0 <= col < size[1] and weight[o, i, ky, kx]:
            wanted[o, y, x, o // c.outside * c.inside + i, row, col] = True
    shape = (channels, size[1]) if c.flat else (channels, *size)
    node = Node(type(node).__name__, node.to_dict())
    assert shape_behind(node, shape) == ((len(weight), out[1]) if c.flat else (len(weight), *out))
    found = matrix(node, shape).toarray()
    assert np.array_equal(found, wanted.reshape(len(weight) * out[0] * out[1], -1))


def test_wrong_nir_graphs_are_refused(tmp_path: Path) -> None:
    def refusal(graph: nir.NIRGraph) -> str:
        nir.write(tmp_path / "g.nir", graph)
        return refused(tmp_path / "g.nir")

    start = ("in", nir.Input(np.array([3])))
    assert "node 'fc' does not fit (a weight of shape (2, 4) gets (3,))" in refusal(
        net(start, ("fc", linear(2, 4)), ("n", lif(2)))
    )
    assert "node 'n' has 5 elements, 2 come in" in refusal(net(start, ("fc", linear(2, 3)), ("n", lif(5))))
    ring = net(start, ("a", linear(3, 3)), ("b", linear(3, 3)), more=(("b", "a"),))
    assert "form a cycle without neurons" in refusal(ring)
    assert "an edge joins 'in' and 'x'" in refusal(net(start, ("n", lif(3)), more=(("in", "x"),)))
    big = ("in", nir.Input(np.array([10**6, 10**6])))
    assert "there are 1000000000000 neurons; expected from 1 to" in refusal(
        net(big, ("out", nir.Output(np.array([1]))))
    )
    assert "cannot be read" in refused(put(tmp_path, "h.nir", b"\x89HDF"))
