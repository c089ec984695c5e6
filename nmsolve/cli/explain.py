"""``nmsolve explain``: does any solution keep all limits; if not, which limits conflict?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds import registry
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import INFEASIBLE, OK, UNKNOWN, prepare_file, tell
from nmsolve.kinds.explain import find_conflict

if TYPE_CHECKING:
    from nmsolve.kinds.kind import Explainable
    from nmsolve.solvers.search.conflict import Conflict, Explanation


def run_explain(name: str, o: Any) -> int:
    """Look for a solution of the problem of command ``name`` or a conflict of its limits, write it, and say it.

    Returns
    -------
    int
        exit code; 0: there is one, 4: proved that there is none, 5: neither

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.model.files import write_atomic

    about = registry.kind(name).explained(o)
    limit = opt.seconds(o.time_limit)
    if o.out is not None:
        prepare_file(o.out, o)
    found, confirmed = find_conflict(about.limits, limit, o.seed)
    if o.out is not None and found.solution is not None:
        about.write(o.out, found.solution)
    elif o.out is not None and found.conflict is not None:
        write_atomic(o.out, json.dumps(found.certificate) + "\n")
    out = None if found.status == "unknown" else o.out
    tell(o.json, [_as_json(found, confirmed, about, out)], _as_text(found, confirmed, about, out))
    return {"feasible": OK, "infeasible": INFEASIBLE, "unknown": UNKNOWN}[found.status]


def _as_json(
    found: Explanation[Any], confirmed: bool | None, about: Explainable, out: Path | None
) -> dict[str, Any]:
    line: dict[str, Any] = {
        "type": "explanation",
        **about.names,
        "status": found.status,
        "out": None if out is None else str(out),
    }
    if found.conflict is not None:
        line |= _conflict_json(found.conflict) | {"confirmed": confirmed}
        line["also"] = [_conflict_json(c) for c in found.conflicts[1:]]
        line["lift"] = [{"kind": x.kind, "name": x.name} for x in found.lift]
    return line


def _conflict_json(conflict: Conflict[Any]) -> dict[str, Any]:
    limits = [{"kind": x.kind, "name": x.name, "needed": x in conflict.needed} for x in conflict.limits]
    return {"conflict": limits, "minimal": conflict.minimal, "text": conflict.text}


def _as_text(
    found: Explanation[Any], confirmed: bool | None, about: Explainable, out: Path | None
) -> list[str]:
    subject, a = about.subject, f"{'an' if about.noun[0] in 'aeiou' else 'a'} {about.noun}"
    written = [] if out is None else [f"written to {out}"]
    if found.solution is not None:
        text = about.describe(found.solution)
        return [f"{subject} can be {about.done}: {text} was found and checked", *written]
    if found.conflict is None:
        return [f"unknown: neither {a} of {subject} nor a proof that there is none was found in time"]
    lines, separate = [], len(found.conflicts) > 1
    if separate:
        lines.append(
            f"{subject} cannot be {about.done} for {len(found.conflicts)} separate reasons; each must go:"
        )
    for k, conflict in enumerate(found.conflicts, 1):
        start = f"reason {k}" if separate else f"{subject} cannot be {about.done}"
        lines += [f"{start}: {conflict.text}", "these limits conflict:"]
        for x in conflict.limits:
            sure = "" if x in conflict.needed else " (time ran out before it was shown to be needed)"
            lines.append(f"  {x.words}{sure}")
    if found.enough == found.conflict.limits:
        lines.append(f"lift any one of them and the others can be kept ({a} of each such case was checked)")
    elif found.lift:
        lift = " and ".join(x.words for x in found.lift)
        all_of_it = f"all of this must be lifted: {lift}" if len(found.lift) > 1 else f"lift {lift}"
        lines.append(f"{all_of_it}; then all other limits can be kept ({a} was checked)")
    confirms = f"a second {about.second} confirms that there is no {about.noun}"
    slow = f"not confirmed: a second {about.second} had no answer in time, or the problem is too large for it"
    return [*lines, confirms if confirmed else slow, *written]
