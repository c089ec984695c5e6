"""The registry of engines of a problem, and the engines that a run uses."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nmsolve.model import plugins
from nmsolve.model.engine import Engine
from nmsolve.model.errors import InputError
from nmsolve.model.lookup import named
from nmsolve.model.plugins import package_of
from nmsolve.solvers.search.portfolio import Step

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: What an engine says it finds.
FINDS = ("mappings", "bounds", "both")


def plugged(problem: str = "") -> dict[str, EntryPoint]:
    """Return by name the engines that installed packages offer for a ``problem`` (mappings if empty), in order of their names."""
    return {one.name: one for one in plugins.offered(plugins.group_of(plugins.ENGINES, problem))}


def load(entry: EntryPoint) -> Any:
    """Return a new engine of another package.

    Raises
    ------
    InputError : it cannot be imported or made, or is no engine, or has another name than its entry point
    """
    where = f"{entry.name} of {plugins.package_of(entry)}"
    try:
        engine = entry.load()()
    except Exception as error:
        raise InputError(
            f"engine {where} cannot be loaded ({plugins.in_a_line(error)})", "--engines"
        ) from error
    require_engine(engine, where)
    if engine.name != entry.name:
        raise InputError(f"engine {where} calls itself {engine.name!r}", "--engines", "one name for both")
    return engine


def require_engine(engine: Any, where: str) -> None:
    """Raise InputError unless an object has what :class:`nmsolve.model.engine.Engine` asks for."""
    lacks = [name for name in ("refuses", "run") if not callable(getattr(engine, name, None))]
    if not isinstance(getattr(engine, "name", None), str) or not engine.name:
        lacks.insert(0, "name")
    if getattr(engine, "finds", None) not in FINDS:
        lacks.append("finds (mappings, bounds or both)")
    if isinstance(engine, type):
        raise InputError(f"{where} is a class", "engines", f"an engine: {engine.__name__}()")
    if lacks:
        raise InputError(
            f"{where} is no engine: it has no {', '.join(lacks)}", "engines", "see docs/extend.md"
        )


@dataclass(frozen=True)
class Entry:
    """Where an engine lives and how it is run.

    Attributes
    ----------
    path : ``module:class`` below ``nmsolve``, imported when the engine is first wanted; what makes it when called
    about : one line for people
    share : its part of the time
    child : native solver, runs in a child process
    repeat : worth another run with another seed
    restart : only with this part of all time left
    quick : takes milliseconds
    unasked : without ``--engines`` too, where the table alone says what runs
    instead : unasked only where the engine of that name does not run
    threads : runs in this process and may use all workers as threads
    ends : it ends by itself and offers nothing before; beside automatic mode it first gets its fair share of the time
    plugin : where it lives if it is of another package; ``path`` then counts for nothing
    """

    path: str
    about: str = ""
    share: float = 1.0
    child: bool = False
    repeat: bool = False
    restart: float = 0.0
    quick: bool = False
    unasked: bool = True
    instead: str = ""
    threads: bool = False
    ends: bool = False
    plugin: EntryPoint | None = None

    def make(self) -> Any:
        """Return a new engine; InputError if it is of another package and cannot be had."""
        return named(self.path)() if self.plugin is None else load(self.plugin)

    def step(self, engine: Any, share: float) -> Step:
        """Return the engine's place in a plan."""
        if self.plugin is not None:
            return own_step(engine)
        return Step(
            engine, share, child=self.child, repeat=self.repeat, restart=self.restart, quick=self.quick,
            threads=self.threads,
        )  # fmt: skip


def own_step(engine: Any) -> Step:
    """Return the place in a plan of an engine that is in no table of ours: as its attributes ``share``, ``child``, ``repeat`` and
    ``threads`` say, if it has them."""
    wanted = {name: bool(getattr(engine, name, False)) for name in ("child", "repeat", "threads")}
    return Step(engine, float(getattr(engine, "share", 1.0)), foreign=True, **wanted)


def plug_ins(own: Collection[str], problem: str = "") -> dict[str, Entry]:
    """Return the engines of other packages for a ``problem`` (mappings if empty). They run where they are named; names that our
    ``own`` have are left out."""
    return {
        name: Entry("", f"of the package {package_of(one)}", unasked=False, plugin=one)
        for name, one in plugged(problem).items()
        if name not in own
    }


def look_up(registry: Mapping[str, Entry], name: str, what: str = "") -> Entry:
    """Return the entry of an engine; ``what`` the engines are for, in words.

    Raises
    ------
    InputError : no such engine; the message suggests the nearest name
    """
    if name not in registry:
        near = difflib.get_close_matches(name, registry, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(
            f"unknown engine {name!r}{what}", "--engines", hint + "one of " + ", ".join(registry)
        )
    return registry[name]


def steps_for(
    registry: Mapping[str, Entry],
    problem: Any,
    names: Sequence[str | Engine] | None,
    what: str = "",
    *,
    shares: Mapping[str, float] | None = None,
) -> tuple[list[Step], dict[str, str]]:
    """Return the plan of a run, and by name why other engines are left out.

    Parameters
    ----------
    names : engines asked for, in this order, by name or as objects; None, or ``auto`` among them: those of ``shares``
    what : what the engines are for, in words
    shares : engines of a run without names, in this order, with their parts of the time; as the registry says if not given

    Raises
    ------
    InputError : an unknown engine, an object that is none, or two of one name
    """
    unasked = {name: e.share for name, e in registry.items() if e.unasked} if shares is None else shares
    automatic = unasked if names is None or "auto" in names else {}
    wanted: list[Any] = [
        one for asked in names or ["auto"] for one in (automatic if asked == "auto" else [asked])
    ]
    wanted = [one for k, one in enumerate(wanted) if not (isinstance(one, str) and one in wanted[:k])]
    called = [one if isinstance(one, str) else getattr(one, "name", None) for one in wanted]
    steps: list[Step] = []
    refusals: dict[str, str] = {}
    for one, name in zip(wanted, called, strict=True):
        if isinstance(one, str):
            entry = look_up(registry, one, what)
            if one in automatic and any(step.engine.name == entry.instead for step in steps):
                continue
            engine = entry.make()
            step = entry.step(engine, automatic.get(one, entry.share))
        else:
            require_engine(one, f"{one!r:.60}")
            engine, step = one, own_step(one)
        if called.count(name) > 1 or (name in registry and not isinstance(one, str)):
            raise InputError(f"two engines are called {name!r}", "engines", "names of their own")
        reason = engine.refuses(problem)
        if reason is None:
            steps.append(step)
        else:
            refusals[engine.name] = reason
    return steps, refusals


def provers(
    registry: Mapping[str, Entry],
    problem: Any,
    finds: Sequence[str] = ("bounds", "both"),
    may: Callable[[str], bool] = lambda name: True,
) -> list[str]:
    """Return names of the engines that take the problem, ``may`` run and prove bounds: those first that do nothing else."""
    engines = {name: entry.make() for name, entry in registry.items() if entry.plugin is None}
    takes = {
        name: e.finds for name, e in engines.items() if e.finds in finds and e.refuses(problem) is None and may(name)
    }  # fmt: skip
    named = [name for name in takes if registry[name].instead not in takes]
    return sorted(named, key=lambda name: finds.index(takes[name]))
