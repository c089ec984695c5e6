"""The weights of method M5's reward, and terms of the user's own (M5.5)."""

from __future__ import annotations

from dataclasses import dataclass

from nmsolve.model.errors import InputError
from nmsolve.model.rewards import Weighed, own_table, stated_reward


@dataclass(frozen=True)
class OwnAmount:
    """A term of the user's own: the largest amount of a core, each stage's shared by its cores, times a weight.

    ``layers`` : amount >= 0 of every layer of one network
    """

    name: str
    weight: float
    layers: tuple[float, ...]


@dataclass(frozen=True)
class Reward(Weighed):
    """``-a * max(t) - compute * max(compute) - storage * max(storage) - routing * max(transfer) - own terms + b``.

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
    own: tuple[OwnAmount, ...] = ()


#: The reward if nothing is said, and the names of its weights.
USUAL = Reward()
TERMS = tuple(USUAL.weights)


def reward_of(text: str | None, layers: int | None = None) -> Reward:
    """Return what ``--reward`` says of a network of ``layers`` layers (None: of any), other weights as they are.

    Raises
    ------
    InputError : as of :func:`.rewards.stated_reward`; an unknown weight, or amounts of another number of layers
    """
    stated = stated_reward(text)
    for name in stated.weights:
        if name not in TERMS:
            raise InputError(
                f"the reward has no term {name!r}",
                stated.where,
                f"one of {', '.join(TERMS)}, or a table [{name}]",
            )
    own = []
    for name in stated.own:
        weight, _, amounts = own_table(stated, name, ("layers",), TERMS)
        if amounts.shape != (layers,):
            raise InputError(
                f"amounts of shape {' x '.join(map(str, amounts.shape))}", f"{stated.where}, [{name}] layers",
                "weights alone, where no network is given" if layers is None else f"{layers} numbers, one per layer",
            )  # fmt: skip
        own.append(OwnAmount(name, weight, tuple(amounts.tolist())))
    return Reward(**stated.weights, own=tuple(own))
