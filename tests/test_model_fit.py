"""Infeasible problems are explained; what is called infeasible really is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import explain_misfit, require_fit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping


def problem(
    sizes: list[int], machine: Machine, *constraints: SideConstraint, node_limit: int | None = None
) -> MappingProblem:
    ids = tuple("abcdefghijklmnopqrstuvwxyz"[: len(sizes)])
    graph = LogicGraph.from_edges(
        len(sizes), [], [], sizes=np.array(sizes).reshape(-1, 1), ids=ids, name="net"
    )
    return MappingProblem(graph, machine, constraints=constraints, node_limit=node_limit)


def mesh(rows: int, cols: int, neurons: int | None = None, **more: object) -> Machine:
    capacity = {} if neurons is None else {"neurons": neurons}
    return Machine(f"mesh:{rows}x{cols}", (1, 1), (rows, cols), capacity=capacity, **more)  # type: ignore[arg-type]


def only(p: MappingProblem) -> str:
    reasons = explain_misfit(p)
    assert len(reasons) == 1, reasons
    return reasons[0]


def test_what_fits_has_no_reasons() -> None:
    assert explain_misfit(problem([2, 2, 2, 2], mesh(2, 2, 2))) == []
    require_fit(problem([5, 5], mesh(1, 1)))  # no capacity named: no limit


def test_node_larger_than_any_core_is_named_with_numbers() -> None:
    p = problem([1, 9, 7], mesh(2, 2, 4))
    assert (
        explain_misfit(p)[0]
        == "node 'b' needs 9 neurons, a core holds 4: split it into 3 nodes or more; 1 more are too large"
    )
    with pytest.raises(DoesNotFitError, match=r"^net on mesh:2x2: node 'b' needs 9") as error:
        require_fit(p)
    assert isinstance(error.value, InputError) and "\n" not in str(error.value)


def test_total_names_the_smallest_mesh() -> None:
    assert only(problem([2] * 9, mesh(2, 2, 4))) == (
        "the nodes need 18 neurons in total, the 4 usable cores hold 16 (4 each);"
        " the smallest near-square mesh that holds them is mesh:2x3"
    )


def test_total_names_the_fewest_chips_and_does_not_count_dead_cores() -> None:
    chip = Machine("chippy", (1, 1), (2, 2), capacity={"neurons": 4}, faulty_cores=(3,))
    reason = only(problem([1] * 26, chip))
    assert "the 3 usable cores hold 12" in reason
    assert reason.endswith(
        "the smallest machine of the kind that holds them is one with 2 chips (--chips 1x2)"
    )


def test_smallest_machine_is_honest_where_packing_is_uncertain() -> None:
    """13 nodes of 2 on cores of 3: by volume 9 cores, in truth 13."""
    reason = only(problem([2] * 13, mesh(2, 4, 3)))
    assert reason.endswith("the smallest near-square mesh that holds them is mesh:4x4")  # 13 halves
    uneven = problem([3, 3, 3, 4, 4, 4, 3, 3, 4], mesh(1, 2, 10))
    assert "no machine of the kind smaller than mesh:2x2 holds them" in only(uneven) or "smallest" in only(
        uneven
    )


def test_nodes_of_more_than_half_a_core_need_a_core_each() -> None:
    assert only(problem([3, 3, 3, 3, 3], mesh(2, 2, 4))).startswith("5 nodes need more than half a core's 4")


def test_several_resources_are_counted_separately() -> None:
    graph = LogicGraph.from_edges(
        2, [0], [1], resources=("neurons", "synapses"), sizes=np.array([[1, 9], [1, 8]]), name="net"
    )
    machine = Machine("m", (1, 1), (1, 1), capacity={"neurons": 8, "synapses": 16})
    assert "17 synapses in total" in only(MappingProblem(graph, machine))


def test_no_usable_core() -> None:
    reason = only(problem([1], mesh(1, 2, 4, faulty_cores=(0,), taken_cores=(1,))))
    assert reason.startswith("none of the 2 cores")


def test_contradicting_pins_are_named_and_innocent_constraints_are_not() -> None:
    p = problem(
        [1, 1],
        mesh(2, 2),
        SideConstraint("here", "pin", (0,), (0,)),
        SideConstraint("harmless", "region", (0, 1), (0, 1, 2)),
        SideConstraint("there", "pin", (0,), (3,)),
    )
    assert only(p) in (
        "constraints contradict each other: pin 'here' and pin 'there' leave no core for node 'a'",
        "constraints contradict each other: region 'harmless' and pin 'there' leave no core for node 'a'",
    )


def test_region_on_dead_cores_is_named() -> None:
    p = problem([1], mesh(1, 2, faulty_cores=(1,)), SideConstraint("east", "region", (0,), (1,)))
    assert only(p).startswith("region 'east' leaves no usable core for node 'a'")


def test_together_with_disjoint_regions_names_all_three() -> None:
    p = problem(
        [1, 1],
        mesh(1, 2),
        SideConstraint("west", "region", (0,), (0,)),
        SideConstraint("east", "region", (1,), (1,)),
        SideConstraint("pair", "together", (0, 1)),
    )
    reason = only(p)
    assert all(name in reason for name in ("region 'west'", "region 'east'", "together 'pair'"))


def test_together_against_apart_names_the_chain() -> None:
    p = problem(
        [1] * 4,
        mesh(2, 2),
        SideConstraint("x", "together", (0, 1)),
        SideConstraint("unrelated", "together", (3, 1)),
        SideConstraint("y", "together", (1, 2)),
        SideConstraint("away", "apart", (0, 2)),
    )
    assert only(p) == (
        "constraints contradict each other: apart 'away' keeps nodes 'a', 'c' on different cores, together"
        " 'x' and 'y' puts them on one"
    )


def test_together_group_larger_than_a_core_names_its_nodes() -> None:
    p = problem([3, 3, 1], mesh(2, 2, 4), SideConstraint("pair", "together", (0, 1)))
    assert only(p) == "nodes 'a', 'b' (together 'pair') need 6 neurons, a core holds 4"


def test_pins_that_overflow_a_core_are_named() -> None:
    p = problem(
        [3, 3],
        mesh(2, 2, 4),
        SideConstraint("p", "pin", (0,), (3,)),
        SideConstraint("q", "pin", (1,), (3,)),
    )
    assert only(p) == "core [1, 1] would have to hold 6 neurons because of 'p' and 'q', the limit is 4"


def test_pins_inside_a_region_count_against_it() -> None:
    p = problem(
        [3, 3, 3],
        mesh(2, 2, 4),
        SideConstraint("p", "pin", (0,), (0,)),
        SideConstraint("q", "region", (1, 2), (0, 1)),
    )
    assert "the 2 usable cores from [0, 0] to [0, 1] would have to hold 9 neurons" in only(p)


def test_apart_set_larger_than_its_cores() -> None:
    p = problem([1] * 3, mesh(2, 2, 9), SideConstraint("spread", "apart", (0, 1, 2)),
                SideConstraint("top", "region", (0, 1, 2), (0, 1)))  # fmt: skip
    assert only(p) == (
        "apart 'spread' needs 3 different cores for its nodes, the 2 usable ones they may be on allow 2"
    )


def test_apart_nodes_pinned_to_one_core() -> None:
    p = problem([1] * 2, mesh(2, 2, 9), SideConstraint("spread", "apart", (0, 1)),
                SideConstraint("here", "pin", (0, 1), (2,)))  # fmt: skip
    assert "needs 2 different cores" in only(p)


kinds = st.sampled_from(["pin", "region", "forbid", "together", "apart"])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.integers(0, 4), min_size=2, max_size=4),
    limit=st.integers(1, 5),
    dead=st.sets(st.integers(0, 3), max_size=2),
    raw=st.lists(
        st.tuples(kinds, st.sets(st.integers(0, 3), min_size=2), st.sets(st.integers(0, 3), min_size=1)),
        max_size=3,
    ),
)
def test_whatever_is_called_infeasible_has_no_mapping(
    sizes: list[int], limit: int, dead: set[int], raw: list[tuple[str, set[int], set[int]]]
) -> None:
    """Against brute force over all mappings."""
    constraints = []
    for i, (kind, nodes, cores) in enumerate(raw):
        inside = tuple(sorted(u for u in nodes if u < len(sizes)))
        named = () if kind in ("together", "apart") else tuple(sorted(cores))[: 1 if kind == "pin" else 4]
        if inside:
            constraints.append(SideConstraint(f"c{i}", kind, inside, named))
    p = problem(sizes, mesh(2, 2, limit, faulty_cores=tuple(sorted(dead))), *constraints)
    if explain_misfit(p):
        assert all(check_mapping(p, np.array(core)) for core in product(range(4), repeat=len(sizes)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=5),
    limits=st.tuples(st.integers(5, 8), st.integers(3, 5)),
)
def test_advice_brackets_the_true_number_of_cores(
    sizes: list[tuple[int, int]], limits: tuple[int, int]
) -> None:
    """No packing needs fewer cores than ``least``, and ``enough`` cores are enough, by trying all packings."""
    from nmsolve.model.mapping.overflow import _cores_needed

    size, limit = np.array(sizes), np.array(limits)
    least, enough = _cores_needed(size, limit)
    true = next(
        cores
        for cores in range(1, len(sizes) + 1)
        if any(
            all((size[np.array(core) == p].sum(axis=0) <= limit).all() for p in range(cores))
            for core in product(range(cores), repeat=len(sizes))
        )
    )
    assert least <= true <= enough
