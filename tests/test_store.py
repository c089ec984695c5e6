"""The ``.nmz`` store: what is written comes back, in any order and on any number of threads."""

from __future__ import annotations

import errno
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_support import some_graph, varint

from nmsolve.model.errors import InputError
from nmsolve.model.formats import convert, load_graph, nmz, save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.store import Block, Store, StoreWriter, archive, open_graph, shards
from nmsolve.model.store.coding import (
    exact_coding,
    from_codes,
    in_pieces,
    pack_numbers,
    to_codes,
    unpack_numbers,
)
from nmsolve.model.store.graph import in_memory
from nmsolve.model.store.manifest import Coding

VECTORS = Path(__file__).parent / "data" / "nmz"
FIELDS = (
    "n indptr targets weights source multicast rate resources sizes ids directed name meta".split()  # noqa: SIM905
)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of about 40 connections: small graphs have many."""
    monkeypatch.setattr(shards, "SHARD_CONNECTIONS", 40)
    monkeypatch.setattr(shards, "SHARD_VERTICES", 16)


def assert_same(a: LogicGraph, b: LogicGraph) -> None:
    for field in FIELDS:
        x, y = getattr(a, field), getattr(b, field)
        same = np.array_equal(x, y) and x.dtype == y.dtype if isinstance(x, np.ndarray) else x == y
        assert same, field


# -- numbers -------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=40))
def test_numbers_are_written_seven_bits_a_byte_low_groups_first(numbers: list[int]) -> None:
    """The compiled codec agrees with one in plain Python, and reads back what it wrote."""
    raw = pack_numbers(np.array(numbers, np.uint64))
    assert raw == b"".join(map(varint, numbers))
    status, back = unpack_numbers(raw, len(numbers))
    assert status == 0 and back.tolist() == numbers


@settings(deadline=None)
@given(st.lists(st.floats(0, allow_infinity=False), min_size=1, max_size=20))
def test_the_exact_coding_gives_every_weight_back_to_the_last_bit(weights: list[float]) -> None:
    values = np.abs(np.array(weights))
    coding = exact_coding(in_pieces(values))
    back = from_codes(to_codes(values, coding, ""), coding, "")
    assert back.tobytes() == values.tobytes()


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**9), min_size=1), st.sampled_from([1, 10, 1000]))
def test_decimals_become_whole_numbers(units: list[int], per: int) -> None:
    coding = exact_coding(np.array([float(f"{u / per:.3f}")]) for u in units)
    assert coding.code == "integer" and coding.per <= per


def test_large_whole_numbers_beside_decimals_become_floats() -> None:
    """Neither is a problem alone; together they would need more than 2^51 units."""
    large, decimal = np.array([2.0**51]), np.array([0.001])
    assert exact_coding([large]) == Coding("integer", 1) and exact_coding([decimal]) == Coding(
        "integer", 1000
    )
    assert exact_coding([large, decimal]) == exact_coding([decimal, large]) == Coding("float")


def test_sums_of_decimals_are_written_as_the_decimal_they_mean() -> None:
    """0.1 + 0.2 is not 0.3 in floating point, but it is three tenths of a unit."""
    codes = to_codes(np.array([0.1 + 0.2]), Coding("integer", 10), "")
    assert codes.tolist() == [3]
    with pytest.raises(InputError, match=r"0\.35.*multiple"):
        to_codes(np.array([0.35]), Coding("integer", 10), "")


# -- files ---------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_graphs_come_back_with_every_field_and_their_hash(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("nmz") / "g.nmz"
    graph = some_graph(seed)
    save_graph(graph, path)
    back = load_graph(path)
    assert_same(graph, back)
    assert back.hash == graph.hash
    del back.__dict__["hash"]  # stated by the file; computed anew now
    assert back.hash == graph.hash


@pytest.mark.parametrize("seed", range(6))
def test_a_graph_on_disk_is_the_graph_in_memory(tmp_path: Path, seed: int) -> None:
    """Same vertices, same identity, same messages (in the order of vertices); a copy of it has the same bytes."""
    graph = some_graph(seed)
    save_graph(graph, tmp_path / "a.nmz")
    stored = open_graph(tmp_path / "a.nmz")
    for one in (stored, pickle.loads(pickle.dumps(stored))):
        assert (one.n, one.rows, one.m, one.hash, one.directed) == (
            graph.n, graph.rows, graph.m, graph.hash, graph.directed,
        )  # fmt: skip
        assert one.one_row_per_node == graph.one_row_per_node and one.integral == graph.integral
        assert (one.sizes == graph.sizes).all() and one.ids == graph.ids
    order = np.argsort(graph.source, kind="stable")
    expected = [
        (
            graph.source[r],
            graph.targets[a:b].tolist(),
            graph.weights[a:b].tolist(),
            graph.multicast[r],
            graph.rate[r],
        )
        for r in order
        for a, b in [graph.indptr[r : r + 2]]
    ]
    for workers in (1, 3):
        found, number = [], 0
        for rows in stored.blocks(workers):
            assert rows.first == number and rows.indptr[0] == 0
            number += len(rows.source)
            found += [
                (
                    rows.source[i],
                    rows.targets[a:b].tolist(),
                    rows.weights[a:b].tolist(),
                    rows.multicast[i],
                    rows.rate[i],
                )
                for i in range(len(rows.source))
                for a, b in [rows.indptr[i : i + 2]]
            ]
        assert found == expected
    save_graph(stored, tmp_path / "b.nmz")
    assert (tmp_path / "a.nmz").read_bytes() == (tmp_path / "b.nmz").read_bytes()
    assert_same(in_memory(stored, 2), graph)


def test_connections_of_a_graph_on_disk_are_not_there(tmp_path: Path) -> None:
    graph = some_graph(1)
    save_graph(graph, tmp_path / "g.nmz")
    stored = open_graph(tmp_path / "g.nmz")
    for name in ("indptr", "targets", "weights", "traffic", "edge_source"):
        with pytest.raises(InputError, match=r"on disk.*GiB"):
            getattr(stored, name)
    with pytest.raises(AttributeError):
        stored.colour  # noqa: B018


def write(path: Path, graph: LogicGraph, cuts: list[int], workers: int, level: int = 1) -> bytes:
    """The file that results when the graph is appended in pieces."""
    with StoreWriter(path, vertices=graph.n, weight_unit=None, level=level, workers=workers) as out:
        for a, b in zip([0, *cuts], [*cuts, graph.n], strict=True):
            own = slice(graph.indptr[a], graph.indptr[b])
            out.append(graph.indptr[a : b + 1] - graph.indptr[a], graph.targets[own], graph.weights[own])
    return path.read_bytes()


def test_bytes_do_not_depend_on_threads_or_on_the_pieces_appended(tmp_path: Path) -> None:
    graph = some_graph(0, ordinary=True)
    whole = write(tmp_path / "a.nmz", graph, [], 1)
    assert write(tmp_path / "b.nmz", graph, [1, 5, 6, 20], 1) == whole
    assert write(tmp_path / "c.nmz", graph, list(range(1, graph.n)), 3) == whole
    with Store.open(tmp_path / "a.nmz") as store:
        assert len(store.shards) > 3
        assert store.multicast.sum() == 0 and (store.sizes == 1).all() and store.ids is None
    rates = [graph.weights[a:b].max(initial=0) for a, b in zip(graph.indptr, graph.indptr[1:], strict=False)]
    assert load_graph(tmp_path / "a.nmz").rate.tolist() == rates


def parts(block: Block) -> list[list[tuple[int, ...]]]:
    """Tag, neighbour, size, weight of every connection, by vertex."""
    tag = block.tag if len(block.tag) else np.zeros(len(block.neighbour), int)
    size = block.size if len(block.size) else np.ones(len(block.neighbour), int)
    rows = list(
        zip(tag.tolist(), block.neighbour.tolist(), size.tolist(), block.weight.tolist(), strict=True)
    )
    return [rows[a:b] for a, b in zip(block.indptr, block.indptr[1:], strict=False)]


def both_ways(
    edges: dict[tuple[int, int], tuple[int, float]], n: int
) -> list[list[tuple[int, int, int, float]]]:
    rows: list[list[tuple[int, int, int, float]]] = [[] for _ in range(n)]
    for (u, v), (size, weight) in edges.items():
        rows[u].append((0, v, size, weight))
        rows[v].append((1, u, size, weight))
    return [sorted(r) for r in rows]


def write_rows(path: Path, rows: list[list[tuple[int, int, int, float]]], **options: object) -> None:
    flat = [r for row in rows for r in row]
    indptr = np.cumsum([0, *map(len, rows)])
    tag, neighbour, size, weight = (np.array(c) for c in zip(*flat, strict=True))
    with StoreWriter(path, vertices=len(rows), **options) as out:  # type: ignore[arg-type]
        out.append(indptr, neighbour, weight, size, tag)


EDGES = {(u, v): (1 + u % 3, float(u + v)) for u in range(30) for v in range(0, 30, 4) if u != v}


def test_both_directions_come_back_and_a_reader_sees_each_edge_once(tmp_path: Path) -> None:
    rows = both_ways(EDGES, 30)
    write_rows(tmp_path / "g.nmz", rows, directions="both")
    with Store.open(tmp_path / "g.nmz") as store:
        assert len(store.shards) > 2
        assert [r for b in store.blocks(workers=2) for r in parts(b)] == rows
        some = [2, 0, 1]
        assert [b.first for b in store.blocks(some, 2)] == [store.shards[i].first for i in some]
    graph = load_graph(tmp_path / "g.nmz")
    assert graph.m == len(EDGES) == open_graph(tmp_path / "g.nmz").m
    assert {(u, v): w for u, v, w in zip(graph.edge_source, graph.targets, graph.weights, strict=True)} == {
        e: w for e, (_, w) in EDGES.items()
    }


def test_two_directions_that_disagree_are_found_out(tmp_path: Path) -> None:
    rows = both_ways(EDGES, 30)
    for wrong in (lambda r: (*r[:3], r[3] + 1), lambda r: (*r[:2], r[2] + 1, r[3])):
        changed = [list(r) for r in rows]
        changed[4][2] = wrong(changed[4][2])
        write_rows(tmp_path / "g.nmz", changed, directions="both")
        with pytest.raises(InputError, match="two directions disagree"):
            Store.open(tmp_path / "g.nmz")


@pytest.mark.parametrize("seed", range(6))
def test_converting_streams_and_writes_what_saving_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """From our archives edge by edge (but for hypergraphs), and from one store to another."""
    from nmsolve.model.formats import npz, npz_own

    graph = some_graph(seed)
    save_graph(graph, tmp_path / "a.nmz")
    save_graph(graph, tmp_path / "a.npz")
    monkeypatch.setattr(npz_own, "BLOCK", 30)
    if graph.one_row_per_node:
        monkeypatch.setattr(npz, "load", lambda path: pytest.fail("loaded whole"))
    monkeypatch.setattr(nmz, "load", lambda path: pytest.fail("loaded whole"))
    for source in ("a.npz", "a.nmz"):
        assert convert(tmp_path / source, tmp_path / "b.nmz", 2) == (graph.n, graph.m)
        assert (tmp_path / "b.nmz").read_bytes() == (tmp_path / "a.nmz").read_bytes()


def test_streamed_archives_are_checked(tmp_path: Path) -> None:
    graph = some_graph(0, ordinary=True)
    save_graph(graph, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        good = dict(archive)
    for key, values, words in (
        ("targets", good["targets"] + graph.n, "targets: an edge leads to an unknown node"),
        ("targets", good["targets"][::-1], "neighbours of a vertex that do not rise"),
        ("targets", good["targets"] * 1.0, "targets: found 1-dimensional float64"),
        ("weights", good["weights"][1:], "values"),
        ("weights", -good["weights"], "weight"),
        ("indptr", good["indptr"][1:], "indptr"),
    ):
        np.savez(tmp_path / "b.npz", **{**good, key: values})
        with pytest.raises(InputError, match=words):
            convert(tmp_path / "b.npz", tmp_path / "b.nmz")
        assert not (tmp_path / "b.nmz").exists()
    data = bytearray((tmp_path / "a.npz").read_bytes())
    at = data.index(b"targets.npy") + 200
    data[at] ^= 1
    (tmp_path / "b.npz").write_bytes(data)
    with pytest.raises(InputError, match=r"b\.npz"):
        convert(tmp_path / "b.npz", tmp_path / "b.nmz")


def test_any_unzip_reads_the_file(tmp_path: Path) -> None:
    save_graph(some_graph(2), tmp_path / "g.nmz")
    with zipfile.ZipFile(tmp_path / "g.nmz") as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["nmz"] == 1 and manifest["shards"][0]["first"] == 0


def test_archives_beyond_the_32_bit_limits_are_read_by_any_unzip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limits lowered to 300 bytes and 5 members, the 64-bit records are written and understood."""
    graph = some_graph(0, ordinary=True)
    with monkeypatch.context() as m:
        m.setattr(archive, "_OFFSET_LIMIT", 300)
        m.setattr(archive, "_COUNT_LIMIT", 5)
        save_graph(graph, tmp_path / "g.nmz")
    with zipfile.ZipFile(tmp_path / "g.nmz") as packed:
        assert packed.testzip() is None and len(packed.namelist()) > 5
        assert packed.infolist()[-1].header_offset > 300
    assert_same(load_graph(tmp_path / "g.nmz"), graph)


# -- failures while writing ----------------------------------------------------------------------------------


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "g.nmz"
    save_graph(some_graph(1), path)
    before = path.read_bytes()
    ok = (np.array([0, 1]), np.array([1]), np.array([1.0]))
    for error, pieces in {
        "rise": [(np.array([0, 2]), np.array([2, 1]), np.ones(2))],
        "not another vertex": [(np.array([0, 1]), np.array([0]), np.ones(1))],
        "multiple": [(np.array([0, 1]), np.array([1]), np.array([0.5]))],
        "weight": [(np.array([0, 1]), np.array([1]), np.array([np.nan]))],
        "size": [(np.array([0, 1]), np.array([1]), np.ones(1), np.array([0]))],
        "tags": [(np.array([0, 2]), np.array([1, 2]), np.ones(2), None, np.array([2, 0]))],
        "from 1 to 4294967297": [(np.array([0, 2]), np.array([1, 2**32 + 1]), np.ones(2))],
        "rising numbers from 0": [(np.array([0, 2, 1, 3]), np.array([1, 2, 0]), np.ones(3))],
        "an array does not have": [(np.array([0, 2]), np.array([1]), np.ones(1))],
        "1 vertices were written": [ok],
        "more than the 3": [ok, (np.zeros(4, int), np.zeros(0, int), np.zeros(0))],
    }.items():
        with pytest.raises(InputError, match=error), StoreWriter(path, vertices=3, workers=2) as out:
            for piece in pieces:
                out.append(*piece)
        assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_an_interrupt_or_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = some_graph(0, ordinary=True)
    with (
        pytest.raises(KeyboardInterrupt),
        StoreWriter(tmp_path / "g.nmz", vertices=graph.n, workers=2) as out,
    ):
        out.append(graph.indptr[:9], graph.targets[: graph.indptr[8]], np.ones(graph.indptr[8]))
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="folder"):
        StoreWriter(tmp_path / "no" / "g.nmz", vertices=3)
    for workers in (1, 2):
        with monkeypatch.context() as m:
            m.setattr(archive.ZipWriter, "_write", full)
            with pytest.raises(InputError, match="no space left") as caught:
                write(tmp_path / "g.nmz", graph, [], workers)
        assert "g.nmz" in str(caught.value) and not list(tmp_path.iterdir())


def full(self: archive.ZipWriter, data: bytes) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# -- the committed files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ordinary", "decimals", "nets", "both"])
def test_vectors_read_as_their_contents_say(name: str) -> None:
    """The files that other implementations test against; ``NAME.json`` says what is in ``NAME.nmz``."""
    content = json.loads((VECTORS / f"{name}.json").read_text())
    with Store.open(VECTORS / f"{name}.nmz") as store:
        rows = [[list(c) for c in r] for b in store.blocks() for r in parts(b)]
        assert rows == content["connections"]
        assert store.rate.tolist() == content["rate"] and store.sizes.tolist() == content["sizes"]
        assert store.multicast.tolist() == content["multicast"]
        assert (None if store.messages is None else store.messages.tolist()) == content["messages"]
        assert (None if store.ids is None else list(store.ids)) == content["ids"]


def test_the_worked_example_of_the_format_page_is_the_vector() -> None:
    """``docs/nmz.md`` prints the bytes of the shard of ``decimals.nmz``."""
    page = (Path(__file__).parent.parent / "docs" / "nmz.md").read_text()
    with zipfile.ZipFile(VECTORS / "decimals.nmz") as archive:
        assert archive.read("shards/000000").hex(" ") in page.replace("\n", " ")
