"""Machines of unlike processors: presets, TOML files, ways between memories, rooflines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines_support import table, two

from nmsolve.hw.assignment.constraints import read_constraints
from nmsolve.hw.assignment.machine_file import load_processors, processor_presets, processors_from_table
from nmsolve.hw.assignment.roofline import OperatorWork, roofline, why_not
from nmsolve.model.errors import InputError


def test_every_preset_names_where_its_figures_come_from() -> None:
    """Those that were read at their source say so; each preset has a few, and notes."""
    assert processor_presets() == ["laptop-npu", "server-4acc", "soc-3"]
    for name in processor_presets():
        machine = load_processors(name)
        assert machine.name == name and machine.notes
        assert any(f.verified for f in machine.figures.values()), name
        assert all(f.source for f in machine.figures.values() if f.verified)
        peaks = [f for key, f in machine.figures.items() if key.endswith("float32.macs")]
        assert peaks and all(f.source for f in peaks)


@pytest.mark.parametrize("name", ["wormhole", "mesh:4x4"])
def test_a_machine_of_like_cores_is_for_other_commands(name: str) -> None:
    with pytest.raises(InputError, match=r"all alike.*one of laptop-npu.*`nmsolve map`"):
        load_processors(name)


def test_the_presets_are_the_machines_that_their_names_promise() -> None:
    """A host with one accelerator, with four cores of their own memories, and three unlike processors in one memory."""
    units = [load_processors(name).units for name in processor_presets()]
    assert [u.names for u in units] == [
        ("cpu", "npu"), ("cpu", "acc/0", "acc/1", "acc/2", "acc/3"), ("cpu", "gpu", "dla"),
    ]  # fmt: skip
    assert [u.memories for u in units] == [("dram",), ("ddr", *(f"gddr/{k}" for k in range(4))), ("lpddr",)]
    assert [u.host.sum() for u in units] == [1, 1, 1] and [u.sites for u in units] == [2, 5, 3]


def test_figures_have_units_and_plain_numbers_the_usual_ones() -> None:
    """The same machine twice, once in other units."""
    plain = two()
    other = two(
        processor__1__bandwidth={"value": 10000, "unit": "MB/s", "source": "here", "verified": True},
        processor__1__launch={"value": 2000, "unit": "ns"},
        processor__1__widths__float32__macs={"value": 0.01, "unit": "T/s"},
    )
    assert other.processors == plain.processors and plain.processors[1].launch == 2e6
    assert other.figures["acc.bandwidth"].source == "here" and not other.figures["acc.launch"].verified


def test_ways_go_over_the_fewest_links_and_their_slowest_is_the_channel() -> None:
    """Two accelerators that only the host joins: latencies and ps per byte add up."""
    third = {**table()["processor"][1], "name": "far", "memory": "other"}
    data = table()
    data["processor"].append(third)
    data["memory"].append({"name": "other"})
    data["link"].append(
        {"name": "slow", "between": ["ram", "other"], "bandwidth": 0.5, "latency": 7, "energy_byte": 1}
    )
    ways = processors_from_table(data, "three").ways
    assert ways.latency.tolist() == [[0, 3e6, 7e6], [3e6, 0, 10e6], [7e6, 10e6, 0]]
    assert ways.per_byte.tolist() == [[0, 1000, 2000], [1000, 0, 3000], [2000, 3000, 0]]
    assert ways.energy[1, 2] == 5
    assert ways.channels[ways.channel[1, 2]] == "slow:ram>other" and (np.diag(ways.channel) == -1).all()


def test_a_link_that_names_processors_parts_one_memory_into_sites() -> None:
    """Without such a link the units of a memory exchange tensors for nothing."""
    shared = two(processor__1__memory="ram", link=[], memory=[{"name": "ram", "bytes": 100}])
    assert shared.units.sites == 1
    parted = two(processor__1__memory="ram", link__0__between=["cpu", "acc"])
    assert parted.units.site.tolist() == [0, 1] and parted.units.memory.tolist() == [0, 0]


def test_shared_links_have_one_channel_for_all() -> None:
    """Half duplex: one for both directions."""
    data = table(processor__1__cores=2, memory=[{"name": "ram"}, {"name": "own", "each": True}])
    data["link"].append({"name": "peer", "between": ["own", "own"], "bandwidth": 1})
    assert len(processors_from_table(data, "m").ways.channels) == 4 + 2
    data["link"][0]["shared"] = True
    assert len(processors_from_table(data, "m").ways.channels) == 2 + 2
    data["link"][0]["duplex"] = False
    assert processors_from_table(data, "m").ways.channels == ("bus", "peer:own/0>own/1", "peer:own/1>own/0")


def test_the_roofline_is_the_slowest_of_three() -> None:
    """Launch 1 us, then 1 GMAC/s, 1 Gelement/s, 1 GB/s; energy 3 pJ a MAC or element and 2 pJ a byte."""
    cpu = two().processors[0]
    floats = frozenset({"float32"})
    for macs, elements, size in ((5000, 0, 100), (0, 5000, 100), (10, 0, 5000)):
        work = OperatorWork("X", "float32", floats, macs, elements, size)
        assert roofline(cpu, [work]) == (1e6 + 5e6, 3 * (macs + elements) + 2 * size)
    both = [
        OperatorWork("X", "float32", floats, 5000, 0, 1000),
        OperatorWork("Y", "float32", floats, 0, 100, 3000),
    ]
    assert roofline(cpu, both) == (1e6 + 5e6, 3 * 5100 + 2 * 4000)


def test_a_processor_says_what_keeps_it_from_running_something() -> None:
    """Control flow, the type, a width, a width without MACs."""
    cpu, acc = two(processor__1__never=["TopK"], processor__1__widths__int8__macs=0).processors
    whole = frozenset({"int64"})
    assert why_not(acc, OperatorWork("Loop", "", frozenset(), 0, 0, 0)) == "control flow"
    assert why_not(acc, OperatorWork("TopK", "float32", frozenset({"float32"}), 0, 1, 1)) == "type TopK"
    assert why_not(acc, OperatorWork("Add", "int64", whole, 0, 1, 1)) == "width int64"
    assert why_not(acc, OperatorWork("MatMulInteger", "int8", frozenset({"int8"}), 1, 0, 1)) == "width int8"
    assert why_not(acc, OperatorWork("Add", "int8", frozenset({"int8"}), 0, 1, 1)) is None
    assert why_not(cpu, OperatorWork("Add", "int64", whole, 0, 1, 1)) is None
    assert (
        why_not(two(processor__1__only=["Add"]).processors[1], OperatorWork("Mul", "", frozenset(), 0, 1, 1))
        == "type Mul"
    )


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": (table(processor__0__speed=3), "$.processor[0]"),
    "unknown figure key": (table(processor__0__launch={"value": 1, "origin": "x"}), "$.processor[0].launch"),
    "not a number": (table(processor__1__bandwidth="fast"), "$.processor[1].bandwidth: got `str`"),
    "wrong unit": (
        table(processor__1__launch={"value": 1, "unit": "GB/s"}),
        "$.processor[1].launch: the unit is 'GB/s'",
    ),
    "negative": (table(link__0__latency=-1), "$.link[0].latency: the figure is -1"),
    "no bandwidth": (table(link__0__bandwidth=0), "$.link[0].bandwidth: the figure is 0"),
    "not finite": (table(processor__0__energy_byte=float("nan")), "$.processor[0].energy_byte"),
    "infinite": (table(processor__0__launch=float("inf")), "$.processor[0].launch"),
    "kind": (table(processor__0__kind="gpu"), "$.processor[0].kind: kind is 'gpu'"),
    "no host": (table(processor__0__kind="accelerator"), "no processor is a host"),
    "host with cores": (table(processor__0__cores=2), "$.processor[0].cores"),
    "too many cores": (table(processor__1__cores=10**9), "$.processor[1]"),
    "no widths": (table(processor__1__widths={}), "$.processor[1].widths"),
    "a width without a rate": (
        table(processor__1__widths__int8__elements=0),
        "$.processor[1].widths.int8.elements",
    ),
    "no such memory": (table(processor__1__memory="rom"), "$.processor[1].memory: memory 'rom'"),
    "no such end": (table(link__0__between=["ram", "rom"]), "$.link[0].between: 'rom'"),
    "a name twice": (table(processor__1__name="cpu"), "$.processor[1].name: the name 'cpu' is used twice"),
    "a name like a unit": (table(processor__1__name="acc/1"), "$.processor[1].name"),
    "parts that nothing joins": (table(link=[]), "no links lead from ram to own"),
    "nothing": ({}, "$"),
    "no memories": (table(memory=[]), "no processor or no memory"),
    "negative bytes": (table(memory__0__bytes=-5), "$.memory[0].bytes"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_machine_is_one_line_with_the_path(case: str) -> None:
    """The file, the path of the entry, what is wrong."""
    data, words = BAD[case]
    with pytest.raises(InputError) as error:
        processors_from_table(data, "m.toml")
    assert words in str(error.value) and "\n" not in str(error.value)
    assert str(error.value).startswith(("m.toml", "two")), str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[[processor]", "not TOML"),
        (b"\xff", "not UTF-8"),
        (b"a = " + b"[" * 5000, "nested"),
        (b"x = " + b"9" * 5000, "digits"),
    ],
)
def test_a_file_that_is_no_toml_is_one_line(content: bytes, words: str, tmp_path: Path) -> None:
    """Also one that is nested without end."""
    path = tmp_path / "m.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        load_processors(str(path))
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_the_examples_of_the_documentation_are_read(tmp_path: Path) -> None:
    """The machine, and the constraints beside it."""
    text = (Path(__file__).parent.parent / "docs" / "processors.md").read_text("utf-8")
    path = tmp_path / "board.toml"
    path.write_text(text.split("```toml\n")[1].split("```")[0])
    assert load_processors(str(path)).units.names == ("cpu", "npu/0", "npu/1")
    path.write_text(text.split("```json\n")[1].split("```")[0])
    assert read_constraints(path).memory == {"sram": 4_194_304}


def test_an_unknown_preset_names_the_nearest(tmp_path: Path) -> None:
    """And a file that is not there says so."""
    with pytest.raises(InputError, match="laptop-npu \\(the nearest\\)"):
        load_processors("laptop_npu")
    with pytest.raises(InputError, match=r"none\.toml"):
        load_processors(str(tmp_path / "none.toml"))
