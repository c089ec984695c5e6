"""A model with the bodies of its control flow written out: operators in one row, each with its expected runs (docs/pipeline.md).

* ``If``: the operators of both branches, each with the probability of its branch. A result of the ``If`` comes from the branch
  that ran. A condition that follows from shapes decides: the other branch is left out.
* ``Loop``, ``Scan``: a *start* that makes the body's inputs and the stacks of collected results, the body with its trips, an
  *end* that makes the final state. All of them share a stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nmsolve.model.errors import InputError
from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.branches import Branch, Choices, Context, Decision
from nmsolve.model.operators.classes import CONTROL, holds_tensor_work
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.growth import Growth, growths
from nmsolve.model.operators.macs import FREE
from nmsolve.model.operators.trips import branch_of, trips_of
from nmsolve.model.operators.weights import captured_names

#: Names of the branches of an ``If`` in paths.
SIDES = ("then", "else")


@dataclass(frozen=True)
class Place:
    """Where an operator stands.

    Attributes
    ----------
    path : begin of the names of operators there, e.g. ``exit_1/else/``
    bodies : the bodies around it, from outside: first result of the control flow, and which of its bodies
    runs : expected runs in one run of the model
    turns : trips of all loops around it
    context : branches that must be taken, as far as they are outside loops
    conditions : tensors that decide whether it runs, each with the context of its ``If``
    loop : number of the outermost loop around it, -1: none
    """

    path: str = ""
    bodies: tuple[tuple[str, int], ...] = ()
    runs: float = 1.0
    turns: int = 1
    context: Context = frozenset()
    conditions: tuple[tuple[int, Context], ...] = ()
    loop: int = -1


@dataclass(eq=False)
class Unfolded:
    """What :func:`unfold` makes, by the numbers of operators and tensors of ``graph``.

    Attributes
    ----------
    graph : operators in one row, names of those in bodies are paths; no ``If``, ``Loop`` or ``Scan`` with tensor work has bodies
    places : of every operator
    results : of every operator, names of what it makes in the body that it is from
    joints : starts and ends of loops: layers without work
    merges : results of ``If``, never layers: by operator, the decision that each input belongs to, None for the condition
    kept : by end of a loop, the tensors from outside, and stacks, that it needs until then
    aliases : tensors that are in the place of another one
    loops, trips : by number of the outermost loop, its path, and the most runs of anything in it
    branches : every ``If`` that data decide
    growing : symbols of lengths that every trip of a loop makes longer
    """

    graph: OperatorGraph
    places: list[Place] = field(default_factory=list)
    results: list[tuple[str, ...]] = field(default_factory=list)
    joints: set[int] = field(default_factory=set)
    merges: dict[int, tuple[Decision | None, ...]] = field(default_factory=dict)
    kept: dict[int, tuple[int, ...]] = field(default_factory=dict)
    aliases: dict[int, int] = field(default_factory=dict)
    loops: list[str] = field(default_factory=list)
    trips: list[int] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    growing: dict[str, Growth] = field(default_factory=dict)


def unfold(
    graph: OperatorGraph, bindings: Mapping[str, int], choices: Choices, scalars: bool = False
) -> Unfolded:
    """Return the model without bodies of tensor work; ``scalars``: without any.

    Parameters
    ----------
    graph : with the ``bindings`` in its shapes

    Raises
    ------
    InputError : trips depend on a symbol without a value, an ``If`` has no condition or branch, or a probability is
        stated for an ``If`` that there is not
    """
    run = _Unfolding(graph, bindings, choices, scalars)
    number = run.body(graph, Place(), {})
    choices.require_used()
    return run.finished(number)


class _Unfolding:
    def __init__(
        self, graph: OperatorGraph, bindings: Mapping[str, int], choices: Choices, scalars: bool
    ) -> None:
        self.graph, self.bindings, self.choices, self.scalars = graph, bindings, choices, scalars
        self.tensors: list[Tensor] = []
        self.taken: set[str] = set()
        self.operators: list[Operator] = []
        self.out = Unfolded(graph)

    def body(self, graph: OperatorGraph, place: Place, given: Mapping[int, int]) -> list[int]:
        """Write out one body; ``given``: numbers of its inputs and captured tensors. Return those of all its tensors."""
        number = [given[k] if k in given else self._tensor(t) for k, t in enumerate(graph.tensors)]
        for operator in graph.operators:
            opens = operator.kind in CONTROL and bool(operator.bodies)
            if not opens or not (self.scalars or holds_tensor_work(graph, operator)):
                self._add(self._plain(graph, operator, place, number), place, _names(graph, operator))
            elif operator.kind == "If":
                self._branches(graph, operator, place, number)
            else:
                self._loop(graph, operator, place, number)
        return number

    def finished(self, number: list[int]) -> Unfolded:
        """Return what was made, with producers and consumers of all tensors; ``number``: of the model's own tensors."""
        makers = {k: n for n, operator in enumerate(self.operators) for k in operator.outputs if k >= 0}
        users: dict[int, list[int]] = {}
        names = {t.name: k for k, t in enumerate(self.tensors)}
        for n, operator in enumerate(self.operators):
            inside = [names[name] for name in captured_names(operator) if name in names]
            for k in dict.fromkeys((*operator.inputs, *inside)):
                users.setdefault(k, []).append(n)
        tensors = tuple(
            replace(t, producer=makers.get(k, -1), consumers=tuple(users.get(k, ())))
            for k, t in enumerate(self.tensors)
        )
        self.out.graph = replace(
            self.graph, operators=tuple(self.operators), tensors=tensors,
            inputs=tuple(number[k] for k in self.graph.inputs), outputs=tuple(number[k] for k in self.graph.outputs),
        )  # fmt: skip
        return self.out

    def _tensor(self, tensor: Tensor) -> int:
        name, again = tensor.name, 1
        while name in self.taken:  # branches may use the same names
            again += 1
            name = f"{tensor.name}#{again}"
        self.taken.add(name)
        self.tensors.append(tensor if name == tensor.name else replace(tensor, name=name))
        return len(self.tensors) - 1

    def _add(self, operator: Operator, place: Place, results: tuple[str, ...]) -> int:
        self.operators.append(operator)
        self.out.places.append(place)
        self.out.results.append(results)
        return len(self.operators) - 1

    def _plain(self, graph: OperatorGraph, operator: Operator, place: Place, number: list[int]) -> Operator:
        bodies = operator.bodies
        if bodies:
            names = {t.name: self.tensors[number[k]].name for k, t in enumerate(graph.tensors)}
            bodies = tuple(_renamed(body, names) for body in bodies)
        return replace(
            operator, name=place.path + operator.name, bodies=bodies,
            inputs=_at(number, operator.inputs), outputs=_at(number, operator.outputs),
        )  # fmt: skip

    def _branches(self, graph: OperatorGraph, operator: Operator, place: Place, number: list[int]) -> None:
        name = place.path + operator.name
        if not operator.inputs or operator.inputs[0] < 0 or len(operator.bodies) != 2:
            raise InputError(
                "a condition or a branch is missing",
                f"{self.graph.name}: If {name!r}",
                "one input and two branches",
            )
        condition = number[operator.inputs[0]]
        side = branch_of(graph, operator)
        if side is not None:
            self.choices.refuse(name, operator.name)
            values = self._inside(
                graph, operator, side, number, replace(place, path=f"{name}/{SIDES[side]}/")
            )
            for result, value in _pairs(_at(number, operator.outputs), values):
                same = Operator(name, "Identity", (value,), (result,))
                self.out.merges[self._add(same, place, _names(graph, operator))] = (None,)
                self.out.aliases[result] = value
            return
        branch, k = self.choices.branch(name, operator.name), len(self.out.branches)
        self.out.branches.append(branch)
        counted = place.loop < 0 and not branch.both
        told = (*place.conditions, (condition, place.context))
        made = []
        for side, weight in enumerate(branch.weights):
            context = place.context | {(k, side)} if counted else place.context
            inside = replace(
                place,
                path=f"{name}/{SIDES[side]}/",
                runs=place.runs * weight,
                context=context,
                conditions=told,
            )
            made.append(self._inside(graph, operator, side, number, inside))
        sides = (None, (k, 0), (k, 1)) if counted else (None, None, None)
        for result, first, second in zip(_at(number, operator.outputs), *made, strict=False):
            if result >= 0:
                one = Operator(name, "If", (condition, first, second), (result,))
                self.out.merges[self._add(one, place, _names(graph, operator))] = sides

    def _inside(
        self, graph: OperatorGraph, operator: Operator, side: int, number: list[int], place: Place,
        inputs: tuple[int, ...] = (),
    ) -> tuple[int, ...]:  # fmt: skip
        """Write out one body of an operator; return its outputs."""
        body = operator.bodies[side]
        given = {**_captured(graph, body, number), **dict(zip(body.inputs, inputs, strict=False))}
        place = replace(place, bodies=(*place.bodies, (_names(graph, operator)[0], side)))
        return _at(self.body(body, place, given), body.outputs)

    def _loop(self, graph: OperatorGraph, operator: Operator, place: Place, number: list[int]) -> None:
        name, body = place.path + operator.name, operator.bodies[0]
        trips = bind(
            trips_of(graph, operator), self.bindings, "the number of trips", f"{self.graph.name}: {operator.kind} {name!r}"
        )  # fmt: skip
        if place.loop < 0:
            place = replace(place, loop=len(self.out.trips))
            self.out.loops.append(name)
            self.out.trips.append(0)
        scanned = int(operator.attributes.get("num_scan_inputs", 0)) if operator.kind == "Scan" else 0
        steering = 0 if operator.kind == "Scan" else 2  # the most turns, the condition
        states = len(body.inputs) - steering - scanned
        taken, results = _at(number, operator.inputs), _at(number, operator.outputs)
        stacks = tuple(k for k in results[states:] if k >= 0)
        inputs = tuple(self._tensor(body.tensors[k]) for k in body.inputs)
        start = Operator(f"{name}/start", operator.kind, taken, (*inputs, *stacks))
        self.out.joints.add(self._add(start, place, _names(graph, operator)))
        for k in range(steering, steering + states):
            if _gives_its_place(graph, operator, k):
                self.out.aliases[inputs[k]] = taken[k]
        before = [graph.tensors[k] for k in operator.inputs[steering : steering + states]]
        inner = [body.tensors[k] for k in body.inputs[steering : steering + states]]
        after = [body.tensors[k] for k in body.outputs[1 if steering else 0 :]]
        for told in zip(before, inner, after, strict=False):
            self.out.growing |= growths(*told, len(self.operators), trips)
        inside = replace(place, path=f"{name}/", runs=place.runs * trips, turns=place.turns * trips)
        self.out.trips[place.loop] = max(self.out.trips[place.loop], inside.turns)
        made = self._inside(graph, operator, 0, number, inside, inputs)
        end = self._add(
            Operator(f"{name}/end", operator.kind, made, results[:states]), place, _names(graph, operator)
        )
        self.out.joints.add(end)
        self.out.kept[end] = (
            *_captured(graph, body, number).values(), *stacks, *(taken[len(taken) - scanned :] if scanned else ())
        )  # fmt: skip
        self.out.aliases.update(_pairs(results[:states], made[1 if steering else 0 :]))


def _at(number: list[int], tensors: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(number[k] if k >= 0 else -1 for k in tensors)


def _names(graph: OperatorGraph, operator: Operator) -> tuple[str, ...]:
    return tuple(graph.tensors[k].name for k in operator.outputs if k >= 0) or ("",)


def _pairs(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return pairs of tensors, both of which there are."""
    return [(x, y) for x, y in zip(a, b, strict=False) if x >= 0 and y >= 0]


def _captured(graph: OperatorGraph, body: OperatorGraph, number: list[int]) -> dict[int, int]:
    names = {t.name: number[k] for k, t in enumerate(graph.tensors)}
    return {k: names[body.tensors[k].name] for k in body.captured}


def _renamed(body: OperatorGraph, names: Mapping[str, str]) -> OperatorGraph:
    """Return a body whose captured tensors, and those of the bodies in it, have the ``names`` of those outside now."""
    taken = set(body.captured)
    tensors = tuple(replace(t, name=names[t.name]) if k in taken else t for k, t in enumerate(body.tensors))
    own = {t.name: tensors[k].name for k, t in enumerate(body.tensors)}
    operators = tuple(
        replace(o, bodies=tuple(_renamed(b, own) for b in o.bodies)) if o.bodies else o
        for o in body.operators
    )
    return replace(body, tensors=tensors, operators=operators)


def _gives_its_place(graph: OperatorGraph, operator: Operator, position: int) -> bool:
    """Return whether the first value of a state is an operator's own result, and for nothing else: the state takes its place."""
    k = operator.inputs[position] if position < len(operator.inputs) else -1
    if k < 0 or k in graph.outputs or operator.inputs.count(k) > 1:
        return False
    tensor = graph.tensors[k]
    if tensor.producer < 0 or len(tensor.consumers) != 1 or tensor.name in captured_names(operator):
        return False
    kind = graph.operators[tensor.producer].kind
    return kind not in FREE and kind not in CONTROL
