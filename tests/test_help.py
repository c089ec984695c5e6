"""Long help stands in sections; a shell completes what has a name: presets, objectives, engines, generators."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import typer
from command_support import run_here
from test_architecture import HEAVY

from nmsolve.cli.app import application
from nmsolve.cli.sections import LONG, SECTIONS

COMMANDS = typer.main.get_command(application()).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", LONG)
def test_every_option_of_a_long_command_has_a_section(name: str) -> None:
    """Once, under its heading; sections come in their order."""
    help_text = run_here(name, "--help").stdout
    headings = re.findall(r"^([A-Z].*):$", help_text, re.M)
    assert headings == ["Arguments", *SECTIONS]
    parts = dict(zip(headings, re.split(r"^[A-Z].*:$", help_text, flags=re.M)[1:], strict=True))
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option":
            heading = next(h for h, names in SECTIONS.items() if parameter.name in names.split())
            option = max(parameter.opts, key=len)
            shown = {
                h for h, part in parts.items() if re.search(rf"^  (-\w, )?{option}(?![\w-])", part, re.M)
            }
            assert shown == {heading}, option


def test_sections_name_options_that_exist() -> None:
    names = [name for text in SECTIONS.values() for name in text.split()]
    assert len(names) == len(set(names))
    assert set(names) == {
        p.name for name in LONG for p in COMMANDS[name].params if p.param_type_name == "option"
    } | {"help"}


def completed(line: str) -> list[str]:
    """What a shell is offered behind this line, by a process that tells what it has loaded."""
    code = (
        "import sys, json\nfrom nmsolve.cli import main\nsys.argv = ['nmsolve']\n"
        "try:\n    main.main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    asked = {
        "_NMSOLVE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    offered, loaded = done.stdout.split("LOADED")
    assert not set(json.loads(loaded)) & HEAVY
    return offered.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("nmsolve map g.json --machine lo", ["loihi1", "loihi2"]),
        ("nmsolve explain assign m.onnx -m lap", ["laptop-npu"]),
        ("nmsolve map g.json --objective hops,ma", ["hops,max-link"]),
        ("nmsolve route out --objective to", ["total-link"]),
        ("nmsolve schedule t.json --pareto makespan,ener", ["makespan,energy"]),
        ("nmsolve route out --engines named,rer", ["named,reroute"]),
        ("nmsolve bench qaplib --methods auto,genetic+genet", ["auto,genetic+genetic"]),
        ("nmsolve generate micro", ["microcircuit"]),
    ],
)
def test_a_shell_completes_names(line: str, offered: list[str]) -> None:
    """Without loading what takes time."""
    assert completed(line) == offered
