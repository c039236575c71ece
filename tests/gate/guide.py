"""Types the commands of docs/howto/ironic.md, as a newcomer does, against a real Ironic.

It runs in the environment of the clients.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.e2e.support.server import Server
from tests.e2e.support.typed import ROOT, Step, clone, free_port, play, steps_of, surroundings
from tests.gate.workers import Raw

PAGE = ROOT / "docs/howto/ironic.md"
SHORT, LONG, WAVE = "Try it", "Step by step", "Roll out"
STAMPS = (".venv/run.stamp", ".venv/dev.stamp", ".venv-client/stamp", ".venv-ironic/stamp")
FOLDER = "/home/alice/moorage"
START_SECONDS = 90.0
LIMIT = 5

GATED = re.compile(r"gated-ironic: serving (?P<url>http[^\s,]+)")
LAST = "Ctrl-C"
"""In the last line of `make gated-ironic`."""

STARTED = re.compile(r"(?:ironic: serving|moorage: (?:serving|gate|governing)) (?P<url>http\S+)")
"""The ready line of a command that goes on, so that the page uses a terminal of its own for it."""

VARIES = re.compile(r"\d+ busy|/tmp/\S+")
"""How many nodes are still busy, and where a temporary file is."""


def check_short(folder: Path, limit: int = LIMIT) -> int:
    """One command starts everything; 20 nodes are deployed and watched. Return how many waited."""
    start, top, deploy, why, leases = steps_of(PAGE, SHORT)
    clone(folder, STAMPS)
    environment = surroundings()
    shell = ["bash", "-c", start.command]
    with Server(shell, environment, folder, GATED, seconds=START_SECONDS) as server:
        server.wait_for(LAST)
        printed = [line.rstrip() for line in server.said]
        assert {top.command, deploy.command} <= set(printed), printed
        assert start.shown[0] in printed, printed
        exports = [line for line in printed if line.startswith("export ")]
        assert len(exports) == 3, exports
        watch, most, explained = Step(f"{top.command} --once"), 0, False
        with background([*exports, deploy.command], folder, environment) as deploying:
            while deploying.poll() is None:
                more = [] if explained else [why, leases]
                told = typed([*map(Step, exports), watch, *more], folder, environment)[3:]
                in_use, waiting = told[0][0].splitlines()[1].split("\t")[1:3]
                assert int(in_use.partition("/")[0]) <= limit, told
                most = max(most, int(waiting))
                explained = explained or (told[1][1] == 0 and "node-" in told[2][0])
            assert deploying.returncode == 0, deploying.stdout and deploying.stdout.read()
        assert explained, "nobody was told why node-7 waits, or what it has"
        raw = Raw(server.url)
        for number in range(1, 21):
            raw.until(f"node-{number}", "active")
    assert most > 0, "nothing waited: the limit was not reached"
    return most


def check_long(folder: Path) -> int:
    """Every part in a terminal of its own: all commands succeed. Return how many there are."""
    steps = [*steps_of(PAGE, LONG), *steps_of(PAGE, WAVE)]
    clone(folder, STAMPS)
    environment = surroundings()
    ironic, gate = free_port(), free_port()
    here = {
        "127.0.0.1:8778": environment["MOORAGE_LISTEN"],
        "127.0.0.1:6385": f"127.0.0.1:{gate}",
        "16385": str(ironic),
        FOLDER: str(folder),
    }
    shown = re.compile("|".join(map(re.escape, here)))

    def localised(text: str) -> str:
        return shown.sub(lambda found: here[found[0]], text)

    exports: list[str] = []
    with ExitStack() as servers:
        for step in steps:
            command = localised(step.command)
            expected = [VARIES.sub("", localised(line)) for line in step.shown]
            if command.startswith("moorage gate "):
                command += f" --listen 127.0.0.1:{gate}"
            if expected and STARTED.match(expected[0]):
                shell = ["bash", "-c", "\n".join([*exports, command])]
                server = Server(shell, environment, folder, STARTED, seconds=START_SECONDS)
                servers.enter_context(server)
                server.wait_for(VARIES.split(localised(step.shown[-1]))[0])
                printed = [line.rstrip() for line in server.said]
                said = [line for line in printed if VARIES.sub("", line) in expected]
            else:
                text, code = typed([*map(Step, exports), Step(command)], folder, environment)[-1]
                assert code == 0, f"{command}: exit code {code}\n{text}"
                said = text.splitlines()
            if expected:
                assert [VARIES.sub("", line) for line in said] == expected, said
            if command.startswith("export "):
                exports.append(command)
        raw = Raw(f"http://127.0.0.1:{ironic}")
        for number in range(1, 14):
            raw.until(f"node-{number}", "active")
    return len(steps)


def typed(steps: list[Step], folder: Path, environment: Mapping[str, str]) -> list[tuple[str, int]]:
    """Type commands into a new terminal; return what each wrote, and its exit code."""
    return play(steps, folder, dict(environment))


@contextmanager
def background(
    commands: list[str], folder: Path, environment: Mapping[str, str]
) -> Iterator["subprocess.Popen[str]"]:
    """Run commands in another terminal meanwhile."""
    with subprocess.Popen(
        ["bash", "-c", "\n".join(commands)],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process
