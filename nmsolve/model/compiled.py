"""How kernels are compiled: each once, without wrappers that it does not need.

* For every function numba makes the machine code itself, a wrapper that Python calls and one that C calls. Nothing calls a kernel
  from C here, and one that only other kernels call needs no wrapper for Python either.
* Numba counts the users of every array that is taken out of a tuple, each time it is, unless told not to: kernels that make no
  array go without. (Small kernels that take their state whole run twice as fast.)
* Numba makes a version for every width of whole numbers and for every constant in a call. One for 64 bits serves them all.
* What a decorator leaves open a kernel takes over from the one that calls it first: its results would depend on who that is.
* While numba compiles, the clock of :mod:`nmsolve.model.clock` stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import config
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import Event, Listener, register
from numba.core.registry import CPUDispatcher
from numba.core.types import Integer, int64, unliteral  # type: ignore[attr-defined]

from nmsolve.model import clock
from nmsolve.model.kernel_cache import KernelCache


class _Uncounted(Listener):  # type: ignore[misc]
    """Holds the clock from the moment that numba begins to compile until what it made is in the cache.

    What comes from the cache costs time. One thread compiles at a time: numba has a lock for it.
    """

    def __init__(self) -> None:
        self._depth, self._held = 0, False

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._held and not self._depth:
            self._held = False
            clock.go_on()

    def on_start(self, event: Event) -> None:
        """Numba begins to compile a kernel, or what it needs for one."""
        self.__enter__()
        if not self._held:
            self._held = True
            clock.hold()

    def on_end(self, event: Event) -> None:
        """It is through."""
        self.__exit__()


_UNCOUNTED = _Uncounted()
register("numba:compile", _UNCOUNTED)


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel with one version for all signed whole numbers."""

    def enable_caching(self) -> None:
        """Keep its versions where all of our kernels lie."""
        self._cache = KernelCache(self.py_func)

    def compile(self, sig: Any) -> Any:
        """Compile for these types of arguments, or those that stand for them."""
        with global_compiler_lock, _UNCOUNTED:
            return super().compile(tuple(map(_general, sig)) if isinstance(sig, tuple) else sig)


def _general(kind: Any) -> Any:
    """Return the type that stands for this one."""
    kind = unliteral(kind)
    return int64 if isinstance(kind, Integer) and kind.signed else kind  # type: ignore[attr-defined]


def compiled(**options: object) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function with these options of numba beside those of all kernels."""
    given = {
        "nopython": True,
        "nogil": True,
        "no_cfunc_wrapper": True,
        "error_model": "python",
        "fastmath": False,
        "forceinline": False,
        **options,
    }

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        made = _Kernel(py_func=function, targetoptions=given)
        made.enable_caching()
        return made

    return decorate


#: A kernel that makes arrays, or calls one that returns an array.
kernel = compiled(_nrt=True)
#: A kernel that makes no array, returns none, and calls none that returns one.
plain = compiled(_nrt=False)
#: Like ``kernel`` and ``plain``, but only kernels may call it; a call from Python would crash.
callee = compiled(_nrt=True, no_cpython_wrapper=True)
plain_callee = compiled(_nrt=False, no_cpython_wrapper=True)
#: A few lines that become part of the machine code of those that call them: as fast as ``inlined``, and typed only once.
embedded = compiled(_nrt=False, forceinline=True)
embedded_callee = compiled(_nrt=False, forceinline=True, no_cpython_wrapper=True)
#: A few lines that are put in where they are called before types are known: for what takes most of its callers' state.
inlined = compiled(inline="always")
