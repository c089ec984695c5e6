"""What all pictures share: colours, a bare figure in the report's style, the board, SVG text without timestamps or random ids."""

from __future__ import annotations

import io
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, update_wrapper
from importlib import import_module
from importlib.util import cache_from_source, find_spec
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias

import numpy as np

from nmsolve.model import clock
from nmsolve.model.host.folders import place_fonts
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray
from nmsolve.report.figures import SCALES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.ticker import Formatter

place_fonts()  # before anybody imports matplotlib

#: Okabe-Ito colours: distinguishable with any colour vision.
PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#444444", "#b2b200", "#7f3fbf",
)  # fmt: skip
INK, FAINT, EMPTY = "#222222", "#bbbbbb", "#f0f0f0"


#: A figure, and what it shows in words.
Drawn: TypeAlias = "tuple[Figure, str]"
P = ParamSpec("P")


def import_what_draws() -> None:
    """Import matplotlib. Where Python compiles it first, as after an installation, the clock does not count these seconds."""
    if "matplotlib.backends.backend_svg" in sys.modules:
        return
    spec = find_spec("matplotlib")
    source = (
        "" if spec is None or spec.origin is None else os.path.join(os.path.dirname(spec.origin), "figure.py")
    )
    ready = os.path.exists(cache_from_source(source))
    if not ready:
        clock.hold()
    try:
        import_module("matplotlib.figure")
        import_module("matplotlib.backends.backend_svg")
    finally:
        if not ready:
            clock.go_on()


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one drawing; sizes in inches."""
    figure, axes = new_panels(width, height, 1, 1)
    return figure, axes[0]


def new_panels(width: float, height: float, rows: int, cols: int) -> tuple[Figure, list[Axes]]:
    """Return a bare figure (no pyplot, no global state) in the report's style, with ``rows * cols`` drawings, row by row."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as NewFigure

    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "nmsolve",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.size": 9,
            "axes.edgecolor": FAINT,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    figure = NewFigure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasSVG(figure)
    axes: Any = figure.subplots(rows, cols, squeeze=False)
    return figure, list(axes.flat)


def svg_text(figure: Figure, label: str) -> str:
    """SVG text without XML header and date, with an accessible label."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": label})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


#: What stands in place of a picture for which there was no time.
NOT_DRAWN = "<p>Not drawn for lack of time; <code>nmsolve draw</code> makes pictures of an answer.</p>"
_drawn = True
#: Pictures that are drawn once the text of their page is there, by what stands in their places; None: they are drawn at once.
_later: dict[str, Callable[[], str]] | None = None


@contextmanager
def without_pictures() -> Iterator[None]:
    """While active, pictures are left out of pages: :data:`NOT_DRAWN` stands in their place."""
    global _drawn
    before, _drawn = _drawn, False
    try:
        yield
    finally:
        _drawn = before


def drawn_one_by_one(render: Callable[[], str]) -> Iterator[str]:
    """Yield the page that ``render`` makes without its pictures, then with one more of them each time."""
    global _later
    before, _later = _later, {}
    try:
        page, pictures = render(), _later
    finally:
        _later = before
    shown = dict.fromkeys(pictures, NOT_DRAWN)
    yield _filled(page, shown)
    for mark, draw in pictures.items():
        shown[mark] = draw()
        yield _filled(page, shown)


def _filled(page: str, shown: dict[str, str]) -> str:
    for mark, picture in shown.items():
        page = page.replace(mark, picture)
    return page


class Picture(Generic[P]):
    """A drawing: as SVG text when it is called, as a figure to show, change or save in another form by :meth:`figure`."""

    def __init__(self, draw: Callable[P, Drawn]) -> None:
        self._draw = draw
        update_wrapper(self, draw)

    def __call__(self, *args: P.args, **more: P.kwargs) -> str:
        """Return SVG text; :data:`NOT_DRAWN` inside :func:`without_pictures`, a mark where it is :func:`drawn_one_by_one`."""
        if not _drawn:
            return NOT_DRAWN
        if _later is None:
            return self._svg(*args, **more)
        mark = f"picture-{secrets.token_hex(8)}"
        _later[mark] = partial(self._svg, *args, **more)
        return mark

    def _svg(self, *args: P.args, **more: P.kwargs) -> str:
        import_what_draws()
        import matplotlib

        with matplotlib.rc_context():
            return svg_text(*self._draw(*args, **more))

    def figure(self, *args: P.args, **more: P.kwargs) -> Figure:
        """Return the figure; whatever style is set otherwise stays as it is."""
        import matplotlib

        with matplotlib.rc_context():
            return self._draw(*args, **more)[0]


#: A picture, and what it is drawn from.
Drawable: TypeAlias = "tuple[Picture[Any], tuple[Any, ...]]"


def svg_of(drawable: Drawable) -> str:
    """Return SVG text."""
    draw, what = drawable
    return draw(*what)


def draw_board(ax: Axes, machine: Machine) -> None:
    """Draw chip boundaries; equal axes, row 0 at the top."""
    from matplotlib.ticker import MaxNLocator

    rows, cols = machine.rows, machine.cols
    ax.set(xlim=(-0.6, cols - 0.4), ylim=(rows - 0.4, -0.6), aspect="equal", xlabel="column", ylabel="row")
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    if machine.n_chips > 1:
        for r in range(0, rows + 1, machine.cores[0]):
            ax.plot([-0.5, cols - 0.5], [r - 0.5, r - 0.5], color=INK, lw=1.2)
        for c in range(0, cols + 1, machine.cores[1]):
            ax.plot([c - 0.5, c - 0.5], [-0.5, rows - 0.5], color=INK, lw=1.2)


def core_heat(ax: Axes, machine: Machine, amount: FloatArray, top: float) -> AxesImage:
    """Draw a heat map of an amount (cores,) >= 0 from 0 to ``top``; grey where there is none."""
    from matplotlib import colormaps

    grid = np.where(machine.usable & (amount > 0), amount, np.nan).reshape(machine.rows, machine.cols)
    colours = colormaps["viridis"].with_extremes(bad=EMPTY)
    image = ax.imshow(grid, cmap=colours, vmin=0, vmax=top, interpolation="nearest")
    draw_board(ax, machine)
    return image


def board_size(machine: Machine) -> tuple[float, float]:
    """Return the size in inches that suits the board's shape: the mesh takes what colour bar and labels leave."""
    bar, labels, widest, highest = 1.2, 0.7, 3.9, 5.6
    inch = min(widest / machine.cols, highest / machine.rows)
    return inch * machine.cols + bar, max(1.6, inch * machine.rows + labels)


def scaled(unit: str) -> tuple[float, Formatter]:
    """Return what figures are multiplied by, and the labels of their axis: ``1.2 ms`` for ``ps``; 12k where there is no unit."""
    from matplotlib.ticker import EngFormatter

    return (1e-12, EngFormatter(unit=unit[1:])) if unit in SCALES else (1.0, plain_labels())


def plain_labels() -> Formatter:
    """Return labels of figures without a unit: 12k and 3M, but 0.8 and not 800m."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    large = EngFormatter(sep="")
    return FuncFormatter(lambda value, _: large(value) if abs(value) >= 1000 else f"{value:g}")


def amounts(top: float) -> Formatter:
    """Return labels of an axis or colour bar up to ``top``: 12k and 3M for large amounts, plain figures else."""
    from matplotlib.ticker import ScalarFormatter

    return plain_labels() if top >= 1000 else ScalarFormatter()
