"""Operator graphs of deep networks: tensors with symbolic shapes, and what every operator costs (M3.1, M3.2, M5.1)."""
