"""The kernels that are compiled."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from nmsolve.model.kernel_cache import cached_files

#: The folder of this package.
PACKAGE = Path(__file__).parents[2]


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
