"""The command line on graphs that are too large for ``--memory``: they stay on disk, and nothing else changes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_support import run_here
from test_cli import run

ENGINES = ("--engines", "first-fit,star", "--time-limit", "30")


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with enough synapses for the way it is held to matter."""
    path = tmp_path_factory.mktemp("store") / "net.nmz"
    run_here("generate", "snn", "--nodes", "10000", "--synapses", "700000", "--layers", "4", "--out", path)
    return path


@pytest.fixture(scope="module")
def mapped(net: Path) -> tuple[Path, str]:
    """A mapping made with the least memory that works, and that memory; a run before it compiles what is not compiled yet."""
    out = net.parent / "disk"
    words = ("map", net, "--machine", "mesh:4x4", *ENGINES, "--out", out, "--memory")
    refused = run(*words, "60MiB", code=2).stderr
    assert refused.count("\n") == 1 and not (out / "mapping.json").exists()
    least = re.search(r"at least (\d+MiB)", refused)
    assert least is not None, refused
    run(*words, "300MiB")
    run(*words, least[1])
    return out, least[1]


def test_the_least_memory_is_enough_and_the_report_says_so(mapped: tuple[Path, str], net: Path) -> None:
    """The search kept to its budget; the graph was on disk."""
    out, least = mapped
    report = json.loads((out / "report.json").read_text())
    assert report["memory"]["budget"] == int(least[:-3]) * 2**20 and report["stop_reason"] != "memory"
    assert report["memory"]["peak"] <= 1.1 * report["memory"]["budget"]
    assert json.loads(run("info", net, "--memory", least, "--json").stdout)["on_disk"]
    assert not json.loads(run_here("info", net, "--json").stdout)["on_disk"]
    assert all(c["ok"] for c in report["checks"])


def test_disk_and_memory_agree(mapped: tuple[Path, str], net: Path) -> None:
    """A mapping made on disk verifies on disk and in memory, bounds included, and scores the same."""
    out, least = mapped
    assert "FAILED" not in run("verify", out, "--bound", "--memory", least).stdout
    assert "FAILED" not in run_here("verify", out, "--bound").stdout
    on_disk = json.loads((out / "report.json").read_text())["scores"]
    assert json.loads(run_here("score", out, "--json").stdout)["scores"] == pytest.approx(on_disk, rel=1e-9)


def test_what_needs_the_graph_in_memory_says_so(mapped: tuple[Path, str], net: Path) -> None:
    """One line each: an engine, free routes."""
    out, least = mapped
    words = ("map", net, "--machine", "mesh:4x4", "--memory", least, "--out", out.parent / "no", "-t", "5")
    for more, text in ((("--engines", "multilevel"), "on disk"), (("--route", "joint"), "free routes")):
        last = run(*words, *more, code=2).stderr.splitlines()[-1]
        assert last.startswith("error: ") and text in last


def test_eigenvalue_bounds_are_found_and_re_checked_on_disk(net: Path) -> None:
    """Within the budget, once kernels are compiled; a changed claim is not believed."""
    out, least = net.parent / "joint", "300MiB"
    words = ("map", net, "--machine", "mesh:4x4", "--balance", "0.05", "--memory", least, "--out", out)
    for limit in ("1", "20"):  # kernels are compiled in the first; the second ends when both engines have
        run(*words, "--engines", "first-fit,joint", "--time-limit", limit)
    report = json.loads((out / "report.json").read_text())
    assert report["bound"] > 0 and report["memory"]["peak"] <= 1.1 * report["memory"]["budget"]
    assert [b["method"] for b in report["bounds"] if b["scope"] == "full"] == ["joint"]
    said = run("verify", out, "--bound", "--memory", least, "-t", "10m").stdout
    assert "bound joint (full)       recomputed from the certificate" in said and "probability" in said
    certificates = json.loads((out / "certificates.json").read_text())
    certificates["bounds"][0]["certificate"]["eigenvalues"][-1] *= 100
    (out / "certificates.json").write_text(json.dumps(certificates))
    said = run("verify", out, "--bound", "--memory", least, "-t", "10m", code=1).stdout
    assert "FAILED  bound joint" in said


def test_what_cannot_be_re_checked_from_disk_is_named(mapped: tuple[Path, str], net: Path) -> None:
    """A bound found in memory: nothing is claimed to be recomputed, and a changed claim is not covered by it."""
    out, least = mapped[0].parent / "whole", mapped[1]
    run_here("map", net, "--machine", "mesh:12x12", "--balance", "0.1", *ENGINES, "--out", out)
    report = json.loads((out / "report.json").read_text())
    assert [(b["method"], b["value"] > 0) for b in report["bounds"] if b["scope"] == "full"] == [
        ("star", True)
    ]
    words = run("verify", out, "--bound", "--memory", least, code=6).stdout
    assert (
        "word    bound star (full)        not re-checked: the graph is on disk (more --memory loads it)"
        in words
    )
    assert "full bound: not proved here; rests on the word of this run, unread" in words
    assert "recomputed from the certificate" in run_here("verify", out, "--bound").stdout
    report["bound"] *= 1.5
    report["gap"] = (report["objective"] - report["bound"]) / report["objective"]
    (out / "report.json").write_text(json.dumps(report))
    assert "FAILED  full bound" in run("verify", out, "--bound", "--memory", least, code=1).stdout
