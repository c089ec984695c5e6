"""Pages: one file each, without network, from a template of ``templates/``."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from nmsolve.report.figures import number, percent


def fill(template: str, **values: Any) -> str:
    """Return a file of ``templates/`` with its values put in; a value that is missing is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(_text)
    pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, loader=loader)
    pages.globals |= {"number": number, "percent": percent, "raw": _text}
    return pages.get_template(template).render(values)


def inline(data: dict[str, Any]) -> str:
    """Return JSON that may stand in a page: no text of it can end the script or open a comment."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _text(name: str) -> str:
    return (resources.files("nmsolve.report") / "templates" / name).read_text("utf-8")
