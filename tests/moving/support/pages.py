"""Types the commands of a page about moves as an operator does."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.support.server import Server
from tests.e2e.support.typed import ROOT, Step, play, steps_of
from tests.moving.support import engines
from tests.moving.support.original import PYTHON

FIGURES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d[\d.]*")
ODD = re.compile(r"^odd: .*$", re.MULTILINE)
PROGRESS = re.compile(r"^moorage: .* of [\d,]+ \(\d+%\)\n", re.MULTILINE)
"""What a command says when it takes long."""

KNOWN = re.compile(r"^known: .*: \d+ \((.*)\)\n", re.MULTILINE)
"""A decided difference, with its heading. Which there are depends on how old both sides are."""

CLIENT = "[client]\nuser = root\nsocket = {socket}\n"


@dataclass(frozen=True)
class Typed:
    """A command of a page, what it wrote, and its exit code."""

    step: Step
    said: str
    code: int

    def as_shown(self) -> bool:
        """Return whether it wrote what the page shows."""
        return normal(self.said) == normal("\n".join(self.step.shown))


def steps_in(page: Path, titles: list[str], addresses: Mapping[str, str]) -> list[Step]:
    """Return the commands of some sections.

    Args:
        page: where they are.
        titles: of the sections, in their order.
        addresses: of the page, each with the one of this test; all of them must be there.
    """
    steps = [step for title in titles for step in steps_of(page, title)]
    whole = "\n".join(step.command for step in steps)
    assert all(address in whole for address in addresses), whole
    for step in steps:
        for shown, real in addresses.items():
            step.command = step.command.replace(shown, real)
    return steps


def typed(steps: list[Step], folder: Path, server: Server) -> list[Typed]:
    """Type commands in one shell, as the administrator of a server, whose home is the folder."""
    (folder / ".my.cnf").write_text(CLIENT.format(socket=engines.mariadb().socket))
    programs = f"{ROOT}/.venv/bin:{PYTHON.parent}:{engines.MARIADB}"
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "MOORAGE_URL": server.url,
        "MOORAGE_TOKEN": "admin",
        "HOME": str(folder),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
    }
    played = play(steps, folder, environment)
    assert len(played) == len(steps), played
    return [Typed(step, said, code) for step, (said, code) in zip(steps, played, strict=True)]


def normal(text: str) -> str:
    """Return what a command says without progress, figures, UUIDs and kinds of what is kept."""
    for left_out in (PROGRESS, KNOWN):
        text = left_out.sub("", text)
    return FIGURES.sub("N", ODD.sub("odd: ...", text)).strip()
