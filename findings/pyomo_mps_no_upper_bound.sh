#!/usr/bin/env bash
# Pyomo 6.10.1 with OR-Tools 9.15.6755: in an MPS file Pyomo states "no upper bound" of a whole number as the bound 10E20. HiGHS takes
# that for infinity, OR-Tools for the number 1e21, which CP-SAT calls an invalid model.
#
# Seen: maximise x <= 10, x a whole number >= 0: HiGHS finds 10; CP-SAT answers MODEL_INVALID for Pyomo's file, and 10 for
# the same model as HiGHS writes it.
# Consequence: a model that other solvers are to read states an upper bound of every whole number.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyomo==6.10.1 ortools==9.15.6755 highspy==1.14.0
cat > write.py <<'PY'
import highspy
import pyomo.environ as pe

model = pe.ConcreteModel()
model.x = pe.Var(domain=pe.NonNegativeIntegers)
model.gain = pe.Objective(expr=-model.x)
model.limit = pe.Constraint(expr=model.x <= 10)
model.write("pyomo.mps")
highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
highs.readModel("pyomo.mps")
highs.run()
print(highs.getInfo().objective_function_value)
highs.writeModel("highs.mps")
PY
cat > read.py <<'PY'
from ortools.linear_solver.python import model_builder

for name in ("pyomo.mps", "highs.mps"):
    model, solver = model_builder.Model(), model_builder.Solver("sat")
    model.import_from_mps_file(name)
    status = solver.solve(model)
    upper = [variable.upper_bound for variable in model.get_variables()][0]
    print(upper, status.name, solver.objective_value if status.name == "OPTIMAL" else "")
PY
found=$(venv/bin/python write.py | tail -1)
seen=$(venv/bin/python read.py)
echo "HiGHS: $found; CP-SAT, upper bound and status:"
echo "$seen"
[ "$found" = "-10.0" ] || { echo "changed: HiGHS reads it otherwise"; exit 1; }
[ "$seen" = "$(printf '1e+21 MODEL_INVALID \ninf OPTIMAL -10.0')" ] || { echo "changed: the bound is read otherwise"; exit 1; }
