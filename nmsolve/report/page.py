"""Pages: one file each, without network, from a template of ``templates/``."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.model.errors import InputError
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from jinja2 import BytecodeCache


def fill(template: str, **values: Any) -> str:
    """Return a file of ``templates/`` with its values put in; a value that is missing is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(_text)
    pages = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        loader=loader,
        bytecode_cache=_compiled(),
    )
    pages.globals |= {"number": number, "percent": percent, "raw": _text}
    return pages.get_template(template).render(values)


def inline(data: dict[str, Any]) -> str:
    """Return JSON that may stand in a page: no text of it can end the script or open a comment."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _text(name: str) -> str:
    return (resources.files("nmsolve.report") / "templates" / name).read_text("utf-8")


@cache
def _compiled() -> BytecodeCache:
    """Return where compiled templates lie: as kernels do. To compile them takes half of the time of a page."""
    from jinja2 import BytecodeCache
    from jinja2.bccache import Bucket

    from nmsolve.model.files import write_atomic
    from nmsolve.model.kernel_cache import place_of

    place = place_of(Path(str(resources.files("nmsolve.report"))) / "templates")

    class Templates(BytecodeCache):
        """Of which each has its file."""

        def load_bytecode(self, bucket: Bucket) -> None:
            """Read it, if it is there."""
            for folder in place.read:
                with suppress(OSError), open(folder / f"{bucket.key}.template", "rb") as file:
                    bucket.load_bytecode(file)

        def dump_bytecode(self, bucket: Bucket) -> None:
            """Write it; what cannot be written is compiled again."""
            if place.write is not None:
                with suppress(OSError, InputError):
                    write_atomic(place.write / f"{bucket.key}.template", bucket.bytecode_to_string())

    return Templates()
