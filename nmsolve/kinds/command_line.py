"""The command line that gives certain options, for pages and hints."""

from __future__ import annotations

import shlex
from dataclasses import MISSING, fields
from typing import Any


def as_command(name: str, o: Any, always: tuple[str, ...] = (), never: tuple[str, ...] = ()) -> str:
    """Return the command that gives these options, quoted for a shell, without options that have their default.

    ``name`` may have several words. ``always`` are options to show even so; ``never`` are options to leave out, as they do not
    change the answer.
    """
    words, stated = ["nmsolve", *name.split()], []
    for field in fields(o):
        value, option = getattr(o, field.name), f"--{field.name.replace('_', '-')}"
        if field.default is MISSING or field.name == "mapping":
            words += [str(v) for v in (value if isinstance(value, list) else [value]) if v is not None]
        elif field.name not in never and (value != field.default or field.name in always):
            for one in value if isinstance(value, list) else [value]:
                stated += [option] if one is True else [option, str(one)]
    return shlex.join([*words, *stated])
