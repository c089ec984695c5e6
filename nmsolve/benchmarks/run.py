"""``nmsolve bench``: plan the runs, carry out those that are missing, write the tables."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from nmsolve.benchmarks.options import BenchOptions
from nmsolve.benchmarks.pages import Head, html, markdown
from nmsolve.benchmarks.runner import BenchTask, Process, as_json, carry_out, engines_of
from nmsolve.benchmarks.store import Key, Outcome, Store
from nmsolve.benchmarks.suites import Instance, Source, find_suite, load_suite
from nmsolve.benchmarks.summary import Summary, Table, summarise
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import INTERRUPTED, OK, prepare_file, prepare_folder
from nmsolve.kinds.command_line import as_command
from nmsolve.kinds.registry import OTHER_TOOLS, bench
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.host import cores
from nmsolve.model.host.locks import lock_folder, unlock
from nmsolve.model.host.provenance import machine, uncompiled, version
from nmsolve.model.lookup import named
from nmsolve.report.figures import number
from nmsolve.solvers.search.entries import look_up

#: The suite of networks for tools of others, and the word for those tools among methods.
PEERS = "peers"
#: Told a sentence.
Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """What a benchmark came to.

    Attributes
    ----------
    runs : every run that is done, those of earlier times too
    others : runs in the store that belong to other versions, machines or settings
    interrupted : the run was interrupted
    """

    head: Head
    summaries: Sequence[Summary]
    runs: Mapping[Key, Outcome]
    others: int
    interrupted: bool


def run_bench(o: BenchOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input, before any run; or another benchmark uses the folder
    """

    def heard(task: BenchTask, outcome: Outcome) -> None:
        if o.json:
            print(json.dumps(as_json(task, outcome)), flush=True)

    found = measure(o, _say, heard)
    _print_all(o, found)
    return INTERRUPTED if found.interrupted else OK


def measure(o: BenchOptions, say: Say, heard: Callable[[BenchTask, Outcome], None]) -> Measured:
    """Plan the runs, carry out those that are missing, write the tables.

    Parameters
    ----------
    say : told sentences about the progress
    heard : told every run that is done now

    Raises
    ------
    InputError : anything wrong with the input, before any run; or another benchmark uses the folder
    """
    sources = [find_suite(suite, o.problem) for suite in dict.fromkeys(o.suites)]
    o = replace(o, methods=_named_methods(o.methods, sources, say))
    limit, methods = opt.seconds(o.time_limit), _methods(o.methods or "", sources)
    if o.cluster is None and o.workers > cores():
        raise InputError(f"{o.workers} runs at a time on {cores()} cores", "--workers", f"at most {cores()}")
    if o.page is not None:
        prepare_file(o.page)
    stated, keep = _stated(o), o.out / "instances"
    instances = [one for source in sources for one in load_suite(source, o.only, stated, keep)]
    command = as_command("bench", o, ("methods", "seeds", "time_limit"), ("out", "json"))
    head = Head(command, version(), machine(), limit, o.seeds, o.workers)
    tasks = _plan(instances, methods, head)
    prepare_folder(o.out)
    with _alone(o.out):
        store = Store(o.out / "results.sqlite")
        try:
            interrupted = not _carry_out(o, store, tasks, say, heard)
            found = store.find(t.key for t in tasks)
            head = replace(head, missing=len(tasks) - len(found))
            suites = list(dict.fromkeys(one.suite for one in instances))
            summaries = [
                summarise(s, [one for one in instances if one.suite == s], methods, found, head.limit)
                for s in suites
            ]
            measured = Measured(head, summaries, found, store.count() - len(found), interrupted)
        finally:
            store.close()
        write_tables(o.out, measured)
        if o.page is not None and not measured.head.missing:
            write_atomic(o.page, markdown(measured.head, measured.summaries))
    return measured


def _stated(o: BenchOptions) -> dict[str, Any]:
    """Return how files are to be taken: the options that have names of their own, and those of ``--set``.

    Raises
    ------
    InputError : no value, or one option twice
    """
    own = {name: getattr(o, name) for name in ("machine", "chips", "balance", "objective")}
    out = {name: value for name, value in own.items() if value is not None}
    for text in o.set or ():
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name in out:
            expected = "an option and its value, as in cores=16, each once"
            raise InputError(f"{text!r} states {'it again' if equals else 'nothing'}", "--set", expected)
        out[name] = value.strip()
    return out


def _named_methods(text: str | None, sources: Sequence[Source], say: Say) -> str:
    """Return the methods with ``peers`` written out: the engines of other tools that are installed; says which are not.

    Without any it is ``auto``, and with the suite ``peers`` those tools, too.
    """
    words = [
        w.strip()
        for w in (text or ("auto,peers" if any(s.suite == PEERS for s in sources) else "auto")).split(",")
    ]
    if PEERS not in words:
        return ",".join(words)
    peers = import_module(f"nmsolve.{OTHER_TOOLS}")
    absent = peers.missing()
    for name, how in absent.items():
        say(f"{name} is not installed: {how}")
    apart = "; ".join(f"{name}: {how}" for name, how in peers.APART.items())
    say(f"in an environment of their own, by bench/peers.py ({apart})")
    own = [name for name in peers.PEERS if name not in absent]
    return ",".join(w for word in words for w in (own if word == PEERS else [word]))


def _methods(text: str, sources: Sequence[Source]) -> list[str]:
    """Return ``auto,anneal,tabu+projection,auto+mine`` as a list, every engine known for every suite.

    Raises
    ------
    InputError : none, or an unknown engine
    """
    methods = ["+".join(e.strip() for e in m.split("+")) for m in text.split(",") if m.strip()]
    if not methods:
        raise InputError("no method is given", "--methods", "auto, or engines; + joins several in one run")
    for engine in (e for m in methods for e in engines_of(m) or [] if e != "auto"):
        for source in sources:
            look_up(named(source.table.registry), engine, f" for suite {source.suite}")
    return list(dict.fromkeys(methods))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other process writes to the folder meanwhile; the lock goes with the process, however it ends."""
    try:
        handle = lock_folder(folder)
    except BlockingIOError:
        raise InputError("another benchmark is running here", str(folder), "another --out") from None
    except OSError as error:
        raise InputError(
            f"the folder cannot be locked ({error.strerror})", str(folder), "a local disk"
        ) from None
    try:
        yield
    finally:
        unlock(handle)


def _plan(instances: Sequence[Instance], methods: Sequence[str], head: Head) -> list[BenchTask]:
    """Return every run of the benchmark; all instances with the first seed come first, so that a part says something too.

    Raises
    ------
    InputError : two instances of one name in one suite (folders of the same name)
    """
    names = [(one.suite, one.name) for one in instances]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two instances are called {name[1]}", name[0], "folders of different names")
    return [
        BenchTask(
            Key(one.suite, one.name, one.problem.hash, method, seed, head.limit, head.version, head.machine),
            one,
        )
        for seed in range(1, head.seeds + 1)
        for one in instances
        for method in methods
    ]


def _places(o: BenchOptions) -> tuple[int, Callable[[BenchTask], Any]]:
    """Return how many runs go on at the same time, and what starts one.

    Raises
    ------
    InputError : there is no such cluster
    """
    if o.cluster is None:
        return o.workers, Process
    from nmsolve.benchmarks.cluster import on_cluster

    start, cores = on_cluster(o.cluster)
    return cores, start


def _carry_out(
    o: BenchOptions,
    store: Store,
    tasks: Sequence[BenchTask],
    say: Say,
    heard: Callable[[BenchTask, Outcome], None],
) -> bool:
    """Do what is missing; False if it was interrupted."""
    done = store.find(t.key for t in tasks)
    missing = [t for t in tasks if t.key not in done]
    if done:
        say(f"{len(done)} of {len(tasks)} runs are in {o.out / 'results.sqlite'} already")
    if missing and uncompiled():
        say(
            "kernels are not compiled yet, so the first runs would be slower: run `nmsolve doctor --warm` first"
        )
    started, count = time.monotonic(), 0
    try:
        willing = []
        for task in missing:
            refusal = _refusal(task)
            if refusal is None:
                willing.append(task)
            else:
                store.add(task.key, refusal)
        for task, outcome in carry_out(willing, *_places(o)):
            store.add(task.key, outcome)
            count += 1
            rest = (time.monotonic() - started) / count * (len(willing) - count)
            heard(task, outcome)
            place = f"[{len(tasks) - len(willing) + count}/{len(tasks)}]"
            say(f"{place} {_told(task, outcome)}; {_duration(rest)} left")
    except KeyboardInterrupt:
        say(
            f"stopped; {count} more runs are in {o.out / 'results.sqlite'}, the same command continues from there"
        )
        return False
    return True


def _refusal(task: BenchTask) -> Outcome | None:
    """Return the outcome of a run whose every engine, but for automatic mode, refuses the problem, found without a process."""
    registry = named(bench(task.instance.kind).registry)
    problem = task.instance.problem.problem
    said = [(e, registry[e].make().refuses(problem)) for e in task.engines or [] if e != "auto"]
    if not said or any(reason is None for _, reason in said):
        return None
    return Outcome(
        "refused", "; ".join(f"{e}: {reason}" if len(said) > 1 else str(reason) for e, reason in said)
    )


def _told(task: BenchTask, outcome: Outcome) -> str:
    """Return a line about a finished run."""
    key, known = task.key, task.instance.best_known
    beside = "" if known is None else f" (best known {number(known)})"
    what = (
        f"{number(outcome.objective)}{beside}, bound {number(outcome.bound)}"
        + (f" ({outcome.text})" if outcome.text else "")
        if outcome.solved
        else outcome.text
    )
    return (
        f"{key.instance} {key.method} seed {key.seed}: {outcome.status}, {what}; "
        f"{outcome.wall:.1f} s, {outcome.cpu:.1f} s CPU"
    )


def write_tables(out: Path, measured: Measured) -> None:
    """Write table.md and report.html into an existing folder."""
    write_atomic(out / "table.md", markdown(measured.head, measured.summaries))
    write_atomic(out / "report.html", html(measured.head, measured.summaries))


def _print_all(o: BenchOptions, measured: Measured) -> None:
    """Print the main table of every suite; all tables as JSON if asked for."""
    if measured.others:
        _say(
            f"{measured.others} runs of other versions, machines or settings in the store are not in the tables"
        )
    for summary in measured.summaries:
        _say(f"\nsuite {summary.suite}")
        _print(summary.quality[0])
        if o.json:
            every = (*summary.quality, *summary.times)
            tables = [{"title": t.title, "head": t.head, "rows": t.rows} for t in every]
            print(json.dumps({"type": "summary", "suite": summary.suite, "tables": tables}), flush=True)
    _say(f"\ntables: {o.out / 'table.md'}, {o.out / 'report.html'}")


def _print(table: Table) -> None:
    """Print a table in columns."""
    lines = (table.head, *table.rows)
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.head))]
    for line in lines:
        cells = zip(line, widths, strict=True)
        _say("  ".join(c.ljust(w) if i < table.left else c.rjust(w) for i, (c, w) in enumerate(cells)))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
