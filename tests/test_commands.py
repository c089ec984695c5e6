"""Commands are made from the dataclasses of their options, and the other way round."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from conftest import Called

import nmsolve
from nmsolve.benchmarks.options import BenchOptions
from nmsolve.cli.app import application
from nmsolve.cli.table import COMMANDS, command_in
from nmsolve.kinds.command_line import as_command
from nmsolve.kinds.examples import EXAMPLES
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


def test_the_example_of_every_command_is_one_that_it_takes() -> None:
    """A wrong option or a missing argument in a line of ``--help`` is refused here as it would be at the prompt."""
    assert EXAMPLES.keys() == COMMANDS.keys()
    for name, line in EXAMPLES.items():
        words = shlex.split(line)
        assert command_in(words) == name
        root: Any = typer.main.get_command(application(name))
        context = root.make_context("nmsolve", list(words), resilient_parsing=False)
        while hasattr(context.command, "commands"):
            called, command, words = context.command.resolve_command(context, words)
            context = command.make_context(called, list(words), parent=context)


def test_quiet_prints_the_path_of_the_answer_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Called
) -> None:
    """Searching, bounding, going on and a front say nothing else; a wrong input is still one line."""
    monkeypatch.chdir(tmp_path)
    graph = Path(nmsolve.__file__).parent.parent / "examples" / "first.json"
    assert call("map", graph, "-t", 5, "--quiet") == (0, "nmsolve-map/mapping.json\n", "")
    assert call("gap", "nmsolve-map", "-t", 5, "--quiet") == (0, "nmsolve-gap/mapping.json\n", "")
    assert call("resume", "nmsolve-map", "--quiet") == (0, "nmsolve-map/mapping.json\n", "")
    front = call("map", graph, "--pareto", "hops,cut", "--points", 2, "-t", 5, "-o", "two", "--quiet")
    assert front == (0, "two/pareto.json\n", "")
    code, out, err = call("map", "none.json", "--quiet")
    assert (code, out) == (2, "") and err.startswith("error: none.json") and err.count("\n") == 1
    code, out, err = call("map", graph, "-m", "mesh:1x1", "--engines", "cpsat", "-t", 5, "--quiet", "--json")
    assert (code, out) == (2, "") and "--quiet" in err
