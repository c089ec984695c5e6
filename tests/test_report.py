"""Reports: equal input gives equal bytes, and the words say no more than is proved."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jinja2
import numpy as np
import pytest
from numba.core import config

from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import score
from nmsolve.kinds.mapping.page import render_html
from nmsolve.kinds.mapping.report import build_report, in_words
from nmsolve.kinds.parts import CheckPart
from nmsolve.kinds.progress import ProgressTable, event_to_json
from nmsolve.kinds.values import chip_grid, fraction, seconds, size_in_bytes
from nmsolve.model.bound import Bound, Event, Result
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.report import page
from nmsolve.report.core_figures import populations, resource_table
from nmsolve.report.drawing import plain_labels
from nmsolve.report.figures import amount, below, number, percent
from nmsolve.report.pictures import SHARE, core_use

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered


def small_problem() -> MappingProblem:
    """Eight nodes in a ring on two chips of four cores, two nodes per core, one core taken."""
    u = np.arange(8)
    machine = replace(load_machine("mesh:2x2,1x2"), taken_cores=(3,))
    return MappingProblem(LogicGraph.from_edges(8, u, (u + 1) % 8, u % 3 + 1.0), machine, "hops", (), 2)


def small_result(problem: MappingProblem) -> Result:
    """A feasible mapping of :func:`small_problem` with invented times, and more memory than this run can take."""
    core = np.array([0, 0, 1, 1, 2, 2, 6, 6])
    scores = score(problem.graph, problem.machine, core)
    value = scores["hops"]
    events = (
        Event(0.0, "start", ""),
        Event(0.1, "bound", "star", None, 2.0, "star"),
        Event(0.2, "incumbent", "first-fit", 3 * value, 2.0),
        Event(0.5, "incumbent", "multilevel", value, 2.0, "v-cycle"),
    )
    return Result(
        "feasible", "time", "hops", core, value, 2.0, (value - 2) / value, (Bound(2.0, "star"),), scores=scores,
        events=events, wall_seconds=1.0, cpu_seconds=0.9, memory_peak=2**40,
    )  # fmt: skip


def test_populations_are_what_ids_have_before_their_last_slash() -> None:
    """They are drawn if every node has one and there are not too many; without them the page has no such picture."""
    named = [f"{p}/{k}" for p in ("L4/E", "L4/I", "L5") for k in range(3)]
    problem = MappingProblem(
        LogicGraph.from_edges(9, [0], [1], ids=named), load_machine("mesh:2x2"), "hops", (), 3
    )
    of, names = populations(problem.graph)
    assert names == ["L4/E", "L4/I", "L5"]
    assert of.tolist() == [0] * 3 + [1] * 3 + [2] * 3
    core = np.array([0, 0, 1, 1, 1, 3, 3, 3, 3])
    result = Result(
        "feasible",
        "time",
        "hops",
        core,
        1.0,
        0.0,
        1.0,
        (),
        scores=score(problem.graph, problem.machine, core),
    )
    page = render_html(problem, result, build_report(problem, result, [], {}), "nmsolve verify x", plain=True)
    assert ">L4/I<" in page
    assert "Which population sits where" in page
    without = small_problem()
    result = small_result(without)
    page = render_html(without, result, build_report(without, result, [], {}), "nmsolve verify x", plain=True)
    assert "population" not in page
    many = [f"{k}/0" for k in range(101)]
    for ids in ([*named[:8], "odd"], [f"one/{k}" for k in range(9)], many, list(range(9))):
        assert populations(LogicGraph.from_edges(len(ids), [0], [1], ids=ids))[1] == []


@pytest.mark.parametrize(("core", "drawn"), [(range(12), True), ([*range(11), 0], False)])
def test_more_populations_than_colours_have_names_on_the_board(core: Sequence[int], drawn: bool) -> None:
    """Where every core is of one population; cores that two of many share could not be told apart by colour."""
    ids = [f"p{k}/0" for k in range(12)]
    problem = MappingProblem(
        LogicGraph.from_edges(12, [0], [1], ids=ids), load_machine("mesh:4x4"), "hops", (), 3
    )
    on = np.array(core)
    result = Result(
        "feasible", "time", "hops", on, 1.0, 0.0, 1.0, (), scores=score(problem.graph, problem.machine, on)
    )
    page = render_html(problem, result, build_report(problem, result, [], {}), "nmsolve verify x", plain=True)
    assert (">p11<" in page) is drawn and ("Which population sits where" in page) is drawn


def test_equal_input_draws_equal_bytes() -> None:
    """No clock, no random id and no set order gets into page or pictures, not even between processes."""
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_report import *\n"
        "p = small_problem(); r = small_result(p)\n"
        "for plain in (True, False):\n"
        "    sys.stdout.write(render_html(p, r, build_report(p, r, [], {}), 'nmsolve verify x', plain=plain))"
    )
    pages = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": str(s)},
        ).stdout
        for s in (1, 2)
    }
    assert len(pages) == 1
    page = pages.pop()
    assert (
        page.count("<svg") == 5 and "multilevel" in page and "taken" in page
    )  # four still pictures, and one of the lively page


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"status": "optimal", "bound": 14.0, "gap": 0.0}, "Proved optimal"),
        ({"status": "feasible"}, "A better one could save at most"),
        ({"bound": None, "gap": None}, "the distance to the optimum is unknown"),
        ({"bound": 0.0, "gap": 1.0}, "the distance to the optimum is unknown"),
        ({"status": "infeasible", "solution": None, "objective": None}, "no mapping meets"),
        (
            {"status": "unknown", "solution": None, "objective": None, "bound": None, "gap": None},
            "may still exist",
        ),
        ({"placement_bound": 9.0, "placement_gap": 0.3}, "Other parts may do better"),
    ],
)
def test_words_say_what_is_proved_and_no_more(changes: dict[str, object], word: str) -> None:
    """The sentence fits the status; 'optimal' is never said without a proof."""
    problem = small_problem()
    result = replace(small_result(problem), **changes)  # type: ignore[arg-type]
    text = " ".join(in_words(build_report(problem, result, [], {})))
    assert word in text
    assert ("optimal" in text) == (changes.get("status") == "optimal")


def test_a_placement_bound_of_0_is_not_worth_a_sentence() -> None:
    """Nothing like "at most 100 % is left" in words or tiles."""
    problem = small_problem()
    result = replace(small_result(problem), placement_bound=0.0, placement_gap=1.0)
    report = build_report(problem, result, [], {})
    assert "parts" not in " ".join(in_words(report))
    assert "these parts only" not in render_html(problem, result, report, "nmsolve verify x")


def test_shares_are_drawn_from_0_to_100_percent() -> None:
    """A core half full has the same colour whatever the fullest is; plain amounts go up to the largest."""
    machine = Machine("m", (1, 1), (1, 2))
    half = np.array([0.5, 0.0])
    assert "100%" in core_use(machine, half, SHARE)
    assert "100%" not in core_use(machine, half, "nodes")


def test_a_result_without_a_mapping_still_makes_a_page() -> None:
    """Infeasible and unknown runs have a report too."""
    problem = small_problem()
    result = replace(
        small_result(problem), status="unknown", solution=None, objective=None, gap=None, events=()
    )
    report = build_report(problem, result, [CheckPart("x", True, "y")], {})
    assert "No mapping to draw" in render_html(problem, result, report, "nmsolve verify x")


def test_resources_are_summed_per_core() -> None:
    """Two neurons on every used core; one limit, named once."""
    problem = small_problem()
    names, used, limits = resource_table(problem, small_result(problem).core)  # type: ignore[arg-type]
    assert names == ["nodes"] and limits == [2]
    assert used[:, 0].tolist() == [2, 2, 2, 0, 0, 0, 2, 0]


def test_figures_for_people_never_hide_a_gap() -> None:
    """A gap that is not zero does not print as zero; absent values print as a dash."""
    assert percent(0.0) == "0.00 %" and percent(1e-7) == "<0.01 %" and percent(None) == "-"
    assert number(1234567.0) == "1,234,567" and number(None) == "-" and number(float("inf")) == "-"


def test_events_become_flat_json_with_the_gap() -> None:
    """Only what is known is written."""
    assert event_to_json(Event(1.0, "incumbent", "anneal", 10.0, 8.0)) == {
        "type": "incumbent", "seconds": 1.0, "engine": "anneal", "objective": 10.0, "bound": 8.0, "gap": 0.2,
    }  # fmt: skip
    assert event_to_json(Event(1.0, "note", "x", text="hm")) == {
        "type": "note", "seconds": 1.0, "engine": "x", "text": "hm",
    }  # fmt: skip


def test_the_table_prints_its_header_once_and_the_last_state() -> None:
    """News closer than the thinning interval are not lost at the end."""
    stream = io.StringIO()
    table = ProgressTable(stream)
    for i in range(5):
        table(Event(0.01 * i, "incumbent", "anneal", 100.0 - i, None))
    table.close()
    lines = stream.getvalue().splitlines()
    assert lines[0].split() == ["time", "incumbent", "bound", "gap", "engine"]
    assert "96" in lines[-1] and sum("incumbent" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("parse", "good", "bad"),
    [
        (
            seconds,
            {"90": 90.0, "90s": 90.0, "5m": 300.0, "0.1": 0.1, "200ms": 0.2},
            ["", "0", "-1", "nan", "5 days"],
        ),
        (fraction, {"0.05": 0.05, "5%": 0.05, "5 %": 0.05}, ["", "x", "-1", "nan"]),
        (size_in_bytes, {"1KiB": 1024, "4GiB": 2**32, "10": 10}, ["", "0", "4 elephants"]),
        (chip_grid, {"3x4": (3, 4), "12": (3, 4), "7": (1, 7)}, ["", "0", "0x3", "axb"]),
    ],
)
def test_option_values(parse: object, good: dict[str, object], bad: list[str]) -> None:
    """What people write is understood; anything else is refused."""
    for text, value in good.items():
        assert parse(text) == value  # type: ignore[operator]
    for text in bad:
        with pytest.raises(InputError):
            parse(text)  # type: ignore[operator]


def test_figures_with_a_unit_step_by_thousands() -> None:
    """Rounding never leaves four digits before the point, and what is above the largest unit is written out."""
    assert amount(999_960, "ps") == "1 µs" and amount(999_940, "ps") == "999.9 ns"
    assert amount(1_229_907_021, "ps") == "1.23 ms" and amount(1_229_907_021, "ps", 7) == "1.229907 ms"
    assert amount(-5e15, "ps") == "-5,000 s" and amount(12_345e12, "pJ") == "12,345 J"
    assert amount(0, "pJ") == "0 pJ" and amount(None, "ps") == "-" and amount(float("inf"), "ps") == "-"
    assert amount(1234567.0, "") == "1,234,567"


def test_the_table_has_the_unit_of_the_search_that_runs() -> None:
    """Seven digits, so that small steps show; the second search has another unit, the third that of the second."""
    stream = io.StringIO()
    table = ProgressTable(stream, ("ps", "pJ"))
    for k in range(3):
        table(Event(k, "start", "", text="next"))
        table(Event(k + 0.5, "incumbent", "anneal", 1_229_907_021.0, None))
    table.close()
    figures = [line.split("*")[1].split()[:2] for line in stream.getvalue().splitlines() if "*" in line]
    assert figures == [["1.229907", "ms"], ["1.229907", "mJ"], ["1.229907", "mJ"]]


def test_an_objective_that_ends_at_0_is_drawn(recwarn: pytest.WarningsRecorder) -> None:
    from nmsolve.report.pictures import convergence

    events = (
        Event(0.1, "bound", "star", None, 0.0),
        *(Event(t, "incumbent", "a", v) for t, v in ((0.2, 9.0), (0.5, 0.0))),
    )
    assert "<svg" in convergence(events, 1.0, "full")
    assert not recwarn.list


def test_labels_of_small_figures_have_no_thousandths() -> None:
    """``800m`` nodes are none."""
    labels = plain_labels()
    assert [labels(v) for v in (0, 0.8, 12, 1200, 3e6)] == ["0", "0.8", "12", "1.2k", "3M"]


def test_a_template_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept beside compiled kernels; a damaged file costs the time again."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    page._compiled.cache_clear()
    compiled, generate = [], jinja2.Environment._generate
    monkeypatch.setattr(
        jinja2.Environment,
        "_generate",
        lambda self, *rest, **more: compiled.append(rest) or generate(self, *rest, **more),
    )

    def filled() -> str:
        compiled.clear()
        return page.fill("watch.html.j2", folder="run", palette=["#000"])

    try:
        first = filled()
        assert compiled
        assert filled() == first and not compiled
        for path in tmp_path.rglob("*.template"):
            path.write_bytes(path.read_bytes()[:-9])
        assert filled() == first and compiled
    finally:
        page._compiled.cache_clear()


def test_a_bound_is_shown_rounded_down() -> None:
    """What is said to be unbeatable is never above what is proved, and as near as its digits go."""
    rng = np.random.default_rng(0)
    for value in [*(10.0 ** rng.uniform(-6, 12, 500)).tolist(), 0.0, 7.0, 999999.995, 0.1, 1e15]:
        shown = float(below(value).replace(",", ""))
        assert shown <= value and shown == pytest.approx(value, rel=2e-5)
    assert below(1234567.0, "pJ") == "1.234 µJ" and below(0.0, "ps") == amount(0.0, "ps")
    assert below(1234.5678) == "1,234.56" and below(0.12345678) == "0.123456" and below(float("inf")) == "-"
