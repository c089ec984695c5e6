"""The engine ``m1-policy``: method M1 as published, with a trained policy; communities first if there are several processors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.first_fit import FirstFit
from nmsolve.heuristics.mapping.published.communities import communities_to_chips
from nmsolve.heuristics.mapping.published.m2.topology import Stopped
from nmsolve.hw.scores import objective_value
from nmsolve.learn.checkpoint import Checkpoint, sized
from nmsolve.learn.mapping.policy import Size
from nmsolve.learn.mapping.rounds import Rounds
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Rounds that follow the start, and those of every search by draws after them.
ROUNDS = 12
#: Turns of the start, in degrees, for the searches by draws.
TURNS = (0.0, 45.0, 22.5, 67.5)
#: Placements drawn in a round; the search goes on from the best of them.
DRAWS = 8
#: Most nodes times cores that each of them looks at.
MOST_LOOKS = 2**20


def m1_model() -> tuple[Checkpoint, Size]:
    """Return the trained policy and its sizes; InputError as of :func:`.checkpoint.sized`."""
    return sized("m1", Size)


def _too_large(problem: MappingProblem) -> str | None:
    """Return that there are more nodes than fit in memory."""
    try:
        looks = problem.n * (2 * m1_model()[1].reach + 1) ** 2
    except InputError:
        return None
    return None if looks <= MOST_LOOKS else f"{looks} looks of nodes at cores, more than {MOST_LOOKS}"


class M1Policy:
    """The policy asked again from its own answer; offers each placement that is better than those before, repaired where it
    breaks a rule that M1 does not know.
    """

    name = "m1-policy"
    finds = "mappings"
    refuses = takes(f"{ANY} -matrix -lone", _too_large)

    def __init__(self) -> None:
        self._said = False

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Place; without a usable model file say so, once, and offer a first fit instead."""
        try:
            wishes = placements(problem, *m1_model(), context)
        except InputError as error:
            if not self._said:
                self._said = True
                context.note(f"no policy, a first fit instead: {error}")
                FirstFit().run(problem, context)
            return
        with suppress(Stopped):
            _offer_all(problem, wishes, context)


def _offer_all(problem: MappingProblem, wishes: Iterator[tuple[str, IntArray]], context: Context) -> None:
    best = float("inf")
    for label, wish in wishes:
        legal = repair(problem, wish)
        if legal is None:
            continue
        value = objective_value(problem, legal)
        if value < best:
            best = value
            context.offer(legal, label + ("" if np.array_equal(legal, wish) else ", repaired"))
        if context.should_stop():
            return


def placements(
    problem: MappingProblem, model: Checkpoint, size: Size, context: Context
) -> Iterator[tuple[str, IntArray]]:
    """Yield placements (n,) and where they come from, not necessarily legal.

    First the start and :data:`ROUNDS` most probable placements, each the policy's answer to the one before; then, for every
    turn of the start, as many rounds of :data:`DRAWS` draws, each from the best draw of the round before.
    """

    def poll() -> None:
        if context.should_stop():
            raise Stopped

    chips = [np.zeros(problem.n, np.int64)]
    if problem.machine.n_chips > 1:
        chips = communities_to_chips(problem, context.seed, poll)
    boards = [Rounds(problem, size, chip, poll) for chip in chips]
    for board in boards:
        yield from greedy(board, model)
    rng = np.random.default_rng(context.seed)
    for degrees in TURNS:
        for board in boards:
            yield from drawn(board, model, degrees, rng)


def greedy(board: Rounds, model: Checkpoint, rounds: int = ROUNDS) -> Iterator[tuple[str, IntArray]]:
    """Yield the start and the most probable placement of every round, until one is the same as that before."""
    core = board.start()
    yield "start", core
    for _ in range(rounds):
        before, core = core, board.greedy(board.asked(model.arrays, core))
        if np.array_equal(before, core):
            return
        yield "most probable", core


def drawn(
    board: Rounds, model: Checkpoint, degrees: float, rng: np.random.Generator, rounds: int = ROUNDS
) -> Iterator[tuple[str, IntArray]]:
    """Yield the best draw of every round."""
    core = board.start(degrees)
    for _ in range(rounds):
        _, found = board.drawn(board.asked(model.arrays, core), DRAWS, rng)
        core = found[int(np.argmin([objective_value(board.problem, c) for c in found]))]
        yield "drawn", core
