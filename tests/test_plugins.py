"""What other packages offer, and engines as objects: found, checked, used like our own, and never believed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_support import run_here
from plans_support import four_layers
from plugins_support import FIRST, MESH, RING, ROOT, Row, RowApart, call, package, run

import nmsolve
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.solvers.mapping.api import bound_mapping, make_problem
from nmsolve.solvers.pipeline.registry import plan_of


@pytest.mark.parametrize("engine", [Row(), RowApart()])
def test_an_object_is_an_engine_here_and_in_a_process_of_its_own(engine: Row) -> None:
    result = run(engine)
    assert result.solution is not None and result.solution.tolist() == list(range(12))
    assert [share.engine for share in result.engines if share.incumbents] == [engine.name]


def test_automatic_mode_takes_an_engine_beside_its_own() -> None:
    result = run("auto", Row())
    assert {"row", "anneal"} <= {share.engine for share in result.engines}
    assert result.status == "optimal" and result.objective == 12


@pytest.mark.parametrize(
    "bound",
    [
        Bound(17.0, "row", "full", {}),
        Bound(17.0, "cpsat", "full", {"status": "optimal"}),
        Bound(17.0, "star", "full", {}),
        Bound(float("inf"), "row", "full", {"status": "infeasible"}),
    ],
)
@pytest.mark.parametrize("kind", [Row, RowApart])
def test_a_bound_that_nobody_can_recompute_does_not_count(kind: type[Row], bound: Bound) -> None:
    """Neither a method of its own, nor the word of a solver, nor another engine's name without a certificate."""
    result = run(kind(bound))
    assert result.bound is None and result.status == "feasible"
    assert any(e.kind == "error" and "bound rejected" in e.text for e in result.events)


def test_a_bound_with_a_certificate_counts() -> None:
    (star,) = [b for b in run("star").bounds if b.method == "star"]
    assert run(Row(star)).bound == star.value


@pytest.mark.parametrize("core", [np.zeros(12, int), np.arange(11), np.full(12, -1), np.full(12, 0.5)])
def test_a_mapping_that_breaks_a_rule_is_refused(core: Any) -> None:
    result = run(Row(core=core))
    assert any(e.kind == "error" and "offer rejected" in e.text for e in result.events)


@pytest.mark.parametrize(
    ("engines", "message"),
    [
        ([Row], "is a class"),
        ([object()], "it has no name, refuses, run, finds"),
        ([Row(), Row()], "two engines are called 'row'"),
        ([3], "it has no name"),
        (["rwo"], "unknown engine 'rwo'"),
    ],
)
def test_what_is_no_engine_is_refused_in_one_line(engines: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run(*engines)
    assert "\n" not in str(caught.value)


def test_a_refusal_of_an_own_engine_is_said() -> None:
    with pytest.raises(InputError, match="row: one row"):
        nmsolve.map(RING, nmsolve.machine("mesh:1x12"), engines=[Row()], time_limit=1)


def test_an_installed_package_is_found_and_used(installed: Path, tmp_path: Path) -> None:
    """Alone, beside automatic mode in two processes, and in a benchmark whose kept runs know its code."""
    done = call(installed, "map", FIRST, "--engines", "snake", "-t", "20s", "-o", tmp_path / "alone")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (tmp_path / "alone" / "events.jsonl").read_text().splitlines()]
    assert any(e["type"] == "incumbent" and e["engine"] == "snake" for e in events)
    beside = ("--engines", "auto,snake", "--workers", "2", "-t", "20s", "-o", tmp_path / "beside")
    done = call(installed, "map", FIRST, *beside)
    assert done.returncode == 0 and "\nsnake " in done.stderr + done.stdout
    options = ("-m", "mesh:2x3", "--seeds", "1", "-t", "20s", "-o", tmp_path / "bench")
    bench = ("bench", FIRST, "--methods", "snake,auto+snake", *options)
    done = call(installed, *bench)
    assert re.search(r"\[2/2\] first auto\+snake seed 1: (optimal|feasible), \d+, bound \d+", done.stderr), (
        done.stderr
    )
    assert "2 of 2 runs are in" in call(installed, *bench).stderr
    alone = ("bench", FIRST, "--methods", "snake", *options)
    for changed, again, runs in (("__init__.py", bench, "[2/2]"), ("snakeboard.toml", alone, "[1/1]")):
        with (installed / "nmsolve_snake" / changed).open("a") as file:
            file.write("# another version\n")
        assert runs in call(installed, *again).stderr


def test_automatic_mode_beside_an_engine_where_all_engines_of_a_table_run() -> None:
    """``auto`` among the names stands for the engines of a run without names."""

    problem = four_layers()
    alone = [step.engine.name for step in plan_of(problem, None)[0]]
    both = [step.engine.name for step in plan_of(problem, ["auto", Row()])[0]]
    assert len(alone) > 2 and both == [*alone, "row"]


def test_without_the_package_its_engine_is_unknown(tmp_path: Path) -> None:
    done = call(tmp_path, "map", FIRST, "--engines", "snake", "-o", tmp_path / "out")
    assert done.returncode == 2 and "unknown engine 'snake'" in done.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_like_it", "cannot be loaded (ModuleNotFoundError"),
        ("class E: pass", "is no engine: it has no name"),
        (
            "class E:\n name, finds = 'other', 'mappings'\n def refuses(self, p): pass\n def run(self, p, c): pass",
            "calls itself 'other'",
        ),
        ("class E:\n def __init__(self): 1 / 0", "cannot be loaded (ZeroDivisionError"),
    ],
)
def test_a_package_that_is_broken_costs_one_line_where_it_is_asked_for(
    code: str, message: str, tmp_path: Path
) -> None:
    package(tmp_path, code, engines="broken = strange:E\nmultilevel = strange:E")
    done = call(tmp_path, "map", FIRST, "--engines", "broken", "-o", tmp_path / "out")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "broken of strange 1.0" in done.stderr and message in done.stderr
    done = call(tmp_path, "map", FIRST, "--engines", "multilevel", "-t", "2s", "-o", tmp_path / "own")
    assert done.returncode == 0, "our own names come first"


def call_here(
    here: Callable[[Path], None], path: Path, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """Like ``call``, in this process, whose table of engines was made before: not for what needs the package's engines."""
    here(path)
    return run_here(*arguments, code=None)


def test_a_format_of_a_package_is_read_and_written(
    installed: Path, tmp_path: Path, here: Callable[[Path], None]
) -> None:
    adj = tmp_path / "net.adj"
    assert call_here(here, installed, "convert", FIRST, adj).returncode == 0
    assert adj.read_text() == "1 2\n3 4\n4\n5\n\n\n"
    done = call_here(here, installed, "info", adj)
    assert done.returncode == 0 and done.stdout.startswith("net: 6 nodes, 6 directed edges")
    words = ("map", adj, "-m", "mesh:2x3", "--engines", "snake", "-t", "9s", "-o", tmp_path / "out")
    done = call(installed, *words)
    assert done.returncode == 0 and call_here(here, installed, "verify", tmp_path / "out").returncode == 0
    adj.write_text("1\n7\n")
    done = call_here(here, installed, "info", adj)
    assert done.returncode == 2 and done.stderr == f"error: {adj}:2: '7' is no node; expected numbers 0..1\n"
    done = call_here(here, installed, "info", tmp_path / "none.adj")
    assert done.returncode == 2 and "no such file" in done.stderr
    done = call_here(here, installed, "info", "net.xyz")
    assert done.returncode == 2 and ".net, .adj\n" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.adj", "out"]


READ = "def load(path):\n from nmsolve.model.graph import LogicGraph\n return LogicGraph.from_edges(2, [0], [1])\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import nothing_like_it",
            "odd of strange 1.0 cannot be loaded (ModuleNotFoundError",
        ),
        ("raise SystemExit(0)", "cannot be loaded (SystemExit: 0"),
        ("x = 1", "the reader of strange 1.0 failed (AttributeError"),
        ("def load(path): return {}['key']", "the reader of strange 1.0 failed (KeyError: 'key')"),
        ("def load(path): raise ValueError('two\\nlines')", "failed (ValueError: two lines)"),
        ("def load(path): return 3", "it gave int, no LogicGraph in memory"),
        ("def load(path): raise SystemExit(0)", "failed (SystemExit: 0)"),
        ("import os\ndef load(path): os._exit(0)", "reading it ended without an answer"),
        ("import os\ndef load(path): os.abort()", "reading it crashed (SIGABRT)"),
        ("def load(path): return load(path)", "its content is nested too deeply"),
        ("def load(path): return bytearray(2**40)", "reading it takes more than"),
        (
            READ + "def save(graph, path): path.write_text('half'); 1 / 0",
            "the writer of strange 1.0 failed (ZeroDivisionError",
        ),
        (READ, "this format can be read but not written"),
    ],
)
def test_a_reader_or_writer_that_fails_costs_one_line(code: str, message: str, tmp_path: Path) -> None:
    """Whatever it does, even where it says that all went well; what it prints is not seen, and an old file stays."""
    site, file = (
        package(tmp_path / "site", "print('noise')\n" + code, formats="odd = strange"),
        tmp_path / "a.odd",
    )
    file.write_text("old")
    which = ("convert", FIRST, file) if code.startswith(READ) else ("info", file)
    done = call(site, *which)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert message in done.stderr and (done.stdout == "" or code.startswith(READ))
    assert file.read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == ["a.odd", "site"]


def test_a_graph_from_a_reader_is_checked(tmp_path: Path) -> None:
    """Not by the package: its arrays are looked at here."""
    code = (
        "def load(path):\n from nmsolve.model.graph import LogicGraph\n graph = LogicGraph.from_edges(2, [0], [1])\n"
        " object.__setattr__(graph, 'indptr', graph.indptr[::-1])\n return graph"
    )
    site = package(tmp_path / "site", code, formats="odd = strange")
    (tmp_path / "a.odd").write_text("")
    done = call(site, "info", tmp_path / "a.odd")
    assert done.returncode == 2 and "indptr does not split the edges into rows" in done.stderr


def test_what_a_reader_warns_of_reaches_the_user(tmp_path: Path) -> None:
    """Its own warnings and ours, but not those for programmers; ``--strict`` makes refusals of them."""
    code = (
        "import warnings\nfrom nmsolve.model.errors import doubtful\ndef load(path):\n"
        " from nmsolve.model.graph import LogicGraph\n warnings.warn('two edges look odd')\n"
        " warnings.warn('call it otherwise', DeprecationWarning)\n doubtful('a wet node', 'a.odd', 'dry ones')\n"
        " return LogicGraph.from_edges(2, [0], [1])\n"
    )
    site = package(tmp_path / "site", code, formats="odd = strange")
    (tmp_path / "a.odd").write_text("")
    done = call(site, "info", tmp_path / "a.odd")
    assert done.returncode == 0 and "2 nodes" in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and lines[1] == "warning: a.odd: a wet node; expected dry ones", lines
    assert "a.odd: the reader of strange 1.0 warns: UserWarning: two edges look odd" in lines[0]
    done = call(site, "info", tmp_path / "a.odd", "--strict")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_no_package_takes_a_name_of_ours_or_of_another(tmp_path: Path) -> None:
    """One line for a file or a machine of that name, and a line of ``doctor``; nothing of the package is imported for it."""
    offers = {
        "formats": "json = strange\nonnx = strange\nodd = strange", "machines": "loihi1 = strange\nboard = strange",
        "rechecks": "star = strange\nown = strange", "engines": "tabu = strange", "engines.pipeline": "mine = strange",
    }  # fmt: skip
    site = package(tmp_path / "site", "raise SystemExit('imported')", **offers)
    for name, *which in (("json", "info", FIRST), ("loihi1", "hw", "show", "Loihi1"), ("json", "map", FIRST)):
        done = call(site, *which)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert f"strange 1.0 takes a name of nmsolve: {name} in nmsolve." in done.stderr
    shutil.copytree(site / "strange-1.0.dist-info", site / "other-2.0.dist-info")
    (site / "other-2.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other\nVersion: 2.0\n"
    )
    done = call(site, "info", "a.odd")
    assert (
        done.returncode == 2
        and "other 2.0 and strange 1.0 offer the same name: odd in nmsolve.formats" in done.stderr
    )
    shutil.rmtree(site / "other-2.0.dist-info")
    done = call(site, "doctor", "--json")
    rows = {
        r["name"]: r for r in map(json.loads, done.stdout.splitlines()) if r["name"].startswith("plug-in")
    }
    assert done.returncode == 1 and not any(row["ok"] for row in rows.values())
    assert set(rows) == {
        f"plug-in {name}"
        for name in ["json", "onnx", "odd", "loihi1", "board", "star", "own", "tabu", "mine"]
    }
    for name, text in (
        ("json", "nmsolve.formats, strange: strange 1.0 takes a name of nmsolve"), ("star", "takes a name of nmsolve"),
        ("tabu", "takes a name"), ("own", "cannot be loaded (SystemExit: imported)"), ("odd", "cannot be loaded"),
        ("board", "no folder strange"),
    ):  # fmt: skip
        assert text in rows[f"plug-in {name}"]["text"]


def test_a_machine_of_a_package_is_a_preset(
    installed: Path, tmp_path: Path, here: Callable[[Path], None]
) -> None:
    """Found by name in every command, listed with its package, a base for files; read like any file, so its mistakes are told."""
    listed = call_here(here, installed, "hw", "list").stdout
    assert (
        "snakeboard   4x4 mesh       per core: 1,024 neurons  (1 figure unverified)  [nmsolve-snake 1.0]"
        in listed
    )
    shown = call_here(here, installed, "hw", "show", "Snakeboard").stdout
    assert shown.split("\n")[0].split() == ["package", "nmsolve-snake", "1.0"] and "(made up)" in shown
    (tmp_path / "mine.toml").write_text("preset = 'snakeboard'\nfaulty_cores = [[0, 0]]\n")
    assert "faulty cores  1" in call_here(here, installed, "hw", "show", tmp_path / "mine.toml").stdout
    words = ("map", FIRST, "-m", "snakeboard", "--engines", "snake", "-t", "9s", "-o", tmp_path / "out")
    done = call(installed, *words)
    assert done.returncode == 0 and call_here(here, installed, "verify", tmp_path / "out").returncode == 0
    done = call_here(here, tmp_path, "hw", "show", "snakeboard")
    assert done.returncode == 2 and "unknown machine 'snakeboard'" in done.stderr
    site = package(tmp_path / "site", "", machines="bad = boards\nnone = boards\nnpu2 = boards")
    (site / "boards").mkdir()
    (site / "boards" / "bad.toml").write_text("cores = [0, 4]")
    shutil.copy(
        ROOT / "nmsolve" / "hw" / "presets" / "processors" / "laptop-npu.toml", site / "boards" / "npu2.toml"
    )
    done = call_here(here, site, "hw", "show", "bad")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "cores" in done.stderr
    done = call_here(here, site, "hw", "show", "none")
    assert done.returncode == 2 and "none.toml: no such file" in done.stderr
    listed = call_here(here, site, "hw", "list")
    assert listed.returncode == 0 and "npu" in listed.stdout.split("of other packages:")[1]
    assert "npu" in call_here(here, site, "hw", "show", "npu2").stdout
    done = call_here(here, site, "map", FIRST, "-m", "npu2")
    assert done.returncode == 2 and "unlike processors" in done.stderr


def test_a_term_of_a_package_is_in_the_reward(
    installed: Path, tmp_path: Path, here: Callable[[Path], None]
) -> None:
    """Found by name, charged as its function says, verified with its package only; a wrong function is one line."""
    words = ("map", FIRST, "-m", "mesh:3x3", "--objective", "reward", "-t", "2s", "--seed", "1")
    values = {}
    for weight in ("0", "100"):
        out = tmp_path / weight
        done = call_here(here, installed, *words, "--reward", f"deadlock=0,edge={weight}", "-o", out)
        assert (
            done.returncode in (0, 3) and call_here(here, installed, "verify", out, "--bound").returncode == 0
        )
        values[weight] = json.loads((out / "report.json").read_text())["objective"]
    assert values["0"] < values["100"]  # six nodes are more than the one core inside
    done = call_here(here, tmp_path, "verify", tmp_path / "100")
    assert done.returncode == 2 and "no term 'edge'" in done.stderr
    code = "def small(machine):\n    return [[1.0]]\ndef broken(machine):\n    return 1 / 0\n"
    site = package(
        tmp_path / "site",
        code,
        rewards="small = strange:small\nbroken = strange:broken\nhops = strange:small",
    )
    for term, text in (("small=1", "prices of shape 1 x 1"), ("broken=1", "ZeroDivisionError")):
        done = call_here(here, site, *words, "--reward", term, "-o", tmp_path / "no")
        assert done.returncode == 2 and text in done.stderr and done.stderr.count("\n") == 1, done.stderr
    rows = [json.loads(line) for line in call_here(here, site, "doctor", "--json").stdout.splitlines()]
    assert any(row["name"] == "plug-in hops" and "takes a name" in row["text"] for row in rows)


def test_doctor_lists_what_packages_offer(installed: Path) -> None:
    rows = [json.loads(line) for line in call(installed, "doctor", "--json").stdout.splitlines()]
    found = [(r["name"], r["version"], r["ok"], r["text"]) for r in rows if r["name"].startswith("plug-in ")]
    groups = {
        "misfits": "engines",
        "snake": "engines",
        "adj": "formats",
        "snakeboard": "machines",
        "edge": "rewards",
    }
    assert found == [
        *((f"plug-in {k}", "1.0", True, f"nmsolve.{v}, nmsolve-snake") for k, v in groups.items()),
        ("plug-in misfits", "1.0", True, "nmsolve.rechecks, nmsolve-snake"),
    ]


@dataclass
class Written(Row):
    """An engine that is compared by its fields, so that it cannot be a key."""

    size: int = 3
    claims: None = None
    core: None = None
    name: str = "written"
    finds: str = "both"


def test_an_engine_need_not_be_hashable_and_names_may_repeat() -> None:
    result = run("star", Written(), "star")
    assert [share.engine for share in result.engines if share.incumbents] == ["written"]
    assert result.bound is not None


def test_auto_is_no_engine_where_only_bounds_are_wanted() -> None:
    with pytest.raises(InputError, match="'auto' looks for mappings"):
        bound_mapping(make_problem(RING, MESH), np.arange(12), engines=["auto"], time_limit=1)
