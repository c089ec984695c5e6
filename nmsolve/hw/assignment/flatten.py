"""A model as one sequence of steps: bodies of control flow opened, how often everything runs, what steps send each other.

What never changes is left out: constants, weights, and operators that only work on them (weight carriers among them). They are
done once before the run, by whoever uses the results; a tensor that comes of them is *standing* and lies where its users are. So
are operators on which no output depends (M3.1): they do not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nmsolve.hw.assignment.steps import Flow, Path, Program, Step
from nmsolve.model.errors import InputError
from nmsolve.model.operators.binding import bind, bound_graph, require_symbols, symbols_of
from nmsolve.model.operators.classes import CONTROL, SHAPE_ONLY, tensor_class
from nmsolve.model.operators.costs import OperatorCost, operator_costs
from nmsolve.model.operators.graph import Operator, OperatorGraph
from nmsolve.model.operators.sizes import bytes_of
from nmsolve.model.operators.trips import branch_of
from nmsolve.model.operators.weights import captured_names

#: A standing tensor of at most this many bytes is part of the program, not data (16 whole numbers of 64 bits).
SMALL = 128
#: Operators that give something else every time.
RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
#: Share of the runs of an ``If`` that takes either branch, where its condition is not known.
EITHER = 0.5

#: Most ways of tensors through control flow that are followed.
MOST_WAYS = 10**6


@dataclass(eq=False)
class _Scope:
    """A graph or body in its place."""

    graph: OperatorGraph
    costs: Sequence[OperatorCost]
    path: Path
    label: str
    runs: float
    parent: _Scope | None = None
    owner: int = -1  # step of the operator whose body it is
    body: int = 0
    standing: set[int] = field(default_factory=set)
    step: dict[int, int] = field(default_factory=dict)  # operator -> step
    inner: dict[tuple[int, int], _Scope] = field(default_factory=dict)  # (operator, body)
    names: dict[str, int] = field(default_factory=dict)
    place: dict[int, int] = field(default_factory=dict)  # tensor -> which input of the body


@dataclass(frozen=True)
class _Origin:
    """Where a tensor comes from, as a user sees it."""

    scope: _Scope
    tensor: int
    source: int
    runs: float
    moved: int
    held: int
    since: int
    until: int = 0
    kept: bool = False


def program_of(
    graph: OperatorGraph, bindings: Mapping[str, int] | None = None, whole: bool = False
) -> Program:
    """Return the steps of a model.

    Parameters
    ----------
    bindings : numbers for the symbols of shapes and of trip counts
    whole : control flow stays one step, whose bodies are not looked into (for schedules)

    Raises
    ------
    InputError : a symbol without a value, an unknown one, or an operator with bodies that is no known control flow
    """
    bindings = dict(bindings or {})
    require_symbols(graph, bindings)
    missing = [name for name in symbols_of(graph) if name not in bindings]
    if missing:
        names = ", ".join(repr(name) for name in missing)
        raise InputError(
            f"the work depends on {names}, without a value", graph.name,
            "--bind " + ",".join(f"{name}=NUMBER" for name in missing),
        )  # fmt: skip
    graph = bound_graph(graph, bindings)
    try:
        return _Flattening(graph, bindings, whole).program()
    except RecursionError:
        raise InputError(
            "control flow is nested too deeply", graph.name, "bodies that can be opened"
        ) from None


class _Flattening:
    """One pass for the steps, one for what they use."""

    def __init__(self, graph: OperatorGraph, bindings: Mapping[str, int], whole: bool) -> None:
        self.bindings, self.whole = bindings, whole
        self.steps: list[Step] = [Step("@in")]
        self.flows: dict[tuple[object, ...], Flow] = {}
        self.left_out: list[Path] = []
        self.labels: set[str] = {"@in", "@out"}
        self.known: dict[tuple[int, int], tuple[_Origin, ...]] = {}
        self.cut = self.asked = 0
        self.scopes: list[_Scope] = []
        self.top = _Scope(graph, operator_costs(graph), (), "", 1.0)

    def program(self) -> Program:
        self._open(self.top)
        self.steps.append(Step("@out", last=len(self.steps)))
        for scope in self.scopes:
            self._follow(scope)
        for scope in self.scopes:
            self._use(scope)
        out = len(self.steps) - 1
        for k in self.top.graph.outputs:
            self._need(self.top, k, out)
        flows = sorted(self.flows.values(), key=lambda f: (f.source, f.since))
        return Program(
            self.top.graph.name, tuple(self.steps), tuple(flows), tuple(self.left_out), self.bindings
        )

    def _follow(self, scope: _Scope) -> None:
        """Find out where the results of control flow come from, in order: each leads back to those before it, which are known."""
        for number in scope.step:
            operator = scope.graph.operators[number]
            for k in operator.outputs if operator.bodies and not self.whole else ():
                if k >= 0:
                    self._origins(scope, k, frozenset())

    def _open(self, scope: _Scope) -> None:
        """Number the steps of a graph and of the bodies in it."""
        graph = scope.graph
        self.scopes.append(scope)
        scope.names = {tensor.name: k for k, tensor in enumerate(graph.tensors)}
        scope.place = {k: place for place, k in enumerate(graph.inputs)}
        scope.standing = _standing(scope)
        needed = _needed(graph)
        for number, operator in enumerate(graph.operators):
            path = (*scope.path, number)
            standing = operator.outputs and all(k in scope.standing for k in operator.outputs if k >= 0)
            if number not in needed or operator.kind == "Constant" or standing:
                self.left_out.append(path)
                continue
            position = len(self.steps)
            step = Step(
                self._label(scope.label + operator.name),
                path,
                graph,
                operator,
                scope.costs[number],
                scope.runs,
                0.0,
                position,
            )
            self.steps.append(step)
            scope.step[number] = position
            if operator.bodies and not self.whole:
                self._open_bodies(scope, number, step)

    def _open_bodies(self, scope: _Scope, number: int, step: Step) -> None:
        operator, cost = scope.graph.operators[number], scope.costs[number]
        where = f"{scope.graph.name}: {operator.kind} {operator.name!r}"
        if operator.kind not in CONTROL:
            raise InputError("an operator with bodies that is none of " + ", ".join(sorted(CONTROL)), where)
        trips = bind(cost.trips, self.bindings, "how often the body runs", where)
        for b, body in enumerate(operator.bodies):
            runs = scope.runs * (branch_share(scope.graph, operator, b) if operator.kind == "If" else trips)
            inner = _Scope(
                body, cost.bodies[b], (*scope.path, number, b), f"{step.label}/{body.name or b}/", runs, scope,
                scope.step[number], b,
            )  # fmt: skip
            scope.inner[number, b] = inner
            step.turns += runs
            self._open(inner)
        step.last = len(self.steps) - 1

    def _label(self, label: str) -> str:
        unique, k = label, 2
        while unique in self.labels:
            unique, k = f"{label}#{k}", k + 1
        self.labels.add(unique)
        return unique

    def _use(self, scope: _Scope) -> None:
        """Note what every step of a scope needs, and what control flow tells it."""
        graph = scope.graph
        for number, position in scope.step.items():
            operator = graph.operators[number]
            if operator.kind in SHAPE_ONLY:
                continue  # a shape is known where the tensor is not
            used = [k for k in operator.inputs if k >= 0]
            if operator.bodies and self.whole:
                used += [scope.names[name] for name in captured_names(operator) if name in scope.names]
            elif operator.bodies:
                used = self._condition(scope, number, position)
            for k in used:
                self._need(scope, k, position)
            if scope.owner >= 0:
                self._steer(scope, position)

    def _condition(self, scope: _Scope, number: int, position: int) -> list[int]:
        """Return what control flow itself looks at: the condition, and the most turns; a condition that a body makes, too."""
        operator = scope.graph.operators[number]
        if operator.kind == "Loop":
            inner = scope.inner[number, 0]
            for origin in self._origins(inner, inner.graph.outputs[0], frozenset()):
                self._note(origin, position, min(origin.since, position), self.steps[position].last)
            return [k for k in operator.inputs[:2] if k >= 0]
        return [k for k in operator.inputs[:1] if k >= 0] if operator.kind == "If" else []

    def _steer(self, scope: _Scope, position: int) -> None:
        """Every run of a body is a round trip to every site that works in it."""
        key = ("control", scope.owner, scope.body)
        if key not in self.flows:
            name = f"{self.steps[scope.owner].label}/{scope.graph.name or scope.body}:control"
            self.flows[key] = Flow(name, (), scope.owner, scope.owner, 0, 0, scope.runs, control=True)
        self.flows[key].users[position] = position

    def _need(self, scope: _Scope, tensor: int, position: int) -> None:
        for origin in self._origins(scope, tensor, frozenset()):
            self._note(origin, position, origin.since, max(origin.until, position))

    def _note(self, origin: _Origin, position: int, since: int, until: int) -> None:
        if origin.kept and origin.held <= SMALL:
            return
        path = (*origin.scope.path, origin.tensor)
        key = (origin.source, path, origin.runs, origin.moved, origin.kept)
        flow = self.flows.get(key)
        if flow is None:
            scope, maker = origin.scope, self.steps[origin.source]
            tensor = scope.graph.tensors[origin.tensor]
            early = not scope.path and not (maker.operator and maker.operator.bodies)
            flow = Flow(
                scope.label + tensor.name, path, origin.source, since, origin.held, origin.moved, origin.runs, origin.kept,
                parameter=early and tensor_class(tensor) == "scalar",
            )  # fmt: skip
            self.flows[key] = flow
        flow.since, flow.held = min(flow.since, since), max(flow.held, origin.held)
        flow.users[position] = max(flow.users.get(position, 0), until, position)

    def _origins(self, scope: _Scope, k: int, seen: frozenset[tuple[int, int]]) -> tuple[_Origin, ...]:
        """Return where a tensor comes from, through control flow, each place once.

        What goes out of a loop goes once for every run of the loop, what it collects once a turn; what a turn leaves for the
        next is held from the loop's beginning to its end, and so is what bodies take from outside.
        """
        place = (id(scope), k)
        if place in self.known:
            return self.known[place]
        if place in seen:  # a state that goes round as it is
            self.cut += 1
            return ()
        self.asked += 1
        if self.asked > MOST_WAYS:
            raise InputError(
                "control flow hands tensors on in more ways than can be followed",
                self.top.graph.name,
                f"at most {MOST_WAYS:,}",
            )
        before = self.cut
        found = tuple(dict.fromkeys(self._traced(scope, k, seen | {place})))
        if self.cut == before:  # nothing was left out for those on the way here
            self.known[place] = found
        return found

    def _traced(self, scope: _Scope, k: int, seen: frozenset[tuple[int, int]]) -> Iterator[_Origin]:
        graph = scope.graph
        if k in scope.standing:
            yield self._standing_origin(scope, k)
            return
        producer = graph.tensors[k].producer
        if producer >= 0:
            if graph.operators[producer].bodies and not self.whole:
                yield from self._from_bodies(scope, producer, k, seen)
            else:
                yield self._made(scope, k, scope.step[producer], scope.runs)
        elif scope.parent is None:
            yield self._made(scope, k, 0, 1.0)
        elif k in scope.place:
            yield from self._into_body(scope, scope.place[k], k, seen)
        else:
            parent, name = scope.parent, graph.tensors[k].name
            loop = self.steps[scope.owner]
            until = loop.last if loop.operator is not None and loop.operator.kind != "If" else 0
            for origin in self._origins(parent, parent.names[name], seen):
                yield _later(origin, until)

    def _made(self, scope: _Scope, k: int, source: int, runs: float) -> _Origin:
        size = self._bytes(scope, k)
        return _Origin(scope, k, source, runs, size, size, source)

    def _standing_origin(self, scope: _Scope, k: int) -> _Origin:
        """Return the tensor itself, not one of its other names."""
        while True:
            tensor, outer = scope.graph.tensors[k], scope.parent
            if tensor.producer >= 0 and scope.graph.operators[tensor.producer].kind == "Identity":
                k = scope.graph.operators[tensor.producer].inputs[0]
            elif outer is not None and k in scope.graph.captured and tensor.name in outer.names:
                scope, k = outer, outer.names[tensor.name]
            else:
                size = self._bytes(scope, k)
                return _Origin(scope, k, 0, 1.0, size, size, 0, kept=True)

    def _from_bodies(
        self, scope: _Scope, producer: int, k: int, seen: frozenset[tuple[int, int]]
    ) -> Iterator[_Origin]:
        """What control flow gives: what its bodies give."""
        operator = scope.graph.operators[producer]
        place = operator.outputs.index(k)
        if operator.kind == "If":
            for b in range(len(operator.bodies)):
                inner = scope.inner[producer, b]
                for origin in self._origins(inner, inner.graph.outputs[place], seen):
                    yield _fewer(origin, inner.runs)
            return
        inner = scope.inner[producer, 0]
        states = _states(operator)
        collected = place >= states
        turns = max(1, round(inner.runs / scope.runs)) if scope.runs else 1
        for origin in self._origins(inner, inner.graph.outputs[place + (operator.kind == "Loop")], seen):
            if collected:
                since = min(origin.since, scope.step[producer])
                yield replace(origin, held=origin.held * turns, since=since)
            else:
                yield _fewer(origin, scope.runs)

    def _into_body(
        self, scope: _Scope, place: int, k: int, seen: frozenset[tuple[int, int]]
    ) -> Iterator[_Origin]:
        """What a body of a loop is given: its turn and condition, its state, the slices it goes through."""
        assert scope.parent is not None
        step = self.steps[scope.owner]
        operator = step.operator
        assert operator is not None
        loop = operator.kind == "Loop"
        if loop and place < 2:
            yield self._made(scope, k, scope.owner, scope.runs)
            return
        given = operator.inputs[place]
        if not loop and place >= _states(operator):
            for origin in self._origins(scope.parent, given, seen):
                yield _later(origin, step.last)
            return
        yield from self._origins(scope.parent, given, seen)
        for origin in self._origins(scope, scope.graph.outputs[place - 1 if loop else place], seen):
            yield replace(_later(origin, step.last), since=min(origin.since, scope.owner))

    def _bytes(self, scope: _Scope, k: int) -> int:
        """Return the size of a tensor; 0 if it is not known in a branch that is never taken."""
        tensor = scope.graph.tensors[k]
        size = bytes_of(tensor)
        if not scope.runs and not isinstance(size, int):
            return 0
        return bind(size, self.bindings, f"the size of tensor {tensor.name!r}", scope.graph.name)


def branch_share(graph: OperatorGraph, operator: Operator, branch: int) -> float:
    """Return the share of an ``If``'s runs that takes a branch: all or none if its condition is known, else :data:`EITHER`."""
    taken = branch_of(graph, operator)
    return EITHER if taken is None else float(taken == branch)


def _states(operator: Operator) -> int:
    """Return how many states go round in a loop or scan."""
    if operator.kind == "Loop":
        return max(0, len(operator.inputs) - 2)
    return len(operator.inputs) - int(operator.attributes.get("num_scan_inputs", 0))


def _standing(scope: _Scope) -> set[int]:
    """Return tensors that never change: weights, constants, and what is made of them only."""
    graph, parent = scope.graph, scope.parent
    found = {k for k, t in enumerate(graph.tensors) if t.weight}
    given = {*graph.inputs, *graph.captured}
    found |= {k for k, t in enumerate(graph.tensors) if t.producer < 0 and k not in given}
    if parent is not None:
        captured = [k for k in graph.captured if graph.tensors[k].name in parent.names]
        found |= {k for k in captured if parent.names[graph.tensors[k].name] in parent.standing}
    found -= set(graph.inputs)
    for operator in graph.operators:
        inputs = [k for k in operator.inputs if k >= 0]
        fixed = operator.kind == "Constant" or (inputs and all(k in found for k in inputs))
        if fixed and not operator.bodies and operator.kind not in RANDOM and not operator.opaque:
            found.update(k for k in operator.outputs if k >= 0)
    return found


def _needed(graph: OperatorGraph) -> set[int]:
    """Return the operators of a graph on which one of its outputs depends, also through what bodies take from outside."""
    by_name = {tensor.name: k for k, tensor in enumerate(graph.tensors)}
    found: set[int] = set()
    tensors = list(graph.outputs)
    while tensors:
        maker = graph.tensors[k].producer if (k := tensors.pop()) >= 0 else -1
        if maker < 0 or maker in found:
            continue
        found.add(maker)
        operator = graph.operators[maker]
        tensors += operator.inputs
        tensors += [by_name[name] for name in captured_names(operator) if name in by_name]
    return found


def _later(origin: _Origin, until: int) -> _Origin:
    """Return the same, needed until a position at least."""
    return replace(origin, until=max(origin.until, until))


def _fewer(origin: _Origin, runs: float) -> _Origin:
    """Return the same, brought over at most so often."""
    return replace(origin, runs=min(origin.runs, runs))
