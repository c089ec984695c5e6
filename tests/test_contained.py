"""Work on files in a process of its own: whatever happens there is one line here, and nothing outlives the parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import onnx
import pytest
from conftest import Called
from formats_support import refused
from onnx import TensorProto, helper

from nmsolve.model import clock
from nmsolve.model.contained import Allowance, Reply, contained, one_reply
from nmsolve.model.errors import BackendError, InputError, InputWarning, doubtful
from nmsolve.model.formats import load_graph
from nmsolve.model.formats.onnx import load_onnx

SMALL = Allowance(2**28, 5.0)


def test_values_and_arrays_come_back_in_pieces() -> None:
    def work() -> Iterator[Reply]:
        for k in range(3):
            yield Reply({"k": k, "text": "\udcff"}, {"a": np.arange(k * 10**5), "b": np.zeros((2, k), bool)})

    with contained(work, "f", SMALL) as pieces:
        for k, (value, arrays) in enumerate(pieces):
            assert value == {"k": k, "text": "\udcff"}
            assert np.array_equal(arrays["a"], np.arange(k * 10**5)) and arrays["b"].shape == (2, k)
    assert k == 2


def test_warnings_come_back_before_the_reply_and_may_be_errors_here() -> None:
    def work() -> Reply:
        doubtful("it is odd", "f", "even")
        doubtful("it is odd", "f", "even")
        return Reply(7, {})

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", InputWarning)
        assert one_reply(work, "f", SMALL).value == 7
    assert [str(w.message) for w in seen] == ["f: it is odd; expected even"] * 2
    with warnings.catch_warnings(), pytest.raises(InputWarning, match="f: it is odd"):
        warnings.simplefilter("error", InputWarning)
        one_reply(work, "f", SMALL)


def crash() -> Reply:
    ctypes.string_at(0)
    raise AssertionError


def hog() -> Reply:
    return Reply(len([bytearray(2**24) for _ in range(100)]), {})


def sleep() -> Reply:
    time.sleep(60)
    raise AssertionError


def spin() -> Reply:
    while True:
        pass


def deep() -> Reply:
    return deep()


def wrong() -> Reply:
    raise InputError("this is wrong", "f:3", "that")


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (crash, "f: reading it crashed (SIGSEGV); expected an undamaged file"),
        (
            hog,
            "f: reading it takes more than 256 MiB of memory; expected a file that does not unpack",
        ),
        (sleep, "f: reading it takes more than 1 s"),
        (spin, "f: reading it takes more than 1 s"),
        (deep, "f: its content is nested too deeply"),
        (wrong, "f:3: this is wrong; expected that"),
    ],
)
def test_every_bad_end_is_one_line(work: Callable[[], Reply], line: str) -> None:
    with pytest.raises(InputError) as error:
        one_reply(work, "f", Allowance(2**28, 1.0 if "1 s" in line else 20.0))
    assert str(error.value).startswith(line) and "\n" not in str(error.value)


def test_a_fault_of_ours_is_told_from_a_fault_of_the_file() -> None:
    with pytest.raises(BackendError, match=r"f: reading it failed: ZeroDivisionError.*\(test_contained.py:"):
        one_reply(lambda: Reply(1 // 0, {}), "f", SMALL)


def test_leaving_early_ends_the_process() -> None:
    def work() -> Iterator[Reply]:
        while True:
            yield Reply(os.getpid(), {"a": np.zeros(10**6)})

    with contained(work, "f", SMALL) as pieces:
        pid = next(pieces).value
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_dies_with_its_parent(number: int, tmp_path: Path) -> None:
    """At once: no time limit ends a reading."""
    code = (
        "import os, sys, time\nfrom nmsolve.model.contained import Allowance, Reply, one_reply\n"
        "def work():\n    open(sys.argv[1], 'w').write(str(os.getpid()))\n    time.sleep(60)\n    return Reply(0, {})\n"
        "one_reply(work, 'f', Allowance(2**28, 60.0))"
    )
    told = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", code, str(told)], stderr=subprocess.DEVNULL)
    while not (told.exists() and told.read_text()):
        time.sleep(0.01)
    os.kill(parent.pid, number)
    parent.wait(20)
    for _ in range(500):
        if not running(int(told.read_text())):
            return
        time.sleep(0.01)
    raise AssertionError("it lives on")


def running(pid: int) -> bool:
    """It is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_file_is_read_to_its_end_however_short_the_limit(call: Called, tmp_path: Path) -> None:
    """The limit counts the search: a network that is read in a process of its own gets a mapping, however late."""
    network = Path(__file__).parent / "data" / "sanafe" / "network.yaml"
    code, _, err = call("map", network, "--machine", "mesh:2x2", "-t", "0.01", "--out", tmp_path / "out")
    assert code == 0 and (tmp_path / "out" / "mapping.json").exists(), err


# ---- formats ------------------------------------------------------------------------------------------------


def ends(file: h5py.File) -> h5py.Group:
    return file.create_group("edges/a")


def test_hdf5_opens_no_other_file(tmp_path: Path) -> None:
    """Bytes of any file could be made edges of a graph by external storage, links and virtual data sets."""
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(100)))
    with h5py.File(tmp_path / "other.h5", "w") as other:
        for name in ("source_node_id", "target_node_id"):
            other[f"edges/a/{name}"] = np.arange(4)
    with h5py.File(tmp_path / "storage.h5", "w") as file:
        group = ends(file)
        for name in ("source_node_id", "target_node_id"):
            group.create_dataset(name, shape=(100,), dtype="u1", external=[(str(secret), 0, 100)])
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["edges"] = h5py.ExternalLink("other.h5", "/edges")
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        layout = h5py.VirtualLayout(shape=(4,), dtype="i8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "edges/a/source_node_id", shape=(4,))
        group = ends(file)
        for name in ("source_node_id", "target_node_id"):
            group.create_virtual_dataset(name, layout)
    assert load_graph(tmp_path / "other.h5").n == 4
    assert "its data are stored in other files; expected everything in one file" in refused(
        tmp_path / "storage.h5"
    )
    assert "edges: it is a link to another file" in refused(tmp_path / "link.h5")
    assert "its data are stored in other files" in refused(tmp_path / "virtual.h5")


def test_one_data_set_under_many_names_is_not_believed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "many.h5", "w") as file:
        first = file.create_dataset("d", data=np.zeros(2**18, "u4"), chunks=True, compression="gzip")
        for k in range(20):
            file[f"edges/p{k}/source_node_id"] = first
            file[f"edges/p{k}/target_node_id"] = first
    assert f"there are {20 * 2**18} edges; expected at most {2**20} in a file of this size" in refused(
        tmp_path / "many.h5"
    )


def einsum(path: Path, equation: str) -> Path:
    graph = helper.make_graph(
        [helper.make_node("Einsum", ["x"], ["y"], equation=equation)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    onnx.save(helper.make_model(graph), path)
    return path


def test_an_endless_inference_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The onnx package never ends on this equation."""
    monkeypatch.setattr("nmsolve.model.formats.onnx.hints.PATIENCE", 3.0)
    path = einsum(tmp_path / "m.onnx", ".i.")
    start = clock.now()
    graph = load_onnx(path)
    assert clock.now() - start < 6
    assert any("cannot infer shapes" in warning for warning in graph.warnings)


def test_weights_in_other_files_are_not_opened(tmp_path: Path) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    weight.ClearField("float_data")
    weight.data_location = TensorProto.EXTERNAL
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # to open it would be to wait for ever
    for key, value in (("location", "../" + tmp_path.name + "/fifo"), ("length", "12")):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=weight), helper.make_node("Add", ["w", "c"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight],
    )
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    found = load_onnx(tmp_path / "m.onnx")
    assert [t.shape for t in found.tensors if t.name == "w"] == [(3,)]


def test_small_files_that_promise_much_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    columns = '{"nmsolve":1,"form":"columns","nodes":{"n":1000000000},"edges":{"source":[0],"target":[1]}}'
    (tmp_path / "n.json").write_text(columns)
    assert "1000000000 nodes; expected 1..1048576 in a file of this size" in refused(tmp_path / "n.json")
    (tmp_path / "m.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n5000000 5000000 1\n1 1\n"
    )
    assert "promises 5000000 rows" in refused(tmp_path / "m.mtx")
    nodes = ",".join(f'{{"id":{k},"sizes":{{"r{k}":1}}}}' for k in range(65))
    (tmp_path / "r.json").write_text(f'{{"nodes":[{nodes}],"edges":[]}}')
    assert "65 resources; expected at most 64" in refused(tmp_path / "r.json")
    nodes = ",".join(f'{{"id":{k},"k{k}":"x"}}' for k in range(1001))
    (tmp_path / "k.json").write_text(f'{{"nodes":[{nodes}],"edges":[]}}')
    assert "1002 different keys; expected at most 1000" in refused(tmp_path / "k.json")
    arrays = {"indptr": np.zeros(2**24, np.int64), "indices": np.zeros(0, np.int64)}
    np.savez_compressed(tmp_path / "z.npz", **arrays)
    assert "unpack to" in refused(tmp_path / "z.npz")


def test_names_with_zero_bytes_are_refused() -> None:
    with pytest.raises(InputError, match="a name with a zero byte"):
        load_graph("a\0b.json")
