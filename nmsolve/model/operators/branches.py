"""Which branch of an ``If`` runs how often, and what that means for a tensor that several branches read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nmsolve.model.errors import InputError

#: Number of an ``If``, and 0 for its first branch (the condition holds) or 1.
Decision: TypeAlias = "tuple[int, int]"
#: Branches that are all taken.
Context: TypeAlias = "frozenset[Decision]"

#: Probability of a branch where none is stated.
ASSUMED = 0.5
#: Word for branches that count in full, both of them; name that stands for all others.
BOTH, OTHERS = "both", "*"
#: Most sets of users that one tensor may have, according to which branches are taken.
MOST_OUTCOMES = 256


@dataclass(frozen=True)
class Branch:
    """An ``If`` that data decide.

    Attributes
    ----------
    name : its path
    probability : that its condition holds
    both : both branches count in full, as if both ran
    assumed : it was not stated
    """

    name: str
    probability: float
    both: bool
    assumed: bool

    @property
    def weights(self) -> tuple[float, float]:
        """How much the first and the second branch count."""
        return (1.0, 1.0) if self.both else (self.probability, 1.0 - self.probability)


class Choices:
    """What ``--branch`` states, as ``NODE=0.3,NODE=both,*=0.5``; a node has its path, or its own name if no other has it."""

    def __init__(self, text: str | None) -> None:
        self.stated: dict[str, float | None] = {}
        self.used: dict[str, list[str]] = {}
        self.found: list[str] = []
        for item in (text or "").split(","):
            if not item.strip():
                continue
            name, equals, value = (part.strip() for part in item.strip().rpartition("="))
            if not equals or not name:
                raise InputError(
                    f"cannot read {item.strip()!r}", "--branch", "NODE=PROBABILITY, e.g. exit_1=0.3"
                )
            if name in self.stated:
                raise InputError(f"node {name!r} is named twice", "--branch", "each node once")
            self.stated[name] = None if value == BOTH else _probability(name, value)

    def branch(self, path: str, name: str) -> Branch:
        """Return what holds for the ``If`` of this path and own name."""
        self.found.append(path)
        for key in dict.fromkeys((path, name, OTHERS)):
            if key in self.stated:
                value = self.stated[key]
                self.used.setdefault(key, []).append(path)
                return Branch(path, ASSUMED if value is None else value, value is None, False)
        return Branch(path, ASSUMED, False, True)

    def refuse(self, path: str, name: str) -> None:
        """Raise InputError if a probability is stated for an ``If`` that shapes decide."""
        for key in (path, name):
            if key in self.stated:
                raise InputError(
                    f"the condition of {path!r} follows from shapes", "--branch", "an If that data decide"
                )

    def require_used(self) -> None:
        """Raise InputError for a name that is no ``If``, or that of several."""
        for key in self.stated:
            paths = self.used.get(key, [])
            if key == OTHERS or len(paths) == 1:
                continue
            if paths:
                raise InputError(
                    f"{len(paths)} nodes are called {key!r}", "--branch", "one of " + ", ".join(paths)
                )
            known = "one of " + ", ".join(self.found) if self.found else "no --branch: data decide no If"
            raise InputError(f"the model has no If {key!r} with work in its branches", "--branch", known)


def _probability(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise InputError(f"{text!r} for {name!r}", "--branch", f"a number from 0 to 1, or {BOTH}")
    return value


def probability(context: Context, branches: Sequence[Branch]) -> float:
    """Return how probable it is that all these branches are taken; conditions are independent."""
    out = 1.0
    for k, side in sorted(context):
        out *= branches[k].weights[side]
    return out


def outcomes(
    uses: Iterable[tuple[int, Context]], branches: Sequence[Branch], where: str
) -> list[tuple[tuple[int, ...], float]]:
    """Return the sets of users that need a tensor in one run, each with its probability.

    A user needs it if all branches of one of its contexts are taken. So a stage that holds some users takes the tensor in
    with the sum of the probabilities of the sets it meets. Users that never run are in a last set of probability 0.

    Parameters
    ----------
    uses : users with their contexts, as far as the maker of the tensor does not have them, too

    Raises
    ------
    InputError : more than :data:`MOST_OUTCOMES` sets
    """
    found: dict[tuple[int, ...], float] = {}
    every = sorted(uses, key=lambda use: (use[0], sorted(use[1])))
    _spread(every, 1.0, branches, found, where)
    rest = {user for user, _ in every} - {user for users in found for user in users}
    if rest:
        found[tuple(sorted(rest))] = 0.0
    return list(found.items())


def _spread(
    uses: list[tuple[int, Context]],
    weight: float,
    branches: Sequence[Branch],
    found: dict[tuple[int, ...], float],
    where: str,
) -> None:
    first = min((decision for _, context in uses for decision in context), default=None)
    if first is None:
        users = tuple(dict.fromkeys(user for user, _ in uses))
        found[users] = found.get(users, 0.0) + weight
        if len(found) > MOST_OUTCOMES:
            raise InputError(
                "too many branches read it to tell apart who needs it", where,
                f"at most {MOST_OUTCOMES} sets of users: --branch NODE=0, 1 or {BOTH} for some of them",
            )  # fmt: skip
        return
    number = first[0]
    for side in (0, 1):
        part = branches[number].weights[side]
        left = [(u, c - {(number, side)}) for u, c in uses if (number, 1 - side) not in c]
        if part > 0 and left:
            _spread(left, weight * part, branches, found, where)
