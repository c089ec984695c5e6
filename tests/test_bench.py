"""The figures, the store and the suites of ``nmsolve bench``, without running anything."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmsolve.benchmarks.measures import (
    distance,
    gap_at,
    interval,
    primal_integral,
    profile,
    shifted_geometric_mean,
    sign_test,
    time_to,
)
from nmsolve.benchmarks.pages import Head, html, markdown
from nmsolve.benchmarks.store import Key, Outcome, Store
from nmsolve.benchmarks.suites import Instance, find_suite, load_suite
from nmsolve.benchmarks.summary import Summary, summarise
from nmsolve.model.errors import InputError

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

DAT = "3\n0 1 2\n1 0 1\n2 1 0\n0 5 {0}\n5 0 1\n{0} 1 0\n"
KEY = Key("s", "a", "hash", "auto", 1, 10.0, "0+0", "box")


def outcome(
    objective: float | None, *, bound: float | None = None, at: float = 1.0, status: str = "feasible"
) -> Outcome:
    """A run that found ``objective`` after ``at`` seconds, and twice that before."""
    if objective is None:
        return Outcome("unknown", "nothing found", wall=10.0, cpu=9.0)
    events = ((at / 2, 2 * objective, None), (at, objective, bound))
    return Outcome(status, "", objective, bound, 10.0, 9.0, events)


# ---- figures ------------------------------------------------------------------------------------------------


def test_the_gap_is_between_0_and_1() -> None:
    """No value is a gap of 1; a value as good as the reference, or better, one of 0."""
    assert distance(None, 5) == 1.0
    assert distance(5, 5) == distance(0, 0) == distance(4, 5) == 0.0
    assert distance(100, 80) == pytest.approx(0.2) and distance(3, 0) == 1.0


def test_primal_integral_by_hand() -> None:
    """Gap 1 for 2 s, 0.5 for 3 s, 0 for 5 s."""
    run = [(2.0, 200.0), (5.0, 100.0)]
    assert primal_integral(run, 100.0, 10.0) == pytest.approx(2 + 0.5 * 3)
    assert primal_integral([], 100.0, 10.0) == 10.0
    assert primal_integral([(12.0, 100.0)], 100.0, 10.0) == 10.0
    assert time_to(run, 100.0) == 5.0 and time_to(run, 100.0, 0.5) == 2.0 and time_to(run, 50.0) == math.inf
    assert gap_at(run, 100.0, np.array([0.0, 1.9, 2.0, 6.0])).tolist() == [1.0, 1.0, 0.5, 0.0]


def test_the_integral_is_the_area_of_the_curve() -> None:
    """Random step curves against a fine sum."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        k = int(rng.integers(1, 6))
        run = list(zip(np.sort(rng.random(k) * 8), -np.sort(-rng.random(k) * 90 - 10), strict=True))
        times = (np.arange(20000) + 0.5) / 2000
        assert primal_integral(run, 10.0, 10.0) == pytest.approx(
            gap_at(run, 10.0, times).mean() * 10, abs=5e-3
        )


def test_shifted_geometric_mean() -> None:
    """By hand, exactly 0 of zeros, nothing of nothing; and its interval holds it."""
    assert shifted_geometric_mean([1.0, 7.0], 1.0) == pytest.approx(3.0)
    assert shifted_geometric_mean([0.0, 0.0], 0.01) == 0.0 and shifted_geometric_mean([], 1.0) is None
    values = np.random.default_rng(2).random(40).tolist()
    low, high = interval(values, 0.01) or (0, 0)
    assert low < (shifted_geometric_mean(values, 0.01) or 0) < high and interval([1.0, 2.0], 1.0) is None


def test_performance_profile_by_hand() -> None:
    """Three tasks, one that nobody solves and one with cost 0."""
    inf = math.inf
    costs = np.array([[1.0, 0.0, inf, 4.0], [2.0, 3.0, inf, 4.0]])
    (x, y), (u, v) = profile(costs)
    assert x.tolist() == [1.0] and y.tolist() == [0.75]
    assert u.tolist() == [1.0, 2.0] and v.tolist() == [0.25, 0.5]
    (x, y), _ = profile(np.array([[inf], [1.0]]))
    assert x.tolist() == [1.0] and y.tolist() == [0.0]


def test_sign_test() -> None:
    """Against the binomial distribution by hand."""
    assert sign_test(0, 0) == 1.0 and sign_test(3, 3) == 1.0
    assert sign_test(5, 0) == pytest.approx(2 / 32) and sign_test(1, 4) == pytest.approx(12 / 32)


# ---- store --------------------------------------------------------------------------------------------------


def test_a_run_is_kept_once_and_comes_back_whole(tmp_path: Path) -> None:
    """Numbers exactly, events too; a second row for the same run changes nothing; other keys are other runs."""
    kept = replace(outcome(0.1 + 0.2, bound=1 / 3), engines=(("anneal", "done"),))
    store = Store(tmp_path / "r.sqlite")
    store.add(KEY, kept)
    store.add(KEY, outcome(5.0))
    store.add(replace(KEY, version="0+1"), outcome(7.0))
    store.close()
    store = Store(tmp_path / "r.sqlite")
    assert store.find([KEY, replace(KEY, seed=2)]) == {KEY: kept} and store.count() == 2
    store.close()


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (
            ["CREATE TABLE about (name TEXT, value TEXT)", "INSERT INTO about VALUES ('format', 'old')"],
            "format 'old'",
        ),
        (["CREATE TABLE other (x)"], "a store with no format"),
    ],
)
def test_a_store_of_another_format_is_refused(tmp_path: Path, statements: list[str], message: str) -> None:
    """The message names the format found."""
    with sqlite3.connect(tmp_path / "r.sqlite") as db:
        for statement in statements:
            db.execute(statement)
    with pytest.raises(InputError, match=message):
        Store(tmp_path / "r.sqlite")


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    """Any other file under that name, and a row that was damaged."""
    (tmp_path / "x.sqlite").write_text("no database at all, but long enough to be read as one" * 20)
    with pytest.raises(InputError, match="not a benchmark store"):
        Store(tmp_path / "x.sqlite")
    store = Store(tmp_path / "r.sqlite")
    store.add(KEY, outcome(5.0))
    for change in ("events = '[[1'", "events = NULL", "engines = 7", "objective = 1e999", "wall = 'long'"):
        with sqlite3.connect(tmp_path / "r.sqlite") as db:
            db.execute(f"UPDATE runs SET {change}")
        with pytest.raises(InputError, match="auto on a, seed 1, is damaged"):
            store.find([KEY])
    store.close()


def test_a_store_with_damaged_bytes_is_refused_or_harmless(tmp_path: Path) -> None:
    """Bytes overwritten anywhere, files cut: nothing but InputError comes out of a store."""
    store = Store(tmp_path / "whole.sqlite")
    store.add(KEY, outcome(5.0))
    store.close()
    whole = (tmp_path / "whole.sqlite").read_bytes()
    rng = np.random.default_rng(5)
    refused = 0
    for trial in range(150):
        data = np.frombuffer(whole, np.uint8).copy()
        data[rng.integers(0 if trial % 3 else 90, len(data), 100)] = rng.integers(0, 256, 100)
        path = tmp_path / f"{trial}.sqlite"
        path.write_bytes(data[: int(rng.integers(len(data)))] if trial % 7 == 0 else data)
        try:
            damaged = Store(path)
            damaged.find([KEY])
            damaged.count()
            damaged.close()
        except InputError as error:
            refused += 1
            assert "\n" not in str(error) and path.name in str(error)
    assert 50 < refused < 150


# ---- suites -------------------------------------------------------------------------------------------------


def loaded(suite: str, only: str | None, keep: Path, **options: str) -> list[Instance]:
    """The instances of a suite of mappings."""
    return load_suite(find_suite(suite, None), only, options, keep)


def folder(tmp_path: Path, table: str | None = None) -> Path:
    """Two QAPLIB files of size 3."""
    out = tmp_path / "own"
    out.mkdir()
    for name, weight in (("b", 7), ("a", 3)):
        (out / f"{name}.dat").write_text(DAT.format(weight))
    if table is not None:
        (out / "best_known.csv").write_text(table)
    return out


def test_the_shipped_suite_has_its_best_known_values(tmp_path: Path) -> None:
    """nug12 to sko100a, each with its machine."""
    shipped = {i.name: i for i in loaded("qaplib", None, tmp_path)}
    assert len(shipped) == 12 and shipped["nug12"].best_known == 578
    assert shipped["sko100a"].problem.sizes == {"nodes": 100, "cores": 100}
    assert all(i.best_known is not None for i in shipped.values())


def test_generated_suites_are_the_same_every_time(tmp_path: Path) -> None:
    """Same hash twice, and the file that runs read is the same problem."""
    once, again = (loaded("mesh", "comm-64,geo-100", tmp_path / d)[0] for d in "xy")
    assert (
        once.name == "comm-64" and once.problem.hash == again.problem.hash and once.options != again.options
    )
    (cut,) = loaded("snn", "snn-2k-cut", tmp_path)
    assert cut.problem.objective == "cut" and cut.problem.sizes["cores"] == 16


def test_a_folder_is_a_suite(tmp_path: Path) -> None:
    """In order of name, with the table beside them."""
    own = folder(tmp_path, "instance,n,best_known\nb,3,14\n")
    a, b = loaded(str(own), None, tmp_path)
    assert (a.suite, a.name, a.best_known, b.best_known) == ("own", "a", None, 14.0)
    (b,) = loaded(str(own), "b*", tmp_path, machine="mesh:2x2", objective="cut")
    assert b.problem.sizes["cores"] == 4 and b.problem.objective == "cut"


def test_instances_of_the_same_name_do_not_hide_one_another(tmp_path: Path) -> None:
    """Two files with the same stem are refused by name; each alone is an instance, as is a folder with one of them."""
    own = folder(tmp_path)
    (own / "a.graph").write_text("2 1\n2\n1\n")
    with pytest.raises(InputError, match=r"two instances are called a: a\.dat and a\.graph"):
        loaded(str(own), None, tmp_path)
    (alone,) = loaded(str(own / "a.graph"), None, tmp_path, machine="mesh:2x2")
    assert alone.name == "a" and alone.problem.sizes["nodes"] == 2
    (own / "a.dat").unlink()
    assert [i.name for i in loaded(str(own), None, tmp_path, machine="mesh:2x2")] == ["a", "b"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("name,best\na,3\n", "best_known.csv:1: a column is missing"),
        ("name,best_known\na\n", "best_known.csv:2: 1 columns; expected 2"),
        ("name,best_known\na,x\n", "best_known.csv:2: the best known value of a is 'x'"),
        ("name,best_known\n\na,1\na,-1\n", "best_known.csv:4: a is listed twice"),
        ("name,best_known\na,nan\n", "is 'nan'"),
        ("", "best_known.csv:1: a column is missing"),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(tmp_path: Path, table: str, message: str) -> None:
    """Nothing is skipped silently."""
    with pytest.raises(InputError) as caught:
        loaded(str(folder(tmp_path, table)), None, tmp_path)
    assert message in str(caught.value)


def test_wrong_suites_are_refused_in_words(tmp_path: Path) -> None:
    """Unknown names get a suggestion; empty folders, patterns that hit nothing, machines for built-in suites."""
    for suite, only, options, message in (
        ("qaplb", None, {}, "did you mean qaplib"),
        (str(tmp_path), None, {}, "no instances"),
        ("qaplib", "nug99", {}, "no instance is called 'nug99'"),
        ("mesh", None, {"machine": "mesh:2x2"}, "suite mesh has its own machines"),
    ):
        with pytest.raises(InputError, match=message):
            loaded(suite, only, tmp_path / "keep", **options)


# ---- tables -------------------------------------------------------------------------------------------------


@pytest.fixture
def summary(tmp_path: Path) -> Summary:
    """Two instances, two methods, two seeds: ``good`` finds 10 and (once) a new best 18, ``poor`` fails half the time."""
    instances: list[Instance] = loaded(str(folder(tmp_path, "name,best_known\na,10\nb,20\n")), None, tmp_path)
    runs = {
        ("a", "good", 1): outcome(10.0, bound=8.0, at=2.0),
        ("a", "good", 2): outcome(10.0, bound=9.0, at=4.0),
        ("a", "poor", 1): outcome(12.5, at=2.0),
        ("a", "poor", 2): outcome(None),
        ("b", "good", 1): outcome(18.0),
        ("b", "good", 2): outcome(20.0),
        ("b", "poor", 1): outcome(None),
        ("b", "poor", 2): Outcome("failed", "killed by SIGSEGV"),
    }
    found = {replace(KEY, suite="own", instance=i, method=m, seed=s): o for (i, m, s), o in runs.items()}
    found[replace(KEY, suite="other", instance="a", method="good")] = outcome(1.0)
    return summarise("own", instances, ["good", "poor"], found, 10.0)


def test_unsolved_runs_are_counted_and_never_averaged(summary: Summary) -> None:
    """``poor`` has one solved run of four, with gap (12.5 - 10) / 12.5; its failures have their own table."""
    methods, instances, duels, unsolved = summary.quality
    good, poor = methods.rows
    assert good[1:4] == ("4", "4", "0") and good[6:8] == ("3/4", "3/4")
    assert (good[9], poor[9]) == ("15.00 %", "-")  # of the two runs with a bound, 8 and 9 below 10
    assert poor[1:5] == ("4", "1", "3", "20.00 %") and poor[8] == "28.00 %"  # (12.5 - 9) / 12.5
    assert instances.rows[0][4:] == ("10", "10", "9", "10.00 %", "0.00 % (2/2)", "20.00 % (0/2)")
    assert instances.rows[1][4:] == ("20", "18 new", "-", "-", "5.00 % (1/2)", "-")
    assert duels.rows == (("good", "", "2/0/0 (p 0.5)"), ("poor", "0/0/2 (p 0.5)", ""))
    assert unsolved.rows == (
        ("a", "poor", "unknown: nothing found", "1 of 2"),
        ("b", "poor", "unknown: nothing found", "1 of 2"),
        ("b", "poor", "failed: killed by SIGSEGV", "1 of 2"),
    )


def test_times_are_of_solved_runs(summary: Summary) -> None:
    """Only one run of ``poor`` counts: its last mapping after 2 s, gap 60 % for 1 s and 20 % for 8 s."""
    ((_, *good), (_, *poor)) = summary.times[0].rows
    assert poor[:4] == ["2.00", "0/1", "-", f"{1 + 0.6 + 8 * 0.2:.2f}"] and good[1] == "3/4"


def test_pages_are_whole_and_repeatable(summary: Summary) -> None:
    """Markdown and HTML with all tables and three pictures; the same runs give the same bytes."""
    head = Head("nmsolve bench own", "0+0", "box", 10.0, 2, 1)
    assert all(len(row) == len(t.head) for t in (*summary.quality, *summary.times) for row in t.rows)
    text, page = markdown(head, [summary]), html(head, [summary])
    for words in (
        "### Methods",
        "| good | 4 | 4 | 0 |",
        "18 new",
        "### Unsolved",
        "killed by SIGSEGV",
        "### Times",
    ):
        assert words in text
    assert page.count("<svg") == 3 and "18 new" in page and "http" not in page.split("<svg")[0]
    assert (text, page) == (markdown(head, [summary]), html(head, [summary]))
