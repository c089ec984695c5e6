"""``nmsolve route``, ``map --route RULE``, ``verify --routes`` and ``export``: files, figures, bad input."""

from __future__ import annotations

import html
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_support import run_here as run

from nmsolve.kinds.mapping import routes as map_routes

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

#: Cores of the mesh that all mappings here are on: node i on core i.
SIDE = 3


Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def refused(call: Called) -> Callable[..., None]:
    """Exit code 2 and one line on stderr, after warnings if any, that holds all ``words``."""

    def check(*arguments: object, words: tuple[str, ...]) -> None:
        code, _, text = call(*arguments)
        lines = [line for line in text.strip().splitlines() if not line.startswith("warning: ")]
        assert code == 2 and len(lines) == 1 and lines[0].startswith("error: "), (code, lines)
        assert all(word in lines[0] for word in words), lines[0]

    return check


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of nine nodes with 20 random edges, and the mapping of node i to core i, a core per line."""
    out = tmp_path_factory.mktemp("route")
    random = np.random.default_rng(3)
    pairs = random.permutation([(u, v) for u in range(9) for v in range(9) if u != v])[:20].tolist()
    graph = {
        "directed": True, "multigraph": False, "graph": {"name": "random"},
        "nodes": [{"id": f"n{i}", "sizes": {"neurons": 1}} for i in range(9)],
        "edges": [
            {"source": f"n{u}", "target": f"n{v}", "weight": int(w)}
            for (u, v), w in zip(pairs, random.integers(1, 9, 20), strict=True)
        ],
    }  # fmt: skip
    (out / "g.json").write_text(json.dumps(graph))
    (out / "m.part").write_text("\n".join(map(str, range(9))) + "\n")
    return out


def mapping(folder: Path) -> list[object]:
    """The arguments that name the mapping."""
    return [folder / "m.part", "--graph", folder / "g.json", "--machine", f"mesh:{SIDE}x{SIDE}"]


@pytest.fixture(scope="module")
def routed(folder: Path) -> Path:
    """The mapping's routes, searched for a few seconds."""
    out = folder / "routed"
    run("route", *mapping(folder), "-t", 90, "--gap", "20%", "--seed", 1, "--out", out)
    return out


def loads(routes: dict[str, Any]) -> dict[tuple[int, int], float]:
    """Load of every link used in a flow-routes.json."""
    out: dict[tuple[int, int], float] = defaultdict(float)
    for flow in routes["flows"]:
        for a, b, _ in flow["links"]:
            out[a, b] += flow["rate"]
    return out


def test_route_writes_routes_report_events_and_page(folder: Path, routed: Path) -> None:
    """Values in the report are those of the routes; no bound is above its value; no turn model is better."""
    assert {p.name for p in routed.iterdir()} == {
        "flow-routes.json", "route-certificates.json", "route-report.json", "events.jsonl", "route.html",
    }  # fmt: skip
    report = json.loads((routed / "route-report.json").read_text())
    found = loads(json.loads((routed / "flow-routes.json").read_text()))
    value = {o["name"]: o["value"] for o in report["objectives"]}
    assert value["max-link"] == max(found.values()) and value["total-link"] == sum(found.values())
    assert list(value) == ["max-link", "total-link", "turns"]
    assert all(o["bound"] is None or o["bound"] <= o["value"] for o in report["objectives"])
    assert set(report["rules"]) >= {"xy", "odd-even"} and value["max-link"] <= min(report["rules"].values())
    assert all(c["ok"] for c in report["checks"]) and len(report["checks"]) == 5
    page = (routed / "route.html").read_text()
    assert (
        page.count("<svg") == 4
        and 'id="explorer-data"' in page
        and "prohibited turns" in page
        and 'src="' not in page
    )


def test_the_folder_of_routes_names_the_mapping_that_they_are_of(
    routed: Path, tmp_path: Path, call: Called, refused: Callable[..., None]
) -> None:
    """As the file of the routes does; where the mapping is no longer there, a line says so."""
    for path in (routed, routed / "flow-routes.json"):
        code, text, error = call("verify", path, "--trust-solver", "--bound")
        assert code == 0 and "ok      flow-deadlock" in text and "fields of route-report.json" in text, error
    moved = shutil.copytree(routed, tmp_path / "moved")
    report = json.loads((moved / "route-report.json").read_text())
    for inputs, words in (
        ({"mapping": "/no/m.part"}, "/no/m.part"),
        ({"mapping": 3}, "invalid inputs"),
        ({}, "mapping"),
    ):
        (moved / "route-report.json").write_text(json.dumps(report | {"inputs": inputs}))
        refused("verify", moved, words=(words,))


def test_routes_of_a_graph_that_is_not_read_as_it_is(tmp_path: Path, call: Called) -> None:
    """Their report says how, and so does the one of a front; every later command reads the same graph."""
    (tmp_path / "g.edges").write_text("0 1\n0 2\n1 3\n2 3\n")
    (tmp_path / "m.part").write_text("0\n1\n2\n3\n")
    given = (tmp_path / "m.part", "-g", tmp_path / "g.edges", "-m", "mesh:2x2", "--multicast", "-t", 20)
    for out, more in (("r", ()), ("f", ("--pareto", "max-link,turns", "--points", 2))):
        run("route", *given, *more, "-o", tmp_path / out)
        code, text, error = call("verify", tmp_path / out, "--bound")
        assert code == 0 and "inputs.graph" in text, text + error
    report = json.loads((tmp_path / "r" / "route-report.json").read_text())
    assert report["inputs"]["multicast"] is True and report["flows"] == 3
    run("gap", tmp_path / "r", "-t", 20, "-o", tmp_path / "gap")
    again = json.loads((tmp_path / "gap" / "route-report.json").read_text())
    assert again["inputs"] == report["inputs"] | {"time_limit": 20.0} and again["flows"] == 3


def test_a_point_of_a_front_is_scored_and_bounded(
    folder: Path, tmp_path: Path, refused: Callable[..., None]
) -> None:
    """And checked with its front."""
    out = tmp_path / "front"
    run("route", *mapping(folder), "-t", 6, "--pareto", "max-link,turns", "--points", 2, "-o", out)
    point = json.loads((out / "pareto.json").read_text())["points"][0]
    found = json.loads(run("score", out / "point-1.json", "--json").stdout)
    assert found["scores"].items() >= point["values"].items() and found["graph"] == "random"
    run("gap", out / "point-1.json", "-t", 3, "-o", tmp_path / "gap")
    report = json.loads((tmp_path / "gap" / "route-report.json").read_text())
    assert [part["value"] for part in report["objectives"]] == list(point["values"].values())
    refused("verify", out / "point-1.json", words=("a point of a front", "pareto.json"))


def test_options_for_other_answers_are_refused(routed: Path, refused: Callable[..., None]) -> None:
    """Also those that nothing about routes could read."""
    for option in (
        ("--bind", "batch=1"),
        ("--library", "l"),
        ("--constraints", "c.json"),
        ("--balance", 0.1),
    ):
        refused("gap", routed, *option, words=(option[0], "an option for other answers"))


def test_routes_beside_their_mapping_are_checked_by_name(tmp_path: Path, folder: Path, call: Called) -> None:
    """The folder is about the mapping, with its routes; flow-routes.json in it is about the routes, with their mapping."""
    out = tmp_path / "both"
    run("map", folder / "g.json", "-m", "mesh:3x3", "-t", 20, "--engines", "first-fit", "-o", out)
    run("route", out, "-t", 4, "-o", out)
    for path in (out, out / "flow-routes.json"):
        code, text, error = call("verify", path)
        assert code == 0 and "fields of route-report.json" in text and "fields of mapping.json" in text, error


def test_events_of_one_objective_follow_its_start(routed: Path) -> None:
    """Every objective begins with an event of its own."""
    events = [json.loads(line) for line in (routed / "events.jsonl").read_text().splitlines()]
    starts = [e["text"] for e in events if e["type"] == "start"]
    assert "max-link" in starts[0] and any("total-link, max-link <=" in text for text in starts)


def test_multicast_routes_say_what_holds_for_long_messages(tmp_path: Path) -> None:
    """Either the file proves it, and ``verify`` says so, or the report names the messages that could block each other."""
    nodes = [{"id": i, "multicast": i in (3, 5)} for i in range(9)]
    for name, goals, covered in (
        ("ring", {3: (1, 7), 5: (1, 7)}, False),
        ("apart", {3: (0, 6), 5: (2, 8)}, True),
    ):
        edges = [{"source": s, "target": t, "weight": 1} for s, several in goals.items() for t in several]
        graph = {"directed": True, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges}
        (tmp_path / "g.json").write_text(json.dumps(graph))
        (tmp_path / "m.part").write_text("\n".join(map(str, range(9))) + "\n")
        out = tmp_path / name
        said = run("route", *mapping(tmp_path), "-t", 30, "--turns", "xy", "--out", out).stdout
        report = json.loads((out / "route-report.json").read_text())
        worms = json.loads((out / "flow-routes.json").read_text())["worms"]
        assert (worms is not None, bool(report["long_messages"])) == (covered, not covered)
        assert ("can block each other" in said) == (not covered)
        assert ("proved for longer multicast messages" in said) == covered


def test_json_result_is_one_object_on_the_last_line(folder: Path, tmp_path: Path) -> None:
    """A given turn model: its routes obey it; the engine is chosen by name."""
    done = run("route", *mapping(folder), "--turns", "west-first", "--engines", "named", "--objective", "max-link",
               "-t", 30, "--out", tmp_path, "--json")  # fmt: skip
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["type"] == "result" and [o["name"] for o in result["objectives"]] == ["max-link"]
    assert result["objectives"][0]["value"] == result["rules"]["west-first"]
    ways = {(0, 1): "E", (0, -1): "W", (1, 0): "S", (-1, 0): "N"}
    for flow in json.loads((tmp_path / "flow-routes.json").read_text())["flows"]:
        way = [ways[b // SIDE - a // SIDE, b % SIDE - a % SIDE] for a, b, _ in flow["links"]]
        assert "W" not in way[1:] or set(way[: way.index("W") + 1]) == {"W"}, way


def test_verify_finds_what_was_changed(folder: Path, routed: Path, tmp_path: Path, call: Called) -> None:
    """Intact routes pass; a wrong rate and a load that the report gets wrong do not."""
    assert call("verify", *mapping(folder), "--routes", routed / "flow-routes.json")[0] == 0
    content = json.loads((routed / "flow-routes.json").read_text())
    content["flows"][0]["rate"] += 1
    (tmp_path / "flow-routes.json").write_text(json.dumps(content))
    code, text, _ = call("verify", *mapping(folder), "--routes", tmp_path / "flow-routes.json")
    assert code == 1 and "FAILED  flows" in text
    (tmp_path / "flow-routes.json").write_text((routed / "flow-routes.json").read_text())
    report = json.loads((routed / "route-report.json").read_text())
    report["objectives"][0]["value"] -= 1
    (tmp_path / "route-report.json").write_text(json.dumps(report))
    code, text, _ = call("verify", *mapping(folder), "--routes", tmp_path / "flow-routes.json")
    assert code == 1 and "FAILED  link-loads" in text


def test_the_page_prints_a_command_that_checks_routes_and_bounds(routed: Path) -> None:
    """The very words between <pre> and </pre>, in a shell; without the graph the mapping cannot be read."""
    page = (routed / "route.html").read_text()
    command = html.unescape(page.split("<h2>Check it yourself</h2>")[1].split("<pre>")[1].split("</pre>")[0])
    words = shlex.split(command)
    assert words[0] == "nmsolve"
    done = subprocess.run(
        [sys.executable, "-m", "nmsolve", *words[1:]], capture_output=True, text=True, timeout=120
    )
    assert done.returncode in (0, 6), (done.stdout, done.stderr)
    assert "max-link bound" in done.stdout and "FAILED" not in done.stdout


def test_claims_about_routes_are_recomputed(folder: Path, routed: Path, tmp_path: Path, call: Called) -> None:
    """``proved: true`` needs a bound that meets the value, and the bound a certificate or an engine's word."""
    for path in routed.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    report = json.loads((routed / "route-report.json").read_text())
    proofs = json.loads((routed / "route-certificates.json").read_text())

    def verify(*extra: object) -> tuple[int, str]:
        return call("verify", *mapping(folder), "--routes", tmp_path / "flow-routes.json", *extra)[:2]

    def write(first: dict[str, Any], other: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        parts = [report["objectives"][0] | first, *report["objectives"][1:]]
        (tmp_path / "route-report.json").write_text(json.dumps(report | {"objectives": parts} | other))
        (tmp_path / "route-certificates.json").write_text(json.dumps(proofs | {"bounds": rows}))

    code, text = verify()
    assert code == 0 and "only claimed, not looked at here" in text
    assert verify("--bound", "--trust-solver")[0] == 0
    value = report["objectives"][0]["value"]
    best = {"bound": value, "gap": 0.0, "proved": True}
    mine = [
        b
        for b in proofs["bounds"]
        if b["objective"] == "max-link" and b["method"] in ("counting", "split-flow")
    ]
    others = [b for b in proofs["bounds"] if b["objective"] != "max-link"]
    assert mine
    for first, other in (
        ({"proved": True}, {}),
        ({"proved": True, "gap": 0.0}, {}),
        ({"bound": -1.0, "gap": 2.0}, {}),
        ({"gap": 0.0}, {}),
        ({}, {"status": "splendid"}),
        ({}, {"inputs": report["inputs"] | {"detour": 4}}),
        ({}, {"inputs": {}}),
    ):
        if first == {"proved": True} and report["objectives"][0]["proved"]:
            continue
        write(first, other, mine + others)
        code, text = verify()
        assert code == 1 and "FAILED  route claims" in text, (first, other)
    done = all(o["proved"] for o in [best, *report["objectives"][1:]])
    status = {"status": "optimal" if done else "feasible"}
    word = mine[0] | {"method": "route-cpsat", "value": value, "certificate": {"status": "optimal"}}
    write(best, status, [*mine, *others])
    if max(b["value"] for b in mine) < value * (1 - 1e-8):
        assert verify("--bound", "--trust-solver")[0] == 1
    write(best, status, [*mine, *others, word])
    code, text = verify("--bound")
    assert code == 6 and "rests on the word of route-cpsat" in text
    assert verify("--bound", "--trust-solver")[0] == 0
    for forged in (
        word | {"method": "my-blog"}, mine[0] | {"value": value * 2},
        mine[0] | {"value": value, "method": "split-flow", "certificate": {}},
        word | {"objective": "beauty"}, word | {"value": -1.0}, word | {"scope": "placement"},
    ):  # fmt: skip
        write(best, status, [*mine, *others, word, forged])
        assert verify("--bound", "--trust-solver")[0] == 1, forged
    (tmp_path / "route-certificates.json").unlink()
    assert verify("--bound", "--trust-solver")[0] == 1


def test_map_adds_routes_of_a_rule(folder: Path, tmp_path: Path, call: Called) -> None:
    """XY on a mesh is what the scores assume: equal loads. A later mapping leaves no old routes behind."""
    run("map", folder / "g.json", "--machine", "mesh:3x3", "-t", 60, "--engines", "first-fit", "--route",
        "xy", "--out", tmp_path)  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text())
    value = {o["name"]: o["value"] for o in report["routing"]["objectives"]}
    assert report["routing"]["rule"] == "xy" and report["routing"]["prohibited"] == 16
    assert value == {name: report["scores"][name] for name in ("max-link", "total-link")}
    assert "Routes: xy" in (tmp_path / "report.html").read_text()
    code, text, _ = call("verify", tmp_path)
    assert code == 0 and "flow-deadlock" in text
    (tmp_path / "route-report.json").write_text("{}")
    run(
        "map",
        folder / "g.json",
        "--machine",
        "mesh:3x3",
        "-t",
        1,
        "--engines",
        "first-fit",
        "--out",
        tmp_path,
    )
    assert not [name for name in os.listdir(tmp_path) if "route" in name]


def test_map_chooses_routes_after_the_mapping(folder: Path, tmp_path: Path) -> None:
    """Chosen routes are no worse than the machine's own, and checked."""
    run("map", folder / "g.json", "--machine", "mesh:3x3", "-t", 5, "--engines", "multilevel", "--route", "chosen",
        "--out", tmp_path)  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text())
    value = {o["name"]: o["value"] for o in report["routing"]["objectives"]}
    assert value["max-link"] <= report["scores"]["max-link"]
    assert {"flows", "flow-routes", "flow-deadlock", "link-loads"} <= {
        c["name"] for c in report["checks"] if c["ok"]
    }
    assert (tmp_path / "route-events.jsonl").exists()


def test_a_mapping_without_the_routes_asked_for_is_no_success(
    folder: Path, tmp_path: Path, call: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code 5, whether one objective was asked for or several in order; the mapping is there and agrees with its report."""
    monkeypatch.setattr(map_routes, "routes_after", lambda *_: None)
    for objective in ("hops", "hops,max-link"):
        code, _, errors = call("map", folder / "g.json", "--machine", "mesh:3x3", "-t", 2,
                               "--objective", objective, "--route", "chosen", "--out", tmp_path)  # fmt: skip
        assert code == 5 and "no routes were found in the time left" in errors
        assert json.loads((tmp_path / "report.json").read_text())["routing"] is None
        assert call("verify", tmp_path)[0] == 0


def test_map_places_and_routes_in_turns(folder: Path, tmp_path: Path, call: Called) -> None:
    """``max-link`` is that of the routes written: no worse than at first or than XY, its bound re-checks, a wrong claim shows."""
    run("map", folder / "g.json", "--machine", "mesh:4x4", "-t", 4, "--objective", "max-link", "--route", "chosen",
        "--out", tmp_path)  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text())
    found = loads(json.loads((tmp_path / "flow-routes.json").read_text()))
    assert report["objective"] == report["scores"]["max-link"] == max(found.values())
    assert report["inputs"]["in_turns"] and report["objective"] <= report["inputs"]["first_value"]
    own = json.loads(call("score", tmp_path, "--json")[1])["scores"]
    assert 0 < report["bound"] <= report["objective"] <= own["max-link"]
    code, text, _ = call("verify", tmp_path, "--bound", "--trust-solver")
    assert code == 0 and "bound link-load (full)" in text and "link-loads" in text, text
    report["objective"] -= 1
    (tmp_path / "report.json").write_text(json.dumps(report))
    code, text, _ = call("verify", tmp_path)
    assert code == 1 and "FAILED  objective" in text


def test_what_cannot_be_done_in_turns_is_done_one_after_the_other(folder: Path, tmp_path: Path) -> None:
    """The reason is named; objective and scores are those of the machine's own routes."""
    done = run("map", folder / "g.json", "--machine", "mesh:3x3", "-t", 2, "--objective", "max-link", "--engines",
               "multilevel", "--route", "chosen", "--out", tmp_path)  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text())
    assert "mapping first, routes after it: --engines" in done.stderr
    assert "in_turns" not in report["inputs"] and report["routing"]["rule"] == "chosen"
    assert report["objective"] >= report["routing"]["objectives"][0]["value"]
    assert all(c["ok"] for c in report["checks"])


def test_export_writes_both_files(folder: Path, tmp_path: Path, call: Called) -> None:
    """The counts it names are those of the mapping."""
    code, text, _ = call("export", *mapping(folder), "--out", tmp_path, "--json")
    result = json.loads(text)
    assert code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arch.yaml", "network.yaml"]
    graph = json.loads((folder / "g.json").read_text())
    edges = [(int(e["source"][1:]), int(e["target"][1:]), e["weight"]) for e in graph["edges"]]
    columns = sum(w * abs(u % SIDE - v % SIDE) for u, v, w in edges)
    counts = result["expected"]
    assert counts["hops_x"] == columns and counts["messages"] == sum(w for _, _, w in edges)
    assert result["energy"] == pytest.approx(counts["network_energy"] - counts["own_core_energy"])


def test_bad_input_is_one_line(folder: Path, tmp_path: Path, refused: Callable[..., None]) -> None:
    """Turns that disconnect a pair name it; tables too small say where; faults, objectives, tools, rules."""
    machine = tmp_path / "cut.toml"
    machine.write_text('name = "cut"\ncores = [3, 3]\nfaulty_links = [[[0, 0], [0, 1]], [[0, 0], [1, 0]]]\n')
    out = ["--out", tmp_path / "out"]
    everything = "EN,ES,WN,WS,NE,NW,SE,SW"
    refused("route", *mapping(folder), "--turns", everything, *out, words=("disconnects core", "from core"))
    refused("route", *mapping(folder), "--table-limit", 1, *out, words=("table entries are missing", "core"))
    refused("route", *mapping(folder)[:3], "--machine", machine, *out, words=("core 0",))
    refused(
        "route", *mapping(folder), "--objective", "hops", *out, words=("unknown routing objective 'hops'",)
    )
    refused(
        "map",
        folder / "g.json",
        "--machine",
        "mesh:3x3",
        "--route",
        "zigzag",
        *out,
        words=("'zigzag'", "odd-even"),
    )
    refused("export", *mapping(folder), "--to", "excel", *out, words=("'excel'", "sanafe"))
    assert not (tmp_path / "out" / "flow-routes.json").exists()
