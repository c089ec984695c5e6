"""The kernels that are compiled, that are not yet, and those that were compiled from older code than the present one.

Numba recompiles a kernel if its own file has changed. It does not look at the files of the kernels and constants that this one
uses: after an update of a checkout these would stay as they were, with wrong results.
"""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Callable, Iterator
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


def stale_kernels(root: Path | None = None) -> list[Path]:
    """Cached kernels that are older than a file which their code comes from.

    Parameters
    ----------
    root : folder of a package; that of nmsolve if not given
    """
    root = root or PACKAGE
    uses: dict[Path, set[Path]] = {}
    found = []
    for path in root.rglob("*.py"):
        cached = cached_files(path, f"{path.stem}.*.nb[ic]")
        if cached:
            newest = max(p.stat().st_mtime for p in _closure(path, root, uses))
            found += [c for c in cached if c.stat().st_mtime < newest]
    return sorted(found)


def _closure(path: Path, root: Path, uses: dict[Path, set[Path]]) -> set[Path]:
    """Return the file, and all files that its kernels use, directly or not; ``uses`` remembers what each uses itself."""
    found, todo = {path}, [path]
    while todo:
        here = todo.pop()
        if here not in uses:
            uses[here] = _used(here, root)
        todo += uses[here] - found
        found |= uses[here]
    return found


def _used(path: Path, root: Path) -> set[Path]:
    """Files of the package from which the kernels of a file take a name; every function that is decorated counts as one."""
    tree = ast.parse(path.read_bytes())
    kernels = [f for f in tree.body if isinstance(f, ast.FunctionDef) and f.decorator_list]
    names = {node.id for f in kernels for node in ast.walk(f) if isinstance(node, ast.Name)}
    return {found for name, found in _imported(tree, root) if name in names and found != path}


def _imported(tree: ast.Module, root: Path) -> Iterator[tuple[str, Path]]:
    """Yield every name that a module imports from its package, with the file that it comes from."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        package, *parts = node.module.split(".")
        if package != root.name:
            continue
        folder = root.joinpath(*parts)
        for alias in node.names:
            for file in (folder / f"{alias.name}.py", folder.with_suffix(".py"), folder / "__init__.py"):
                if file.exists():
                    yield alias.asname or alias.name, file
                    break
