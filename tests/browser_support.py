"""A headless Chromium for tests of pages: the system's own (`apt-get install chromium`), driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: No window, no sandbox (tests run as root), nothing that asks the network by itself.
ARGUMENTS = [
    f"--{word}"
    for word in (
        "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
        "disable-component-update", "disable-sync",
    )
]  # fmt: skip


def chromium() -> Iterator[Any]:
    """Yield a browser; skip with how to install what is missing."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="no browser tests: pip install -c constraints.txt playwright"
    )
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no browser tests: install Chromium, e.g. apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


class Opened:
    """A page in the browser. What it asks for beside itself and what it says on the console fail :meth:`close`."""

    def __init__(
        self, browser: Any, path: Path, width: int = 1400, scheme: str = "light", part: str = "explorer"
    ) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.said.append(m.text))
        self.page.on("pageerror", lambda e: self.said.append(str(e)))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.url = path.as_uri()
        self.page.goto(self.url)
        self.page.wait_for_selector(f"#{part}[data-ready=yes]", timeout=10_000)

    def close(self) -> None:
        """Check that nothing was said and nothing was asked for."""
        self.context.close()
        assert self.said == [] and self.asked == [self.url]

    def part(self, name: str) -> Any:
        """Return a part of the explorer by its ``data-is``."""
        return self.page.locator(f'#explorer [data-is="{name}"]')

    def of_core(self, core: int) -> tuple[float, float]:
        """Return where the middle of a core is on the board's canvas."""
        middle = "b.at.apply([(p % c + 0.5) * 40, (Math.floor(p / c) + 0.5) * 40])"
        x, y = self.page.evaluate(
            f"(p) => {{ const b = explorer.board, c = b.m.board.cols; return {middle} }}", core
        )
        return x, y


def fits(page: Opened, width: int) -> None:
    """Check a page that follows a dark system."""
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.page.evaluate(paper)
    page.part("theme").click()
    assert (dark, page.page.evaluate(paper)) == ("rgb(22, 22, 22)", "rgb(255, 255, 255)")
    for kind in page.part("colours").locator("option").all():
        page.part("colours").select_option(kind.get_attribute("value"))
        assert page.part("legend").inner_text()
