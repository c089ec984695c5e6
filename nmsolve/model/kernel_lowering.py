"""How kernels are put into LLVM's form: without taking apart and putting together what is passed on as it came.

The state of a search is a tuple of dozens of arrays, each of which is seven numbers to LLVM. Numba passes every number on its
own: it puts them together where a kernel begins, takes them apart again for each call, and for each array that is used. Half of
what LLVM has to read and simplify is that. Here a part of a tuple that is put together in the same function is the part itself.

In kernels that count no users of arrays, an argument that is assigned nothing else is a value, no place in memory: it can be
taken apart wherever it is used.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from llvmlite import ir
from llvmlite.ir.instructions import InsertValue
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.ir import Assign
from numba.core.lowering import Lower
from numba.core.typed_passes import AnnotateTypes, BaseNativeLowering, NativeLowering


class _Builder(ir.IRBuilder):  # type: ignore[misc]
    """Takes no part out of a tuple that was put together here, as it is known."""

    def extract_value(self, agg: Any, idx: Any, name: str = "") -> Any:
        """Return a part of a tuple."""
        indices = list(idx) if isinstance(idx, (tuple, list)) else [idx]
        while indices:
            part = _part(agg, indices[0])
            if part is None:
                return super().extract_value(agg, indices, name)
            agg, indices = part, indices[1:]
        return agg


def _part(whole: Any, index: int) -> Any:
    """Return a part of a tuple that was put together; None if it is not known."""
    while isinstance(whole, InsertValue):
        if whole.indices[0] == index:
            return whole.value if len(whole.indices) == 1 else None
        whole = whole.aggregate
    return None


class _Lower(Lower):  # type: ignore[misc]
    """Puts one kernel into LLVM's form."""

    def setup_function(self, fndesc: Any) -> None:
        """Begin."""
        super().setup_function(fndesc)
        self.builder.__class__ = _Builder
        self._values: dict[str, Any] = {}
        assigned = [one for block in self.blocks.values() for one in block.body if isinstance(one, Assign)]
        self._times = Counter(one.target.name for one in assigned)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Give a variable its value."""
        if argidx is not None and not self.context.enable_nrt and self._times[name] == 1:
            self._values[name] = value
        else:
            super().storevar(value, name, argidx)

    def loadvar(self, name: str) -> Any:
        """Return the value of a variable."""
        return self._values[name] if name in self._values else super().loadvar(name)

    def delvar(self, name: str) -> None:
        """Forget a variable."""
        if name not in self._values:
            super().delvar(name)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):  # type: ignore[misc]
    """The step of compiling that does it."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What does the work."""
        return _Lower


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's steps, with ours for that one, and without the listing of the source with all types, which would be kept, too."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the steps."""
        steps, numbas = PassManager("kernel"), DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes.extend(
            (_Lowering if one is NativeLowering else one, text)
            for one, text in numbas.passes
            if one is not AnnotateTypes
        )
        steps.finalize()
        return [steps]
