"""What re-checks derive from a problem alone is derived once per case: most of the time of a try on a tiny case goes there.

What is remembered cannot be written to, so that a re-check which changes it in place is found out.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from nmsolve.model.mapping.problem import MappingProblem

#: Functions of a problem that are the same at every try.
DERIVED = (
    *(
        "contracted",
        "granularity",
        "both_ways",
        "one_way_traffic",
        "all_distances",
        "distances",
        "core_distance",
    ),
    *(
        "whole_distances",
        "whole_data",
        "distance_error",
        "parallel",
        "least_apart",
        "room_of",
        "messages",
        "_parting",
    ),
    *("_parts", "_exchanged", "_summed", "usable_cores", "_links", "_work", "_beyond_the_first"),
)

_lasting: dict[int, Any] = {}
_known: dict[tuple[Any, ...], Any] = {}


def remember(problem: Any) -> None:
    """From now on, derive what follows from this very problem once."""
    if not _lasting:
        for name, module in list(sys.modules.items()):
            if name.startswith("nmsolve.check.mapping.bounds.") or name.endswith("mapping.recheck"):
                for derived in DERIVED:
                    function = getattr(module, derived, None)
                    if isinstance(function, types.FunctionType):
                        setattr(module, derived, _once(function))
    _lasting[id(problem)] = problem  # held, so that no other problem gets its number


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    def answer(problem: Any, *more: Any, **named: Any) -> Any:
        if id(problem) not in _lasting:  # made anew for this one try
            return function(problem, *more, **named)
        plain = tuple(x.tobytes() if isinstance(x, np.ndarray) else x for x in more)
        key = (function, id(problem), plain, tuple(named.items()))
        if key not in _known:
            _known[key] = value = _locked(function(problem, *more, **named))
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, MappingProblem):  # from which the others are then derived once, too
                    _lasting[id(part)] = part
        return _known[key]

    return answer


def _locked(value: Any) -> Any:
    """The value with its arrays closed to writing."""
    for part in value if isinstance(value, tuple) else (value,):
        arrays = (part.data, part.indices, part.indptr) if isinstance(part, csr_array) else (part,)
        for array in arrays:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
    return value
