"""What the functions return: a result that can be saved, checked, drawn and made into a table."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nmsolve.kinds.answer import prepare_folder
from nmsolve.kinds.check import checked
from nmsolve.kinds.parts import CheckPart
from nmsolve.kinds.verbs import VerifyOptions
from nmsolve.kinds.verdict import label, words_behind
from nmsolve.model.bound import Result
from nmsolve.model.errors import BackendError, InputError
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.solvers.run import RunOptions

S = TypeVar("S")
AnswerT = TypeVar("AnswerT", bound="Answer[Any]")


@dataclass(frozen=True, repr=False)
class Verification:
    """What independent checks of an answer found. It is true if none of them failed.

    Attributes
    ----------
    checks : each with ``name``, ``ok``, ``text`` and ``word``: the solver on whose word it rests, "" where it was recomputed
    """

    checks: tuple[CheckPart, ...]

    @property
    def ok(self) -> bool:
        """True if no check failed."""
        return all(check.ok for check in self.checks)

    @property
    def words(self) -> tuple[str, ...]:
        """The solvers, or the report, on whose word rests what is claimed in the end; empty if all of it was recomputed."""
        return tuple(words_behind(self.checks))

    def __repr__(self) -> str:
        """Return the checks as ``nmsolve verify`` prints them."""
        return "\n".join(f"{label(c):7} {c.name:24} {c.text}" for c in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def to_dataframe(self) -> Any:
        """Return a row per check. BackendError without pandas."""
        return table(
            {name: [getattr(c, name) for c in self.checks] for name in ("name", "ok", "text", "word")}
        )


def verified(
    answer: Path, graph: Path | None = None, machine: str | None = None, **more: Any
) -> Verification:
    """Check a folder or file of any command. InputError for files that cannot be read, or of different runs."""
    return Verification(tuple(checked(VerifyOptions(answer, graph, machine, **more))))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Answer(Result[S]):
    """A result of one of the functions, with what it takes to write it down: what the commands leave in their folders."""

    def __repr__(self) -> str:
        """Return what is claimed, in a line."""
        claimed = f"{self.objective_name} {number(self.objective)}, bound {number(self.bound)}, gap {percent(self.gap)}"
        return f"{type(self).__name__}({self.status}: {claimed}; stopped: {self.stop_reason})"

    def _repr_html_(self) -> str:
        """Return what is claimed, as a table for notebooks."""
        rows = {
            "status": f"{self.status} (stopped: {self.stop_reason})",
            self.objective_name: number(self.objective),
            "bound": number(self.bound),
            "gap": percent(self.gap),
        }
        cells = (f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
        return f"<table><caption>{type(self).__name__}</caption>{''.join(cells)}</table>"

    def _require_files(self) -> None:
        """Refuse to be saved if something that stated the problem has no form as a file."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write all files of the answer into an existing folder."""

    def save(self, folder: str | Path) -> Path:
        """Write the folder that the command writes: answer, certificates, events, report and page. Return the folder.

        What stated the problem is named by its file; what came as an object is written to ``inputs/``. The files of an earlier
        run in the folder are replaced.

        Raises
        ------
        InputError : the folder cannot be written, or something that stated the problem has no form as a file
        """
        self._require_files()
        out = Path(folder)
        prepare_folder(out)
        self._write(out.resolve())
        return out

    def verify(self, *, bound: bool = True) -> Verification:
        """Write the answer to a temporary folder and check it from its files alone (:func:`nmsolve.verify`)."""
        with tempfile.TemporaryDirectory() as folder:
            return verified(self.save(folder), bound=bound)

    @abstractmethod
    def bounded(self: AnswerT, how: RunOptions, objective: str | None = None) -> AnswerT:
        """Return this answer with the bounds that a run finds, or of another ``objective`` where the kind can; it stays as it is.

        Raises
        ------
        InputError : without a solution, or an objective that the answer is not about
        """

    def recomputed(self) -> Mapping[str, float]:
        """Return every objective by name, recomputed; {} without a solution."""
        return dict(self.scores)

    @abstractmethod
    def to_dataframe(self) -> Any:
        """Return the answer as a table of pandas.

        Raises
        ------
        BackendError : pandas is not installed
        """

    @abstractmethod
    def plot(self, kind: str = "convergence") -> Figure:
        """Return a picture; ``kind`` is one of those that the class names."""


def values_of(result: Result[Any]) -> dict[str, Any]:
    """Return the fields of a result, for the constructor of an :class:`Answer`."""
    return {f.name: getattr(result, f.name) for f in fields(Result)}


def table(columns: Mapping[str, Iterable[Any]]) -> Any:
    """Return a pandas table of these columns.

    Raises
    ------
    BackendError : pandas is not installed
    """
    try:
        import pandas
    except ImportError:
        raise BackendError("tables need pandas: pip install pandas") from None
    return pandas.DataFrame({name: list(values) for name, values in columns.items()})


def started_from(start: Any, kind: type[S], file: str, read: Callable[[Path], S]) -> S | None:
    """Return the solution to start from: of an answer, of a ``file`` or the folder that holds it, or itself.

    Raises
    ------
    InputError : it is no such solution, or ``read`` refuses the file
    """
    if isinstance(start, str | Path):
        path = Path(start)
        return read(path / file if path.is_dir() else path)
    found = start.solution if isinstance(start, Answer) else start
    if found is not None and not isinstance(found, kind):
        raise InputError(
            f"the start is a {type(start).__name__}", "warm_start", f"an answer, a file or a {kind.__name__}"
        )
    return found


def drawn(
    kind: str, kinds: Mapping[str, Callable[[], Figure]], more: Mapping[str, tuple[Any, tuple[Any, ...]]] | None = None
) -> Figure:  # fmt: skip
    """Return the picture ``kind``. InputError for one that is not among ``kinds`` and the drawings ``more`` of a page."""
    every: dict[str, Callable[[], Figure]] = {
        **kinds,
        **{name: partial(draw.figure, *what) for name, (draw, what) in (more or {}).items()},
    }
    if kind not in every:
        raise InputError(f"unknown kind of picture {kind!r}", "", "one of " + ", ".join(every))
    return every[kind]()
