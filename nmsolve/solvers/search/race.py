"""Which engine of a race runs next. Mappings and bounds get equal time; among each, the engine whose doubled time promises most.

A run that is cut off is worth repeating only with more time. Each engine of a race therefore gets a short first run, and then
runs twice as long as its last one. What a run of twice the time should bring is guessed from what the last doubling brought;
all restarts of an engine together cost no more than its last run.
"""

from __future__ import annotations

import math
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


@dataclass
class Past:
    """What an engine has had and delivered so far.

    Attributes
    ----------
    runs : that have ended or are under way
    span, took : seconds that the last run was given, and took
    spent : seconds of all runs
    before, after : before and after the last run: its own bound (0 if none) where it only proves bounds, else the best
        objective of all engines (inf if none)
    """

    runs: int = 0
    span: float = 0.0
    took: float = 0.0
    spent: float = 0.0
    before: float = 0.0
    after: float = 0.0

    def begin(self, span: float, level: float) -> None:
        """A run of ``span`` seconds begins at this level."""
        self.runs, self.span, self.before = self.runs + 1, span, level

    def end(self, took: float, level: float) -> None:
        """The run has ended at this level."""
        self.took, self.spent, self.after = took, self.spent + took, level

    def cut_off(self, left: float) -> bool:
        """Return True if its last run would have gone on, and ``left`` seconds allow a longer one."""
        return self.took >= WHOLE * self.span and left >= LONGER * self.span

    def next_span(self, left: float) -> float:
        """Return seconds of its next run of ``left``: twice the last, or all where too little would be left for one after it."""
        span = 2 * self.span
        return span if left >= (1 + LONGER) * span else left

    def promise(self, best: float) -> float:
        """Gain per second, relative to the value, that its next run should bring; ``best`` is the best of all engines."""
        if not (0 < self.after < math.inf and 0 < best < math.inf):
            gain = HOPE
        else:
            first = not 0 < self.before < math.inf
            growth = HOPE if first else abs(math.log(self.after / self.before))
            gain = max(0.0, growth - abs(math.log(self.after / best)))
        return gain / max(1e-3, 2 * self.took)
