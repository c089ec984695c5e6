"""The weights of method M5's reward (M5.5)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from nmsolve.model.errors import InputError
from nmsolve.model.quantities import weights_of


@dataclass(frozen=True)
class Reward:
    """``-a * max(t) - compute * max(compute) - storage * max(storage) - routing * max(transfer) + b``.

    Each amount is a part of that of the even cut, with which an episode begins, so weights mean the same for every
    network. ``max(t)`` is the largest load. The method names the three worst amounts and their weights but no numbers: as
    they are here they decide between states of about the same time: with 0.05 plans ended 1 % slower. With 0 for all
    three the reward ranks states as the load does. ``b`` is ``-penalty`` where the storage of a core exceeds the memory,
    else 0: as bad as twice the even cut.
    """

    a: float = 1.0
    compute: float = 0.005
    storage: float = 0.005
    routing: float = 0.005
    penalty: float = 2.0

    def __post_init__(self) -> None:
        for name in TERMS:
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"weight {name} is {getattr(self, name)}", "reward", "a finite number >= 0")


#: Names of its weights.
TERMS = tuple(field.name for field in fields(Reward))
#: The reward if nothing is said.
USUAL = Reward()


def reward_of(text: str | None) -> Reward:
    """Return the weights that a text like ``storage=0.5,routing=0`` sets, the others as they are. InputError for others."""
    return Reward(**weights_of(text or "", TERMS))
