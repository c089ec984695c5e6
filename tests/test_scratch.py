"""Scratch folders are gone after every kind of end, and a killed run can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nmsolve.model.errors import InputError
from nmsolve.model.store import scratch as module
from nmsolve.model.store.scratch import Scratch

RUN = """
import sys, time
from nmsolve.model.store.scratch import Scratch
with Scratch(sys.argv[1], key=sys.argv[2]) as scratch:
    scratch.file("level").write_bytes(b"data")
    scratch.finish("level", vertices=7)
    scratch.file("half").write_bytes(b"da")
    print(scratch.path, flush=True)
    time.sleep(60)
"""


def ended(parent: Path, key: str, number: signal.Signals) -> Path:
    """The folder of a run that was ended by a signal while it worked."""
    run = subprocess.Popen([sys.executable, "-c", RUN, str(parent), key], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    with run.stdout:
        folder = Path(run.stdout.readline().strip())
        assert folder.is_dir() and folder.parent == parent
        run.send_signal(number)
        run.wait(20)
    return folder


def test_the_folder_is_gone_after_success_and_error(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        scratch.file("a").write_text("x")
        assert scratch.path.parent == tmp_path
    assert not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError), Scratch(tmp_path, key="k") as scratch:
        scratch.file("a").write_text(str(1 // 0))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_folder_is_gone_after_a_polite_signal(tmp_path: Path, number: signal.Signals) -> None:
    assert not ended(tmp_path, "k", number).exists()


def test_the_signal_handler_is_put_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Scratch(tmp_path):
        pass
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("key", ["", "k"])
def test_the_next_run_removes_what_a_killed_run_left(tmp_path: Path, key: str) -> None:
    left = ended(tmp_path, key, signal.SIGKILL)
    assert left.is_dir()
    with Scratch(tmp_path, key=key) as scratch:
        assert not left.exists()
        assert scratch.finished("level") is None
    assert not list(tmp_path.iterdir())


def test_resume_goes_on_from_the_last_finished_level(tmp_path: Path) -> None:
    left = ended(tmp_path, "k", signal.SIGKILL)
    with Scratch(tmp_path, key="k", resume=True) as scratch:
        assert scratch.path == left
        assert scratch.finished("level") == {"vertices": 7}
        assert scratch.file("level").read_bytes() == b"data"
        assert scratch.finished("half") is None
        scratch.finish("half")
        assert scratch.finished("half") == {}
    assert not list(tmp_path.iterdir())


def test_resume_after_resume(tmp_path: Path) -> None:
    ended(tmp_path, "k", signal.SIGKILL)
    resumed = """
import os, sys
from nmsolve.model.store.scratch import Scratch
with Scratch(sys.argv[1], key="k", resume=True) as scratch:
    scratch.finish("half", edges=3)
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", resumed, str(tmp_path)]).returncode == 9
    with Scratch(tmp_path, key="k", resume=True) as scratch:
        assert scratch.finished("level") == {"vertices": 7}
        assert scratch.finished("half") == {"edges": 3}


def test_resume_without_anything_to_resume_starts_anew(tmp_path: Path) -> None:
    with Scratch(tmp_path, key="k", resume=True) as scratch:
        assert scratch.finished("level") is None


def test_the_folder_of_another_problem_is_kept_for_its_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = ended(tmp_path, "k", signal.SIGKILL)
    with Scratch(tmp_path, key="other"), Scratch(tmp_path):
        assert left.is_dir()
    monkeypatch.setattr(module, "KEPT", -1.0)
    with Scratch(tmp_path, key="other"):
        assert not left.exists()


def test_living_runs_keep_their_folders(tmp_path: Path) -> None:
    with Scratch(tmp_path, key="k") as one, Scratch(tmp_path, key="k", resume=True) as two:
        assert one.path != two.path and one.path.is_dir()
        with Scratch(tmp_path) as three:
            assert one.path.is_dir() and two.path.is_dir() and three.path.is_dir()


def test_too_little_space_is_said_before_it_is_used(tmp_path: Path) -> None:
    with (
        Scratch(tmp_path) as scratch,
        pytest.raises(InputError, match=r"the levels need .* GiB of scratch space"),
    ):
        scratch.require(2**70, "the levels")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="no scratch folder can be made"), Scratch(tmp_path):
        pass


def test_a_parent_that_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for parent in (file, tmp_path / "none"):
        with pytest.raises(InputError, match="no scratch folder can be made"), Scratch(parent):
            pass


def test_planted_links_and_folders_make_no_files_elsewhere(tmp_path: Path) -> None:
    """Anybody can plant names in the folder for temporary files; the sweep made files where links led."""
    parent, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    parent.mkdir()
    elsewhere.mkdir()
    old = (0.0, 0.0)
    with_link = parent / f"{module.PREFIX}once-link"
    with_link.mkdir(0o700)
    (with_link / "lock").symlink_to(elsewhere / "made")
    os.utime(with_link, old)
    (parent / f"{module.PREFIX}once-folder").symlink_to(elsewhere)
    open_to_all = parent / f"{module.PREFIX}once-open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    os.utime(open_to_all, old)
    pipe = parent / f"{module.PREFIX}once-pipe"
    pipe.mkdir(0o700)
    os.mkfifo(pipe / "lock")  # to open it for reading would be to wait for ever
    with Scratch(parent) as scratch:
        assert scratch.path.stat().st_mode & 0o777 == 0o700
    assert not list(elsewhere.iterdir())
    assert open_to_all.exists() and not (open_to_all / "lock").exists()


def test_a_folder_that_others_may_write_to_is_not_resumed(tmp_path: Path) -> None:
    folder = ended(tmp_path, "k", signal.SIGKILL)
    folder.chmod(0o777)
    with Scratch(tmp_path, key="k", resume=True) as scratch:
        assert scratch.path != folder and scratch.finished("level") is None


def test_a_damaged_record_of_finished_levels_begins_anew(tmp_path: Path) -> None:
    folder = ended(tmp_path, "k", signal.SIGKILL)
    (folder / "finished.json").write_bytes(b"\xff{")
    with Scratch(tmp_path, key="k", resume=True) as scratch:
        assert scratch.path == folder and scratch.finished("level") is None
