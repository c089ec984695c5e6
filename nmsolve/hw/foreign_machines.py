"""Machines of other packages: the name of the entry point is the machine's, its value a package in which ``NAME.toml`` lies.

A machine is data: nothing of the package is imported, and the file is read and checked as one that the user names.
"""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

from nmsolve.hw.machine_file import LARGEST_FILE
from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, read_table
from nmsolve.model.plugins import MACHINES, entry_of, folder_of, package_of


def own_names() -> list[str]:
    """Return the names of all our presets, of chips and of unlike processors."""
    presets = resources.files("nmsolve.hw") / "presets"
    folders = [folder for folder in (presets, presets / "processors") if folder.is_dir()]
    files = (file.name for folder in folders for file in folder.iterdir())
    return sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml"))


class ForeignMachine(NamedTuple):
    """The table of a machine file, and where it is from, for people."""

    table: dict[str, object]
    where: str

    @property
    def unlike(self) -> bool:
        """Whether it is one of unlike processors."""
        return "processor" in self.table


def foreign_machine(name: str) -> ForeignMachine | None:
    """Return the machine that an installed package offers under a name; None if there is none, or ``name`` is a path.

    Raises
    ------
    InputError : the name is one of ours, or two packages offer it; no such file, no TOML
    """
    if name.lower().endswith(".toml") or "/" in name:
        return None
    entry = entry_of(MACHINES, name, own_names())
    if entry is None:
        return None
    where, folder = f"{entry.name} of {package_of(entry)}", folder_of(entry)
    if folder is None:
        raise InputError(
            f"there is no folder {entry.value}", where, "a package that holds the machine's file"
        )
    return ForeignMachine(read_table(read_limited(folder / f"{entry.name}.toml", LARGEST_FILE), where), where)
