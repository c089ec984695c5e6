"""Recorded spikes become rates: CSV, SONATA, NWB and NIX alike; recordings of other networks are refused by name."""

from __future__ import annotations

import gzip
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
    with pytest.warns(InputWarning, match="count as silent: 1 of 3"):
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
    many = put(tmp_path, "s.csv", "".join(f"{k},1\n" for k in range(15)))
    with pytest.raises(InputError, match="and 3 more"):
        rated(many, seconds=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no spikes"), ("id,time\n", "there are no spikes"), ("v1/0\n", "s.csv:1: 1 columns without names, 'v1/0'"),
        ("v1/0,1\nv1/1,x\n", "s.csv:2: found 'x'"), ("v1/0,nan\n", "no column is the neuron: 'v1/0,nan'"),
        ("v1/0,1\nv1/1,1_0\n", "s.csv:2: found '1_0'"), ("v1/0,1e999\n", "s.csv:1: found '1e999'"),
        (b"\xff,1\n", "not UTF-8 text"), ("v1/0,1\nid,time\n", "s.csv:2: found 'time'"),
        ("id,time\nv1/0,1,x\n", "s.csv:2: 3 columns, 'v1/0 1 x'; expected 2"), ("id,time".encode("utf-16"), "UTF-16"),
        ('id,time\n"v1/0,1\n', "s.csv:2: cannot be split"),
    ],
)  # fmt: skip
def test_text_that_is_no_recording_names_its_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        rated(put(tmp_path, "s.csv", text), seconds=1)
    assert "\n" not in str(error.value)


NAMED = {
    "SONATA text": "timestamps population node_ids\n136 v1 0\n140.5 v1 2\n150 v1 2\n",
    "SONATA text, its columns in quotes": '"timestamps" "population" "node_ids"\n136 "v1" 0\n140.5 "v1" 2\n150 "v1" 2\n',
    "time first": "timestamps,node_ids\n136,0\n140.5,2\n150,2\n",
    "unit in brackets": "node [id];t [ms]\n0;136\n2;140.5\n2;150\n".replace(" [id]", " id"),
    "microseconds": "Time (µs),Neuron_ID\n136000,0\n140500,2\n150000,2\n",
    "NEST 3": "# NEST version: 3.8\n# RecordingBackendASCII version: 2\nsender\ttime_ms\n0\t136.0\n2\t140.5\n2\t150.0\n",
    "NEST 3, names in a comment": "# NEST version: 3.0\n# sender\ttime_ms\n0\t136.0\n2\t140.5\n2\t150.0\n",
    "events of NEST": "times,senders\n136,0\n140.5,2\n150,2\n",
    "index of pandas": ",time,gid\n0,0.136,0\n1,0.1405,2\n2,0.15,2\n",
    "NumPy, names in a comment": "# time id\n1.36e-01 0.000e+00\n1.405e-01 2.000e+00\n1.5e-01 2.000e+00\n",
    "NetPyNE": "spkt,spkid\n136,0\n140.5,2\n150,2\n",
    "Brian 2": "i,t\n0,0.136\n2,0.1405\n2,0.15\n",
    "population apart": "pop,id,time\nv1,0,0.136\nv1,2,0.1405\nv1,2,0.15\n",
}


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED.keys())
def test_columns_of_text_go_by_their_names_and_units(tmp_path: Path, text: str) -> None:
    """One spike of neuron 0 at 136 ms, two of neuron 2 until 150 ms; the recording must not be shorter than 14 ms."""
    plain = LogicGraph.from_edges(3, [0, 1], [1, 2])
    path = put(tmp_path, "s.csv", text)
    assert rated(path, plain, seconds=0.15).rate.tolist() == pytest.approx([1 / 0.15, 0, 2 / 0.15])
    with pytest.raises(InputError, match=r"spikes from 0.136 s to 0.15 s, but 0.0139 s were recorded"):
        rated(path, plain, seconds=0.0139)
    with pytest.warns(InputWarning, match=r"the 0.1 s of the recording do not begin at 0"):
        with_rates(plain, path, seconds=0.1)


def test_packed_text_is_text(tmp_path: Path) -> None:
    packed = put(tmp_path, "s.csv.gz", gzip.compress(TEXT.encode()))
    assert rated(packed, seconds=2).rate.tolist() == RATES


def test_old_text_of_nest_has_milliseconds(tmp_path: Path) -> None:
    plain = LogicGraph.from_edges(3, [0, 1], [1, 2])
    path = put(tmp_path, "spikes-4-0.gdf", "0\t136.0\t\n2\t140.5\t\n")
    assert rated(path, plain, seconds=0.5).rate.tolist() == [2, 0, 2]


@pytest.mark.parametrize(("text", "message"), [
    ("0.5,1\n1.5,2\n", "which column is the time. The first one has '0.5'"), ("-1 1\n2 2\n", "which column is the time"),
    ("0,1,2\n", "s.csv:1: 3 columns without names"),
    ("id,time\n0,1\n0,1,2\n", "s.csv:3: 3 columns, '0 1 2'; expected 2 as above"),
    ("time,when\n0,1\n", "no column is the neuron: 'time,when'"), ("id,neuron,time\n0,0,1\n", "2 columns are the neuron"),
    ("id,time,t\n0,0,1\n", "2 columns are the time"), ("id,time [min]\n0,1\n", r"no column is the time: 'id,time \[min\]'"),
    ("id,time\n0,0,5\n", "s.csv:2: 3 columns"), ("id;time\n0;0,5\n", "s.csv:2: found '0,5'"),
    ("sender time_ms V_m\n1 2 -70\n", "column 'V_m' is of no spike recorder"),
    ("sender time_step time_offset\n1 2 0\n", "column 'time_offset' is of no spike recorder"),
    ("id,time\n0,3000\n1,1000\n", "spikes from 1000 s to 3000 s, but 4 s were recorded; expected times of 4 s .a column time_ms"),
    ("id,time\n0,-3\n1,3\n", "spikes from -3 s to 3 s, but 4 s were recorded"),
])  # fmt: skip
def test_text_with_two_readings_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rated(put(tmp_path, "s.csv", text), LogicGraph.from_edges(3, [0, 1], [1, 2]), seconds=4)


@pytest.mark.parametrize(("text", "message"), [
    ("id,time,amplitude\n0,1,5\n", "column 'amplitude' is not read"), ("id,time\n0,-1\n1,1\n", "do not begin at 0"),
    ("id,time\n0,1001\n1,1003\n", "do not begin at 0"), ("id,time\n0,0.001\n", "the last spike is at 0.001 s, but 4 s"),
    ("id,time\n0,1\n1,2\n0,1\n", "1 of 3 spikes repeat another"),
    ("0,1\n1,0\n2,2\n3,1\n", "the first of two columns without names rises as times do"),
])  # fmt: skip
def test_text_that_is_odd_is_read_with_a_word(tmp_path: Path, text: str, message: str) -> None:
    with pytest.warns(InputWarning, match=message):
        with_rates(LogicGraph.from_edges(4, [0, 1], [1, 2]), put(tmp_path, "s.csv", text), seconds=4)


def test_several_recordings_are_of_different_neurons(tmp_path: Path) -> None:
    graph = LogicGraph.from_edges(4, [0, 1], [1, 2], ids=("v1/0", "v1/1", "lgn/0", "lgn/1"))
    v1 = put(tmp_path, "v1.csv", "timestamps population node_ids\n1 v1 0\n2 v1 0\n")
    lgn = put(tmp_path, "lgn.csv", "timestamps population node_ids\n1 lgn 1\n")
    with pytest.warns(InputWarning, match="count as silent: 2 of 4"):
        assert with_rates(graph, [v1, lgn], seconds=0.5).rate.tolist() == [4, 0, 0, 2]
    with pytest.raises(InputError, match="two trains are of node 'v1/0'; expected every neuron once"):
        rated([v1, v1], graph, seconds=0.5)  # type: ignore[arg-type]
    save_graph(graph, tmp_path / "g.json")
    words = (
        "convert",
        tmp_path / "g.json",
        tmp_path / "o.json",
        "--rates",
        v1,
        "--rates",
        lgn,
        "--recorded",
        0.5,
    )
    run_here(*words)
    assert load_graph(tmp_path / "o.json").weights.tolist() == [4, 0]


def report(path: Path, **values: object) -> Path:
    """A SONATA report: data sets below ``/spikes``, ``__`` for ``/``; ``units`` of all timestamps."""
    with h5py.File(path, "w") as file:
        file.create_group("spikes")
        for name, value in values.items():
            if name != "units":
                file[f"spikes/{name.replace('__', '/')}"] = value
                if "units" in values and name.endswith("timestamps"):
                    file[f"spikes/{name.replace('__', '/')}"].attrs["units"] = values["units"]
    return path


@pytest.mark.parametrize(("values", "last"), [
    ({"gids": [0, 2, 2], "timestamps": [1.0, 1.5, 2]}, 0.002), ({"v1__node_ids": [2, 0, 2], "v1__timestamps": [2, 1, 1]}, 0.002),
    ({"v1__node_ids": [2, 0, 2], "v1__timestamps": [0.2, 1, 1.5], "units": "s"}, 1.5),
    ({"v1__node_ids": [2, 0, 2], "v1__timestamps": [0.2, 1, 1.5], "units": np.bytes_("ms")}, 0.0015),
    ({"v1__node_ids": [2, 0, 2], "v1__timestamps": [2.0, 1, 1], "x__node_ids": h5py.Empty("u8"),
      "x__timestamps": h5py.Empty("f8")}, 0.002),
])  # fmt: skip
def test_sonata_spikes_old_and_new_with_their_units(
    tmp_path: Path, values: dict[str, object], last: float
) -> None:
    plain = LogicGraph.from_edges(3, [0, 1], [1, 2])
    path = report(tmp_path / "s.h5", **values)
    assert rated(path, plain, seconds=last).rate.tolist() == pytest.approx([1 / last, 0, 2 / last])
    with pytest.raises(InputError, match="were recorded"):
        rated(path, plain, seconds=last / 100)


@pytest.mark.parametrize(("values", "message"), [
    ({"v1__node_ids": [0], "v1__timestamps": [1.0], "units": "weeks"}, "spikes/v1/timestamps: timestamps in 'weeks'"),
    ({"v1__node_ids": [0, 1], "v1__timestamps": [1.0]}, "2 node_ids have 1 timestamps"),
    ({"v1__node_ids": [0]}, "spikes/v1: the list of numbers 'timestamps' is missing"),
    ({"gids": [0.5], "timestamps": [1.0]}, "the list of whole numbers 'gids' is missing"),
    ({"v1__node_ids": [0], "v1__timestamps": [np.nan]}, "a time is no number"), ({"v1": [1, 2]}, "spikes/v1: it is a data set"),
    ({}, "there are no spike trains"), ({"v1__node_ids": h5py.Empty("u8"), "v1__timestamps": [1.0]}, "'node_ids' is missing"),
])  # fmt: skip
def test_damaged_reports_of_sonata_are_refused_in_words(
    tmp_path: Path, values: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        rated(report(tmp_path / "s.h5", **values), seconds=1)


def test_spikes_outside_of_what_nwb_and_nix_say_was_recorded_are_named(tmp_path: Path) -> None:
    for name, key, value in (
        ("spikes.nwb", "units/obs_intervals", [[0, 1.0]] * 3),
        ("spikes.nix", "t_stop", [1000.0]),
    ):
        shutil.copy(RECORDED / name, tmp_path / name)
        with h5py.File(tmp_path / name, "a") as file:
            places = [key] if key in file else []
            file.visititems(
                lambda place, _, key=key, places=places: places.append(place) if place.endswith(key) else None
            )
            for place in dict.fromkeys(places):
                file[place][...] = value
        with pytest.warns(InputWarning, match="3 of the spikes are outside of what was recorded, and count"):
            with_rates(three(), tmp_path / name)
    with pytest.warns(InputWarning, match="2 s are in the file, 3 s count"):
        with_rates(three(), RECORDED / "spikes.nwb", seconds=3)


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
