"""``nmsolve.bench``: the comparison of the command, for graphs by name too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from test_api_answers import command

import nmsolve


def test_graphs_by_name_are_compared_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    graphs = {"ring": nx.cycle_graph(6), "path": nx.path_graph(6)}
    heard: list[tuple[str, str, int]] = []

    def told(key: Any, outcome: Any) -> None:
        heard.append((key.instance, key.method, key.seed))

    given: dict[str, Any] = {
        "machine": nmsolve.Machine("m", (1, 1), (2, 3)),
        "seeds": 1,
        "time_limit": 2,
        "out": tmp_path,
    }
    found = nmsolve.bench(graphs, ["first-fit", "anneal"], on_run=told, **given)
    assert sorted(heard) == [(g, m, 1) for g in ("path", "ring") for m in ("anneal", "first-fit")]
    rows = found.to_dataframe()
    assert len(rows) == 4 and set(rows.status) <= {"feasible", "optimal"} and rows.objective.min() == 5.0
    assert (
        nmsolve.bench(graphs, ["first-fit", "anneal"], on_run=told, **given).runs == found.runs
        and len(heard) == 4
    )
    found.plot("objective").savefig(tmp_path / "profile.png")
    assert (tmp_path / "table.md").read_text() == found.text and found.tables[0].rows
    assert (found.save(tmp_path / "copy") / "report.html").exists()
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    words = (
        "--methods",
        "first-fit,anneal",
        "--seeds",
        1,
        "-t",
        2,
        "-m",
        tmp_path / "inputs" / "machine.toml",
        "--json",
    )
    told_by_command = command("bench", tmp_path / "inputs" / "graphs", *words, "--out", tmp_path)
    assert (
        '"type": "summary"' in told_by_command and '"type": "run"' not in told_by_command
    )  # all of them were there


def test_a_benchmark_without_a_folder_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = nmsolve.bench({"ring": nx.cycle_graph(4)}, "first-fit", seeds=1, time_limit=5, machine="mesh:2x2")
    assert [(k.instance, r.solved) for k, r in found.runs.items()] == [("ring", True)]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("suites", "more", "words"),
    [
        ("qaplibb", {}, "did you mean qaplib"),
        ({"../x": nx.cycle_graph(4)}, {}, "an instance is called"),
        ("qaplib", {"methods": "magic"}, "magic"),
        ("qaplib", {"seeds": 0}, "0 seeds"),
    ],
)
def test_what_cannot_be_compared_is_refused(suites: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(nmsolve.InputError, match=words):
        nmsolve.bench(suites, **more)
