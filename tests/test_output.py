"""Output that nobody takes, and too little memory: one line, a sensible exit code, and the answer is written all the same."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest
from command_support import run_here
from test_cli import EXAMPLES, NMSOLVE

VISION = ["-m", EXAMPLES / "board.toml", "-t", "1", "--engines", "first-fit"]


def words(*arguments: object) -> list[str]:
    return [*NMSOLVE, *(str(a) for a in arguments)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_standard_output(tmp_path: Path) -> None:
    """A command that only prints fails in one line; a run whose last words are lost has its files and says so, too."""
    out = tmp_path / "out"
    for command in (("hw", "list"), ("info", EXAMPLES / "vision.json"),
                    ("map", EXAMPLES / "vision.json", *VISION, "-o", out)):  # fmt: skip
        with open("/dev/full", "w") as full:
            done = subprocess.run(words(*command), stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "Traceback" not in done.stderr
        assert "cannot write to standard output: no space left on device" in done.stderr.splitlines()[-1]
    run_here("verify", out)
    with open("/dev/full", "w") as full:
        assert subprocess.run(words("verify", out), stderr=full, stdout=subprocess.DEVNULL).returncode == 0


def test_a_reader_who_left_and_a_closed_stream(tmp_path: Path) -> None:
    """``| head`` is no error, and a run goes on to its answer."""
    command = words("map", EXAMPLES / "vision.json", *VISION, "--json", "-o", tmp_path / "out")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 0 and "Traceback" not in done.stderr and "rror" not in done.stderr, done.stderr
    run_here("verify", tmp_path / "out")
    closed = subprocess.run(
        words("verify", tmp_path / "out"), preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE
    )
    assert closed.returncode == 0 and not closed.stderr


@pytest.mark.parametrize("space", [200, 400, 600])
def test_too_little_address_space_is_refused_in_one_line(tmp_path: Path, space: int) -> None:
    """Numerical libraries die in odd ways there; help is still given."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (space * 2**20,) * 2)

    command = words("map", EXAMPLES / "vision.json", *VISION, "-o", tmp_path / "out")
    done = subprocess.run(command, preexec_fn=limited, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and f"limited to {space} MiB" in done.stderr
    assert not (tmp_path / "out").exists()
    assert subprocess.run(words("--help"), preexec_fn=limited, capture_output=True).returncode == 0


def test_memory_that_runs_out_is_one_line(monkeypatch: pytest.MonkeyPatch, call: object) -> None:
    """Where no engine catches it."""
    monkeypatch.setattr("nmsolve.cli.info.run_info", lambda *arguments: bytearray(2**62))
    code, _, errors = call("info", EXAMPLES / "vision.json")  # type: ignore[operator]
    assert code == 1 and errors.startswith("error: out of memory") and errors.count("\n") == 1
