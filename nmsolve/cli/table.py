"""All commands, in the order of ``nmsolve --help``: their options, and what runs with them. Each is loaded when it is called."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from nmsolve.kinds import registry
from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.host.lazy_parts import load_lazily
from nmsolve.model.lookup import named


class Command(NamedTuple):
    """A command; objects are named ``module:name`` below ``nmsolve``.

    Attributes
    ----------
    options : a dataclass: its docstring is the help of the command; :mod:`nmsolve.kinds.parameters` annotates its fields
    run : the function that gets the options and returns the exit code
    first : what it gets before them
    open : it takes options that no field names
    """

    options: str
    run: str
    first: tuple[str, ...] = ()
    open: bool = False

    def call(self, asked: Any) -> int:
        """Run with these options; return the exit code."""
        load_lazily()
        run = partial(named(self.run), *self.first, asked)
        with _input_warnings(getattr(asked, "strict", False)):
            code: int = self._quietly(run, asked) if getattr(asked, "quiet", False) else run()
        return code

    def _quietly(self, run: Callable[[], int], asked: Any) -> int:
        from nmsolve.cli.quiet import run_quietly

        return run_quietly(run, next(iter(self.first), None), asked)


def _of_kind(name: str, options: str, run: str) -> Command:
    return Command(f"kinds.{registry.FOLDERS[name]}.options:{options}", run, (name,))


def _commands() -> Iterator[tuple[str, Command]]:
    """Yield them by name; those of the first kind also have the names without a kind."""
    first, *others = registry.FOLDERS
    own = {name: Command(*where) for name, where in registry.COMMANDS.items()}
    yield first, _of_kind(first, "OPTIONS", "kinds.registry:run_command")
    yield "score", Command("kinds.verbs:ScoreOptions", "cli.check:run_score")
    yield "verify", Command("kinds.verbs:VerifyOptions", "cli.check:run_verify")
    yield "gap", Command("kinds.verbs:GapOptions", "cli.resume:run_gap")
    yield "resume", Command("cli.commands:ResumeOptions", "cli.resume:run_resume")
    for name in others:
        yield name, _of_kind(name, "OPTIONS", "kinds.registry:run_command")
    for name in ("simulate", "compare"):
        yield name, own[name]
    yield "draw", Command("kinds.verbs:DrawOptions", "cli.draw:run_draw")
    yield "watch", Command("cli.commands:WatchOptions", "cli.watch:run_watch")
    for name in ("export", "faults"):
        yield name, own[name]
    yield "bench", Command("benchmarks.options:BenchOptions", "benchmarks.run:run_bench")
    yield "bench learn", own["bench learn"]
    for name in registry.FOLDERS:
        explain = "explain" if name == first else f"explain {name}"
        yield explain, _of_kind(name, "EXPLAIN", "cli.explain:run_explain")
    yield "info", Command("cli.commands:InfoOptions", "cli.info:run_info")
    yield "convert", Command("cli.commands:ConvertOptions", "cli.info:run_convert")
    yield "generate", Command("cli.commands:GenerateOptions", "cli.generate:run_generate", open=True)
    yield "profile", own["profile"]
    for name in ("train m1", "train m5", "train duals"):
        yield name, own[name]
    yield "doctor", Command("cli.commands:DoctorOptions", "cli.doctor:run_doctor")
    yield "hw list", Command("cli.commands:ListOptions", "cli.hw:run_list")
    yield "hw show", Command("cli.commands:ShowOptions", "cli.hw:run_show")


#: Commands by name.
COMMANDS = dict(_commands())
#: Names of two words that stand in help of their own, and what it says.
GROUPS = {
    "train": "Train the models that learned engines and bounds load.",
    "hw": "Chips and boards: presets and machine files.",
}


def command_in(words: Sequence[str]) -> str | None:
    """Return the name of the command that the first one or two words are, or None."""
    return next((name for name in (" ".join(words[:2]), " ".join(words[:1])) if name in COMMANDS), None)


@contextmanager
def _input_warnings(strict: bool) -> Iterator[None]:
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
