"""Side constraints every mapping method must respect: pin, region, together, apart, forbid, slices."""

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
        nodes share a core), ``slices`` (a core has at most ``most`` neurons of the nodes)
    nodes : node indices
    cores : core numbers; empty for ``together``, ``apart`` and ``slices``
    at : the side or port (:meth:`nmsolve.model.machine.Machine.at`) that named the cores, for ``verify``; they alone count
    most : most neurons of the nodes on a core, for ``slices`` (:mod:`nmsolve.model.mapping.slices`); 0 for the others
    """

    name: str
    kind: str
    nodes: tuple[int, ...]
    cores: tuple[int, ...] = ()
    at: str = field(default="", compare=False, repr=False)
    most: int = field(default=0, repr=False)


SLICES = "slices"
KINDS = ("pin", "region", "forbid", "together", "apart", SLICES)
