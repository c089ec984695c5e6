"""O(i, j) of method M3: what a processor gains by the kind of operation, the type of its data and the amount of work.

The source's paragraph 31 names all three: a multiplication is more complex than an addition, one of floats more than one of whole
numbers. Everything is counted here from shapes and rates alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from machines_support import two
from operators_support import Sketch
from test_assign_state import looped

from nmsolve.hw.assignment.evaluate import efficiency_gain, terms_of
from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.state import StatedAssignment, state_assignment

#: Rates per second and pJ: macs, elements, energy; of host and accelerator. The accelerator is made for products of bytes.
RATES = {
    "float32": ((1e9, 2e9, 3.0), (8e9, 4e9, 2.0)),
    "int8": ((2e9, 4e9, 1.0), (64e9, 16e9, 0.25)),
    "int32": ((1e9, 2e9, 2.0), (8e9, 4e9, 1.0)),
}


def machine() -> ProcessorMachine:
    named = ("macs", "elements", "energy")
    widths = {
        f"processor__{k}__widths": {
            w: dict(zip(named, (r[k][0] / 1e9, r[k][1] / 1e9, r[k][2]), strict=True))
            for w, r in RATES.items()
        }
        for k in (0, 1)
    }
    return two(**widths)


def stated(objective: str = "latency") -> StatedAssignment:
    """Products of floats and of bytes of one size, a larger one, and an addition of as many elements as the product has MACs."""
    s = Sketch("kinds")
    x = s.input(1, 100, name="x")
    small = s.op("MatMul", [x, s.weight(100, 200)], (1, 200), name="small")
    large = s.op("MatMul", [small, s.weight(200, 800)], (1, 800), name="large")
    q = s.input(1, 100, dtype="int8", name="q")
    whole = s.op(
        "MatMulInteger", [q, s.weight(100, 200, dtype="int8")], (1, 200), dtype="int32", name="whole"
    )
    wide = s.input(100, 200, name="wide")
    added = s.op("Add", [wide, wide], (100, 200), name="added")
    return state_assignment(s.graph(large, whole, added), machine(), objective=objective)


#: operation: width, MACs, elements
WORK = {
    "small": ("float32", 100 * 200, 0),
    "large": ("float32", 200 * 800, 0),
    "whole": ("int8", 100 * 200, 0),
    "added": ("float32", 0, 100 * 200),
}


@pytest.mark.parametrize("objective", ["latency", "energy"])
def test_complexity_is_counted_from_shapes_types_and_rates(objective: str) -> None:
    """O = work on the host - work there; S = that work times the share of the host's run that is saved."""
    given = stated(objective)
    problem, terms = given.problem, given.terms
    for name, (width, macs, elements) in WORK.items():
        i = problem.labels.index(name)
        work = []
        for peak, rate, pj in RATES[width]:
            time = 1e12 * (macs / peak + elements / rate)
            work.append(round(time if objective == "latency" else (macs + elements) * pj))
        assert terms.work[i].tolist() == work
        assert terms.complexity[i].tolist() == [0, work[0] - work[1]]
        run = (problem.time if objective == "latency" else problem.energy)[i].tolist()
        assert terms.speed[i].tolist() == [0, round(work[0] * (1 - run[1] / run[0]))]
        assert terms.benefit[i, 1] == terms.speed[i, 1] + terms.complexity[i, 1]


def test_the_gain_grows_with_all_that_makes_an_operation_complex() -> None:
    """A product gains more than an addition, floats more than bytes, much work more than little."""
    problem, gain = stated().problem, stated().terms.complexity[:, 1]
    by_name = {name: int(gain[problem.labels.index(name)]) for name in WORK}
    assert by_name["small"] > by_name["added"] > 0
    assert by_name["small"] > by_name["whole"] > 0
    assert by_name["large"] == 8 * by_name["small"]


def test_the_benefit_says_what_the_cost_does_not() -> None:
    """Two operations that cost the same on both units: the one with more arithmetic gains more by the faster unit."""
    given = stated()
    terms, problem = given.terms, given.problem
    i, k = problem.labels.index("small"), problem.labels.index("added")
    time = problem.time.copy()
    time[k] = time[i]
    again = terms_of(replace(problem, time=time))
    assert (again.accumulated[i] == again.accumulated[k]).all() and again.benefit[i, 1] > again.benefit[k, 1]
    assert terms.fusion.shape == terms.speed.shape


def test_control_flow_that_stays_whole_holds_the_work_of_its_bodies() -> None:
    """The loop turns four times: 1,000 additions each, and Relu or Neg of 1,000 elements, half of them each."""
    apart, whole = (state_assignment(looped(4), two(), objective=o) for o in ("latency", "makespan"))
    complexity = whole.problem.complexity
    assert complexity is not None and apart.problem.complexity is not None
    loop = [
        i for i, step in enumerate(whole.program.steps) if step.operator is not None and step.operator.bodies
    ]
    inner = [i for i, step in enumerate(apart.program.steps) if len(step.path) > 1]
    assert len(loop) == 1 and complexity.time[loop[0], 0] == apart.problem.complexity.time[inner, 0].sum()
    assert complexity.time[loop[0], 0] >= 4 * 2 * 1000 * 1000


def test_a_gain_stays_within_its_whole_numbers() -> None:
    """A measured run of the host far below what its arithmetic takes once wrapped round to a large gain."""
    assert efficiency_gain(np.array(10**13), np.array(10), np.array(10**15)) == -(2**61)
    assert efficiency_gain(np.array(10), np.array(5), np.array(4)) == 2
