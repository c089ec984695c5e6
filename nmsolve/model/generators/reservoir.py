"""Spatial reservoirs: random recurrent networks whose synapses are mostly short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmsolve.model.generators.draws import mark, pieces, row_blocks, skip
from nmsolve.model.generators.steps import SECOND, step_name
from nmsolve.model.network import Connections, Network
from nmsolve.model.types import FloatArray, IntArray

#: Mean number of neurons in a cell of the grid that stands in for a nearest-neighbour search.
PER_CELL = 2


def reservoir(
    nodes: int = 16384, fan: float = 100.0, sigma: float = 0.05, far: float = 0.05, seed: int = 1, step: float = SECOND
) -> Network:  # fmt: skip
    """Return neurons uniform in the unit square (a torus), with Poisson fan-out.

    A local synapse goes to a neuron in the grid cell that lies a Gaussian displacement away, a far one to any
    neuron. Directed, multicast; rates are log-normal with median 1 Hz and coefficient of variation 2, in spikes per step. Several
    synapses between two neurons are one edge, all count in the target's ``synapses``.

    Parameters
    ----------
    nodes : number of neurons
    fan : mean fan-out
    sigma : standard deviation of the displacement, in sides of the square
    far : fraction of far synapses
    seed : seed of the random numbers
    step : milliseconds of a step
    """
    rng = np.random.default_rng(seed)
    place = rng.random((nodes, 2))
    degree = rng.poisson(fan, nodes)
    aim, pick, is_far, anywhere = _begins(rng, int(degree.sum()), nodes, far)
    # variance of log-normal over mean^2 is exp(s^2) - 1 = CV^2
    rate = rng.lognormal(0.0, np.sqrt(np.log1p(2.0**2)), nodes) * (step / SECOND)
    sizes = np.zeros((nodes, 2), np.int64)
    sizes[:, 0] = 1

    def blocks() -> Iterator[Connections]:
        from nmsolve.model.generators.kernels import count, merged

        grid = _Grid.of(place)
        for a, b in row_blocks(degree):
            source = np.repeat(np.arange(a, b), degree[a:b])
            step = aim.normal(0.0, sigma, (len(source), 2))
            target = grid.neuron((place[source] + step) % 1.0, pick.random(len(source)))
            jumps = is_far.random(len(source)) < far
            target[jumps] = anywhere.integers(0, nodes, int(jumps.sum()))
            count(target, sizes[:, 1])
            yield merged(a, degree[a:b], target, rate)

    return Network(
        n=nodes,
        name=f"reservoir-{nodes}{step_name(step)}-s{seed}",
        blocks=blocks(),
        rate=rate,
        resources=("neurons", "synapses"),
        sizes=sizes,
    )


def _begins(rng: np.random.Generator, synapses: int, nodes: int, far: float) -> list[np.random.Generator]:
    """Return generators at the beginning of the four arrays that are drawn per synapse; ``rng`` is moved behind them."""
    aim = skip(rng, lambda r, k: r.normal(0.0, 1.0, (k, 2)), synapses)
    pick = skip(rng, lambda r, k: r.random(k), synapses)
    is_far, jumps = mark(rng), 0
    for length in pieces(synapses):
        jumps += int((rng.random(length) < far).sum())
    anywhere = skip(rng, lambda r, k: r.integers(0, nodes, k), jumps)
    return [aim, pick, is_far, anywhere]


@dataclass(frozen=True)
class _Grid:
    """Neurons by grid cell: cell ``c`` holds ``order[start[c]:start[c + 1]]``."""

    side: int
    start: IntArray
    order: IntArray

    @classmethod
    def of(cls, place: FloatArray) -> _Grid:
        side = max(1, int(np.sqrt(len(place) / PER_CELL)))
        cell = _cell(place, side)
        start = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=side * side))])
        return cls(side, start, np.argsort(cell, kind="stable"))

    def neuron(self, place: FloatArray, chance: FloatArray) -> IntArray:
        """Return a neuron from the cell of each place; an empty cell hands over to the next neuron in order."""
        aim = _cell(place, self.side)
        inside = np.maximum(1, self.start[aim + 1] - self.start[aim])
        pick = np.minimum(self.start[aim] + (chance * inside).astype(np.int64), len(self.order) - 1)
        out: IntArray = self.order[pick]
        return out


def _cell(place: FloatArray, side: int) -> IntArray:
    """Return the cell number of every point of the unit square on a ``side`` x ``side`` grid."""
    xy = np.minimum((place * side).astype(np.int64), side - 1)
    out: IntArray = xy[:, 1] * side + xy[:, 0]
    return out
