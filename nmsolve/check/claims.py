"""What a report of any kind claims about numbers: gap, status, values against those recomputed."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nmsolve.model.bound import gap as gap_of
from nmsolve.model.bound import meets

#: Relative difference below which numbers count as equal (sums in another order differ in the last digits).
TOLERANCE = 1e-9
#: The largest float: whole numbers in JSON may be larger.
MOST = sys.float_info.max
#: Whole numbers below this are written in full.
WRITTEN = 10**24


@dataclass(frozen=True)
class Check:
    """One thing that was checked: its name, whether it holds, and what was found, in words."""

    name: str
    ok: bool
    text: str


def gap_check(name: str, value: Any, bound: Any, said: Any) -> Check:
    """Check ``|objective - bound| / |objective|`` against the report, and the bound below the objective."""
    if bound is not None and not (is_number(bound) and bound >= 0):
        return Check(name, False, f"the bound is {shown(bound)}, not a number >= 0")
    expected = gap_of(value if is_number(value) else None, bound)
    if expected is None:
        return Check(name, said is None, f"no bound, so no gap; the report says {shown(said)}")
    if bound > value * (1 + TOLERANCE):
        return Check(name, False, f"the bound {shown(bound)} is above the objective {shown(value)}")
    ok = is_number(said) and math.isclose(said, expected, rel_tol=1e-6, abs_tol=1e-9)
    return Check(
        name, ok, f"({shown(value)} - {shown(bound)}) / {shown(value)} = {expected:.6g}, said {shown(said)}"
    )


def status_check(
    claimed: Mapping[str, Any], value: Any, bound: Any, what: str = "a mapping", exact: bool = False
) -> Check:  # fmt: skip
    """``optimal`` needs a bound on the whole problem that meets the objective; there is ``what``, so nothing else will do."""
    status, scope = claimed.get("status"), claimed.get("bound_scope")
    if status not in ("optimal", "feasible"):
        return Check("status", False, f"the report says {shown(status)[:40]}, but there is {what}")
    if status == "feasible":
        closed = is_number(value) and bound == value
        return Check(
            "status", not closed, "feasible" + closed * f", though the bound {shown(bound)} is the objective"
        )
    met = is_number(value) and is_number(bound) and meets(bound, value, exact=exact)
    ok = met and scope in ("full", None)
    text = f"called optimal: claimed bound {shown(bound)} ({shown(scope)}), objective {shown(value)}"
    return Check("status", ok, text)


def is_number(value: Any) -> bool:
    """Return whether a value of a report is a number that floats hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST


def equal(value: Any, found: float) -> bool:
    """Return whether a value of a report is the one that was found, but for :data:`TOLERANCE`."""
    return is_number(value) and math.isclose(value, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def shown(value: Any) -> str:
    """Return a value for a message, whole numbers with all their digits."""
    if value is None:
        return "nothing"
    if not is_number(value):
        return repr(value) if not isinstance(value, int) else f"a whole number of {value.bit_length():,} bits"
    return str(int(value)) if abs(value) < WRITTEN and value == int(value) else f"{value:.15g}"
