"""Networks in PyNN (Davison et al., Frontiers in Neuroinformatics 2:11, 2009; 0.12 and newer), whatever its simulator.

The package is not imported here: the objects know how to answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.populations import SECOND, Measured, Neurons, assembled, carries_spikes, left_out
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, IntArray

#: What is taken, for messages.
ACCEPTED = "populations, projections, assemblies or a Network of PyNN"


def from_pynn(
    *components: Any, rates: bool = False, step: float = SECOND, name: str = "pynn network"
) -> LogicGraph:
    """Return the network of PyNN's objects.

    Populations of projections need not be named themselves; views and assemblies stand for the populations of their cells.
    Ids are ``label/index``. Populations of one cell type whose parameters are the same for all cells and equal are one kind,
    any other population has its own. Gap junctions carry no spikes: they are left out with a warning.

    Parameters
    ----------
    components : populations, projections, assemblies, or a ``pyNN.network.Network``
    rates : the spikes that were recorded in every population are the rates, over the time simulated so far
    step : milliseconds of a step of the chip, for ``rates``

    Raises
    ------
    InputError : something else; two populations of one label; no neurons; ``rates`` without recorded spikes
    """
    populations: dict[int, Any] = {}
    projections: list[Any] = []
    for component in components:
        if hasattr(component, "projections") and hasattr(component, "populations"):
            if isinstance(component, ModuleType):  # a back end, whose own modules have these names
                raise InputError(f"the module {component.__name__}", "from_pynn", ACCEPTED)
            networks = [*component.populations, *component.projections]
        else:
            networks = (
                list(component) if isinstance(component, list | tuple | set | frozenset) else [component]
            )
        for one in networks:
            if hasattr(one, "pre") and hasattr(one, "post"):
                projections.append(one)
            for side in (one.pre, one.post) if hasattr(one, "pre") and hasattr(one, "post") else (one,):
                for population in _populations(side):
                    populations[id(population)] = population
    ordered = sorted(populations.values(), key=lambda p: int(min(p.all_cells, default=0)))
    neurons = _neurons(ordered)
    cells = np.concatenate([np.zeros(0, np.int64), *(_cells(p) for p in ordered)])
    order = np.argsort(cells)
    measured = _measured(ordered, cells, step, name) if rates else None
    pairs = [_ends(p, cells[order], order) for p in projections]
    for k, projection in enumerate(projections):
        if (model := _spikeless(projection)) is not None:
            left_out(
                len(pairs[k][0]), f"their synapse type is {model}", f"{name}: projection {projection.label!r}"
            )
            pairs[k] = (pairs[k][0][:0], pairs[k][1][:0])
    return assembled(name, neurons, pairs, measured)


def _populations(component: Any) -> Iterable[Any]:
    """Return the populations that an object of PyNN is of."""
    if hasattr(component, "grandparent"):
        return [component.grandparent]
    if hasattr(component, "populations"):
        return [p for part in component.populations for p in _populations(part)]
    if hasattr(component, "celltype") and hasattr(component, "all_cells"):
        return [component]
    raise InputError(f"a {type(component).__name__} is no network", "", ACCEPTED)


def _cells(population: Any) -> IntArray:
    """Return (cells,) the numbers that the simulator gave to the cells."""
    return np.asarray([int(cell) for cell in population.all_cells], np.int64)


def _neurons(populations: list[Any]) -> list[Neurons]:
    """Return name, size and kind of populations: cell type, with the label of the first population of these parameters."""
    described = [_described(p) for p in populations]
    first: dict[Any, str] = {}
    for population, what in zip(populations, described, strict=True):
        first.setdefault(what, str(population.label))
    sorts = [what[0] for what in first]
    return [
        Neurons(
            str(p.label),
            len(p.all_cells),
            what[0] if sorts.count(what[0]) == 1 else f"{what[0]} of {first[what]}",
        )
        for p, what in zip(populations, described, strict=True)
    ]


def _described(population: Any) -> tuple[Any, ...]:
    """Return the cell type and its parameters; the population itself where cells differ."""
    space = population.celltype.parameter_space
    kind = type(population.celltype).__name__
    try:
        if not space.is_homogeneous:
            return (kind, id(population))
        return (kind, *(f"{key}={value.base_value!r}" for key, value in sorted(space.items())))
    except (
        AttributeError,
        TypeError,
        ValueError,
    ):  # parameters that are drawn, or of a simulator's own cells
        return (kind, id(population))


def _ends(projection: Any, cells: IntArray, place: IntArray) -> tuple[AnyArray, AnyArray]:
    """Return (synapses,) neurons at both ends; ``cells`` rise, ``place`` is where each is in the graph."""
    try:
        rows = projection.get("weight", format="list", gather=True, with_address=True)
    except NotImplementedError:  # PyNN's Brian 2, of assemblies
        what = f"this simulator does not list the connections of {projection.label!r}"
        raise InputError(what, "", "projections between populations or views") from None
    table = np.asarray(rows, np.float64).reshape(-1, 3)[:, :2].astype(np.int64)
    sides = (projection.pre, projection.post)
    of = [place[np.searchsorted(cells, _cells(side)[table[:, k]])] for k, side in enumerate(sides)]
    return of[0], of[1]


def _spikeless(projection: Any) -> str | None:
    """Return the synapse type of connections that carry no spikes, by the names of PyNN's classes and of NEST's models."""
    kind = projection.synapse_type
    names = [*(base.__name__ for base in type(kind).__mro__), str(getattr(kind, "nest_name", ""))]
    return next((name for name in names if not carries_spikes(name)), None)


def _measured(populations: list[Any], cells: IntArray, step: float, name: str) -> Measured:
    """Return the spikes that were recorded in every population."""
    place = {cell: k for k, cell in enumerate(cells.tolist())}
    spikes = np.zeros(len(cells))
    for population in populations:
        heard = {
            int(cell)
            for variable, cells in population.recorder.recorded.items()
            if getattr(variable, "name", variable) == "spikes"
            for cell in cells
        }
        missing = len(set(_cells(population).tolist()) - heard)
        if missing:
            what = f"spikes of {missing} cells of {population.label!r} were not recorded"
            raise InputError(what, name, "population.record('spikes') of each before the run")
        counts = population.get_spike_counts(gather=True)
        for cell, count in counts.items():
            spikes[place[int(cell)]] = count
    time = populations[0]._simulator.state.t if populations else 0.0
    return Measured(spikes, float(time) / SECOND, step)
