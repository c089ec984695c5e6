"""Compiled parser of edge lists: one pass over the bytes of whole lines."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, IntArray

OK, NOT_PLAIN = range(2)

#: The separator that stands for runs of blanks and tabs.
BLANK, TAB = 32, 9

#: Powers of ten that are exact in float64: a decimal of up to 15 digits times or by one of them is correctly rounded
#: (Clinger, "How to read floating point numbers accurately", 1990).
POWERS = 10.0 ** np.arange(23)
EXACT_DIGITS, MOST_POWER = 15, 22

#: Most digits of a node number, and what it stays below (it fits in 63 bits).
DIGITS, MOST = 18, 10**18


@plain
def _whole(data: AnyArray, a: int, b: int) -> int:
    """The number in ``data[a:b]``, or -1."""
    if b - a > DIGITS:
        return -1
    value = 0
    for i in range(a, b):
        if data[i] < 48 or data[i] > 57:
            return -1
        value = 10 * value + int(np.int64(data[i])) - 48
    return value


@plain
def _integral(data: AnyArray, a: int, b: int) -> int:
    """The whole number in ``data[a:b]``, also written as ``3.0`` or ``3.000e+00``, or -1."""
    value, digits, zeros, scale, point = 0, 0, 0, 0, False
    i = a
    while i < b and (48 <= data[i] <= 57 or (data[i] == 46 and not point)):
        if data[i] == 46:
            point = True
        else:
            zeros += 1
            digits += 1
            scale -= point
            if data[i] != 48:
                if zeros > DIGITS:
                    return -1
                for _ in range(zeros):
                    value *= 10
                    if value >= MOST:
                        return -1
                value += int(np.int64(data[i])) - 48
                zeros = 0
        i += 1
    if digits == 0:
        return -1
    if i < b and (data[i] == 101 or data[i] == 69):
        sign = -1 if i + 1 < b and data[i + 1] == 45 else 1
        i += 2 if i + 1 < b and (data[i + 1] == 43 or data[i + 1] == 45) else 1
        exponent = _whole(data, i, b)
        if i == b or exponent < 0 or exponent > 999:
            return -1
        scale += sign * exponent
        if scale > 0 and digits > 5:  # rounded, as spreadsheets do with long ids: a reader of rows says so
            return -1
        i = b
    scale += zeros
    if i < b or (value > 0 and (scale < 0 or scale > DIGITS)):
        return -1
    for _ in range(scale if value > 0 else 0):
        value *= 10
        if value >= MOST:
            return -1
    return value


@plain
def _decimal(data: AnyArray, a: int, b: int, powers: FloatArray) -> float:
    """The decimal in ``data[a:b]``, or -1 where the quick way is not exact or it is no such number."""
    mantissa, digits, point, scale = 0, 0, False, 0
    i = a
    while i < b and (48 <= data[i] <= 57 or (data[i] == 46 and not point)):
        if data[i] == 46:
            point = True
        else:
            mantissa = 10 * mantissa + int(np.int64(data[i])) - 48
            digits += 1
            scale -= point
            if digits > EXACT_DIGITS:
                return -1.0
        i += 1
    if digits == 0:
        return -1.0
    if i < b and (data[i] == 101 or data[i] == 69):
        i += 1
        sign = 1
        if i < b and (data[i] == 43 or data[i] == 45):
            sign = 1 if data[i] == 43 else -1
            i += 1
        if b - i > 3:
            return -1.0
        exponent = _whole(data, i, b)
        if i == b or exponent < 0:
            return -1.0
        scale += sign * exponent
        i = b
    if i < b or abs(scale) > MOST_POWER:
        return -1.0
    return float(mantissa * powers[scale] if scale >= 0 else mantissa / powers[-scale])


@plain
def _padded(data: AnyArray, a: int, b: int) -> bool:
    """Whether a number in ``data[a:b]`` begins with a 0 that it does not need."""
    return b - a > 1 and data[a] == 48 and 48 <= data[a + 1] <= 57


@kernel
def parse(
    data: AnyArray, separator: int, columns: int, places: IntArray, powers: FloatArray,
    u: IntArray, v: IntArray, w: FloatArray, late: IntArray,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Edges of whole lines of plain numbers; empty lines and those that begin with ``#`` or ``%`` are passed over.

    Parameters
    ----------
    data : bytes that end with a line end
    separator : a byte, around which there may be blanks; :data:`BLANK` for runs of blanks and tabs
    columns : how many every line has
    places : (3,) the columns of source, target and weight (-1: none, all weights are 1); the others are not looked at
    powers : :data:`POWERS`
    u, v, w : room for one edge per line
    late : (lines, 3) room for edge, begin and end of weights that only Python's own ``float`` reads exactly

    Returns
    -------
    status, edges, late weights, and where the first line begins that is no such edge
    """
    at, edges, slow = 0, 0, 0
    source, target, weight = places[0], places[1], places[2]
    runs = separator == BLANK
    first, second, third = (0, 0), (0, 0), (0, 0)
    while at < len(data):
        line, count = at, 0
        while True:
            while data[at] == 32 or data[at] == 13 or (data[at] == 9 and separator != TAB):
                at += 1
            if count == 0 and (data[at] == 35 or data[at] == 37):
                while data[at] != 10:
                    at += 1
            if data[at] == 10 and (runs or count == 0):
                break
            begin = at
            if runs:
                while data[at] > 32 or not (
                    data[at] == 10 or data[at] == 32 or data[at] == 9 or data[at] == 13
                ):
                    at += 1
                end = at
            else:
                while data[at] != separator and data[at] != 10:
                    at += 1
                end = at
                while end > begin and (data[end - 1] == 32 or data[end - 1] == 13 or data[end - 1] == 9):
                    end -= 1
            if count == source:
                first = begin, end
            elif count == target:
                second = begin, end
            elif count == weight:
                third = begin, end
            count += 1
            if not runs:
                if data[at] == 10:
                    break
                at += 1
        at += 1
        if count == 0:
            continue
        if count != columns:
            return NOT_PLAIN, edges, slow, line
        if _padded(data, first[0], first[1]) or _padded(data, second[0], second[1]):
            return NOT_PLAIN, edges, slow, line
        u[edges] = _whole(data, first[0], first[1])
        v[edges] = _whole(data, second[0], second[1])
        if u[edges] < 0:
            u[edges] = _integral(data, first[0], first[1])
        if v[edges] < 0:
            v[edges] = _integral(data, second[0], second[1])
        if u[edges] < 0 or v[edges] < 0 or first[0] == first[1] or second[0] == second[1]:
            return NOT_PLAIN, edges, slow, line
        w[edges] = 1.0
        if weight >= 0:
            w[edges] = _decimal(data, third[0], third[1], powers)
            if w[edges] < 0:
                late[slow, 0], late[slow, 1], late[slow, 2] = edges, third[0], third[1]
                slow += 1
        edges += 1
    return OK, edges, slow, 0
