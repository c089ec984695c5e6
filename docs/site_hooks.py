"""What the site changes in pages: links to files of the repository, which the site does not have, become the files' names."""

from __future__ import annotations

import re
from typing import Any

#: A link that leaves the folder of the docs.
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+([^)#\s]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, **more: Any) -> str:
    """Return a page whose links all stay inside the site."""
    return OUTSIDE.sub(lambda m: f"`{m[2]}`" if m[1].strip("`") == m[2] else f"{m[1]} (`{m[2]}`)", markdown)
