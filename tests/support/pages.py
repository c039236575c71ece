"""The examples in the pages of the documentation."""

import re
from pathlib import Path

EXAMPLE = re.compile(r"(?ms)^```python\n(.+?)^```$")


def examples(page: Path) -> list[str]:
    """Return the examples in Python of a page, in its order."""
    return EXAMPLE.findall(page.read_text())
