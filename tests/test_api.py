"""The Python interface: what goes in is checked, what comes out is true, and nothing heavy is loaded early."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys

import numpy as np
import pytest

import nmsolve
from nmsolve.api import fronts
from nmsolve.hw.scores import objective_value
from nmsolve.kinds.mapping import python
from nmsolve.kinds.python.how import run_options
from nmsolve.model import clock
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping import api, auto, memory_estimate
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine
from nmsolve.solvers.run import Options
from nmsolve.solvers.search.memory import held_now

QUICK = {"engines": ["first-fit", "star"], "time_limit": 20}


def random_graph(n=30, m=80, seed=0):
    edges = np.random.default_rng(seed).integers(0, n, (m, 2))
    return nmsolve.LogicGraph.from_edges(n, edges[:, 0], edges[:, 1])


def problem_of(graph, spec="mesh:3x3", limit=4, constraints=()):
    return MappingProblem(graph, nmsolve.machine(spec), "hops", tuple(constraints), limit)


def test_the_docstring_examples_are_true():
    for module in (python, fronts, nmsolve):
        found = doctest.testmod(module)
        assert found.attempted and not found.failed


def test_every_public_name_loads():
    assert set(nmsolve.__all__) <= set(dir(nmsolve))
    for name in nmsolve.__all__:
        assert getattr(nmsolve, name).__doc__
    with pytest.raises(AttributeError, match="nothing"):
        _ = nmsolve.nothing


def test_the_result_is_checked_rescored_and_told():
    seen = []
    problem = problem_of(random_graph())
    result = api.solve(problem, observers=[seen.append], **QUICK)
    assert not check_mapping(problem, result.core)
    assert result.objective == objective_value(problem, result.core) == result.scores["hops"]
    assert (
        0 < result.bound <= result.objective
        and result.gap == (result.objective - result.bound) / result.objective
    )
    assert result.status == "feasible" and result.stop_reason == "exhausted"
    assert seen[0].kind == "start" and seen[-1].kind == "end" and list(result.events) == seen
    assert {s.engine for s in result.engines} == {"first-fit", "star"}
    assert result.wall_seconds > 0 and result.cpu_seconds > 0


def test_equal_runs_give_equal_results():
    problem = problem_of(random_graph())
    one, two = (api.solve(problem, seed=5, **QUICK) for _ in range(2))
    assert (one.core == two.core).all() and one.bound == two.bound
    assert [(e.kind, e.engine, e.objective) for e in one.events] == [
        (e.kind, e.engine, e.objective) for e in two.events
    ]


def test_together_groups_are_merged_for_engines_and_lifted_for_the_user():
    rule = nmsolve.SideConstraint("t", "together", (0, 7, 9))
    pin = nmsolve.SideConstraint("p", "pin", (9,), (4,))
    problem = problem_of(random_graph(), constraints=[rule, pin])
    result = api.solve(problem, **QUICK)
    assert not check_mapping(problem, result.core)
    assert result.core[0] == result.core[7] == result.core[9] == 4


def test_a_tenth_of_a_second_still_gives_an_answer():
    problem = problem_of(random_graph(2000, 8000), "mesh:8x8", 33)
    for workers in (1, 2):
        result = api.solve(problem, time_limit=0.1, workers=workers)
        assert not check_mapping(problem, result.core)


def test_a_limit_counted_from_the_past_still_gives_an_answer_of_use():
    """A moment to search is left where loading took all of the time."""
    problem = problem_of(random_graph())
    result = api.solve(problem, time_limit=2, started=clock.now() - 100)
    first = api.solve(problem, **{**QUICK, "engines": ["first-fit"]})
    assert not check_mapping(problem, result.core) and result.stop_reason in ("time", "gap")
    assert result.objective < first.objective and result.wall_seconds < 103


def test_warm_starts_are_accepted_repaired_or_refused():
    graph = random_graph()
    problem = problem_of(graph)
    good = api.solve(problem, **QUICK).core
    result = api.solve(problem, warm_start=good, **QUICK)
    assert result.events[1].engine == "warm-start" and result.events[1].move == "accepted"
    crowded = np.zeros(30, np.int64)
    result = api.solve(problem, warm_start=crowded, **QUICK)
    assert result.events[1].move == "repaired" and "limit is 4" in result.events[2].text
    for wrong in (np.zeros(3, int), np.full(30, 9), np.full(30, -1), np.zeros(30)):
        with pytest.raises(nmsolve.InputError, match="warm start"):
            api.solve(problem, warm_start=wrong, **QUICK)


def test_all_workers_are_the_cores_that_this_process_may_use(monkeypatch):
    """Of functions, of a search and of a benchmark; searches get their number."""
    monkeypatch.setattr("nmsolve.model.host.cores", lambda: 3)
    assert Options(workers="all").workers == run_options({"workers": "all"})["workers"] == 3
    machine, graph = sized([6, 4, 6, 4])
    assert nmsolve.map(graph, machine, workers="all", **QUICK).objective == 2.0
    with pytest.raises(nmsolve.InputError, match="'some'; expected a whole number above 0, or all"):
        nmsolve.bench("qaplib", workers="some")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engines": ["multilevell"]}, "did you mean 'multilevel'"),
        ({"engines": []}, "no engine"),
        ({"engines": ["projection"]}, "every chosen engine refuses: projection"),
        ({"time_limit": 0}, "time limit"),
        ({"time_limit": float("nan")}, "time limit"),
        ({"gap": -0.1}, "gap"),
        ({"gap": float("nan")}, "gap"),
        ({"workers": 0}, "workers"),
        ({"memory": 0}, "memory budget"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_arguments_are_named(options, words):
    with pytest.raises(nmsolve.InputError, match=words):
        api.solve(problem_of(random_graph()), **options)


def test_an_option_that_does_not_exist_is_refused_by_name():
    graph, machine = random_graph(), nmsolve.machine("mesh:3x3")
    for call in (
        lambda: nmsolve.map(graph, machine, balance=0.5, tim_limit=1),
        lambda: api.solve(problem_of(graph), tim_limit=1),
        lambda: nmsolve.LogicGraph.from_edges(2, [0], [1], tim_limit=1),
    ):
        with pytest.raises(TypeError, match="tim_limit"):
            call()


@pytest.mark.parametrize("balance", [-0.1, float("nan"), float("inf")])
def test_a_wrong_balance_is_named(balance):
    with pytest.raises(nmsolve.InputError, match="balance"):
        nmsolve.map(random_graph(), nmsolve.machine("mesh:3x3"), balance=balance)


def test_what_cannot_fit_is_said_before_any_search():
    graph = nmsolve.LogicGraph.from_edges(5, [0], [1])
    machine = nmsolve.Machine("m", (1, 1), (2, 2), capacity={"neurons": 1})
    with pytest.raises(nmsolve.DoesNotFitError):
        nmsolve.map(graph, machine)


def test_an_engine_that_refuses_is_reported_with_its_reason():
    result = api.solve(problem_of(random_graph()), engines=["projection", "first-fit"], time_limit=20)
    share = {s.engine: s.status for s in result.engines}
    assert share["projection"].startswith("refused: ") and share["first-fit"] == "done"
    assert any(e.kind == "note" and e.engine == "projection" for e in result.events)


@pytest.mark.parametrize("name", REGISTRY)
def test_registered_engines_keep_the_contract(name):
    engine = make_engine(name)
    assert engine.name == name and engine.finds in ("mappings", "bounds", "both")
    reason = engine.refuses(problem_of(random_graph()))
    assert reason is None or (reason and "\n" not in reason)


def sized(sizes):
    """Nodes of these sizes in a ring, on two cores of 10."""
    n = len(sizes)
    graph = nmsolve.LogicGraph.from_edges(
        n, range(n), [(u + 1) % n for u in range(n)], sizes=np.array(sizes)[:, None]
    )
    return nmsolve.Machine("two", (1, 1), (1, 2), capacity={"neurons": 10}), graph


def test_an_exact_engine_in_a_child_proves_the_optimum():
    """Sizes 6, 4, 6, 4 pack in two ways only, and each cuts the ring of four twice."""
    machine, graph = sized([6, 4, 6, 4])
    result = nmsolve.map(graph, machine, engines=["cpsat"], time_limit=60)
    assert (result.status, result.stop_reason, result.objective, result.bound) == ("optimal", "gap", 2.0, 2.0)
    assert [s.engine for s in result.engines] == ["cpsat"] and result.engines[0].cpu_seconds > 0


def test_an_impossible_packing_is_proved_impossible():
    """8, 5, 4, 3 have the total of two cores, but no two of them can stand beside the 8."""
    machine, graph = sized([8, 5, 4, 3])
    result = nmsolve.map(graph, machine, engines=["cpsat"], time_limit=60)
    assert (result.status, result.stop_reason, result.core, result.gap) == (
        "infeasible",
        "exhausted",
        None,
        None,
    )


def test_a_solver_without_memory_costs_only_itself(monkeypatch):
    monkeypatch.setattr(memory_estimate, "FIXED", 0)
    machine, graph = sized([6, 4, 6, 4])
    nmsolve.map(graph, machine, engines=["first-fit"], time_limit=60)  # loads what this process needs itself
    memory = held_now() + 50 * 2**20  # the child cannot even load its solver
    result = nmsolve.map(graph, machine, engines=["first-fit", "cpsat"], time_limit=60, memory=memory)
    assert result.status == "feasible" and result.stop_reason == "memory"
    assert [s.status.split(":")[0] for s in result.engines] == ["done", "memory"]


def test_no_plan_is_made_once_the_time_is_over(monkeypatch):
    """Loading a large network took all of it: a plan takes longer than first fit, and nothing of it would end."""
    monkeypatch.setattr("nmsolve.solvers.mapping.task.automatic", lambda *_: pytest.fail("planned"))
    late = {"time_limit": 1.0, "started": clock.now() - 9}
    result = api.solve(problem_of(random_graph(2000, 210_000), "mesh:8x8", 33), **late)
    assert result.status == "feasible" and result.stop_reason == "time"


def test_several_workers_find_what_one_finds():
    machine, graph = sized([6, 4, 6, 4])
    result = nmsolve.map(graph, machine, workers=2, time_limit=60)
    assert result.status == "optimal" and result.objective == 2.0


@pytest.mark.parametrize(
    ("n", "spec", "limit", "objective", "wanted", "unwanted"),
    [
        (
            9,
            "mesh:3x3",
            1,
            "hops",
            {"star", "anneal", "tabu", "branch-bound", "cpsat"},
            {"multilevel", "nets"},
        ),
        (
            100,
            "mesh:10x10",
            1,
            "hops",
            {"split", "anneal", "tabu"},
            {"projection", "multilevel", "cpsat", "branch-bound"},
        ),
        (
            8,
            "mesh:2x2",
            2,
            "hops",
            {"star", "joint", "multilevel", "cpsat"},
            {"anneal", "nets", "projection"},
        ),
        (500, "mesh:4x4", 33, "cut", {"star", "multilevel"}, {"anneal", "nets", "cpsat"}),
        (500, "mesh:4x4", 33, "connectivity", {"star", "nets"}, {"multilevel", "anneal", "cpsat"}),
    ],
)
def test_automatic_mode_chooses_by_kind_and_size(n, spec, limit, objective, wanted, unwanted):
    problem = MappingProblem(random_graph(n, 4 * n), nmsolve.machine(spec), objective, (), limit)
    refused = {}
    names = {s.engine.name for s in auto.automatic(problem, 60.0, 1, refused.__setitem__)}
    assert wanted <= names and not unwanted & names
    assert not names & set(refused)


def test_market_prices_take_over_where_nodes_and_their_neighbours_are_many():
    """On large meshes with many nodes on a core; not with few neighbours, few nodes on a core, or few nodes."""
    for n, edges, spec, wanted in (
        (100_000, 1_300_000, "mesh:16x16", "external"),
        (100_000, 1_000_000, "mesh:16x16", "multilevel"),
        (30_000, 400_000, "mesh:64x64", "multilevel"),
        (20_000, 400_000, "mesh:8x8", "multilevel"),
    ):
        problem = MappingProblem(random_graph(n, edges), nmsolve.machine(spec), "hops")
        names = {s.engine.name for s in auto.automatic(problem, 60.0, 2, lambda *_: None)}
        assert names & {"external", "multilevel"} == {wanted}


def test_a_bound_that_would_not_end_in_its_share_is_left_out_and_this_is_said():
    problem = MappingProblem(random_graph(1000, 4000), nmsolve.machine("mesh:32x32"), "hops", (), 1)
    for seconds, late in ((5.0, True), (600.0, False)):
        left_out = {}
        names = {s.engine.name for s in auto.automatic(problem, seconds, 1, left_out.__setitem__)}
        assert ("split" in names) is not late
        assert left_out.get("split", "").startswith("not run") is late


CHILD = """
import nmsolve, numpy as np, sys
from nmsolve.solvers.mapping import api
edges = np.random.default_rng(0).integers(0, 300, (2000, 2))
graph = nmsolve.LogicGraph.from_edges(300, edges[:, 0], edges[:, 1])
seen = lambda e: print(e.kind, flush=True)
result = nmsolve.map(graph, nmsolve.machine("mesh:4x4"), time_limit=60, engines=["m2"], observers=[seen])
print("result", result.status, result.stop_reason, result.wall_seconds < 50, len(result.core))
"""


def test_ctrl_c_returns_the_best_answer():
    run = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    for line in run.stdout:
        if line.startswith("incumbent"):
            break
    run.send_signal(2)
    out, _ = run.communicate(timeout=60)
    assert "result feasible interrupt True 300" in out and run.returncode == 0


def test_importing_the_package_is_light():
    code = "import sys, json, nmsolve; print(json.dumps(list(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numba", "numpy", "scipy", "ortools", "highspy", "matplotlib"} & set(json.loads(out))


def test_what_cannot_fit_is_refused_before_any_search():
    """Five neurons, four cores for one each: by ``map`` and by ``solve``, as on the command line, and no search begins."""
    graph = nmsolve.LogicGraph.from_edges(5, [0, 1], [1, 2], sizes=np.ones((5, 1), int))
    machine, seen = Machine("small", (1, 1), (2, 2), capacity={"neurons": 1}), []
    with pytest.raises(nmsolve.DoesNotFitError, match="neurons"):
        nmsolve.map(graph, machine, observers=[seen.append], **QUICK)
    with pytest.raises(nmsolve.DoesNotFitError, match="neurons"):
        api.solve(MappingProblem(graph, machine), observers=[seen.append], **QUICK)
    assert seen == []
