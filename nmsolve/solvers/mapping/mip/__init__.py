"""The mapping problem stated in Pyomo for mixed-integer solvers: variables, constraints, objective, HiGHS and others."""
