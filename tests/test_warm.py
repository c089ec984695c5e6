"""`nmsolve doctor --warm`: what it runs leaves no kernel of its modules to compile."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numba as nb
import numpy as np
import pytest
from command_support import run_here
from numba.core import config
from numba.core.event import RecordingListener, install_listener

import nmsolve
from nmsolve.kinds.warm.kernels import missing_kernels, stale_kernels, until_compiled
from nmsolve.kinds.warm.run import warm_one
from nmsolve.model.basic_kernels import RUN, stable_order
from nmsolve.model.compiled import kernel

#: Modules whose kernels are all compiled by one kind of work.
ROOMS = {
    "files": (
        "nmsolve.model.formats.", "nmsolve.model.store.", "nmsolve.model.generators.", "nmsolve.hw.scores", "nmsolve.hw.kernels",
        "nmsolve.model.between", "nmsolve.hw.summed", "nmsolve.hw.detours", "nmsolve.model.mapping.",
        "nmsolve.check.mapping.bounds.counting", "nmsolve.heuristics.mapping.external.contraction",
        "nmsolve.heuristics.mapping.external.spilled", "nmsolve.heuristics.mapping.external.thinning",
        "nmsolve.heuristics.mapping.external.holder", "nmsolve.heuristics.mapping.external.clustering",
    ),
    "pipelines": (
        "nmsolve.model.pipeline.", "nmsolve.check.pipeline.", "nmsolve.hw.pipeline.", "nmsolve.heuristics.pipeline.",
        "nmsolve.solvers.pipeline.",
    ),
    "routing": ("nmsolve.model.routing.", "nmsolve.hw.routing.", "nmsolve.heuristics.routing.", "nmsolve.solvers.routing."),
    "schedules": ("nmsolve.hw.schedule.", "nmsolve.heuristics.schedule.", "nmsolve.solvers.schedule."),
    "simulation": ("nmsolve.hw.noc.",),
    "multilevel": ("nmsolve.heuristics.mapping.multilevel.",),
    "spread": ("nmsolve.solvers.mapping.bounds.spread.",),
    "steps": ("nmsolve.heuristics.mapping.steps.", "nmsolve.hw.step_time"),
}  # fmt: skip


@pytest.mark.parametrize("work", ROOMS)
def test_work_compiles_all_kernels_of_its_modules(work: str) -> None:
    """A kernel added to one of these modules is in the cache afterwards, or this fails and names it.

    What ``make warm`` did before the tests is not done again.
    """

    def missing() -> list[str]:
        return [name for name in missing_kernels() if name.startswith(ROOMS[work])]

    assert not missing() or warm_one(work)
    assert missing() == []


def test_a_run_is_repeated_until_it_compiles_nothing() -> None:
    """A phase that is only reached in the third run has its kernel compiled, and a fourth run finds nothing to do."""
    reached = []

    def kernel(k: int):
        return nb.njit(lambda x: x + k)

    def run() -> None:
        reached.append(len(reached))
        if reached[-1] < 3:
            kernel(reached[-1])(np.int64(1))

    until_compiled(run)
    assert reached == [0, 1, 2, 3]


def test_kernels_older_than_what_they_call_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A calls B calls C, which takes a constant from D; E is imported, but not by a kernel."""
    monkeypatch.setattr(config, "CACHE_DIR", "")  # beside the sources, whatever the user has set
    package = tmp_path / "pack"
    (package / "__pycache__").mkdir(parents=True)
    kernel = "\n\n@nb.njit(cache=True)\ndef {0}(x):\n    return {1}\n"
    sources = {
        "a": "from pack.b import b\nfrom pack.e import e\n" + kernel.format("a", "b(x)"),
        "b": "from pack.c import c as other\n" + kernel.format("b", "other(x)"),
        "c": "from pack.d import D\n" + kernel.format("c", "x + D"),
        "d": "D = 1\n",
        "e": "def e(): ...\n",
    }
    for name, text in sources.items():
        (package / f"{name}.py").write_text(text)
        os.utime(package / f"{name}.py", (1000, 1000))
    cached = [package / "__pycache__" / f"{name}.{name}-3.py311.nbi" for name in "abc"]
    for path in cached:
        path.write_bytes(b"")
        os.utime(path, (2000, 2000))
    assert stale_kernels(package) == []
    for changed, wanted in (("e", []), ("a", cached[:1]), ("b", cached[:2]), ("d", cached)):
        os.utime(package / f"{changed}.py", (3000, 3000))
        assert stale_kernels(package) == wanted
        os.utime(package / f"{changed}.py", (1000, 1000))


#: Ways to compile a kernel (``model/compiled.py``).
WAYS = {"kernel", "plain", "embedded", "inlined", "compiled", "piece"}


def _ways(function: ast.AST) -> set[str]:
    """How a function is compiled; nothing if it is not."""
    names = [ast.unparse(d) for d in function.decorator_list] if isinstance(function, ast.FunctionDef) else []
    return {name.partition("(")[0] for name in names} & WAYS


def test_kernels_find_orders_by_our_own_kernel() -> None:
    """numba compiles an order anew in every process, two CPU seconds each. It also gives the parts of its quicksort the same
    names whether they sort or find an order: of kernels cached by different processes the one would call the parts of the
    other, and find an order that is none."""
    wrong, seen = [], 0
    for path in sorted(Path(nmsolve.__path__[0]).rglob("*.py")):
        for function in filter(_ways, ast.walk(ast.parse(path.read_text("utf-8")))):
            seen += 1
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            wrong += [f"{path.name}:{c.lineno}" for c in calls if ast.unparse(c.func).endswith("argsort")]
    assert wrong == []
    assert seen > 300


@kernel
def _order(key: np.ndarray) -> np.ndarray:
    return stable_order(key)


@pytest.mark.parametrize("n", [0, 1, 2, RUN, RUN + 1, 2 * RUN, 3 * RUN, 7 * RUN + 5, 40 * RUN])
@pytest.mark.parametrize("values", [1, 3, 1000])
def test_an_order_is_stable(n: int, values: int) -> None:
    """Equal keys stay as they come, whether a run is sorted by insertion or runs are merged; infinity is a key like any other."""
    key = np.random.default_rng(n + values).integers(0, values, n).astype(float)
    key[::5] = np.inf
    assert _order(key).tolist() == np.argsort(key, kind="stable").tolist()


def test_a_command_after_warming_compiles_nothing(tmp_path: Path) -> None:
    """The first command of the README, where ``make warm`` was run before; ``bench/warm.py`` looks at all commands."""
    if any(
        name.startswith(("nmsolve.heuristics.mapping.multilevel.", "nmsolve.hw."))
        for name in missing_kernels()
    ):
        pytest.skip("kernels are not compiled")
    first = Path(__file__).parents[1] / "examples" / "first.json"
    with install_listener("numba:compile", RecordingListener()) as heard:
        run_here("map", first, "--time-limit", 1, "--out", tmp_path / "run")
    assert [event.data["dispatcher"].py_func.__qualname__ for _, event in heard.buffer] == []


#: A kernel that is kept in the cache, and one that is compiled later and calls it.
FIRST = """
import numpy as np
from nmsolve.model.compiled import kernel

@kernel
def doubled(x):
    if len(x) < 2:
        raise ValueError("too few")
    return 2 * np.roll(x, -1)[0]
"""
LATER = """
import sys
import numpy as np
from nmsolve.model.compiled import kernel
from first import doubled

assert doubled(np.arange(3.0)) == 2.0
try:
    doubled(np.arange(1.0))
except ValueError as error:
    assert str(error) == "too few"
print("numba.np.arraymath" in sys.modules)
if sys.argv[1:]:
    @kernel
    def summed(x):
        return doubled(x) + x.sum()

    assert summed(np.arange(3.0)) == 5.0
"""


def test_what_is_compiled_is_loaded_without_what_compiling_takes(tmp_path: Path) -> None:
    """Numba reads 200 modules before it compiles: not for kernels in the cache, and still for a new one that calls them."""
    (tmp_path / "first.py").write_text(FIRST)
    (tmp_path / "later.py").write_text(LATER)
    said, cache = [], {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for words in ((), (), ("more",)):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "later.py"), *words],
            env={**os.environ, **cache, "PYTHONPATH": str(Path(nmsolve.__file__).parent.parent)},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert said == ["True", "False", "False"]


#: A kernel of a release, and of one that calls its class by another name.
RELEASE = """
from typing import NamedTuple
from nmsolve.model.compiled import kernel


class {0}(NamedTuple):
    value: float


@kernel
def twice(pair):
    return 2.0 * pair.value


assert twice({0}(1.5)) == 3.0
print(sum(twice.stats.cache_hits.values()))
"""


def test_kernels_are_kept_beside_those_that_name_a_class_which_is_gone(tmp_path: Path) -> None:
    """The index of an older release cannot be read; it once kept every later release from keeping anything."""
    source, said = tmp_path / "release.py", []
    for name in ("Old", "New", "New"):
        source.write_text(RELEASE.format(name))
        done = subprocess.run(
            [sys.executable, "-c", "import release"],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                 "PYTHONPATH": f"{tmp_path}:{Path(nmsolve.__file__).parent.parent}", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert said == ["0", "0", "1"]
