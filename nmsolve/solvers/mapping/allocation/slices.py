"""Runs single engines of automatic mode on generated problems, and logs their curves in one file that can be gone on with.

Every run has a process of its own. Seconds are CPU seconds, so that other work on the machine does not show. Bounds begin with
the best mapping that the heuristics found, as they do in automatic mode.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.learn.allocation.features import features_of
from nmsolve.learn.allocation.log import Slice, read_slices, thinned
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.host.processes import require_fork
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.allocation.instances import Instance
from nmsolve.solvers.mapping.auto import automatic

#: Seconds of the runs of a heuristic and of a bound; every LONG_EVERY-th instance has longer ones.
HEURISTIC, BOUND = (0.3, 1.0), (0.8,)
LONG_HEURISTIC, LONG_BOUND, LONG_EVERY = (0.3, 1.0, 4.0), (3.0,), 6
#: Longest of all runs.
LONGEST = LONG_HEURISTIC[-1]
#: Engines are those of the fixed plan for so many seconds.
PATIENT = 8.0


#: What runs the engines on an instance, by its number; a number, an instance and its runs.
Work = Callable[[int, Instance], Iterable[Slice]]
Logged = tuple[int, Instance, Iterable[Slice]]


@dataclass(frozen=True)
class Curves:
    """What a run gave: objectives and bounds as ``(second, value)``, the mapping (n,) if there is one, and CPU seconds."""

    objectives: list[tuple[float, float]]
    bounds: list[tuple[float, float]]
    core: IntArray | None
    took: float

    @property
    def best(self) -> float:
        """The last objective; inf if there is none."""
        return self.objectives[-1][1] if self.objectives else math.inf


def log_slices(
    path: Path,
    instances: Iterable[tuple[int, Instance]],
    seconds: float,
    say: Callable[[str], None],
    longest: float = LONGEST,
    cluster: str | None = None,
) -> list[Slice]:
    """Run what the file has not yet, add it line by line, and return all runs.

    Parameters
    ----------
    instances : numbers and instances
    seconds : CPU seconds of the runs that are added; no run begins after them
    longest : seconds that no run is longer than
    cluster : address of a Ray cluster whose machines run them, some instances ahead; what is logged, and in which order, does not
        depend on it

    Raises
    ------
    InputError : the file is not such a log; there is no such cluster
    """
    known = read_slices(path)
    if path.exists() and not path.read_bytes().endswith(b"\n"):  # the last line was cut off
        write_atomic(path, "".join(one.line() for one in known))
    done = frozenset((one.instance, one.engine, one.limit) for one in known)
    work = partial(_missing, longest=longest, done=done)
    with (
        path.open("a") as file,
        closing(_here(instances, work) if cluster is None else _there(instances, work, cluster)) as all_runs,
    ):
        for number, instance, runs in all_runs:
            for one in runs:
                known.append(one)
                file.write(one.line())
                file.flush()
                seconds -= one.took
                if seconds <= 0:
                    return known
            say(f"{number + 1}: {instance.name}")
    return known


def _here(instances: Iterable[tuple[int, Instance]], work: Work) -> Generator[Logged]:
    """Yield numbers, instances and their runs, which begin when they are asked for."""
    for number, instance in instances:
        yield number, instance, work(number, instance)


def _there(instances: Iterable[tuple[int, Instance]], work: Work, cluster: str) -> Generator[Logged]:
    """The same from a cluster: as many instances ahead as it has cores. Those of a machine that is gone begin again."""
    from nmsolve.solvers.cluster.tasks import ahead

    calls = ((number, instance) for number, instance in instances)
    yield from ((*call, runs) for call, runs in ahead(cluster, partial(_all_of, work), calls))


def _all_of(work: Work, number: int, instance: Instance) -> list[Slice]:
    return list(work(number, instance))


def _missing(
    number: int, instance: Instance, *, longest: float, done: frozenset[tuple[str, str, float]]
) -> Iterator[Slice]:
    """Yield the runs of one instance that are not ``done``: heuristics first, then bounds from the best mapping."""
    problem, long = instance.problem(), number % LONG_EVERY == 0
    steps = automatic(problem, PATIENT, 1, lambda name, why: None)
    finders = [s.engine.name for s in steps if s.engine.finds != "bounds"]
    provers = [s.engine.name for s in steps if s.engine.finds == "bounds"]
    finds, proves = (LONG_HEURISTIC, LONG_BOUND) if long else (HEURISTIC, BOUND)
    runs = [(name, x, False) for name in finders for x in _up_to(longest, finds)]
    runs += [(name, x, True) for name in provers for x in _up_to(longest, proves)]
    missing = [run for run in runs if (instance.name, run[0], run[1]) not in done]
    if not missing:
        return
    features = [float(f) for f in features_of(problem)]
    best: Curves | None = None
    if missing[0][2] and len(missing) < len(runs):  # an interrupted log: bounds need a mapping again
        best = alone(problem, finders[-1], min(longest, HEURISTIC[-1]))
    for name, limit, only_bounds in missing:
        run = alone(problem, name, limit, best.core if only_bounds and best is not None else None)
        if not only_bounds and (best is None or run.best < best.best):
            best = run
        curve = thinned(run.bounds if only_bounds else run.objectives)
        yield Slice(instance.name, features, name, only_bounds, limit, run.took, curve)


def _up_to(longest: float, limits: Sequence[float]) -> list[float]:
    """Return the limits that are not longer than ``longest``, or that one."""
    return [x for x in limits if x <= longest] or [longest]


def alone(
    problem: MappingProblem, engine: str | None, seconds: float, start: IntArray | None = None, **options: Any
) -> Curves:
    """Run one engine, or automatic mode (None), in a process of its own whose clock counts its CPU seconds.

    Parameters
    ----------
    start : (n,) mapping to begin with
    options : more of those of :func:`nmsolve.solvers.mapping.api.solve`

    Raises
    ------
    InputError : the process died, or this system cannot split one in two
    """
    require_fork("training by counted work")
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_run, args=(problem, engine, seconds, start, options, there)
    )
    process.start()
    there.close()
    found: Curves | None = None
    with suppress(EOFError):  # it died without a word
        found = here.recv()
    process.join()
    if found is None:
        raise InputError(
            f"the process of {engine or 'automatic mode'} died", problem.graph.name, "enough memory"
        )
    return found


def _run(
    problem: MappingProblem, engine: str | None, seconds: float, start: IntArray | None, options: dict[str, Any],
    pipe: Connection,
) -> None:  # fmt: skip
    """One run, in a process of its own."""
    from nmsolve.solvers.mapping.api import solve

    clock.count_cpu()
    began = time.process_time()
    engines = None if engine is None else [engine]
    result = solve(
        problem, **{"time_limit": seconds, "engines": engines, "warm_start": start, "seed": 1} | options
    )
    objectives = [
        (e.seconds, e.objective) for e in result.events if e.kind == "incumbent" and e.objective is not None
    ]
    bounds = [(e.seconds, e.bound) for e in result.events if e.kind == "bound" and e.bound is not None]
    core = None if result.core is None else np.asarray(result.core)
    pipe.send(Curves(objectives, bounds, core, time.process_time() - began))
