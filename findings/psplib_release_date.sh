#!/usr/bin/env bash
# psplib 0.4.0 (PyPI, "a parser for project scheduling instances"): the release date of a project is read from MPLIB files
# (.rcmp), but not from PSPLIB files (.sm, .mm), whose section PROJECT INFORMATION has a column rel.date for it.
#
# Project.release_date is documented as "the earliest start time of this project". A project released at 5 has
# release_date == 5 if it was read from an .rcmp file, and release_date == 0 if the same project was read from an .sm file.
# No error, no warning: schedules of the second start five ticks too early. (All instances of PSPLIB itself have rel.date 0.)
#
# Output seen: "mplib 5, psplib 0". Exit code 1 if that changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check psplib==0.4.0
cat > "$work/one.rcmp" <<'RCMP'
1
1
2
3 5
1
0 0 1 1:2
4 1 1 1:3
0 0 0
RCMP
cat > "$work/one.sm" <<'SM'
************************************************************************
file with basedata            : one.bas
initial value random generator: 1
************************************************************************
projects                      :  1
jobs (incl. supersource/sink ):  3
horizon                       :  9
RESOURCES
  - renewable                 :  1   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
************************************************************************
PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      1      5        9        0        4
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          1           2
   2        1          1           3
   3        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1
------------------------------------------------------------------------
  1      1     0       0
  2      1     4       1
  3      1     0       0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1
    2
************************************************************************
SM
seen=$(cd "$work" && venv/bin/python - <<'PY'
from psplib import parse

dates = {form: parse(f"one.{end}", form).projects[0].release_date for form, end in (("mplib", "rcmp"), ("psplib", "sm"))}
print(", ".join(f"{form} {date}" for form, date in dates.items()))
PY
)
echo "$seen"
if [ "$seen" != "mplib 5, psplib 0" ]; then
    echo "changed: expected 'mplib 5, psplib 0'" >&2
    exit 1
fi
