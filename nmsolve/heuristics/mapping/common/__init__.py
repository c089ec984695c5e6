"""Small kernels that more than one mapping heuristic uses."""
