"""Which engine of a race runs next. Mappings and bounds get equal time; among each, the engine whose doubled time promises most.

Each engine of a race gets a short first turn; every later one doubles its time, and should bring what the last doubling brought.
Bounds in this process are paused between turns and go on where they were (:mod:`.pausing`). In a process of its own, a bound that
was cut off starts again with twice the time: all restarts together cost no more than the last run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

#: What twice the time should bring to an engine that has run once, and what a bound without a value may turn out to be
#: above the best: parts of the value (logarithms).
HOPE = 0.2
#: Those that promise nothing count as if they had had this many times their time.
IDLE = 3.0
#: A run that took less than this part of its time has ended by itself: more time would change nothing.
WHOLE = 0.25
#: A bound is not begun again with less than this many times what its last run had.
LONGER = 1.3
#: Part of the time of a paused bound that it should have at the end, to state what it has reached.
STATING = 0.1


@dataclass
class Past:
    """What an engine has had and delivered so far.

    Attributes
    ----------
    proves : it finds nothing but bounds
    paused : its last run goes on with the next turn
    runs : turns that have ended or are under way
    span, took : seconds that the last turn was given, and took
    spent : seconds of all turns
    before, after : before and after the last turn: its own bound (0 if none) where it only proves bounds, else the best
        objective of all engines (inf if none)
    """

    proves: bool = False
    paused: bool = False
    runs: int = 0
    span: float = 0.0
    took: float = 0.0
    spent: float = 0.0
    before: float = 0.0
    after: float = 0.0

    def begin(self, span: float, level: float, proves: bool = False) -> None:
        """A turn of ``span`` seconds begins at this level."""
        self.runs, self.span, self.before, self.proves = self.runs + 1, span, level, proves

    def end(self, took: float, level: float, paused: bool = False) -> None:
        """The turn has ended at this level."""
        self.took, self.spent, self.after, self.paused = took, self.spent + took, level, paused

    @property
    def _next(self) -> float:
        """Seconds that double its time: what all turns took, or, from nothing again, twice the last run's."""
        return self.spent if self.paused else 2 * self.span

    @property
    def whole(self) -> bool:
        """Return True if its last run took all that it was given: it would have gone on."""
        return self.took >= WHOLE * self.span

    def cut_off(self, left: float) -> bool:
        """Return True if its last run would have gone on, and ``left`` seconds allow a longer one."""
        return self.whole and left >= LONGER * self.span

    def next_span(self, left: float) -> float:
        """Return the seconds of its next turn: those that double its time, or all of ``left`` if too few would remain."""
        return self._next if left >= (1 + LONGER) * self._next else left

    def promise(self, best: float) -> float:
        """Gain per second, relative to the value, that its next run should bring; ``best`` is the best of all engines."""
        if not (0 < self.after < math.inf and 0 < best < math.inf):
            gain = HOPE
        else:
            first = not 0 < self.before < math.inf
            growth = HOPE if first else abs(math.log(self.after / self.before))
            gain = max(0.0, growth - abs(math.log(self.after / best)))
        return gain / max(1e-3, self.spent if self.paused else 2 * self.took)


def spent_by(pasts: Mapping[str, Past], proves: bool) -> float:
    """Seconds of all engines that find only bounds, or of all others."""
    return sum(past.spent for past in pasts.values() if past.proves is proves)


def last_turn(pasts: Mapping[str, Past], left: float) -> float:
    """Of ``left`` seconds, those that belong to the last turn of a bound, if one is paused.

    What makes its kind's time equal to the other's, and enough to state what it has reached since it last stated a bound.
    """
    paused = [past.spent for past in pasts.values() if past.paused]
    if not paused:
        return 0.0
    bounds = spent_by(pasts, True)
    owed = (bounds + spent_by(pasts, False) + left) / 2 - bounds
    return min(left, max(owed, STATING * max(paused)))
