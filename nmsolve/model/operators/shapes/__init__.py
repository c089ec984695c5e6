"""Rules that derive the shapes, and small values, of what an operator makes (M3.2); one file per family of operators.

:data:`RULES` maps a kind of operator to its rule. Every rule is written from the definition of the operator in the ONNX
specification, https://github.com/onnx/onnx/blob/main/docs/Operators.md, or its source is named in its file.
"""

from nmsolve.model.operators.shapes import (
    contributed,
    control,
    elementwise,
    makers,
    pieces,
    products,
    reductions,
    views,
    windows,
)
from nmsolve.model.operators.shapes.facts import RULES, UNKNOWN, Call, Fact, UnknownShape

FAMILIES = (
    contributed,
    control,
    elementwise,
    makers,
    pieces,
    products,
    reductions,
    views,
    windows,
)

__all__ = ["FAMILIES", "RULES", "UNKNOWN", "Call", "Fact", "UnknownShape"]
