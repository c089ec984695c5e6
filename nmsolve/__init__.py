"""nmsolve puts neural networks on many-core chips, and proves how good the result is."""

__version__ = "0.1.0"
