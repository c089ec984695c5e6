"""What libraries load and hardly ever use is loaded when it is first touched, in a process of our own."""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

#: SciPy takes over every name of NumPy, which loads two of these (``findings/``); numba looks for plug-ins of its own, but only
#: where it compiles.
PARTS = ("numpy.f2py", "numpy.testing", "importlib.metadata")


def load_lazily() -> None:
    """Let each of :data:`PARTS` be loaded as soon as anything asks for what it holds, not before."""
    for name in PARTS:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
            module = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(module)
            parent, _, part = name.rpartition(".")
            setattr(sys.modules[parent], part, module)
