"""The mapping problem stated for CP-SAT (OR-Tools): variables, constraints, objective, symmetry, solve."""
