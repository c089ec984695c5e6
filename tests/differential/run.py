"""Random problems against the reference for as long as asked: ``python tests/differential/run.py --seconds 1800 --seed 7``.

Goes on where an earlier run of the same seed ended (``--fresh`` starts again). Ends with 1 if anything disagrees. Every
failing case is in the output folder as ``case-N.json``; ``--replay case-N.json`` runs it alone, with every engine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1])
)  # the fakes of engines' contexts are with the tests
sys.path.insert(0, str(Path(__file__).resolve().parent))

from diff_cases import make_case
from diff_checks import Finding, check_case
from diff_routed_checks import check_routed_case
from diff_routes import make_routed_case

#: One case in this many goes through the command line.
COMMAND_EVERY = 40
#: One case in this many is one of mapping and routes together.
ROUTED_EVERY = 6
#: Cases of one seed are numbered from ``seed * SPAN``.
SPAN = 10_000_000


def main() -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/differential"))
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run did")
    parser.add_argument("--replay", type=Path, help="a case file: run it alone")
    o = parser.parse_args()
    if o.replay is not None:
        case = json.loads(o.replay.read_text())["case"]
        found, _ = check_routed_case(case) if "turns" in case else check_case(case, command=True, every=True)
        return _say(found)
    o.out.mkdir(parents=True, exist_ok=True)
    state = o.out / f"seed-{o.seed}.json"
    done, counts, failed, spent = 0, Counter[str](), 0, 0.0
    if state.exists() and not o.fresh:
        kept = json.loads(state.read_text())
        done, counts, failed, spent = kept["done"], Counter(kept["counts"]), kept["failed"], kept["seconds"]
    began = time.monotonic()
    while time.monotonic() - began < o.seconds:
        number = o.seed * SPAN + done
        case = make_routed_case(number) if done % ROUTED_EVERY == 0 else make_case(number)
        if "turns" in case:
            found, more = check_routed_case(case)
        else:
            found, more = check_case(case, command=done % COMMAND_EVERY == COMMAND_EVERY - 1)
        counts += more
        done += 1
        if found:
            failed += 1
            write_failure(o.out, case, found)
            _say(found, f"case {number}: ")
        kept = {"done": done, "counts": counts, "failed": failed, "seconds": spent + time.monotonic() - began}
        state.write_text(json.dumps(kept))
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    print(f"{done} cases of seed {o.seed} in {spent + time.monotonic() - began:.0f} s, {failed} disagree")
    return 1 if failed else 0


def write_failure(folder: Path, case: dict[str, Any], found: list[Finding]) -> None:
    """A failing case with what was found, to be replayed."""
    content = {"findings": [vars(f) for f in found], "case": case}
    (folder / f"case-{case['seed']}.json").write_text(json.dumps(content, indent=1) + "\n")


def _say(found: list[Finding], before: str = "") -> int:
    for f in found:
        print(f"{before}{f.who}: {f.kind}: {f.text}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
