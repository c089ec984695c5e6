#!/usr/bin/env bash
# swiglpk 5.0.13 (GLPK 5.0), highspy 1.14.0, PySCIPOpt 6.3.0: an MPS file may state a right-hand side of the objective row.
# GLPK reads it as the constant of the objective, HiGHS and SCIP as its negative.
#
# Seen: minimise x, 0 <= x, right-hand side 5 on the objective: HiGHS and SCIP find -5, GLPK finds 5.
# Consequence: objectives (not solutions) of one file differ between solvers; a writer that wants one meaning states the constant as
# a variable fixed to 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet swiglpk==5.0.13 highspy==1.14.0 PySCIPOpt==6.3.0
printf '%s\n' 'NAME one' ROWS ' N cost' ' G least' COLUMNS ' x cost 1 least 1' RHS ' rhs cost 5' ENDATA > one.mps
cat > probe.py <<'PY'
import highspy
import swiglpk
from pyscipopt import Model

highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
highs.readModel("one.mps")
highs.run()
scip = Model()
scip.hideOutput()
scip.readProblem("one.mps")
scip.optimize()
swiglpk.glp_term_out(swiglpk.GLP_OFF)
glpk = swiglpk.glp_create_prob()
swiglpk.glp_read_mps(glpk, swiglpk.GLP_MPS_FILE, None, "one.mps")
swiglpk.glp_simplex(glpk, None)
print(highs.getInfo().objective_function_value, scip.getObjVal(), swiglpk.glp_get_obj_val(glpk))
PY
seen=$(venv/bin/python probe.py)
echo "least value by HiGHS, SCIP, GLPK: $seen"
[ "$seen" = "-5.0 -5.0 5.0" ] || { echo "changed: the constant has another sign"; exit 1; }
