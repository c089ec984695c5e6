"""The description that package indexes show: README.md without what points into the repository, which has no address there."""

import re
from pathlib import Path

from setuptools import setup

PICTURE_AND_CAPTION = re.compile(
    r"^!\[[^]]*\]\((?!https:)[^)]*\)\n+(?:\*[^*].*?[^*]\*\n+)?", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\[([^]]+)\]\((?!https:|#)[^)]*\)")

readme = Path(__file__).with_name("README.md").read_text("utf-8")
setup(
    long_description=LINK.sub(r"\1", PICTURE_AND_CAPTION.sub("", readme)),
    long_description_content_type="text/markdown",
)
