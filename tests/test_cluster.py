"""More than one machine: a cluster of two on this one. Nothing found is lost, whatever dies; what is wrong is said in a line."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cluster_tree import first_of_nug20
from processes import below
from search_fakes import Script, value
from test_search import make

from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.solvers.cluster.message_log import MessageLog, State, read_log
from nmsolve.solvers.cluster.worker_pool import ClusterWorkerPool
from nmsolve.solvers.run import Options
from nmsolve.solvers.search.context import Ending
from nmsolve.solvers.search.portfolio import Portfolio, Step

ROOT = Path(__file__).parent.parent
NMSOLVE = Path(sys.executable).with_name("nmsolve")
ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="the extra 'cluster' is not installed"
)


# who is left out, without a cluster


def test_who_is_left_out_ends_a_run_only_while_nobody_has_joined() -> None:
    """A machine of another version once ended runs whose own machines had died: their best answer was lost."""
    cluster = SimpleNamespace(
        machines={}, joined=False, refusals=lambda: "b: nmsolve 0.0.7 there", gone=lambda: True
    )
    pool = SimpleNamespace(_cluster=cluster, _seen_at=time.monotonic())
    with pytest.raises(InputError, match=r"no machine can work: b: nmsolve 0\.0\.7 there"):
        ClusterWorkerPool.may_rejoin(pool)
    cluster.joined = True
    assert not ClusterWorkerPool.may_rejoin(pool)


# the message_log, without a cluster


def test_the_ledger_takes_a_message_once_and_knows_all_after_its_death(tmp_path: Path) -> None:
    log = tmp_path / "log"
    message_log = MessageLog(str(log))
    assert message_log.exchange("a", 0, [(1, "x"), (1, "y")], 0) == (2, None)
    assert message_log.exchange("a", 1, [(1, "y"), (1, "z")], 0) == (3, None), (
        "y comes again: its answer was lost"
    )
    message_log.exchange("b", 0, [(7, "w")], 0)
    assert [r[3] for r in message_log.collect(0, None)[0]] == ["x", "y", "z", "w"]
    assert [r[3] for r in message_log.collect(3, None)[0]] == ["w"]
    with log.open("ab") as file:
        file.write(b"torn")  # the process was killed while it wrote; nobody was told that it had this
    again = MessageLog(str(log))
    assert [r[3] for r in again.collect(3, None)[0]] == ["w"]
    assert again.exchange("a", 3, [(1, "v")], 0) == (4, None)
    assert [r[3] for r in read_log(log)] == ["x", "y", "z", "w", "v"]


def test_a_changed_record_ends_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    MessageLog(str(log)).exchange("a", 0, [(1, "first"), (1, "second")], 0)
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    assert [r[3] for r in read_log(log)] == ["first"]


def test_agents_get_the_newest_state_once(tmp_path: Path) -> None:
    message_log = MessageLog(str(tmp_path / "log"))
    message_log.collect(0, State(5, run=1, objective=3.0))
    taken, state = message_log.exchange("a", 0, [], 0)
    assert taken == 0 and state is not None and state.objective == 3.0
    assert message_log.exchange("a", 0, [], 5) == (0, None)


# a worker pool that loses machines, and one that lies


class Far:
    """A worker elsewhere that sent some messages and ended."""

    cpu = 0.0

    def __init__(self, sent: list, ending: Ending) -> None:
        self.sent, self.ending = sent, ending

    def messages(self) -> list:
        out, self.sent = self.sent, []
        return out

    def ended(self) -> Ending:
        return self.ending

    def kill(self) -> None:
        """It is gone."""


class FarWorkerPool:
    """Runs every engine in the order of ``script``: what it sends, and how it ends."""

    stopped = False

    def __init__(self, script: list[tuple[list, Ending]]) -> None:
        self.script, self.started = script, 0

    def free_threads(self) -> int:
        return 1

    def may_rejoin(self) -> bool:
        return False

    def start(self, engine, **how) -> Far:
        self.started += 1
        return Far(*self.script.pop(0))

    def publish(self, *state) -> None:
        self.state = state

    def stop(self) -> None:
        self.stopped = True

    def wait(self, seconds: float) -> None:
        """All is there."""

    def news(self) -> tuple:
        return ()

    def close(self) -> None:
        """Nothing is held."""


def far_run(*script: tuple[list, Ending]):
    checker, budget, incumbent = make(5.0)
    pool = FarWorkerPool(list(script))
    Portfolio(checker, incumbent, budget, worker_pool=lambda checker: pool).run([Step(Script(()))])
    return incumbent, pool


def test_what_a_machine_sends_is_judged_here_before_it_counts() -> None:
    bad = ("offer", np.array([-1, 0, 0]), "forged")
    incumbent, pool = far_run(([bad, ("offer", value(20), "good")], Ending()))
    assert incumbent.objective == 20 and pool.state[1] == 20
    assert ["offer rejected" in e.text for e in incumbent.events if e.kind == "error"] == [True]


def test_a_bound_above_an_answer_costs_the_engine_its_bounds_wherever_it_ran() -> None:
    incumbent, _ = far_run(([("offer", value(20), ""), ("bound", Bound(21.0, "script"))], Ending()))
    assert incumbent.bound == 0 and any("its bounds are dropped" in e.text for e in incumbent.events)


def test_what_was_lost_begins_again() -> None:
    gone = ([("offer", value(20), "")], Ending("lost", "the machine is gone"))
    incumbent, pool = far_run(gone, gone, ([("offer", value(10), "")], Ending()))
    assert pool.started == 3 and incumbent.objective == 10


# what is wrong with a cluster


def refused(address: str, *more: str) -> str:
    """Return the line that a command with a wrong cluster ends with, within seconds."""
    begun = time.monotonic()
    command = [NMSOLVE, "map", ROOT / "examples/first.json", "--cluster", address, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert time.monotonic() - begun < 15
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and "expected" in line
    return line


@ray
@pytest.mark.parametrize(
    "address, says",
    [
        ("nowhere", "no address"),
        ("127.0.0.1:99999", "no address"),
        ("127.0.0.1:9", "no answer"),
        ("ray://127.0.0.1:9", "an address of a client"),
    ],
)
def test_no_cluster_is_said_in_a_line(address: str, says: str) -> None:
    assert says in refused(address)


@ray
def test_another_server_at_the_address(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as line:
                line.sendall(b"HTTP/1.0 400 Bad request\r\n")

        threading.Thread(target=answer, daemon=True).start()
        assert "not the head of a Ray cluster" in refused(f"127.0.0.1:{server.getsockname()[1]}")


def test_workers_are_those_of_the_cluster() -> None:
    assert "--workers" in refused("local", "--workers", "2")
    with pytest.raises(InputError, match="2 workers on a cluster"):
        Options(cluster="local", workers=2)


def test_without_the_extra_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from nmsolve.solvers.cluster import connect

    monkeypatch.setattr(connect.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'nmsolve\[cluster\]'"):
        connect.require_ray()


# with a cluster

TWO = """
import os, sys, time, json
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
from ray.cluster_utils import Cluster
store = 80_000_000
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": store})
try:
    cluster.add_node(num_cpus=1, object_store_memory=store)
    cluster.add_node(num_cpus=1, object_store_memory=store, env_vars={"PYTHONPATH": sys.argv[1]})
    print(cluster.address, flush=True)
    sys.stdin.read()
finally:
    cluster.shutdown()
"""
#: A machine with another version of nmsolve.
OTHER = """
from importlib import metadata
true = metadata.version
metadata.version = lambda name: "0.0.7" if name == "nmsolve" else true(name)
"""
STORE = """
import sys
from types import SimpleNamespace
import numpy as np
from nmsolve.solvers.cluster.worker_pool import ClusterWorkerPool
from nmsolve.solvers.cluster.machines import joined
class Large:
    size, block = 3, np.zeros(12_000_000)
    def __init__(self): self.data = self.block
ClusterWorkerPool(joined(sys.argv[1]), Large())
"""
#: Passes over connections that both machines hold, before and after one of the two that hold them has died.
PASSES = """
import sys, time
from dataclasses import replace
from types import SimpleNamespace
import numpy as np
sys.path.insert(0, sys.argv[2])
from test_external_away import in_blocks, network, swept
from nmsolve.heuristics.mapping.external.away import Away
from nmsolve.heuristics.mapping.external.engine import cores_of
from nmsolve.heuristics.mapping.external.holder import Holder
from nmsolve.solvers.cluster.worker_pool import ClusterWorkerPool
from nmsolve.solvers.cluster.machines import joined
pool, hired = ClusterWorkerPool(joined(sys.argv[1]), SimpleNamespace(size=3)), []
def hire():
    hired.append(pool.remotes(Holder, lambda: False))
    return hired[-1]
problem = network()
level = in_blocks(problem, 4)
since = time.monotonic()
while sum(machine.ready for machine in pool._cluster.machines.values()) < 2 and time.monotonic() < since + 60:
    time.sleep(0.1)
    pool._cluster.refresh()
away = Away(hire, level.source.blocks, (cores_of(problem), level.volume, level.domain, level.apart_ptr))
assert away.spread() == 2
held, (wanted, _) = replace(level, away=away), swept(level, problem, False)
assert np.array_equal(swept(held, problem, False)[0], wanted)
pool._cluster.ray.kill(hired[-1]._actors[0])
assert np.array_equal(swept(held, problem, False)[0], wanted)
assert len(hired) == 2 and away.machines == 2
"""


def until(run: subprocess.Popen[str], text: str) -> str:
    """Return what a search prints up to a line with a text in it."""
    out = ""
    for line in run.stdout:
        out += line
        if text in line:
            break
    return out


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory):
    """A cluster of three machines, of which the third has another version of nmsolve."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "sitecustomize.py").write_text(OTHER)
    keeper = subprocess.Popen(
        [sys.executable, "-c", TWO, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip
    try:
        yield keeper.pid, keeper.stdout.readline().strip()
    finally:
        started = below(keeper.pid, "raylet")
        keeper.stdin.close()
        try:
            keeper.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(keeper.pid, signal.SIGKILL)
    assert not [p for p in started if Path(f"/proc/{p}").exists()], "processes of the cluster are left over"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that takes longer than the tests have."""
    path = tmp_path_factory.mktemp("net") / "net.json"
    subprocess.run(
        [NMSOLVE, "generate", "reservoir", "--nodes", "500", "--out", path], check=True, capture_output=True
    )
    return path


@ray
def test_whatever_dies_the_best_answer_stays_and_ctrl_c_returns_it(
    address: tuple[int, str], net: Path, tmp_path: Path
) -> None:
    keeper, where = address
    out = tmp_path / "out"
    command = [NMSOLVE, "map", net, "-m", "mesh:4x4", "-t", "90", "--cluster", where, "--out", out]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = until(run, "(multilevel)")
    for victim, words in (
        ("ray::MessageLog", ""),
        ("search.child_main", ": lost"),
        ("ray::Agent", "has joined"),
    ):
        os.kill(there(keeper, victim)[0], signal.SIGKILL)
        text += until(run, words) if words else ""
    asked = time.monotonic()
    run.send_signal(signal.SIGINT)
    text += run.communicate(timeout=60)[0]
    assert run.returncode == 0 and "stopped: interrupt" in text, text
    assert time.monotonic() - asked < 20, "the end comes soon"
    report = json.loads((out / "report.json").read_text())
    told = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    found = [e["objective"] for e in told if e["type"] == "incumbent"]
    assert found and report["objective"] == pytest.approx(min(found))
    said = " ".join(e.get("text", "") for e in told)
    assert "begins again elsewhere" in said, said
    assert "nmsolve 0.0.7 there" in said, "a machine of another version is named and left out"
    checked = subprocess.run([NMSOLVE, "verify", out, "--trust-solver"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@ray
def test_an_agent_that_dies_with_parts_of_a_proof_costs_time_only(
    address: tuple[int, str], tmp_path: Path
) -> None:
    """nug16a: the optimum is proved all the same, no bound on the way is above it, and what was lost is counted."""
    keeper, where = address
    path, start, out = tmp_path / "nug16a.dat", tmp_path / "start", tmp_path / "out"
    path.write_text(first_of_nug20(16))
    command = [NMSOLVE, "map", path, "--engines", "tabu", "-t", "1.5s", "-o", start]
    subprocess.run(command, check=True, capture_output=True)
    command = [
        NMSOLVE,
        "map",
        path,
        "--engines",
        "branch-bound",
        "-t",
        "90",
        "--cluster",
        where,
        "--out",
        out,
    ]
    run = subprocess.Popen(
        [*command, "--warm-start", start], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    text = until(run, "branch-bound")
    time.sleep(1.5)
    os.kill(there(keeper, "ray::Agent.work")[0], signal.SIGKILL)
    text += run.communicate(timeout=120)[0]
    assert run.returncode == 0, text
    told = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    said = " ".join(e.get("text", "") for e in told)
    parts = re.search(r"(\d+) parts of the search came back from other machines, (\d+) were lost", said)
    assert parts is not None and int(parts[1]) > 1 and int(parts[2]) == 1, said
    bounds = [e["bound"] for e in told if e.get("bound") is not None]
    assert bounds == sorted(bounds) and bounds[-1] == 1610
    report = json.loads((out / "report.json").read_text())
    assert report["status"] == "optimal" and report["objective"] == 1610


#: Commands in one process, so that Ray is joined once; a line of what each ended with.
TASKS = """
import json, sys
from nmsolve.kinds import clock
from nmsolve.cli.main import main
for words in json.loads(sys.argv[1]):
    sys.argv, clock.STARTED = ["nmsolve", *words], clock.now()
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    print("ended", words[0], code, flush=True)
"""


@ray
def test_every_task_has_the_cluster(address: tuple[int, str], tmp_path: Path) -> None:
    """Each of them ends with an answer that its own checks pass."""
    layers = [
        {"id": k, "supportedOnFpga": 1, "cpuLatency": 9 * w, "fpgaLatency": w, "isBackwardNode": 0, "size": 4.0}
        for k, w in enumerate((4.0, 3.0, 2.0, 5.0))
    ]  # fmt: skip
    net = {"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 0, "nodes": layers}
    net["edges"] = [{"sourceId": k, "destId": k + 1, "cost": 0.5, "size": 8.0} for k in range(3)]
    (tmp_path / "layers.json").write_text(json.dumps(net))
    graph = tmp_path / "net.json"
    made = [NMSOLVE, "generate", "reservoir", "--nodes", "200", "--out", graph]
    subprocess.run(made, check=True, capture_output=True)
    out = {name: str(tmp_path / name) for name in ("map", "route", "gap", "pipeline", "assign", "schedule")}
    cnn = str(ROOT / "tests/data/onnx/small_cnn.onnx")
    asked = [
        ["map", str(graph), "-m", "mesh:4x4", "-o", out["map"]],
        ["route", out["map"], "-o", out["route"]],
        ["gap", out["map"], "-o", out["gap"]],
        ["resume", out["map"]],
        ["pipeline", str(tmp_path / "layers.json"), "-o", out["pipeline"]],
        ["assign", cnn, "--bind", "batch=1", "--machine", "laptop-npu", "-o", out["assign"]],
        ["schedule", str(ROOT / "examples/tasks.json"), "-o", out["schedule"]],
    ]
    proved = ("pipeline", "assign", "schedule")  # they end by themselves
    words = [[*t, "--cluster", address[1], "-t", "30s" if t[0] in proved else "8s"] for t in asked]
    run = subprocess.run(
        [sys.executable, "-c", TASKS, json.dumps(words)], capture_output=True, text=True, timeout=300
    )
    ended = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("ended ")]
    assert ended == [[task[0], "0"] for task in asked], run.stdout + run.stderr
    assert "lost" not in run.stdout and "  fail " not in run.stdout
    for name, folder in out.items():
        events = [json.loads(line) for line in Path(folder, "events.jsonl").read_text().splitlines()]
        elsewhere = [e for e in events if "in a child process" in e.get("text", "")]
        assert elsewhere or name not in ("map", "gap"), (name, events)


@ray
def test_an_object_store_that_is_too_small_is_named(address: tuple[int, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STORE, address[1]], capture_output=True, text=True, timeout=60
    )
    assert "the problem takes 92 MiB, the object store of a machine holds 76 MiB" in done.stderr, done.stderr


@ray
def test_machines_hold_a_network_and_propose_what_the_run_would(address: tuple[int, str]) -> None:
    """Two of the three: the third has another version. The same placement, bit by bit, also after a death."""
    done = subprocess.run(
        [sys.executable, "-c", PASSES, address[1], Path(__file__).parent],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@ray
def test_a_benchmark_goes_on_over_the_cluster_into_one_store(
    address: tuple[int, str], tmp_path: Path
) -> None:
    command = [
        NMSOLVE,
        "bench",
        "qaplib",
        "--only",
        "nug12",
        "--methods",
        "anneal",
        "--seeds",
        "2",
        "-t",
        "1s",
        "--json",
    ]
    command += ["--cluster", address[1], "--out", tmp_path]
    first = subprocess.run(command, capture_output=True, text=True, timeout=120)
    runs = [json.loads(line) for line in first.stdout.splitlines() if '"type": "run"' in line]
    assert [r["status"] for r in runs] == ["feasible"] * 2 and all(r["objective"] >= 578 for r in runs), first
    again = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "2 of 2 runs are in" in again.stderr and '"type": "run"' not in again.stdout, again


@ray
def test_a_cluster_whose_head_dies_leaves_the_best_answer(
    address: tuple[int, str], net: Path, tmp_path: Path
) -> None:
    """The last test: it ends the cluster. First the run's own machine loses its Ray, then nobody knows of any machine."""
    keeper, where = address
    command = [NMSOLVE, "map", net, "-m", "mesh:4x4", "-t", "25", "--cluster", where, "-o", tmp_path]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = until(run, "(multilevel)")
    own = {
        parent(message_log) for message_log in there(keeper, "ray::MessageLog")
    }  # one of a run before may still be there
    begun = time.monotonic()
    for victim in (*own, *below(keeper, "gcs_server")):
        os.kill(victim, signal.SIGKILL)
    text += run.communicate(timeout=90)[0]
    assert run.returncode == 0 and time.monotonic() - begun < 50, text
    report = json.loads((tmp_path / "report.json").read_text())
    told = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    found = [e["objective"] for e in told if e["type"] == "incumbent"]
    assert report["status"] == "feasible" and report["objective"] == pytest.approx(min(found))
    assert report["wall_seconds"] < 26


def there(top: int, text: str) -> list[int]:
    """Return :func:`below` once it is not empty: Ray renames its processes with every call."""
    end = time.monotonic() + 60
    while not (found := below(top, text)):
        assert time.monotonic() < end, f"there is no {text}"
        time.sleep(0.01)
    return found


def parent(process: int) -> int:
    """Return who started a process."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
