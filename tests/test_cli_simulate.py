"""``nmsolve simulate``: a mapping's step, loads, sweeps, patterns, traces; files, figures, bad input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmsolve.hw.machines import load_machine
from nmsolve.hw.noc import CONFIG_B, CONFIG_SPIKE
from nmsolve.hw.routing.energy import energy_parts
from nmsolve.hw.routing.lengths import extra_links, route_lengths
from nmsolve.hw.routing.named import named_routes
from nmsolve.model.routing.flows import Flows

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

#: Source core, target core, messages per step of the mapping here (node i on core i of a 3x3 mesh).
PAIRS = [(0, 8, 2), (8, 0, 1), (2, 6, 3), (1, 4, 2), (5, 3, 4), (7, 2, 1)]
MACHINE = "mesh:3x3"

Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def mapping(tmp_path: Path) -> list[object]:
    """Arguments that name the mapping."""
    graph = {
        "directed": True, "multigraph": False, "graph": {"name": "pairs"},
        "nodes": [{"id": f"n{i}", "sizes": {"neurons": 1}} for i in range(9)],
        "edges": [{"source": f"n{u}", "target": f"n{v}", "weight": w} for u, v, w in PAIRS],
    }  # fmt: skip
    (tmp_path / "g.json").write_text(json.dumps(graph))
    (tmp_path / "m.part").write_text("\n".join(map(str, range(9))) + "\n")
    return [tmp_path / "m.part", "--graph", tmp_path / "g.json", "--machine", MACHINE]


def simulated(call: Called, out: Path, *arguments: object) -> dict[str, Any]:
    """simulation.json of a run that ends with 0."""
    code, _, error = call("simulate", *arguments, "--out", out)
    assert code == 0, error
    return json.loads((out / "simulation.json").read_text())


def flows() -> Flows:
    """The mapping's traffic."""
    u, v, w = zip(*PAIRS, strict=True)
    return Flows.of_pairs(u, v, np.array(w, float))


def test_a_step_of_a_mapping_is_delivered_and_priced(mapping: list[object], tmp_path: Path) -> None:
    """As a process: every message arrives, not faster than light, and the network's energy is that of its routes."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "nmsolve", "simulate", *map(str, mapping), "--out", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["type"] == "result" and result["routing"] == "routes"
    one = result["runs"][0]
    assert (
        one["load"] is None
        and one["ended"] == "drained"
        and one["latency"]["packets"] == sum(w for _, _, w in PAIRS)
    )
    assert result["step_drain"][0] >= CONFIG_SPIKE.zero_load(4)
    machine = load_machine(MACHINE)
    routes = named_routes(machine, flows(), "xy")
    assert sum(result["energy"].values()) == pytest.approx(energy_parts(machine, flows(), routes).total)
    assert sum(result["link_flits"]) == sum(
        w * (abs(u // 3 - v // 3) + abs(u % 3 - v % 3)) for u, v, w in PAIRS
    )
    page = (out / "simulation.html").read_text()
    assert page.count("<svg") == 5 and "have arrived" in page and "(1, 2) → (1, 0) (4)" in page


def test_an_almost_empty_network_has_its_zero_load_latency(
    call: Called, mapping: list[object], tmp_path: Path
) -> None:
    """Mean over the flows by rate, in the simulator and in the estimate; packets of four flits."""
    report = simulated(call, tmp_path / "o", *mapping, "--load", 0.004, "--config", "b", "--cycles", 60_000)
    far = [abs(u // 3 - v // 3) + abs(u % 3 - v % 3) for u, v, _ in PAIRS]
    rate = [w for _, _, w in PAIRS]
    zero = CONFIG_B.zero_load(float(np.average(far, weights=rate)))
    assert report["runs"][0]["latency"]["mean"] == pytest.approx(zero, rel=0.04)
    assert report["estimates"][0]["trusted"] and report["estimates"][0]["mean"] == pytest.approx(
        zero, rel=0.04
    )


def test_a_sweep_finds_saturation(call: Called, mapping: list[object], tmp_path: Path) -> None:
    """Loads rise, the highest stable one is the edge, latency grows towards it; the curve is drawn."""
    report = simulated(call, tmp_path / "o", *mapping, "--sweep", "--cycles", 5000, "--warmup", 1000)
    loads = [run["load"] for run in report["runs"]]
    assert loads == sorted(loads) and len(loads) >= 8
    stable = [run["load"] for run in report["runs"] if run["stable"]]
    assert report["saturation"]["stable"] == max(stable)
    mean = [run["latency"]["mean"] for run in report["runs"] if run["stable"]]
    assert mean[-1] > mean[0]
    assert "Latency over load" in (tmp_path / "o" / "simulation.html").read_text()


def test_patterns_need_only_a_machine(call: Called, tmp_path: Path) -> None:
    """Accepted is offered below saturation; equal seeds give equal files but for the clock and the run's id."""
    arguments = [
        "--machine",
        "mesh:4x4",
        "--pattern",
        "transpose",
        "--route",
        "odd-even",
        "--load",
        0.05,
        "--cycles",
        3000,
    ]
    first, second = (simulated(call, tmp_path / name, *arguments) for name in "ab")
    for report in (first, second):
        report["seconds"], report["runs"][0]["cycles_per_second"] = 0, 0
    assert first.pop("run") != second.pop("run")
    assert first == second and first["routing"] == "odd-even"
    run = first["runs"][0]
    assert run["stable"] and run["accepted"] == pytest.approx(run["offered"], rel=0.1)
    assert first["estimates"] == []


def test_a_trace_needs_only_a_machine(call: Called, tmp_path: Path) -> None:
    """One packet over three links takes what an empty network takes; steps are told one by one."""
    (tmp_path / "t.csv").write_text("step,source,targets,count\n0,0,3,1\n2,3,0,1\n")
    report = simulated(
        call, tmp_path / "o", "--machine", "mesh:1x4", "--trace", tmp_path / "t.csv", "--period", 100
    )
    latency = report["runs"][0]["latency"]
    assert latency["packets"] == 2 and latency["median"] == latency["worst"] == CONFIG_SPIKE.zero_load(3)
    assert (
        len(report["step_drain"]) == 3
        and report["step_drain"][0] == report["step_drain"][2] > report["step_drain"][1]
    )


def test_routes_of_a_file_are_used_and_checked(call: Called, mapping: list[object], tmp_path: Path) -> None:
    """YX routes from flow-routes.json: column links first; routes of other traffic are refused by name."""
    out = tmp_path / "routes"
    code, _, error = call("route", *mapping, "--turns", "yx", "--engines", "named", "-t", 1e8, "--out", out)
    assert code == 0, error
    routes = out / "flow-routes.json"
    report = simulated(call, tmp_path / "o", *mapping, "--routes", routes)
    used = {divmod(link, 4) for link, flits in enumerate(report["link_flits"]) if flits}
    assert (0, 2) in used and (0, 0) not in used
    (tmp_path / "t.csv").write_text("0,2,6,1\n0,0,8,1\n")
    report = simulated(call, tmp_path / "p", *mapping, "--routes", routes, "--trace", tmp_path / "t.csv")
    assert sum(report["link_flits"]) == 8 and report["link_flits"][4 * 2 + 2] == 1
    (tmp_path / "t.csv").write_text("0,2,7,1\n")
    code, _, error = call(
        "simulate", *mapping, "--routes", routes, "--trace", tmp_path / "t.csv", "--out", tmp_path / "q"
    )
    assert code == 2 and "no route for core 2 -> 7" in error


def test_bad_input_is_one_line(call: Called, mapping: list[object], tmp_path: Path) -> None:
    """Times that go back, unknown cores, links without bandwidth, options that do not go together."""
    out = ["--out", tmp_path / "out"]
    trace, router = tmp_path / "t.csv", tmp_path / "r.toml"

    def refused(*arguments: object, words: tuple[str, ...]) -> None:
        code, _, text = call("simulate", *arguments, *out)
        lines = text.strip().splitlines()
        assert code == 2 and len(lines) == 1 and lines[0].startswith("error: "), (code, lines)
        assert all(word in lines[0] for word in words), lines[0]

    trace.write_text("3,0,1,1\n2,0,1,1\n")
    refused(*mapping, "--trace", trace, words=("t.csv:2", "step 2 comes after step 3"))
    trace.write_text("3,0,9,1\n")
    refused(*mapping, "--trace", trace, words=("t.csv:1", "core 9 does not exist"))
    refused(*mapping, "--trace", tmp_path / "none.csv", words=("none.csv",))
    router.write_text("crossing_interval = 0\n")
    refused(*mapping, "--config", router, words=("crossing_interval is 0", "r.toml"))
    router.write_text("buffers = 3\n")
    refused(*mapping, "--config", router, words=("'buffers'", "buffer_flits"))
    refused(*mapping, "--config", "c", words=("unknown router 'c'",))
    refused(*mapping, "--load", 0, words=("a load of 0",))
    refused(*mapping, "--load", 0.1, "--sweep", words=("--load",))
    refused(*mapping, "--steps", 2, words=("--period",))
    refused(*mapping, "--route", "zigzag", words=("'zigzag'", "west-first"))
    torus = tmp_path / "torus.toml"
    torus.write_text('name = "torus"\ncores = [3, 3]\ntorus = true\n')
    refused(*mapping[:3], "--machine", torus, words=("2 virtual channels", "the router has 1"))
    refused("--pattern", "uniform", "--load", 0.1, words=("--machine",))
    refused("--pattern", "swirl", "--load", 0.1, "--machine", MACHINE, words=("'swirl'", "transpose"))
    refused("--pattern", "uniform", "--machine", MACHINE, words=("without a load",))
    refused(words=("nothing to simulate",))
    assert not (tmp_path / "out").exists()


def test_lengths_of_routes() -> None:
    """Links to every target of a tree, and by how much a detour is longer; -1 where a route does not get there."""
    machine = load_machine("mesh:2x3")
    tree = Flows(np.array([0], np.int32), np.array([0, 2]), np.array([2, 5], np.int32), np.ones(1))
    routes = named_routes(machine, tree, "xy")
    assert route_lengths(machine, tree, routes).tolist() == [2, 3] and extra_links(machine, tree, routes) == 0
    from nmsolve.model.routing.routes import Routes

    way = Routes.of_paths(
        [[4 * 0 + 2, 4 * 3 + 0, 4 * 4 + 3]]
    )  # south, east, north: core 0 to core 1 in three links
    pair = Flows.of_pairs([0], [1], [1.0])
    assert route_lengths(machine, pair, way).tolist() == [3] and extra_links(machine, pair, way) == 2
    assert route_lengths(machine, Flows.of_pairs([0], [5], [1.0]), way).tolist() == [-1]


@pytest.mark.parametrize("counts", [{}, {5: 3}, {0: 1, 16383: 9}, {16383: 4}, {12: 1000, 900: 1}])
def test_every_packet_of_a_histogram_is_drawn_or_named(counts: dict[int, int]) -> None:
    """Bars and the number beyond them add up, whatever the histogram; equal input gives equal bytes."""
    from nmsolve.report.pictures_routing import latency_histogram

    histogram = np.zeros(16384, np.int64)
    for latency, packets in counts.items():
        histogram[latency] = packets
    picture = latency_histogram(histogram)
    beyond = re.search(r"([\d,]+) beyond", picture)
    left_out = int(beyond[1].replace(",", "")) if beyond else 0
    assert left_out == counts.get(16383, 0) + (counts.get(900, 0) if 900 in counts else 0)
    assert ("median" in picture) == (left_out < sum(counts.values()) / 2) and picture == latency_histogram(
        histogram
    )


def test_turn_map_counts_what_is_prohibited() -> None:
    """Every board of the map says how many of its turns are prohibited; together they are the set's number."""
    from nmsolve.model.turns import turn_set
    from nmsolve.report.pictures_routing import turn_map

    machine = load_machine("mesh:3x4")
    turns = turn_set("odd-even", machine)
    told = re.findall(r"([\d,]+) of ([\d,]+) prohibited", turn_map(machine, turns))
    assert len(told) == 8 and sum(int(a) for a, _ in told) == turns.prohibited(machine)
    assert all(int(b) == 6 for _, b in told)  # (3 - 1) * (4 - 1) corners of every kind


def test_a_simulation_that_ends_before_any_packet_arrives_draws_no_empty_pictures(
    mapping: list[object], tmp_path: Path, call: Called
) -> None:
    """Of what never moved there is a sentence; a run that goes on has all pictures."""
    for cycles, pictures in ((1, 0), (4000, 5)):
        out = tmp_path / str(cycles)
        result = simulated(call, out, *mapping, "--load", 0.01, "--warmup", 0, "--cycles", cycles)
        page = (out / "simulation.html").read_text()
        assert (result["runs"][0]["latency"]["packets"] == 0) == (pictures == 0)
        assert page.count("<svg") == pictures and ("No packet had arrived" in page) == (pictures == 0)
        assert "<h2>Again</h2>" in page
