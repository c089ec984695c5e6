"""Compiled parser of edge lists: one pass over the bytes of whole lines."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain_callee
from nmsolve.model.types import AnyArray, FloatArray, IntArray

OK, NOT_WHOLE, NOT_NUMBER, COLUMNS = range(4)

#: Powers of ten that are exact in float64: a decimal of up to 15 digits times or by one of them is correctly rounded
#: (Clinger, "How to read floating point numbers accurately", 1990).
POWERS = 10.0 ** np.arange(23)
EXACT_DIGITS, MOST_POWER = 15, 22

#: Most digits of a node number (it fits in 63 bits).
DIGITS = 18


@plain_callee
def _is_blank(c: int) -> bool:
    """Blank, tab, carriage return, comma or semicolon."""
    return c == 32 or c == 9 or c == 13 or c == 44 or c == 59


@plain_callee
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


@plain_callee
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


@kernel
def parse(
    data: AnyArray, columns: int, powers: FloatArray, u: IntArray, v: IntArray, w: FloatArray, late: IntArray
) -> tuple[int, int, int, int, int]:
    """Edges of whole lines: ``u v`` or ``u v w``; lines that begin with ``#`` or ``%`` are comments.

    Parameters
    ----------
    data : bytes that end with a line end
    columns : 2 or 3, or 0 if no line has been seen yet
    powers : :data:`POWERS`
    u, v, w : room for one edge per line
    late : (lines, 3) room for edge, begin and end of weights that only Python's own ``float`` reads exactly

    Returns
    -------
    status, edges, late weights, columns, and where the line of an error begins
    """
    at, edges, slow = 0, 0, 0
    token = np.empty((4, 2), np.int64)
    while at < len(data):
        line, count = at, 0
        while data[at] != 10:
            if _is_blank(data[at]):
                at += 1
                continue
            if count == 0 and (data[at] == 35 or data[at] == 37):
                while data[at] != 10:
                    at += 1
                break
            begin = at
            while data[at] != 10 and not _is_blank(data[at]):
                at += 1
            token[min(count, 3)] = begin, at
            count += 1
        at += 1
        if count == 0:
            continue
        if columns == 0 and (count == 2 or count == 3):
            columns = count
        if count != columns:
            return COLUMNS, edges, slow, columns, line
        u[edges] = _whole(data, token[0, 0], token[0, 1])
        v[edges] = _whole(data, token[1, 0], token[1, 1])
        if u[edges] < 0 or v[edges] < 0:
            return NOT_WHOLE, edges, slow, columns, line
        w[edges] = 1.0
        if count == 3:
            w[edges] = _decimal(data, token[2, 0], token[2, 1], powers)
            if w[edges] < 0:
                late[slow] = edges, token[2, 0], token[2, 1]
                slow += 1
        edges += 1
    return OK, edges, slow, columns, 0
