"""What the rows of a comparison amount to: gains with intervals, losses, and whether the ship rule holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from nmsolve.kinds.mapping.learned.suite import HELD_OUT, Row
from nmsolve.report.bootstrap import percentiles, resampled_means

#: Most that a part which is on by default may lose on the family that it was not trained on.
MOST_LOST = 0.005


@dataclass(frozen=True)
class Gain:
    """The gain of a rival in one setting. Means are over graphs, of each graph over its seeds.

    Attributes
    ----------
    mean, low, high : mean gain on the families of training, and its 95 % bootstrap interval over graphs; None below three
    worst : family of training with the least mean gain, and that gain
    held_out : mean gain on the family held out; None if no graph is of it
    lost, runs : runs that were worse than what they were compared with, of how many; all families
    saved : mean CPU seconds saved per graph, where they were measured
    """

    setting: str
    rival: str
    graphs: int
    mean: float
    low: float | None
    high: float | None
    worst: tuple[str, float]
    held_out: float | None
    lost: int
    runs: int
    saved: float | None

    @property
    def ships(self) -> bool:
        """True if the rule allows it to be on by default."""
        kept = self.held_out is not None and self.held_out > -MOST_LOST
        return self.low is not None and self.low > 0 and kept


def gains(rows: Sequence[Row]) -> list[Gain]:
    """Return the gain of every rival in every setting, in the order in which they first appear."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.setting, row.rival), []).append(row)
    return [_gain(setting, rival, group) for (setting, rival), group in groups.items()]


def _gain(setting: str, rival: str, rows: Sequence[Row]) -> Gain:
    means: dict[str, list[float]] = {}
    for family, graph in dict.fromkeys((r.family, r.graph) for r in rows):
        means.setdefault(family, []).append(
            fmean(r.gain for r in rows if (r.family, r.graph) == (family, graph))
        )
    held_out = means.pop(HELD_OUT, None)
    seen = [value for family in means.values() for value in family] or held_out or []
    low, high = _interval(seen)
    by_family = {family: fmean(values) for family, values in means.items()} or {HELD_OUT: fmean(seen)}
    worst = min(by_family, key=by_family.__getitem__)
    saved = [r.saved for r in rows if r.saved is not None]
    return Gain(
        setting, rival, len(seen) + len(held_out or ()) * bool(means), fmean(seen), low, high, (worst, by_family[worst]),
        None if held_out is None else fmean(held_out), sum(r.gain < 0 for r in rows), len(rows),
        fmean(saved) if saved else None,
    )  # fmt: skip


def _interval(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % percentile bootstrap interval of the mean; None below three values."""
    return (None, None) if len(values) < 3 else percentiles(resampled_means(np.array(values)))


HEAD = (
    "rival",
    "graphs",
    "mean gain",
    "95 % interval",
    "worst family",
    "family not trained on",
    "runs lost",
    "rule",
)


def cells(gain: Gain) -> tuple[str, ...]:
    """Return the line of a table, in the order of ``HEAD``."""
    between = "-" if gain.low is None else f"{percent(gain.low)} to {percent(gain.high)}"
    return (
        gain.rival, str(gain.graphs), percent(gain.mean), between, f"{gain.worst[0]} {percent(gain.worst[1])}",
        percent(gain.held_out), f"{gain.lost} of {gain.runs}", "holds" if gain.ships else "fails",
    )  # fmt: skip


def percent(value: float | None) -> str:
    """Return a part as a percentage with its sign; ``-`` for None."""
    return "-" if value is None else f"{100 * value:+.2f} %"
