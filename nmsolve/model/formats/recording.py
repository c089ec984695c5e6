"""What a recording of spikes says, whatever file it is in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nmsolve.model.types import FloatArray, IntArray

#: Seconds of units of time, as files name them.
UNITS = {
    name: seconds
    for seconds, names in (
        (1.0, "s sec second seconds"),
        (1e-3, "ms msec millisecond milliseconds"),
        (1e-6, "us usec µs μs microsecond microseconds"),
        (1e-9, "ns nsec nanosecond nanoseconds"),
    )
    for name in names.split()
}


@dataclass(frozen=True)
class Recording:
    """``spikes`` (trains,) of the neurons ``names``; ``seconds`` that were recorded (trains,), or None if the file does not say.

    Names are ``population/number``, or whatever the file calls its neurons. ``span`` are the seconds of the first and the last
    spike (steps of a chip if times are steps); None if there are no spikes, or if they were checked against ``seconds``.
    """

    path: Path
    names: tuple[str, ...]
    spikes: IntArray
    seconds: FloatArray | None
    span: tuple[float, float] | None = None
