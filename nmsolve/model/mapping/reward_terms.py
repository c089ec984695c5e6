"""What method M1's reward weighs: its terms, and those of the user's own (M1.7)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.plugins import REWARDS, entry_of, in_a_line, load, package_of
from nmsolve.model.rewards import Weighed, own_table, prices, stated_reward
from nmsolve.model.types import FloatArray

#: How prices of traffic between two cores can be stated: by their distance, by core, by pair.
FORMS = ("distance", "cores", "pairs")
#: Most cores of a machine with terms of one's own, whose prices engines keep pair by pair (128 MiB).
MOST_CORES = 4096


@dataclass(frozen=True, eq=False)
class OwnTerm:
    """A term of the user's own: traffic between two different cores times a price.

    Attributes
    ----------
    weight : >= 0, that it counts with
    form, prices : ``distance`` (k,): the price at 1, 2, ... lines, the last one also beyond; ``cores`` (P,): of the core at
        either end; ``pairs`` (P, P): of traffic from one core to another. All >= 0
    """

    name: str
    weight: float
    form: str
    prices: FloatArray

    @property
    def key(self) -> tuple[object, ...]:
        """What it says, for a hash."""
        return self.name, self.weight, self.form, hashlib.sha256(self.prices.tobytes()).hexdigest()


@dataclass(frozen=True)
class RewardTerms(Weighed):
    """How much the terms of M1's reward count (M1.7: the user may add, remove or re-weight them).

    The objective ``reward`` is ``sum over cores (horizontal * max(left, right) + vertical * max(up, down)) *
    exp(deadlock * prohibited directions of turning / channels) + hops * traffic times distance + faults * traffic that a single
    dead link may cut off + own terms``; see :mod:`nmsolve.hw.reward`. The first three count once as published, the others not.

    Attributes
    ----------
    horizontal, vertical : >= 0, of what cores exchange along rows and along columns
    deadlock : >= 0, of the exponent; 0 leaves the exchange alone
    hops : >= 0, of traffic times distance in lines
    faults : >= 0, of traffic between cores of one row or column, which has a single shortest route
    own : terms of the user's own, for one machine
    """

    horizontal: float = 1.0
    vertical: float = 1.0
    deadlock: float = 1.0
    hops: float = 0.0
    faults: float = 0.0
    own: tuple[OwnTerm, ...] = field(default=(), repr=False)

    @property
    def key(self) -> tuple[object, ...]:
        """What they say, for a hash."""
        return (self, *(term.key for term in self.own))


#: The reward as published, and the names of its weights.
PUBLISHED = RewardTerms()
WEIGHTS = tuple(PUBLISHED.weights)


def reward_terms(text: str | None, machine: Machine) -> RewardTerms:
    """Return what ``--reward`` says for a machine, weights that are not named as published (:func:`.rewards.stated_reward`).

    A weight with another name is that of a term that an installed package offers: a function of the machine that returns (P, P)
    prices of traffic from core to core.

    Raises
    ------
    InputError : as of the file; an unknown term, prices for another number of cores, or own terms on more than 4,096
    """
    stated = stated_reward(text)
    own = [OwnTerm(name, *own_table(stated, name, FORMS, WEIGHTS)) for name in stated.own]
    own += [
        OwnTerm(name, weight, "pairs", _offered(name, machine))
        for name, weight in stated.weights.items()
        if name not in WEIGHTS
    ]
    if own and machine.size > MOST_CORES:
        raise InputError(
            f"terms of one's own on {machine.size} cores", stated.where, f"at most {MOST_CORES} cores"
        )
    for term in own:
        _require_shape(term, machine, stated.where)
    return RewardTerms(**{n: w for n, w in stated.weights.items() if n in WEIGHTS}, own=tuple(own))


def _require_shape(term: OwnTerm, machine: Machine, where: str) -> None:
    """Raise InputError for prices of another machine."""
    shapes = {"distance": term.prices.shape[:1], "cores": (machine.size,), "pairs": (machine.size,) * 2}
    expected = shapes[term.form]
    if term.prices.shape != expected:
        raise InputError(
            f"prices of shape {' x '.join(map(str, term.prices.shape))}", f"{where}, {term.name}: {term.form}",
            "numbers by distance, [1, 2, ...]" if term.form == "distance" else f"{' x '.join(map(str, expected))}, by core",
        )  # fmt: skip


def _offered(name: str, machine: Machine) -> FloatArray:
    """Return the prices of a term that a package offers."""
    entry = entry_of(REWARDS, name, WEIGHTS)
    if entry is None:
        raise InputError(
            f"the reward has no term {name!r}", "--reward", f"one of {', '.join(WEIGHTS)}, or of a package"
        )
    where = f"{entry.name} of {package_of(entry)}"
    try:
        found = load(entry)(machine)
    except Exception as error:
        raise InputError(
            f"the term ended with {in_a_line(error)}", where, "an array of prices by core"
        ) from error
    return prices(found, where)
