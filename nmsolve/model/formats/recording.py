"""What a recording of spikes says, whatever file it is in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True)
class Recording:
    """``spikes`` (trains,) of the neurons ``names``; ``seconds`` that were recorded (trains,), or None if the file does not say.

    Names are ``population/number``, or whatever the file calls its neurons.
    """

    path: Path
    names: tuple[str, ...]
    spikes: IntArray
    seconds: FloatArray | None
