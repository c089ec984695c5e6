"""``nmsolve gap``: bounds for mappings of other tools."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here as run

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_instance, save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import bound_mapping as bounding
from nmsolve.solvers.mapping.api import make_problem

NUG12 = Path(__file__).resolve().parent.parent / "nmsolve" / "benchmarks" / "instances" / "nug12.dat"


def random_problem(seed: int) -> MappingProblem:
    """Five nodes on a 2x3 mesh, one per core, or on 1x3 with two."""
    rng = np.random.default_rng(seed)
    source, target = np.nonzero(np.triu(rng.random((5, 5)) < 0.7, 1))
    graph = LogicGraph.from_edges(5, source, target, rng.integers(1, 9, len(source)).astype(float), name="g")
    shape, limit = (("mesh:2x3", 1), ("mesh:1x3", 2))[seed % 2]
    return MappingProblem(graph, load_machine(shape), "hops", (), limit)


def least(problem: MappingProblem) -> float:
    """The optimum by trying everything."""
    best = np.inf
    for core in itertools.product(range(problem.cores), repeat=problem.n):
        if np.bincount(core).max() <= problem.node_limit:
            best = min(best, objective_value(problem, np.array(core)))
    return float(best)


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_is_above_the_optimum_and_the_mapping_stays(seed: int) -> None:
    """Without exact engines: the bound, the gap, and every certificate, against all mappings there are."""
    problem = random_problem(seed)
    core = np.arange(5) if problem.one_per_core else np.array([2, 0, 1, 1, 0])
    names = ["star", "projection", "parts"]
    found = bounding(problem, core, time_limit=20, engines=names)
    result = found.result
    assert found.better is None and (result.core == core).all()
    assert result.objective == objective_value(problem, core)
    assert result.bound is not None and 0 < result.bound <= least(problem)
    assert result.gap == pytest.approx((result.objective - result.bound) / result.objective)
    assert all(check_bound(problem, b, core).ok for b in result.bounds)


def test_an_exact_engine_closes_the_gap_from_below_only() -> None:
    """The optimum becomes the bound; the better mapping is handed over beside the given one."""
    problem = random_problem(2)
    best = least(problem)
    core = max(
        (np.array(p) for p in itertools.permutations(range(5))), key=lambda p: objective_value(problem, p)
    )
    found = bounding(problem, core, time_limit=5, engines=["branch-bound"])
    assert found.result.bound == best < found.result.objective and found.result.status == "feasible"
    assert found.better is not None and objective_value(problem, found.better) == best


def test_only_bounds_that_can_be_recomputed_are_kept_from_before() -> None:
    """A true certificate counts; one that claims more, and one that rests on a solver's word, do not."""
    graph, machine = load_instance(NUG12)
    assert machine is not None
    problem, core = make_problem(graph, machine), np.arange(12)
    good = bounding(problem, core, time_limit=20, engines=["projection"]).result.bounds
    raised = [replace(b, value=b.value + 5) for b in good]
    word = Bound(1e6, "cpsat", "full", {"status": "optimal"})
    weak = bounding(problem, core, time_limit=2, engines=["star"]).result
    kept = bounding(problem, core, time_limit=2, engines=["star"], known=good).result
    lied = bounding(problem, core, time_limit=2, engines=["star"], known=[*raised, word]).result
    assert weak.bound < kept.bound == good[0].value and lied.bound == weak.bound


def test_a_mapping_that_breaks_a_rule_has_no_gap() -> None:
    """Capacity, and a side constraint by name."""
    problem = random_problem(0)
    with pytest.raises(InputError, match="core 0 holds 2 nodes, its limit is 1"):
        bounding(problem, np.array([0, 0, 1, 2, 3]))
    pinned = replace(problem, constraints=(SideConstraint("camera", "pin", (0,), (3,)),))
    with pytest.raises(InputError, match="pin 'camera': node 0 is on core 0"):
        bounding(pinned, np.arange(5))


def test_parts_of_metis_with_a_placement_get_a_verifiable_gap(tmp_path: Path) -> None:
    """From .part.4 and a placement to certificates that verify; exit 3 where the asked gap is not reached."""
    rng = np.random.default_rng(3)
    lines = [f"{u} {v} {rng.integers(1, 9)}" for u in range(1, 41) for v in range(1, u) if rng.random() < 0.2]
    text = "%%MatrixMarket matrix coordinate integer symmetric\n"
    (tmp_path / "g.mtx").write_text(text + f"40 40 {len(lines)}\n" + "\n".join(lines) + "\n")
    (tmp_path / "g.part.4").write_text("\n".join(str(u % 4) for u in range(40)) + "\n")
    (tmp_path / "place.txt").write_text("3\n1\n0\n2\n")
    out = tmp_path / "out"
    common = ("--graph", tmp_path / "g.mtx", "--machine", "mesh:2x2", "--placement", tmp_path / "place.txt")
    run(
        "gap", tmp_path / "g.part.4", *common, "--engines", "star,joint", "--time-limit", "12", "--gap", "1%",
        "--out", out, "--json", code=3,
    )  # fmt: skip
    report = json.loads((out / "report.json").read_text())
    assert report["status"] == "feasible" and 0 < report["bound"] < report["objective"]
    at = json.loads((out / "mapping.json").read_text())
    assert list(zip(at["row"], at["col"], strict=True))[:4] == [(1, 1), (0, 1), (0, 0), (1, 0)]
    assert "recomputed from the certificate" in run("verify", out, "--bound").stdout


def test_the_fields_own_answers_run_directly(tmp_path: Path) -> None:
    """QAPLIB's answer to nug12 with QAPLIB's instance; an answer to another instance is refused in one line."""
    sln = tmp_path / "nug12.sln"
    sln.write_text("12 578\n12 7 9 3 4 8 11 1 5 6 10 2\n")
    run(
        "gap",
        sln,
        "--graph",
        NUG12,
        "--engines",
        "projection",
        "--time-limit",
        "3",
        "--out",
        tmp_path / "o",
    )
    assert (tmp_path / "o" / "solution.sln").read_text() == sln.read_text()
    sln.write_text("12 580\n12 7 9 3 4 8 11 1 5 6 10 2\n")
    done = run("gap", sln, "--graph", NUG12, "--out", tmp_path / "p", code=2)
    assert done.stderr.count("\n") == 1 and "the stated cost is 580, the permutation costs" in done.stderr
    assert not (tmp_path / "p").exists()


def test_a_run_is_improved_in_place_and_no_other_input_is_replaced(tmp_path: Path) -> None:
    """The answer is named by its folder or its file. What no run has signed stays, and so does a graph called as an output."""
    out, other = tmp_path / "run", tmp_path / "other"
    run("map", NUG12, "--engines", "first-fit", "-t", 2, "--out", out)
    before = (out / "solution.sln").read_text()
    for answer in (out, out / "mapping.json"):
        run("gap", answer, "--engines", "star", "-t", 2, "--out", out)
        assert (out / "solution.sln").read_text() == before
        assert json.loads((out / "report.json").read_text())["bound"] > 0
    other.mkdir()
    (other / "solution.sln").write_text(before)
    answer = other / "solution.sln"
    assert "replace this input" in run("gap", answer, "-g", NUG12, "--out", other, code=2).stderr
    graph = tmp_path / "better.json"
    save_graph(random_problem(0).graph, graph)
    run("map", graph, "-m", "mesh:2x3", "--engines", "first-fit", "-t", 2, "--out", tmp_path / "five")
    assert "replace this input" in run("gap", tmp_path / "five", "--out", tmp_path, code=2).stderr
    assert load_instance(graph)[0].n == 5


def test_without_engines_a_better_mapping_is_found_and_both_sides_are_said(tmp_path: Path) -> None:
    """The worst mapping of all stays; the optimum is beside it, and the sentence has both as everything tried says."""
    problem = random_problem(2)
    best = least(problem)
    worst = max(
        (np.array(p) for p in itertools.permutations(range(5))), key=lambda p: objective_value(problem, p)
    )
    found = bounding(problem, worst, time_limit=6)
    value = objective_value(problem, worst)
    assert (found.result.core == worst).all() and found.result.objective == value
    assert found.better is not None and objective_value(problem, found.better) == best
    assert found.result.better_objective == best and found.result.bound == best
    names = [share.engine for share in found.result.engines]
    assert len(names) == len(set(names))
    save_graph(problem.graph, tmp_path / "g.json")
    (tmp_path / "m.part").write_text("".join(f"{core}\n" for core in worst))
    out = tmp_path / "out"
    run("gap", tmp_path / "m.part", "-g", tmp_path / "g.json", "-m", "mesh:2x3", "-t", 6, "--out", out)
    report = json.loads((out / "report.json").read_text())
    text = f"A mapping with hops {best:.0f} (-{100 * (value - best) / value:.2f} %) was found (better.json); no mapping is below"
    assert f"{text} {best:.0f}." in report["contributions"]
    again = bounding(problem, np.array(found.better), time_limit=6)
    assert again.better is None and again.result.better_objective is None and again.result.status == "optimal"


@pytest.mark.parametrize("seed", range(4))
def test_both_sides_hold_against_everything_tried(seed: int) -> None:
    """No better mapping below the optimum, no bound above it, and none of the certificates of both searches is wrong."""
    problem = random_problem(seed)
    core = np.arange(5) if problem.one_per_core else np.array([2, 0, 1, 1, 0])
    found = bounding(problem, core, time_limit=4)
    best, result = least(problem), found.result
    assert result.bound is not None and result.bound <= best <= objective_value(problem, core)
    if found.better is not None:
        assert best <= objective_value(problem, found.better) < result.objective
    else:
        assert result.objective == best
