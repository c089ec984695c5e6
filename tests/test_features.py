"""What engines take follows from one comparison of what they name with what a problem has."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from nmsolve.model.features import Feature, Takes, takes_of
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.features import ANY, FEATURES
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.joint.registry import REGISTRY as JOINT
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine

#: A problem is the set of letters it has; ``a`` and ``b`` are rare.
LETTERS = {
    "a": Feature("apples", lambda p: "a" in p, rare=True),
    "b": Feature(lambda p: f"bread as in {p}", lambda p: "b" in p, rare=True),
    "c": Feature("cherries", lambda p: "c" in p),
}


@pytest.mark.parametrize(
    ("cases", "problem", "said"),
    [
        ("", "", None),
        ("", "c", None),
        ("", "a", "it does not support apples"),
        ("a", "a", None),
        ("a", "", None),
        ("+a", "", "it is only for apples"),
        ("+a", "ac", None),
        ("-c", "c", "it does not support cherries"),
        ("a", "bc", "it does not support bread as in bc"),
        ("a -c | b", "bc", None),
        ("a -c | b", "ac", "it does not support cherries"),
        ("a b -c | b", "abc", "it does not support cherries"),
        ("-c | b +a", "b", "it does not support bread as in b"),
    ],
)
def test_a_problem_is_taken_if_one_case_takes_it(cases: str, problem: str, said: str | None) -> None:
    """Else the first reason of the nearest case is given; limits are asked last."""
    assert Takes(LETTERS, cases)(problem) == said
    assert takes_of(LETTERS)(cases, lambda p: None, lambda p: "too large")(problem) == (said or "too large")


def test_names_of_features_are_checked() -> None:
    with pytest.raises(ValueError, match="aple"):
        Takes(LETTERS, "aple")("")
    assert Takes(LETTERS, "a | b").handles("b") and not Takes(LETTERS, "a -c").handles("c")


def test_every_objective_is_one_kind_and_somebody_maps_and_bounds_it() -> None:
    graph = LogicGraph.from_edges(6, [0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 0], multicast=np.arange(6) < 2)
    for objective in OBJECTIVES:
        problem = MappingProblem(graph, Machine("m", (1, 1), (2, 2)), objective, node_limit=2)
        kinds = {name for name in ANY.split() if FEATURES[name].has(problem)}
        assert len(kinds) == 1, objective
        takes = [e for e in map(make_engine, REGISTRY) if e.refuses(problem) is None]
        assert {"mappings", "bounds"} <= {e.finds for e in takes}, objective


def test_every_objective_is_on_the_page_of_objectives() -> None:
    """Its row stands under the heading or the bold word that its record names, and only objectives have rows."""
    page = (Path(__file__).resolve().parent.parent / "docs" / "objectives.md").read_text("utf-8")
    table = page.split("\n## What can be minimised")[1].split("\n\n")[1]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(OBJECTIVES)
    for objective in OBJECTIVES.values():
        assert re.search(rf"^(## |\*\*){re.escape(objective.section)}", page, re.MULTILINE), objective


def test_every_engine_names_features_that_exist() -> None:
    """The names are read at the first question, so that starting costs nothing."""
    problem = MappingProblem(LogicGraph.from_edges(2, [0], [1]), Machine("m", (1, 1), (1, 2)))
    for engine in map(make_engine, REGISTRY):
        engine.refuses(problem)
    for entry in JOINT.values():
        assert getattr(entry.make().refuses, "handles", lambda name: True)("pairs") in (True, False)
