"""Files of an answer appear all at once: whatever is killed whenever, a reader finds the old ones or the new ones."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nmsolve.kinds.answer import FRONT_FILES, OF_RUNS
from nmsolve.kinds.registry import kind, kinds
from nmsolve.model import file_set as module
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import file_set, require_one_run, settle

NAMES = ("a.json", "b.json", "log.jsonl", "page.html", "old.json", "inner/x.json")
SECOND = '{"run": "new", "value": 2}\n'
#: What changes folders; a process is killed before and after each call of these.
CALLS = ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync", "chmod")


def write(folder: Path, value: int, names: tuple[str, ...], run: str | None = None) -> None:
    """A set of files that all say ``value``."""
    with file_set(folder, NAMES, run) as staged:
        for name in names:
            (staged / name).write_text(json.dumps({"value": value}) + "\n")


def content(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def killed(step: int, work: Callable[[], None]) -> bool:
    """Run ``work`` in a process that kills itself around its call number ``step`` to the file system; False: it had fewer."""
    pid = os.fork()
    if pid == 0:
        count = 0

        def counting(call: Callable[..., object]) -> Callable[..., object]:
            def counted(*arguments: object, **options: object) -> object:
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                done = call(*arguments, **options)
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return done

            return counted

        for name in CALLS:
            setattr(os, name, counting(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def test_a_kill_at_any_moment_leaves_the_old_files_or_the_new_ones(tmp_path: Path) -> None:
    """Around every call to the file system: all files are of one run once somebody looks, what is foreign stays."""
    seen = set()
    step = 0
    while True:
        step += 1
        folder = tmp_path / str(step)
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "x.json").write_text("{}")
        (folder / "mine.txt").write_text("foreign")
        write(folder, 1, ("a.json", "b.json", "old.json"), "old")
        (folder / "inner" / "x.json").write_text("{}")
        old = content(folder)
        new = {"mine.txt": "foreign"} | dict.fromkeys(("a.json", "b.json"), SECOND)
        dead = killed(step, lambda at=folder: write(at, 2, ("a.json", "b.json"), "new"))
        require_one_run(folder, ("a.json", "b.json", "old.json"))
        left = {
            name: text for name, text in content(folder).items() if not name.startswith(".nmsolve-staged")
        }
        assert left in (old, new), step
        seen.add(left == new)
        write(folder, 3, ("a.json",), "next")  # what the dead one was writing is swept up
        assert sorted(content(folder)) == ["a.json", "mine.txt"]
        assert not [p for p in folder.iterdir() if p.name.startswith(".")]
        if not dead:
            break
    assert seen == {False, True} and step > 20


def test_a_block_that_fails_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, 1, ("a.json", "b.json"))
    before = content(tmp_path)
    with pytest.raises(ZeroDivisionError), file_set(tmp_path, NAMES) as staged:
        (staged / "a.json").write_text("{}")
        _ = 1 / 0
    assert content(tmp_path) == before
    (tmp_path / "page.html").mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        write(tmp_path, 2, ("a.json", "page.html"))
    assert content(tmp_path) == before


def test_every_file_says_which_run_wrote_it(tmp_path: Path) -> None:
    """JSON stays JSON, pages stay pages; modes of the files that are replaced stay, too."""
    (tmp_path / "a.json").write_text("")
    (tmp_path / "a.json").chmod(0o640)
    with file_set(tmp_path, NAMES, "r1") as staged:
        (staged / "a.json").write_text('{\n  "x": 1\n}\n')
        (staged / "b.json").write_text("{}")
        (staged / "log.jsonl").write_text('{"type": "start"}\n')
        (staged / "page.html").write_text("<!doctype html>\n")
        (staged / "solution.sln").write_text("2 0\n1 2\n")
    assert json.loads((tmp_path / "a.json").read_text()) == {"run": "r1", "x": 1}
    assert json.loads((tmp_path / "b.json").read_text()) == {"run": "r1"}
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines == [{"type": "run", "run": "r1"}, {"type": "start"}]
    assert (tmp_path / "page.html").read_text().startswith("<!doctype") and "r1" in (
        tmp_path / "page.html"
    ).read_text()
    assert (tmp_path / "solution.sln").read_text() == "2 0\n1 2\n"
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o640


def test_files_of_different_runs_are_refused(tmp_path: Path) -> None:
    write(tmp_path, 1, ("a.json",), "one")
    with file_set(tmp_path, (), "two") as staged:
        (staged / "b.json").write_text("{}")
    with pytest.raises(InputError, match=r"b.json belongs to run 'two', a.json to run 'one'"):
        require_one_run(tmp_path, ("a.json", "b.json"))
    (tmp_path / "b.json").write_text("{}")  # by hand
    require_one_run(tmp_path, ("a.json", "b.json", "none.json"))


def test_a_planted_set_reaches_nothing_outside(tmp_path: Path) -> None:
    """A folder from a stranger: names that lead out of it, links to files and folders elsewhere."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (outside / "dear.json").write_text("dear")
    ready = folder / module._READY
    for planted in ("../outside/dear.json", str(outside / "dear.json"), "way/dear.json"):
        ready.mkdir(parents=True)
        if not (folder / "way").exists():
            (folder / "way").symlink_to(outside)
        (ready / module._REMOVED).write_text(json.dumps([planted]))
        with pytest.raises(InputError, match="only partly"):
            settle(folder)
        (ready / module._REMOVED).unlink()
        ready.rmdir()
    ready.symlink_to(outside)
    with pytest.raises(InputError, match="only partly"):
        settle(folder)
    assert (outside / "dear.json").read_text() == "dear"


def test_a_set_being_written_is_not_swept_away(tmp_path: Path) -> None:
    """Two runs into one folder: the one that ends last wins, whole."""
    with file_set(tmp_path, NAMES, "slow") as slow:
        (slow / "a.json").write_text("{}")
        write(tmp_path, 2, ("a.json", "b.json"), "fast")
        require_one_run(tmp_path, ("a.json", "b.json"))
    require_one_run(tmp_path, ("a.json", "b.json"))
    assert sorted(content(tmp_path)) == ["a.json"]


def test_readers_never_see_a_mix(tmp_path: Path) -> None:
    """Files are exchanged again and again while another process looks, with the lock that exchanges hold."""
    write(tmp_path, 0, ("a.json", "b.json"))
    pid = os.fork()
    if pid == 0:
        try:
            for k in range(10_000):
                write(tmp_path, k, ("a.json", "b.json"))
        finally:
            os._exit(0)
    try:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            with module._locked(tmp_path):
                pair = [json.loads((tmp_path / name).read_text())["run"] for name in ("a.json", "b.json")]
            assert pair[0] == pair[1]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    require_one_run(tmp_path, ("a.json", "b.json"))


def test_files_of_other_kinds_vanish_if_a_run_has_signed_them(tmp_path: Path) -> None:
    """A page, a picture, JSON and its lines; what somebody else has put there under such a name stays."""
    names = ("plan.json", "events.jsonl", "pareto.svg", "pipeline.html")
    with file_set(tmp_path, names, "r1") as staged:
        for name in names:
            (staged / name).write_text("{}\n")
    (tmp_path / "point-1.json").write_text('{"value": 1}\n')
    (tmp_path / "route.html").write_text("<!-- a page of mine -->\n")
    (tmp_path / "notes.txt").write_text("mine\n")
    with file_set(tmp_path, NAMES, "r2", (*names, "point-*.json", "route.html")) as staged:
        (staged / "a.json").write_text("{}\n")
    assert {p.name for p in tmp_path.iterdir()} == {"a.json", "point-1.json", "route.html", "notes.txt"}


def test_a_folder_of_runs_names_the_files_of_every_kind() -> None:
    """So that nothing of an earlier run of another kind stays; programs and tables carry no signature."""
    all_kinds = [*(kind.files for kind in kinds()), FRONT_FILES]
    unsigned = {
        "solution.sln",
        "schedule.csv",
        *(n for n in kind("assign").files if n.startswith("programs/")),
    }
    assert {name for files in all_kinds for name in files} - unsigned == set(OF_RUNS)
