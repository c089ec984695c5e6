"""What is a number in a text file: the same in every reader, and nothing that only Python or NumPy would read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from formats_support import put

from nmsolve.hw.machines import load_machine
from nmsolve.hw.noc.trace_file import read_trace
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph
from nmsolve.model.formats.text import decimal, decimals, whole_number
from nmsolve.model.mapping.any_file import read_any_mapping

#: Read as numbers by Python's int and float, or by NumPy's bulk readers, and by no other tool.
ODD = [
    "1_0",
    "1\0",
    "\u0661",
    "nan",
    "inf",
    "-inf",
    "infinity",
    "0x2",
    "1-2",
    "1.2.3",
    "1d0",
    "1e",
    "++1",
    "1\u00a0",
    ".",
]
#: The text of a file with one number put in, by format; the number stands where 1 would be right.
FILES = {
    "a.dat": "2\n0 {}\n1 0\n0 1\n1 0\n",
    "b.dat": "2\n0 1\n1 0\n0 1\n1 0 {}\n",
    "c.mtx": "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 {}\n",
    "d.mtx": "%%MatrixMarket matrix coordinate real general\n2 2 {}\n1 2 1\n",
    "e.mtx": "%%MatrixMarket matrix array real general\n1 {}\n1\n",
    "f.graph": "2 1 001\n2 {}\n1 {}\n",
    "g.hgr": "1 2 1\n{} 1 2\n",
    "h.txt": "0 1 {}\n",
    "i.csv": "0,{},1\n",
}


@pytest.mark.parametrize("word", ODD)
def test_words_that_are_no_numbers(word: str) -> None:
    assert decimal(word) is None and whole_number(word) is None
    assert decimals(f"1 {word} 2".encode()) is None
    assert decimal(word.encode()) is None


@pytest.mark.parametrize(
    "word",
    ["0", "7", "+2", "-3", "1.", ".5", "1e3", "2.5E-3", "1e+2", "0.100000000000000005551115123"],
)
def test_words_that_are_numbers(word: str) -> None:
    found = decimals(f" {word}\t4\r\n".encode())
    assert decimal(word) == float(word) and found is not None and found.tolist() == [float(word), 4.0]


def test_no_number_at_all_is_an_empty_list() -> None:
    found = decimals(b" \n")
    assert found is not None and not len(found)


@pytest.mark.parametrize("name", FILES)
def test_graph_files_refuse_odd_numbers_in_one_line(tmp_path: Path, name: str) -> None:
    if name != "b.dat":
        load_graph(put(tmp_path, name, FILES[name].replace("{}", "1")))
    for word in ODD:
        path = put(tmp_path, name, FILES[name].replace("{}", word))
        with pytest.raises(InputError) as error:
            load_graph(path)
        assert "\n" not in str(error.value) and name in str(error.value), word


@pytest.mark.parametrize("word", [*ODD, "-1", "1.0"])
def test_mappings_and_traces_refuse_odd_numbers(tmp_path: Path, word: str) -> None:
    graph = load_graph(put(tmp_path, "a.dat", FILES["a.dat"].replace("{}", "1")))
    machine = load_machine("mesh:1x2")
    for name, text in (("a.sln", f"2 1\n1 {word}\n"), ("a.part.2", f"0\n{word}\n")):
        with pytest.raises(InputError):
            read_any_mapping(put(tmp_path, name, text), graph, machine)
    for line in (f"{word},0,1,1", f"0,{word},0,1", f"0,0,{word},1", f"0,0,1,{word}"):
        with pytest.raises(InputError):
            read_trace(put(tmp_path, "t.csv", line + "\n"), machine, 0)


def test_trailing_nul_of_a_number_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "a.dat"
    path.write_bytes(b"2\n0 1\n1 0\n0 1\n1 0\0\n")
    with pytest.raises(InputError, match="not a number"):
        load_graph(path)


def test_one_long_word_takes_no_memory_by_its_length_times_the_numbers(tmp_path: Path) -> None:
    """Words in an array of equal width would need 11 GB here."""
    n = 60
    matrix = "\n".join(" ".join("1" if i != j else "0" for j in range(n)) for i in range(n))
    path = put(tmp_path, "a.dat", f"{n}\n{matrix}\n{matrix}".replace("0 1", "0 1." + "0" * 1_400_000, 1))
    assert np.isfinite(load_graph(path).weights).all()
