"""What is refused because no arithmetic would bear it, and scores that are left out instead of losing an answer."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from command_support import run_here

import nmsolve
from nmsolve.hw.magnitude import uncomputable
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem


def run(*arguments: object) -> CompletedProcess[str]:
    return run_here(*arguments, code=None)


RING = nmsolve.LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0])


def heavy(weight: float) -> nmsolve.LogicGraph:
    return nmsolve.LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0], [weight] * 4)


@pytest.mark.parametrize("objective", ["hops", "connectivity", "energy", "max-link"])
@pytest.mark.parametrize("weight", [1e30, 1e160, 1e307])
def test_too_much_traffic_is_refused_and_not_called_infeasible(objective: str, weight: float) -> None:
    with pytest.raises(InputError, match=f"{objective} could reach"):
        nmsolve.map(heavy(weight), nmsolve.machine("mesh:2x2"), time_limit=2, objective=objective)


def test_much_traffic_is_mapped() -> None:
    result = nmsolve.map(heavy(2.0**80), nmsolve.machine("mesh:2x2"), time_limit=10)
    assert result.objective == 4 * 2.0**80 and result.status == "optimal"


def test_long_distances_are_refused() -> None:
    with pytest.raises(InputError, match="hops could reach"):
        nmsolve.map(RING, Machine("far", (1, 1), (2, 2), link_weight=1e29), time_limit=2)
    for values in (
        {"link_weight": 1e31},
        {"energy": {"link_x": Figure(1e31)}},
        {"latency": {"router": Figure(float("inf"))}},
    ):
        with pytest.raises(InputError, match=r"1e30|is 1e"):
            Machine("far", (1, 1), (2, 2), **values)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1e30"):
        Machine("far", (1, 1), (1, 2), distance_matrix=np.array([[0, 1e30], [1, 0]]))


def test_sizes_and_limits_that_cannot_be_added_up_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="capacity of neurons"):
        Machine("m", (1, 1), (2, 2), capacity={"neurons": 2**63})
    graph = nmsolve.LogicGraph.from_edges(3, [0], [1], sizes=np.full((3, 1), 2**61))
    with pytest.raises(InputError, match=r"the nodes need 6.9.*neurons in all"):
        MappingProblem(graph, Machine("m", (1, 1), (2, 2), capacity={"neurons": 5}))
    with pytest.raises(InputError, match="room for"):
        nmsolve.map(RING, nmsolve.machine("mesh:2x2"), time_limit=1, balance=1e308)
    for text in ("18446744073709551616", "9007199254740993", "1e300"):
        path = tmp_path / "m.toml"
        path.write_text(f"cores = [2, 2]\n[capacity]\nneurons = {text}\n")
        with pytest.raises(InputError, match=r"capacity\.neurons"):
            nmsolve.machine(str(path))


def test_capacity_beyond_all_sizes_is_no_limit() -> None:
    machine = Machine("m", (1, 1), (2, 2), capacity={"neurons": 2**62 - 1})
    result = nmsolve.map(RING, machine, time_limit=10)
    assert result.status == "optimal" and result.objective == 0


@pytest.fixture
def free_of_charge(tmp_path: Path) -> Path:
    """A machine with a dead link on which going east costs no energy."""
    path = tmp_path / "m.toml"
    path.write_text("cores = [2, 3]\nfaulty_links = [[[0, 0], [0, 1]]]\n[energy]\nlink_y = 2.0\n")
    return path


def test_score_that_cannot_be_computed_is_left_out(tmp_path: Path, free_of_charge: Path) -> None:
    graph = tmp_path / "g.json"
    edges = [{"source": i, "target": (i + 1) % 4, "weight": 2} for i in range(4)]
    graph.write_text(json.dumps({"nodes": [{"id": i} for i in range(4)], "edges": edges}))
    out = tmp_path / "out"
    found = run("map", graph, "-m", free_of_charge, "-t", 10, "-o", out)
    assert found.returncode == 0, found.stderr
    report = json.loads((out / "report.json").read_text())
    assert report["status"] == "optimal" and all(check["ok"] for check in report["checks"])
    assert "energy" not in report["scores"] and "a link costs 0 energy" in report["left_out"]["energy"]
    assert run("verify", out, "--bound").returncode in (0, 6)  # 6: rests on a solver's word
    assert run("score", out).returncode == 0
    for more in (("--objective", "hops,energy"), ("--pareto", "hops,energy")):
        done = run("map", graph, "-m", free_of_charge, "-t", 5, "-o", out / "2", *more)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr  # before any search
    asked = run("map", graph, "-m", free_of_charge, "-t", 5, "-o", out / "2", "--objective", "energy")
    assert asked.returncode == 2 and not (out / "2").exists() and asked.stderr.count("\n") == 1


def test_uncomputable_names_energy_and_latency(free_of_charge: Path) -> None:
    assert list(uncomputable(nmsolve.machine(str(free_of_charge)))) == ["energy"]
    slow = Machine("m", (1, 1), (2, 2), faulty_links=((0, 1),), latency={"link_y": Figure(1.0)})
    assert list(uncomputable(slow)) == ["latency-average", "latency-max"]
    assert not uncomputable(nmsolve.machine("mesh:2x2"))
