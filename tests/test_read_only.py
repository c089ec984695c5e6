"""A read-only installation, a home that is read-only or missing, a user without a name, many processes at once."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_host import net  # noqa: F401 -- a fixture

import nmsolve
from nmsolve.model.host.folders import is_as_safe_as, is_safe

#: Nobody has this number.
STRANGER = 54321
SOURCES = [str(Path(nmsolve.__file__).parent.parent), *(p for p in sys.path if p.endswith("site-packages"))]
#: What a module with one kernel says: its answer and whether it was compiled just now.
KERNEL = """
from nmsolve.model.compiled import plain

@plain
def triple(x):
    return 3 * x
"""
ASK = """
from numba.core.event import RecordingListener, install_listener
from pack.kernels import triple
with install_listener("numba:compile", RecordingListener()) as heard:
    print(triple(14), "compiled" if heard.buffer else "loaded", triple.stats.cache_path)
"""


def as_stranger(
    python: str, *arguments: str, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """``python ARGUMENTS`` of a user without a name, rights and environment."""
    return subprocess.run(
        [python, *arguments], cwd=cwd, user=STRANGER, group=STRANGER, extra_groups=[], capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(SOURCES), **environment}, timeout=180,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that everybody may enter and the stranger owns."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, STRANGER, STRANGER)
    yield folder
    shutil.rmtree(folder)
    for left in Path(tempfile.gettempdir()).glob(f"nmsolve-{STRANGER}-*"):
        shutil.rmtree(left)


@pytest.fixture(scope="module")
def python(place: Path) -> str:
    """An interpreter that the stranger can run, with our packages."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    name = f"python3.{sys.version_info.minor}"
    for found in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        try:
            if as_stranger(found, "-c", "import nmsolve, numpy, typer", cwd=place).returncode == 0:
                return found
        except OSError:
            continue
    pytest.skip("no interpreter that other users can run, or they cannot read the packages")


@pytest.fixture
def package(place: Path) -> Iterator[Path]:
    """The parent of a package with one kernel, which nobody but root may write to."""
    parent = Path(tempfile.mkdtemp())
    parent.chmod(0o755)
    (parent / "pack").mkdir(mode=0o755)
    (parent / "pack" / "kernels.py").write_text(KERNEL)
    yield parent
    shutil.rmtree(parent)


def ask(python: str, package: Path, cwd: Path, **environment: str) -> list[str]:
    """Answer, ``compiled`` or ``loaded``, and the folder of the stranger's kernel."""
    path = os.pathsep.join([str(package), *SOURCES])
    done = as_stranger(python, "-c", ASK, cwd=cwd, **{"PYTHONPATH": path, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "home",
    [{}, {"HOME": "/nonexistent"}, {"HOME": "/root"}, {"HOME": "/"}, {"XDG_CACHE_HOME": "/proc"}],
    ids=lambda env: " ".join(f"{k}={v}" for k, v in env.items()) or "no home",
)
def test_a_stranger_can_map_verify_and_ask_for_help(
    python: str,
    place: Path,
    net: Path,  # noqa: F811
    home: dict[str, str],
) -> None:
    """Nothing is printed but what belongs there: no traceback, no warning of matplotlib."""
    graph = place / "net.json"
    shutil.copy(net, graph)
    run = ["map", "net.json", "--machine", "mesh:3x4", "--engines", "first-fit", "-t", "10", "--out", "run"]
    for arguments in (["--help"], run, ["verify", "run"], ["doctor"]):
        done = as_stranger(python, "-m", "nmsolve", *arguments, cwd=place, **home)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        assert "Traceback" not in said and "atplotlib created" not in said and "Warning" not in said
    kernels = next(line for line in done.stdout.splitlines() if "kernel cache" in line)
    assert f"/nmsolve-{STRANGER}-" in kernels and "the sources' folder cannot be written" in kernels


def test_kernels_of_a_stranger_are_compiled_once_and_private(python: str, package: Path, place: Path) -> None:
    """In the home if there is one, else among temporary files; the next process loads them."""
    home = place / "home"
    home.mkdir()
    os.chown(home, STRANGER, STRANGER)
    for environment, root in (({"HOME": str(home)}, home / ".cache/nmsolve"), ({}, None)):
        answer, first, folder = ask(python, package, place, **environment)
        assert (answer, first) == ("42", "compiled") and ask(python, package, place, **environment)[
            1
        ] == "loaded"
        found = Path(folder)
        assert root is None or found.parent == root / "kernels"
        for part in (found, found.parent, found.parent.parent):
            assert stat.S_IMODE(part.stat().st_mode) == 0o700 and part.stat().st_uid == STRANGER
    assert found.parent.parent.name.startswith(f"nmsolve-{STRANGER}-")


def test_kernels_that_root_has_compiled_are_loaded_by_all(python: str, package: Path, place: Path) -> None:
    path = os.pathsep.join([str(package), *SOURCES])
    subprocess.run(
        [python, "-c", ASK], env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True
    )
    assert ask(python, package, place)[:2] == ["42", "loaded"]


def test_many_processes_at_once_agree(python: str, package: Path, place: Path) -> None:
    """All find the same folder, none reads half of a file."""
    home = place / "shared"
    home.mkdir()
    os.chown(home, STRANGER, STRANGER)
    path = os.pathsep.join([str(package), *SOURCES])
    runs = [
        subprocess.Popen(
            [python, "-c", ASK], env={"PYTHONPATH": path, "HOME": str(home)}, user=STRANGER, group=STRANGER,
            extra_groups=[], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(5)
    ]  # fmt: skip
    for run in runs:
        out, errors = run.communicate(timeout=180)
        assert out.startswith("42 "), errors
    assert ask(python, package, place, HOME=str(home))[1] == "loaded"


class Trap:
    """Its pickle makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("where", ["NUMBA_CACHE_DIR", "beside the sources"])
def test_nothing_is_read_from_where_others_can_write(
    python: str, package: Path, place: Path, where: str
) -> None:
    """A kernel that somebody put there is not even opened; without the bits of others it would be."""
    trap = place / f"trapped-{where.split()[0]}"
    chosen = place / "chosen"
    environment = {} if where.startswith("beside") else {"NUMBA_CACHE_DIR": str(chosen)}
    if environment:
        chosen.mkdir()
        os.chown(chosen, STRANGER, STRANGER)
        folder = Path(ask(python, package, place, **environment)[2])
        assert folder.parent == chosen
    else:
        folder = package / "pack" / "__pycache__"
        path = os.pathsep.join([str(package), *SOURCES])
        subprocess.run(
            [python, "-c", ASK], env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True
        )
    for index in folder.glob("*.nbi"):
        index.write_bytes(pickle.dumps(Trap(trap)))
    opened = chosen if environment else folder
    opened.chmod(0o777)
    answer, _, used = ask(python, package, place, **environment)
    assert answer == "42" and not trap.exists() and not used.startswith(str(opened))
    opened.chmod(0o755)
    ask_again = as_stranger(
        python, "-c", ASK, cwd=place, PYTHONPATH=os.pathsep.join([str(package), *SOURCES]), **environment,
        **({} if environment else {"TMPDIR": str(place)}),
    )  # fmt: skip
    assert trap.exists(), (ask_again.stdout, ask_again.stderr)


def test_what_counts_as_safe(tmp_path: Path) -> None:
    """This user's or the system's, and nobody else can write to it or to what holds it, but for sticky folders."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    outer = inner.parent

    def safe(mode: int, above: int = 0o755) -> bool:
        inner.chmod(mode)
        outer.chmod(above)
        return is_safe(inner)

    assert safe(0o700) and safe(0o755) and safe(0o700, 0o1777)
    assert not safe(0o770) and not safe(0o707) and not safe(0o1777)
    assert not safe(0o700, 0o777) and not safe(0o700, 0o775)
    assert not is_safe(tmp_path / "none") and not is_safe(Path(__file__))
    safe(0o700)
    (tmp_path / "link").symlink_to(inner)
    assert is_safe(tmp_path / "link")
    if os.geteuid() == 0:
        os.chown(inner, STRANGER, STRANGER)
        assert not is_safe(inner)
        os.chown(inner, 0, 0)
        os.chown(outer, STRANGER, STRANGER)
        assert not is_safe(inner)


def test_kernels_beside_sources_are_trusted_as_these_are(tmp_path: Path) -> None:
    beside = tmp_path / "__pycache__"
    beside.mkdir()
    tmp_path.chmod(0o755)
    for mode, wanted in ((0o755, True), (0o700, True), (0o775, False), (0o777, False)):
        beside.chmod(mode)
        assert is_as_safe_as(beside, tmp_path) is wanted
    tmp_path.chmod(0o775)
    beside.chmod(0o775)
    assert is_as_safe_as(beside, tmp_path)  # who may write here may write there
    (tmp_path / "link").symlink_to(beside)
    assert not is_as_safe_as(tmp_path / "link", tmp_path)


def test_no_place_for_temporary_files_is_one_line(tmp_path: Path) -> None:
    """Python looks for one in this folder last."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can make everything read-only")
    if sys.executable.startswith(("/tmp/", "/var/tmp/")):
        pytest.skip("Python itself is where nothing is to be found")
    (tmp_path / "net.json").write_text("{}")
    dark = "mount --make-rprivate / && mount -t tmpfs -o ro none /tmp && mount -t tmpfs -o ro none /var/tmp && cd / && "
    command = f'mount -o remount,bind,ro / && exec "{sys.executable}" -m nmsolve map /proc/version -t 1 --out /proc/none'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", dark + command], capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(SOURCES)}, timeout=120,
    )  # fmt: skip
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip("this container may not mount")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.stderr.startswith("error: "), (
        done.stderr
    )
