"""The printed trap keeps existing traps, in a real shell."""

import shlex
import subprocess
from pathlib import Path

import pytest

from moorage.client.run.shell import trap_text
from tests.client.single import BARE, finished

RELEASE = "echo released"


def trap_code(us: str = RELEASE, *signals: str) -> str:
    """Return a trap whose release is replaced by another command."""
    text = trap_text(["US"], "HANDLE", signals or ("EXIT",))
    return text.replace(shlex.quote("US lease release --handle HANDLE"), shlex.quote(us))


def shell(script: str) -> tuple[int, list[str]]:
    """Run a script; return its exit code and the lines it printed."""
    done = subprocess.run(
        ["bash", "-c", script],
        env=BARE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "", done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("options", ["", "set -euo pipefail; "])
def test_a_trap_set_before_runs_after(status: int, options: str) -> None:
    """The release runs first, then the old trap, which sees the script's exit code."""
    script = f"{options}trap 'echo before $?' EXIT\n{trap_code()}\necho work; exit {status}"
    assert shell(script) == (status, ["work", "released", f"before {status}"])


@pytest.mark.parametrize("options", ["", "set -euo pipefail; "])
def test_without_a_trap_before(options: str) -> None:
    """The trap releases, and the exit code is the script's."""
    assert shell(f"{options}{trap_code()}\nexit 4") == (4, ["released"])
    assert shell(f"{options}{trap_code()}\necho work") == (0, ["work", "released"])


def test_any_text_of_a_trap_survives() -> None:
    """Quotes, several lines and several commands are kept."""
    before = """trap 'x="a '"'"' b"; echo "$x"
echo "two;three" && (exit 1) || echo four' EXIT"""
    expected = ["released", "a ' b", "two;three", "four"]
    assert shell(f"{before}\n{trap_code()}\n:") == (0, expected)


def test_a_trap_that_changes_the_exit_code_still_does() -> None:
    """An exit in the old trap sets the script's exit code."""
    assert shell(f"trap 'exit 9' EXIT\n{trap_code()}\nexit 1") == (9, ["released"])


@pytest.mark.parametrize("options", ["", "set -e; "])
def test_the_old_trap_runs_after_a_failed_release(options: str) -> None:
    """The old trap still runs, with the exit code of the script."""
    script = f"{options}trap 'echo before $?' EXIT\n{trap_code('false')}\nexit 2"
    assert shell(script) == (2, ["before 2"])


def test_errors_end_in_the_trap() -> None:
    """With errexit a failing command runs the release and the old trap."""
    script = f"set -e; trap 'echo before $?' EXIT\n{trap_code()}\n(exit 6); echo never"
    assert shell(script) == (6, ["released", "before 6"])


def test_traps_of_two_leases() -> None:
    """The trap can be chained more than once."""
    script = f"trap 'echo first' EXIT\n{trap_code('echo one')}\n{trap_code('echo two')}\nexit 5"
    assert shell(script) == (5, ["two", "one", "first"])


def test_a_signal_ends_the_shell_as_before() -> None:
    """Without an old trap the shell dies of the signal, after the release."""
    assert shell(f"{trap_code()}\nkill -TERM $$; echo never") == (-15, ["released"])
    both = trap_code(RELEASE, "TERM")
    assert shell(f"{both}\nkill -TERM $$; echo never") == (-15, ["released"])


def test_a_signals_trap_is_chained() -> None:
    """A trap of a signal is kept, too; an ignored signal stays ignored."""
    script = f"trap 'echo term' TERM\n{trap_code(RELEASE, 'TERM')}\nkill -TERM $$; echo goes on"
    assert shell(script) == (0, ["released", "term", "goes on"])
    ignored = f"trap '' TERM\n{trap_code(RELEASE, 'TERM')}\nkill -TERM $$; echo goes on"
    assert shell(ignored) == (0, ["goes on"])


def test_the_printed_command_is_ours(tmp_path: Path) -> None:
    """The command that `moorage trap` prints calls the single file, whatever the handle's name."""
    handle = str(tmp_path / "it's a handle")
    printed = finished("trap", "--handle", handle)
    assert printed.returncode == 0
    unlimited = {"MOORAGE_UNLIMITED_WITHOUT_SERVER": "1"}
    script = f"trap 'echo before $?' EXIT\n{printed.stdout}\nexit 3"
    done = subprocess.run(
        ["bash", "-c", script],
        env={**BARE, **unlimited},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "before 3\n")
    assert done.stderr == (
        "moorage: no server is set (MOORAGE_URL, --url): dry run, nothing is released\n"
    )
    assert finished("trap").returncode == 2
