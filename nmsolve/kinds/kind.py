"""What commands and functions may ask of a kind of problem, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from nmsolve.kinds.loading import load_stages, read_certificates
from nmsolve.model.errors import InputError
from nmsolve.report.figures import number

if TYPE_CHECKING:
    import msgspec
    from matplotlib.figure import Figure

    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.loading import Held
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.verbs import DrawOptions, GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.model.bound import Bound, Stage
    from nmsolve.solvers.search.conflict import Limits

#: Options that say how the file of a graph is read.
OF_GRAPHS = ("nodes", "multicast", "pattern", "absolute")
#: Pictures of an answer, by name.
Pictures: TypeAlias = "dict[str, Callable[[], Figure]]"


class Scores(NamedTuple):
    """All objectives of an answer: as a row of JSON, whose ``scores`` they are, and as lines for people."""

    row: dict[str, Any]
    lines: list[str]


def plain_scores(names: Mapping[str, str], scores: dict[str, float]) -> Scores:
    """Return objectives without units; ``names``: of graph and machine."""
    row = {"type": "scores", **names, "scores": scores}
    return Scores(row, [f"{name:16} {number(value):>20}" for name, value in scores.items()])


class Explainable(NamedTuple):
    """Limits that may conflict, and how a solution or a conflict is told.

    Attributes
    ----------
    names : of problem and machine, as JSON has them
    subject, done : ``subject`` can or cannot be ``done``: "scheduled"
    noun : of a solution: "schedule"
    second : what the program does that confirms a conflict
    describe : a solution in words
    write : writes the file of a solution
    """

    limits: Limits[Any]
    names: dict[str, str]
    subject: str
    done: str
    noun: str
    second: str
    describe: Callable[[Any], str]
    write: Callable[[Path, Any], None]


@dataclass(frozen=True)
class Start:
    """Where a search starts that continues an earlier run.

    Attributes
    ----------
    answer : its file
    stays : the answer is kept as it is, and only bounds are raised (``nmsolve gap``)
    before : objectives that were minimised first, with the values that they stay held at; none of a run that minimises them anew
    """

    answer: Path
    stays: bool = False
    before: tuple[Held, ...] = ()

    def known(self, proofs: str, about: str) -> list[tuple[str, Bound]]:
        """Return every bound of a certificate file beside the answer with its objective, none of a file about another problem.

        ``about`` : hash of the problem
        """
        path = self.answer.parent / proofs
        if not path.exists():
            return []
        said, bounds = read_certificates(path)
        return bounds if said == about else []

    def stages(self, proofs: str) -> list[Stage]:
        """Return the problems of the objectives before with their bounds, from a certificate file beside the answer."""
        path = self.answer.parent / proofs
        return load_stages(path) if self.before and path.exists() else []


class Kind(ABC):
    """A kind of problem: one object of a class of its own in ``kinds/<kind>/kind.py``, listed in ``kinds/registry.py``.

    Attributes
    ----------
    name : of its command, and ``command`` in its reports
    noun : what is looked for: "schedule"
    answer, report, proofs, page : names of the files of a run
    files : patterns of the names of all files that a run may leave
    options : of its command, a dataclass
    inputs : the struct that states a problem, as ``inputs`` of reports; None: these are options
    method_tables : where methods of its bounds are, ``module:name`` below ``nmsolve``
    """

    name: ClassVar[str]
    noun: ClassVar[str]
    answer: ClassVar[str]
    report: ClassVar[str] = "report.json"
    page: ClassVar[str] = "report.html"
    proofs: ClassVar[str] = "certificates.json"
    files: ClassVar[Sequence[str]]
    options: ClassVar[type[Any]]
    inputs: ClassVar[type[msgspec.Struct] | None] = None
    method_tables: ClassVar[Sequence[str]]

    @property
    def a(self) -> str:
        """The noun with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"

    @abstractmethod
    def run(self, o: Any, start: Start | None = None) -> int:
        """Run the command, from an earlier run where there is a ``start``; return the exit code.

        Raises
        ------
        InputError : anything wrong with the input; before any search
        """

    @abstractmethod
    def answer_of(self, path: Path, source: Path | None = None) -> Path | None:
        """Return the answer that ``path``, a file or the folder of a run, is about; None if it is about something else.

        ``source`` : the file of a problem, which tells of which kind a file of any name is
        """

    @abstractmethod
    def again(self, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return options that a report in ``folder`` holds by another name or in another form, from its ``inputs``."""

    @abstractmethod
    def gap(self, path: Path, o: GapOptions) -> int:
        """Raise the bound of an answer, which stays as it is; return the exit code. InputError for anything wrong."""

    @abstractmethod
    def verify(self, path: Path, o: VerifyOptions) -> list[CheckPart]:
        """Return every check of an answer, from its files alone. InputError for files that cannot be read."""

    @abstractmethod
    def score(self, path: Path, o: ScoreOptions) -> Scores:
        """Return every objective of an answer, recomputed. InputError where it breaks a rule."""

    @abstractmethod
    def pictures(self, path: Path, o: DrawOptions) -> Pictures:
        """Return the pictures of an answer by name. InputError for files that cannot be read."""

    @abstractmethod
    def front_of(self, path: Path, objectives: Sequence[str], first: str, o: VerifyOptions) -> FrontKind:
        """Return the front in pareto.json at ``path``, its problem stated again from the ``inputs`` in it.

        ``first`` : name of the file of its first point

        Raises
        ------
        InputError : a file that they name is missing or wrong, or options that are not for this kind
        """

    @abstractmethod
    def front_inputs(
        self, path: Path, inputs: dict[str, Any], objectives: tuple[str, str]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return the ``inputs`` of a front as they would be written again, and which of them state no problem."""

    @abstractmethod
    def explained(self, o: Any) -> Explainable:
        """Return the limits of the problem that options of ``nmsolve explain`` state. InputError for anything wrong."""


def refuse(given: Mapping[str, object], what: str, expected: str = "none", where: str = "") -> None:
    """Raise InputError for the first of these options that has a value, at its name or ``where``."""
    for option, value in given.items():
        if value is not None and value is not False:
            raise InputError(what, where or option, expected)


def refuse_of_mappings(path: Path, o: VerifyOptions) -> None:
    """Raise InputError for an option of ``nmsolve verify`` that states a mapping's problem; ``path`` is about something else."""
    names = (
        "machine",
        "chips",
        "placement",
        "constraints",
        "balance",
        "prohibit_turns",
        "routes",
        *OF_GRAPHS,
    )
    expected = "at most --graph: the report has the rest"
    refuse({name: getattr(o, name) for name in names}, "options for mappings only", expected, str(path))
