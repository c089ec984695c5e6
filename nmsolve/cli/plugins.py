"""What ``nmsolve doctor`` says of other packages: what each offers, and whether that can be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nmsolve.kinds.registry import FOLDERS, kinds
from nmsolve.model import plugins
from nmsolve.model.contained import Allowance, Reply, one_reply
from nmsolve.model.errors import InputError, NmsolveError
from nmsolve.model.lookup import named

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: What loading one of them may take: bytes and seconds.
ALLOWANCE = Allowance(2**32, 60.0, "loading it")


class Offer(NamedTuple):
    """Something that a package offers; ``wrong`` says why it cannot be used, "" if it can."""

    group: str
    name: str
    package: str
    version: str
    wrong: str


def offers() -> Iterator[Offer]:
    """Yield everything that installed packages offer. Their code is loaded, each time in a process of its own."""
    for group in plugins.GROUPS:
        for one in plugins.offered(group):
            package = one.dist.name if one.dist is not None else one.value
            yield Offer(
                group, one.name, package, "" if one.dist is None else one.dist.version, _wrong(group, one)
            )


def _wrong(group: str, entry: EntryPoint) -> str:
    try:
        plugins.entry_of(group, entry.name, _own(group))
        if group == plugins.MACHINES:
            named("hw.catalogue:any_machine")(entry.name)
        else:
            one_reply(partial(_loaded, group, entry), entry.name, ALLOWANCE)
    except NmsolveError as error:
        return str(error)
    return ""


def _own(group: str) -> Collection[str]:
    """Return our own names in a group."""
    kind, problem = ".".join(group.split(".")[:2]), group.partition(".")[2].partition(".")[2]
    if kind == plugins.ENGINES:
        registry = named(f"solvers.{problem or 'mapping'}.registry:REGISTRY")
        return [name for name, entry in registry.items() if entry.plugin is None]
    if kind == plugins.RECHECKS:
        own_kind = next(one for one in kinds() if FOLDERS[one.name] == (problem or "mapping"))
        return [method for path in own_kind.method_tables for method in named(path)]
    if kind == plugins.REWARDS:
        return list(named("hw.reward:PUBLISHED").weights)
    if kind == plugins.FORMATS:
        return [extension[1:] for extension in named("model.formats:OWN")]
    own: list[str] = named("hw.foreign_machines:own_names")()
    return own


def _loaded(group: str, entry: EntryPoint) -> Reply:
    """Load it, in the other process, and see that it is what the group asks for."""
    if group.startswith(plugins.ENGINES):
        from nmsolve.solvers.search.entries import load

        load(entry)
        return Reply(None, {})
    found = plugins.load(entry)
    function = getattr(found, "load", None) if group == plugins.FORMATS else found
    if not callable(function):
        raise InputError(
            "it has no function load" if group == plugins.FORMATS else "it is no function", entry.value
        )
    return Reply(None, {})
