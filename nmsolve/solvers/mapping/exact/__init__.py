"""The exact model of mapping, for CP-SAT and MIP solvers: data in whole numbers, rules, distances, symmetries, engines."""
