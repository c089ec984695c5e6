"""Machines by name and from TOML, energy lines, and bad input."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from nmsolve.hw.describe import describe, unverified
from nmsolve.hw.energy import line_values, step_value
from nmsolve.hw.machine_file import ENERGY_KEYS, LATENCY_KEYS, _MachineTable
from nmsolve.hw.machines import list_presets, load_machine, squarest
from nmsolve.hw.power import FIGURES as DRAWN
from nmsolve.hw.step_time import FIGURES as TIMES
from nmsolve.hw.step_time import step_costs
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.pipeline.figures import ENERGY, KEYS, OPTIONAL, EnergyFigures, machine_figures

PRESETS = [
    "blackhole", "darwin3", "loihi1", "loihi2", "spinnaker1", "spinnaker2", "tianjic", "truenorth", "vc1902", "ve2802",
    "wormhole",
]  # fmt: skip


def test_all_promised_presets_exist():
    assert list_presets() == PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_figure_names_its_source_and_doubt_is_visible(name):
    """A figure is verified or marked; derived and remembered ones never count as verified."""
    machine = load_machine(name)
    assert machine.name == name and machine.notes and machine.capacity
    figures = {**machine.figures, **machine.energy, **machine.latency}
    for key, figure in figures.items():
        assert figure.source and figure.unit, key
        if "from memory" in figure.source or "derived" in figure.source or "abstract only" in figure.source:
            assert not figure.verified, key
    for resource, limit in machine.capacity.items():
        assert machine.figures[f"capacity.{resource}"].value == limit
    doubtful = [row["name"] for row in describe(machine) if not row["verified"]]
    assert len(doubtful) == len(unverified(machine))


@pytest.mark.parametrize(
    ("name", "cores", "neurons"),
    [("loihi1", 128, 131072), ("loihi2", 128, 1048576), ("truenorth", 4096, 1048576), ("tianjic", 156, 39936),
     ("darwin3", 575, 2355200)],
)  # fmt: skip
def test_presets_hold_the_neurons_their_makers_state(name, cores, neurons):
    machine = load_machine(name)
    assert int(machine.usable.sum()) == cores
    assert cores * machine.capacity["neurons"] == neurons


@pytest.mark.parametrize(
    ("name", "cores", "clock", "tops"),
    [("blackhole", 140, 1.35, 774), ("vc1902", 400, 1.3, 133), ("ve2802", 304, 1.3, 202), ("wormhole", 64, 1.0, 262)],
)  # fmt: skip
def test_chips_for_deep_learning_multiply_as_fast_as_their_makers_state(name, cores, clock, tops):
    """Tera-operations per second of the whole chip, two per MAC, at the clock of the maker's figure (GHz; 202 is from memory)."""
    machine = load_machine(name)
    assert int(machine.usable.sum()) == cores == machine.figures["grid"].value
    peak = 2 * cores * machine.figures["mac_rate"].value * clock / machine.figures["clock"].value
    assert peak / 1e12 == pytest.approx(tops, rel=2e-3)


def test_presets_scale_by_chips():
    machine = load_machine("Loihi2", chips=(3, 4))
    assert (machine.n_chips, machine.rows, machine.cols) == (12, 24, 64)
    assert not load_machine("darwin3", chips=(1, 2)).taken_cores, "other boards are all healthy and free"
    assert "3 x 4 chips" in str(describe(machine)[0]["value"])


@pytest.mark.parametrize(
    ("spec", "chips", "cores"),
    [
        ("mesh:8x9", (1, 1), (8, 9)),
        ("mesh:8x9,2x3", (2, 3), (8, 9)),
        ("MESH: 8x9, 4", (2, 2), (8, 9)),
        ("mesh:1x1,12", (3, 4), (1, 1)),
        ("mesh:1024x1024", (1, 1), (1024, 1024)),
    ],
)
def test_plain_meshes(spec, chips, cores):
    machine = load_machine(spec)
    assert (machine.chips, machine.cores, dict(machine.capacity)) == (chips, cores, {})


def test_trees_of_groups():
    """Distances by the level at which two cores part, the innermost groups first."""
    machine = load_machine("TREE: 2:3:2, 1:10:2.5")
    assert (machine.name, machine.size, machine.rows) == ("tree:2:3:2,1:10:2.5", 12, 1)
    assert machine.distance_matrix[0].tolist() == [0, 1, 10, 10, 10, 10, *[2.5] * 6]
    assert machine.distance_matrix[11].tolist() == [*[2.5] * 6, 10, 10, 10, 10, 1, 0]
    assert load_machine("tree:3,4").distance_matrix.tolist() == [[0, 4, 4], [4, 0, 4], [4, 4, 0]]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tree:4:8", "cannot read"),
        ("tree:4:8,1", "as many distances as levels"),
        ("tree:4:8,1:ten", "cannot read"),
        ("tree:4:0,1:2", "no core"),
        ("tree:1000:1000,1:2", "at most 4096"),
        ("mesh:0x4", "no core"),
        ("mesh:4x4,0", "no core"),
        ("mesh:4", "cannot read"),
        ("mesh:4x-4", "cannot read"),
        ("mesh:1025x1024", "at most 1048576"),
        ("mesh:99999999999x99999999999", "at most 1048576"),
        ("lohi1", "expected loihi1 (the nearest)"),
        ("spinaker", "expected spinnaker"),
        ("zzz", "one of blackhole"),
        ("no/such/file.toml", "no such file"),
        ("", "unknown machine"),
        ("laptop-npu", "`nmsolve assign` takes this one"),
    ],
)
def test_wrong_names_are_explained(spec, message):
    with pytest.raises(InputError) as error:
        load_machine(spec)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_squarest_grid():
    assert [squarest(k) for k in (0, 1, 2, 4, 6, 7, 12, 36)] == [
        (0, 0), (1, 1), (1, 2), (2, 2), (2, 3), (1, 7), (3, 4), (6, 6),
    ]  # fmt: skip


FULL = """
name = "lab board"
chips = [1, 2]
cores = [2, 3]
torus = true
link_weight = 1
crossing_weight = 4.5
faulty_cores = [[0, 1]]
taken_cores = [[1, 5]]
faulty_links = [[[0, 0], [1, 0]], [[0, 5], [0, 0]]]
notes = "on the desk"

[capacity]
neurons = 100
bytes = { value = 65536, unit = "bytes", source = "data sheet", verified = true }

[energy]
message = 10
router = { value = 2.0, unit = "pJ", source = "measured" }
link_x = 3
crossing = 50

[latency]
link_y = { value = 4.0, unit = "ns" }

[figures]
clock = { value = 100, unit = "MHz" }
"""


def write(folder: Path, text: str) -> str:
    path = folder / "machine.toml"
    path.write_text(text)
    return str(path)


def test_a_machine_file_with_everything(tmp_path):
    m = load_machine(write(tmp_path, FULL))
    assert (m.name, m.rows, m.cols, m.torus) == ("lab board", 2, 6, True)
    assert (m.faulty_cores, m.taken_cores) == ((1,), (11,))
    assert m.faulty_links == ((0, 6), (6, 0), (5, 0), (0, 5)), "a dead link is dead in both directions"
    assert dict(m.capacity) == {"neurons": 100, "bytes": 65536}
    assert m.line_weights(1).tolist() == [1, 1, 4.5, 1, 1, 4.5]
    assert line_values(m, "energy", 1).tolist() == [5, 5, 55, 5, 5, 55]
    assert line_values(m, "energy", 0).tolist() == [2], "two rows are joined once, also on a torus"
    assert (step_value(m, "energy"), step_value(m, "latency")) == (12, 0)
    assert line_values(m, "latency", 0).tolist() == [4] and line_values(m, "latency", 1).tolist() == [0] * 6
    assert not m.energy["router"].verified and m.figures["clock"].unit == "MHz"


def test_whole_link_weights_do_not_round_the_others():
    """From Python a weight may be a whole number beside a fraction; a crossing of 2.5 then counted 2."""
    m = Machine("m", (1, 2), (1, 2), link_weight=1, crossing_weight=2.5)
    assert m.line_weights(1).tolist() == [1, 2.5, 1]


def test_files_that_are_no_text_and_folders_are_refused(tmp_path):
    (tmp_path / "mesh.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        load_machine(str(tmp_path / "mesh.toml"))
    with pytest.raises(InputError):
        load_machine(str(tmp_path) + "/")


def test_a_preset_with_changes(tmp_path):
    text = 'preset = "loihi1"\nchips = [2, 2]\ncrossing_weight = 8\n[capacity]\nneurons = 512\n[energy]\ncrossing = 90'
    m, base = load_machine(write(tmp_path, text)), load_machine("loihi1")
    assert (m.chips, m.cores, m.crossing_weight) == ((2, 2), base.cores, 8)
    assert m.capacity == {**base.capacity, "neurons": 512}
    assert m.energy["message"] == base.energy["message"] and m.energy["crossing"].value == 90
    assert line_values(m, "energy", 1)[15] == pytest.approx(93.0)


def test_machines_without_figures_use_jins_units():
    m = load_machine("mesh:2x2,1x2")
    assert line_values(m, "energy", 1) == pytest.approx(np.full(3, 1.1)) and step_value(m, "energy") == 1
    assert line_values(m, "latency", 0) == pytest.approx([1.01]) and step_value(m, "latency") == 1


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("cores = [2", "machine.toml", "TOML"),
        ("name = 'x'", "$", "cores"),
        ("cores = [2, 'x']", "$.cores[1]", "int"),
        ("cores = [2, 2, 2]", "$.cores", "length 2"),
        ("cores = [0, 2]", "", ">= 1"),
        ("cores = [3000, 3000]", "", "at most"),
        ("cores = [2, 2]\ntorus = 1", "$.torus", "bool"),
        ("cores = [2, 2]\nspeed = 1", "$", "speed"),
        ("cores = [2, 2]\nlink_weight = -1", "", "> 0"),
        ("cores = [2, 2]\nlink_weight = nan", "", "> 0"),
        ("cores = [2, 2]\nfaulty_cores = [[0, 0], [5, 0]]", "$.faulty_cores[1]", "within 2 x 2"),
        ("cores = [2, 2]\nfaulty_links = [[[0, 0], [1, 1]]]", "", "neighbouring"),
        ("cores = [2, 2]\n[capacity]\nneurons = -5", "$.capacity.neurons", ">= 0"),
        ("cores = [2, 2]\n[capacity]\nneurons = 1.5", "$.capacity.neurons", "whole"),
        ("cores = [2, 2]\n[capacity]\nneurons = inf", "$.capacity.neurons", "finite"),
        ("cores = [2, 2]\n[capacity]\nneurons = 'many'", "$.capacity.neurons", "float"),
        ("cores = [2, 2]\n[energy]\nrooter = 1", "$.energy", "router"),
        ("cores = [2, 2]\n[energy]\nrouter = -1", "$.energy.router", ">= 0"),
        ("cores = [2, 2]\n[energy]\nrouter = { value = 1, unit = 'nJ' }", "$.energy.router", "pJ"),
        ("cores = [2, 2]\n[energy]\nrouter = { unit = 'pJ' }", "$.energy.router", "value"),
        ("cores = [2, 2]\nenergy = 3", "$.energy", "object"),
        ("preset = 'loihi9'", "$.preset", "loihi1"),
        ("preset = 3", "$.preset", "loihi1"),
    ],
)
def test_wrong_machine_files_name_the_entry(tmp_path, text, where, expected):
    with pytest.raises(InputError) as error:
        load_machine(write(tmp_path, text))
    message = str(error.value)
    assert where in message and expected in message and "\n" not in message, message


OWN = Path(__file__).parent.parent / "examples" / "chip.toml"


def test_the_file_to_copy_has_every_key_that_is_read():
    """A key that machine files learn must be explained there; ``preset`` is, in a comment."""
    table = tomllib.loads(OWN.read_text("utf-8"))
    assert set(table) == set(_MachineTable.__struct_fields__)
    assert (tuple(table["energy"]), tuple(table["latency"])) == (ENERGY_KEYS, LATENCY_KEYS)
    assert {*KEYS, *OPTIONAL, *ENERGY, *TIMES, *DRAWN} <= set(table["figures"])


def test_the_file_to_copy_serves_pipelines_and_steps():
    machine = load_machine(str(OWN))
    figures = machine_figures(machine)
    assert (figures.mac_rate, figures.memory, figures.sync, figures.offchip) == (64e9, 2**20, 500, 100e9)
    assert figures.energy == EnergyFigures(4.6, 0.9, 25, 243.75, 0.1, 60) and not figures.no_energy
    assert step_costs(machine).barrier == 1000
    assert machine.core_capacity["neurons"].tolist()[:3] == [512, 512, 1024]


def test_the_file_to_copy_stands_in_the_docs():
    docs = OWN.parent.parent / "docs" / "machines.md"
    assert f"```toml\n{OWN.read_text('utf-8')}```\n" in docs.read_text("utf-8")


def preset_table() -> str:
    """All presets as a Markdown table as docs/machines.md holds it."""
    lines = [
        "| preset | board | capacity per core | energy | unverified |",
        "|---|---|---|---|---|",
    ]
    for name in list_presets():
        m = load_machine(name)
        capacity = ", ".join(f"{limit:,} {resource}" for resource, limit in m.capacity.items())
        energy = ", ".join(f"{k} {f.value:g} pJ" for k, f in m.energy.items()) or "units"
        shape = f"{m.rows} x {m.cols}{' torus' if m.torus else ''}"
        lines.append(f"| `{name}` | {shape} | {capacity} | {energy} | {', '.join(unverified(m)) or '-'} |")
    return "\n".join(lines) + "\n"


def test_the_preset_table_in_the_docs_is_current():
    docs = Path(__file__).parent.parent / "docs" / "machines.md"
    assert preset_table() in docs.read_text("utf-8"), "regenerate it with preset_table()"
