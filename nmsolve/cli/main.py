"""The ``nmsolve`` command. Only typer is imported here: each command imports what it needs when it runs."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, get_type_hints

import typer
import typer.core

from nmsolve.benchmarks.options import BenchOptions
from nmsolve.cli.commands import (
    ConvertOptions,
    DoctorOptions,
    GenerateOptions,
    InfoOptions,
    ListOptions,
    ResumeOptions,
    ShowOptions,
    WatchOptions,
)
from nmsolve.cli.completion import add_completion
from nmsolve.cli.sections import App
from nmsolve.cli.terminal import harmless_output
from nmsolve.kinds.guard import ends_by_second_signal
from nmsolve.kinds.registry import COMMANDS, FOLDERS, options_of
from nmsolve.kinds.verbs import DrawOptions, GapOptions, ScoreOptions, VerifyOptions
from nmsolve.kinds.waiting import telling
from nmsolve.model.errors import InputError, InputWarning, NmsolveError
from nmsolve.model.host.memory import address_space, rarely_collect
from nmsolve.model.host.processes import ASKING
from nmsolve.model.lookup import named
from nmsolve.model.version import VERSION

#: Least address space (bytes): 0.6 GiB are used for a network of a few hundred nodes.
LEAST_SPACE = 768 * 2**20

#: Signals of batch systems and of terminals that close. They mean Ctrl-C: exit code 130 if there is no answer yet.
SIGNALS = tuple(s for s in ASKING if s != signal.SIGINT)


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
train_app = App(
    no_args_is_help=True, rich_markup_mode=None, help="Train the models that learned engines and bounds load."
)
hw_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Chips and boards: presets and machine files."
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"nmsolve {VERSION}")
        raise typer.Exit()


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass


def from_options(options: type, run: str, *first: str) -> Callable[..., None]:
    """Return a Typer command that takes the fields of a dataclass and ends with the exit code that ``run`` returns for it.

    Parameters
    ----------
    options : its docstring is the help of the command, its fields are annotated as parameters of commands are
    run : ``module:function`` below ``nmsolve``, imported when the command runs: asking for help must stay cheap
    first : what the function gets before the options
    """
    module, function = run.split(":")

    def command(**given: Any) -> None:
        body = getattr(import_module(f"nmsolve.{module}"), function)
        asked = options(**given)
        with _warnings(getattr(asked, "strict", False)):
            raise typer.Exit(body(*first, asked))

    hints = get_type_hints(options, include_extras=True)
    signature = inspect.signature(options)
    parameters = [p.replace(annotation=hints[name]) for name, p in signature.parameters.items()]
    for p in parameters:
        add_completion(p.annotation, p.name)
    command.__doc__ = options.__doc__
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


#: Commands of the kinds of problems; the first one also has the names without a kind.
KINDS = list(FOLDERS)


def _of_kind(name: str) -> None:
    """Add the command of a kind."""
    app.command(name)(from_options(options_of(name).OPTIONS, "kinds.registry:run_command", name))


def _of_one(name: str, to: typer.Typer = app) -> None:
    """Add a command about problems of one kind."""
    options, run = COMMANDS[name]
    to.command(name if to is app else name.split()[-1])(from_options(named(options), run))


_of_kind(KINDS[0])
app.command("score")(from_options(ScoreOptions, "cli.check:run_score"))
app.command("verify")(from_options(VerifyOptions, "cli.check:run_verify"))
app.command("gap")(from_options(GapOptions, "cli.resume:run_gap"))
app.command("resume")(from_options(ResumeOptions, "cli.resume:run_resume"))
for _name in KINDS[1:]:
    _of_kind(_name)
_of_one("simulate")
_of_one("compare")
app.command("draw")(from_options(DrawOptions, "cli.draw:run_draw"))
app.command("watch")(from_options(WatchOptions, "cli.watch:run_watch"))
_of_one("export")
_of_one("faults")
app.command("bench")(from_options(BenchOptions, "benchmarks.run:run_bench"))
_of_one("bench learn")
for _name in KINDS:
    _explain = "explain" if _name == KINDS[0] else f"explain {_name}"
    app.command(_explain)(from_options(options_of(_name).EXPLAIN, "cli.explain:run_explain", _name))
app.command("info")(from_options(InfoOptions, "cli.info:run_info"))
app.command("convert")(from_options(ConvertOptions, "cli.info:run_convert"))
_OPEN = {"ignore_unknown_options": True, "allow_extra_args": True}
app.command("generate", context_settings=_OPEN)(from_options(GenerateOptions, "cli.generate:run_generate"))
_of_one("profile")
for _name in ("m1", "m5", "policy", "duals"):
    _of_one(f"train {_name}", train_app)
app.add_typer(train_app, name="train")
app.command("doctor")(from_options(DoctorOptions, "cli.doctor:run_doctor"))
hw_app.command("list")(from_options(ListOptions, "cli.hw:run_list"))
hw_app.command("show")(from_options(ShowOptions, "cli.hw:run_show"))
app.add_typer(hw_app, name="hw")


def main() -> None:
    """Entry point. Exit codes: 0 done; 1 internal or back-end error; 2 wrong input; 3 feasible but the asked gap
    was not reached; 4 infeasible (proved); 5 no solution in time; 130 interrupted without a solution."""
    rarely_collect()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(
            name, "1"
        )  # parallel work is --workers; spinning library threads only slow it down
    with harmless_output() as out, _listening(), ends_by_second_signal(), telling():
        try:
            _require_text(sys.argv[1:])
            _require_memory(sys.argv[1:])
            app()
        except NmsolveError as error:
            line = str(error).replace("\n", "\\n")
            print(f"error: {line}", file=sys.stderr)
            sys.exit(2 if isinstance(error, InputError) else 1)
        except OSError as error:
            if error.filename is None and "usable temporary directory" in str(error):
                print(
                    "error: no folder for temporary files can be written; expected TMPDIR=FOLDER",
                    file=sys.stderr,
                )
                sys.exit(2)
            if error.filename is None:
                raise
            where = str(error.filename)[:200].replace("\n", "\\n")
            print(f"error: {where}: {(error.strerror or str(error)).lower()}", file=sys.stderr)
            sys.exit(2)
        except MemoryError:
            print("error: out of memory; expected more memory, or a smaller --memory", file=sys.stderr)
            sys.exit(1)
        except SystemExit as ended:
            out.flush()
            if out.complaint is not None and not ended.code:
                print(f"error: {out.complaint}", file=sys.stderr)
                sys.exit(1)
            raise


@contextmanager
def _warnings(strict: bool) -> Iterator[None]:
    """Print each warning about a file in one line, or refuse the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error" if strict else "always", InputWarning)
        default = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, InputWarning):
                print(f"warning: {message}", file=sys.stderr)
            else:
                default(message, category, *where, **more)

        warnings.showwarning = show
        try:
            yield
        except InputWarning as refused:
            raise InputError(str(refused)) from None


def _require_text(arguments: list[str]) -> None:
    """Refuse paths that no report could name, before anything is searched for."""
    for text in (*arguments, os.getcwd()):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(
                "a name that is not UTF-8", text, "files and folders with names in UTF-8"
            ) from None


def _require_memory(arguments: list[str]) -> None:
    """Refuse an address space in which numerical libraries cannot be loaded: they die in ways that no one can read."""
    limit = address_space()
    if limit is not None and limit < LEAST_SPACE and not {"-h", "--help", "--version"} & set(arguments):
        text = f"the address space is limited to {limit // 2**20} MiB"
        raise InputError(text, "ulimit -v", f"at least {LEAST_SPACE // 2**20} MiB")


@contextmanager
def _listening() -> Iterator[None]:
    """SIGTERM and SIGHUP end what has no answer yet as Ctrl-C does, where nothing else handles them."""
    free = [s for s in SIGNALS if signal.getsignal(s) == signal.SIG_DFL]
    before = {s: signal.signal(s, signal.default_int_handler) for s in free}
    tell = sys.unraisablehook

    def tell_others(error: sys.UnraisableHookArgs) -> None:
        """Say nothing of an interruption that fell into clearing away, nor of compiler objects that one left half made.

        The former is lost there, and asked for again (``time_left.py``); of the latter a field is missing.
        """
        half = isinstance(error.exc_value, AttributeError) and "_as_parameter_" in str(error.exc_value)
        if not half and not isinstance(error.exc_value, KeyboardInterrupt):
            tell(error)

    sys.unraisablehook = tell_others
    try:
        yield
    finally:
        sys.unraisablehook = tell
        for number, handler in before.items():
            signal.signal(number, handler)
