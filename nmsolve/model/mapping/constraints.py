"""Side constraints every mapping method must respect: pin, region, together, apart, forbid."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SideConstraint:
    """One named side constraint.

    Attributes
    ----------
    name : what errors and explanations call it
    kind : ``pin`` (nodes sit on exactly the one core in ``cores``), ``region`` (nodes stay inside ``cores``),
        ``forbid`` (nodes stay off ``cores``), ``together`` (nodes share one core), ``apart`` (no two of the
        nodes share a core)
    nodes : node indices
    cores : core numbers; empty for ``together`` and ``apart``
    at : the side or port (:meth:`nmsolve.model.machine.Machine.at`) that named the cores, for ``verify``; they alone count
    """

    name: str
    kind: str
    nodes: tuple[int, ...]
    cores: tuple[int, ...] = ()
    at: str = field(default="", compare=False, repr=False)


KINDS = ("pin", "region", "forbid", "together", "apart")
