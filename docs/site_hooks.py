"""What the site changes in pages: links to files of the repository, which the site does not have, become the files' names."""

from __future__ import annotations

import re
from typing import Any

#: A block of code that names its file, and a link that leaves the folder of the docs.
FENCE = re.compile(r"^```(\w+) ([^\n=\"]+)$", re.M)
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+([^)#\s]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, **more: Any) -> str:
    """Return a page whose links all stay inside the site, and whose blocks that name a file have it as their title."""
    inside = OUTSIDE.sub(lambda m: f"`{m[2]}`" if m[1].strip("`") == m[2] else f"{m[1]} (`{m[2]}`)", markdown)
    return FENCE.sub(r'```\1 title="\2"', inside)
