"""NIR files as tools write them: nested graphs, axes of time and batch, what is not known."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import nir
import numpy as np
import pytest
from formats_support import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from test_formats_hdf5 import lif, linear

from nmsolve.model.errors import InputWarning
from nmsolve.model.formats import load_graph

Edges = set[tuple[str, str]]


def save(graph: nir.NIRGraph, path: Path) -> Path:
    nir.write(path, graph)
    return path


def edges_of(path: Path) -> Edges:
    graph = load_graph(path)
    ids = [str(graph.node_id(i)) for i in range(graph.n)]
    return {(ids[a], ids[b]) for a, b in zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True)}


def plain(*names: str, nodes: dict[str, nir.NIRNode]) -> nir.NIRGraph:
    """A chain of nodes in a graph that nir does not check or change."""
    return nir.NIRGraph(nodes=nodes, edges=list(pairwise(names)), type_check=False)


def written(graph: dict[str, Any], path: Path) -> None:
    """Write what ``to_dict`` of a graph gives; nir itself refuses parameters that are one number, and checks subgraphs."""

    def put(group: h5py.Group, node: dict[str, Any]) -> None:
        for key, value in node.items():
            if isinstance(value, dict):
                put(group.create_group(key), value)
            elif key != "metadata":
                group[key] = value

    with h5py.File(path, "w") as file:
        put(file.create_group("node"), graph)


def test_a_nested_graph_has_the_edges_that_the_file_states(tmp_path: Path) -> None:
    """A neuron with nothing before it stays so: the package nir would put an input there."""
    inner = nir.NIRGraph(
        nodes={"input": nir.Input(np.array([3])), "a": lif(3), "b": lif(3), "output": nir.Output(np.array([3]))},
        edges=[("input", "a"), ("a", "output"), ("b", "a")],
        type_check=False,
    )  # fmt: skip
    nodes = {
        "input": nir.Input(np.array([3])),
        "sub": inner,
        "c": lif(3),
        "output": nir.Output(np.array([3])),
    }
    path = save(plain("input", "sub", "c", "output", nodes=nodes), tmp_path / "g.nir")
    pairs = [("input", "sub.a"), ("sub.b", "sub.a"), ("sub.a", "c")]
    assert edges_of(path) == {(f"{a}/{i}", f"{b}/{i}") for a, b in pairs for i in range(3)}


@pytest.mark.parametrize(("groups", "kernel"), [(4, (3, 3)), (1, (3, 1)), (2, (1, 3))])
def test_a_nested_convolution_is_read_as_one_that_is_not_nested(
    groups: int, kernel: tuple[int, int], tmp_path: Path
) -> None:
    """The package nir infers wrong shapes for groups and for sides that differ."""
    out = tuple(9 - k for k in kernel)
    conv = nir.Conv2d(
        input_shape=None, weight=np.ones((4, 4 // groups, *kernel)), stride=1, padding=0, dilation=1, groups=groups,
        bias=np.zeros(4),
    )  # fmt: skip
    ports = {"input": nir.Input(np.array([4, 8, 8])), "output": nir.Output(np.array([4, *out]))}
    flat = plain("input", "c", "n", "output", nodes=ports | {"c": conv, "n": lif(4, *out)}).to_dict()
    del flat["nodes"]["c"]["input_shape"]
    nested = plain("input", "sub", "output", nodes=ports | {"sub": lif(1)}).to_dict()
    nested["nodes"]["sub"] = flat
    written(flat, tmp_path / "flat.nir")
    written(nested, tmp_path / "nested.nir")
    edges = edges_of(tmp_path / "flat.nir")
    assert len(edges) == np.prod(out) * 4 * (4 // groups) * np.prod(kernel)
    assert {(a, b.removeprefix("sub.")) for a, b in edges_of(tmp_path / "nested.nir")} == edges


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=4), st.integers(0, 2**32 - 1)
)
def test_random_graphs_have_one_edge_per_weight(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[tuple[int, bool]], seed: int
) -> None:
    """Dense layers with recurrent ones, nested or not; counted from the weights alone."""
    rng = np.random.default_rng(seed)
    nodes: dict[str, nir.NIRNode] = {"in": nir.Input(np.array([3]))}
    edges, wanted, last, width = [], set(), "in", 3
    population = "in"
    for k, (size, nested) in enumerate(blocks):
        forward, back = rng.integers(0, 2, (size, width)), rng.integers(0, 2, (size, size))
        prefix = f"b{k}." if nested else ""
        body = {f"w{k}": nir.Linear(forward), f"n{k}": lif(size), f"r{k}": nir.Linear(back)}
        inside = [(f"w{k}", f"n{k}"), (f"n{k}", f"r{k}"), (f"r{k}", f"n{k}")]
        if nested:
            ports = {"i": nir.Input(np.array([width])), "o": nir.Output(np.array([size]))}
            inside += [("i", f"w{k}"), (f"n{k}", "o")]
            nodes[f"b{k}"] = nir.NIRGraph(nodes=body | ports, edges=inside, type_check=False)
            edges.append((last, f"b{k}"))
            last = f"b{k}"
        else:
            nodes |= body
            edges += [(last, f"w{k}"), *inside]
            last = f"n{k}"
        me = f"{prefix}n{k}"
        wanted |= {(f"{population}/{j}", f"{me}/{i}") for i, j in np.argwhere(forward)}
        wanted |= {(f"{me}/{j}", f"{me}/{i}") for i, j in np.argwhere(back) if i != j}
        population, width = me, size
    path = tmp_path_factory.mktemp("g") / "g.nir"
    save(nir.NIRGraph(nodes=nodes, edges=edges, type_check=False), path)
    assert edges_of(path) == wanted


CONV = nir.Conv2d(
    input_shape=(4, 4),
    weight=np.ones((2, 1, 2, 2)),
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    bias=np.zeros(2),
)
POOL = nir.SumPool2d(kernel_size=np.array([2, 2]), stride=np.array([2, 2]), padding=np.array([0, 0]))


@pytest.mark.parametrize(
    ("shape", "behind", "one"),
    [
        ([10, 2], [nir.Linear(np.ones((3, 2))), lif()], [2]),  # Sinabs: time
        ([1, 5, 2], [nir.Linear(np.ones((3, 2))), lif(3)], [2]),  # Rockpool: batch and time
        ([7, 1, 4, 4], [CONV, lif(2, 3, 3)], [1, 4, 4]),
        ([7, 2, 4, 4], [nir.Threshold(np.array(1.0)), POOL, lif()], [2, 4, 4]),
        ([6, 3], [lif(), nir.Scale(np.ones(3)), nir.Linear(np.ones((2, 3))), lif()], [3]),
        ([5, 2, 2, 2], [nir.Flatten(np.array([5, 2, 2, 2])), nir.Linear(np.ones((2, 8))), lif()], [2, 2, 2]),
    ],
)
def test_axes_of_time_and_batch_are_taken_off_with_a_warning(
    shape: list[int], behind: list[nir.NIRNode], one: list[int], tmp_path: Path
) -> None:
    """The same graph as with the shape of one step."""
    found = []
    for k, stated in enumerate((shape, one)):
        path = tmp_path / f"{k}.nir"
        nodes = {"in": nir.Input(np.array(stated)), **{f"n{i}": node for i, node in enumerate(behind)}}
        written(plain(*nodes, nodes=nodes).to_dict(), path)
        if k == 0:
            with pytest.warns(
                InputWarning, match=r"the first axes .* of input 'in' are taken as time or batch"
            ):
                found.append(edges_of(path))
        else:
            found.append(edges_of(path))
    assert found[0] == found[1] and found[0]


def test_shapes_that_nothing_explains_are_refused(tmp_path: Path) -> None:
    nodes = {"in": nir.Input(np.array([10, 3])), "w": linear(3, 2), "n": lif(3)}
    assert "node 'w' does not fit (a weight of shape (3, 2) gets (10, 3))" in refused(
        save(plain(*nodes, nodes=nodes), tmp_path / "g.nir")
    )


def test_graphs_that_name_two_things_alike_or_lead_nowhere_are_refused(tmp_path: Path) -> None:
    ports = {"i": nir.Input(np.array([2])), "o": nir.Output(np.array([2]))}
    inner = plain("i", "n", "o", nodes={**ports, "n": lif(2)})
    twice = plain("in", "s", "s.n", nodes={"in": nir.Input(np.array([2])), "s": inner, "s.n": lif(2)})
    assert "node 's.n' is there twice" in refused(save(twice, tmp_path / "a.nir"))
    shut = nir.NIRGraph(
        nodes={"n": lif(2), "o": nir.Output(np.array([2]))}, edges=[("n", "o")], type_check=False
    )
    path = save(plain("in", "s", nodes={"in": nir.Input(np.array([2])), "s": shut}), tmp_path / "b.nir")
    assert "the graph 's' has no inputs" in refused(path)
    nir.write(tmp_path / "c.nir", lif(2))
    assert "its outermost node is of kind LIF; expected a NIRGraph" in refused(tmp_path / "c.nir")
