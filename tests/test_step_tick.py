"""Chips that run in real time: a step is compared with their tick, on the terminal, in the report and by ``verify``."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hw_reference import times

from nmsolve.check.mapping.verify import tick_checks
from nmsolve.hw.machines import load_machine
from nmsolve.hw.step_time import FIGURES, step_costs, tick_of
from nmsolve.kinds.mapping.report import tick_part, tick_words
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.machine import Figure, Machine
from nmsolve.solvers.mapping.api import make_problem


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reservoir with rates per millisecond, ``r.json``, and its mapping on SpiNNaker, ``o``."""
    folder = tmp_path_factory.mktemp("tick")
    run_here(
        "generate", "reservoir", "--nodes", "64", "--fan", "6", "--step", "1", "--out", folder / "r.json"
    )
    said = run_here(
        "map", folder / "r.json", "-m", "spinnaker1", "-t", "2", "--seed", "1", "--out", folder / "o"
    )
    (folder / "said.txt").write_text(said.stdout)
    return folder


def test_spinnaker_takes_the_step_time_unasked_and_says_that_it_fits(files: Path) -> None:
    said = (files / "said.txt").read_text()
    assert "Objective step-time: spinnaker1 has the figures" in said
    assert "fits in the tick of 1,000,000 ns" in said and "does not fit" not in said
    report = json.loads((files / "o" / "report.json").read_text())
    assert report["tick"] == {"step": report["objective"], "tick": 1e6, "fits": True}
    assert "fits in the tick of 1,000,000 ns" in (files / "o" / "report.html").read_text()
    assert any(c["name"] == "tick" and c["ok"] for c in report["checks"])


@pytest.mark.parametrize(
    ("key", "value"),
    [("step", 1.0), ("tick", 5e5), ("fits", False), ("fits", "yes"), (None, [1]), ("step", None)],
)
def test_verify_finds_out_what_a_report_says_wrongly_of_the_tick(
    files: Path, key: str | None, value: object
) -> None:
    path = files / "o" / "report.json"
    before = path.read_text()
    assert "ok      tick" in run_here("verify", files / "o").stdout
    report = json.loads(before)
    report["tick"] = value if key is None else {**report["tick"], key: value}
    try:
        path.write_text(json.dumps(report))
        said = run_here("verify", files / "o", code=1).stdout
        assert re.search(r"FAILED  (tick|types .*\$\.tick)", said), said
    finally:
        path.write_text(before)


def test_a_claim_about_a_tick_that_the_machine_does_not_have() -> None:
    machine = load_machine("loihi1")
    (wrong,) = tick_checks(machine, {"tick": {"step": 1.0, "tick": 2.0, "fits": True}}, {"step-time": 1.0})
    assert not wrong.ok
    assert tick_checks(machine, {"tick": None}, {"step-time": 1.0}) == []
    assert tick_part(machine, {"step-time": 1.0}) is None and tick_words(None) == []


def test_a_step_as_long_as_the_tick_fits_and_a_longer_one_does_not() -> None:
    machine = Machine("m", (1, 1), (2, 2), figures={"tick": Figure(1000.0, "ns")})
    assert tick_part(machine, {}) is None
    even, longer = (tick_part(machine, {"step-time": step}) for step in (1000.0, 2500.0))
    assert even is not None and even.fits and longer is not None and not longer.fits
    assert "does not fit" in tick_words(longer)[0] and "2.5 times slower" in tick_words(longer)[0]
    (check,) = tick_checks(machine, {}, {"step-time": 2500.0})
    assert check.ok and "too long" in check.text


def test_a_limit_of_one_tick_keeps_a_mapping_of_few_hops_in_real_time(files: Path) -> None:
    """The mapping of fewest hops sits on one chip; a limit halfway to the shortest step spreads it."""
    run_here("generate", "reservoir", "--nodes", "64", "--fan", "6", "--out", files / "s.json")
    graph = files / "s.json"
    command = ("map", graph, "-m", "spinnaker1", "--objective", "hops", "-t", "3", "--seed", "1")
    run_here(*command, "--out", files / "few")
    crowded = json.loads((files / "few" / "report.json").read_text())["tick"]["step"]
    most = (crowded + 19250) / 2
    run_here(*command, "--limit", f"step-time={most}ns", "--out", files / "kept")
    kept = json.loads((files / "kept" / "report.json").read_text())["tick"]
    assert kept["step"] <= most < crowded


@pytest.mark.parametrize("text", ["0", "-1", "inf", "{ value = 1, unit = 'ms' }", "'1 ms'"])
def test_a_tick_that_is_none_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.toml").write_text(f"cores = [2, 2]\n[figures]\ntick = {text}\n")
    said = run_here("hw", "show", tmp_path / "m.toml", code=2).stderr
    assert "$.figures.tick" in said and len(said.strip().splitlines()) == 1


def test_from_python_the_objective_refuses_a_tick_in_another_unit() -> None:
    graph = replace(generate("reservoir", nodes=8, fan=2), resources=(), sizes=np.zeros((8, 0), np.int64))
    for wrong in (Figure(1.0, "ms"), Figure(0.0, "ns"), Figure(1e40, "ns")):
        machine = Machine("m", (1, 1), (2, 2), figures=times(True) | {"tick": wrong})
        with pytest.raises(InputError, match="tick"):
            make_problem(graph, machine, objective="step-time")
        assert tick_part(machine, {"step-time": 1.0}) is None


def test_the_figures_of_spinnaker_are_those_of_its_sources() -> None:
    """Cycles of 5 ns on 17 processors, as docs/machines.md counts them; a processor works to its design target in 1.7 ms."""
    machine = load_machine("spinnaker1")
    costs = step_costs(machine)
    assert set(FIGURES) <= set(machine.figures) and tick_of(machine) == 1e6
    assert costs.neuron == pytest.approx(181 * 5 / 17, abs=0.01)
    assert costs.taken == pytest.approx(539 * 5 / 17, abs=0.01)
    assert costs.event == pytest.approx(15 * 5 / 17, abs=0.001)
    assert (costs.spike, costs.sent, costs.barrier, costs.link, costs.aside) == (0, 0, 3850 * 5, 160, False)
    alone = step_costs(
        load_machine(str(Path(__file__).parent.parent / "examples" / "spinnaker-processors.toml"))
    )
    for of_chip, own in zip(costs[:5], alone[:5], strict=True):
        assert own == pytest.approx(17 * of_chip, rel=1e-3)
    assert (alone.barrier, alone.link) == (costs.barrier, 0)
    work = 17 * (1000 * costs.neuron + 10 * (costs.taken + 1000 * costs.event)) + costs.barrier
    assert work == pytest.approx(1.7e6, rel=0.01)
