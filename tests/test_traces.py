"""Traces for Perfetto: of pipelines and of searches. Of schedules: test_schedule_page.py."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_support import run_here

from nmsolve.hw.pipeline import batches as pipeline_trace_module
from nmsolve.hw.pipeline.batches import batch_time, pipeline_trace
from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.kinds.run_trace import run_trace
from nmsolve.model.bound import Event
from nmsolve.model.pipeline.groups import Groups
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors

ONNX = Path(__file__).parent / "data" / "onnx"


def valid(text: str) -> dict[str, Any]:
    """The file, held against the Trace Event Format: fields of every phase, named rows, spans of a row not across each other."""
    file: dict[str, Any] = json.loads(text)
    named: set[tuple[int, int]] = set()
    rows: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for e in file["traceEvents"]:
        assert e["ph"] in "MXCi" and isinstance(e["name"], str) and isinstance(e["pid"], int)
        if e["ph"] == "M":
            assert e["name"] in ("process_name", "thread_name", "thread_sort_index")
            if e["name"] == "thread_name":
                named.add((e["pid"], e["tid"]))
            continue
        assert np.isfinite(e["ts"]) and e["ts"] >= 0
        if e["ph"] == "X":
            assert e["dur"] >= 0
            rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        if e["ph"] == "C":
            assert e["args"] and all(isinstance(v, int | float) for v in e["args"].values())
        if e["ph"] in "Xi":
            assert (e["pid"], e["tid"]) in named
    for spans in rows.values():
        spans.sort()
        assert all(b[0] >= a[1] - 1e-6 for a, b in pairwise(spans))
    return file


def chain(times: list[float], cores: int, replicas: int = 1) -> PipelineProblem:
    """Layers one after the other that gain nothing from more cores, so that replicas do."""
    n = len(times)
    tensors = Tensors(
        np.arange(n - 1), np.arange(n), np.arange(1, n), np.full(n - 1, 1.0), np.full(n - 1, 8.0)
    )
    return PipelineProblem(
        "c", tuple(f"l{i}" for i in range(n)), np.tile(np.array(times)[:, None], (1, cores)), np.ones(n), tensors, cores, n,
        split="chain", groups=Groups(replicas),
    )  # fmt: skip


def test_a_pipeline_with_replicas_has_a_lane_for_each() -> None:
    problem = chain([4.0, 20.0, 6.0], 4, replicas=2)
    plan = PipelinePlan(np.arange(3), np.array([1, 2, 1]))
    loads = stage_loads(problem, plan)
    assert loads.replicas.tolist() == [1, 2, 1]
    file = valid(pipeline_trace(problem, plan, 10, "us") or "")
    spans = [e for e in file["traceEvents"] if e["ph"] == "X"]
    names = [e["args"]["name"] for e in file["traceEvents"] if e["name"] == "thread_name"]
    assert names == ["stage 0", "stage 1, replica 0", "stage 1, replica 1", "stage 2"]
    assert sorted((e["tid"], e["args"]["micro-batch"]) for e in spans) == sorted(
        (tid, b) for b in range(10) for tid in (0, 1 + b % 2, 3)
    )
    expected = batch_time(problem, plan, loads.load * loads.replicas, 10, loads.replicas)
    assert expected is not None
    assert max(e["ts"] + e["dur"] for e in spans) == pytest.approx(expected.total)
    at_work = [e for e in file["traceEvents"] if e["ph"] == "C"]
    assert at_work[-1]["args"] == {"stages": 0}
    for e in at_work:  # as many as there are spans at that moment
        inside = [s for s in spans if s["ts"] <= e["ts"] < s["ts"] + s["dur"]]
        assert e["args"]["stages"] == len(inside)


def test_a_long_batch_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_trace_module, "MOST_SPANS", 12)
    problem, plan = chain([4.0, 2.0], 2), PipelinePlan(np.arange(2), np.array([1, 1]))
    file = valid(pipeline_trace(problem, plan, 1000) or "")
    assert (file["otherData"]["micro-batches"], file["otherData"]["shown"]) == (1000, 6)
    assert sum(e["ph"] == "X" for e in file["traceEvents"]) == 12


def test_a_search_has_engines_answers_and_bounds() -> None:
    events = [
        Event(0.1, "start", "", text="3 nodes"),
        Event(0.2, "engine", "a", text="begins"),
        Event(0.3, "incumbent", "a", 9.0, None, "swap"),
        Event(0.4, "engine", "b", text="begins in a child process"),
        Event(0.5, "bound", "b", 9.0, 4.0),
        Event(0.6, "engine", "a", 9.0, text="ends"),
        Event(0.7, "engine", "a", 9.0, text="begins"),
        Event(0.8, "engine", "a", 9.0, text="ends"),
        Event(0.9, "end", "", 9.0, 4.0),
    ]
    text, engines = run_trace(events, 1.0, {"run": "r"})
    file = valid(text)
    rows = {e["tid"]: e["args"]["name"] for e in file["traceEvents"] if e["name"] == "thread_name"}
    spans = {
        (rows[e["tid"]], round(e["ts"]), round(e["ts"] + e["dur"]))
        for e in file["traceEvents"]
        if e["ph"] == "X"
    }
    assert engines == 2 and spans == {("a", 200000, 600000), ("a", 700000, 800000), ("b", 400000, 1000000)}
    values = [(e["name"], round(e["ts"]), *e["args"].values()) for e in file["traceEvents"] if e["ph"] == "C"]
    assert values == [("incumbent", 300000, 9.0), ("bound", 500000, 4.0)]


def test_the_command_takes_runs_of_any_kind(tmp_path: Path) -> None:
    run_here("generate", "mesh-comm", "--nodes", 16, "--side", 4, "--out", tmp_path / "g.json")
    run_here("map", tmp_path / "g.json", "-t", 5, "--out", tmp_path / "map", code=None)
    run_here(
        "pipeline",
        ONNX / "small_cnn.onnx",
        "--bind",
        "batch=1",
        "--cores",
        4,
        "-t",
        60,
        "--out",
        tmp_path / "pipe",
        code=None,
    )
    for run in ("map", "pipe"):
        told = json.loads(
            run_here("export", tmp_path / run, "--to", "perfetto", "--out", tmp_path / "t", "--json").stdout
        )
        file = valid(Path(told["files"][0]).read_text())
        lines = [json.loads(line) for line in (tmp_path / run / "events.jsonl").read_text().splitlines()]
        incumbents = [e["objective"] for e in lines if e["type"] == "incumbent"]
        shown = [e["args"]["incumbent"] for e in file["traceEvents"] if e["name"] == "incumbent"]
        assert shown == incumbents and incumbents and told["engines"] >= 1
        assert file["otherData"]["run"] == run


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "mapping.json").write_text("{}")
    said = run_here("export", tmp_path, "--to", "perfetto", code=2).stderr
    assert f"error: {tmp_path}: no events.jsonl; expected the --out of a run" in said
    (tmp_path / "events.jsonl").write_text('{"seconds": "x"}\n')
    assert "events.jsonl" in run_here("export", tmp_path, "--to", "perfetto", code=2).stderr
    words = (
        "pipeline",
        ONNX / "small_cnn.onnx",
        "--bind",
        "batch=1",
        "--cores",
        4,
        "--pareto",
        "period,cores",
        "--trace",
    )
    assert (
        "--trace: it cannot be combined with --pareto"
        in run_here(*words, "--out", tmp_path / "p", code=2).stderr
    )
