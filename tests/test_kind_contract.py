"""Every kind of problem says what commands, functions and benchmarks ask of it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from nmsolve.kinds.kind import Kind
from nmsolve.kinds.registry import ASKED, BENCHES, FOLDERS, bench, kind, kind_of, kinds, options_of
from nmsolve.kinds.stated import StatedKind
from nmsolve.kinds.verbs import GapOptions, ScoreOptions
from nmsolve.model.errors import InputError
from nmsolve.model.lookup import named


def test_all_tables_have_the_same_kinds() -> None:
    assert sorted(ASKED) == sorted(FOLDERS) == sorted(BENCHES) == sorted(one.name for one in kinds())


@pytest.mark.parametrize("one", list(kinds()), ids=lambda one: one.name)
def test_a_kind_is_whole(one: Kind) -> None:
    """Its files are among those that may be replaced, its tables exist, its options are those of its command."""
    assert kind(one.name) is one and {one.answer, one.report, one.proofs} <= set(one.files)
    told = options_of(one.name)
    assert told.OPTIONS is one.options and named(told.OBJECTIVE_TABLE)
    common = {
        "time_limit",
        "gap",
        "seed",
        "workers",
        "engines",
        "memory",
        "warm_start",
        "pareto",
        "points",
        "out",
        "json",
    }
    assert common <= {f.name for f in fields(one.options)}
    assert {"time_limit", "seed", "out", "json"} <= {f.name for f in fields(told.EXPLAIN)}
    assert {method for table in one.method_tables for method in named(table)}
    assert bench(one.name).suites and named(bench(one.name).registry)


@pytest.mark.parametrize(
    "one", [one for one in kinds() if isinstance(one, StatedKind)], ids=lambda one: one.name
)
def test_what_states_a_problem_are_options(one: StatedKind) -> None:
    """Every field of the inputs that a report keeps is an option again, but for what says how objectives were held."""
    stated = {f.name for f in fields(one.options)}
    kept = {name for name in one.inputs.__struct_fields__ if name not in ("before", "whole", "again")}
    assert kept <= stated and one.source in kept


@pytest.mark.parametrize("one", list(kinds()), ids=lambda one: one.name)
def test_an_answer_is_found_by_its_name(one: Kind, tmp_path: Path) -> None:
    """Whatever the folder holds besides, and a file of any other name is a mapping."""
    path = tmp_path / one.answer
    path.write_text("{}")
    assert kind_of(path) == (one, path)
    assert kind_of(tmp_path / "parts.txt")[0].name == "map"


@pytest.mark.parametrize(
    "option",
    [{"pattern": True}, {"nodes": Path("n.csv")}, {"placement": Path("p.txt")}, {"library": Path("l")}],
)
def test_options_for_other_answers_are_not_passed_over(option: dict[str, Any], tmp_path: Path) -> None:
    """By ``score`` and ``gap`` of a plan, which has no use for them, before any file is read."""
    plan = kind("pipeline")
    for ask, options in ((plan.score, ScoreOptions), (plan.gap, GapOptions)):
        with pytest.raises(InputError, match="an option for other answers"):
            ask(tmp_path / plan.answer, options(tmp_path / plan.answer, **option))  # type: ignore[operator]
