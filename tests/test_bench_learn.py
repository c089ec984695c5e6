"""``nmsolve bench learn``: what tables say, which rows are kept, and bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmsolve.kinds.mapping.learned import published
from nmsolve.kinds.mapping.learned.parts import PARTS
from nmsolve.kinds.mapping.learned.run import BEGIN, END, run_bench_learn
from nmsolve.kinds.mapping.learned.suite import HELD_OUT, Row, Suite
from nmsolve.kinds.mapping.learned.table import gains
from nmsolve.kinds.mapping.options import BenchLearnOptions
from nmsolve.model.errors import InputError


def rows(per_graph: dict[tuple[str, int], list[float]]) -> list[Row]:
    """Rows of the rival "learned" with these gains, by seed."""
    return [
        Row("s", family, graph, seed, "learned", gain)
        for (family, graph), some in per_graph.items()
        for seed, gain in enumerate(some, 1)
    ]


def test_seeds_of_a_graph_are_averaged_before_anything_else() -> None:
    """One graph with many good seeds does not outvote others; the held-out family does not enter the mean."""
    (one,) = gains(
        rows({("geo", 1): [0.4] * 6, ("geo", 2): [0.0], ("comm", 3): [-0.1], (HELD_OUT, 4): [0.9]})
    )
    assert one.mean == pytest.approx(0.1) and one.graphs == 4
    assert (
        one.worst[0] == "comm" and one.worst[1] == pytest.approx(-0.1) and one.held_out == pytest.approx(0.9)
    )
    assert (one.lost, one.runs) == (1, 9)


@pytest.mark.parametrize(
    ("seen", "unseen", "ships"),
    [
        ([0.02, 0.03, 0.04], [0.0], True),
        ([0.02, 0.03, 0.04], [-0.004], True),
        ([0.02, 0.03, 0.04], [-0.006], False),
        ([0.02, 0.03, -0.04], [0.1], False),
        ([0.02, 0.03], [0.1], False),
    ],
)
def test_the_rule_for_a_default(seen: list[float], unseen: list[float], ships: bool) -> None:
    """The interval lies above 0 with at least three graphs, and the family held out loses less than 0.5 %."""
    graphs = {("geo", k): [gain] for k, gain in enumerate(seen)} | {
        (HELD_OUT, k): [gain] for k, gain in enumerate(unseen)
    }
    assert gains(rows(graphs))[0].ships is ships
    assert not gains(rows({k: v for k, v in graphs.items() if k[0] != HELD_OUT}))[0].ships


def test_finished_graphs_are_kept_and_tables_go_between_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interrupted at the third graph, the command goes on from there; other text of the page stays."""
    asked = []

    def compare(suite: Suite) -> Iterator[Row]:
        asked.append(suite.families[0])
        if len(asked) == 3:
            raise KeyboardInterrupt
        yield Row("s", suite.families[0], suite.first, 1, "learned", 0.01)

    monkeypatch.setattr(published, "compare", compare)
    page = tmp_path / "page.md"
    page.write_text(f"above\n{BEGIN}\nstale rows\n{END}\nbelow\n")
    o = BenchLearnOptions(["published"], graphs=4, seeds=1, out=tmp_path / "kept", page=page, json=True)
    assert run_bench_learn(o) == 130 and "stale rows" in page.read_text()
    assert run_bench_learn(o) == 0 and asked == ["geo", "comm", "layered", "layered", "rnd"]
    text = page.read_text()
    assert text.startswith(f"above\n{BEGIN}\n") and text.endswith(f"{END}\nbelow\n")
    assert "stale rows" not in text and "+1.00 %" in text
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found[-1]["ships"] and found[-1]["mean"] == pytest.approx(0.01)
    for file in (tmp_path / "kept" / "published").iterdir():
        file.write_text('[{"a": 1}]')
    with pytest.raises(InputError, match="damaged rows"):
        run_bench_learn(o)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": ["magic"]}, "unknown part 'magic'"),
        ({"graphs": 3}, "3 graphs"),
        ({"page": "plain.md"}, "no place for the tables"),
        ({"page": "no/such/page.md"}, "no such folder"),
    ],
)
def test_bad_options_are_refused_before_any_run(
    options: dict[str, object], message: str, tmp_path: Path
) -> None:
    """Nothing is written either."""
    (tmp_path / "plain.md").write_text("plain")
    if "page" in options:
        options = {"page": tmp_path / str(options["page"])}
    with pytest.raises(InputError, match=message):
        run_bench_learn(BenchLearnOptions(out=tmp_path / "out", **options))  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", PARTS)
def test_every_part_has_its_module_and_models(name: str) -> None:
    """A part's module compares, and names of models are those of the package."""
    from nmsolve.learn.checkpoint import METHODS

    assert callable(PARTS[name].compare(name)) and set(PARTS[name].models) <= set(METHODS)


def test_a_network_that_has_learned_nothing_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison of method M1 is paired: the same network on both sides gives gains of 0."""
    from nmsolve.learn.checkpoint import Checkpoint
    from nmsolve.learn.mapping.engine import m1_model
    from nmsolve.learn.mapping.policy import first_arrays

    _, size = m1_model()
    blank = Checkpoint("m1", first_arrays(size, 0), {})
    monkeypatch.setattr(published, "m1_model", lambda: (blank, size))
    found = list(published.compare(Suite(families=("geo",), graphs=1, seeds=1)))
    assert [r.gain for r in found if r.rival == "learned"] == [0.0, 0.0]
    assert all(r.gain < -0.2 for r in found if r.rival == "random")
