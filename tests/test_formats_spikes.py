"""Recorded spikes become rates: CSV, SONATA, NWB and NIX alike; recordings of other networks are refused by name."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_support import run_here
from formats_support import nets, put

from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats import load_graph, save_graph
from nmsolve.model.formats.spikes import with_rates
from nmsolve.model.graph import LogicGraph

RECORDED = Path(__file__).parent / "data" / "circuits" / "recorded"
TEXT = "id,time\n" + "v1/0,0.1\n" * 4 + "v1/2,1.5\n" * 7
#: 4, 0 and 7 spikes in two seconds.
RATES = [2.0, 0.0, 3.5]


def three(**more: object) -> LogicGraph:
    return LogicGraph.from_edges(
        3, [0, 0, 1, 2], [1, 2, 2, 0], [9.0, 1, 1, 1], multicast=np.array([True, True, False]),
        ids=("v1/0", "v1/1", "v1/2"), **more,
    )  # fmt: skip


def rated(path: Path, graph: LogicGraph | None = None, **how: float) -> LogicGraph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return with_rates(three() if graph is None else graph, path, **how)


@pytest.mark.parametrize("name", ["spikes.csv", "spikes.h5", "spikes.nwb", "spikes.nix"])
def test_every_kind_of_recording_gives_the_same_rates(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name, TEXT) if name.endswith(".csv") else RECORDED / name
    states_time = name in ("spikes.nwb", "spikes.nix")
    graph = rated(path) if states_time else rated(path, seconds=2.0)
    assert graph.rate.tolist() == RATES and graph.weights.tolist() == [2.0, 2.0, 0.0, 3.5]
    assert graph.multicast.tolist() == [True, True, False]  # who multicasts stays
    assert rated(path, step=1.0, seconds=4.0).rate.tolist() == [r / 2000 for r in RATES]
    if not states_time:
        with pytest.raises(InputError, match="does not say how long was recorded"):
            rated(path)


@pytest.mark.parametrize("text", [
    TEXT, TEXT.replace("id,time\n", ""), TEXT.replace(",", "\t"), TEXT.replace(",", " "), TEXT.replace(",", ";"),
    TEXT + "\n# end\n", TEXT.replace("v1/0", '"v1/0"'), TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT, "# " + TEXT,
])  # fmt: skip
def test_text_is_read_as_people_write_it(tmp_path: Path, text: str) -> None:
    assert rated(put(tmp_path, "s.csv", text), seconds=2).rate.tolist() == RATES


def test_numbers_of_one_population_fit_a_graph_without_populations() -> None:
    plain = LogicGraph.from_edges(3, [0, 1], [1, 2])
    assert rated(RECORDED / "spikes.nix", plain).rate.tolist() == RATES


def test_silent_nodes_are_warned_of_and_refused_when_strict(tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match="1 of 3 nodes are not in it and taken as silent"):
        with_rates(three(), RECORDED / "spikes.h5", seconds=2)
    save_graph(three(), tmp_path / "g.json")
    words = (
        "convert",
        tmp_path / "g.json",
        tmp_path / "o.json",
        "--rates",
        RECORDED / "spikes.h5",
        "--recorded",
        2,
    )
    assert run_here(*words).stderr.startswith("warning: ")
    assert run_here(*words, "--strict", code=2).stderr.startswith("error: ")
    assert load_graph(tmp_path / "o.json").rate.tolist() == RATES


def test_a_circuit_is_converted_with_rates_in_memory_and_in_blocks(tmp_path: Path) -> None:
    circuit = RECORDED.parent / "bmtk" / "circuit_config.json"
    for name in ("o.json", "o.nmz"):
        run_here("convert", circuit, tmp_path / name, "--rates", RECORDED / "spikes.nwb", "--step", 100)
    one, other = load_graph(tmp_path / "o.json"), load_graph(tmp_path / "o.nmz")
    assert (
        one.hash == other.hash and one.rate[:3] == pytest.approx([0.2, 0.0, 0.35]) and one.kinds is not None
    )
    assert np.array_equal(one.weights, one.rate[one.edge_source])


def test_a_recording_of_another_network_is_refused_by_name(tmp_path: Path) -> None:
    other = LogicGraph.from_edges(2, [0], [1], ids=("a", "b"))
    save_graph(other, tmp_path / "g.json")
    words = ("convert", tmp_path / "g.json", tmp_path / "o.json", "--rates", RECORDED / "spikes.nix")
    line = run_here(*words, code=2).stderr
    assert "no node is called 'v1/0', 'v1/1', 'v1/2'; expected a recording of this network, as 'a'" in line
    assert line.count("\n") == 1 and not (tmp_path / "o.json").exists()
    many = put(tmp_path, "s.csv", "".join(f"{k},1\n" for k in range(9)))
    with pytest.raises(InputError, match="and 6 more"):
        rated(many, seconds=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no spikes"), ("id,time\n", "there are no spikes"), ("v1/0\n", "s.csv:1: 1 columns without names, 'v1/0'"),
        ("v1/0,1\nv1/1,x\n", "s.csv:2: found 'x'"), ("v1/0,nan\n", "no column is the neuron: 'v1/0,nan'"),
        ("v1/0,1\nv1/1,1_0\n", "s.csv:2: found '1_0'"), ("v1/0,1e999\n", "s.csv:1: found '1e999'"),
        ("a" * 20000, "a line does not end"), (b"\xff,1\n", "not UTF-8 text"), ("v1/0,1\nid,time\n", "s.csv:2: found 'time'"),
        ("id,time\nv1/0,1,x\n", "s.csv:2: 3 columns, 'v1/0 1 x'; expected 2"), ("id,time".encode("utf-16"), "UTF-16"),
        ('id,time\n"v1/0,1\n', "s.csv:2: cannot be split"),
    ],
)  # fmt: skip
def test_text_that_is_no_recording_names_its_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        rated(put(tmp_path, "s.csv", text), seconds=1)
    assert "\n" not in str(error.value)


def test_damaged_recordings_are_refused(tmp_path: Path) -> None:
    def damaged(name: str, key: str, values: object) -> str:
        shutil.copy(RECORDED / name, tmp_path / name)
        with h5py.File(tmp_path / name, "a") as file:
            if values is None:
                del file[key]
            else:
                attributes = dict(file[key].attrs)
                del file[key]
                file[key] = values
                file[key].attrs.update(attributes)
        with pytest.raises(InputError) as error:
            rated(tmp_path / name, seconds=None)
        return str(error.value)

    assert "'node_ids' is missing" in damaged("spikes.h5", "spikes/v1/node_ids", [0.5])
    assert "spike_times_index falls" in damaged("spikes.nwb", "units/spike_times_index", [4, 3, 11])
    assert "different lengths" in damaged("spikes.nwb", "units/spike_times_index", [4, 4, 99])
    assert "'obs_intervals_index' is missing" in damaged("spikes.nwb", "units/obs_intervals_index", None)
    assert "0 seconds were recorded" in damaged("spikes.nwb", "units/obs_intervals", np.zeros((3, 2)))
    assert "there are no spikes" in damaged("spikes.nwb", "units", None)
    twice = damaged("spikes.nwb", "units/unit_name", np.array(["v1/0", "v1/0", "v1/1"], object))
    assert "two trains are called 'v1/0'" in twice
    with pytest.raises(InputError, match="cannot be read"):
        rated(put(tmp_path, "x.nix", b"\x89HDF"))
    with pytest.raises(InputError, match=r"unknown extension '.mat' of a recording"):
        rated(put(tmp_path, "x.mat", b""))
    with pytest.raises(InputError, match="no such file"):
        rated(tmp_path / "none.nwb")


def test_who_fires_must_be_clear_and_numbers_positive(tmp_path: Path) -> None:
    undirected = LogicGraph.from_edges(3, [0], [1], directed=False)
    for graph in (undirected, nets()):
        with pytest.raises(InputError, match="who fires is not clear"):
            rated(RECORDED / "spikes.nix", graph)
    for how in ({"step": 0.0}, {"seconds": -1.0}, {"step": float("nan")}):
        with pytest.raises(InputError, match="a number > 0"):
            rated(RECORDED / "spikes.nix", **how)
    save_graph(three(), tmp_path / "g.json")
    line = run_here("convert", tmp_path / "g.json", tmp_path / "o.json", "--step", 5, code=2).stderr
    assert "--step and --recorded are about a recording" in line


def test_a_graph_of_nir_gets_measured_rates(tmp_path: Path) -> None:
    """Ids of NIR are ``node/number``, so a recording says ``lif/0``."""
    import nir

    nodes = {
        "input": nir.Input(np.array([2])),
        "fc": nir.Linear(weight=np.ones((3, 2))),
        "lif": nir.LIF(tau=np.ones(3), r=np.ones(3), v_leak=np.ones(3), v_threshold=np.ones(3)),
        "output": nir.Output(np.array([3])),
    }
    edges = [("input", "fc"), ("fc", "lif"), ("lif", "output")]
    nir.write(tmp_path / "g.nir", nir.NIRGraph(nodes, edges, type_check=False))
    spikes = put(tmp_path, "s.csv", "input/0,0.1\ninput/0,0.2\ninput/1,0.1\nlif/0,1\nlif/1,1\nlif/2,1\n")
    for name in ("o.json", "o.nmz"):
        run_here("convert", tmp_path / "g.nir", tmp_path / name, "--rates", spikes, "--recorded", 4)
        graph = load_graph(tmp_path / name)
        assert graph.rate.tolist() == [0.5, 0.25, 0.25, 0.25, 0.25]
        assert graph.weights.tolist() == [0.5] * 3 + [0.25] * 3
