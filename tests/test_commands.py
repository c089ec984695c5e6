"""Commands are made from the dataclasses of their options, and the other way round."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import Called

import nmsolve
from nmsolve.benchmarks.options import BenchOptions
from nmsolve.cli.table import COMMANDS
from nmsolve.kinds.command_line import as_command
from nmsolve.kinds.simulation.options import SimulateOptions
from nmsolve.kinds.verbs import ScoreOptions, VerifyOptions


def test_every_command_names_a_function_that_is_there() -> None:
    """It is imported when the command runs, so nothing else would notice a wrong name."""
    assert len(COMMANDS) == 32
    for command in COMMANDS.values():
        module, function = command.run.split(":")
        path = Path(nmsolve.__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
        body = ast.parse(path.read_text()).body
        assert function in {f.name for f in body if isinstance(f, ast.FunctionDef)}, command.run


@pytest.mark.parametrize(
    ("run", "options"),
    [
        ("cli.check:run_score", ScoreOptions(Path("a b.json"), graph=Path("g;h.json"))),
        ("cli.check:run_verify", VerifyOptions(Path("m"), chips="2x2", bound=True, routes=Path("r.json"))),
        (
            "kinds.simulation.run:run_simulate",
            SimulateOptions(Path("m"), load=0.25, adaptive=True, route="xy", seed=7),
        ),
        (
            "kinds.simulation.run:run_simulate",
            SimulateOptions(machine="mesh:3x3", pattern="uniform", sweep=True),
        ),
        (
            "benchmarks.run:run_bench",
            BenchOptions(["qaplib", "my nets"], "auto,tabu", workers=2, balance=0.1),
        ),
    ],
)
def test_the_command_of_options_gives_these_options(
    run: str, options: Any, monkeypatch: pytest.MonkeyPatch, call: Called
) -> None:
    """What a page shows as its command line is what made it; code of its body is the exit code."""
    given = []
    monkeypatch.setattr(f"nmsolve.{run.replace(':', '.')}", lambda o: given.append(o) or 3)
    name = run.rpartition("_")[2]
    assert call(*shlex.split(as_command(name, options))[1:])[0] == 3
    assert given == [options]
