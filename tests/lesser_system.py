"""A system that lacks what Linux has, made of this one: a folder for ``PYTHONPATH`` that every Python process obeys."""

from __future__ import annotations

from pathlib import Path

#: Modules that Windows lacks.
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty")
#: Functions and names that Windows lacks; Python's own library needs some others here.
OF_OS = (
    "fork", "killpg", "wait4", "geteuid", "getuid", "sched_getaffinity", "sysconf", "pread", "preadv", "pwrite", "readv",
    "memfd_create", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "statvfs", "nice", "getloadavg",
)  # fmt: skip
OF_SIGNAL = ("SIGHUP", "SIGALRM", "SIGXCPU", "setitimer", "ITIMER_REAL", "pthread_sigmask")

_BLOCK = """
import sys
class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Lacking())
for name in {modules!r}:
    sys.modules.pop(name, None)
"""
_STRIP = """
import os, signal, subprocess, tempfile, shutil, pathlib, threading, platform, multiprocessing, asyncio, uuid
for module, names in ((os, {of_os!r}), (signal, {of_signal!r})):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""


def without_modules(folder: Path, bare: bool = False) -> dict[str, str]:
    """Environment of processes that cannot import :data:`MODULES`; with ``bare`` they lack the functions, too.

    ``folder`` is made for it.
    """
    folder.mkdir()
    text = _BLOCK.format(modules=MODULES)
    if bare:
        text = _STRIP.format(of_os=OF_OS, of_signal=OF_SIGNAL) + text
    (folder / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": str(folder)}
