"""What a problem has and what an engine takes: one comparison, and one wording of why an engine is left out.

Every kind of problem has one table of features. An engine names those that it handles, and ``refuses`` follows::

    refuses = takes("pairs axons -torus | reach axons")

* A feature that is *rare* (an objective, a limit) has to be named; every other one is handled unless ``-`` stands before it.
* ``+`` means handled and needed: the engine is for nothing else.
* ``|`` separates cases; a problem is taken if one of them takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


class Limit(Protocol[P_contra]):
    """Why a problem is too much, or None."""

    def __call__(self, problem: P_contra, /) -> str | None:
        """Must be fast."""


@dataclass(frozen=True)
class Feature(Generic[P]):
    """Something that problems of one kind may have.

    Attributes
    ----------
    words : what it is, a noun in the plural that stands after "it knows no"
    has : True if the problem has it
    rare : an engine handles it only if it says so
    """

    words: str | Callable[[P], str]
    has: Callable[[P], bool]
    rare: bool = False


class _Case(NamedTuple):
    handled: frozenset[str]
    needed: frozenset[str]


@dataclass(frozen=True)
class Takes(Generic[P]):
    """Which problems an engine takes; called with one, it says in words why not, or None.

    Attributes
    ----------
    features : all features of this kind of problem
    cases : those that the engine handles, as in the text of the module
    limits : what else it cannot take, such as sizes, each in words or None; asked in turn where all features are handled
    """

    features: Mapping[str, Feature[P]]
    cases: str
    limits: tuple[Limit[P], ...] = ()

    def __call__(self, problem: P) -> str | None:
        """Why the engine cannot take the problem, or None."""
        found = [list(self._wrong(case, problem)) for case in self._cases]
        nearest = min(found, key=len)
        if nearest:
            return nearest[0]
        return next((said for limit in self.limits if (said := limit(problem)) is not None), None)

    def __reduce__(self) -> tuple[Callable[[], Takes[Any]], tuple[()]]:
        """Engines go to other processes without their rules, once they are known to take the problem: these may be lambdas."""
        return _everything, ()

    def handles(self, name: str) -> bool:
        """True if the engine takes problems that have the feature."""
        return any(name in case.handled for case in self._cases)

    @cached_property
    def _cases(self) -> list[_Case]:
        usual = {name for name, feature in self.features.items() if not feature.rare}
        out = []
        for case in self.cases.split("|"):
            words = case.split()
            named = {word.lstrip("+-") for word in words}
            if not named <= self.features.keys():
                raise ValueError(f"no such feature: {sorted(named - self.features.keys())}")
            left_out = {word[1:] for word in words if word[0] == "-"}
            needed = {word[1:] for word in words if word[0] == "+"}
            out.append(_Case(frozenset((usual | named) - left_out), frozenset(needed)))
        return out

    def _wrong(self, case: _Case, problem: P) -> Iterator[str]:
        """What keeps the problem from being this case."""
        for name, feature in self.features.items():
            handled, needed = name in case.handled, name in case.needed
            if (needed or not handled) and feature.has(problem) != handled:
                words = feature.words if isinstance(feature.words, str) else feature.words(problem)
                yield f"it is for {words} only" if needed else f"it knows no {words}"


def _everything() -> Takes[Any]:
    """What an engine takes in another process: all that it is sent there for."""
    return Takes({}, "")


def takes_of(features: Mapping[str, Feature[P]]) -> Callable[..., Takes[P]]:
    """``takes(cases, *limits)`` for one kind of problem."""
    return lambda cases, *limits: Takes(features, cases, limits)


def at_most(most: int, count: Callable[[Any], int], what: str) -> Limit[Any]:
    """The limit on something that can be counted."""
    return lambda problem: None if count(problem) <= most else f"{count(problem)} {what}, the limit is {most}"
