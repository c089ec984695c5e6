"""Pages: one file each, without network, from a template of ``templates/``."""

from __future__ import annotations

from importlib import resources
from typing import Any

from nmsolve.cli.progress import number, percent


def fill(template: str, **values: Any) -> str:
    """Return a file of ``templates/`` with its values put in; a value that is missing is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = resources.files("nmsolve.cli") / "templates"
    loader = FunctionLoader(lambda name: (folder / name).read_text("utf-8"))
    pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, loader=loader)
    pages.globals |= {"number": number, "percent": percent}
    return pages.get_template(template).render(values)
