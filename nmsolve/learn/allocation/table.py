"""The table of logged runs: for every instance and engine, how far from the best it is after so many seconds.

A *level* is a distance as a logarithm: of an objective above the best known one of its instance, of a bound below it. 0 is
perfect. The table knows the levels on :data:`GRID`; -1 stands for an engine that was not run on an instance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nmsolve.learn.allocation.features import FEATURES, KINDS
from nmsolve.learn.allocation.log import Slice
from nmsolve.learn.checkpoint import Checkpoint, model_path, policy_of, require_shapes
from nmsolve.model.errors import InputError
from nmsolve.model.types import FloatArray

#: Seconds at which levels are known; no slice is shorter than the first.
GRID = np.array([0.2, 0.28, 0.4, 0.57, 0.8, 1.13, 1.6, 2.26, 3.2, 4.5])
#: Levels of heuristics without a mapping, and of bounds without a value or with one that says little.
NO_MAPPING, NO_BOUND = 1.0, 4.0
#: A slice has to load what engines share (seconds), and the machine may be so many times slower than when the log was made.
LOADING, SLOWER = 0.1, 1.4
#: A run that took less than this part of its limit has ended by itself.
ENDED = 0.75
#: Stands for no end.
ENDLESS = 1e6


@dataclass(frozen=True)
class Table:
    """What was logged.

    Attributes
    ----------
    engines : names
    proves : (engines,) True for bounds
    features : (instances, features)
    levels : (instances, engines, grid); -1 where an engine was not run
    ends : (instances, engines) seconds after which an engine ended by itself, :data:`ENDLESS` where it did not
    """

    engines: Sequence[str]
    proves: Sequence[bool]
    features: FloatArray
    levels: FloatArray
    ends: FloatArray

    def checkpoint(self, facts: Mapping[str, object]) -> Checkpoint:
        """Return the table as a model file holds it."""
        ran = np.argwhere(self.levels[:, :, 0] >= 0)
        at = (ran[:, 0], ran[:, 1])
        arrays = {"features": self.features, "ran": ran, "levels": self.levels[at], "ends": self.ends[at]}
        own = {"engines": list(self.engines), "proves": [bool(p) for p in self.proves], "grid": GRID.tolist()}
        return Checkpoint("auto", arrays, {**facts, **own, "kinds": list(KINDS), "names": list(FEATURES)})


def table_of(model: Checkpoint) -> Table:
    """Return the table in a model; InputError where names or shapes are not as expected."""
    path, facts = model_path("auto"), model.facts
    engines, proves, grid = facts.get("engines"), facts.get("proves"), facts.get("grid")
    known = (
        facts.get("kinds") == list(KINDS) and facts.get("names") == list(FEATURES) and grid == GRID.tolist()
    )
    if not (known and isinstance(engines, list) and isinstance(proves, list) and len(engines) == len(proves)):
        raise InputError(
            "a table of other kinds, features or seconds", str(path), "one of `nmsolve train auto`"
        )
    count, runs = (len(model.arrays[name]) if name in model.arrays else 0 for name in ("features", "ran"))
    shapes = {
        "features": (count, len(FEATURES)),
        "ran": (runs, 2),
        "levels": (runs, len(GRID)),
        "ends": (runs,),
    }
    require_shapes(model, shapes, path)
    features, levels, ends = (
        np.asarray(model.arrays[name], float) for name in ("features", "levels", "ends")
    )
    at = tuple(np.asarray(model.arrays["ran"], np.int64).T)
    if runs and not ((at[0] >= 0) & (at[0] < count) & (at[1] >= 0) & (at[1] < len(engines))).all():
        raise InputError(
            "a table with runs of unknown problems or engines", str(path), "one of `nmsolve train auto`"
        )
    table = Table(
        engines, proves, features, np.full((count, len(engines), len(GRID)), -1.0), np.full((count, len(engines)), ENDLESS)
    )  # fmt: skip
    table.levels[at], table.ends[at] = levels, ends
    return table


@lru_cache(maxsize=2)
def _kept(model: Checkpoint) -> Table:
    return table_of(model)


def allocation_table() -> Table:
    """Return the table that is used, read once per process; InputError where there is none or it is damaged."""
    return _kept(policy_of("auto"))


def fitted(slices: Iterable[Slice]) -> Table:
    """Return the table of logged runs.

    Where a run was cut off before the end of the grid, its level goes on as the levels of the same engine did on average on
    instances with longer runs.

    Raises
    ------
    InputError : no instance has both a mapping and a bound
    """
    runs: dict[str, list[Slice]] = {}
    for one in slices:
        runs.setdefault(one.instance, []).append(one)
    best = {
        name: min((c[-1][1] for c in _curves(own, False)), default=math.inf) for name, own in runs.items()
    }
    names = [n for n in runs if 0 < best[n] < math.inf and any(one.proves for one in runs[n])]
    if not names:
        raise InputError("nothing to fit", "the log", "runs of heuristics and bounds on the same instances")
    proves = {one.engine: one.proves for name in names for one in runs[name]}
    engines = sorted(proves, key=lambda e: (proves[e], e))
    levels = np.full((len(names), len(engines), len(GRID)), -1.0)
    ends = np.full((len(names), len(engines)), ENDLESS)
    longest = np.zeros((len(names), len(engines)))
    for i, name in enumerate(names):
        for e, engine in enumerate(engines):
            own = [one for one in runs[name] if one.engine == engine]
            if own:
                levels[i, e], ends[i, e] = _levels(own, best[name])
                longest[i, e] = LOADING + SLOWER * max(one.limit for one in own)
    for e in range(len(engines)):
        _prolong(levels[:, e], ends[:, e], longest[:, e])
    features = np.array([runs[name][0].features for name in names])
    return Table(engines, [proves[e] for e in engines], features, levels, ends)


def _curves(runs: Iterable[Slice], proves: bool) -> list[Sequence[tuple[float, float]]]:
    return [one.curve for one in runs if one.proves is proves and one.curve]


def _levels(runs: Sequence[Slice], best: float) -> tuple[FloatArray, float]:
    """Return levels on the grid, and when the engine ended by itself, from all runs of one engine on one instance.

    What any run had by then counts, with LOADING and SLOWER.
    """
    worst = NO_BOUND if runs[0].proves else NO_MAPPING
    out = np.full(len(GRID), worst)
    for g, seconds in enumerate(GRID):
        for one in runs:
            by = (seconds - LOADING) / SLOWER
            had = [value for at, value in one.curve if at <= by and value > 0]
            if had:
                value = had[-1]
                distance = math.log(best / value) if one.proves else math.log(value / best)
                out[g] = min(out[g], max(0.0, distance))
    out = np.minimum(np.minimum.accumulate(out), worst)
    last = max(runs, key=lambda one: one.limit)
    ended = last.took < ENDED * last.limit
    return out, (last.curve[-1][0] if last.curve else last.took) * SLOWER + 0.02 if ended else ENDLESS


def _prolong(levels: FloatArray, ends: FloatArray, longest: FloatArray) -> None:
    """Continue levels (instances, grid) of one engine beyond its longest run, in place."""
    ran = levels[:, 0] >= 0
    far = ran & (longest >= 0.7 * GRID[-2])
    for limit in np.unique(longest[ran & ~far & (ends >= ENDLESS)]):
        g = int(np.searchsorted(GRID, limit + 1e-9)) - 1
        if g < 0 or not far.any():
            continue
        base = levels[far, g].mean()
        if base <= 0:
            continue
        ratio = levels[far, g:].mean(axis=0) / base
        rows = ran & (longest == limit) & (ends >= ENDLESS)
        levels[np.ix_(rows, np.arange(g, len(GRID)))] = levels[rows, g][:, None] * ratio
