"""Fill the function library by measuring a model on this host (M3.8)."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.hw.assignment.estimates import work_of
from nmsolve.hw.assignment.fused_profile import Parts, added, whole_times
from nmsolve.hw.assignment.fusion import groups_of
from nmsolve.hw.assignment.library import Library
from nmsolve.hw.assignment.library_rows import COPY, Entry, Fused, Key, key_of
from nmsolve.hw.assignment.machine import MOST_THREADS
from nmsolve.hw.assignment.one_node import Model, NodeModels, integer_twin, model_of
from nmsolve.hw.assignment.random_values import random_array
from nmsolve.hw.assignment.roofline import OperatorWork
from nmsolve.hw.assignment.runtime import Patience, Session, Times, runtime_name, sent, timed, to_runtime
from nmsolve.hw.assignment.steps import Program, Step
from nmsolve.model.errors import BackendError, InputError
from nmsolve.model.formats.onnx.values import DTYPES
from nmsolve.model.operators.classes import CONTROL

#: Operations faster than this (ps) are measured many at a time, so that the start of a session (about 2 us) does not count;
#: slower ones are not, since many large results would not stay in the caches.
SHORT, MANY = 2e7, 16
#: How often a node is measured again whose times spread too far.
AGAIN = 2
#: Sizes of tensors whose copies are measured, at most.
COPIES = 16

#: Told how far it is: how many of how many are done, and what comes next.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Profiling:
    """What to measure, and how.

    Attributes
    ----------
    threads : numbers of threads, each stands for a processor of this many cores
    processor : name of this host in the library
    patience : runs of every node
    most_spread : a node whose median is this many times its low quantile, again and again, is not trusted
    fused : run the model whole, too
    integers : measure the integer forms of float products, too
    again : measure also what the library has
    """

    threads: tuple[int, ...] = (1,)
    processor: str = "host"
    patience: Patience = field(default_factory=Patience)
    most_spread: float = 3.0
    fused: bool = True
    integers: bool = True
    again: bool = False

    def __post_init__(self) -> None:
        if not self.threads or min(self.threads) < 1 or max(self.threads) > MOST_THREADS:
            raise InputError(
                f"threads are {self.threads}", "--threads", f"whole numbers from 1 to {MOST_THREADS}"
            )
        if not 1 < self.most_spread < math.inf:
            raise InputError(f"the spread is {self.most_spread}", "--spread", "a number above 1")
        if not self.processor:
            raise InputError(
                "no name of this host", "--processor", "the name that machine files use, e.g. host"
            )


@dataclass
class Profiled:
    """What was done.

    Attributes
    ----------
    measured, known : operations that were measured, and that the library had
    untrusted : labels of nodes whose times spread too far, with the spread
    failed : labels of nodes that could not be run alone, with the reason
    groups, unattributed : fused groups that were measured, and that could not be told apart
    plain, fused : ps of the whole model by threads, the sums of its nodes
    words : what else went wrong
    """

    measured: int = 0
    known: int = 0
    untrusted: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    groups: int = 0
    unattributed: int = 0
    plain: dict[int, float] = field(default_factory=dict)
    fused: dict[int, float] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


def profile(
    path: str | Path,
    program: Program,
    library: Library,
    how: Profiling,
    progress: Progress | None = None,
) -> Profiled:
    """Measure the nodes of a model, alone and fused, copies of its tensors, and its products with whole numbers.

    Everything is written when it is measured: a run that was cut short goes on where it ended.

    Raises
    ------
    InputError : a file that is no model, a library that cannot be written
    """
    from nmsolve.model.formats.onnx.parse import read_model

    proto = read_model(path)
    run = _Profiler(program, proto, library, how)
    jobs = run.jobs()
    for done, (label, job) in enumerate(jobs):
        if progress is not None:
            progress(done, len(jobs), label)
        job()
    if progress is not None:
        progress(len(jobs), len(jobs), "")
    return run.out


class _Profiler:
    """The jobs of one model, one after the other."""

    def __init__(self, program: Program, proto: Any, library: Library, how: Profiling) -> None:
        self.program, self.proto, self.library, self.how = program, proto, library, how
        self.out = Profiled()
        standing = frozenset(flow.path for flow in program.flows if flow.kept)
        self.models = NodeModels(proto, program.bindings, standing)
        self.host = f"{platform.node()} {platform.machine()}"
        self.runtime = runtime_name()
        self.empty: dict[int, float] = {}

    def jobs(self) -> list[tuple[str, Callable[[], None]]]:
        """Return everything there is to measure, with names; each operation once."""
        found: list[tuple[str, Callable[[], None]]] = []
        for threads in self.how.threads:
            seen: set[Key] = set()
            for step in self.program.steps:
                if step.graph is None or step.operator is None or step.operator.kind in CONTROL:
                    continue
                key = self._key(step)
                if key not in seen:
                    seen.add(key)
                    found.append((step.label, partial(self.node, step, key, threads)))
                    if self.how.integers:
                        found.append((f"{step.label} in integers", partial(self.twin, step, threads)))
            found += [(f"copy of {size:,} bytes", partial(self.copy, size, threads)) for size in self.sizes()]
            if self.how.fused:
                found.append(("whole model", partial(self.whole, threads)))
        return found

    def node(self, step: Step, key: Key, threads: int) -> None:
        """Measure a node alone."""
        work = work_of(step, self.program)
        if work is None or self._known(key, threads):
            return
        try:
            times = self._trusted(
                step.label, lambda: self._alone(lambda n: self.models.model(step, n), threads)
            )
        except BackendError as error:
            self.out.failed[step.label] = str(error)
            return
        if times is not None:
            self._add(key, times, threads, work)

    def twin(self, step: Step, threads: int) -> None:
        """Measure a product with whole numbers (S: what they gain over floats)."""
        work = work_of(step, self.program)
        try:
            found = integer_twin(step, self.program.bindings)
            if found is None or work is None or step.graph is None or step.operator is None:
                return
            kind, model = found
            float_key = key_of(step.graph, step.operator, self.program.bindings)
            sizes = _first_two(float_key.sizes)
            key = Key(
                kind, float_key.attributes if kind == "ConvInteger" else "{}", "uint8,int8>int32", sizes
            )
            if self._known(key, threads):
                return
            times = self._trusted(
                f"{step.label} in integers", lambda: self._alone(lambda n: model, threads, 1)
            )
        except BackendError as error:
            self.out.failed[f"{step.label} in integers"] = str(error)
            return
        if times is not None:
            self._add(key, times, threads, work._replace(kind=kind, bytes=work.bytes // 4))

    def copy(self, size: int, threads: int) -> None:
        """Measure what a tensor costs at the border of two pieces (T): the runner's copy, and the start of the next session."""
        key = Key(COPY, "{}", "", f"[[{size}]]")
        if self._known(key, threads):
            return
        model = _copying()
        try:
            session = Session(model.data, threads)
            session.feed(model.feeds, model.outputs)
            array = random_array("uint8", (max(1, size),), np.random.default_rng(0))
            value = to_runtime(array, DTYPES.index("uint8"))

            def border() -> None:
                sent(value, "")
                session.run()

            times = self._trusted(f"copy of {size:,} bytes", lambda: timed(border, self.how.patience))
        except BackendError as error:
            self.out.failed[f"copy of {size:,} bytes"] = str(error)
            return
        if times is not None:
            self._add(key, times, threads, OperatorWork(COPY, "", frozenset(), 0, 0, size))

    def sizes(self) -> list[int]:
        """Return sizes of the model's tensors, evenly among all that occur."""
        found = sorted(
            {flow.moved for flow in self.program.flows if not flow.kept and not flow.control and flow.moved}
        )
        if len(found) <= COPIES:
            return found
        return [
            found[k] for k in np.unique(np.linspace(0, len(found) - 1, COPIES).round().astype(int)).tolist()
        ]

    def whole(self, threads: int) -> None:
        """Run the model whole; the difference per group is what fusion gains."""
        graph = self.program.steps[1].graph if len(self.program.steps) > 2 else None
        if graph is None:
            return
        try:
            parts = whole_times(self.proto, graph, self.program.bindings, threads, self.how.patience.runs)
        except (BackendError, InputError) as error:
            self.out.words.append(f"fusion was not measured: {error}")
            return
        self.out.plain[threads], self.out.fused[threads] = parts.all_plain.low, parts.all_fused.low
        found = list(self._groups(parts, threads))
        self.out.groups += len(found)
        self.library.add(fused=found)

    def _groups(self, parts: Parts, threads: int) -> Sequence[Fused]:
        """Return the groups of the program that the runtime's own can be told apart for."""
        steps = self.program.steps
        works = [work_of(step, self.program) for step in steps]
        groups = groups_of(self.program, works, np.ones((len(steps), 1), bool))
        name = [
            step.graph.tensors[step.operator.outputs[0]].name if step.graph is not None and step.operator is not None
            and len(step.path) == 1 and step.operator.outputs[0] >= 0 else ""
            for step in steps
        ]  # fmt: skip
        renaming = {n for n, work in zip(name, works, strict=True) if work is not None and not work.bytes}
        others = set(name) - renaming
        found = {}
        for group in groups:
            own = {name[i] for i in group.members}
            touching = [region for region in parts.fused if region & own]
            apart = added(parts.plain[n] for n in own.union(*touching) if n in parts.plain)
            together = added(parts.fused[region] for region in touching)
            alone = all(region & others <= own for region in touching)
            if "" in own or not alone or not together.low or not apart.low:
                self.out.unattributed += 1
                continue
            spread = max(took.median / took.low for took in (apart, together))
            if spread > self.how.most_spread:
                self.out.untrusted[f"group of {steps[group.members[-1]].label}"] = spread
                continue
            keys = tuple(self._key(steps[i]) for i in group.members)
            runs = self.how.patience.runs
            found[keys] = Fused(
                keys, self.how.processor, threads, together.low, apart.low, runs, max(1.0, spread)
            )
        return list(found.values())

    def _key(self, step: Step) -> Key:
        assert step.graph is not None and step.operator is not None
        return key_of(step.graph, step.operator, self.program.bindings)

    def _known(self, key: Key, threads: int) -> bool:
        """Return whether the library has an operation, measured on this host with this runtime."""
        entry = None if self.how.again else self.library.find(key, self.how.processor, threads)
        if entry is None or (entry.origin, entry.host, entry.runtime) != (
            "measured",
            self.host,
            self.runtime,
        ):
            return False
        self.out.known += 1
        return True

    def _add(self, key: Key, times: Times, threads: int, work: OperatorWork) -> None:
        self.library.add([
            Entry(
                key, self.how.processor, threads, times.time, memory=work.bytes, macs=work.macs, elements=work.elements,
                bytes=work.bytes, host=self.host, runtime=self.runtime, runs=times.runs, quantile=self.how.patience.quantile,
                spread=times.spread,
            )
        ])  # fmt: skip
        self.out.measured += 1

    def _trusted(self, label: str, measure: Callable[[], Times]) -> Times | None:
        """Return times that do not spread too far, None if they do every time."""
        best = measure()
        for _ in range(AGAIN):
            if best.spread <= self.how.most_spread:
                break
            best = min(best, measure(), key=lambda t: t.spread)
        if best.spread > self.how.most_spread:
            self.out.untrusted[label] = best.spread
            return None
        return best

    def _alone(self, make: Callable[[int], Model], threads: int, most: int = MANY + 1) -> Times:
        """Return times of a node without those of its session: many at once if it is short, else less an empty session."""
        one = self._session(make(1), threads)
        if one.time < SHORT and most > 1:
            many = self._session(make(most), threads)
            if many.time > one.time:
                return Times((many.time - one.time) / (most - 1), many.spread, many.runs)
        if threads not in self.empty:
            self.empty[threads] = self._session(_copying(), threads).time
        return Times(max(1.0, one.time - self.empty[threads]), one.spread, one.runs)

    def _session(self, model: Model, threads: int) -> Times:
        session = Session(model.data, threads)
        session.feed(model.feeds, model.outputs)
        return timed(session.run, self.how.patience)


def integer_gain(library: Library, processor: str, threads: int) -> tuple[float, int] | None:
    """Return how many times as long as with floats products take with whole numbers (S): the median, and of how many pairs.

    None without pairs of the same sizes.
    """
    floats = {
        (_first_two(e.key.sizes), "Conv" if e.key.kind == "Conv" else "MatMul"): e.time
        for e in library.entries
        if e.key.kind in ("Conv", "MatMul", "Gemm") and (e.processor, e.threads) == (processor, threads)
    }
    forms = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}
    ratios = [
        e.time / floats[e.key.sizes, forms[e.key.kind]]
        for e in library.entries
        if e.key.kind in forms and (e.processor, e.threads) == (processor, threads) and (e.key.sizes, forms[e.key.kind]) in floats
    ]  # fmt: skip
    return (float(np.median(ratios)), len(ratios)) if ratios else None


def _copying() -> Model:
    """Return a model that gives back four bytes that it is given."""
    from onnx import TensorProto, helper

    node = helper.make_node("Identity", ["in0"], ["out0_0"])
    return model_of([node], {"in0": np.zeros(4, np.uint8)}, {"out0_0": TensorProto.UINT8})


def _first_two(sizes: str) -> str:
    """Return the sizes of the two factors of a product."""
    return json.dumps(json.loads(sizes)[:2], separators=(",", ":"))
