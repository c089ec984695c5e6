"""The function library: what it holds, whom it trusts, its regressions, and the profiler that fills it."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Called
from machines_support import two
from onnx_support import model, saved, value, weight
from operators_support import Sketch

from nmsolve.hw.assignment.library import LARGEST_FILE, SCHEMA, Library
from nmsolve.hw.assignment.library_rows import COPY, Entry, Fused, Key, Sample, family_of, fitted, key_of
from nmsolve.hw.assignment.profile import integer_gain
from nmsolve.hw.assignment.state import state_assignment
from nmsolve.model.errors import InputError
from nmsolve.model.operators.graph import OperatorGraph

ADD = Key("Add", "{}", "float32,float32>float32", "[[10],[10]]")
ENTRY = Entry(
    ADD,
    "cpu",
    1,
    5e6,
    macs=0,
    elements=10,
    bytes=120,
    host="here",
    runtime="r 1",
    runs=9,
    quantile=0.1,
    spread=1.5,
)


def chain() -> OperatorGraph:
    """Neg, then Relu, of ten floats."""
    s = Sketch("chain")
    return s.graph(s.op("Relu", [s.op("Neg", [s.input(10)], (10,), name="neg")], (10,), name="relu"))


def keys(graph: OperatorGraph) -> list[Key]:
    return [key_of(graph, operator, {}) for operator in graph.operators]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Entries, groups and verdicts; later ones of the same name replace earlier ones."""
    path = tmp_path / "l.db"
    fused = Fused((ADD, ADD), "cpu", 1, 6e6, 1e7, 9, 1.2)
    with Library(path, write=True) as library:
        library.add([ENTRY, replace(ENTRY, threads=2)], [fused])
        library.add([replace(ENTRY, time=4e6, energy=3.0, memory=120)])
        library.record([(ADD, "cpu"), (ADD, "cpu")], [(ADD, "npu")])
        library.record([(ADD, "cpu")], [])
    with Library(path) as library:
        assert library.find(ADD, "cpu") == replace(ENTRY, time=4e6, energy=3.0, memory=120)
        assert library.find(ADD, "cpu", 2) == replace(ENTRY, threads=2) and library.find(ADD, "npu") is None
        found = library.find_fused([ADD, ADD], "cpu")
        assert found == fused and found.saved == pytest.approx(0.4)
        assert vars(library.verdict(ADD, "cpu")) == {"got": 3, "failed": 0}
        assert vars(library.verdict(ADD, "npu")) == {"got": 0, "failed": 1}
        with pytest.raises(InputError, match="readonly"):
            library.add([ENTRY])


def test_a_key_says_what_matters_and_nothing_else() -> None:
    """Settings, constant inputs and sizes; not names."""
    s = Sketch("keys")
    x = s.input(4, 6, name="x")
    a = s.op("Reshape", [x, s.constant([24])], (24,), name="a", allowzero=0)
    b = s.op("Reshape", [x, s.constant([24])], (24,), name="b", allowzero=0)
    c = s.op("Reshape", [x, s.constant([2, 12])], (2, 12), name="c", allowzero=0)
    one, two_, three = keys(s.graph(a, b, c))
    assert one == two_ != three
    assert one == Key("Reshape", '{"allowzero":0,"in1":[24]}', "float32,int64>float32", "[[4,6],[1]]")


def test_convolutions_of_a_kind_are_a_family() -> None:
    """Depthwise, at points, others; settings that are no settings do no harm."""
    settings = (
        {"group": 8},
        {"group": 1, "kernel_shape": [1, 1]},
        {"kernel_shape": [3, 1]},
        {"kernel_shape": 5},
        {},
    )
    families = [family_of(ADD._replace(kind="Conv", attributes=json.dumps(s))) for s in settings]
    assert (
        families == ["Conv by groups", "Conv at points", "Conv", "Conv", "Conv"] and family_of(ADD) == "Add"
    )


def test_a_regression_finds_the_line_and_its_error() -> None:
    """1 us, 2 ps a MAC and 3 ps a byte, exactly; with noise of a tenth the error is of that size."""
    rng = np.random.default_rng(1)
    work = [
        (int(m), int(b))
        for m, b in zip(rng.integers(10**4, 10**7, 20), rng.integers(10**4, 10**7, 20), strict=True)
    ]
    fit = fitted([Sample(m, 0, b, 1e6 + 2.0 * m + 3.0 * b) for m, b in work])
    assert fit is not None and fit.coefficients == pytest.approx((1e6, 2, 0, 3)) and fit.error < 1e-9
    assert fit.time(10**6, 0, 10**6) == pytest.approx(6e6)
    noisy = fitted([Sample(m, 0, b, (1e6 + 2.0 * m + 3.0 * b) * rng.uniform(0.9, 1.1)) for m, b in work])
    assert noisy is not None and 0.01 < noisy.error < 0.1


def test_a_regression_is_not_believed_far_from_what_was_measured() -> None:
    """Twice the largest, half the smallest; and not at all from few samples, or from many of one size."""
    fit = fitted([Sample(0, n, 4 * n, 100.0 * n) for n in (100, 200, 400, 800)])
    assert fit is not None and fit.samples == 4
    assert fit.time(0, 1600, 6400) == pytest.approx(160_000) and fit.time(0, 1601, 6400) is None
    assert fit.time(0, 49, 200) is None and fit.time(1, 400, 1600) is None
    assert fitted([Sample(0, n, 0, 1.0) for n in (1, 2, 3)]) is None
    assert fitted([Sample(0, 1, 0, 1.0)] * 10) is None


def test_the_best_source_of_a_time_is_taken_and_named() -> None:
    """Measured before fitted before assumed."""
    graph = chain()
    neg, relu = keys(graph)
    with Library() as library:
        library.add([replace(ENTRY, key=neg, time=7e6, energy=11.0)])
        library.add(
            replace(
                ENTRY, key=relu._replace(sizes=f"[[{n}]]"), elements=n, bytes=8 * n, time=1e6 + 1000.0 * n
            )
            for n in (5, 20, 40, 80)
        )
        stated = state_assignment(graph, two(), library=library)
    p = stated.problem
    assert stated.origin[1:3] == (("measured", "assumed"), ("fitted", "assumed"))
    assert (
        p.time[1, 0] == 7 * 10**6 and p.energy[1, 0] == 11 and p.time[2, 0] == pytest.approx(1_010_000, abs=1)
    )
    assert p.time[1, 1] == 2 * 10**6 + 8000 and list(stated.fits) == [("Relu", "cpu")]


def test_entries_are_of_a_processor_by_its_name_in_the_library_and_its_threads() -> None:
    """An accelerator may stand for threads of this host."""
    graph = chain()
    neg, _ = keys(graph)
    machine = two(processor__1__library="host", processor__1__threads=2)
    with Library() as library:
        library.add([replace(ENTRY, key=neg, processor="host", threads=n, time=7e6 / n) for n in (1, 2)])
        assert state_assignment(graph, machine, library=library).problem.time[1].tolist() == [
            1_080_000,
            3_500_000,
        ]


def test_measured_groups_and_copies_replace_assumptions() -> None:
    """A quarter of the time is saved by fusion; a copy takes 2 us and 0.5 ps a byte."""
    graph = chain()
    neg, relu = keys(graph)
    machine = two(link__0__library="host")
    assumed = state_assignment(graph, machine).problem
    with Library() as library:
        library.add(
            [replace(ENTRY, key=Key(COPY, "{}", "", f"[[{n}]]"), processor="host", elements=0, bytes=n, time=2e6 + 0.5 * n)
             for n in (10, 1000, 10**5, 10**6)],
            [Fused((neg, relu), "cpu", 1, 3e6, 4e6)],
        )  # fmt: skip
        p = state_assignment(graph, machine, library=library).problem
    assert (
        p.groups.time[0, 0] == p.time[1:3, 0].sum() // 4 and p.groups.time[0, 1] == assumed.groups.time[0, 1]
    )
    assert p.flows.time[0, 0, 1] == 2_000_020 and assumed.flows.time[0, 0, 1] == 3_040_000


def test_the_next_run_knows_who_got_an_operation_and_who_did_not() -> None:
    """Neg goes to the host, though the accelerator is faster; Relu, which it is not, too."""
    graph = chain()
    with Library() as library:
        library.add([replace(ENTRY, key=key, time=t) for key, t in zip(keys(graph), (9e6, 1e6), strict=True)])
        stated = state_assignment(graph, two(), library=library)
        stated.record(library, np.zeros(4, np.int64))
        again = state_assignment(graph, two(), library=library)
    assert stated.problem.earlier is None and again.problem.earlier is not None
    assert again.problem.earlier.tolist() == [[0, 0], [1, -1], [1, 0], [0, 0]]


def broken(change: Callable[[sqlite3.Connection], object]) -> Callable[[Path], None]:
    """A library of one entry, changed by hand."""

    def make(path: Path) -> None:
        with Library(path, write=True) as library:
            library.add([ENTRY], [Fused((ADD, ADD), "cpu", 1, 6e6, 1e7)])
            library.record([(ADD, "cpu")], [])
        file = sqlite3.connect(path)
        change(file)
        file.commit()
        file.close()

    return make


def start_of(path: Path) -> bytes:
    """The first bytes of a file, nothing of what is none."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(10_000)


def sql(*words: str) -> Callable[[Path], None]:
    return broken(lambda file: [file.execute(w) for w in words])


def foreign(path: Path) -> None:
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE entry (kind TEXT)")
    file.commit()
    file.close()


def torn(path: Path) -> None:
    sql()(path)
    data = bytearray(path.read_bytes())
    data[4096 + 8 : 3 * 4096] = b"\xff" * len(data[4096 + 8 : 3 * 4096])
    path.write_bytes(data)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"SQLite format 3\0")
        file.truncate(LARGEST_FILE + 1)


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no such file": (lambda path: None, "there is no such library"),
    "a folder": (lambda path: path.mkdir(), "there is no such library"),
    "text": (lambda path: path.write_text("hello, this is no database at all"), "no SQLite file"),
    "another program's": (foreign, "a database of another program"),
    "empty": (lambda path: path.write_bytes(b""), "a database of another program"),
    "torn": (torn, "the library cannot be used"),
    "cut off": (
        lambda path: (sql()(path), path.write_bytes(path.read_bytes()[:5000])),
        "the library cannot be used",
    ),
    "too large": (huge, "at most 268,435,456"),
    "of the future": (sql("PRAGMA user_version = 2"), "version 2 of the library"),
    "with a trigger": (
        sql("CREATE TRIGGER t AFTER INSERT ON verdict BEGIN DELETE FROM entry; END"),
        "tables that are not the library's",
    ),
    "with a view": (
        sql("DROP TABLE verdict", "CREATE VIEW verdict AS SELECT 1, 2, 3, 4, 5, 6, 7"),
        "tables that are not the library's",
    ),
    "with bytes as the name of a table": (
        sql(
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET name = CAST(name AS BLOB) WHERE name = 'fused'",
        ),
        "tables that are not the library's",
    ),
    "negative time": (sql("UPDATE entry SET time = -1"), r"entry 1 \(Add on cpu\): the time is -1"),
    "infinite time": (sql("UPDATE entry SET time = 9e999"), "the time is inf"),
    "negative energy": (sql("UPDATE entry SET energy = -0.5"), "the energy is -0.5"),
    "negative work": (sql("UPDATE entry SET macs = -3"), "macs is -3"),
    "text for a number": (sql("UPDATE entry SET time = 'soon'"), "entry 1: a value 'soon' of a wrong type"),
    "bytes for text": (sql("UPDATE entry SET host = x'ff00'"), "of a wrong type"),
    "an origin that is none": (sql("UPDATE entry SET origin = 'guessed'"), "the origin is 'guessed'"),
    "no runs": (sql("UPDATE entry SET runs = 0"), "1 threads, 0 runs"),
    "a spread below one": (sql("UPDATE entry SET spread = 0.5"), "spread 0.5"),
    "sizes that are none": (sql("UPDATE entry SET sizes = '[[1'"), "sizes or attributes are not JSON"),
    "parts that are none": (sql("UPDATE fused SET parts = '[3]'"), "parts that are no operations"),
    "a group of one": (sql("UPDATE fused SET parts = '[]'"), "0 operations"),
    "a negative verdict": (sql("UPDATE verdict SET failed = -1"), "-1 times"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_library_that_is_none_is_one_line(case: str, tmp_path: Path) -> None:
    """Which file, which row, what is wrong; the file stays as it is."""
    make, words = DAMAGED[case]
    path = tmp_path / "l.db"
    make(path)
    before = start_of(path)
    with pytest.raises(InputError, match=words) as error:
        Library(path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)
    assert start_of(path) == before


def test_nothing_that_cannot_be_is_written() -> None:
    """The same checks as when reading."""
    with Library() as library:
        for wrong in (
            {"time": 0.0},
            {"time": math.nan},
            {"energy": -1.0},
            {"bytes": -1},
            {"threads": 0},
            {"spread": math.inf},
        ):
            with pytest.raises(InputError):
                library.add([replace(ENTRY, **wrong)])
        with pytest.raises(InputError):
            library.add([], [Fused((ADD,), "cpu", 1, 1.0, 1.0)])
        assert not library.entries and not library.fused


def test_the_tables_are_those_that_were_promised() -> None:
    """A change of a table needs another version: old files would be refused as foreign."""
    assert sorted(SCHEMA) == ["entry", "fused", "verdict"]
    assert [sql.count("NOT NULL") for _, sql in sorted(SCHEMA.items())] == [16, 7, 7]


def test_products_of_whole_numbers_are_compared_with_those_of_floats() -> None:
    """Pairs of the same sizes, one twice and one four times as long; others do not count."""
    sizes = [f"[[{n},8],[8,8]]" for n in (1, 2, 3)]
    entries = [replace(ENTRY, key=Key("MatMul", "{}", "f", z), time=10.0) for z in sizes[:2]]
    entries += [
        replace(ENTRY, key=Key("MatMulInteger", "{}", "i", z), time=t)
        for z, t in zip(sizes, (20.0, 40.0, 9.0), strict=True)
    ]
    with Library() as library:
        assert integer_gain(library, "cpu", 1) is None
        library.add(entries)
        assert integer_gain(library, "cpu", 1) == (3.0, 2) and integer_gain(library, "cpu", 2) is None


def tiny(folder: Path) -> Path:
    """Product, bias and Relu, then a branch that gives one of two results."""
    from onnx import helper

    branch = [
        helper.make_graph([helper.make_node(kind, ["r"], [out])], out, [], [value(out, 2, 16)])
        for kind, out in (("Exp", "yes"), ("Abs", "no"))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]), helper.make_node("ReduceSum", ["r"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1]),
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    weights = [
        weight("w", rng.random((8, 16), np.float32)), weight("b", rng.random(16, np.float32)), weight("zero", np.float32(0)),
    ]  # fmt: skip
    return saved(model(nodes, [value("x", "n", 8)], ["y"], weights), folder)


def test_profile_measures_every_operator_once_and_goes_on_where_it_ended(
    tmp_path: Path, call: Called
) -> None:
    """Bodies too; a second run knows them all, and another number of threads none."""
    pytest.importorskip("onnxruntime")
    file, path = tiny(tmp_path), tmp_path / "l.db"
    told = [
        "profile",
        file,
        "-l",
        path,
        "--bind",
        "n=2",
        "--runs",
        5,
        "--seconds",
        0.01,
        "--spread",
        1e9,
        "--json",
    ]
    code, out, _ = call(*told)
    row = json.loads(out)
    assert code == 0 and row["failed"] == {} and row["untrusted"] == {} and row["known"] == 0
    with Library(path) as library:
        kinds = sorted(e.key.kind for e in library.entries if e.key.kind != COPY)
        assert kinds == ["Abs", "Add", "Exp", "Greater", "MatMul", "MatMulInteger", "ReduceSum", "Relu"]
        assert all(
            e.origin == "measured" and e.runtime.startswith("onnxruntime ") and e.host
            for e in library.entries
        )
        assert row["measured"] == row["entries"] == len(library.entries)
        assert row["plain_ps"]["1"] > 0 and row["fused_ps"]["1"] > 0
        assert row["groups"] == len(library.fused) >= 1 and row["integers_to_floats"]["1"] > 0
        product = next(e for e in library.entries if e.key.kind == "MatMul")
        assert (product.macs, product.bytes, product.key.sizes) == (256, 704, "[[2,8],[8,16]]")
    again = json.loads(call(*told)[1])
    assert again["measured"] == 0 and again["known"] == row["measured"]
    more = json.loads(call(*told, "--threads", "1,2", "--no-fused", "--no-integers")[1])
    assert more["measured"] == row["measured"] - 1 and more["known"] == again["known"] - 1
    code, out, _ = call(*told[:-1])
    assert code == 0 and "0 operations measured" in out and "node by node" in out


def test_a_node_whose_times_spread_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Called
) -> None:
    """Named with how far; nothing of it is written. Measured three times before (one call is for an empty session)."""
    pytest.importorskip("onnxruntime")
    from nmsolve.hw.assignment import profile
    from nmsolve.hw.assignment.runtime import Times

    counted: list[int] = []

    def shaky(run: Callable[[], None], patience: object) -> Times:
        run()
        counted.append(1)
        return Times(1e9, 4.0 if len(counted) <= 4 else 2.0, 5)

    monkeypatch.setattr(profile, "timed", shaky)
    path = tmp_path / "l.db"
    told = ["profile", tiny(tmp_path), "-l", path, "--bind", "n=2", "--no-fused", "--no-integers"]
    code, out, _ = call(*told)
    assert code == 0 and "spread too far to trust: MatMul_0 (4.0 times)" in out
    with Library(path) as library:
        assert "MatMul" not in {e.key.kind for e in library.entries} and len(library.entries) >= 7


def test_without_the_runtime_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Called
) -> None:
    """One line, exit code 2, and no library is made."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, _, err = call("profile", tiny(tmp_path), "-l", tmp_path / "l.db")
    assert code == 2 and err.count("\n") == 1 and "nmsolve[onnx,runtime]" in err
    assert not (tmp_path / "l.db").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--threads", "two"], "--threads"), (["--threads", "0"], "--threads"), (["--spread", "1"], "--spread"), ([], "'n'"),
     (["--bind", "n=2", "-l", "text.db"], "no SQLite file")],
)  # fmt: skip
def test_profile_refuses_what_it_cannot_do(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Called
) -> None:
    """One line, exit code 2."""
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_text("text, and no database of any kind")
    given: list[Any] = ["profile", tiny(tmp_path), *options]
    code, _, err = call(*given)
    assert code == 2 and words in err and err.count("\n") == 1


def test_a_node_that_is_too_large_to_be_measured_is_named(tmp_path: Path, call: Called) -> None:
    """The other nodes go on: no memory is asked for that the host may not have."""
    pytest.importorskip("onnxruntime")
    told = ("profile", tiny(tmp_path), "-l", tmp_path / "l.db", "--no-fused", "--runs", 3, "--seconds", 0.001)
    code, out, _ = call(*told, "--bind", f"n={2**26}", "--json")
    row = json.loads(out)
    assert code == 0 and row["failed"].keys() >= {"MatMul_0", "MatMul_0 in integers", "Relu_2"}
    assert all("too large to be measured" in why for why in row["failed"].values())
    assert row["measured"] >= 1


def test_a_filled_model_has_weights_inputs_and_its_own_names(tmp_path: Path) -> None:
    """Names make symbols, of trip counts for one: a model with weights takes the same bindings."""
    import onnx

    from nmsolve.hw.assignment.fused_profile import filled
    from nmsolve.model.formats.onnx import load_onnx

    path = tiny(tmp_path)
    proto = onnx.load(path)
    stripped = onnx.load(path)
    weights = {t.name: t.dims for t in stripped.graph.initializer if t.name in ("w", "b")}
    for name, dims in weights.items():
        stripped.graph.input.append(value(name, *dims))
    kept = [t for t in stripped.graph.initializer if t.name not in weights]
    del stripped.graph.initializer[:]
    stripped.graph.initializer.extend(kept)
    stripped.metadata_props.add(key="stripped_initializers", value="|".join(weights))
    onnx.save(stripped, tmp_path / "stripped.onnx")
    model, feeds = filled(stripped, load_onnx(tmp_path / "stripped.onnx"), {"n": 3})
    assert {t.name: t.dims for t in model.graph.initializer} == {
        t.name: t.dims for t in proto.graph.initializer
    }
    assert [n.name for n in model.graph.node] == [n.name for n in proto.graph.node]
    assert {name: a.shape for name, a in feeds.items()} == {"x": (3, 8)}
