"""What the guides tell to install can be installed, from a checkout: no index has Moorage yet."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "reference").glob("*.md"))
PAGES += sorted(
    path for path in (ROOT / "contrib").rglob("*") if path.suffix in (".py", ".service")
)
INSTALL = re.compile(r"(?:pip|pipx|uv tool) install ([^`\n;#)]+)")
WORD = re.compile(r"(?P<what>[^\[\s]+)(?:\[(?P<extras>[\w,]+)\])?")
VALUED = ("-r", "--requirement")
OWN = re.compile(r"moorage(-client)?")
PRINTED = re.compile(r"(?m)^    moorage: .*$")
"""What a command prints. There Moorage is installed already, so pip asks no index for it."""


def faults(text: str) -> list[str]:
    """Return the words of the commands of a page that cannot be installed."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    found = []
    for command in INSTALL.findall(PRINTED.sub("", text)):
        words = command.replace("'", "").split()
        for before, word in zip(["", *words], words, strict=False):
            one = WORD.fullmatch(word)
            assert one is not None, word
            if word.startswith("-"):
                continue
            if before in VALUED:
                wrong = not (ROOT / word.removeprefix("/source/")).exists()
            elif one["what"] in (".", "/source"):
                wrong = not set((one["extras"] or "server").split(",")) <= set(extras)
            else:
                wrong = OWN.fullmatch(one["what"]) is not None or "/" in word
            found += [word] if wrong else []
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands(page: Path) -> None:
    """Moorage is asked of no index, and no extra is named that there is not."""
    assert not faults(page.read_text())


def test_there_are_commands() -> None:
    """The pages show the ways that `make installations` tries."""
    text = "".join(page.read_text() for page in PAGES)
    for command in ("pip install .", "pip install '.[server]'", "pipx install '.[server]'"):
        assert f"{command}\n" in text or f"{command} " in text or f"{command}`" in text
    assert "uv tool install '.[all]'" in text


@pytest.mark.parametrize(
    "command",
    [
        *("pip install moorage-client", "pip install 'moorage[ironic]'", "pipx install moorage"),
        *("pip install '.[openstack]'", "uv tool install '.[server,al]'", "pip install moorage"),
        *("pip install ./packaging/client .", "pip install -r requirements-none.lock"),
    ],
)
def test_what_fails(command: str) -> None:
    """These end with "No matching distribution", with a warning, or without a file."""
    assert faults(f"`{command}`;\n")
