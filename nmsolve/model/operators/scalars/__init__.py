"""The scalar side of a model (M3.2, M3.5): arithmetic on lengths, indices and loop counts as a small program of its own.

``program`` is the program, ``trace`` writes down what a model computes, ``lower`` turns expressions into steps, ``passes``
make it short.
"""
