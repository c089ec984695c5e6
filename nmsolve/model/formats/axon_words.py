"""Compiled scanner of the hyperedges in ``.snn`` and ``.axh`` files, word by word, so that a piece may end anywhere."""

from __future__ import annotations

from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, IntArray

#: What the next word is (``state[0]``).
COUNT, SOURCE, SOURCES, FIRST, PIN, RATE = range(6)

OK, TOO_MANY, NO_NODE, NO_SOURCE = range(4)
ERRORS = (
    "",
    "is one too many",
    "names the node {value}",
    "has {value} sources, which is none or more than its pins",
)


@plain
def scan(
    words: IntArray,
    floats: AnyArray,
    state: IntArray,
    nodes: int,
    edges: int,
    paired: bool,
    source: IntArray,
    rate: AnyArray,
    synapses: IntArray,
    edge: IntArray,
    target: AnyArray,
) -> tuple[int, int]:
    """Take the next words of a file.

    Parameters
    ----------
    words, floats : the same words as whole numbers (int64) and as floats (float32)
    state : (4,) kept between calls: what comes next, hyperedge, its pins left, its source
    paired : ``.axh``
    source, rate, synapses : filled per hyperedge and node, unless they are empty
    edge, target : room for as many connections as there are words

    Returns
    -------
    status, number of connections written; or the error, the value that is wrong. Connections of a hyperedge to its own
    source are left out.
    """
    phase, at, left, own = state[0], state[1], state[2], state[3]
    keep = len(source) > 0
    used = 0
    status = OK
    for i in range(len(words)):
        word = words[i]
        if phase == COUNT:
            if at == edges:
                status, used = TOO_MANY, word
                break
            left = word
            phase = SOURCES if paired else SOURCE
        elif phase == SOURCES:
            if word < 1 or word > left:
                status, used = NO_SOURCE, word
                break
            phase = FIRST
        elif phase == RATE:
            if keep:
                rate[at] = floats[i]
            at += 1
            phase = COUNT
        else:
            if word >= nodes:
                status, used = NO_NODE, word
                break
            if phase == PIN:
                if word != own:
                    edge[used] = at
                    target[used] = word
                    used += 1
                if keep:
                    synapses[word] += 1
                left -= 1
            else:
                own = word
                if keep:
                    source[at] = word
                left -= phase == FIRST
            phase = PIN if left else RATE
    state[0], state[1], state[2], state[3] = phase, at, left, own
    return status, used
