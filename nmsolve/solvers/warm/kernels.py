"""The kernels that are compiled."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from numba.core.dispatcher import Dispatcher
from numba.core.event import RecordingListener, install_listener

from nmsolve.model.kernel_cache import cached_files

#: The folder of this package.
PACKAGE = Path(__file__).parents[2]
#: Compiling uses up the time that a search may take, so it is repeated until it compiles nothing: phases that it never
#: reached may have kernels of their own. This many times at most.
TRIES = 30


def until_compiled(run: Callable[[], object]) -> None:
    """Call ``run`` until it compiles nothing; what it loads from the cache does not count."""
    for _ in range(TRIES):
        with install_listener("numba:compile", RecordingListener()) as heard:
            run()
        if not heard.buffer:
            return


def missing_kernels() -> list[str]:
    """Return names of the kernels of this package that are not in the cache, whatever the types of their arguments."""
    missing = []
    for module in pkgutil.walk_packages([str(PACKAGE)], "nmsolve."):
        if module.name.endswith("__main__"):  # importing it runs the command line
            continue
        for kernel in vars(import_module(module.name)).values():
            if not isinstance(kernel, Dispatcher) or kernel.targetoptions.get("inline") == "always":
                continue  # an inlined kernel is part of others
            if kernel.py_func.__module__ == module.name:
                function = kernel.py_func
                name = f"{module.name.rpartition('.')[2]}.{function.__qualname__}"
                index = f"{name}-{function.__code__.co_firstlineno}.*.nbi"
                if not cached_files(Path(function.__code__.co_filename), index):
                    missing.append(f"{module.name}.{function.__qualname__}")
    return missing
