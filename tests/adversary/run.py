"""Forge certificates for as long as wanted: ``python tests/adversary/run.py --seconds 1800``.

Prints per kind how many tries were made, how many certificates were believed, the highest believed claim over the
optimum, and every forgery as JSON. With ``--state FILE`` a later run continues where this one stopped. Exit code 1 if
anything was forged, or if an exception got out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1])
)  # the fakes of engines' contexts are with the tests

from forger import KINDS, Count, batch, plain

#: Tries between two looks at the clock.
SIZE = 1000


def main() -> int:
    """Run until the time is over."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--seconds", type=float, default=60.0, help="for all kinds together")
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument(
        "--seed", type=int, default=1_000_000, help="first batch; the tests take 0, 1, 2 ..."
    )
    options.add_argument("--state", type=Path, help="file with the next batch of every kind")
    options.add_argument("--finds", type=Path, help="file for the forgeries, one JSON object per line")
    asked = options.parse_args()
    kinds = asked.kinds.split(",")
    state = json.loads(asked.state.read_text()) if asked.state and asked.state.exists() else {}
    total = {kind: Count() for kind in kinds}
    end, lap = time.monotonic() + asked.seconds, 0
    while time.monotonic() < end:
        kind = kinds[lap % len(kinds)]
        seed = state.get(kind, asked.seed)
        total[kind].add(batch(kind, seed, SIZE))
        state[kind], lap = seed + 1, lap + 1
        if asked.state:
            asked.state.write_text(json.dumps(state))
    print(
        f"{'kind':16} {'cases':>5} {'tries':>9} {'believed':>9} {'forged':>7} {'raised':>7}  worst claim / optimum"
    )
    for kind, c in total.items():
        print(
            f"{kind:16} {c.cases:5} {c.tries:9,} {c.believed:9,} {c.forged:7,} {c.raised:7,}  {c.worst:.6g}"
        )
    finds = [plain(entry) for c in total.values() for entry in c.found]
    if asked.finds:
        asked.finds.write_text("".join(line + "\n" for line in finds))
    else:
        for line in finds:
            print(line)
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
