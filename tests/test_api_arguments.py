"""What the functions take by name, path or text; and wrong arguments, which end in one line and never in an error from inside."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from test_cli_pipeline import network

import nmsolve
from nmsolve.model.errors import InputError

RING = nmsolve.LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0])
TASKS = Path(__file__).parent.parent / "examples" / "tasks.json"


@pytest.mark.parametrize("limit", ["2s", "2000ms", 2, 2.0, np.float64(2)])
def test_time_limits_are_taken_as_the_command_takes_them(limit: Any, tmp_path: Path) -> None:
    assert nmsolve.map(RING, "mesh:2x2", time_limit=limit).objective == 4
    if limit == "2s":
        assert nmsolve.explain(RING, "mesh:2x2", time_limit=limit).status == "feasible"
        assert nmsolve.route([0, 1, 3, 2], RING, "mesh:2x2", time_limit=limit).solution is not None
        assert nmsolve.schedule(TASKS, time_limit=limit).solution is not None
        model = network(tmp_path / "m.onnx")
        assert (
            nmsolve.pipeline(model, cores=2, bind={"batch": 1}, time_limit="2m", engines="chain").solution
            is not None
        )


def test_models_processors_and_libraries_are_taken_by_name_and_path(tmp_path: Path) -> None:
    model = network(tmp_path / "m.onnx")
    by_name = nmsolve.assign(model, "laptop-npu", bindings={"batch": 1}, time_limit="2m")
    loaded, board = nmsolve.load_model(model), nmsolve.processors("laptop-npu")
    by_object = nmsolve.assign(loaded, board, bindings={"batch": 1}, time_limit=120)
    assert by_name.objective == by_object.objective and by_name.solution is not None
    assert (
        nmsolve.assign(str(model), Path("laptop-npu"), bindings={"batch": 1}, time_limit=120).objective
        == by_name.objective
    )


def test_cores_of_machines_are_numbers_or_places() -> None:
    by_place = nmsolve.Machine(
        "m", (1, 1), (3, 4), faulty_cores=[(1, 2)], taken_cores=[[0, 1]], faulty_links=[((0, 0), (0, 1))]
    )
    by_number = nmsolve.Machine(
        "m", (1, 1), (3, 4), faulty_cores=(6,), taken_cores=(1,), faulty_links=((0, 1),)
    )
    assert by_place.hash == by_number.hash and by_place.faulty_cores == (6,)
    for wrong in ([(3, 4)], [(-1, 0)], ["1"], [True], [1.5], [(1, 2, 3)], [12]):
        with pytest.raises(InputError, match=r"^m: "):
            nmsolve.Machine("m", (1, 1), (3, 4), faulty_cores=wrong)
    for links in ([(0, 5)], [0], [(0, 1, 2)], [((0, 0), "x")]):
        with pytest.raises(InputError, match=r"^m: "):
            nmsolve.Machine("m", (1, 1), (3, 4), faulty_links=links)
    with pytest.raises(InputError, match="torus is 'no'"):
        nmsolve.Machine("m", (1, 1), (3, 4), torus="no")
    with pytest.raises(InputError, match="capacity of neurons is '4'"):
        nmsolve.Machine("m", (1, 1), (3, 4), capacity={"neurons": "4"})
    for shape in (3, (0, 1), ("3", "4"), (2.5, 1), None):
        with pytest.raises(InputError, match=r"^m: cores are"):
            nmsolve.Machine("m", (1, 1), shape)


#: A function, its arguments but for one, and wrong values of that one.
WRONG: list[tuple[str, dict[str, Any], dict[str, list[Any]]]] = [
    ("map", {"graph": RING, "machine": "mesh:2x2"}, {
        "graph": [3, None, [1, 2], "nothing.json", complex(1)], "machine": [3, "mesh:0x0", [2, 2], 1.5],
        "time_limit": ["soon", -1, 0, None, float("nan"), float("inf"), True, [5]], "gap": ["5 pieces", -1, 5, None, True],
        "seed": ["a", -1, 1.5, None], "workers": [0, "two", 1.5, None], "memory": ["much", 1.5],
        "objective": ["speed", 3, ["hops", "speed"]], "balance": ["x", -1], "constraints": ["nothing.json", 3, [3]],
        "warm_start": [[0, 1], "nothing.json", {0: 0}], "chips": ["axb", (0, 1), 3.5], "route": ["far", 3],
        "prohibit_turns": ["all", 3], "engines": [["speedy"], 3], "occupied": [["nothing"]], "migration_budget": ["x"],
    }),
    ("pipeline", {"model": "m.onnx", "cores": 2, "bind": {"batch": 1}, "time_limit": 2}, {
        "model": [3, None, "nothing.onnx"], "cores": ["two", 0], "bind": [{"batch": "x"}, 3], "time_limit": ["soon"],
    }),
    ("assign", {"model": "m.onnx", "machine": "laptop-npu", "bindings": {"batch": 1}, "time_limit": 2}, {
        "model": [3, None, "nothing.onnx"], "machine": [3, None, "laptop", RING], "objective": ["speed"],
        "bindings": [{"batch": 0}, {"batch": "x"}], "constraints": ["nothing.json", 3], "library": [3],
        "warm_start": [3, [1], "no"], "time_limit": ["soon", -1],
    }),
    ("schedule", {"tasks": TASKS, "time_limit": 2}, {
        "tasks": [3, None, "nothing.json"], "objective": ["speed"], "at_most": [{"x": 3}, {"energy": "x"}],
        "warm_start": [3, [1], "no"],
        "weights": [{"nope": 3}, {"energy": 3}], "time_limit": ["soon", -1, None], "gap": ["x"],
    }),
    ("route", {"mapping": [0, 1, 3, 2], "graph": RING, "machine": "mesh:2x2", "time_limit": 2}, {
        "mapping": [[0, 1], None, "nothing"], "time_limit": ["soon"], "seed": ["x"],
    }),
    ("explain", {"graph": RING, "machine": "mesh:2x2"}, {"time_limit": ["soon", None], "machine": [3]}),
    ("verify", {}, {"answer": ["nothing", 3]}), ("with_rates", {"graph": RING}, {"recording": [5, [3]]}),
    ("load_tasks", {}, {"path": [3]}), ("load_model", {}, {"path": [3]}),
    ("gap", {"mapping": [0, 1, 3, 2], "graph": RING, "machine": "mesh:2x2"}, {"time_limit": ["soon"], "mapping": [[0, 1]]}),
    ("simulate", {"machine": "mesh:2x2", "pattern": "uniform", "load": 0.1}, {"time_limit": ["soon"], "pattern": ["odd"]}),
    ("load_graph", {}, {"path": ["nothing.json", "nothing.xyz", "", "."]}),
    ("machine", {}, {"spec": ["mesh:0x0", "chip", 3]}),
    ("processors", {}, {"spec": ["laptop"]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "argument", "value", "rest"),
    [(n, a, v, rest) for n, rest, wrong in WRONG for a, values in wrong.items() for v in values],
    ids=lambda value: repr(value)[:30] if not isinstance(value, dict) else "",
)
def test_a_wrong_argument_ends_in_one_line(
    name: str,
    argument: str,
    value: Any,
    rest: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if "m.onnx" in rest.values():
        network(tmp_path / "m.onnx")
    with pytest.raises(InputError) as refused:
        getattr(nmsolve, name)(**{**rest, argument: value})
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 1000


#: What is given for arguments without a default, by function; "x" where no type is known or text is right.
REQUIRED: dict[str, dict[str, Any]] = {"with_rates": {"graph": RING}, "save_graph": {"graph": RING}}
#: Values, and what an annotation has where they are right.
TYPES: list[tuple[Any, tuple[str, ...]]] = [
    (object(), ()), (3, ("int", "float")), (1.5, ("float",)), ("x", ("str",)), (b"x", ()),
    ([object()], ("Sequence", "tuple")), (None, ("None",)),
    (True, ("bool",)), ({1: object()}, ()), (len, ("Callable",)),
]  # fmt: skip


def keywords(function: Any) -> dict[str, str]:
    """Every argument by name with its annotation, those of further options too."""
    found = {}
    for p in inspect.signature(function).parameters.values():
        text = str(p.annotation)
        if p.kind is p.VAR_KEYWORD:
            more = (
                inspect.unwrap(function)
                .__globals__[text.removeprefix("Unpack[").removesuffix("]")]
                .__annotations__
            )
            found |= {key: str(getattr(value, "__forward_arg__", value)) for key, value in more.items()}
        elif p.kind is not p.VAR_POSITIONAL:
            found[p.name] = text
    return found


@pytest.mark.parametrize(
    "name",
    [n for n in nmsolve.__all__ if inspect.isfunction(getattr(nmsolve, n)) and not n.startswith("from_")],
)
def test_every_keyword_of_every_function_names_a_wrong_type(name: str) -> None:
    """In one line, with the keyword, before anything is read; what only the function itself can judge is left out."""
    function, seen = getattr(nmsolve, name), 0
    rest = {
        p.name: "x"
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    }
    for key, annotation in keywords(function).items():
        if "Like" in annotation or "Any" in annotation or key in ("time_limit", "workers"):
            continue
        for value, fits in TYPES:
            if not any(re.search(rf"\b{word}\b", annotation) for word in fits):
                with pytest.raises(InputError, match=rf"^{function.__name__}: {key} is ") as refused:
                    function(**{**rest, **REQUIRED.get(name, {}), key: value})
                assert "\n" not in str(refused.value)
                seen += 1
    assert seen > 3


def test_text_stands_for_engines_but_not_for_folders() -> None:
    """Names of engines may come as one text; a path in place of a list of paths would be taken letter by letter."""
    assert nmsolve.map(RING, "mesh:2x2", engines="first-fit,star", time_limit=5).solution is not None
    with pytest.raises(InputError, match="occupied is 'runs'"):
        nmsolve.map(RING, "mesh:2x2", occupied="runs")


def test_long_names_do_not_fill_a_message() -> None:
    """Beginning and end stay: they say what and where."""
    graph = nx.DiGraph()
    graph.add_edge("a" * 5000, "b", weight=-1)
    with pytest.raises(InputError) as refused:
        nmsolve.map(graph, "mesh:2x2", time_limit=1)
    assert len(str(refused.value)) < 2000
