"""A long ``--help`` in sections: which option stands under which heading."""

from __future__ import annotations

from typing import Any

import typer
import typer.core

from nmsolve.kinds.registry import FOLDERS
from nmsolve.model.errors import InputError

#: Names of options by heading. What is in none stands under the first one.
SECTIONS = {
    "Input": "graph nodes multicast pattern absolute machine chips placement constraints balance occupied prohibit_turns bind "
    "strict library "
    "cores core_memory offchip_bandwidth group_sync group_border branch "
    "from_ frames",
    "What is wanted": "objective limit weights at_most reward pareto points route turns form table_limit detour channels stages "
    "exact_stages use_all threshold overlap split replicas batches "
    "migration_budget place run noise runs reschedule from_run",
    "Time and search": "time_limit gap seed workers cluster engines method warm_start resume memory scratch "
    "mip_solver",
    "Output": "write_model write_onnx trace csv out plain quiet json help",
}
#: Options that say what is asked: a second value would be another question.
STATING = {*SECTIONS["Input"].split(), *SECTIONS["What is wanted"].split(), "engines", "method", "to"}
#: Commands with sections.
LONG = tuple(FOLDERS)

_HEADING = {name: heading for heading, names in SECTIONS.items() for name in names.split()}


class _Command(typer.core.TyperCommand):
    """Its options in sections if it is a long one; each of them once, but those that add up."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command.

        Raises
        ------
        InputError : an option with a value is given twice: the first one would be lost
        """
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        once = [
            p
            for p in order
            if p.param_type_name == "option"
            and p.name in STATING
            and not (p.multiple or getattr(p, "is_flag", False))
        ]
        for p in once:
            if once.count(p) > 1:
                raise InputError("it is given twice", p.opts[0], "one value")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        if self.name not in LONG:
            return super().format_options(ctx, formatter)
        sections: dict[str, list[tuple[str, str]]] = {
            "Arguments": [],
            **{heading: [] for heading in SECTIONS},
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                argument = parameter.param_type_name == "argument"
                heading = (
                    "Arguments" if argument else _HEADING.get(parameter.name or "", next(iter(SECTIONS)))
                )
                sections[heading].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class App(typer.Typer):
    """An application whose commands are these."""

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Return what adds a command."""
        return super().command(name, **{"cls": _Command, **settings})
