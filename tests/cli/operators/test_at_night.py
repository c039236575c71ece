"""The questions in `docs/howto/operate.md` are answered by the commands there, as written."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.command import moorage
from tests.cli.operators import night
from tests.cli.pooled import Cli, lines_at_terminal
from tests.docs.test_links import ROOT
from tests.e2e.support.server import serve

COLUMNS = 120
"""The width of the terminal in the section."""

SECTION = re.compile(r"^## At night\n(.*?)^## ", re.MULTILINE | re.DOTALL)
QUESTION = re.compile(
    r"^### (?P<question>.*\?)\n(?:(?!#).*\n)*?"
    r"```console\n\$ (?P<command>.*)\n(?P<output>(?:.*\n)+?)```",
    re.MULTILINE,
)

FACTS = {
    "What is full, and who holds it?": (
        r"install/azure-4 2/2 2 full .* are held by job 4711/e2e on runner-1 \(ci/prow\)",
        r"deploy/rack-7 0/20 0 paused .* a switch is being replaced",
    ),
    "Since when do they have it, and what ends next?": (
        r"job 4712/e2e on runner-2 \(ci/prow\) granted install/azure-4 [\dhms]+ in 2\dm\d\ds",
        r"job 4711/e2e on runner-1 \(ci/prow\) granted install/azure-4 [\dhms]+ in 3\dm\d\ds",
    ),
    "Why does this job wait, and when does it start?": (
        r"holder job 4714/e2e on runner-4",
        r"eta 3\dm\d\ds",
        r"reason 1 ahead; limit: 2 of 2 units .* job 4711/e2e on runner-1 \(ci/prow\)",
    ),
    "Which job waits longest?": (
        r"job 4713/e2e on runner-3\S* waiting install/azure-4 1",
        r"job 4714/e2e on runner-4\S* waiting install/azure-4 2",
    ),
    "Which machine is silent?": (r"sled-7 rack-3 in_service \w+ (late|lost) [\dms]+",),
    "Which holder is silent?": (r"job 4715/deploy on runner-5 \(ci/prow\) .* unheard",),
    "Which pool is paused, and why?": (
        r"deploy/rack-7 .* paused by night-shift: a switch is being replaced",
    ),
    "What changed in the last hour, and who did it?": (
        r"night-shift operator slot.drain clusters/aws/eu-2 reason: the disk fails",
        r"night-shift operator pool.pause deploy/rack-7 reason: a switch is being replaced",
        r"night-shift operator pool.put install/azure-4 limit: 3 -> 2",
    ),
    "What was it like yesterday?": (r"\d{4}-\d\d-\d\d \d\d:\d\dZ 2 \d 2 \d",),
    "Which slot is broken or drained?": (r"eu-2 drained .* the disk fails",),
    "Is capacity left, and where?": (
        r"VCPU 2 128 1 128 0 124 4 96% 100% compute-00 93% compute-01",
    ),
}
"""What each answer says, as patterns in the order in which they are found."""


class Asked(NamedTuple):
    """A question of the section: its command and the output that is shown there."""

    command: list[str]
    output: list[str]


def _asked() -> dict[str, Asked]:
    found = SECTION.search((ROOT / "docs/howto/operate.md").read_text())
    assert found is not None
    return {
        one["question"]: Asked(shlex.split(one["command"]), one["output"].splitlines())
        for one in QUESTION.finditer(found[1])
    }


def unsaid(lines: Sequence[str], facts: Sequence[str]) -> str | None:
    """Return the first fact that the lines do not say after those before it; None: all are said."""
    text = " ".join(" ".join(lines).split())
    for fact in facts:
        found = re.search(fact, text)
        if found is None:
            return fact
        text = text[found.end() :]
    return None


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Return the command line in the folder of a server on which the night has come."""
    with _served(tmp_path_factory.mktemp("night")) as cli, night.make(cli):
        yield cli


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Return the command line in the folder of a server on which nothing has happened."""
    with _served(tmp_path_factory.mktemp("nothing")) as cli:
        yield cli


@contextmanager
def _served(folder: Path) -> Iterator[Cli]:
    database = folder / "moorage.sqlite"
    (folder / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, *night.OPTIONS) as server:
        yield Cli(folder, server.url)


def test_each_question_has_one_command_and_its_facts() -> None:
    """No question of the section is left out here; each block begins with its only command."""
    asked = _asked()
    assert [*asked] == [*FACTS]
    for one in asked.values():
        assert one.command[0] == "moorage"
        assert not any(line.startswith("$ ") for line in one.output)


@pytest.mark.parametrize("question", FACTS)
def test_the_command_answers_the_question(scene: Cli, question: str) -> None:
    """Its output says the facts, as the section shows it, below the titles that stand there."""
    command, shown = _asked()[question]
    lines = lines_at_terminal(scene.folder, *command[1:], columns=COLUMNS)
    assert unsaid(lines, FACTS[question]) is None, lines
    assert unsaid(shown, FACTS[question]) is None
    assert lines[0].split() == shown[0].split()


@pytest.mark.parametrize("question", FACTS)
def test_without_the_night_it_says_something_else(nothing: Cli, question: str) -> None:
    """The control: where nothing has happened, the same command does not say the facts."""
    done = moorage(*_asked()[question].command[1:], directory=nothing.folder)
    assert unsaid([done.stdout.replace("\t", " "), done.stderr], FACTS[question]) is not None
