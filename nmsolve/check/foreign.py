"""Re-checks of other packages: they recompute bounds of methods that nmsolve does not know, and are named wherever that counts.

A package offers a function in the group ``nmsolve.rechecks`` for mappings, or in ``.pipeline``, ``.routing``, ``.assignment`` or
``.schedule`` below it, under the name of the method. It takes the problem (for routes then the objective) and the certificate,
and returns the number that this proves. It runs in a contained process, in which the package is imported, too: nothing that it
does can change the process that judges, and only a number comes back. That number is the package's word.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.contained import Allowance, Reply, one_reply
from nmsolve.model.errors import InputError, NmsolveError
from nmsolve.model.host.processes import FORKS
from nmsolve.model.plugins import RECHECKS, entry_of, group_of, in_a_line, load, package_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Bytes that a re-check may use beyond what is there, and the most seconds.
MEMORY, SECONDS = 2**32, 60.0


def foreign_recheck(
    problem: str, bound: Bound, about: tuple[Any, ...], seconds: float = SECONDS,
    rise: Callable[[float], float] = float,
) -> BoundCheck | None:  # fmt: skip
    """Re-check a bound of a method that is none of ours; None if no installed package knows it.

    Parameters
    ----------
    problem : kind of problem, as in :data:`nmsolve.model.plugins.PROBLEMS`; empty for mappings
    about : what the function takes before the certificate
    seconds : how long it may take
    rise : takes a proved number to the least possible objective that is not below it
    """
    try:
        entry = entry_of(group_of(RECHECKS, problem), bound.method)
    except InputError as error:
        return BoundCheck(False, math.nan, error.what)
    if entry is None or entry.name != bound.method:
        return None
    package = f"package {package_of(entry)}"
    if bound.scope != "full" or not 0 <= bound.value < math.inf:
        text = f"{bound.value} with scope {bound.scope[:40]!r} is nothing that {package} can recompute"
        return BoundCheck(False, math.nan, text)
    if not FORKS:
        text = f"not re-checked: {package} cannot be kept apart from nmsolve on this system"
        return BoundCheck(False, math.nan, text)
    allowance = Allowance(MEMORY, min(seconds, SECONDS), "re-checking")
    try:
        certificate = plain(bound.certificate)
        found = one_reply(partial(_proved, entry, about, certificate), package, allowance).value
    except NmsolveError as error:
        return BoundCheck(False, math.nan, str(error))
    if type(found) not in (int, float) or not 0 <= found <= sys.float_info.max:
        return BoundCheck(False, math.nan, f"{package} recomputes {str(found)[:40]}, no number >= 0")
    value = rise(float(found))
    if not bound.value <= value:
        text = f"{package} recomputes only {value:.10g}, the claim is {bound.value:.10g}"
        return BoundCheck(False, value, text)
    text = f"recomputed by {package}, whose code nmsolve does not vouch for: {value:.10g}"
    return BoundCheck(True, bound.value, text, package, by_package=True)


def unknown_method(method: str) -> str:
    """Return why a claim does not count that neither nmsolve nor a package can look at."""
    return f"no engine is called {method[:40]!r} and no installed package re-checks it, so its claim does not count"


def plain(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certificate as JSON values: as ``verify`` will read it.

    Raises
    ------
    InputError : it cannot be written as JSON
    """
    try:
        found: dict[str, Any] = json.loads(json.dumps(certificate, allow_nan=False, default=_listed))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the certificate cannot be written ({in_a_line(error)})") from None
    return found


def _listed(value: object) -> object:
    """Return an array of numbers as a list, a number of NumPy as one of Python."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"it holds {type(value).__name__}")


def _proved(entry: EntryPoint, about: tuple[Any, ...], certificate: dict[str, Any]) -> Reply:
    """Return what the function of the package says, in the other process."""
    try:
        value = load(entry)(*about, certificate)
    except (InputError, MemoryError, RecursionError):
        raise
    except (Exception, SystemExit) as error:
        raise InputError(
            f"the re-check {entry.name} failed ({in_a_line(error)})", f"package {package_of(entry)}"
        ) from error
    return Reply(float(value) if isinstance(value, Real) else str(value)[:40], {})
