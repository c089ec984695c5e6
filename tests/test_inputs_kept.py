"""No output takes the place of an input: refused before the search, in one line that names both."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_support import run_here
from test_cli_pipeline import cost_graph


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Two nodes on a machine of two cores, in a folder of its own."""
    path = tmp_path / "d" / "net.json"
    path.parent.mkdir()
    content = {
        "directed": True, "graph": {"mesh": [1, 2], "capacity": {"neurons": 1}},
        "nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}],
    }  # fmt: skip
    path.write_text(json.dumps(content))
    return path


def refused(kept: Path, *words: object) -> None:
    """The command ends with 2 and one line that names the file, which stays as it is."""
    before = kept.read_bytes()
    said = run_here(*words, code=2).stderr
    assert said.count("\n") == 1 and "would" in said and kept.name in said, said
    assert kept.read_bytes() == before


def test_statements_of_problems_are_not_replaced_by_answers(net: Path, tmp_path: Path) -> None:
    for name in ("mapping.json", "report.json", "better.json"):
        kept = net.rename(net.parent / name)
        refused(kept, "map", kept, "-t", 2, "-o", net.parent)
        net = kept
    machine = net.parent / "events.jsonl"
    machine.write_text("cores = [1, 2]\n")
    refused(net, "map", net, "-t", 2, "-o", net.parent / "." / ".." / "d")
    os.symlink(net.parent, tmp_path / "link")
    refused(net, "map", net, "-t", 2, "-o", tmp_path / "link")
    os.symlink(net, tmp_path / "net.json")
    refused(net, "map", tmp_path / "net.json", "-t", 2, "-o", net.parent)
    plan = cost_graph(net.parent / "plan.json")
    refused(plan, "pipeline", plan, "-t", 2, "-o", net.parent)
    run_here("generate", "tasks", "--out", net.parent / "schedule.json")
    refused(net.parent / "schedule.json", "schedule", net.parent / "schedule.json", "-t", 2, "-o", net.parent)
    refused(net, "convert", net, net)
    point = net.parent / "point-1.json"
    point.write_bytes(net.read_bytes())
    refused(point, "map", point, "--pareto", "hops,cut", "-t", 2, "-o", net.parent)


def test_an_answer_of_ones_own_is_not_replaced_but_that_of_a_run_may_be_improved(
    net: Path, tmp_path: Path
) -> None:
    own = net.parent / "mapping.json"
    run_here("map", net, "-t", 2, "-o", tmp_path / "other")
    content = json.loads((tmp_path / "other" / "mapping.json").read_text())
    own.write_text(json.dumps({key: value for key, value in content.items() if key != "run"}))
    refused(own, "map", net, "-t", 2, "-o", net.parent, "--warm-start", own)
    refused(own, "gap", own, "--graph", net, "-t", 2, "-o", net.parent)
    own.unlink()
    table = net.parent / "mapping.csv"
    table.write_text("node,core\na,0\nb,1\n")
    refused(table, "export", table, "--graph", net, "--to", "csv", "-o", net.parent)
    run_here("map", net, "-t", 2, "-o", net.parent)
    run_here("map", net, "-t", 2, "-o", net.parent, "--warm-start", own)
    run_here("resume", net.parent, "-t", 2)
    run_here("verify", net.parent)


def test_tasks_of_ones_own_are_not_replaced_by_those_of_plans(tmp_path: Path) -> None:
    """What the command itself wrote is written again."""
    cost_graph(tmp_path / "net.json")
    run_here("pipeline", tmp_path / "net.json", "-t", 2, "-m", "mesh:1x2", "-o", tmp_path / "plan")
    own = tmp_path / "own" / "tasks.json"
    own.parent.mkdir()
    own.write_text('{"mine": true}')
    refused(own, "schedule", "--from", tmp_path / "plan", "-m", "mesh:1x2", "-t", 2, "-o", own.parent)
    own.unlink()
    for _ in range(2):
        run_here("schedule", "--from", tmp_path / "plan", "-m", "mesh:1x2", "-t", 2, "-o", own.parent)
