"""Which kernels every command still compiles after `nmsolve doctor --warm`, each in a process of its own (there should be none).

    python bench/warm.py [--only WORD,WORD] [--warm]

`--warm` compiles everything first. Exit code 1 if a command left new files in the kernel cache, or failed. Answers go to a folder
that is removed. Limits are short: what is looked for is a kernel that no warming run reached.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import nmsolve
from nmsolve.model.kernel_cache import root_of_kernels

HERE = Path(__file__).resolve().parent.parent
NMSOLVE = Path(sys.executable).with_name("nmsolve")
EXAMPLES, ONNX = HERE / "examples", HERE / "tests" / "data" / "onnx" / "mobilenet_v2.onnx"
VISION = (
    f"map {EXAMPLES}/vision.json --machine {EXAMPLES}/board.toml --constraints {EXAMPLES}/constraints.json"
)
#: Commands in an empty folder, in this order: later ones take the answers of earlier ones. `{t}` is the time limit.
COMMANDS = f"""
generate microcircuit --scale 0.01 --out micro.json
generate snn --nodes 1500 --synapses 20000 --layers 3 --out snn.npz
generate mesh-geo --nodes 100 --side 10 --out geo.json
generate mesh-comm --nodes 64 --side 8 --out comm.json
generate mesh-layered --nodes 256 --side 16 --out layered.json
generate mesh-rnd --nodes 64 --side 8 --out rnd.json
generate microcircuit --scale 0.01 --out micro.nmz
map {EXAMPLES}/first.json -t {{t}} -o first
{VISION} -t {{t}} -o vision
map geo.json -t {{t}} -o geo
map comm.json --objective multicast-hops -t {{t}} -o comm
map layered.json -t {{t}} -o layered
map rnd.json -t {{t}} -o rnd
map snn.npz --machine mesh:8x8 --balance 0.1 -t {{t}} -o snn
map snn.npz --machine mesh:8x8 --balance 0.1 --objective multicast-hops -t {{t}} -o multicast
map snn.npz --machine mesh:8x8 --balance 0.1 --objective connectivity -t {{t}} -o connectivity
map snn.npz --machine mesh:8x8 --balance 0.1 --objective cut -t {{t}} -o cut
map snn.npz --machine mesh:8x8 --balance 0.1 --objective max-link -t {{t}} -o links
map snn.npz --machine mesh:8x8 --balance 0.1 --objective reward -t {{t}} -o reward
map micro.json --machine loihi1 --objective hops -t {{t}} -o loihi
map micro.nmz --machine mesh:8x8 --balance 0.1 -t {{t}} -o stored
map {EXAMPLES}/first.json --objective hops,max-link -t {{t}} -o both
map {EXAMPLES}/first.json --objective multicast-hops --route joint -t {{t}} -o joint
map comm.json --warm-start comm --migration-budget 4 --objective multicast-hops -t {{t}} -o moved
verify vision --bound
verify snn --bound
score comm
export comm
convert snn.npz snn.json
gap vision -t {{t}}
resume first -t {{t}}
route comm -t {{t}} -o routed
simulate comm
explain {EXAMPLES}/vision.json --machine {EXAMPLES}/board.toml --constraints {EXAMPLES}/constraints.json
faults comm --trials 3
pipeline {ONNX} --cores 16 -t {{t}} -o plan
assign {ONNX} --machine laptop-npu -t {{t}} -o assigned
schedule {EXAMPLES}/tasks.json --objective energy -t {{t}} -o scheduled
info snn.npz
"""
SECONDS = "3"


def kernels(root: Path) -> set[str]:
    """Compiled versions in the cache."""
    return {str(path.relative_to(root)) for path in root.rglob("*.nbc")}


def main() -> int:
    """Run the commands and say what each compiled."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="only commands with one of these words, and those that generate"
    )
    parser.add_argument("--warm", action="store_true", help="nmsolve doctor --warm first")
    a = parser.parse_args()
    root, text = root_of_kernels(Path(next(iter(nmsolve.__path__))))
    if root is None:
        parser.error(text)
    if a.warm:
        subprocess.run([NMSOLVE, "doctor", "--warm"], check=True)
    words, bad = [word for word in a.only.split(",") if word], 0
    with tempfile.TemporaryDirectory() as folder:
        for line in COMMANDS.strip().splitlines():
            command = line.format(t=SECONDS).split()
            if words and command[0] != "generate" and not set(words) & set(command):
                continue
            before = kernels(root)
            done = subprocess.run([NMSOLVE, *command], cwd=folder, capture_output=True, text=True)
            new = sorted(kernels(root) - before)
            bad += bool(new) or done.returncode not in (0, 6)
            said = (
                "" if done.returncode in (0, 6) else f" exit {done.returncode}: {done.stderr.strip()[-300:]}"
            )
            print(
                f"{len(new):3} compiled: {line.format(t=SECONDS).replace(str(HERE), '.')}{said}", flush=True
            )
            for path in new:
                print(f"      {path}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
