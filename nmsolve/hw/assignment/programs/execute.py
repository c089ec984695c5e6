"""Execute a manifest: a session per piece, units in parallel, transfers as copies, control flow that is cut turn by turn."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nmsolve.hw.assignment.programs.manifest import MANIFEST, Manifest, PieceEntry, ProgramEntry, StackEntry
from nmsolve.hw.assignment.programs.subgraph import shape_name
from nmsolve.hw.assignment.runtime import run_session, sent, to_numpy, to_runtime
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.values import DTYPES
from nmsolve.model.types import AnyArray


@dataclass(eq=False)
class Held:
    """A value, the site where it was made, and its copies at other sites."""

    value: Any
    site: int
    copies: dict[int, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Values:
    """What the pieces of one program have made so far; a body sees those around it."""

    own: dict[str, Held]
    around: Values | None = None

    def find(self, name: str) -> Held | None:
        """Return a value, None if there is none."""
        found = self.own.get(name)
        return self.around.find(name) if found is None and self.around is not None else found


@dataclass(eq=False)
class Clock:
    """Seconds that were measured, and how often.

    Attributes
    ----------
    pieces : by name of piece, without transfers; control flow without the pieces in its bodies is not measured
    transfers : by tensor and goal site
    runs : of every piece
    """

    pieces: Counter[str] = field(default_factory=Counter)
    transfers: Counter[tuple[str, int]] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)


class Execution:
    """Sessions and weights that stay from run to run.

    Parameters
    ----------
    sessions : of every ``graph`` piece, by name
    weights : values of the model's stripped weights, by name
    """

    def __init__(self, manifest: Manifest, sessions: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
        self._manifest, self._sessions, self._weights = manifest, sessions, weights
        self._site = {u.name: u.site for u in manifest.units}
        self._busy = {u.name: threading.Lock() for u in manifest.units}
        self._stopped = threading.Event()

    def run(self, inputs: Mapping[str, Any], parallel: bool) -> tuple[list[Any], float, Clock]:
        """Return the model's outputs, seconds from end to end, and the times of pieces and transfers.

        Parameters
        ----------
        inputs : ``OrtValue`` of every input
        parallel : units work at the same time where the order allows; bodies of control flow run in order either way

        Raises
        ------
        InputError : ONNX Runtime fails on a piece
        """
        manifest, program, clock = self._manifest, self._manifest.program, Clock()
        home, target = self._site[manifest.home], self._site[manifest.target]
        values = Values({name: Held(value, home) for name, value in inputs.items()})
        self._stopped.clear()
        start = time.perf_counter()
        if parallel and len({piece.unit for piece in program.pieces}) > 1:
            self._in_parallel(program, values, clock)
        else:
            self._in_order(program, values, clock)
        found = [self._at(values, name, target, clock) for name in program.outputs]
        return found, time.perf_counter() - start, clock

    def _in_order(self, program: ProgramEntry, values: Values, clock: Clock) -> None:
        """Run pieces one after the other; what is not needed any more is dropped."""
        left = _uses(program)
        for piece in program.pieces:
            self._piece(piece, values, clock)
            _drop(piece, values, left)

    def _in_parallel(self, program: ProgramEntry, values: Values, clock: Clock) -> None:
        """A thread per unit takes its pieces in order, each as soon as what it needs is there."""
        maker = {name: k for k, piece in enumerate(program.pieces) for name in piece.outputs}
        done = [threading.Event() for _ in program.pieces]
        left, guard = _uses(program), threading.Lock()

        def work(own: Sequence[int]) -> None:
            try:
                for k in own:
                    piece = program.pieces[k]
                    for m in sorted({maker[name] for name in _needs(piece) if name in maker}):
                        done[m].wait()
                    if self._stopped.is_set():
                        return
                    self._piece(piece, values, clock)
                    with guard:
                        _drop(piece, values, left)
                    done[k].set()
            except BaseException:
                self._stop(done)
                raise

        shares: dict[str, list[int]] = {}
        for k, piece in enumerate(program.pieces):
            shares.setdefault(piece.unit, []).append(k)
        with ThreadPoolExecutor(len(shares)) as pool:
            try:
                futures = [pool.submit(work, own) for own in shares.values()]
                for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                    future.result()
            except BaseException:
                self._stop(done)
                raise

    def _stop(self, done: Sequence[threading.Event]) -> None:
        """Wake every thread; none begins another piece."""
        self._stopped.set()
        for event in done:
            event.set()

    def _piece(self, piece: PieceEntry, values: Values, clock: Clock) -> None:
        site = self._site[piece.unit]
        if piece.kind != "graph":
            made = self._control(piece, values, clock)
            wanted = set(piece.outputs)
            values.own.update((n, held) for n, held in zip(piece.results, made, strict=False) if n in wanted)
            return
        feeds = {name: self._at(values, name, site, clock) for name in piece.inputs}
        feeds.update((name, self._weight(name)) for name in piece.weights)
        feeds.update((shape_name(name), self._shape(values, name)) for name in piece.shapes)
        with self._busy[piece.unit]:  # a body may use a unit that has a piece of its own to run
            start = time.perf_counter()
            found = run_session(self._sessions[piece.name], piece.outputs, feeds, f"piece {piece.name!r}")
            clock.pieces[piece.name] += time.perf_counter() - start  # type: ignore[assignment]
        clock.runs[piece.name] += 1
        values.own.update((name, Held(value, site)) for name, value in zip(piece.outputs, found, strict=True))

    def _at(self, values: Values, name: str, site: int, clock: Clock) -> Any:
        """Return a value at a site; it is sent there if it is not there yet."""
        held = values.find(name)
        if held is None:
            return self._weight(name)
        if held.site == site:
            return held.value
        if site not in held.copies:
            start = time.perf_counter()
            held.copies[site] = sent(held.value, name)
            clock.transfers[name, site] += time.perf_counter() - start  # type: ignore[assignment]
        return held.copies[site]

    def _weight(self, name: str) -> Any:
        """Return a stripped weight; whatever is none must have been made before."""
        if name not in self._weights:
            raise InputError(
                f"tensor {name!r} is used after it was dropped", MANIFEST, "inputs with all that bodies use"
            )
        return self._weights[name]

    def _shape(self, values: Values, name: str) -> Any:
        """Return the shape of a value, wherever it is."""
        held = values.find(name)
        value = self._weight(name) if held is None else held.value
        return to_runtime(np.array(value.shape(), np.int64), 7)

    # ------------------------------------------------------------------------------------ control flow

    def _control(self, piece: PieceEntry, values: Values, clock: Clock) -> list[Held]:
        """Return what the operator makes, in order."""
        site = self._site[piece.unit]
        operands = [self._operand(values, name, site) if name else None for name in piece.operands]
        if piece.kind == "if":
            holds = bool(self._number(operands[0], piece.operands[0], site))
            return self._body(piece.bodies[0 if holds else 1], {}, values, clock)
        return (self._loop if piece.kind == "loop" else self._scan)(piece, operands, values, clock)

    def _operand(self, values: Values, name: str, site: int) -> Held:
        return values.find(name) or Held(self._weight(name), site)

    def _number(self, held: Held | None, name: str, site: int) -> Any:
        """Return a single number that control flow itself looks at."""
        array = to_numpy((held or Held(None, site)).value, name)
        if array.size != 1:
            raise InputError(f"control flow looks at {name!r}, of {array.size} elements", "", "one element")
        return array.reshape(()).item()

    def _body(
        self, body: ProgramEntry, inputs: Mapping[str, Held], around: Values, clock: Clock
    ) -> list[Held]:
        """Run a body once and return its outputs."""
        if self._stopped.is_set():
            raise InputError("another unit failed", "", "")
        values = Values(dict(inputs), around)
        self._in_order(body, values, clock)
        return [self._operand(values, name, 0) for name in body.outputs]

    def _loop(
        self, piece: PieceEntry, operands: Sequence[Held | None], values: Values, clock: Clock
    ) -> list[Held]:
        site, body = self._site[piece.unit], piece.bodies[0]
        most = None if operands[0] is None else int(self._number(operands[0], piece.operands[0], site))
        goes_on = operands[1] is None or bool(self._number(operands[1], piece.operands[1], site))
        carried = [held for held in operands[2:] if held is not None]
        ranks = (piece.settings.get("ranks") or [0, 0])[:2]
        stacks: list[list[Held]] = [[] for _ in piece.stacked]
        turn = 0
        while goes_on and (most is None or turn < most):
            number = to_runtime(np.full((1,) * ranks[0], turn, np.int64), 7)
            condition = to_runtime(np.full((1,) * ranks[1], goes_on), 9)
            given = [Held(number, site), Held(condition, site), *carried]
            made = self._body(body, dict(zip(body.inputs, given, strict=True)), values, clock)
            goes_on = bool(self._number(made[0], body.outputs[0], site))
            carried = made[1 : 1 + len(carried)]
            for stack, held in zip(stacks, made[1 + len(carried) :], strict=True):
                stack.append(held)
            turn += 1
        built = [
            _stacked([to_numpy(h.value, "") for h in stack], entry, 0)
            for stack, entry in zip(stacks, piece.stacked, strict=True)
        ]
        return [*carried, *(Held(value, site) for value in built)]

    def _scan(
        self, piece: PieceEntry, operands: Sequence[Held | None], values: Values, clock: Clock
    ) -> list[Held]:
        site, body, settings = self._site[piece.unit], piece.bodies[0], piece.settings
        scans, slots = settings["num_scan_inputs"][0], len(piece.stacked)
        states = [held for held in operands[:-scans] if held is not None]
        axes = settings.get("scan_input_axes") or [0] * scans
        back = settings.get("scan_input_directions") or [0] * scans
        scanned = [
            _along(to_numpy(held.value, name), axis, name)
            for held, name, axis in zip(operands[-scans:], piece.operands[-scans:], axes, strict=True)
            if held is not None
        ]
        types = [held.value.element_type() for held in operands[-scans:] if held is not None]
        turns = min(len(array) for array in scanned)
        stacks: list[list[AnyArray]] = [[] for _ in piece.stacked]
        for turn in range(turns):
            slices = [a[turns - 1 - turn if b else turn] for a, b in zip(scanned, back, strict=True)]
            given = [
                *states,
                *(Held(to_runtime(np.array(s), t), site) for s, t in zip(slices, types, strict=True)),
            ]
            made = self._body(body, dict(zip(body.inputs, given, strict=True)), values, clock)
            states = made[: len(states)]
            for stack, held in zip(stacks, made[len(states) :], strict=True):
                stack.append(to_numpy(held.value, ""))
        axes_out = settings.get("scan_output_axes") or [0] * slots
        back_out = settings.get("scan_output_directions") or [0] * slots
        built = [
            _stacked(stack[::-1] if b else stack, entry, axis)
            for stack, entry, axis, b in zip(stacks, piece.stacked, axes_out, back_out, strict=True)
        ]
        return [*states, *(Held(value, site) for value in built)]


def _stacked(slices: Sequence[AnyArray], entry: StackEntry, axis: int) -> Any:
    """Return slices put one behind the other along a new axis."""
    import onnx

    number = DTYPES.index(entry.dtype) if entry.dtype in DTYPES else 1
    shapes = {array.shape for array in slices}
    if len(shapes) > 1:
        raise InputError(f"slices of shapes {sorted(shapes)} cannot be stacked", MANIFEST, "equal shapes")
    if slices:
        whole = np.array(slices)
    else:
        whole = np.zeros((0, *entry.shape), onnx.helper.tensor_dtype_to_np_dtype(number))
    if not -whole.ndim <= axis < whole.ndim:
        raise InputError(f"slices stacked along axis {axis}", MANIFEST, f"an axis of {whole.ndim}")
    return to_runtime(np.moveaxis(whole, 0, axis), number)


def _along(array: AnyArray, axis: int, name: str) -> AnyArray:
    """Return a tensor with the axis that is scanned first."""
    if not -array.ndim <= axis < array.ndim:
        raise InputError(f"{name!r} is scanned along axis {axis}", MANIFEST, f"an axis of {array.ndim}")
    return np.moveaxis(array, axis, 0)


def _needs(piece: PieceEntry) -> set[str]:
    """Return the tensors that a piece waits for."""
    return {*piece.inputs, *piece.shapes}


def _uses(program: ProgramEntry) -> Counter[str]:
    """Return how many pieces use each tensor; outputs of the program are never dropped."""
    left = Counter(name for piece in program.pieces for name in _needs(piece))
    left.update(program.outputs)
    return left


def _drop(piece: PieceEntry, values: Values, left: Counter[str]) -> None:
    """Forget the inputs of a piece that no other piece needs."""
    for name in _needs(piece):
        left[name] -= 1
        if not left[name]:
            values.own.pop(name, None)
