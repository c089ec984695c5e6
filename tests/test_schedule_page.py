"""What is drawn and exported of schedules agrees with the re-evaluation through them."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.schedule.reevaluate import reevaluate
from nmsolve.hw.schedule.critical import chain_parts, critical_chain
from nmsolve.hw.schedule.occupancy import memory_steps, transfers
from nmsolve.kinds.schedule import data as schedule_data
from nmsolve.kinds.schedule.data import page_data
from nmsolve.kinds.schedule.page import render_schedule_html
from nmsolve.kinds.schedule.report import build_schedule_report
from nmsolve.kinds.schedule.statement import Given
from nmsolve.kinds.schedule.trace import COLUMNS, UNITS, schedule_csv, trace_json
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.schedule.statement import Stated
from nmsolve.solvers.schedule.api import solve_schedule
from tests.schedule_support import random_problem, random_schedule

Bars = list[list[tuple[int, int, int, int]]]


def bars_of(lists: list[list[int]]) -> Bars:
    """Undo the distances of the page's bars, as its script does."""
    found: Bars = []
    for flat in lists:
        last, row = 0, []
        for away, load, run, p in zip(*(flat[k::4] for k in range(4)), strict=True):
            begin = last + away
            row.append((begin, begin + load, begin + load + run, p))
            last = begin + load + run
        found.append(row)
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_the_page_has_every_bar_and_every_time_on(seed: int) -> None:
    problem = random_problem(seed, 12, 3)
    answer = random_schedule(problem, seed)
    seen = reevaluate(problem, answer)
    data = page_data(Given(Stated(problem, "tasks")), answer, seen, critical_chain(problem, answer)).data
    if not any(seen.work):
        return
    assert bars_of(data["bars"]) == seen.work
    for flat, intervals in zip(data["on"], seen.on, strict=True):
        edges = np.cumsum(flat).tolist()
        assert [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)] == intervals


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_the_critical_path_adds_up_to_the_makespan(seed: int) -> None:
    problem = random_problem(seed, 12, 3)
    answer = random_schedule(problem, seed)
    chain, end = critical_chain(problem, answer), answer.end(problem)
    makespan = int(end.max())
    parts = chain_parts(chain, makespan)
    assert sum(parts.values()) == makespan and min(parts.values()) >= 0
    assert end[chain[-1].process] == makespan and chain[0].source == -1
    assert [link.source for link in chain[1:]] == [link.process for link in chain[:-1]]
    for one, link in pairwise(chain):
        since = int(answer.start[link.process]) - link.load
        assert since == end[one.process] + link.away + link.wait and link.wait >= 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_memories_rise_to_the_peaks_of_the_walk_and_end_empty(seed: int) -> None:
    problem = random_problem(seed, 12, 3)
    answer = random_schedule(problem, seed)
    steps, peak = memory_steps(problem, answer), reevaluate(problem, answer).peak
    for u in range(problem.units.count):
        held = steps.held[steps.indptr[u] : steps.indptr[u + 1]].tolist()
        assert max(held, default=0) == peak[u] and (not held or held[-1] == 0)
        assert (np.diff(steps.time[steps.indptr[u] : steps.indptr[u + 1]]) > 0).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_transfers_carry_the_bytes_that_the_walk_counts(seed: int) -> None:
    problem = random_problem(seed, 12, 4)
    answer = random_schedule(problem, seed)
    moved, seen = transfers(problem, answer), reevaluate(problem, answer)
    hops = problem.units.hops[moved.source, moved.target]
    loaded = problem.modes.item[answer.mode][answer.loaded]
    size = np.diff(problem.sets.indptr)[problem.items.unit_set[loaded]]
    by_loads = int((problem.items.bytes[loaded] * size).sum())
    assert int((problem.edges.bytes[moved.edge] * hops).sum()) == seen.objectives["moved"] - by_loads
    assert (moved.end <= answer.start[problem.edges.target[moved.edge]]).all()


def busy(rows: Bars) -> int:
    return sum(end - begin for row in rows for begin, _, end, _ in row)


def test_too_many_bars_are_merged_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(3, 200, 6, resources=0)
    answer = random_schedule(problem, 3)
    seen, made = reevaluate(problem, answer), Given(Stated(problem, "tasks"))
    chain = critical_chain(problem, answer)
    monkeypatch.setattr(schedule_data, "BARS", 60)
    monkeypatch.setattr(schedule_data, "STEPS", 40)
    monkeypatch.setattr(schedule_data, "LETTERS", 10)
    page = page_data(made, answer, seen, chain)
    drawn = bars_of(page.data["bars"])
    assert sum(map(len, drawn)) <= 60 and page.data["merged"] and not page.data["labels"]
    for row, work in zip(drawn, seen.work, strict=True):
        assert not work or (row[0][0], row[-1][2]) == (work[0][0], work[-1][2])
        assert all(any(a <= begin and end <= b for a, _, b, _ in row) for begin, _, end, _ in work)
    assert busy(drawn) >= busy(seen.work)
    assert sum(map(len, page.data["memory"])) <= 80
    for u, flat in enumerate(page.data["memory"]):
        assert max(flat[1::2], default=0) == seen.peak[u]
    assert "one bar" in " ".join(page.left_out) and "the most in every" in " ".join(page.left_out)


def small() -> tuple[ScheduleProblem, Schedule]:
    """A problem whose names try to end the script, and a schedule of it."""
    problem = random_problem(5, 12, 3)
    labels = tuple(f"a</script><b>{k}" for k in range(problem.count))
    problem = replace(problem, labels=labels, tasks=("<!--a", "b"), name="x<y", objective="makespan")
    return problem, random_schedule(problem, 5)


def test_the_page_is_one_file_that_needs_no_network() -> None:
    problem, answer = small()
    result = solve_schedule(problem, time_limit=2.0, warm_start=answer, engines=["m4"])
    assert result.solution is not None
    made = Given(Stated(problem, "tasks"))
    report = build_schedule_report(made, result, {}, reevaluate(problem, result.solution))
    page = render_schedule_html(made, result, report, "nmsolve verify x")
    assert page == render_schedule_html(made, result, report, "nmsolve verify x")
    assert "src=" not in page and "<link" not in page and "@import" not in page and "url(http" not in page
    for part in (
        "schedule-gantt",
        "schedule-memory",
        "What the makespan hangs on",
        "Energy",
        "Utilisation",
        "<noscript>",
    ):
        assert part in page
    assert page.count("</script>") == 2, "no name ends a script"
    text = re.search(r'id="schedule-data">(.*?)</script>', page, re.S)
    assert text is not None and "<" not in text[1]
    data = json.loads(text[1])
    assert data["labels"] == list(problem.labels) and data["networks"] == ["<!--a", "b"]
    seen = reevaluate(problem, result.solution)
    assert bars_of(data["bars"]) == seen.work
    words = re.search(r"<p>(The last end, .*?)</p>", page)
    assert words is not None
    ticks = [int(text.replace(",", "")) for text in re.findall(r"\(([\d,]+)\)", words[1])]
    assert sum(ticks) == seen.objectives["makespan"]


def test_processes_without_units_have_a_row_each() -> None:
    problem = random_problem(1, 8, 2)
    bare = np.full(problem.modes.count, -1)
    modes = replace(problem.modes, unit_set=bare, item=bare)
    problem = replace(problem, modes=modes)
    answer = random_schedule(problem, 1)
    made, seen = Given(Stated(problem, "PSPLIB")), reevaluate(problem, answer)
    data = page_data(made, answer, seen, critical_chain(problem, answer)).data
    assert data["what"] == "process" and sorted(data["rows"]) == sorted(problem.labels)
    end = answer.end(problem).tolist()
    starts = {p: (a, b) for row in bars_of(data["bars"]) for a, _, b, p in row}
    assert starts == {p: (int(answer.start[p]), end[p]) for p in range(problem.count)}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-6, 2e-3]))
def test_a_trace_has_all_work_darkness_and_bytes(seed: int, tick: float) -> None:
    problem = random_problem(seed, 10, 3)
    answer = random_schedule(problem, seed)
    seen = reevaluate(problem, answer)
    trace = json.loads(trace_json(problem, answer, seen, tick))
    scale = tick * 1e6 or 1.0
    events = trace["traceEvents"]
    spans = [e for e in events if e["ph"] == "X" and e["pid"] == UNITS]
    makespan = seen.objectives["makespan"]
    for u in range(problem.units.count):
        own = [e for e in spans if e["tid"] == u]
        by_kind = {kind: sum(e["dur"] for e in own if e["cat"] == kind) for kind in ("load", "power")}
        work = sum(end - begin for begin, _, end, _ in seen.work[u])
        on = sum(b - a for a, b in seen.on[u])
        assert by_kind["load"] == pytest.approx(scale * sum(b - a for a, b, _, _ in seen.work[u]))
        assert by_kind["power"] == pytest.approx(scale * (makespan - on))
        assert sum(e["dur"] for e in own) - by_kind["power"] == pytest.approx(scale * work)
        runs = sorted((e["args"]["begin"], e["args"]["start"], e["args"]["end"]) for e in own if "args" in e)
        assert runs == [row[:3] for row in seen.work[u]]
        name = f"memory of {problem.units.names[u]}"
        counted = [e["args"]["bytes"] for e in events if e["ph"] == "C" and e["name"] == name]
        assert max(counted, default=0) == seen.peak[u]
    names = [
        e["args"]["name"]
        for e in events
        if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == UNITS
    ]
    assert names == (list(problem.units.names) if any(seen.work) else [])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_the_table_says_what_the_schedule_says(seed: int) -> None:
    problem = random_problem(seed, 10, 3)
    problem = replace(problem, labels=tuple(f'a,"{k}"\n' for k in range(10)))
    answer = random_schedule(problem, seed)
    rows = list(csv.DictReader(io.StringIO(schedule_csv(problem, answer))))
    assert tuple(rows[0]) == COLUMNS
    number = {label: p for p, label in enumerate(problem.labels)}
    units: dict[int, set[str]] = {p: set() for p in range(problem.count)}
    begin, end = answer.begin(problem), answer.end(problem)
    for row in rows:
        p = number[row["process"]]
        times = (int(row["begin"]), int(row["start"]), int(row["end"]))
        assert times == (begin[p], answer.start[p], end[p])
        assert (row["loaded"] == "yes") == bool(answer.loaded[p])
        assert row["task"] == problem.tasks[int(problem.task[p])]
        units[p] |= {row["unit"]} - {""}
    for p, k in enumerate(problem.modes.unit_set[answer.mode].tolist()):
        assert units[p] == (set() if k < 0 else {problem.units.names[u] for u in problem.sets.of(k).tolist()})
    assert [int(row["start"]) for row in rows] == sorted(int(row["start"]) for row in rows)
