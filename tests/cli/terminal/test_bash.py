"""Shell completion in a real interactive bash: what is typed, a tab, what then stands there."""

import os
import pty
import re
import select
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.cli.command import SECONDS, moorage
from tests.e2e.support.server import serve

PROMPT = "ready> "
STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x07|\r")
WIDE = 200


class Bash:
    """An interactive bash that has loaded the script of `moorage completion bash`."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._seen = ""
        self.until(PROMPT)

    def until(self, words: str) -> str:
        """Read until these words appear; return what was read, up to them and with them."""
        deadline = monotonic() + SECONDS
        while words not in self._seen:
            assert monotonic() < deadline, (words, self._seen)
            if select.select([self._terminal], [], [], 0.1)[0]:
                self._seen += STYLE.sub("", os.read(self._terminal, 65_536).decode())
        before, _, self._seen = self._seen.partition(words)
        return before + words

    def completed(self, line: str, whole: str) -> None:
        """Type a line and a tab; wait until this stands there instead. Then drop it."""
        os.write(self._terminal, f"{line}\t".encode())
        self.until(whole)
        self._drop()

    def offers(self, line: str, *words: str) -> None:
        """Type a line and two tabs; wait until these words are listed. Then drop it."""
        os.write(self._terminal, f"{line}\t\t".encode())
        self.until(line)
        listed = self.until(PROMPT + line).split()
        assert {*words} <= {*listed}, listed
        self._drop()

    def nothing(self, line: str) -> None:
        """Type a line and a tab; it stays as it is, and nothing is printed."""
        # The cursor goes to the beginning: what stands behind the marker is what was completed.
        os.write(self._terminal, f"{line}\t\x01echo [\x05]\r".encode())
        self.until(f"\n[{line.rstrip()}]" if line == line.rstrip() else f"\n[{line.rstrip()} ]")
        self.until(PROMPT)

    def _drop(self) -> None:
        os.write(self._terminal, b"\x01\x0b\r")  # to the beginning, cut the line, Enter
        self.until(PROMPT)
        self._seen = ""


@contextmanager
def bash(folder: Path, **environment: str) -> Iterator[Bash]:
    """Run bash in a folder, on a wide terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, WIDE))
    rc = folder / "bashrc"
    rc.write_text(
        f"PS1='{PROMPT}'\n{moorage('completion', 'bash').stdout}"
        "bind 'set bell-style none'\nbind 'set enable-bracketed-paste off'\n"
        "bind 'set page-completions off'\n"
    )
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")}
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "--noprofile", "--rcfile", str(rc), "-i"],
        cwd=folder,
        env={**inherited, "TERM": "xterm", "PATH": path, **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    try:
        yield Bash(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_bash_completes(tmp_path: Path) -> None:
    """Commands, options, states, pools, ids, files, and after `--` commands of the shell."""
    (tmp_path / "pools-of-site.toml").touch()
    (tmp_path / "deploy-everything").touch(0o755)
    (tmp_path / "deploy-notes").touch(0o644)
    with serve(tmp_path / "moorage.sqlite", "--auth", "noauth2", "--no-access-log") as server:
        admission = Admission(Transport(server.url, "admin"))
        for name in ("install/azure-4", "install/azure-5", "site"):
            admission.pool_put(name, PoolWanted(limit=1))
        held = admission.ask(LeaseWanted(needs=[NeedWanted(pool="site")], key="one"))
        with bash(tmp_path, MOORAGE_URL=server.url, MOORAGE_TOKEN="admin") as shell:
            shell.completed("moorage fle", "moorage fleet ")
            shell.completed("moorage lease acq", "moorage lease acquire ")
            shell.completed("moorage lease list --sta", "moorage lease list --state ")
            shell.offers("moorage lease list --state ", "granted", "waiting", "ended")
            shell.completed("moorage lease list --state w", "moorage lease list --state waiting ")
            shell.completed("moorage pool show si", "moorage pool show site ")
            shell.completed("moorage pool show ins", "moorage pool show install/azure-")
            shell.offers("moorage run --pool install/azure-", "install/azure-4", "install/azure-5")
            shell.completed("moorage run --pool=si", "moorage run --pool=site ")
            shell.completed(f"moorage lease show {held.id[:5]}", f"lease show {held.id} ")
            shell.completed("moorage apply --file poo", "--file pools-of-site.toml ")
            shell.completed("moorage run --pool site -- deploy-e", "-- deploy-everything ")
            shell.completed("moorage run --pool site -- make -f poo", "-f pools-of-site.toml ")


def test_bash_is_silent_without_an_answer(tmp_path: Path) -> None:
    """Without a server, or with one that does not answer, the line stays as it is."""
    with bash(tmp_path, MOORAGE_URL="http://127.0.0.1:1") as shell:
        shell.nothing("moorage pool show si")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with bash(tmp_path, MOORAGE_URL=url) as shell:
            shell.nothing("moorage pool show si")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_the_same_words(tmp_path: Path, shell: str) -> None:
    """The scripts for zsh and fish ask in forms of their own, and get the same answers."""
    script = moorage("completion", shell).stdout
    assert f"_MOORAGE_COMPLETE={shell}_complete" in script
    asked = {"COMP_WORDS": "moorage lease list --state gra", "COMP_CWORD": "4"}
    if shell == "fish":
        asked["COMP_CWORD"] = "gra"
    done = moorage(directory=tmp_path, _MOORAGE_COMPLETE=f"{shell}_complete", **asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert "granted" in done.stdout and "waiting" not in done.stdout
