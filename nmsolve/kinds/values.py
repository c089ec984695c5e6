"""Option values in the form people write them: 90s, 5 %, 4GiB, 3x4."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from nmsolve.kinds import clock
from nmsolve.model.errors import InputError, shortened
from nmsolve.model.quantities import seconds as seconds

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.kinds.options import SearchOptions
    from nmsolve.kinds.verbs import GapOptions
    from nmsolve.solvers.run import RunOptions

_BYTES = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def names(text: str | None) -> list[str] | None:
    """Parse ``star, joint`` -> [star, joint]; None stays None."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


#: How many of an objective's unit a unit stands for, by that unit.
_UNITS = {
    "ns": {"": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9},
    "ps": {"": 1.0, "ps": 1.0, "ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12},
    "pJ": {"": 1.0, "pJ": 1.0, "nJ": 1e3, "uJ": 1e6, "mJ": 1e9, "J": 1e12},
}


def nanoseconds(text: str | None, option: str) -> float | None:
    """Parse ``500ns``, ``2us`` or ``0`` -> ns; None stays None. InputError for anything else."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?)\s*([a-z]*)\s*", text, re.ASCII)
    found = float(match[1]) * _UNITS["ns"].get(match[2], math.nan) if match else math.nan
    if not found < 2.0**62:
        raise InputError(f"time {shortened(text)!r}", option, "a time, such as 500ns or 2us")
    return found


def limits(texts: Sequence[str] | None, objectives: Mapping[str, str]) -> dict[str, float]:
    """Parse ``["step-time=200us", "hops=1e6"]`` -> values by name; ``objectives``: their units by name.

    Raises
    ------
    InputError : no such objective, one given twice, or no finite number >= 0 in a unit of the objective's kind
    """
    out: dict[str, float] = {}
    for text in texts or ():
        name, _, value = (part.strip() for part in text.partition("="))
        if name not in objectives or name in out:
            what = f"objective {name!r} twice" if name in out else f"unknown objective {shortened(name)!r}"
            raise InputError(what, "--limit", "NAME=VALUE with one of " + ", ".join(objectives))
        out[name] = _amount(value, objectives[name])
        if not 0 <= out[name] < 1e30:
            wanted = f"a number >= 0{_units_said(objectives[name])} below 1e30"
            raise InputError(f"limit {shortened(text)!r}", "--limit", wanted)
    return out


def thresholds(text: str | None, unit: str) -> dict[str, float]:
    """Parse ``benefit=2us,cost=500`` -> values in ``unit`` (ps or pJ) by name; None gives none.

    Raises
    ------
    InputError : another name, one twice, none at all, or no finite number in a unit of this kind
    """
    out: dict[str, float] = {}
    for part in () if text is None else text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        found = _amount(value, unit)
        if name not in ("benefit", "cost") or name in out or not abs(found) < 1e30:
            wanted = f"benefit=VALUE,cost=VALUE or one of them{_units_said(unit)}"
            raise InputError(f"threshold {shortened(part)!r}", "--threshold", wanted)
        out[name] = found
    return out


def _amount(text: str, unit: str) -> float:
    """Return a number with a unit of the kind of ``unit`` in that unit; NaN for anything else."""
    match = re.fullmatch(r"(-?(?:\d+(?:\.\d*)?|\.\d+))([eE][+-]?\d+)?\s*([a-zA-Z]*)", text, re.ASCII)
    scale = _UNITS.get(unit, {"": 1.0})
    return float(match[1] + (match[2] or "")) * scale.get(match[3], math.nan) if match else math.nan


def _units_said(unit: str) -> str:
    units = _UNITS.get(unit, {})
    return f" in {', '.join(filter(None, units))}" if units else ""


_FRACTION = "a fraction such as 0.05, or 5%"


def fraction(text: str | None, option: str = "--gap") -> float | None:
    """Parse ``0.05`` or ``5%`` -> 0.05; None stays None. ``option``: where it was given.

    Raises
    ------
    InputError : not a number >= 0, or one above 1 without its sign of per cent
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*((?:\d+(?:\.\d*)?|\.\d+)(?:e-?\d+)?)\s*(%?)\s*", text, re.ASCII)
    if not match:
        raise InputError(f"{option[2:]} {text!r}", option, _FRACTION)
    value = float(match[1])
    if value > 1 and not match[2]:
        likely = f"{match[1]}% or {value / 100:g}" if value < 100 else _FRACTION
        raise InputError(f"{option[2:]} {text!r} is {100 * value:g} %", option, likely)
    return value / (100 if match[2] else 1)


def size_in_bytes(text: str | None, option: str = "--memory") -> int | None:
    """Parse ``4GiB`` or ``4000000000`` -> bytes; None stays None.

    Raises
    ------
    InputError : not a positive size
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", text, re.ASCII)
    found = float(match[1]) * _BYTES.get(match[2], 0) if match else 0.0
    if not 1 <= found < 2**62:
        raise InputError(f"memory {shortened(text)!r}", option, "a size such as 4GiB")
    return int(found)


def bandwidth(text: str | None, option: str) -> float | None:
    """Parse ``25.6GB/s``, ``2GiB`` or ``0`` -> bytes per second; None stays None.

    Raises
    ------
    InputError : something else
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?(?:e\d+)?)\s*([A-Za-z]*)(?:/s)?\s*", text, re.ASCII)
    found = float(match[1]) * _BYTES.get(match[2], math.nan) if match else math.nan
    if not found < 2.0**62:
        raise InputError(f"bandwidth {shortened(text)!r}", option, "bytes per second, such as 25.6GB/s")
    return found


def search(o: MapOptions | GapOptions | SearchOptions, **more: Unpack[RunOptions]) -> RunOptions:
    """Return the options of a search and ``more``; its time counts from the start of the command. A cluster is joined at once."""
    if o.cluster is not None:
        join_cluster(o.cluster, o.workers)
    return {
        "started": clock.STARTED, "gap": fraction(o.gap) or 0.0, "seed": o.seed, "workers": o.workers,
        "engines": names(o.engines), "method": getattr(o, "method", None), "memory": size_in_bytes(o.memory),
        "cluster": o.cluster, **more,
    }  # fmt: skip


def join_cluster(address: str, workers: int) -> None:
    """Join the cluster of ``--cluster``.

    Raises
    ------
    InputError : there is none, or workers are given too
    """
    if workers != 1:
        wanted = "one of them: on a cluster as many engines run as it has cores"
        raise InputError("--cluster and --workers", "", wanted)
    from nmsolve.solvers.cluster.machines import joined

    joined(address)


def whole(path: Path | None) -> str | None:
    """Return a path as a report keeps it: from the root."""
    return None if path is None else str(path.resolve())


def text_or_file(text: str | None) -> str | None:
    """Return ``--machine`` or ``--reward`` as a report keeps it: a file by its whole path."""
    return str(Path(text).resolve()) if text and Path(text).is_file() else text


def chip_grid(text: str | None) -> tuple[int, int] | None:
    """Parse ``3x4`` -> (3, 4); ``12`` -> the squarest grid of 12 chips, (3, 4); None stays None.

    Raises
    ------
    InputError : anything else
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,18})\s*(?:[xX]\s*(\d{1,18}))?\s*", text, re.ASCII)
    if not match or int(match[1]) < 1 or (match[2] and int(match[2]) < 1):
        raise InputError(f"chips {text!r}", "--chips", "a number of chips or ROWSxCOLUMNS")
    if match[2]:
        return int(match[1]), int(match[2])
    from nmsolve.hw.machines import squarest

    return squarest(int(match[1]))
