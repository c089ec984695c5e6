"""Fixtures of the tests that call the command line in this process."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_support import run_here

from nmsolve.model import plugins
from nmsolve.report import drawing

Called = Callable[..., tuple[int, str, str]]

# In the background of a script or under nohup signals are ignored, and what tests start would inherit that.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


#: What ``make test-deep`` runs: forgers, floors of strength, separate references, random sweeps, clusters, pages of the docs, and
#: what else takes minutes. Folders, and how the names of files begin.
DEEP = (
    "adversary/", "strength/", "differential/", "test_alternate", "test_axons", "test_bounds_", "test_cli_store",
    "test_clock", "test_cluster", "test_docs_run", "test_exact_branch_bound_", "test_exact_repeated",
    "test_external", "test_fuzz", "test_host", "test_joint_", "test_kernels_beside", "test_kinds", "test_learn_",
    "test_m2_", "test_min_conflicts", "test_nothing_to_do", "test_pacman", "test_pipeline_batch",
    "test_pipeline_border", "test_pipeline_bounds", "test_pipeline_cover", "test_pipeline_energy",
    "test_pipeline_in_order", "test_pipeline_live", "test_pipeline_orders", "test_pipeline_replicas", "test_plugin",
    "test_read_only", "test_recheck_", "test_remap", "test_reward", "test_routing_exact", "test_routing_large",
    "test_schedule_bounds", "test_schedule_budgets", "test_schedule_exact", "test_schedule_kernels",
    "test_schedule_search", "test_schedule_tuned", "test_signals", "test_slices", "test_stated", "test_step_",
    "test_sweep_readers", "test_symbolic_shapes", "test_unlike_cores", "test_warm",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what :data:`DEEP` names."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(DEEP):
            item.add_marker(pytest.mark.deep)


@pytest.fixture(scope="module", autouse=True)
def pictures_are_not_rendered(request: pytest.FixtureRequest) -> Iterator[None]:
    """Figures are made but become no SVG text, which takes a tenth of the time of all tests; but in files marked ``rendered``."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("rendered") is None:
            patch.setattr(drawing, "svg_text", lambda figure, label: f"<svg><title>{label}</title></svg>")
        yield


@pytest.fixture
def call() -> Called:
    """``nmsolve ARGUMENTS`` without a process of its own: exit code, stdout, stderr."""

    def called(*arguments: object) -> tuple[int, str, str]:
        done = run_here(*arguments, code=None)
        return done.returncode, done.stdout, done.stderr

    return called


#: What the packages are called that tests install.
PACKAGES = ("strange", "nmsolve_snake")


@pytest.fixture
def here() -> Iterator[Callable[[Path], None]]:
    """Packages in a folder, the last one that was given, count as installed in this process until the test ends; but for their
    engines: those are looked up once in a process.
    """
    path = list(sys.path)

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
            del sys.modules[name]
        importlib.invalidate_caches()
        plugins._installed.cache_clear()

    def install(folder: Path) -> None:
        sys.path[:] = [str(folder), *path]
        forget()

    yield install
    sys.path[:] = path
    forget()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example of a package with plug-ins was installed to, as pip does it."""
    pytest.importorskip(
        "setuptools", minversion="77", reason="pip install 'setuptools>=77' to build the example"
    )
    folder = tmp_path_factory.mktemp("plugins")
    source = folder / "source"
    subprocess.run(["cp", "-r", Path(__file__).parent.parent / "examples" / "plugin", source], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", folder / "site", source], check=True, capture_output=True)
    return folder / "site"
