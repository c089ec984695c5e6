"""Re-checks of other packages: a word that is named, and never one of ours."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from plans_support import four_layers
from plugins_support import FIRST, MESH, RING, Row, RowApart, call, package, run
from routing_support import mesh, trees

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.check.rechecked import recheck
from nmsolve.check.routing.recheck import check_routing_bound
from nmsolve.model import plugins
from nmsolve.model.bound import Bound
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.solvers.mapping.api import make_problem


def test_a_bound_that_a_package_rechecks_counts_as_its_word(installed: Path, tmp_path: Path) -> None:
    """In the run, in the report and on the page; ``verify`` says so, also by its exit code."""
    out = tmp_path / "out"
    done = call(installed, "map", FIRST, "--engines", "snake,misfits", "-t", "20s", "-o", out)
    assert done.returncode == 0 and "bound 107" in done.stdout, done.stdout
    word = "The bound was recomputed by package nmsolve-snake 1.0 only"
    report = json.loads((out / "report.json").read_text())
    (bound,) = (b for b in report["bounds"] if b["scope"] == "full")
    assert (bound["method"], bound["value"], bound["package"]) == (
        "misfits",
        107,
        "package nmsolve-snake 1.0",
    )
    assert word in done.stdout and word in (out / "report.html").read_text()
    assert "Proved optimal" not in done.stdout + (out / "report.html").read_text()
    done = call(installed, "verify", out, "--bound")
    assert done.returncode == 6, done.stdout
    assert (
        "word    bound misfits (full)     recomputed by package nmsolve-snake 1.0, whose code" in done.stdout
    )
    assert "full bound: not proved here; rests on the word of package nmsolve-snake 1.0\n" in done.stdout
    assert call(installed, "verify", out, "--bound", "--trust-solver").returncode == 0
    done = call(tmp_path, "verify", out, "--bound")
    assert done.returncode == 1 and "no installed package re-checks it" in done.stdout
    plain = ("map", FIRST, "-m", "mesh:2x3", "--engines", "snake,misfits,star,split", "-t", "20s", "-o", out)
    done = call(installed, *plain)
    assert done.returncode == 0 and word not in done.stdout, "another bound is as good"
    assert call(installed, "verify", out, "--bound").returncode == 0


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An answer with the bound of ``star``, which nmsolve recomputes and which is far below the objective."""
    out = tmp_path_factory.mktemp("answer") / "out"
    run_here("map", FIRST, "--engines", "first-fit,star", "-t", "60s", "-o", out)
    run_here("verify", out, "--bound")
    return out


def claim(answer: Path, out: Path, method: str, above: float = 0.0) -> Path:
    """The same answer with a forged bound at the objective, or ``above`` it; its report claims that, too."""
    shutil.copytree(answer, out)
    report = json.loads((out / "report.json").read_text())
    value = report["objective"] + above
    report |= {
        "bound": value,
        "gap": above / report["objective"],
        "status": "feasible" if above else "optimal",
    }
    proofs = json.loads((out / "certificates.json").read_text())
    proofs["bounds"].append({"method": method, "scope": "full", "value": value, "certificate": {}})
    (out / "certificates.json").write_text(json.dumps(proofs))
    report["bounds"] = [{k: b[k] for k in ("method", "scope", "value")} for b in proofs["bounds"]]
    (out / "report.json").write_text(json.dumps(report))
    return out


BREAKS_OUT = """
def check(*given):
    import os, sys
    from nmsolve.kinds import check_bounds
    from nmsolve.kinds import verdict
    from nmsolve.check.mapping import recheck
    verdict.verdict = lambda *a: 0
    recheck.RECHECKS["liar"] = lambda *a: 1e9
    os.write(1, b"ok      full bound   recomputed\\n")
    print("ok      bound liar (full)       recomputed from the certificate: 119", flush=True)
    {end}
"""


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("check = lambda *given: 1e9", 6),
        ("check = lambda *given: float('inf')", 1),
        ("check = lambda *given: float('nan')", 1),
        ("check = lambda *given: '1e9'", 1),
        ("check = lambda *given: True", 1),
        ("check = lambda *given: 118", 1),
        (
            "from nmsolve.model.bound import BoundCheck\ncheck = lambda p, c: BoundCheck(True, 119.0, 'recomputed')",
            1,
        ),
        (BREAKS_OUT.format(end="return 1e9"), 6),
        (BREAKS_OUT.format(end="os._exit(0)"), 1),
        (BREAKS_OUT.format(end="sys.exit(0)"), 1),
        (BREAKS_OUT.format(end="raise KeyboardInterrupt"), 1),
        (BREAKS_OUT.format(end="[os.write(fd, b'junk') for fd in range(3, 9)]"), 1),
        ("import os\nos._exit(0)", 1),
    ],
)
def test_a_recheck_that_lies_proves_nothing(
    code: str, exit_code: int, answer: Path, tmp_path: Path, here: Callable[[Path], None]
) -> None:
    """The forger of re-checks: nothing that its code says or does makes the claim one that nmsolve recomputed.

    What breaks out is looked at from outside: what it writes, and whom it ends.
    """
    site = package(tmp_path / "site", code, rechecks="liar = strange:check")
    out = claim(answer, tmp_path / "out", "liar")
    if "os." in code:
        done = call(site, "verify", out, "--bound")
    else:
        here(site)
        done = run_here("verify", out, "--bound", code=None)
    assert done.returncode == exit_code, done.stdout + done.stderr
    lines = {line[8:33].strip(): line for line in done.stdout.splitlines()}
    assert lines["bound liar (full)"].startswith("word" if exit_code == 6 else "FAILED")
    assert lines["full bound"].startswith("word" if exit_code == 6 else "FAILED")
    assert done.stdout.count("full bound") == 1 + (exit_code == 6) and "Traceback" not in done.stderr
    if exit_code == 6:
        assert "rests on the word of package strange 1.0" in lines["full bound"]


@pytest.mark.parametrize("method", ["star", "cpsat"])
def test_a_recheck_never_stands_for_one_of_ours(method: str, answer: Path, tmp_path: Path) -> None:
    """Under our names nobody's code is asked but ours, which finds that the claim is false; nor above a known mapping."""
    offers = f"{method} = strange:check\nliar = strange:check"
    site = package(tmp_path / "site", "check = lambda *given: 1e9", rechecks=offers)
    done = call(site, "verify", claim(answer, tmp_path / "out", method), "--bound")
    assert done.returncode == 1 and "strange" not in done.stdout, done.stdout
    assert f"FAILED  bound {method} (full)" in done.stdout
    done = call(site, "verify", claim(answer, tmp_path / "above", "liar", 1.0), "--bound")
    assert done.returncode == 1 and " of a known mapping" in done.stdout


@pytest.fixture
def strange(tmp_path: Path, here: Callable[[Path], None]) -> None:
    """A package is installed here whose re-checks of ``liar`` say 3 for every problem."""
    groups = {
        f"rechecks{kind}": "liar = strange:check" for kind in ("", *(f".{p}" for p in plugins.PROBLEMS))
    }
    here(package(tmp_path / "site", "def check(*given): return 3", **groups))


@pytest.mark.usefixtures("strange")
@pytest.mark.parametrize(("value", "ok"), [(3.0, True), (3.5, False), (float("inf"), False), (-1.0, False)])
def test_every_problem_takes_rechecks_of_packages_as_a_word(value: float, ok: bool) -> None:
    bound, word = Bound(value, "liar", certificate={"x": np.arange(3)}), "package strange 1.0"
    machine = mesh(2, 2)
    routes = RoutingProblem(machine, trees([0], [[3]], [9.0]))
    mapping, plans = make_problem(RING, MESH), four_layers()
    for found in (
        check_bound(mapping, bound), check_plan_bound(plans, bound), check_routing_bound(routes, "max-link", bound),
        recheck(mapping, bound, 9.0, None, checks={}, words=(), kind="assignment", solutions="assignments"),
        recheck(mapping, bound, 9.0, None, checks={}, words=(), kind="schedule", solutions="schedules"),
    ):  # fmt: skip
        assert (found.ok, found.package) == ((True, word) if ok else (False, "")), found
        assert found.word == found.package and (not ok or found.value == value)
    assert not check_bound(mapping, bound, free_routes=True).ok, (
        "nobody knows whether it holds for other routes"
    )
    assert not check_bound(mapping, replace(bound, scope="placement"), np.arange(12)).ok
    assert not check_plan_bound(replace(plans, split="contiguous"), Bound(3.0, "chain")).ok


@pytest.mark.usefixtures("strange")
@pytest.mark.parametrize("engine", [Row, RowApart])
def test_a_run_says_which_package_a_bound_rests_on(engine: type[Row]) -> None:
    """And no engine says so itself; a certificate that cannot be written is no proof."""
    result = run(engine(Bound(3.0, "liar", "full", {"x": np.arange(3)})))
    assert result.bound == 3 and [b.package for b in result.bounds] == ["package strange 1.0"]
    (star,) = [b for b in run("star").bounds if b.method == "star"]
    result = run(engine(replace(star, package="package nmsolve 99.0")))
    assert [b.package for b in result.bounds] == [""]
    result = run(engine(Bound(3.0, "liar", "full", {"x": {1, 2}})))
    assert result.bound is None and any("cannot be written" in e.text for e in result.events)
