"""Words of a command, and files, of which a part would be lost without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_support import run_here

from nmsolve.hw.machines import load_machine
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph
from nmsolve.model.schedule.files import load_schedule


@pytest.mark.parametrize(
    "words",
    [["-c", "a.json", "-c", "b.json"], ["--objective", "hops", "--objective", "cut"], ["-m", "mesh:2x2", "--machine", "x"]],
)  # fmt: skip
def test_an_option_with_one_value_is_given_once(words: list[str], tmp_path: Path) -> None:
    said = run_here("map", "net.json", *words, code=2).stderr
    assert "it is given twice; expected one value" in said and said.count("\n") == 1


def test_options_that_add_up_and_flags_may_be_given_again(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("0,1,3\n1,2,4\n")
    run_here(
        "map", tmp_path / "net.csv", "-m", "mesh:1x3", "-t", 60, "--json", "--json", "--limit", "cut=99",
        "--limit", "energy=1e9", "-o", tmp_path / "out",
    )  # fmt: skip


@pytest.mark.parametrize("unit", ["MB", "KiB", "k", "GiB per core", "millions"])
def test_capacities_are_no_multiples(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(f'cores = [2, 2]\n[capacity]\nbytes = {{ value = 200, unit = "{unit}" }}\n')
    with pytest.raises(InputError, match=r"\$\.capacity\.bytes: the unit is"):
        load_machine(str(path))
    path.write_text('cores = [2, 2]\n[capacity]\nbytes = { value = 200, unit = "bytes per core" }\n')
    assert load_machine(str(path)).capacity == {"bytes": 200}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 3\n"),
        ("g.graph", "2 1\n2\n1\n"),
        ("g.hgr", "1 2\n1 2\n"),
        ("g.dat", "2\n0 1 1 0\n0 2 2 0\n"),
        ("g.json", '{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}]}'),
        ("m.toml", "cores = [1, 2]\n"),
        ("p.rcp", "3 1\n4\n0 1 1 2\n3 2 1 3\n0 0 0\n"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_text(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    read = {".toml": lambda p: load_machine(str(p)).hash, ".rcp": lambda p: load_schedule(p).problem.content_hash}.get(
        path.suffix, lambda p: load_graph(p).hash
    )  # fmt: skip
    path.write_text(text)
    plain = read(path)
    path.write_text("\ufeff" + text)
    assert read(path) == plain
