"""From ``tasks.json`` to the scheduling problem: names become numbers, every process gets its modes, periods become frames."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.schedule.build import require_no_circle, unit_sets, whole
from nmsolve.model.schedule.feasible import require_feasible
from nmsolve.model.schedule.frames import frames_of, require_modes, times_of
from nmsolve.model.schedule.modes import ModeTable
from nmsolve.model.schedule.problem import OBJECTIVES, Edges, Network, ScheduleProblem, Units
from nmsolve.model.schedule.statement import Stated
from nmsolve.model.schedule.tasks_file import After, Interaction, Process, TasksFile, read_tasks
from nmsolve.model.schedule.tasks_units import SetNumbers, units_of


def load_tasks(path: str | Path, machine: Units | None = None, checked: bool = True) -> Stated:
    """Read ``tasks.json``.

    Parameters
    ----------
    machine : the units, for a file that has none

    Raises
    ------
    InputError : not of this form, unknown or repeated names, a circle, or a problem that cannot be solved
        (:class:`DoesNotFitError`): no unit set with enough memory, no common unit, a deadline or period that is too short
    """
    with _no_collection():
        return stated(read_tasks(path), str(path), machine, checked)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing here refers to itself, and walks of the collector through all of it take longer than reading it."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def stated(file: TasksFile, path: str, machine: Units | None = None, checked: bool = True) -> Stated:
    """Return the problem that a file states; ``path`` is for messages.

    ``checked`` : a problem that counting shows to have no schedule is refused.

    Raises
    ------
    InputError : as :func:`load_tasks`
    """
    units, on = units_of(file, machine, path)
    sets = SetNumbers(units, file.unit_sets, path)
    steps = Steps(file, path)
    edges = steps.edges()
    modes = ModeTable(sets, units, on, file.network, file.budgets, path)
    defaults = [modes.candidates(t.sets, f"$.tasks[{k}].sets") for k, t in enumerate(file.tasks)]
    for p in range(len(steps.stated)):
        step = steps.stated[p]
        if isinstance(step, Process):
            modes.add(step, steps.where[p], steps.labels[p], defaults[steps.tasks[p][0]])
        else:
            a, b = steps.tasks[p]
            modes.add_interaction(step, steps.where[p], steps.labels[p], (defaults[a], defaults[b]))
    frames = frames_of(file, path, steps.tasks, edges)
    require_modes(frames, modes.first, path)
    found = unit_sets(sets.members, units.hops, path)
    one, items, budgets = modes.finished(found)
    chosen, taken = frames.modes(one)
    times = times_of(file, steps.stated, steps.tasks, edges)
    problem = ScheduleProblem(
        file.name or Path(path).name.split(".")[0] or "tasks",
        tuple(frames.labels(steps.labels)), tuple(t.name for t in file.tasks),
        frames.each(whole([t[0] for t in steps.tasks])), frames.each(whole([t[1] if len(t) > 1 else -1 for t in steps.tasks])),
        units, found, chosen, items, frames.edges(edges), _network(file), (), np.zeros(0, np.int64),
        frames.times(times.release), frames.times(times.deadline), frames.times(times.due), frames.each(times.weight),
        *_aims(file, path), budgets=budgets.of_modes(taken),
    )  # fmt: skip
    periods = tuple(t.period or 0 for t in file.tasks)
    names = [step.name for step in steps.stated]
    whole_file = Stated(
        problem, "tasks", file.tick or 0.0, file.joule or 0.0, tuple(names[k] for k in frames.process.tolist()),
        frames.frame, periods,
    )  # fmt: skip
    if checked:
        require_feasible(whole_file, path)
    return whole_file


def _network(file: TasksFile) -> Network:
    n = file.network
    return Network(n.hop_time, n.bandwidth, n.hop_energy)


def _aims(
    file: TasksFile, path: str
) -> tuple[str, tuple[tuple[str, int], ...], tuple[tuple[str, float], ...]]:
    """Return objective, weights and ceilings."""
    for name in file.ceilings:
        if name not in OBJECTIVES or name == "weighted":
            raise InputError(
                f"ceiling of {name!r}",
                f"{path}: $.ceilings",
                "one of " + ", ".join(OBJECTIVES).replace(", weighted", ""),
            )
    return (
        file.objective,
        tuple(file.objective_weights.items()),
        tuple((k, float(v)) for k, v in file.ceilings.items()),
    )


class Steps:
    """All processes and interactions of a file, one frame of each, and what their names mean.

    Attributes
    ----------
    stated : processes of one network after the other, then interactions
    tasks : the network of each, or both
    where : its JSON path
    labels : unique names, without a frame: ``network/process``, ``one+other/process``
    """

    def __init__(self, file: TasksFile, path: str) -> None:
        self.path = path
        self.stated: list[Process | Interaction] = []
        self.tasks: list[tuple[int, ...]] = []
        self.where: list[str] = []
        self.labels: list[str] = []
        self.names = [t.name for t in file.tasks]
        self._by_task: list[dict[str, int]] = []
        self._by_label: dict[str, int] = {}
        number = self._numbers(file)
        for t, task in enumerate(file.tasks):
            self._by_task.append({})
            for k, process in enumerate(task.processes):
                self._add(process, (t,), f"$.tasks[{t}].processes[{k}]")
        for k, step in enumerate(file.interactions):
            where = f"$.interactions[{k}]"
            unknown = next((name for name in step.between if name not in number), None)
            if unknown is not None or step.between[0] == step.between[1]:
                what = f"unknown network {unknown!r}" if unknown is not None else "a network meets itself"
                raise InputError(what, f"{path}: {where}.between", "the names of two networks")
            self._add(step, tuple(number[name] for name in step.between), where)
        if not self.stated:
            raise InputError("no processes", f"{path}: $.tasks", "at least one")

    def _numbers(self, file: TasksFile) -> dict[str, int]:
        number: dict[str, int] = {}
        for t, name in enumerate(self.names):
            if name in number:
                raise InputError(
                    f"two networks are called {name!r}", f"{self.path}: $.tasks[{t}].name", "every name once"
                )
            if "/" in name:
                raise InputError(
                    f"a network is called {name!r}", f"{self.path}: $.tasks[{t}].name", "a name without /"
                )
            number[name] = t
        return number

    def _add(self, step: Process | Interaction, tasks: tuple[int, ...], where: str) -> None:
        p = len(self.stated)
        label = "+".join(self.names[t] for t in tasks) + "/" + step.name
        self.stated.append(step)
        self.tasks.append(tasks)
        self.where.append(where)
        self.labels.append(label)
        if label in self._by_label or any(step.name in self._by_task[t] for t in tasks):
            raise InputError(
                f"two processes are called {label!r}", f"{self.path}: {where}.name", "every name once"
            )
        self._by_label[label] = p
        for t in tasks:
            self._by_task[t][step.name] = p

    def edges(self) -> Edges:
        """Return the dependencies within one frame.

        Raises
        ------
        InputError : an unknown name, one that is named twice, a circle
        """
        source, target, moved, convert = [], [], [], []
        for p, step in enumerate(self.stated):
            seen = set()
            for k, entry in enumerate(step.after):
                after = After(entry) if isinstance(entry, str) else entry
                q = self._meant(after.of, p, k)
                if q in seen:
                    raise InputError(
                        f"{self.labels[p]!r} comes after {self.labels[q]!r} twice", f"{self.path}: {self.where[p]}.after[{k}]",
                        "every process once",
                    )  # fmt: skip
                seen.add(q)
                source.append(q)
                target.append(p)
                moved.append(after.bytes)
                convert.append(after.convert)
        edges = Edges(whole(source), whole(target), whole(moved), whole(convert))
        require_no_circle(self.labels, edges.source, edges.target, self.path)
        return edges

    def _meant(self, name: str, p: int, k: int) -> int:
        """Return the process that ``name`` means where ``p`` comes after it: of its own network, or by its whole label."""
        own = {self._by_task[t][name] for t in self.tasks[p] if name in self._by_task[t]}
        if len(own) == 1:
            return own.pop()
        where = f"{self.path}: {self.where[p]}.after[{k}]"
        if own:
            labels = " or ".join(repr(self.labels[q]) for q in sorted(own))
            raise InputError(f"{name!r} may be {labels}", where, "the whole label")
        found = self._by_label.get(name)
        if found is None:
            raise InputError(
                f"unknown process {name!r}{_hint(name, self._near(p))}",
                where,
                "a process, or network/process",
            )
        return found

    def _near(self, p: int) -> Sequence[str]:
        return [name for t in self.tasks[p] for name in self._by_task[t]]


def _hint(name: str, known: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known[:5000], n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
