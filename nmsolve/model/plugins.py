"""What other packages offer by entry points (docs/extend.md): found by name, loaded when asked for, known by their code.

Installed packages are looked through once in a process, when they are first needed. Nothing is imported by that. Where no file
of an installed package names a group of ours, as nearly everywhere, Python's own way to read them is not loaded either.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Groups of entry points. Those of engines and re-checks are for mappings, with a problem after them for that problem.
ENGINES, FORMATS, MACHINES, RECHECKS, REWARDS = (
    "nmsolve.engines",
    "nmsolve.formats",
    "nmsolve.machines",
    "nmsolve.rechecks",
    "nmsolve.rewards",
)
#: Problems that have groups of their own.
PROBLEMS = ("pipeline", "routing", "assignment", "schedule")
#: Files that decide what a package does: code, and machines.
DECIDING = (".py", ".so", ".pyd", ".toml")


def group_of(group: str, problem: str = "") -> str:
    """Return the group for a ``problem``; of mappings if empty."""
    return f"{group}.{problem}" if problem else group


#: All groups.
GROUPS = (
    *(group_of(ENGINES, p) for p in ("", *PROBLEMS)), FORMATS, MACHINES, REWARDS,
    *(group_of(RECHECKS, p) for p in ("", *PROBLEMS)),
)  # fmt: skip


@cache
def _installed() -> Any | None:
    """Return the entry points of all packages, for whatever they are; None where none is of a group of ours."""
    if not _any_offer():
        return None
    from importlib.metadata import entry_points

    return entry_points()


def _any_offer() -> bool:
    """Return whether an installed package may offer anything: True where only Python itself can tell."""
    finders = [one for one in sys.meta_path if one is not PathFinder and hasattr(one, "find_distributions")]
    for folder in sys.path:
        if finders or os.path.isfile(folder or "."):  # an archive
            return True
        with suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.lower().endswith((".dist-info", "egg-info")):
                    with (
                        suppress(OSError),
                        open(os.path.join(folder, name, "entry_points.txt"), "rb") as file,
                    ):
                        if b"[nmsolve." in file.read():
                            return True
    return False


def offered(group: str) -> list[EntryPoint]:
    """Return what installed packages offer in a group, by name and package."""
    installed = _installed()
    found = () if installed is None else installed.select(group=group)
    return sorted(found, key=lambda one: (one.name, package_of(one)))


def entry_of(group: str, name: str, own: Collection[str] = ()) -> EntryPoint | None:
    """Return what a package offers in a group under a name, whatever its case; None if there is no such package.

    Raises
    ------
    InputError : two packages do, or the name is among our ``own``: it would be unclear which was used
    """
    found = [one for one in offered(group) if one.name.lower() == name.lower()]
    if found and (name.lower() in own or len(found) > 1):
        others = " and ".join(package_of(one) for one in found)
        who = f"{others} takes a name of nmsolve" if name.lower() in own else f"{others} offer the same name"
        raise InputError(
            f"{who}: {found[0].name} in {group}", "", f"{others} not installed, or other names there"
        )
    return found[0] if found else None


def package_of(entry: EntryPoint) -> str:
    """Return the name and version of the package that an entry point is from."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value


def load(entry: EntryPoint) -> Any:
    """Return the object that an entry point names.

    Raises
    ------
    InputError : it cannot be imported, whatever the reason
    """
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{entry.name} of {package_of(entry)} cannot be loaded ({in_a_line(error)})"
        ) from error


def in_a_line(error: BaseException) -> str:
    """Return an error of third-party code as one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".removesuffix(": ")


def folder_of(entry: EntryPoint) -> Path | None:
    """Return the folder that an entry point names as a package, without importing anything; None if there is none."""
    top, *rest = entry.module.split(".")
    spec = find_spec(top)
    roots = [] if spec is None else spec.submodule_search_locations or []
    return next((path for root in roots if (path := Path(root, *rest)).is_dir()), None)


def code_of_plugins() -> bytes:
    """Return a digest of the code of all packages that offer anything: other code, other runs. Empty if there are none."""
    found = [one for group in GROUPS for one in offered(group)]
    if not found:
        return b""
    digest = hashlib.sha256()
    for one in found:
        digest.update(f"{one.group} {one.name} {one.value} {package_of(one)}\0".encode())
    for package in sorted({one.module.partition(".")[0] for one in found}):
        for path in _sources(package):
            digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _sources(package: str) -> list[Path]:
    """Return the files of a package or module that decide what it does, without importing it; none if it is not there."""
    spec = find_spec(package)
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin)] if spec.origin else []
    found = (path for root in spec.submodule_search_locations for path in Path(root).rglob("*"))
    return sorted(path for path in found if path.suffix in DECIDING and path.is_file())
