#!/usr/bin/env bash
# OR-Tools 9.15: CP-SAT calls a model infeasible whose optimum it finds when all coefficients are divided by 10^11.
#
# Two neurons go to six cores of a 2x3 mesh; a link carries W units if it lies between them, and a core works A and B units. The
# parameter presolve_inclusion_work_limit is 0, a documented limit of one step of presolve. Coefficients of 10^13 and all sums of
# them are far within 64 bits, and solutions exist: any placement is one. With symmetry_level 0 the optimum is found at both
# scales, so a symmetry that presolve finds leads to the wrong answer.
#
# Seen: W = 10^13 is INFEASIBLE, and OPTIMAL without symmetries or with the usual work limit; W = 100 is OPTIMAL each time.
# Consequence: "infeasible" of a solver is a claim like any other. Look for a solution by other means before it is believed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet ortools==9.15.6755
cat > probe.py <<'PY'
from ortools.sat.python import cp_model

#: Cores of the one neuron and of the other, for which a link of the mesh is on the way.
LINKS = [
    ([0], [1, 3, 5]), ([0, 1], [2, 4]), ([1], [0, 2, 4]), ([0, 1], [3, 5]), ([2], [1, 3, 5]), ([0, 1, 2, 3], [4]),
    ([2, 3, 4, 5], [0]), ([3], [0, 2, 4]), ([0, 1, 2, 3], [5]), ([2, 3, 4, 5], [1]), ([4], [1, 3, 5]), ([4, 5], [0, 2]),
    ([5], [0, 2, 4]), ([4, 5], [1, 3]),
]  # fmt: skip


def solved(w: int, **parameters: int) -> str:
    model = cp_model.CpModel()
    at = [[model.new_bool_var("") for _ in range(6)] for _ in range(2)]
    for row in at:
        model.add_exactly_one(row)
    for core in range(6):
        model.add_at_most_one(row[core] for row in at)
    step = model.new_int_var(0, 10 * w, "step")
    for one, other in LINKS:
        carried = model.new_int_var(0, w, "")
        both = sum(at[0][k] for k in one) + sum(at[1][k] for k in other)
        model.add(carried - w * both >= -w)
        model.add(step >= carried)
    for core in range(6):
        model.add(step >= w * 6 // 10 * at[0][core] + w // 100 * at[1][core])
    model.minimize(step)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    status = solver.status_name(solver.solve(model))
    return f"{status} {solver.objective_value / w:.0f} W" if status == "OPTIMAL" else status


for w in (10**13, 100):
    print(w, "usual:", solved(w))
    print(w, "no inclusion:", solved(w, presolve_inclusion_work_limit=0))
    print(w, "no inclusion, no symmetries:", solved(w, presolve_inclusion_work_limit=0, symmetry_level=0))
PY
venv/bin/python probe.py | tee seen
cat > expected <<'SAID'
10000000000000 usual: OPTIMAL 1 W
10000000000000 no inclusion: INFEASIBLE
10000000000000 no inclusion, no symmetries: OPTIMAL 1 W
100 usual: OPTIMAL 1 W
100 no inclusion: OPTIMAL 1 W
100 no inclusion, no symmetries: OPTIMAL 1 W
SAID
diff expected seen || { echo "changed: see the lines above"; exit 1; }
