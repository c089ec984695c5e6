"""``--method``: a published method alone and once, and bounds of its answer with the rest of the time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from command_support import run_here
from golden_runs import EXAMPLES
from test_cli_pipeline import network

import nmsolve
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine

GRID = nx.grid_2d_graph(4, 5)
#: The method and its engine for every kind that has one.
ENGINES = {"m1": "m1-policy", "m2": "m2", "m3": "threshold", "m4": "m4", "m5": "m5-policy"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.onnx"
    network(path)
    return path


def solved(about: str, model: Path, **how: Any) -> Any:
    """The answer of the function that has a method."""
    how = {"time_limit": 20.0, "seed": 3, **how}
    if about in ("m1", "m2"):
        return nmsolve.map(GRID, "mesh:4x5", **how)
    if about == "m3":
        return nmsolve.assign(model, "laptop-npu", bindings="batch=8", **how)
    if about == "m4":
        return nmsolve.schedule(EXAMPLES / "tasks.json", **how)
    return nmsolve.pipeline(model, machine="mesh:2x2", bind="batch=8", **how)


@pytest.mark.parametrize("method", ENGINES)
def test_the_answer_is_the_methods_own_and_has_a_bound(method: str, model: Path) -> None:
    """Only its engine found answers, in one run; the bound is below the optimum and therefore not above its answer."""
    answer = solved(method, model, method=method)
    found = {e.engine for e in answer.events if e.kind == "incumbent" and e.objective >= answer.objective}
    begun = [e for e in answer.events if e.kind == "incumbent" and e.engine == ENGINES[method]]
    assert found == {ENGINES[method]} and begun
    assert answer.engines[0].engine == ENGINES[method] and answer.objective == answer.engines[0].best
    best = solved(method, model)
    assert best.status == "optimal" and best.objective <= answer.objective
    assert answer.bound is not None and answer.bound <= best.objective * (1 + 1e-9)
    assert answer.bound > 0 and (answer.status == "optimal") == (answer.gap == 0)
    seconds = [e.seconds for e in answer.events]
    assert seconds == sorted(seconds) and [e.kind for e in answer.events].count("end") == 1


def test_it_runs_once(model: Path) -> None:
    """`m2` alone would begin again with another seed until the time is over."""
    again = solved("m2", model, engines=["m2"], time_limit=4.0)
    once = solved("m2", model, method="m2", time_limit=4.0)
    assert once.engines[0].offers < again.engines[0].offers and once.objective >= again.objective


def test_the_command_writes_what_verify_believes(tmp_path: Path) -> None:
    done = run_here("schedule", EXAMPLES / "tasks.json", "--method", "m4", "-t", "10", "-o", tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert done.returncode == 0 and report["engines"][0]["engine"] == "m4"
    assert run_here("verify", tmp_path, "--bound").returncode == 0


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"method": "m4"}, "method 'm4'; expected m1 or m2"),
        ({"method": "m2", "engines": ["star"]}, "--method and --engines"),
        ({"method": "m2", "warm_start": list(range(20))}, "an answer to start from"),
        ({"method": "m2", "objective": "hops,max-link"}, "several objectives"),
        ({"method": "m2", "route": "joint"}, "free routes"),
    ],
)
def test_what_it_does_not_take(how: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        nmsolve.map(GRID, "mesh:4x5", time_limit=5.0, **how)


def test_a_problem_that_the_method_refuses() -> None:
    far = Machine("m", (1, 1), (1, 20), distance_matrix=np.ones((20, 20)) - np.eye(20))
    with pytest.raises(InputError, match="method 'm1': it does not support machines given by a distance"):
        nmsolve.map(GRID, far, method="m1", time_limit=5.0)


def test_several_objectives_of_other_kinds() -> None:
    with pytest.raises(InputError, match="several objectives"):
        nmsolve.schedule(EXAMPLES / "tasks.json", objective="makespan,energy", method="m4", time_limit=5.0)


def test_wrong_names_on_the_command_line(tmp_path: Path) -> None:
    for words in (("map", EXAMPLES / "first.json", "-m", "mesh:2x2"), ("schedule", EXAMPLES / "tasks.json")):
        done = run_here(*words, "--method", "m9", "-o", tmp_path / "out", code=None)
        assert done.returncode == 2 and done.stderr.startswith("error: --method: method 'm9'; expected m")
        assert not (tmp_path / "out").exists()


def test_a_given_answer_has_no_method() -> None:
    given = nmsolve.map(GRID, "mesh:4x5", time_limit=5.0, engines=["first-fit"])
    with pytest.raises(InputError, match="method 'm2' and a given answer"):
        nmsolve.gap(given, method="m2", time_limit=5.0)
    with pytest.raises(InputError, match="expected none: no published method"):
        nmsolve.route(given, method="m2", time_limit=5.0)
