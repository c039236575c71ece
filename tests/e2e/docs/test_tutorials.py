"""README.md and the tutorials, typed word for word against real servers.

What the stock client prints may not differ. Ids, times of day, tokens and measured seconds of
`moorage` differ from run to run: the kinds of `VARYING`, no others.
"""

import re
from getpass import getuser
from pathlib import Path
from platform import node

import pytest

from tests.e2e.support.server import Server
from tests.e2e.support.typed import ROOT, Step, clone, play, steps_of, surroundings

README, TRY_IT = ROOT / "README.md", "Try it"
TUTORIALS = ROOT / "docs/tutorials"
LEDGER = TUTORIALS / "where-does-it-fit.md"
ADMISSION = TUTORIALS / "may-it-start-now.md"
FLEET = TUTORIALS / "what-do-machines-have.md"
ADDRESS = "127.0.0.1:8778"
FOLDER = "/home/alice/moorage"
HOST = "laptop"
HOLDER = f"alice on {HOST}"
REFUSED = "(HTTP 4"
STAMPS = (".venv/run.stamp", ".venv-client/stamp")
"""The environments that the pages build."""

NEAR_SECONDS = 2.5
"""How far a measured duration may be from the one that the page shows."""

GAP = re.compile(r"\t|\s{2,}")
"""Between two cells of a line: of a table, as terminals show it, or as everything else gets it."""

VARYING = {
    "id": r"[0-9a-f]{8}-[0-9a-f]{4}(?:-[0-9a-f]{1,12})*",  # or its beginning
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00",
    "token": r"\d+\.\d+\.\d+",
    # How long it may yet take, or has taken: in a sentence, or as a whole cell.
    "seconds": r"(?:about |\d+s to )?[\d.]+s(?= to go| so far)"
    r"|(?<=expected in )(?:\d+s to )?[\d.]+s|^(?:\d+s to )?[\d.]+s$",
}
"""What no two runs have in common, by kind."""

VARIES = re.compile("|".join(f"(?P<{kind}>{form})" for kind, form in VARYING.items()))

IDS_SHOWN = 8
"""Two tickets, the key of the first of them, four beginnings of ids in a list, the last run."""

WIDTH = 240
"""Of the terminal for admission: enough for any name of a machine, so nothing is cut."""

NEEDED = (
    "resource class create",
    "trait create",
    "resource provider create",
    "resource provider inventory set",
    "resource provider trait set",
    "allocation candidate list",
    "resource provider allocation set",
    "resource provider usage show",
    "resource provider allocation delete",
)
NEEDED_OF_ADMISSION = (
    "moorage pool create demo ",
    "moorage run --pool demo --hold 5s -- sleep 10 ",
    "moorage top --once",
    "moorage lease list",
    "moorage pool report demo",
    "MOORAGE_LEASE_TOKEN",
)
NEEDED_OF_THE_FLEET = (
    "moorage agent create ",
    "moorage token create ",
    "moorage agent run ",
    "moorage agent set-desired ",
    "openstack allocation candidate list ",
    "kill ",
    "moorage agent show ",
    "moorage explain ",
)


def localised(lines: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    """Put this run's address, folder and host where the page shows its own."""
    here = {ADDRESS: environment["MOORAGE_LISTEN"], FOLDER: str(folder), HOST: node()}
    here = {HOLDER: f"{getuser()} on {node()}", **here}  # the longer one first
    shown = re.compile("|".join(map(re.escape, here)))
    return [shown.sub(lambda found: here[found[0]], line) for line in lines]


class Comparison:
    """Compares output with what is shown. An id that is shown twice must appear twice."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        """The real output, by what the page shows instead."""

    def differs(self, shown: list[str], said: list[str]) -> str | None:
        """Return what differs first, cell by cell; None: nothing does."""
        if len(shown) != len(said):
            return f"{len(said)} lines instead of {len(shown)}"
        for line, other in zip(shown, said, strict=True):
            cells, others = GAP.split(line.strip()), GAP.split(other.strip())
            if len(cells) != len(others) or not all(map(self._alike, cells, others)):
                return f"{other!r} instead of {line!r}"
        return None

    def _alike(self, shown: str, said: str) -> bool:
        """Are these the same words, and where they may vary, of the same kind and near enough?"""
        if VARIES.sub(_kind, shown) != VARIES.sub(_kind, said):
            return False
        pairs = zip(VARIES.finditer(shown), VARIES.finditer(said), strict=True)
        return all(self._near(one.lastgroup, one[0], other[0]) for one, other in pairs)

    def _near(self, kind: str | None, shown: str, said: str) -> bool:
        if kind == "id":
            known = self.ids.setdefault(shown, said)
            return known == said and len(set(self.ids.values())) == len(self.ids)
        if kind == "seconds":
            return abs(_latest(shown) - _latest(said)) <= NEAR_SECONDS
        return True


def _kind(found: re.Match[str]) -> str:
    return f"<{found.lastgroup}>"


def _latest(seconds: str) -> float:
    """Return the last number of a span of seconds."""
    return float(re.findall(r"[\d.]+", seconds)[-1])


def require_shown(comparison: Comparison, step: Step, shown: list[str], said: str) -> None:
    """Fail unless a command has printed what the page shows."""
    difference = comparison.differs(shown, said.splitlines())
    assert difference is None, f"{step.command}: {difference}\n{said}"


def require_all_shown(
    steps: list[Step],
    results: list[tuple[str, int]],
    folder: Path,
    environment: dict[str, str],
) -> Comparison:
    """Fail unless each command has printed what the page shows, and has succeeded."""
    comparison = Comparison()
    for step, (said, code) in zip(steps, results, strict=True):
        require_shown(comparison, step, localised(step.shown, folder, environment), said)
        assert code == 0, f"{step.command}: exit code {code}"
    return comparison


def test_the_readme_word_for_word(tmp_path: Path) -> None:
    """Every command prints what the README shows; only the claim that does not fit is refused."""
    start, *steps = steps_of(README, TRY_IT)
    clone(tmp_path, STAMPS)
    environment = surroundings()
    with Server(["bash", "-c", start.command], environment, tmp_path) as server:
        server.wait_for("the dashboard is")
        assert localised(start.shown, tmp_path, environment) == [
            line.rstrip() for line in server.said if line.startswith("moorage: ")
        ]
        results = play(steps, tmp_path, environment)
    comparison = Comparison()
    for step, (said, code) in zip(steps, results, strict=True):
        if step.shown:
            require_shown(comparison, step, localised(step.shown, tmp_path, environment), said)
        assert (code != 0) == (REFUSED in said), f"{step.command}: exit code {code}\n{said}"


def test_the_tutorial_of_the_ledger_word_for_word(tmp_path: Path) -> None:
    """Every command prints exactly what the page shows, and ends as it should."""
    start, *steps = steps_of(LEDGER)
    assert start.command == "make run"
    clone(tmp_path, STAMPS)
    environment = surroundings()
    with Server(["bash", "-c", start.command], environment, tmp_path) as server:
        assert localised(start.shown, tmp_path, environment) == [
            line.rstrip() for line in server.said if line.startswith("moorage: ")
        ]
        results = play(steps, tmp_path, environment)
    for step, (said, code) in zip(steps, results, strict=True):
        if step.shown:
            assert said == "\n".join(step.shown), step.command
        assert (code != 0) == (REFUSED in said), f"{step.command}: exit code {code}\n{said}"


def test_the_tutorial_of_admission_word_for_word(tmp_path: Path) -> None:
    """Every command prints what the page shows, and succeeds."""
    steps = steps_of(ADMISSION)
    clone(tmp_path, STAMPS)
    environment = surroundings()
    with Server(["make", "run"], environment, tmp_path):
        results = play(steps, tmp_path, environment, WIDTH)
    comparison = require_all_shown(steps, results, tmp_path, environment)
    assert len(comparison.ids) == IDS_SHOWN


def test_the_tutorial_of_the_fleet_word_for_word(tmp_path: Path) -> None:
    """Every command prints what the page shows, and succeeds."""
    exports = [step for step in steps_of(LEDGER) if step.command.startswith("export ")]
    steps = steps_of(FLEET)
    clone(tmp_path, STAMPS)
    environment = {**surroundings(), "TMPDIR": str(tmp_path)}
    with Server(["make", "run"], environment, tmp_path):
        results = play([*exports, *steps], tmp_path, environment)[len(exports) :]
    comparison = require_all_shown(steps, results, tmp_path, environment)
    assert all(shown == said for shown, said in comparison.ids.items()), comparison.ids


@pytest.mark.parametrize("words", NEEDED)
def test_the_tutorial_of_the_ledger_is_complete(words: str) -> None:
    """It leads past every station of a claim's life."""
    commands = [step.command for step in steps_of(LEDGER)]
    assert any(command.startswith(f"openstack {words} ") for command in commands)


@pytest.mark.parametrize("words", NEEDED_OF_ADMISSION)
def test_the_tutorial_of_admission_is_complete(words: str) -> None:
    """It leads past every station of a lease's life."""
    assert any(words in f"{step.command} " for step in steps_of(ADMISSION))


@pytest.mark.parametrize("words", NEEDED_OF_THE_FLEET)
def test_the_tutorial_of_the_fleet_is_complete(words: str) -> None:
    """It leads past every station of a machine's pages."""
    assert any(words in step.command for step in steps_of(FLEET))


LEASE_1 = "01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605"
LEASE_2 = "01a1fbc7-b337-797d-b4c0-99c133bcdd26"
SHOWN = [
    "demo  2/2  full   3s to 5s",
    f"got lease {LEASE_1} of demo; it ends after 5s",
    f"{LEASE_1}  2026-11-21T01:45:30+00:00",
    f"{LEASE_2}  place 1; about 9s to go; token 1.17.0",
]


def altered(*changes: tuple[str, str]) -> list[str]:
    """Return the shown lines, as everything but a terminal gets them, with some words replaced."""
    text = "\n".join(GAP.sub("\t", line) for line in SHOWN)
    for shown, said in changes:
        assert shown in text
        text = text.replace(shown, said)
    return text.splitlines()


def test_what_may_vary() -> None:
    """Other ids, times, tokens and nearly the same seconds are no difference."""
    said = altered(
        (LEASE_1, LEASE_1.replace("0", "f")),
        ("2026-11-21T01:45:30", "2031-01-02T23:59:59"),
        ("1.17.0", "2.9.31"),
        ("3s to 5s", "5s"),
        ("about 9s to go", "8s to 10s to go"),
    )
    assert Comparison().differs(SHOWN, said) is None


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("2/2", "1/2"),
        ("2/2", "3/2"),
        ("full", "open"),
        ("ends after 5s", "ends after 6s"),
        ("place 1", "place 2"),
        ("3s to 5s", "3s to 8s"),
        ("about 9s to go", "about 4s to go"),
        ("about 9s to go", "soon"),
        ("1.17.0", "1.17"),
        (f"lease {LEASE_1}", "lease 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0606"),
        (LEASE_2, LEASE_1),
        ("+00:00", "Z"),
        ("\tfull", "full"),
        ("token 1.17.0", "token 1.17.0\nmore"),
    ],
)
def test_what_may_not_vary(shown: str, said: str) -> None:
    """Everything else is noticed."""
    assert Comparison().differs(SHOWN, altered((shown, said))) is not None


def test_the_client_without_a_token_works_after_the_tutorial(tmp_path: Path) -> None:
    """Ironic's pages use no token: in the shell of the tutorial, its token must be unset."""
    exports = [
        line.removeprefix("$ ").strip()
        for page in (LEDGER, ROOT / "docs/howto/ironic.md")
        for line in page.read_text().splitlines()
        if line.startswith("$ export OS_")
    ]
    without = [line for line in exports if "OS_AUTH_TYPE=none" in line]
    assert without and all("OS_TOKEN= " in line for line in without)
    # Nobody listens there: the client fails, but not because of what the tutorial has set.
    closed = [
        re.sub(r"OS_ENDPOINT=\S+", "OS_ENDPOINT=http://127.0.0.1:1", line) for line in exports
    ]
    ask = ".venv-client/bin/openstack --debug baremetal node list 2>&1 | grep -c unexpected.keyword"
    lines = ["export OS_TOKEN=secret", *closed, ask]
    clone(tmp_path, [])
    kept = [line for line in lines if "$(" not in line]
    said = play([Step(line) for line in kept], tmp_path, surroundings())
    assert said[-1][0] == "0"
    broken = [line.replace("OS_TOKEN= ", "") for line in kept]
    assert play([Step(line) for line in broken], tmp_path, surroundings())[-1][0] != "0"
