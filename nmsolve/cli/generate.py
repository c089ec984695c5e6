"""``nmsolve generate``: write a generated network to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.kinds.registry import GENERATORS
from nmsolve.model.errors import InputError
from nmsolve.model.lookup import named

if TYPE_CHECKING:
    from nmsolve.cli.commands import GenerateOptions
    from nmsolve.model.generators import FileGenerator


def run_generate(o: GenerateOptions) -> int:
    """Generate a network; what is left of the command line are parameters of its kind (``--scale 0.05 --fan=20``)."""
    from nmsolve.model.generators import generate_file
    from nmsolve.model.host import cores

    if o.kind == "list":
        return _list()
    path = o.out or Path(f"{o.kind}.json")
    parameters = {"seed": str(o.seed), **_parameters(o.context.args)}
    if o.kind in GENERATORS:
        other: FileGenerator = named(GENERATORS[o.kind])
        for line in other.write(path, parameters):
            print(line)
        return 0
    name, nodes, edges = generate_file(o.kind, path, cores(), **parameters)
    print(f"{path}: {name}, {nodes:,} nodes, {edges:,} edges")
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
    from nmsolve.model.generators import GENERATORS as OF_GRAPHS

    for kind, made in {**OF_GRAPHS, **{name: named(path) for name, path in GENERATORS.items()}}.items():
        print(f"{kind}: {made.text}")
        for p in made.parameters:
            print(f"    --{p.name} ({p.default:g})  {p.text}")
    return 0
