"""One limit of a problem, as messages, conflicts and models name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limit:
    """One thing that could be lifted: ``kind`` and ``name`` are unique in a problem, ``words`` are what messages call it.

    ``rule`` : the rule itself, where it is an object of its own
    """

    kind: str
    name: str = ""
    words: str = ""
    rule: Any = None
