"""``nmsolve generate``: write a generated network to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.cli.commands import GenerateOptions


def run_generate(o: GenerateOptions) -> int:
    """Generate a network; what is left of the command line are parameters of its kind (``--scale 0.05 --fan=20``)."""
    from nmsolve.model.generators import generate_file
    from nmsolve.model.host import cores

    if o.kind == "list":
        return _list()
    path = o.out or Path(f"{o.kind}.json")
    if o.kind == "tasks":
        return _tasks(path, {"seed": str(o.seed), **_parameters(o.context.args)})
    if o.kind == "assignment":
        return _assignment(path, {"seed": str(o.seed), **_parameters(o.context.args)})
    name, nodes, edges = generate_file(o.kind, path, cores(), seed=o.seed, **_parameters(o.context.args))
    typer.echo(f"{path}: {name}, {nodes:,} nodes, {edges:,} edges")
    return 0


def _tasks(path: Path, options: dict[str, str]) -> int:
    """Write networks that share units over time, for ``nmsolve schedule``."""
    from nmsolve.model.schedule.generate import generate_tasks_file

    made = generate_tasks_file(path, options)
    count = sum(len(t.processes) for t in made.tasks) + len(made.interactions)
    typer.echo(f"{path}: {made.name}, {len(made.tasks):,} networks, {count:,} processes")
    return 0


def _assignment(path: Path, options: dict[str, str]) -> int:
    """Write a cost network and an answer that is known to keep its rules, for ``nmsolve assign``."""
    from nmsolve.model.assignment.generate import generate_network_file, solution_path

    made = generate_network_file(path, options)
    typer.echo(
        f"{path}: {made.name}, {made.count:,} nodes, {len(made.cost):,} strategies, {len(made.ends):,} pairs"
    )
    typer.echo(f"{solution_path(path)}: an answer that keeps all rules")
    return 0


def _parameters(words: list[str]) -> dict[str, str]:
    """Return ``--name value`` and ``--name=value`` pairs."""
    out: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            raise InputError(f"stray argument {word!r}", "generate", "--parameter value")
        if not equals:
            value = next(rest, "")
        if not value:
            raise InputError(f"{name} has no value", "generate", f"{name} VALUE")
        out[name[2:].replace("-", "_")] = value
    return out


def _list() -> int:
    """Return all kinds with their parameters."""
    from nmsolve.model.assignment.generate import PARAMETERS as NETWORK
    from nmsolve.model.generators import GENERATORS
    from nmsolve.model.schedule.generate import PARAMETERS

    kinds = {kind: (generator.text, generator.parameters) for kind, generator in GENERATORS.items()}
    kinds["tasks"] = (
        "networks on execution units over time, for nmsolve schedule (a tasks.json)",
        PARAMETERS,
    )
    kinds["assignment"] = (
        "a cost network with a known answer, for nmsolve assign (as in the iopddl contest)",
        NETWORK,
    )
    for kind, (text, parameters) in kinds.items():
        typer.echo(f"{kind}: {text}")
        for p in parameters:
            typer.echo(f"    --{p.name} ({p.default:g})  {p.text}")
    return 0
