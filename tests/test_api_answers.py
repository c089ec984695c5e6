"""Answers of the Python functions: the same as the command's, saved and verified, drawn, tabulated, from scripts and threads."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from command_support import run_here

import nmsolve

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def command(*words: object, code: int = 0) -> str:
    """Run the command in this process, and return what it prints."""
    return run_here(*words, code=code).stdout


def command_apart(*words: object) -> None:
    """Run the command in a process of its own, which hashes words in another order."""
    subprocess.run([sys.executable, "-m", "nmsolve", *map(str, words)], check=True, timeout=300)


def core_in(folder: Path) -> list[tuple[int, int]]:
    """The cores in a mapping.json."""
    content = json.loads((folder / "mapping.json").read_text())
    return list(zip(content["row"], content["col"], strict=True))


@pytest.fixture(scope="module")
def grid() -> nmsolve.MappingAnswer:
    """A grid of 16 nodes on four cores, solved to optimality."""
    return nmsolve.map(nx.grid_2d_graph(4, 4), "mesh:2x2", time_limit=20, seed=1)


@pytest.mark.parametrize(
    ("options", "words", "run"),
    [
        ({"engines": ["first-fit"], "seed": 3}, ["--engines", "first-fit", "--seed", 3], command_apart),
        ({"engines": ["first-fit"], "objective": "cut", "balance": 0.5},
         ["--engines", "first-fit", "--objective", "cut", "--balance", 0.5], command),
        ({"engines": ["first-fit"], "route": "xy"}, ["--engines", "first-fit", "--route", "xy"], command),
    ],
)  # fmt: skip
def test_the_answer_is_that_of_the_command(
    options: dict[str, Any], words: list[object], run: Callable[..., object], tmp_path: Path
) -> None:
    """Same mapping, objective, bound and problem where the time limit does not bind."""
    mine = nmsolve.map(EXAMPLES / "vision.json", EXAMPLES / "board.toml", time_limit=30, **options)
    mine.save(tmp_path / "mine")
    run(
        "map",
        EXAMPLES / "vision.json",
        "-m",
        EXAMPLES / "board.toml",
        "-t",
        30,
        "--out",
        tmp_path / "its",
        *words,
    )
    assert core_in(tmp_path / "mine") == core_in(tmp_path / "its")
    reports = [json.loads((tmp_path / k / "report.json").read_text()) for k in ("mine", "its")]
    for key in (
        "status",
        "objective_name",
        "objective",
        "bound",
        "scores",
        "seed",
        "graph",
        "machine",
        "routing",
    ):
        assert reports[0][key] == reports[1][key], key
    differ = {k for k, v in reports[1]["inputs"].items() if reports[0]["inputs"][k] != v}
    assert not differ


def test_objectives_in_order_are_those_of_the_command(tmp_path: Path) -> None:
    """Both prove both optima; which of several optimal mappings they find is left open."""
    mine = nmsolve.map(EXAMPLES / "first.json", objective=["hops", "max-link"], time_limit=30, seed=2)
    mine.save(tmp_path / "mine")
    words = ("--objective", "hops,max-link", "-t", 30, "--seed", 2, "--out", tmp_path / "its")
    command("map", EXAMPLES / "first.json", *words)
    reports = [json.loads((tmp_path / k / "report.json").read_text()) for k in ("mine", "its")]
    assert reports[0]["inputs"]["before"] == reports[1]["inputs"]["before"] == mine.found.inputs["before"]
    assert [(r["status"], r["objective"], r["bound"]) for r in reports] == [
        ("optimal", mine.objective, mine.bound)
    ] * 2
    assert nmsolve.verify(tmp_path / "mine")


def test_a_saved_answer_passes_the_command_and_its_copy_says_the_same(
    grid: nmsolve.MappingAnswer, tmp_path: Path
) -> None:
    folder = grid.save(tmp_path / "run")
    names = {p.name for p in folder.iterdir()}
    assert {
        "mapping.json",
        "certificates.json",
        "events.jsonl",
        "report.json",
        "report.html",
        "inputs",
    } <= names
    assert "recomputed" in command("verify", folder, "--bound")
    assert nmsolve.verify(folder) and grid.verify().words == ()
    content = json.loads((folder / "report.json").read_text())
    content["objective"] -= 1
    (folder / "report.json").write_text(json.dumps(content))
    found = nmsolve.verify(folder)
    assert not found and next(c.name for c in found.checks if not c.ok) == "objective"


def test_files_are_named_whole_wherever_the_answer_is_saved_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    found = nmsolve.map(
        "vision.json", "board.toml", constraints="constraints.json", engines=["first-fit"], time_limit=20
    )
    monkeypatch.chdir(tmp_path)
    inputs = json.loads((found.save("run") / "report.json").read_text())["inputs"]
    assert [inputs[k] for k in ("graph", "machine", "constraints")] == [
        str(EXAMPLES / name) for name in ("vision.json", "board.toml", "constraints.json")
    ]
    assert nmsolve.verify("run") and nmsolve.route("run", time_limit=3).verify()


def test_a_machine_as_an_object_is_written_beside_the_answer(tmp_path: Path) -> None:
    machine = nmsolve.machine(str(EXAMPLES / "board.toml"))
    graph = nmsolve.load_graph(EXAMPLES / "vision.json")
    result = nmsolve.map(graph, machine, engines=["first-fit"], time_limit=20)
    result.save(tmp_path)
    assert (tmp_path / "inputs" / "machine.toml").exists() and (tmp_path / "inputs" / "graph.json").exists()
    command("verify", tmp_path, "--bound")


@pytest.mark.parametrize("route", ["joint", "chosen", "xy"])
def test_routes_go_with_the_answer_and_its_files(route: str, tmp_path: Path) -> None:
    """Whether they were decided with the mapping, after it, or by a rule; all of them are checked from the files."""
    found = nmsolve.map(nx.cycle_graph(4, nx.DiGraph), "mesh:2x2", route=route, time_limit=6, seed=1)
    assert found.objective == 4.0 and len(set(found.mapping.values())) == 4
    assert (found.routing is None) == (route == "joint")
    folder = found.save(tmp_path / "run")
    assert (folder / ("routes.json" if route == "joint" else "flow-routes.json")).exists()
    command("verify", folder, "--bound", "--trust-solver")
    again = pickle.loads(pickle.dumps(found))
    assert again.mapping == found.mapping and again.verify()


def test_what_another_network_holds_is_left_alone(tmp_path: Path) -> None:
    """Two networks of three nodes on four cores for two nodes each; the second one is verified beside the first."""
    chip = nmsolve.Machine("chip", (1, 1), (2, 2), capacity={"neurons": 2})
    first = nmsolve.map(nx.path_graph(3), chip, time_limit=5).save(tmp_path / "first")
    second = nmsolve.map(nx.path_graph(5), chip, occupied=[first], time_limit=5)
    assert second.problem.machine.limits("neurons").sum() == 5
    command("verify", second.save(tmp_path / "second"), "--bound", "--trust-solver")
    assert nmsolve.route(second, time_limit=5).verify()
    with pytest.raises(nmsolve.DoesNotFitError, match="neurons"):
        nmsolve.map(nx.path_graph(6), chip, occupied=[first])


class Mine:
    """An engine of one's own: everything on the first cores, in order."""

    name = "mine"
    finds = "mappings"

    def refuses(self, problem: Any) -> str | None:
        return None

    def run(self, problem: Any, context: Any) -> None:
        context.offer(np.arange(problem.n), "in order")


def test_engines_as_objects(tmp_path: Path) -> None:
    """What an object offers counts, and the report names it."""
    found = nmsolve.map(nx.path_graph(4), "mesh:1x4", engines=[Mine()], time_limit=5)
    assert found.core is not None and found.core.tolist() == [0, 1, 2, 3]
    folder = found.save(tmp_path / "run")
    assert json.loads((folder / "report.json").read_text())["inputs"]["engines"] == "mine"


def test_a_migration_budget_survives_in_files(grid: nmsolve.MappingAnswer, tmp_path: Path) -> None:
    start = {node: core ^ 1 if k < 8 else core for k, (node, core) in enumerate(grid.mapping.items())}
    result = nmsolve.map(
        nx.grid_2d_graph(4, 4),
        "mesh:2x2",
        warm_start=start,
        migration_budget=4,
        balance=1.0,
        time_limit=3,
        seed=1,
    )
    assert sum(result.mapping[v] != start[v] for v in start) <= 4
    command("verify", result.save(tmp_path / "run"))
    with pytest.raises(nmsolve.InputError, match="a migration budget needs a mapping"):
        nmsolve.map(nx.grid_2d_graph(4, 4), "mesh:2x2", migration_budget=4)


def test_answers_are_shown_in_a_line(grid: nmsolve.MappingAnswer) -> None:
    """In a notebook or at a prompt; checks are shown as the command prints them."""
    assert repr(grid) == "MappingAnswer(optimal: hops 8, bound 8, gap 0.00 %; stopped: gap)"
    shown = repr(grid.verify()).splitlines()
    assert shown[0].startswith("ok      feasible") and len(shown) > 5
    ring = nx.cycle_graph(4)
    assert repr(nmsolve.pareto(ring, "mesh:2x2", points=2, time_limit=5)).startswith(
        "ParetoFront(hops max-link: 4 "
    )
    assert repr(nmsolve.explain(ring, "mesh:2x2", time_limit=5)) == "Explained(feasible)"
    run = nmsolve.simulate(machine="mesh:2x2", pattern="uniform", load=0.1, cycles=500, warmup=0)
    assert "\n" not in repr(run) and repr(run).endswith("1 run)")


def test_an_answer_without_a_mapping_can_still_be_kept(tmp_path: Path) -> None:
    """Sizes 8, 5, 4 and 3 on two cores of 10: proved impossible. There is nothing to draw on cores, and nothing to check."""
    chip = nmsolve.Machine("two", (1, 1), (1, 2), capacity={"neurons": 10})
    network = nx.cycle_graph(4)
    nx.set_node_attributes(network, dict(enumerate((8, 5, 4, 3))), "neurons")
    found = nmsolve.map(network, chip, engines=["cpsat"], time_limit=60)
    assert (found.status, found.mapping, found.core, len(found.to_dataframe())) == ("infeasible", {}, None, 0)
    folder = found.save(tmp_path / "run")
    assert json.loads((folder / "report.json").read_text())["status"] == "infeasible"
    assert not (folder / "mapping.json").exists() and (folder / "report.html").exists()
    found.plot().savefig(tmp_path / "convergence.png")
    for call in (
        lambda: found.plot("cores"),
        lambda: nmsolve.gap(found),
        lambda: nmsolve.route(found),
        found.verify,
    ):
        with pytest.raises(nmsolve.InputError):
            call()


def test_tables_and_pictures(grid: nmsolve.MappingAnswer, tmp_path: Path) -> None:
    rows = grid.to_dataframe()
    assert list(rows.columns) == ["node", "core", "row", "col", "chip"] and len(rows) == 16
    assert dict(zip(rows.node, rows.core, strict=True)) == grid.mapping
    assert (rows.row * 2 + rows.col == rows.core).all()
    assert grid.verify().to_dataframe().ok.all()
    import matplotlib

    before = dict(matplotlib.rcParams)
    for kind in ("convergence", "cores", "resources", "links"):
        figure = grid.plot(kind)
        for suffix in (".png", ".svg"):
            figure.savefig(tmp_path / (kind + suffix))
            assert (tmp_path / (kind + suffix)).stat().st_size > 2000
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(nmsolve.InputError, match="one of convergence, cores, resources, links"):
        grid.plot("lnks")


def test_without_pandas_only_tables_are_missing(
    grid: nmsolve.MappingAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(nmsolve.BackendError, match="pip install pandas"):
        grid.to_dataframe()


def test_nothing_is_printed_and_events_are_heard(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    seen: list[nmsolve.Event] = []
    graph = nx.grid_2d_graph(3, 3)
    result = nmsolve.map(
        graph, "mesh:3x3", objective="hops,max-link", route="chosen", time_limit=4, on_event=seen.append
    )
    result.save(tmp_path)
    assert {"start", "incumbent", "end"} <= {e.kind for e in seen} and result.routing is not None
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""
    assert nmsolve.verify(tmp_path)


SCRIPT = """
import networkx as nx, nmsolve
result = nmsolve.map(nx.cycle_graph(6), "mesh:2x3", engines=["cpsat"], time_limit=30)
print(result.status, result.objective, len(result.mapping), result.engines[0].cpu_seconds > 0)
"""


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    """Children are processes of their own that do not import the script."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["optimal", "6.0", "6", "True"], done.stderr


INTERRUPTED = """
import numpy as np, nmsolve
traffic = np.random.default_rng(0).random((300, 300)) < 0.02
hear = lambda event: print(event.kind, flush=True)
found = nmsolve.map(traffic, "mesh:4x4", objective="hops,max-link", route="chosen", time_limit=120, on_event=hear)
print("found", found.stop_reason, len(found.mapping), found.routing, found.wall_seconds < 100)
"""


def test_ctrl_c_ends_all_that_a_call_would_still_do() -> None:
    """Between objectives and routes, too: the best mapping so far comes back, without the routes."""
    run = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    for line in run.stdout:
        if line.startswith("incumbent"):
            break
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=60)
    assert "found interrupt 300 None True" in out and run.returncode == 0


def test_a_thread_of_its_own(tmp_path: Path) -> None:
    """Python delivers no signals there: everything but Ctrl-C works, children and pictures too."""
    found: list[Any] = []

    def work() -> None:
        result = nmsolve.map(nx.cycle_graph(6), "mesh:2x3", engines=["first-fit", "cpsat"], time_limit=30)
        result.save(tmp_path)
        found.append((result.status, bool(nmsolve.verify(tmp_path)), (tmp_path / "report.html").exists()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(120)
    assert found == [("optimal", True, True)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"objective": "hopps"}, "unknown objective 'hopps'"),
        ({"objective": ["hops", "hops"]}, "repeat one"),
        ({"route": "zigzag"}, "unknown routes 'zigzag'"),
        ({"route": "joint", "objective": "hops,max-link"}, "several objectives with free routes"),
        ({"engines": ["annneal"]}, "did you mean 'anneal'"),
        ({"time_limit": 0}, "time limit"),
        ({"gap": -0.5}, "gap"),
    ],
)
def test_options_are_refused_as_on_the_command_line(more: dict[str, Any], words: str) -> None:
    with pytest.raises(nmsolve.InputError, match=words):
        nmsolve.map(np.ones((4, 4)), "mesh:2x2", **more)
