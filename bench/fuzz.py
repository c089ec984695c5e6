"""Damaged input for every reader: each must be read, or refused in one line; a traceback, crash or hunger is a find.

python bench/fuzz.py --seconds 60 [--state DIR] [--only 'verify mapped'] [--seed 0] [--workers 2]

Inputs are numbered per target and follow from seed and number alone. With --state the next run continues after the last one,
and keeps what was found. Exit code 1 if anything was found.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from fuzz_inputs import Target, make_seeds, targets
from fuzz_mutate import damaged, damaged_folder

#: Seconds for one input, and bytes of memory that it may add to a worker.
PATIENCE, MEMORY = 30.0, 3 * 2**28
#: What may become of an input; the first two are as it should be.
GOOD, BAD = ("ok", "refused"), ("traceback", "crash", "timeout", "memory")
#: A worker is replaced after this many inputs: what one leaves behind must not count for another.
LIFE = 2000
#: Finds of one kind that are kept and printed.
KEPT = 3


@dataclass
class State:
    """What was done: next number and counts by target, finds by kind with the paths of the first inputs."""

    next: dict[str, int] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    finds: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> State:
        """As it was saved, or empty."""
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def save(self, path: Path) -> None:
        """For the next run."""
        path.write_text(json.dumps(self.__dict__, indent=1))


def made(target: Target, seed: int, number: int, folder: Path) -> Path:
    """The damaged input of this number, in ``folder``."""
    rng = random.Random(f"{seed} {target.name} {number}")
    path = folder / target.seed.name
    if target.seed.is_dir():
        shutil.copytree(target.seed, path)
        damaged_folder(rng, path)
    else:
        path.write_bytes(damaged(rng, target.seed.suffix, target.seed.read_bytes()))
    return path


def outcome(target: Target, path: Path) -> tuple[str, str]:
    """What becomes of an input in this process, and the kind of a find."""
    from typer import Exit

    from nmsolve.model.errors import InputError

    said = io.StringIO()
    before = _peak()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            target.door(path)
        found = ("ok", "")
    except Exit as ended:
        found = ("ok", "") if ended.exit_code in (0, 1, 6) else ("refused", "")
    except InputError as error:
        one_line = "\n" not in str(error) or "\n" in str(path)
        found = (
            ("refused", "") if one_line else ("traceback", f"a refusal of several lines: {str(error)[:80]!r}")
        )
    except OSError as error:  # a name that is no file's; the command line says so in one line
        found = ("refused", "") if error.filename is not None else ("traceback", _kind(error))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 -- what else comes is what is looked for
        found = ("memory" if isinstance(error, MemoryError) else "traceback", _kind(error))
    if _peak() - before > MEMORY:
        found = ("memory", f"{(_peak() - before) >> 20} MiB")
    return found


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _kind(error: BaseException) -> str:
    """Class of the error and the last line of the program that it went through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/nmsolve/" in f.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    words = str(error).splitlines()[0][-120:] if type(error).__name__ == "BackendError" and str(error) else ""
    return f"{type(error).__name__} {place} {words}".strip()


# ------------------------------------------------------------------------------------------------ workers


class Worker:
    """A process that takes one target after the other and says what became of every input.

    It writes ``number`` before an input, and class and kind after it; so what it was at is known when it dies.
    """

    def __init__(self, all_targets: Sequence[Target], state: State, seed: int, part: tuple[int, int]) -> None:
        self.part, self.target, self.number = part, "", -1
        self.since = time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="nmsolve-fuzz-"))
        self.pipe, out = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self.pipe)
                _work(all_targets, dict(state.next), seed, part, self.folder, out)
                code = 0
            finally:
                os._exit(code)
        os.close(out)

    def message(self) -> list[str] | None:
        """The next message, None at the end."""
        head = os.read(self.pipe, 4)
        if len(head) < 4:
            return None
        size = struct.unpack("<I", head)[0]
        data = b""
        while len(data) < size:
            piece = os.read(self.pipe, size - len(data))
            if not piece:
                return None
            data += piece
        self.since = time.monotonic()
        said: list[str] = json.loads(data)
        return said

    def end(self) -> int:
        """Kill it if it lives; its exit code."""
        os.kill(self.pid, signal.SIGKILL) if self._lives() else None
        os.close(self.pipe)
        shutil.rmtree(self.folder, ignore_errors=True)
        return self._code

    _code = 0

    def _lives(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._code = os.waitstatus_to_exitcode(status)
        return not pid


def _work(
    all_targets: Sequence[Target],
    number: dict[str, int],
    seed: int,
    part: tuple[int, int],
    folder: Path,
    out: int,
) -> None:
    """The worker's side: inputs of all targets in turn, those of its part."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for _ in range(LIFE // len(all_targets) + 1):
        for target in all_targets:
            k = number.get(target.name, 0)
            k += (part[0] - k) % part[1]
            number[target.name] = k + 1
            _say(out, target.name, str(k))
            inside = folder / "input"
            shutil.rmtree(inside, ignore_errors=True)
            inside.mkdir()
            _say(out, *outcome(target, made(target, seed, k, inside)))


def _say(out: int, *words: str) -> None:
    data = json.dumps(words).encode()
    os.write(out, struct.pack("<I", len(data)) + data)


def run(
    all_targets: Sequence[Target], state: State, seed: int, seconds: float, workers: int, kept: Path
) -> None:
    """Fuzz for so long; ``state`` is kept up to date, inputs that were finds go to ``kept``."""
    by_name = {t.name: t for t in all_targets}
    crew = [Worker(all_targets, state, seed, (w, workers)) for w in range(workers)]
    end = time.monotonic() + seconds

    def book(worker: Worker, what: str, kind: str) -> None:
        counts = state.counts.setdefault(worker.target, {})
        counts[what] = counts.get(what, 0) + 1
        if what not in GOOD:
            _keep(state, by_name[worker.target], seed, worker.number, f"{worker.target}: {what} {kind}", kept)

    while time.monotonic() < end:
        ready, _, _ = select.select([w.pipe for w in crew], [], [], 0.2)
        for k, worker in enumerate(crew):
            said = worker.message() if worker.pipe in ready else []
            if said and worker.number < 0:
                worker.target, worker.number = said[0], int(said[1])
                state.next[worker.target] = max(state.next.get(worker.target, 0), worker.number + 1)
            elif said:
                book(worker, *said)
                worker.number = -1
            late = time.monotonic() - worker.since > PATIENCE
            if said is None or late:
                time.sleep(0.05)
                code = worker.end()
                if worker.number >= 0:
                    name = "" if late else signal.Signals(-code).name if code < 0 else f"exit code {code}"
                    book(worker, "timeout" if late else "crash", name)
                crew[k] = Worker(all_targets, state, seed, worker.part)
    for worker in crew:
        worker.end()


def _keep(state: State, target: Target, seed: int, number: int, kind: str, kept: Path) -> None:
    """Make the input of a find once more, where it stays."""
    paths = state.finds.setdefault(kind, [])
    if len(paths) >= KEPT:
        return
    folder = kept / f"{target.name.replace(' ', '-')}-{seed}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    paths.append(str(made(target, seed, number, folder) if not any(folder.iterdir()) else folder))
    print(f"{kind}\n    {paths[-1]}", flush=True)


def table(state: State) -> str:
    """Counts by target and class."""
    classes = (*GOOD, *BAD)
    rows = [("", *classes)]
    rows += [
        (name, *(f"{counts.get(c, 0):,}" for c in classes)) for name, counts in sorted(state.counts.items())
    ]
    total: Counter[str] = Counter()
    for counts in state.counts.values():
        total.update(counts)
    rows.append(("all", *(f"{total[c]:,}" for c in classes)))
    return "\n".join(f"{row[0]:22}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in rows)


def main() -> int:
    """Parse the options, fuzz, print the table; 1 if anything was found, now or before."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long (making the seeds comes before)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", help="targets whose name holds this")
    parser.add_argument("--state", type=Path, help="folder to go on from; also where finds are kept")
    o = parser.parse_args()
    folder: Path = o.state or Path(tempfile.mkdtemp(prefix="nmsolve-fuzz-state-"))
    folder = folder.resolve()
    seeds = folder / "seeds"
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        make_seeds(seeds)
    chosen = [t for t in targets(seeds) if o.only is None or o.only in t.name]
    if not chosen:
        parser.error(f"no target is called {o.only!r}")
    for target in chosen:  # compiles what it needs before the workers are forked
        copy = folder / "copy" / target.seed.name
        shutil.rmtree(copy.parent, ignore_errors=True)
        copy.parent.mkdir()
        (shutil.copytree if target.seed.is_dir() else shutil.copyfile)(target.seed, copy)
        if outcome(target, copy)[0] != "ok":
            parser.error(f"the undamaged {target.name} is not read: {outcome(target, copy)}")
    state = State.load(folder / "state.json")
    begin = time.monotonic()
    run(chosen, state, o.seed, o.seconds, o.workers, folder / "finds")
    state.save(folder / "state.json")
    tried = sum(sum(counts.values()) for counts in state.counts.values())
    print(table(state))
    took = time.monotonic() - begin
    print(
        f"{tried:,} inputs in all; this time {took:.0f} s, {o.workers} workers; finds of {len(state.finds)} kinds"
    )
    if not state.finds and o.state is None:
        shutil.rmtree(folder)
    return 1 if state.finds else 0


if __name__ == "__main__":
    sys.exit(main())
