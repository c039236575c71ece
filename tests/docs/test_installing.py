"""What the guides tell to install can be installed: no package of Moorage is in an index yet."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "reference").glob("*.md"))
INSTALL = re.compile(r"(?:pip|pipx) install ([^`\n]+)")
SERVER = re.compile(r"(?:^|\s)'?(?:\.|/source)(?:\[\w+\])?'?(?:\s|$|;)")
CLIENT = "packaging/client"


def faults(text: str) -> list[str]:
    """Return the commands of a page that cannot work."""
    return [
        command
        for command in INSTALL.findall(text)
        if (SERVER.search(command) and CLIENT not in command)
        or re.search(r"(?:^|\s)'?moorage(-client)?(\[\w+\])?'?(?:\s|$)", command)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands(page: Path) -> None:
    """The server needs the client from the same checkout; neither is asked of an index."""
    assert not faults(page.read_text())


@pytest.mark.parametrize(
    "command",
    [
        *("pip install .", "pipx install .", "pip install '.[kubernetes]'"),
        *("pip install moorage-client", "pip install 'moorage[ironic]'"),
        "pip install --no-deps --no-build-isolation /source",
    ],
)
def test_what_fails(command: str) -> None:
    """These were seen to end with "No matching distribution", or without a client."""
    assert faults(f"`{command}`;\n")
