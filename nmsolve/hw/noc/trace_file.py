"""Traces on disk: lines ``step,source,targets,count``, the targets separated by spaces."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from nmsolve.hw.noc.traffic import Trace
from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, write_atomic
from nmsolve.model.formats.text import whole_number
from nmsolve.model.machine import Machine

HEADER = ("step", "source", "targets", "count")


def read_trace(path: str | Path, machine: Machine, period: int) -> Trace:
    """Read a trace; step *s* begins in cycle ``s * period``. Without ``period`` (0) the first column is the cycle itself.

    The header line ``step,source,targets,count`` may be left out. Packets to the sender's own core are an error.

    Raises
    ------
    InputError : names the line: not four fields, not whole numbers, an unknown core, a step before the one above, no packets
    """
    number: dict[tuple[int, tuple[int, ...]], int] = {}
    rows: list[tuple[int, int, int]] = []
    before = 0
    for line, fields in enumerate(_lines(path), 1):
        if not fields or (line == 1 and tuple(f.strip() for f in fields) == HEADER):
            continue
        step, source, goals, count = _entry(fields, f"{path}:{line}", machine)
        if step < before:
            raise InputError(
                f"step {step} comes after step {before}", f"{path}:{line}", "steps in ascending order"
            )
        before = step
        if step * max(period, 1) >= 2**62:
            raise InputError(
                f"step {step} begins in cycle {step * period}", f"{path}:{line}", "less than 2^62"
            )
        flow = number.setdefault((source, goals), len(number))
        rows.append((step * (period or 1), flow, count))
    if not rows:
        raise InputError("a trace without packets", str(path), "lines step,source,targets,count")
    size = np.array([len(goals) for _, goals in number])
    cycle, flow_of, counts = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Trace(
        np.array([s for s, _ in number], np.int32), np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        np.array([t for _, goals in number for t in goals], np.int32), cycle, flow_of, counts, period, Path(path).name,
    )  # fmt: skip


def _lines(path: str | Path) -> list[list[str]]:
    """Return the fields of every line."""
    try:
        return list(csv.reader(io.StringIO(read_limited(path).decode(), newline="")))
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", str(path), "lines step,source,targets,count") from None
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", str(path), "lines step,source,targets,count") from None


def _entry(fields: list[str], where: str, machine: Machine) -> tuple[int, int, tuple[int, ...], int]:
    """One line."""
    words = [word.encode().split() for word in fields]
    numbers = [[whole_number(word) for word in group] for group in words]
    flat = [v for group in numbers for v in group if v is not None]
    if [len(group) for group in numbers[:2] + numbers[3:]] != [1, 1, 1] or len(flat) < sum(map(len, numbers)):
        raise InputError(f"{','.join(fields)!r}"[:80], where, "step,source,targets,count in whole numbers")
    step, source, *goal_list, count = flat
    goals = tuple(sorted(set(goal_list)))
    if not goals or count < 1 or max(step, count) > 2**40:
        raise InputError(f"{','.join(fields)!r}"[:80], where, "four fields: a step >= 0, cores, a count >= 1")
    for core in (source, *goals):
        if not 0 <= core < machine.size:
            raise InputError(f"core {core} does not exist", where, f"0..{machine.size - 1}")
    if source in goals:
        raise InputError(f"core {source} sends to itself", where, "other cores")
    return step, source, goals, count


def write_trace(path: str | Path, trace: Trace) -> None:
    """Write a trace, whole or not at all."""
    steps = trace.cycle // trace.period if trace.period else trace.cycle
    goals = [
        " ".join(map(str, trace.targets[a:b].tolist()))
        for a, b in zip(trace.indptr[:-1], trace.indptr[1:], strict=True)
    ]
    lines = [",".join(HEADER)]
    for step, flow, count in zip(steps.tolist(), trace.flow.tolist(), trace.count.tolist(), strict=True):
        lines.append(f"{step},{int(trace.source[flow])},{goals[flow]},{count}")
    write_atomic(path, ("\n".join(lines) + "\n").encode())
