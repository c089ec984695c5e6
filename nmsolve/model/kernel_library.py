"""How machine code is made of kernels: only of those that Python calls, each together with all that it calls.

Numba optimises every function and makes machine code of it where it is compiled, and again in every function that calls it, and
in those that call these. Most kernels are called by kernels alone. Here a function is only brought into LLVM's form and
simplified, until Python calls it: then it is put together with all functions that it calls, and all of it is optimised and
translated once.

* Only Python's entry can be seen from outside. So LLVM may drop the arguments that a function does not use, of the hundreds that
  the arrays of a search's state are passed as, and need not keep functions that are part of all that call them.
* What is kept in the cache of a kernel that Python never called is LLVM's form of it, and of all that it calls.
* Functions of other packages that numba compiles are compiled as ever: the means are ours only while a kernel is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from itertools import count
from typing import Any

import llvmlite.binding as ll
from numba.core import cgutils
from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.environment import Environment, lookup_environment

#: What names of places begin with where a function finds its constants that are Python objects.
ENVIRONMENT = "_ZN08NumbaEnv"
#: What those of Python's entry to a function end with.
ENTRY = ".entry"
#: What names of addresses begin with that numba fills in later, of functions that call themselves.
LATER = ".numba.unresolved$"
#: Names of what counts the users of arrays.
COUNTS = ("NRT_incref", "NRT_decref")
#: Names of what numba itself cannot keep in a cache.
ADDRESSES = "numba.dynamic.globals"


class Library(JITCodeLibrary):  # type: ignore[misc]
    """One function, with what it calls; machine code is made when an address of its own is asked for."""

    #: Of numba: its own function, that with all it calls, and the libraries of what it calls.
    _final_module: Any
    _shared_module: Any
    _linking_libraries: list[Any]

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._entry: Any = None
        self._environment: Any = None
        #: Whether Python can call it.
        self.has_entry = False

    @property
    def has_dynamic_globals(self) -> bool:
        """Whether it has addresses of this process in it."""
        return any(one.name.startswith(ADDRESSES) for one in self._whole().global_variables)

    def add_linking_library(self, library: Any) -> None:
        """Add what it calls, which needs no machine code for that."""
        if library not in self._linking_libraries:
            self._linking_libraries.append(library)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Simplify each function alone, a little: all of it is optimised again with those that call it.

        Numba builds the means anew for each, and for those that are only named.
        """
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager(opt=1)
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Optimise all of it; with numba's round before, which brings counts of users together, only where there are any."""
        if any(function.name in COUNTS for function in self._final_module.functions):
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _get_module_for_linking(self) -> Any:
        """Return it with all that it calls, not yet optimised as a whole."""
        return self._whole()

    def _whole(self) -> Any:
        if self._shared_module is None:
            whole = self._final_module.clone()
            for function in whole.functions:
                if _is_ours(function):
                    function.linkage = "linkonce_odr"
            self._link(whole)
            self._shared_module = whole
        return self._shared_module

    def _link(self, module: Any) -> None:
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
            module.link_in(library._get_module_for_linking(), preserve=True)

    def add_ir_module(self, ir_module: Any) -> None:
        """Add a function; Python's entry to ours stays apart from what is linked into others."""
        if self._entry is not ...:
            super().add_ir_module(ir_module)
            return
        self._entry = ll.parse_assembly(cgutils.normalize_ir_text(str(ir_module)))
        self._entry.name = ir_module.name
        self._optimize_functions(self._entry)

    def make_entry(self, context: Any, described: Any) -> None:
        """Make machine code that Python can call.

        Python's entry has Python objects of its own: those of the function may be in the cache of a kernel that calls it, as they
        were before there was an entry, and numba takes the first that it meets of a name.

        Parameters
        ----------
        context : numba's, with the options of this kernel
        described : what numba knows about the function
        """
        entry = copy(described)
        entry.env_name = described.env_name + ENTRY
        self._environment = Environment.from_fndesc(entry)
        self._whole()  # before the entry's own helpers are added
        self._linking_libraries = []
        self._entry = ...
        with context.push_code_library(self):
            context.create_cpython_wrapper(self, entry, self._environment, None, release_gil=True)
        self.finalize()
        self.has_entry = True

    def finalize(self) -> None:
        """Optimise all of it at once, and make machine code."""
        self._raise_if_finalized()
        module = self._whole().clone()
        if self._entry is None:
            seen = _names(self._final_module)
        else:
            seen = _names(self._entry)
            self._link(module)
            module.link_in(self._entry, preserve=True)
        called_later = {
            g.name.removeprefix(LATER) for g in module.global_variables if g.name.startswith(LATER)
        }
        for function in module.functions:
            if not function.is_declaration:
                hidden = "weak_odr" if function.name in called_later else "internal"
                function.linkage = "external" if function.name in seen else hidden
        self._final_module = module
        self._optimize_final_module()
        module.verify()
        self._finalize_final_module()
        self._set_environments()

    def _set_environments(self) -> None:
        for one in self._final_module.global_variables:
            environment = lookup_environment(one.name) if one.name.startswith(ENVIRONMENT) else None
            if environment is not None:
                self._codegen.set_env(one.name, environment)

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function of this library; 0 if it has none of this name, which numba asks for all the same."""
        if not self._finalized and not any(
            f.name == name and _is_ours(f) for f in self._final_module.functions
        ):
            return 0
        address: int = super().get_pointer_to_function(name)
        return address

    def entry_address(self, name: str) -> int:
        """Return the address that Python calls."""
        address: int = self._codegen._engine.get_function_address(name)
        return address

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """Return what is kept of it in the cache: without machine code if there is none."""
        if self._finalized:
            kept: tuple[str, str, Any] = super().serialize_using_object_code()
            return kept
        self._final_module = self._whole()  # numba looks there for the Python objects that it needs
        return self.name, "bitcode", self._final_module.as_bitcode()

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Library:
        """Return what was kept."""
        name, kind, data = state
        if kind == "object":
            made: Library = super()._unserialize(codegen, state)
            made.has_entry = True
            return made
        self = cls(codegen, name)
        self.enable_object_caching()
        self._final_module = self._shared_module = ll.parse_bitcode(data)
        return self


def _is_ours(function: Any) -> bool:
    """Whether a module has a function, and others may ask for it."""
    return not function.is_declaration and function.linkage == ll.Linkage.external


def _names(module: Any) -> set[str]:
    """Return the names of those."""
    return {function.name for function in module.functions if _is_ours(function)}


_numbered = False


class _Codegen(JITCPUCodegen):  # type: ignore[misc]
    """Numba's means to make machine code, with our libraries."""

    _library_class = Library

    def set_env(self, env_name: str, env: Any) -> None:
        """Give a function its Python objects, if there is machine code of it."""
        if env_name.endswith(ENTRY) or self._engine.is_symbol_defined(env_name):
            super().set_env(env_name, env)


@contextmanager
def our_libraries(context: Any) -> Iterator[None]:
    """While active, numba makes libraries of ours for the processor; the caller holds its lock, so no other thread compiles.

    Outside, numba is as it was: what others compile in this process is none of our business.

    Numba numbers the functions that it compiles from one, in every process. Of functions that differ only in what they took from
    around them, kept by different processes, one would pass for the other: so the first number is left to chance.
    """
    global _numbered
    if not _numbered:
        FunctionIdentity._unique_ids = count(int.from_bytes(os.urandom(6)))
        _numbered = True
    codegen = context.codegen()
    before = codegen.__class__
    codegen.__class__ = _Codegen
    try:
        yield
    finally:
        codegen.__class__ = before
