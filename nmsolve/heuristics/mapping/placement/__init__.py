"""One node per core: the placement problem, which is a quadratic assignment problem."""
