"""The command line as typer has it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
import typer.core

from nmsolve.cli.completion import COMPLETED
from nmsolve.cli.sections import App
from nmsolve.cli.table import COMMANDS, GROUPS, Command
from nmsolve.kinds.examples import EXAMPLES
from nmsolve.model.lookup import named
from nmsolve.model.version import VERSION

#: Of commands that take options which no field names.
_OPEN = {"ignore_unknown_options": True, "allow_extra_args": True}


class _Commands(typer.core.TyperGroup):
    """Some commands have names of two words."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the first two words, else that of the first."""
        name = " ".join(args[:2])
        return (
            (name, self.commands[name], args[2:])
            if name in self.commands
            else super().resolve_command(ctx, args)
        )


def _version(value: bool) -> None:
    if value:
        typer.echo(f"nmsolve {VERSION}")
        raise typer.Exit()


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass


def application(only: str | None = None) -> typer.Typer:
    """Return the application with all commands, or with that ``only``: stating all of them takes a quarter of a second."""
    app = App(
        name="nmsolve",
        cls=_Commands,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Map neural networks onto many-core chips, and prove how good the result is.",
    )
    app.callback()(_root)
    groups = {
        name: App(no_args_is_help=True, rich_markup_mode=None, help=text) for name, text in GROUPS.items()
    }
    asked = COMMANDS if only is None else {only: COMMANDS[only]}
    for name, command in asked.items():
        group, _, own = name.partition(" ")
        to, called = (groups[group], own) if group in groups else (app, name)
        settings = _OPEN if command.open else None
        example = f"Example: nmsolve {EXAMPLES[name]}" if name in EXAMPLES else None
        to.command(called, context_settings=settings, epilog=example)(as_typer_has_it(command))
    for name in groups:
        if only is None or only.startswith(f"{name} "):
            app.add_typer(groups[name], name=name)
    return app


def as_typer_has_it(command: Command) -> Callable[..., None]:
    """Return a function with the fields of the options as its parameters; it runs the command, and ends with its exit code."""
    options = named(command.options)

    def body(**given: Any) -> None:
        raise typer.Exit(command.call(options(**given)))

    hints = get_type_hints(options, localns={"typer": typer}, include_extras=True)
    signature = inspect.signature(options)
    parameters = [
        p.replace(annotation=_annotation(hints[name], name)) for name, p in signature.parameters.items()
    ]
    body.__doc__ = options.__doc__
    body.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    body.__annotations__ = {p.name: p.annotation for p in parameters}
    return body


def _annotation(hint: Any, name: str) -> Any:
    """Return the annotation of a field for typer; with what completes it."""
    if get_origin(hint) is not Annotated:
        return hint  # typer's own context
    kind, said = get_args(hint)
    more = said._asdict()
    make: Any = typer.Argument if more.pop("argument") else typer.Option
    return Annotated[kind, make(*more.pop("names"), **more, autocompletion=COMPLETED.get(name))]
