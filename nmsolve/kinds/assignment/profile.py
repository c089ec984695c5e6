"""``nmsolve profile``: measure a model's operators on this host and fill the function library."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.hw.assignment.library import Library
    from nmsolve.hw.assignment.profile import Profiled, Profiling
    from nmsolve.kinds.assignment.options import ProfileOptions

#: Nodes, regressions and the like that are listed on the terminal; --json has all.
LISTED = 12
#: Seconds between two lines of progress where the bar cannot be drawn.
QUIET = 5.0


def run_profile(o: ProfileOptions) -> int:
    """Run the command; returns the exit code: 0, also if some nodes could not be measured (they are named).

    Raises
    ------
    InputError : anything wrong with the model, the options or the library, or no onnxruntime
    """
    from nmsolve.hw.assignment.flatten import program_of
    from nmsolve.hw.assignment.library import Library
    from nmsolve.hw.assignment.profile import Profiling, profile
    from nmsolve.hw.assignment.runtime import Patience, require_runtime
    from nmsolve.model.formats.onnx import load_onnx
    from nmsolve.model.operators.binding import parse_bindings

    require_runtime(o.model, "measuring")
    how = Profiling(
        threads=_threads(o.threads),
        processor=o.processor,
        patience=Patience(runs=o.runs, seconds=o.seconds, least=min(5, o.runs)),
        most_spread=o.spread,
        fused=o.fused,
        integers=o.integers,
        again=o.again,
    )
    bindings = parse_bindings(o.bind)
    graph = load_onnx(o.model, o.strict, bindings)
    for warning in graph.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    program = program_of(graph, bindings)
    with Library(o.library, write=True) as library:
        started = time.monotonic()
        with _Bar() as bar:
            done = profile(o.model, program, library, how, bar)
        seconds = time.monotonic() - started
        if o.json:
            print(json.dumps(_row(o, done, library, how, seconds)))
        else:
            _print(o, done, library, how, seconds)
    return 0


def _threads(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and len(part) < 5 for part in parts):
        raise InputError(f"cannot read {text!r}", "--threads", "whole numbers, e.g. 1,2")
    return tuple(dict.fromkeys(int(part) for part in parts))


class _Bar:
    """A bar on a terminal's standard error, else a line now and then."""

    def __init__(self) -> None:
        self._last, self._wide = time.monotonic(), 0

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._wide:
            print(file=sys.stderr)

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show how far it is."""
        if sys.stderr.isatty():
            filled = 30 * done // max(1, total)
            line = f"[{'#' * filled}{'.' * (30 - filled)}] {done}/{total} {label}"[:100]
            print(f"\r{line:<{self._wide}}", end="", file=sys.stderr, flush=True)
            self._wide = len(line)
        elif time.monotonic() - self._last >= QUIET:
            self._last = time.monotonic()
            print(f"{done}/{total} {label}", file=sys.stderr, flush=True)


def _regressions(library: Library, how: Profiling) -> list[dict[str, object]]:
    """Return the regressions over the entries of this host, the most samples first."""
    from nmsolve.hw.assignment.library_rows import family_of

    found: dict[tuple[str, str, int], dict[str, object]] = {}
    for entry in library.entries:
        name = (family_of(entry.key), entry.key.types, entry.threads)
        if entry.processor != how.processor or name in found or entry.threads not in how.threads:
            continue
        fit = library.fit(entry.key, entry.processor, entry.threads)
        if fit is not None:
            found[name] = {
                "operation": name[0], "types": name[1], "threads": name[2], "samples": fit.samples, "error": fit.error,
                "ps": fit.coefficients[0], "ps_per_mac": fit.coefficients[1], "ps_per_element": fit.coefficients[2],
                "ps_per_byte": fit.coefficients[3],
            }  # fmt: skip
    return sorted(found.values(), key=lambda row: -int(str(row["samples"])))


def _gain(library: Library, how: Profiling, threads: int) -> float | None:
    """Return how many times as long products take with whole numbers, None if none were measured."""
    from nmsolve.hw.assignment.profile import integer_gain

    found = integer_gain(library, how.processor, threads)
    return None if found is None else found[0]


def _row(
    o: ProfileOptions, done: Profiled, library: Library, how: Profiling, seconds: float
) -> dict[str, object]:
    return {
        "type": "profile",
        "model": str(o.model),
        "library": str(o.library),
        "entries": len(library.entries),
        "measured": done.measured,
        "known": done.known,
        "untrusted": done.untrusted,
        "failed": done.failed,
        "groups": done.groups,
        "unattributed": done.unattributed,
        "plain_ps": {str(k): v for k, v in done.plain.items()},
        "fused_ps": {str(k): v for k, v in done.fused.items()},
        "integers_to_floats": {str(t): _gain(library, how, t) for t in how.threads},
        "regressions": _regressions(library, how),
        "notes": done.words,
        "seconds": seconds,
    }


def _print(o: ProfileOptions, done: Profiled, library: Library, how: Profiling, seconds: float) -> None:
    print(
        f"{o.model}: {done.measured} operations measured, {done.known} known before, in {seconds:.1f} s; "
        f"{o.library} has {len(library.entries)}"
    )
    for threads, plain in done.plain.items():
        fused = done.fused[threads]
        print(
            f"whole model with {threads} threads: {plain / 1e9:.3f} ms node by node, {fused / 1e9:.3f} ms optimised; "
            f"{done.groups} groups measured, {done.unattributed} cannot be told apart"
        )
    for threads in how.threads:
        gain = _gain(library, how, threads)
        if gain is not None:
            print(
                f"products of whole numbers take {gain:.3g} times as long as those of floats (median, {threads} threads)"
            )
    rows = _regressions(library, how)
    if rows:
        print("regression                            threads  samples  median error")
        for row in rows[:LISTED]:
            print(
                f"{str(row['operation'])[:36]:<36}  {row['threads']:>7}  {row['samples']:>7}  {float(str(row['error'])):>12.1%}"
            )
    for what, found in (("spread too far to trust", done.untrusted), ("could not be run", done.failed)):
        for label, why in list(found.items())[:LISTED]:
            print(f"  {what}: {label} ({why if isinstance(why, str) else f'{why:.1f} times'})")
        if len(found) > LISTED:
            print(f"  ... and {len(found) - LISTED} more")
    for words in done.words:
        print(f"  {words}")
