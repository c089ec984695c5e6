"""What is fuzzed: a small good file or folder of every kind, and the door through which the program reads it."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, save_npz

from nmsolve.cli.commands import InfoOptions, ShowOptions
from nmsolve.kinds.verbs import ScoreOptions, VerifyOptions

#: Recorded spikes in every form.
RECORDINGS = ("spikes.csv", "spikes.h5", "spikes.nwb", "spikes.nix", "netpyne.json")


@dataclass(frozen=True)
class Target:
    """One kind of input.

    Attributes
    ----------
    seed : a good file, or a folder of which one file is damaged
    door : reads it as the command line does; raises InputError where it is refused, and Exit as commands do
    """

    name: str
    seed: Path
    door: Callable[[Path], object]


#: Time limits in s: an export has none, and the programs of an assignment need more than its search.
LIMITS: dict[str, tuple[int | None, ...]] = {"export": (None,), "assign": (20, 60)}


def run(*words: object) -> None:
    """``nmsolve WORDS`` in a process of its own; a search is given more time until it ends with an answer."""
    for limit in LIMITS.get(str(words[0]), (5, 20, 60)):
        how = [] if limit is None else ["--time-limit", str(limit), "--seed", "1"]
        code = "from nmsolve.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, words), *how], capture_output=True, text=True
        )
        if done.returncode in (0, 3):
            return
    raise RuntimeError(f"no seed: nmsolve {' '.join(map(str, words))}: {done.stderr}")


def make_seeds(folder: Path) -> None:
    """Write all good files; a folder that is complete is left as it is."""
    if (folder / "complete").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _graphs(folder)
    _texts(folder)
    _library(folder)
    _circuits(folder)
    _sanafe(folder)
    _models(folder)
    _answers(folder)
    _schedules(folder)
    (folder / "complete").touch()


def _graphs(folder: Path) -> None:
    from nmsolve.model.formats import save_graph
    from nmsolve.model.graph import LogicGraph

    rng = np.random.default_rng(1)
    source, target = rng.integers(0, 12, 40), rng.integers(0, 12, 40)
    ids = tuple(f"node {k}" for k in range(12))
    flags = np.arange(12) % 3 == 0
    sizes = rng.integers(1, 9, (12, 2))
    rich = LogicGraph.from_edges(
        12, source, target, rng.integers(1, 9, 40), multicast=flags, resources=("neurons", "synapses"), sizes=sizes, ids=ids,
        name="rich", meta={"mesh": [4, 4], "capacity": {"neurons": 40, "synapses": 60}},
    )  # fmt: skip
    plain = LogicGraph.from_edges(12, source, target, rng.integers(1, 9, 40), directed=False, name="plain")
    place = LogicGraph.from_edges(
        12, source, target, rng.integers(1, 9, 40), name="place", meta={"mesh": [3, 4]}
    )
    nets = LogicGraph.from_nets(
        8, np.array([0, 3, 5, 8]), np.array([0, 1, 2, 3, 4, 5, 6, 7]), np.array([1.0, 2, 3])
    )
    for graph, names in (
        (rich, ("g.json", "g.npz", "g.nmz")),
        (plain, ("g.graph", "g.mtx", "plain.json")),
        (place, ("g.dat", "g.txt", "g.csv")),
        (nets, ("g.hgr", "nets.json", "g.snn", "g.axh", "nets.nmz")),
    ):
        for name in names:
            save_graph(graph, folder / name)
    columns = {
        "nmsolve": 1, "form": "columns", "directed": True, "graph": {"name": "c", "mesh": [2, 2]},
        "nodes": {
            "n": 3, "id": ["a", "b", "c"], "multicast": [True, False, False], "rate": [2, 0, 0], "sizes": {"neurons": [1, 1, 4]},
        },
        "edges": {"source": ["a", "a", "b"], "target": ["b", "c", "c"], "weight": [2, 1.5, 3]},
    }  # fmt: skip
    (folder / "columns.json").write_text(json.dumps(columns))
    rows = {"indptr": [0, 1, 3, 4], "indices": [1, 0, 2, 1], "weights": [1.0, 1, 2, 2], "vwgt": [1, 2, 3]}
    np.savez(folder / "rows.npz", **{key: np.array(value) for key, value in rows.items()})
    save_npz(folder / "scipy.npz", coo_array(([3, 2, 1], ([0, 1, 2], [1, 2, 0])), shape=(3, 3)))


def _texts(folder: Path) -> None:
    (folder / "board.toml").write_text(
        'name = "board"\nchips = [1, 2]\ncores = [4, 4]\ntorus = false\nlink_weight = 1.0\ncrossing_weight = 4.0\n'
        "faulty_cores = [[0, 1]]\ntaken_cores = [[3, 3]]\nfaulty_links = [[[1, 1], [1, 2]]]\n"
        'ports = {host = [[0, 0], [1, 3]], west_side = "west"}\n'
        'notes = "n"\ncapacity = {neurons = {value = 40, unit = "", source = "s", verified = true}}\n'
        'energy = {message = 1.5, router = {value = 2.0, unit = "pJ"}, link_x = 1, link_y = 1}\n'
        'latency = {router = 3.0}\nfigures = {clock = {value = 1e9, unit = "Hz"}}\n'
    )
    (folder / "preset.toml").write_text('preset = "loihi1"\nchips = [1, 1]\ncapacity = {neurons = 7}\n')
    (folder / "router.toml").write_text(
        'name = "r"\nvirtual_channels = 2\nbuffer_flits = 8\npacket_flits = 4\nrouting = 1\nvc_allocation = 1\n'
        "switch_allocation = 1\nswitch_traversal = 1\nlink = 1\ncrossing = 4\n"
        'crossing_interval = 2\ncredit = 1\nconsumption = "any"\n'
    )
    (folder / "named.csv").write_text(
        'Target,Source,Type,Weight,Id\n"b, c",a,Directed,2.5,0\nä,"b, c",Directed,1e1,1\n'
    )
    (folder / "attributes.edges").write_text(
        "a b {'weight': 2.5}\nb c {'weight': 1, 'colour': 'red'}\nc a {}\n"
    )
    table = "node,size,population,multicast,rate\na,2,x,true,2.5\nb,1,y,0,\nc,3.0,y,no,\n"
    (folder / "nodes.csv.gz").write_bytes(gzip.compress(table.encode()))
    (folder / "nodes.csv").write_text(table)
    (folder / "trace.csv").write_text("step,source,targets,count\n0,0,3,2\n1,5,1 2 3,1\n\n4,2,9,3\n")
    constraints = [
        {"kind": "pin", "nodes": ["node 1"], "core": [0, 0]},
        {"kind": "region", "nodes": ["node 2", "node 3"], "rectangle": [0, 0, 2, 4], "name": "r"},
        {"kind": "forbid", "nodes": ["node 4"], "chips": [0]},
        {"kind": "region", "nodes": ["node 3"], "at": "edge"},
        {"kind": "together", "nodes": ["node 5", "node 6"]},
        {"kind": "apart", "nodes": ["node 7", "node 8"]},
        {"kind": "slices", "nodes": ["node 1", "node 2", "node 3"], "most": 40},
    ]
    (folder / "constraints.json").write_text(json.dumps({"constraints": constraints}))
    (folder / "parts.part.4").write_text("\n".join(str(k % 4) for k in range(12)))
    nodes = [
        {
            "id": k,
            "name": f"n{k}",
            "supportedOnFpga": 1,
            "cpuLatency": 9.0,
            "fpgaLatency": 1.0 + k,
            "isBackwardNode": 0,
            "size": 1.0,
        }
        for k in range(5)
    ]
    edges = [{"sourceId": k, "destId": k + 1, "cost": 0.5, "size": 8.0} for k in range(4)]
    costs = {"maxSizePerFPGA": 10.0, "maxFPGAs": 3, "maxCPUs": 1, "nodes": nodes, "edges": edges}
    (folder / "costs.json").write_text(json.dumps(costs))
    (folder / "piper.json").write_text(json.dumps({
        "maxDevices": 3, "maxMemoryPerDevice": 1e9, "bandwidth": 1e6, "mbsInBatch": 8,
        "nodes": [
            {"id": k, "name": f"n{k}", "TMPCs": {"1": [
                {"id": "vanilla", "timePerSample": 1.5, "parameterSize": 4.0, "memoryUsageA": 2.0, "memoryUsageB": 8.0,
                 "syncTimeFw": {}, "syncTimeBw": {}}]}} for k in range(5)],
        "edges": [{"sourceId": k, "destId": k + 1, "communicationCost": 8.0} for k in range(4)],
    }))  # fmt: skip
    network = {
        "name": "five",
        "nodes": {"intervals": [[k, k + 2] for k in range(5)], "costs": [[3, 1]] * 5, "usages": [[4, 6]] * 5},
        "edges": {"nodes": [[k, k + 1] for k in range(4)], "costs": [[0, 5, 10**18, 0]] * 4},
        "usage_limit": 11,
    }
    (folder / "network.json").write_text(json.dumps({"problem": network}))
    (folder / "network.json.gz").write_bytes(gzip.compress(json.dumps({"problem": network}).encode()))


def _library(folder: Path) -> None:
    from nmsolve.hw.assignment.library import Library
    from nmsolve.hw.assignment.library_rows import Entry, Fused, Key

    keys = [Key(kind, "{}", "float32>float32", f"[[{n}]]") for kind in ("Relu", "Neg") for n in (10, 20, 50)]
    with Library(folder / "library.db", write=True) as library:
        library.add(
            [
                Entry(
                    key,
                    "cpu",
                    1,
                    1e6 * (k + 1),
                    macs=0,
                    elements=10,
                    bytes=80,
                    host="here",
                    runtime="r",
                    runs=9,
                )
                for k, key in enumerate(keys)
            ],
            [Fused((keys[0], keys[3]), "cpu", 1, 3e6, 4e6)],
        )
        library.record([(keys[0], "cpu")], [(keys[1], "cpu")])


def _circuits(folder: Path) -> None:
    """A circuit whose files are beside each other, and recordings: those of the tests."""
    given = Path(__file__).parent.parent / "tests" / "data" / "circuits"
    circuit = folder / "circuit"
    circuit.mkdir()
    for path in (given / "bmtk" / "network").iterdir():
        shutil.copy(path, circuit)
    text = (given / "bmtk" / "circuit_config.json").read_text().replace("$BASE_DIR/network", "$BASE_DIR")
    (circuit / "circuit_config.json").write_text(text)
    for path in (*(given / "recorded").iterdir(), given / "netpyne.json"):
        shutil.copy(path, folder)
    (folder / "spikes.csv").write_text("id,time\nv1/0,0.5\nv1/2,1e-3\n\nv1/0,0.75\n")


def _sanafe(folder: Path) -> None:
    """Files of SANA-FE: those of the tests, and one that we export."""
    from nmsolve.hw.machines import load_machine
    from nmsolve.hw.sanafe import export_sanafe
    from nmsolve.model.formats import load_graph

    for path in (Path(__file__).parent.parent / "tests" / "data" / "sanafe").iterdir():
        shutil.copy(path, folder)
    graph = load_graph(folder / "g.json")
    export_sanafe(graph, load_machine("mesh:3x3"), np.arange(graph.n) % 9, folder / "exported")
    shutil.copy(folder / "exported" / "network.yaml", folder / "exported.yaml")


def _models(folder: Path) -> None:
    import h5py
    import nir
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    with h5py.File(folder / "g.h5", "w") as file:
        group = file.create_group("edges/v1_to_v1")
        for name, numbers in (("source_node_id", [0, 0, 1, 3]), ("target_node_id", [1, 2, 3, 0])):
            data = group.create_dataset(
                name, data=np.array(numbers, np.uint64), compression="gzip", chunks=True
            )
            data.attrs["node_population"] = "v1"
        group["edge_group_id"], group["edge_group_index"] = np.zeros(4, np.uint32), np.arange(4)
        group["0/nsyns"] = np.array([1, 2, 3, 4])
    one = np.ones((2, 3, 3))
    nodes = {
        "in": nir.Input(np.array([1, 4, 4])),
        "conv": nir.Conv2d((4, 4), np.ones((2, 1, 2, 2)), 1, 0, 1, 1, np.zeros(2)),
        "lif": nir.LIF(tau=one, r=one, v_leak=one, v_threshold=one),
        "flat": nir.Flatten({"input": np.array([2, 3, 3])}, 0),
        "fc": nir.Affine(np.ones((2, 18)), np.zeros(2)),
        "if": nir.IF(r=np.ones(2), v_threshold=np.ones(2)),
        "out": nir.Output(np.array([2])),
    }
    names = list(nodes)
    nir.write(folder / "g.nir", nir.NIRGraph(nodes, list(pairwise(names)), type_check=False))

    def value(name: str, *shape: object) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))

    weights = [
        numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w"),
        numpy_helper.from_array(np.array([0, -1]), "to"),
        numpy_helper.from_array(np.array(True), "yes"),
    ]
    bodies = [
        helper.make_graph([helper.make_node(kind, ["f"], ["o"])], kind, [], [value("o", "n", "m")])
        for kind in ("Relu", "Neg")
    ]
    layers = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("Reshape", ["p", "to"], ["f"]),
        helper.make_node("If", ["yes"], ["i"], then_branch=bodies[0], else_branch=bodies[1]),
        helper.make_node("Einsum", ["i", "i"], ["e"], equation="ij,kj->ik"),
        helper.make_node("Transpose", ["e"], ["t"], perm=[1, 0]),
        helper.make_node("Concat", ["e", "t"], ["k"], axis=0),
        helper.make_node("Shape", ["k"], ["s"]),
        helper.make_node("Expand", ["yes2", "s"], ["z"]),
    ]
    weights.append(numpy_helper.from_array(np.float32([1.0]), "yes2"))
    graph = helper.make_graph(
        layers, "g", [value("x", "n", 3, "h", "2*h")], [value("z", None, None)], weights
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "g.onnx")
    _programs(folder)


def _programs(folder: Path) -> None:
    """The model cut over two units, and rules of onnx-mlir for it."""
    from nmsolve.hw.assignment.programs.exchange import write_exchange
    from nmsolve.hw.assignment.programs.write import unit_entries, write_pieces

    placement = {(k,): ("host", "npu/0")[k % 2] for k in range(9)} | {(3, 0, 0): "npu/0", (3, 1, 0): "host"}
    units = unit_entries(["host", "npu/0"])
    manifest = write_pieces(folder / "g.onnx", placement, units, folder / "programs")
    write_exchange(folder / "g.onnx", placement, manifest, folder / "programs")


def _answers(folder: Path) -> None:
    """Output folders of every command that writes one, and a QAPLIB answer."""
    graph, board, costs = folder / "g.json", folder / "board.toml", folder / "costs.json"
    constraints = folder / "constraints.json"
    run("map", graph, "--machine", board, "--constraints", constraints, "--out", folder / "mapped")
    run("export", folder / "mapped", "--to", "csv", "--out", folder / "table")
    run("map", folder / "g.dat", "--out", folder / "placed")
    run("map", graph, "--route", "joint", "--objective", "max-link", "--out", folder / "joint")
    run("map", graph, "--pareto", "hops,max-link", "--points", 3, "--out", folder / "front")
    shutil.copytree(folder / "placed", folder / "routed")
    run("route", folder / "routed", "--out", folder / "routed")
    run("pipeline", costs, "--out", folder / "planned")
    demands, model = folder / "demands.json", folder / "g.onnx"
    demands.write_text(json.dumps({
        "pin": {"kind:Shape": "cpu"}, "forbid": {"Concat*": ["npu"]}, "together": [["kind:Conv", "kind:MaxPool"]],
        "memory": {"dram": 10_000_000},
    }))  # fmt: skip
    hand = {"operators": {"Conv*": "npu", "kind:Shape": "cpu", "Con?at*": "npu", "*": "cpu"}}
    (folder / "hand.json").write_text(json.dumps(hand))
    preset = resources.files("nmsolve.hw") / "presets" / "processors" / "laptop-npu.toml"
    (folder / "processors.toml").write_bytes(preset.read_bytes())
    bind = ("--bind", "n=1,h=8", "--constraints", demands, "--objective", "energy,latency")
    run("assign", model, "--machine", folder / "processors.toml", *bind, "--out", folder / "assigned")
    run("assign", folder / "network.json", "--out", folder / "network")
    for pages in folder.rglob("*.html"):
        pages.unlink()
    (folder / "g.sln").write_text("12 342\n" + " ".join(str(k + 1) for k in range(12)))


def _schedules(folder: Path) -> None:
    """Networks on units over time in every form, and a schedule of one."""
    from nmsolve.hw.schedule.simulator import queues_of
    from nmsolve.model.schedule.files import load_schedule
    from nmsolve.model.schedule.schedule import Schedule
    from nmsolve.model.schedule.schedule_file import write_schedule

    tasks = {
        "tick": 1e-6, "units": [{"name": "u", "at": [0, 0]}, {"name": "v", "at": [0, 2], "memory": 90, "power": {"idle": 3}}],
        "memory": 100, "power": {"on": 2, "idle": 1, "off_time": 1, "wake_time": 2, "switch_energy": 9},
        "network": {"hop_time": 1, "bandwidth": 4, "hop_energy": 1, "load_bandwidth": 8, "load_energy": 1},
        "unit_sets": {"both": ["u", "v"]}, "budgets": {"gas": 30}, "objective": "energy", "ceilings": {"makespan": 90},
        "tasks": [
            {"name": "a", "period": 40, "frames": 2, "sets": ["u", "both"], "processes": [
                {"name": "x", "span": {"1": 5, "2": 3}, "weights": {"name": "w", "bytes": 60}, "working": {"1": 9, "2": 5}},
                {"name": "y", "sets": "each", "span": 2, "uses": {"gas": {"1": 3}}, "due": 30,
                 "after": [{"of": "x", "bytes": 9, "convert": 1}]}]},
            {"name": "b", "period": 40, "frames": 2, "due": 35, "priority": 2, "processes": [
                {"name": "z", "alternatives": [{"units": ["v"], "span": 2, "energy": 3}, {"units": "u", "span": 4}]}]}],
        "interactions": [{"name": "m", "between": ["a", "b"], "span": 3, "sets": {"b": ["v"]}, "after": ["y", "z"]}],
    }  # fmt: skip
    (folder / "tasks.json").write_text(json.dumps(tasks))
    problem = load_schedule(folder / "tasks.json").problem
    mode = problem.modes.first[:-1]
    answer = Schedule(mode, 10 + 20 * np.argsort(problem.order), problem.modes.item[mode] >= 0)
    on = [[(0, 3), (9, 12)] for _ in problem.units.names]
    write_schedule(folder / "schedule.json", problem, answer, queues_of(problem, answer), on)
    stars = "*" * 20
    (folder / "project.mm").write_text(
        f"{stars}\nprojects : 1\njobs (incl. supersource/sink ): 4\nhorizon : 12\nRESOURCES\n  - renewable : 2 R\n"
        f"  - nonrenewable : 1 N\n{stars}\nPRECEDENCE RELATIONS:\njobnr. #modes #successors successors\n1 1 2 2 3\n2 2 1 4\n"
        f"3 1 1 4\n4 1 0\n{stars}\nREQUESTS/DURATIONS:\njobnr. mode duration R 1 R 2 N 1\n------\n1 1 0 0 0 0\n"
        "2 1 3 4 0 5\n  2 5 1 1 1\n"
        f"3 1 4 0 2 2\n4 1 0 0 0 0\n{stars}\nRESOURCEAVAILABILITIES:\n  R 1 R 2 N 1\n  4 2 4\n{stars}\n"
    )
    (folder / "project.rcp").write_text("4 2\n4 2\n0 0 0 2 2 3\n3 4 0 1 4\n5 1 1 1 4\n0 0 0 0\n")
    (folder / "projects.txt").write_text(
        "2\n1\n3\n3 0\n1\n0 0 1 1:2\n4 2 2 1:3 2:2\n0 0 0\n2 5\n1\n0 0 1 2:2\n2 3 0\n"
    )
    (folder / "shop.jsp").write_text("2 3\n0 5 2 4 1 3\n1 5 0 4 2 2\n")
    (folder / "shop.fjs").write_text("2 3 1.5\n2 2 1 5 2 4 1 3 3\n1 3 1 5 2 4 3 2\n")
    runs = [{"id": f"t{k}", "runtimeInSeconds": 1.5 + k, "machines": [f"m{k % 2}"]} for k in range(3)]
    steps = [
        {"name": "n", "id": f"t{k}", "parents": [f"t{k - 1}"] if k else [], "children": [f"t{k + 1}"] if k < 2 else [],
         "inputFiles": [f"f{k}"], "outputFiles": [f"f{k + 1}"]}
        for k in range(3)
    ]  # fmt: skip
    files = [{"id": f"f{k}", "sizeInBytes": 9 * k} for k in range(4)]
    workflow = {
        "specification": {"tasks": steps, "files": files},
        "execution": {"makespanInSeconds": 9, "tasks": runs},
    }
    (folder / "workflow.json").write_text(json.dumps({"name": "w", "workflow": workflow}))


def targets(folder: Path) -> list[Target]:
    """Everything that is fuzzed; the seeds are there."""
    return [
        *_graph_targets(folder),
        *_machine_targets(folder),
        *_mapping_targets(folder),
        *_assignment_targets(folder),
        *_answer_targets(folder),
        *_schedule_targets(folder),
    ]


def _graph_targets(folder: Path) -> list[Target]:
    """Networks of every format: described, and converted where that is another way to read."""
    from nmsolve.cli.info import run_info
    from nmsolve.model.formats import convert
    from nmsolve.model.formats.node_table import read_nodes
    from nmsolve.model.formats.spikes import read_spikes

    def info(path: Path) -> object:
        return run_info(InfoOptions(path, json=True))

    def converted(path: Path) -> object:
        return convert(path, path.parent / "out.nmz")

    graphs = (
        "g.json", "plain.json", "nets.json", "columns.json", "g.npz", "rows.npz", "scipy.npz", "g.nmz", "nets.nmz", "g.graph",
        "g.mtx",
        "g.dat", "g.txt", "g.csv", "g.hgr", "g.snn", "g.axh", "g.h5", "g.nir", "g.onnx", "netpyne.json",
        "network.yaml", "network.net", "exported.yaml", "named.csv", "attributes.edges",
    )  # fmt: skip

    def circuit(path: Path) -> object:
        return converted(path / "circuit_config.json")

    streams = ("g.npz", "g.nmz", "g.txt", "g.snn", "g.h5")
    return [
        *(Target(f"info {name}", folder / name, info) for name in graphs),
        *(Target(f"convert {name}", folder / name, converted) for name in streams),
        Target("convert circuit", folder / "circuit", circuit),
        *(Target(f"rates {name}", folder / name, read_spikes) for name in RECORDINGS),
        *(Target(name, folder / name, read_nodes) for name in ("nodes.csv", "nodes.csv.gz")),
    ]


def _machine_targets(folder: Path) -> list[Target]:
    """Machines of like cores and of unlike processors, routers, traces."""
    from nmsolve.cli.hw import run_show
    from nmsolve.hw.machines import load_machine
    from nmsolve.hw.noc import read_trace
    from nmsolve.kinds.simulation.setting import router

    board = load_machine("mesh:4x4")

    def shown(path: Path) -> object:
        return run_show(ShowOptions(str(path)))

    return [
        Target("machine", folder / "board.toml", shown),
        Target("architecture", folder / "arch.yaml", shown),
        Target("machine on preset", folder / "preset.toml", shown),
        Target("processors", folder / "processors.toml", shown),
        Target("router", folder / "router.toml", lambda path: router(str(path))),
        Target("trace", folder / "trace.csv", lambda path: read_trace(path, board, 10)),
    ]


def _mapping_targets(folder: Path) -> list[Target]:
    """What goes with a network: demands, mappings in four forms, certificates, costs of layers."""
    from nmsolve.cli.check import run_score
    from nmsolve.kinds.loading import load_certificates
    from nmsolve.model.formats import load_instance
    from nmsolve.model.formats.cost_graph import load_cost_graph
    from nmsolve.model.mapping.constraints_file import load_constraints

    rich, implied = load_instance(folder / "g.json")
    assert implied is not None

    def scored(graph: str, machine: Path | None = None) -> Callable[[Path], object]:
        board = None if machine is None else str(machine)
        return lambda path: run_score(ScoreOptions(path, folder / graph, board, json=True))

    mapped = folder / "mapped"
    return [
        Target(
            "constraints", folder / "constraints.json", lambda path: load_constraints(path, rich, implied)
        ),
        Target("mapping.json", mapped / "mapping.json", scored("g.json", folder / "board.toml")),
        Target("sln", folder / "g.sln", scored("g.dat")),
        Target(
            "mapping in network.yaml", folder / "network.yaml", scored("network.yaml", folder / "arch.yaml")
        ),
        Target(
            "mapping in exported.yaml",
            folder / "exported.yaml",
            scored("g.json", folder / "exported" / "arch.yaml"),
        ),
        Target("parts", folder / "parts.part.4", scored("g.json")),
        Target("mapping.csv", folder / "table" / "mapping.csv", scored("g.json", folder / "board.toml")),
        Target("certificates", mapped / "certificates.json", load_certificates),
        Target("cost graph", folder / "costs.json", load_cost_graph),
        Target("Piper's cost graph", folder / "piper.json", load_cost_graph),
    ]


def _assignment_targets(folder: Path) -> list[Target]:
    """What goes with operators on processors: demands, libraries, cost networks, programs, rules of compilers."""
    from nmsolve.hw.assignment.constraints import read_constraints
    from nmsolve.hw.assignment.library import Library
    from nmsolve.hw.assignment.machine_file import load_processors
    from nmsolve.hw.assignment.programs.foreign import read_foreign
    from nmsolve.hw.assignment.programs.manifest import read_manifest
    from nmsolve.hw.assignment.programs.run import run_programs
    from nmsolve.hw.assignment.state import state_assignment
    from nmsolve.model.formats.iopddl import load_iopddl
    from nmsolve.model.formats.onnx import load_onnx

    model, bindings = folder / "g.onnx", {"n": 1, "h": 8}
    graph, machine = load_onnx(model), load_processors(str(folder / "processors.toml"))
    stated = state_assignment(graph, machine, bindings=bindings)

    def library(path: Path) -> object:
        with Library(path) as known:
            return [known.fit(e.key, e.processor, e.threads) for e in known.entries], known.fused

    def demanded(path: Path) -> object:
        return state_assignment(graph, machine, bindings=bindings, constraints=read_constraints(path))

    programs = folder / "programs"
    return [
        Target("demands", folder / "demands.json", demanded),
        Target("library", folder / "library.db", library),
        Target("iopddl", folder / "network.json", load_iopddl),
        Target("iopddl, packed", folder / "network.json.gz", load_iopddl),
        Target("manifest", programs / "manifest.json", lambda path: read_manifest(path.parent)),
        Target("programs", programs, lambda path: run_programs(path, model, bindings=[bindings])),
        Target("onnx-mlir", programs / "onnx-mlir.json", lambda path: read_foreign(path, stated)),
        Target("by hand", folder / "hand.json", lambda path: read_foreign(path, stated)),
    ]


def _answer_targets(folder: Path) -> list[Target]:
    """Output folders of every command that writes one: verified with their bounds."""
    from nmsolve.cli.check import run_verify

    def verified(path: Path) -> object:
        return run_verify(VerifyOptions(path, bound=True, json=True))

    answers = ("mapped", "placed", "joint", "front", "routed", "planned", "assigned", "network")
    return [Target(f"verify {name}", folder / name, verified) for name in answers]


def _schedule_targets(folder: Path) -> list[Target]:
    """Networks on units over time, and schedules."""
    from nmsolve.model.schedule.check import schedule_complaint
    from nmsolve.model.schedule.files import load_schedule
    from nmsolve.model.schedule.schedule_file import read_schedule

    problem = load_schedule(folder / "tasks.json").problem

    def stated(path: Path) -> object:
        found = load_schedule(path)
        return found.table(), found.problem.content_hash

    def judged(path: Path) -> object:
        return schedule_complaint(problem, read_schedule(path, problem).answer)

    forms = (
        "tasks.json",
        "project.mm",
        "project.rcp",
        "projects.txt",
        "shop.fjs",
        "shop.jsp",
        "workflow.json",
    )
    return [
        *(Target(f"schedule of {name}", folder / name, stated) for name in forms),
        Target("schedule.json", folder / "schedule.json", judged),
    ]
