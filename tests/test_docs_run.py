"""Every command and every Python script in the documentation runs as it stands there, in a folder with what a clone has.

A page is one reader: its commands run one after the other in one folder, so each must find what earlier ones made.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from command_support import run_here

from nmsolve.cli.app import application

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    "README.md",
    *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md"))),
    "examples/README.md",
    "bench/README.md",
]
#: What commands and scripts need besides the package.
EXTRAS = ("onnx", "sympy")

_DOWNLOAD = "needs an instance that is a download"
_SETS_UP = "sets up an environment of its own, from packages that it fetches"
_BENCH = "runs a suite for many minutes; tests/test_bench*.py run benchmarks"
_CLUSTER = "starts a cluster; tests/test_cluster.py does"
_COMPARED = "tests/test_readme_assign.py runs it and compares what it prints"
#: Commands that are not run here, and why. Their options are parsed all the same.
NOT_RUN = {
    "make map": _SETS_UP,
    "make test": _SETS_UP,
    "nmsolve assign tests/data/onnx/mobilenet_v2.onnx --machine laptop-npu --run": _COMPARED,
    "nmsolve assign iopddl-G.json.gz -t 5m -o runs/iopddl": _DOWNLOAD,
    "ray start --head": _CLUSTER,
    "ray start --address=192.0.2.1:6379": _CLUSTER,
    "nmsolve map examples/first.json --cluster auto": _CLUSTER,
    "nmsolve map examples/first.json --cluster local -t 20s": _CLUSTER,
    "nmsolve map net10m.nmz --machine mesh:16x16 --balance 0.03 --memory 4GiB --cluster auto --time-limit 10m": _CLUSTER,
    "python bench/cluster.py --seeds 1": _CLUSTER,
    "python bench/cluster_kills.py --kills 50 --seconds 150": _CLUSTER,
    "python bench/cluster_traffic.py": _CLUSTER,
    "python bench/cluster_tree.py --nodes 16": _CLUSTER,
    "nmsolve doctor --warm": "compiles everything; CI does that before the tests",
    "nmsolve bench qaplib --methods auto,anneal,tabu,multilevel --seeds 10 --time-limit 60s --workers 2": _BENCH,
    "nmsolve bench peers --seeds 3 -t 30s": _BENCH,
    "nmsolve bench qaplib --methods auto,tabu,genetic --seeds 3 --time-limit 10": _BENCH,
    "nmsolve bench qaplib --only 'sko*,nug12' --methods auto,tabu+projection --seeds 3 -t 10s": _BENCH,
    "nmsolve bench bench/instances --machine mesh:8x8 --balance 0.03 --methods auto,m2": _BENCH,
    "nmsolve bench routes --methods auto,named,reroute,route-cpsat --seeds 3 -t 20s": _BENCH,
    "nmsolve bench assignments --methods auto,tree,threshold --only 'blocks-8*' --seeds 3 -t 20s": _BENCH,
    "nmsolve bench tests/data/onnx --only '*v2,resnet*' --problem pipeline --set cores=64 --set split=any "
    "--methods auto,orders,cover": _BENCH,
    "python bench/pipeline_bounds.py GRAPH ... --seconds 30 --engines pipeline-counting,orders,cover": _DOWNLOAD,
}  # fmt: skip
#: Commands that another page runs as well, and of which nothing on this page needs the answer.
TWICE = {
    "docs/tour.md": (
        "nmsolve pipeline tests/data/onnx/resnet50.onnx --cores 256",
        "nmsolve schedule examples/tasks.json --objective energy --workers 2 -t 20 --noise 10%",
        "nmsolve map net.nmz --machine cores.toml --objective multicast-hops --memory 2GiB --workers 2 --time-limit 6m",
    ),
    "examples/README.md": ("nmsolve map examples/first.json",),
}
#: Words of commands that would take too long or too much memory, and what stands in their place.
SMALLER = {
    "generate microcircuit --scale 1": "generate microcircuit --scale 0.01",
    "generate microcircuit --scale 0.05": "generate microcircuit --scale 0.02",
    "generate snn --directed 1": "generate snn --nodes 2000 --synapses 40000 --directed 1",
    "--nodes 100000 --synapses 5000000 --layers 16": "--nodes 2000 --synapses 40000 --layers 4",
    "--nodes 10000000 --synapses 100000000 --layers 16 --sigma 0.006": "--nodes 2000 --synapses 40000 --layers 4",
    "train duals --bound joint": "train duals --bound joint --pool 4 --nodes 32",
    "--trials 100": "--trials 4",
    "--memory 300MiB": "--memory 2GiB",
    "--memory 512MiB": "--memory 8GiB",
}  # fmt: skip
#: How long commands may take. A search ends at its first answer with any bound; on a busy machine reading a model alone may take
#: seconds. Where engines are named, maybe none of them finds an answer: then it ends after a second, with exit code 3.
LIMIT, BRIEF_LIMIT, FRONT_LIMIT, GAP = "6", "1", "4", "99%"
#: Commands that end when their time is up and not with a first answer.
SLOW = ("faults", "simulate")
#: Other exit codes than 0 that the page speaks of: a bound may rest on a solver's word.
CODES = {"nmsolve verify runs/vision --bound": {0, 6}}
#: Scripts that need another package, and why they are only compiled.
NOT_RUN_SCRIPTS = {"docs/energy.md": "SANA-FE is no part of this project"}


class Command(NamedTuple):
    """A command, and the lines below it on the page."""

    text: str
    output: str = ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def bare(self) -> str:
        """Without the remark behind it."""
        return re.split(r"\s+#\s", self.text)[0].rstrip()


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> list[tuple[str, str]]:
    """What stands behind the fence, and the text, of every block of a page."""
    return re.findall(r"^```(.*)\n((?:.*\n)*?)```$", read(page), re.M)


def commands(page: str) -> Iterator[Command]:
    for kind, text in blocks(page):
        if kind == "sh":
            yield from map(Command, filter(None, text.splitlines()))
        elif not kind:
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                yield Command(*part.split("\n", 1))


def script(page: str) -> str:
    """All Python of a page; what belongs into a file of the package (docs/extend.md) is not for a reader to run."""
    return "\n".join(text for kind, text in blocks(page) if kind == "python")


def resolved(words: list[str]) -> tuple[Any, str, Any, list[str]]:
    """Context, name and command of words behind ``nmsolve``, and the words that are left."""
    found: Any = typer.main.get_command(application())
    context = found.make_context("nmsolve", ["info", "x"])
    name, rest = "", words
    while hasattr(found, "resolve_command"):
        name, found, rest = found.resolve_command(context, rest)
    return context, name, found, rest


def parsed(words: list[str]) -> Any:
    """The parameters of a command of nmsolve and their values, or an error of usage."""
    context, name, found, rest = resolved(words[1:])
    return found, found.make_context(name, rest, parent=context).params


def brief(command: Command) -> list[str]:
    """The words of a command of nmsolve, with little time."""
    text = command.text
    for long, short in SMALLER.items():
        text = text.replace(long, short)
    words = shlex.split(text, comments=True)
    if words[1] == "bench":
        return words
    found, given = parsed(words)
    limit = (
        BRIEF_LIMIT
        if given.get("engines") or words[1] in SLOW
        else FRONT_LIMIT
        if given.get("pareto")
        else LIMIT
    )
    values = {"time_limit": limit, "gap": None if given.get("pareto") else GAP, "seconds": "1"}
    for parameter in found.params:
        value = values.get(parameter.name)
        if value is not None:
            for name in parameter.opts:
                while name in words:
                    del words[words.index(name) : words.index(name) + 2]
            words += [parameter.opts[0], value]
    return words


def briefly(text: str) -> str:
    """The script with three seconds for every answer."""
    return re.sub(r"time_limit=\d+", "time_limit=3", text)


def run_script(text: str, folder: Path) -> str:
    """Run it beside the examples; nothing may be complained of. Returns what it prints."""
    path = folder / "examples" / "script.py"
    path.write_text(text)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a reader is in."""
    for name in ("tests", "bench", "nmsolve"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))])
def test_the_commands_of_a_page_run(page: str, clone: Path) -> None:
    """One after the other. Where the page shows an error, it is this one, with exit code 2."""
    for name in EXTRAS:
        pytest.importorskip(name)
    for command in dict.fromkeys(commands(page)):
        if command.bare in NOT_RUN or command.bare in TWICE.get(page, ()):
            continue
        if command.words[0] == "python":
            said = run_script(briefly((clone / command.words[1]).read_text()), clone)
            assert command.bare != "python examples/api.py" or ("hops = " in said and "bound" in said)
            continue
        if command.words[0] != "nmsolve":
            subprocess.run(["sh", "-ec", command.text], check=True, capture_output=True)
            continue
        done = run_here(*brief(command)[1:], code=None)
        said = (command.text, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        if command.output.startswith("error: "):
            assert done.returncode == 2 and done.stderr == command.output, said
        else:
            assert done.returncode in CODES.get(command.bare, {0, 3}), said


@pytest.mark.parametrize("page", [page for page in PAGES if script(page)])
def test_the_script_of_a_page_runs(page: str, clone: Path) -> None:
    """As a script of its own, without a guard against being imported. That of docs/api.md asserts what it finds in its time."""
    compile(script(page), page, "exec")
    if page not in NOT_RUN_SCRIPTS:
        run_script(script(page) if page == "docs/api.md" else briefly(script(page)), clone)
    assert page != "docs/api.md" or (clone / "links.png").stat().st_size > 2000


def test_what_is_not_run_stands_on_a_page_and_has_options_that_exist() -> None:
    shown = {command.bare: command for page in PAGES for command in commands(page)}
    assert not set(NOT_RUN) - set(shown) and all(script(page) for page in NOT_RUN_SCRIPTS)
    assert all(any(long in text for text in shown) for long in SMALLER) and not set(CODES) - set(shown)
    for page, twice in TWICE.items():
        others = {command.bare for other in PAGES if other != page for command in commands(other)}
        assert set(twice) <= {command.bare for command in commands(page)} & others
    for words in (shown[text].words for text in NOT_RUN):
        if words[0] == "nmsolve":
            parsed(words)
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M)


def test_no_command_hides_in_a_block_of_another_kind() -> None:
    for page in PAGES:
        for kind, text in blocks(page):
            assert kind == "sh" or not re.match(r"(nmsolve|make|pip|python|printf) ", text), (page, text)


def test_commands_in_running_text_have_options_that_exist() -> None:
    """They leave names open, so they cannot run."""
    for page in PAGES:
        for text in re.findall(r"`((?:nmsolve|python bench/)[^`]* --[^`]*)`", read(page)):
            words = re.sub(r"[\[\]|]", " ", text).split()
            options = {word.partition("=")[0] for word in words if word.startswith("--")}
            if words[0] == "python":
                known = (ROOT / words[1]).read_text()
                assert all(f'"{option}"' in known for option in options), (page, text)
            elif words[1] not in ("generate", "..."):
                found = resolved(words[1:])[2]
                known = {o for p in found.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
                assert not options - known, (page, text)
