"""What reports say of each engine's part in an answer."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from command_support import run_here
from golden_runs import EXAMPLES

from nmsolve.kinds.contributions import contributions, found_words
from nmsolve.model.bound import EngineShare, Event, Result


def result(events, engines, objective=70.0, bound=60.0, **more):
    found = tuple(Event(float(k), "incumbent", engine, value) for k, (engine, value) in enumerate(events))
    fields = {
        "status": "feasible",
        "stop_reason": "time",
        "objective_name": "hops",
        "solution": None,
        "gap": None,
    } | more
    return Result(objective=objective, bound=bound, events=found, engines=tuple(engines), **fields)


def test_first_answer_gains_and_bound_are_named_with_their_engines():
    engines = [
        EngineShare("first-fit", 0.1, 1, 1, 100.0),
        EngineShare("anneal", 1.0, 2, 2, 70.0, 28.0),
        EngineShare("tabu", 0.5, 2, 1, 98.0, 2.0),
        EngineShare("star", 0.1, bound=50.0),
        EngineShare("split", 0.2, bound=60.0),
    ]
    steps = [("first-fit", 100.0), ("tabu", 98.0), ("anneal", 80.0), ("anneal", 70.0)]
    text = "first-fit found the first answer; anneal improved it by 28.00 %; tabu improved it by 2.00 %; split proved the bound."
    assert contributions(result(steps, engines)) == [text]
    assert contributions(result(steps, engines, bound=70.0, status="optimal"))[0].endswith(
        "split proved that it is the best."
    )


def test_engines_in_vain_are_named_with_what_became_of_them_and_those_that_did_not_run_are_not():
    engines = [
        EngineShare("anneal", 1.0, 2, 2, 70.0, 30.0, status="done"),
        EngineShare("m2", 2.1, 1, 0, 77.0, status="stopped: given up after 2.1 s"),
        EngineShare(
            "communities", 0.2, status="stopped: its part of the time was over before it had an answer"
        ),
        EngineShare("cpsat", status="refused: 2,000 nodes"),
        EngineShare("cover", status="not run: too little time"),
    ]
    said = contributions(result([("anneal", 100.0), ("anneal", 70.0)], engines, bound=None))
    assert said == [
        "anneal found the first answer and improved it by 30.00 %.",
        "No part in it: m2 (its best 10.00 % above, 2.1 s), communities (its part of the time was over before it had an answer, "
        "0.2 s).",
    ]


def test_an_answer_from_before_is_no_engines_and_what_a_bounding_search_meets_is_not_its_gain():
    said = contributions(
        result([("start", 70.0), ("branch-bound", 65.0)], [EngineShare("branch-bound", 1.0, 1, 1, 65.0, 5.0)])
    )
    assert said[0] == "the search began with a known answer."


def test_several_objectives_have_a_sentence_each():
    one = result([("named", 70.0)], [])
    assert contributions(result([], [], stages={"max-link": one})) == [
        "max-link: named found the first answer."
    ]


def test_the_words_of_a_published_method_begin_with_its_name():
    report = SimpleNamespace(method="m1", contributions=["m1-policy found the first answer."])
    assert found_words(report) == [
        "Published method m1 alone, as published: m1-policy found the first answer."
    ]
    assert found_words(SimpleNamespace(method="m1", contributions=[])) == [
        "Published method m1 alone, as published."
    ]


@pytest.mark.parametrize("option", [("--method", "m2"), ("--engines", "auto,m2")])
def test_reports_say_who_found_the_answer_and_which_method_ran(tmp_path, option):
    run = run_here("map", EXAMPLES / "first.json", "-t", 20, "--out", tmp_path, *option).stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["method"] == ("m2" if option[0] == "--method" else None)
    begins = (
        "Published method m2 alone, as published: " * (report["method"] == "m2") + "m2 found the first answer"
    )
    for text in (run, (tmp_path / "report.html").read_text()):
        assert begins in text
