"""How kernels are compiled: each once, without wrappers that it does not need.

* Machine code, and what Python calls, is made of the kernels that Python calls: :mod:`nmsolve.model.kernel_library`.
* What is passed on as it came is not taken apart and put together: :mod:`nmsolve.model.kernel_lowering`.
* Numba counts the users of every array that is taken out of a tuple, each time it is, unless told not to: kernels that make no
  array go without. (Small kernels that take their state whole run twice as fast.)
* Numba makes a version for every width of whole numbers and for every constant in a call. One for 64 bits serves them all.
* What a decorator leaves open a kernel takes over from the one that calls it first: its results would depend on who that is.
* While numba compiles, the clock of :mod:`nmsolve.model.clock` stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba._dynfunc import make_function
from numba.core import config
from numba.core.compiler import Flags, _make_subtarget
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import Event, Listener, register, trigger_event
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.targetconfig import ConfigStack
from numba.core.types import Integer, int64, unliteral  # type: ignore[attr-defined]

from nmsolve.model import clock
from nmsolve.model.kernel_cache import KernelCache
from nmsolve.model.kernel_library import our_libraries
from nmsolve.model.kernel_lowering import KernelCompiler


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
    """A kernel with one version for all signed whole numbers, and machine code of those that Python calls."""

    _cache: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"pipeline_class": KernelCompiler, **options})
        self._by_kernel = False
        #: What Python calls, of the versions that it called.
        self._entries: dict[tuple[Any, ...], Any] = {}

    def _compilation_chain_init_hook(self) -> None:
        """Do nothing: numba would look through all packages for plug-ins, whose types none of our kernels takes."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for a kernel that calls this one."""
        with global_compiler_lock:
            before, self._by_kernel = self._by_kernel, True
            try:
                return super().get_call_template(args, kws)
            finally:
                self._by_kernel = before

    def compile(self, sig: Any) -> Any:
        """Compile for these types of arguments, or those that stand for them."""
        with global_compiler_lock, _UNCOUNTED, our_libraries(self.targetctx):
            if not isinstance(self._cache, KernelCache):  # most kernels that are imported are not called
                self._cache = KernelCache(self.py_func)
            args = tuple(map(_general, normalize_signature(sig)[0]))
            by_kernel, self._by_kernel = self._by_kernel, False  # it may call itself
            try:
                made = super().compile(args)
            finally:
                self._by_kernel = by_kernel
            return made if by_kernel else self._entry(args)

    def add_overload(self, cres: Any) -> None:
        """Keep a version for kernels; Python gets its own when it asks."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _entry(self, args: tuple[Any, ...]) -> Any:
        """Return what Python calls; make and keep it if there is none yet."""
        if args in self._entries:
            return self._entries[args]
        made = self.overloads[args]
        if not made.library.has_entry:
            with trigger_event("numba:compile", data={"dispatcher": self, "args": args, "return_type": None}):
                self._make_entry(made)
            self._cache.save_overload(args, made)
        described, library = made.fndesc, made.library
        address = library.entry_address(described.llvm_cpython_wrapper_name)
        entry = self._entries[args] = make_function(
            described.lookup_module(), self.__name__, "", address, made.environment, (library,)
        )
        self._insert([one._code for one in args], entry, False)
        return entry

    def _make_entry(self, made: Any) -> None:
        flags = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        self.targetctx.refresh()
        with ConfigStack().enter(flags):
            made.library.make_entry(_make_subtarget(self.targetctx, flags), made.fndesc)


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
        "no_cpython_wrapper": True,
        "error_model": "python",
        "fastmath": False,
        "forceinline": False,
        **options,
    }

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        return _Kernel(py_func=function, targetoptions=given)

    return decorate


#: A kernel that makes arrays, or calls one that returns an array.
kernel = compiled(_nrt=True)
#: A kernel that makes no array, returns none, and calls none that returns one.
plain = compiled(_nrt=False)
#: A few lines that become part of the machine code of those that call them: as fast as ``inlined``, and typed only once.
embedded = compiled(_nrt=False, forceinline=True)
#: A few lines that are put in where they are called before types are known: for what takes most of its callers' state.
inlined = compiled(inline="always")
