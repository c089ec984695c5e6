"""Systems that lack something of Linux: commands do without, or say so in one line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command_support import run_here
from lesser_system import MODULES, without_modules

from nmsolve.model.host import disk, pipes
from nmsolve.model.host.locks import lock_folder, unlock

IMPORT_ALL = f"""
import importlib, pkgutil, sys, nmsolve
names = [m.name for m in pkgutil.walk_packages(nmsolve.__path__, "nmsolve.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
assert len(names) > 900, len(names)
assert not set({MODULES!r}) & sys.modules.keys()
"""


@pytest.fixture(scope="module", params=["modules", "functions too"])
def lesser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes on a system without these modules, and on one without the functions either."""
    return without_modules(tmp_path_factory.mktemp("lesser") / "site", bare=request.param != "modules")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Twelve nodes, each with three neighbours."""
    draw = random.Random(1)
    edges = [(u, (u + k) % 12, draw.randint(1, 9)) for u in range(12) for k in (1, 3, 5)]
    content = {
        "directed": True,
        "graph": {},
        "nodes": [{"id": u} for u in range(12)],
        "edges": [{"source": a, "target": b, "weight": w} for a, b, w in edges],
    }
    path = tmp_path / "net.json"
    path.write_text(json.dumps(content))
    return path


def nmsolve(more: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """``nmsolve ARGUMENTS`` with more environment."""
    command = [sys.executable, "-m", "nmsolve", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done


def test_every_module_can_be_imported_without_those_of_unix(lesser: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], env={**os.environ, **lesser}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_map_finds_and_checks_an_answer_with_engines_in_children(
    lesser: dict[str, str], net: Path, tmp_path: Path
) -> None:
    """``cpsat`` runs in a process of its own: what it finds and proves arrives, through pipe and shared memory of any kind."""
    out = tmp_path / "run"
    machine = ["--machine", "mesh:3x4"]
    done = nmsolve(
        lesser, "map", net, *machine, "--engines", "first-fit,cpsat", "-t", "20", "--gap", "40%", "--out", out
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((out / "report.json").read_text())
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    assert {"incumbent", "bound"} <= {e.get("type") for e in events if e.get("engine") == "cpsat"}
    assert report["objective"] < 452  # that of the first fit
    assert nmsolve(lesser, "verify", out).returncode == 0


def test_graphs_on_disk_are_written_read_and_mapped(
    lesser: dict[str, str], net: Path, tmp_path: Path
) -> None:
    """Parts of one file are read by several threads at once."""
    stored, again = tmp_path / "net.nmz", tmp_path / "again.json"
    assert nmsolve(lesser, "convert", net, stored).returncode == 0
    assert nmsolve(lesser, "convert", stored, again).returncode == 0
    done = nmsolve(lesser, "map", stored, "--machine", "mesh:3x4", "--engines", "first-fit", "-t", "5")
    assert done.returncode == 0, done.stderr


def test_a_damaged_file_is_one_line(lesser: dict[str, str], tmp_path: Path) -> None:
    """Also where no process of its own can read it."""
    (tmp_path / "g.npz").write_bytes(b"PK\x03\x04" + bytes(60))
    done = nmsolve(lesser, "info", tmp_path / "g.npz")
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_what_is_not_possible_is_refused_in_one_line(
    lesser: dict[str, str], net: Path, tmp_path: Path
) -> None:
    done = nmsolve(lesser, "map", net, "--machine", "mesh:3x4", "--memory", "1GiB", "-t", "5")
    assert done.returncode == 2
    assert (
        done.stderr.strip()
        == "error: --memory: this system does not say how much memory processes hold; expected Linux or macOS"
    )
    done = nmsolve(
        lesser, "bench", net.parent, "--machine", "mesh:3x4", "-t", "1", "--out", tmp_path / "bench"
    )
    assert done.returncode == 2 and "the folder cannot be locked (this system has no locks)" in done.stderr


def test_doctor_says_what_the_system_lacks(lesser: dict[str, str]) -> None:
    rows = [json.loads(line) for line in nmsolve(lesser, "doctor", "--json").stdout.splitlines()]
    here = [json.loads(line) for line in run_here("doctor", "--json").stdout.splitlines()]
    assert "no --memory" in next(r["text"] for r in rows if r["name"] == "system")
    assert next(r["text"] for r in here if r["name"] == "system") == ""


def test_parts_of_a_file_are_the_same_without_reads_at_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytes(range(256)) * 40
    for has in (True, False):
        monkeypatch.setattr(disk, "_PREADS", has)
        file = disk.unnamed_file(tmp_path)
        disk.write_at(file, memoryview(data), 7)
        into = bytearray(100)
        disk.read_into(file, memoryview(into), 1007)
        assert disk.read_at(file, 50, 307) == data[300:350] and into == data[1000:1100]
        with pytest.raises(OSError, match="ends 90 bytes early"):
            disk.read_into(file, memoryview(into), 7 + len(data) - 10)
        os.close(file)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("threaded", [False, True])
def test_an_inbox_gives_all_that_was_sent_and_never_waits(threaded: bool) -> None:
    near, far = os.pipe()
    box = pipes.Inbox(near, threaded)
    assert box.take() == b"" and not box.silent
    parts = [bytes([k]) * 50_000 for k in range(40)]

    def send() -> None:
        for part in parts:
            os.write(far, part)
        os.close(far)

    sender = threading.Thread(target=send)
    sender.start()
    found = b""
    while not box.silent:
        pipes.wait_until_any([box], 5.0)
        found += box.take()
    sender.join()
    box.close()
    assert found == b"".join(parts)


def test_a_folder_is_locked_once(tmp_path: Path) -> None:
    held = lock_folder(tmp_path)
    with pytest.raises(BlockingIOError):
        lock_folder(tmp_path)
    unlock(held)
    unlock(lock_folder(tmp_path))
    with pytest.raises(FileNotFoundError):
        lock_folder(tmp_path / "none")
