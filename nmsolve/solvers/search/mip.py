"""Solving Pyomo models: HiGHS in the process with live solutions, any other solver through Pyomo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nmsolve.model.errors import BackendError
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.listen import Outcome, Tell, run_and_listen
from nmsolve.solvers.search.rows import Built

#: Presolve's aggregator (bit 12) and probing (bit 15): together they made HiGHS 1.12 call 129.01 optimal for two layers on two
#: cores where 125.00 is (tests/differential/test_pipeline.py, seed 29).
WRONG = 1 << 12 | 1 << 15


#: What a MIP solver's bound may be off by, in parts of it and of the model's unit: its feasibility tolerance.
TOLERANCE = 1e-6


def solve(
    built: Built,
    solver: str = "highs",
    *,
    seed: int,
    workers: int,
    seconds: float,
    should_stop: Callable[[], bool],
    on_solution: Callable[[IntArray], object],
) -> Outcome:
    """Solve ``built`` with HiGHS, or with any MIP solver that Pyomo finds; :data:`TOLERANCE` is taken off the bound.

    ``on_solution`` gets solutions as they come (HiGHS), and the last one in any case.

    Raises
    ------
    BackendError : the solver does not take the model, or there is none of that name
    """
    from pyomo.common.errors import InfeasibleConstraintException

    try:
        if solver == "highs":
            end = solve_highs(
                built, seed=seed, workers=workers, seconds=seconds, should_stop=should_stop, on_solution=on_solution
            )  # fmt: skip
        else:
            end = solve_other(built, solver, seconds)
    except InfeasibleConstraintException:
        # a row without variables that does not hold, as a ceiling on fixed costs, is not a model to Pyomo: there is no solution
        return Outcome("infeasible", None, None, {"solver": solver})
    if end.core is not None:
        on_solution(end.core)
    return end if end.bound is None else replace(end, bound=end.bound - TOLERANCE * max(1.0, abs(end.bound)))


def solve_highs(
    built: Built,
    *,
    seed: int,
    workers: int,
    seconds: float,
    should_stop: Callable[[], bool],
    on_solution: Callable[[IntArray], object],
) -> Outcome:
    """Solve with HiGHS in this process; ``on_solution`` is called from the caller's thread.

    The dual bounds that its callbacks report on the way are not those of the model (9.81, then 10.25, were reported where 0 is
    optimal), so none counts but the one that it states after a clean end.

    Raises
    ------
    BackendError : HiGHS rejects the model
    """
    import highspy

    highs, columns = _load(built.model)
    number = {id(v): k for k, v in enumerate(columns)}
    highs.setOptionValue("time_limit", max(0.01, seconds))
    highs.setOptionValue("threads", max(1, workers))
    highs.setOptionValue("random_seed", seed % (2**31))
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("presolve_rule_off", WRONG)
    highs.setOptionValue("mip_abs_gap", 0.99 * built.claim.factor if built.claim.integral else 1e-7)
    known = [k for k, v in enumerate(columns) if v.value is not None]
    if known:
        start = np.array([columns[k].value for k in known], np.float64)
        highs.setSolution(len(known), np.array(known, np.int32), start)

    def read(values: Any) -> IntArray:
        on = np.asarray(values) > 0.5
        return built.mapping(lambda x: bool(on[number[id(x)]]))

    def work(tell: Tell) -> None:
        def improved(event: Any) -> None:
            tell("solution", read(event.data_out.mip_solution))

        highs.HandleUserInterrupt = True
        highs.cbMipImprovingSolution += improved
        highs.run()

    run_and_listen(
        work,
        stop=highs.cancelSolve,
        should_stop=should_stop,
        on_solution=on_solution,
        on_bound=lambda _: None,
    )
    status, info = highs.getModelStatus(), highs.getInfo()
    by = {"solver": f"highs {highs.version()}"}
    if status == highspy.HighsModelStatus.kInfeasible:
        return Outcome("infeasible", None, None, by)
    ended = highspy.HighsModelStatus
    clean = status in (ended.kOptimal, ended.kTimeLimit, ended.kInterrupt)
    bound = float(info.mip_dual_bound) if clean and np.isfinite(info.mip_dual_bound) else None
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Outcome("unknown", bound, None, by)
    core = read(highs.getSolution().col_value)
    optimal = status == highspy.HighsModelStatus.kOptimal
    return Outcome("optimal" if optimal else "feasible", bound, core, by)


def _load(model: Any) -> tuple[Any, list[Any]]:
    """Return a Pyomo model as a HiGHS instance, and the variable of every column."""
    import highspy
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    form = LinearStandardFormCompiler().write(model, mixed_form=True)
    rows = form.A.tocsr()
    rhs, kind = np.asarray(form.rhs, np.float64), np.array([r.bound_type for r in form.rows])
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(form.columns), len(form.rows)
    lp.col_cost_ = np.asarray(form.c.todense(), np.float64).ravel()
    lp.offset_ = float(form.c_offset[0])
    bounds = [v.bounds for v in form.columns]
    lp.col_lower_ = np.array([-highspy.kHighsInf if a is None else a for a, _ in bounds])
    lp.col_upper_ = np.array([highspy.kHighsInf if b is None else b for _, b in bounds])
    lp.row_lower_ = np.where(kind <= 0, rhs, -highspy.kHighsInf)
    lp.row_upper_ = np.where(kind >= 0, rhs, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    whole, free = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    lp.integrality_ = [free if v.is_continuous() else whole for v in form.columns]
    highs = highspy.Highs()
    highs.silent()
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise BackendError("HiGHS rejects the model")
    return highs, list(form.columns)


def available(solver: str) -> bool:
    """Return whether Pyomo finds the MIP solver called ``solver``."""
    import pyomo.environ as pyo
    from pyomo.common.errors import ApplicationError

    try:
        return bool(pyo.SolverFactory(solver).available(exception_flag=False))
    except (ApplicationError, RuntimeError):
        return False


def solve_other(built: Built, solver: str, seconds: float) -> Outcome:
    """Solve with any MIP solver that Pyomo finds by name; no progress before the end.

    Raises
    ------
    BackendError : Pyomo does not know the solver, or it is not installed
    """
    import pyomo.environ as pyo
    from pyomo.opt import TerminationCondition as Ended

    if not available(solver):
        raise BackendError(f"Pyomo finds no MIP solver called {solver!r}")
    factory, by = pyo.SolverFactory(solver), {"solver": solver}
    known = any(v.value is not None for v in built.model.component_data_objects(pyo.Var))
    warm = known and bool(factory.warm_start_capable())
    options = {"warmstart": True} if warm else {}
    results = factory.solve(built.model, timelimit=max(1.0, seconds), load_solutions=False, **options)
    ended = results.solver.termination_condition
    if ended == Ended.infeasible:
        return Outcome("infeasible", None, None, by)
    lower, clean = results.problem.lower_bound, ended in (Ended.optimal, Ended.maxTimeLimit, Ended.feasible)
    bound = float(lower) if clean and isinstance(lower, int | float) and np.isfinite(lower) else None
    if len(results.solution) == 0 or not clean:
        return Outcome("unknown", bound, None, by)
    built.model.solutions.load_from(results)
    core = built.mapping(lambda x: bool(pyo.value(x) > 0.5))
    return Outcome("optimal" if ended == Ended.optimal else "feasible", bound, core, by)
