"""What a problem has and what an engine takes: one comparison, and one wording of every refusal.

Every kind of problem has one table of features. An engine names those that it handles, and ``refuses`` follows::

    refuses = takes("pairs axons -torus | reach axons")

* A *rare* feature (an objective, a limit) must be listed; any other feature is handled unless marked with ``-``.
* ``+`` means handled and required: the engine takes no problem without it.
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
    """Return why a problem is too large, or None."""

    def __call__(self, problem: P_contra, /) -> str | None:
        """Return the reason, or None; must be fast."""


@dataclass(frozen=True)
class Feature(Generic[P]):
    """A property that problems of one kind may have.

    Attributes
    ----------
    words : what it is, a noun phrase that follows "it does not support"
    has : True if the problem has it
    rare : True if an engine must list it to handle it
    """

    words: str | Callable[[P], str]
    has: Callable[[P], bool]
    rare: bool = False


class _Case(NamedTuple):
    handled: frozenset[str]
    needed: frozenset[str]


@dataclass(frozen=True)
class Takes(Generic[P]):
    """Which problems an engine takes. Called with a problem, it returns why the engine cannot take it, or None.

    Attributes
    ----------
    features : all features of this kind of problem
    cases : what the engine handles, in the notation of the module docstring
    limits : further limits, such as sizes; asked in order once all features are handled
    """

    features: Mapping[str, Feature[P]]
    cases: str
    limits: tuple[Limit[P], ...] = ()

    def __call__(self, problem: P) -> str | None:
        """Return why the engine cannot take the problem, or None."""
        found = [list(self._wrong(case, problem)) for case in self._cases]
        nearest = min(found, key=len)
        if nearest:
            return nearest[0]
        return next((said for limit in self.limits if (said := limit(problem)) is not None), None)

    def __reduce__(self) -> tuple[Callable[[], Takes[Any]], tuple[()]]:
        """Pickle without the rules, which may be lambdas: an engine is sent to a process only for problems that it takes."""
        return _everything, ()

    def handles(self, name: str) -> bool:
        """Return True if the engine takes problems that have the feature."""
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
        """Yield what keeps the problem from being this case."""
        for name, feature in self.features.items():
            handled, needed = name in case.handled, name in case.needed
            if (needed or not handled) and feature.has(problem) != handled:
                words = feature.words if isinstance(feature.words, str) else feature.words(problem)
                yield f"it is only for {words}" if needed else f"it does not support {words}"


def _everything() -> Takes[Any]:
    """Return what an engine takes in another process: every problem that is sent there."""
    return Takes({}, "")


def takes_of(features: Mapping[str, Feature[P]]) -> Callable[..., Takes[P]]:
    """Return ``takes(cases, *limits)`` for one kind of problem."""
    return lambda cases, *limits: Takes(features, cases, limits)


def at_most(most: int, count: Callable[[Any], int], what: str) -> Limit[Any]:
    """Return the limit on something that can be counted; ``what`` is its name in the plural."""
    return lambda problem: None if count(problem) <= most else f"{count(problem)} {what}, the limit is {most}"
