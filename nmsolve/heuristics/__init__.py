"""Fast methods that need no solver: multilevel, bisection, forces, communities, local search."""
