"""The functions of `moorage client.sh`, in real shells, with the real lease proxy.

The shells have only bash and python3: no jq, no curl, no flock, no mktemp.
"""

import os
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moorage.wire.admission import Lease
from tests.cli.command import write_private
from tests.cli.test_commands import respond_once
from tests.client import single
from tests.e2e.support.carried import SECONDS, Harbour, eventually, gone, harbour


class Quay:
    """A server with a lease proxy, and a folder for the shells of one test."""

    def __init__(self, harbour: Harbour, folder: Path, proxy: str | None = None) -> None:
        self.harbour = harbour
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "bin/python3").symlink_to(single.PYTHON)
        (folder / "client.sh").write_text(single.finished("client.sh").stdout)
        self.variables = {
            "PATH": str(folder / "bin"),
            "LEASE_PROXY_SERVER_URL": proxy or harbour.server.boskos_url,
            "LEASE_PROXY_CLIENT_SH": str(folder / "client.sh"),
            "SHARED_DIR": str(folder),
            "TMPDIR": str(folder),
        }

    def started(self, script: str, **variables: str) -> subprocess.Popen[str]:
        """Start a script that has sourced the functions, as scripts in production do."""
        whole = f'set -euo pipefail; source "$LEASE_PROXY_CLIENT_SH"\n{script}'
        return subprocess.Popen(
            ["/bin/bash", "-c", whole],
            env={**self.variables, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def shell(self, script: str, **variables: str) -> tuple[int, str, str]:
        """Run a script to its end; return its exit code, output and errors."""
        with self.started(script, **variables) as process:
            out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err

    def held(self, pool: str) -> list[Lease]:
        """Return the granted leases of a pool."""
        return [one for one in self.harbour.leases(pool) if one.state == "granted"]


@pytest.fixture
def quay(port: Harbour, tmp_path: Path) -> Quay:
    """Shells at the proxy."""
    return Quay(port, tmp_path)


def test_the_flow_of_an_installation(quay: Quay) -> None:
    """Acquire, show, release after a while or at exit, whichever is first; all in child shells."""
    pool = quay.harbour.pool(limit=3)
    script = f"""
        handle=$(lease__acquire --type={pool} --count=2 --scope=step)
        printf '%s\\n' "$(lease__cat --handle="$handle" --format=csv)"
        /bin/bash -c 'lease__cat --handle=$1' bash "$handle"; echo
        read -r wait
        lease__release --handle="$handle" --delay=0s
        lease__release --handle="$handle"
        [[ ! -e $handle ]]
    """
    with quay.started(script) as process:
        assert process.stdout is not None
        names = process.stdout.readline().strip().split(",")
        assert len(set(names)) == 2
        assert [process.stdout.readline().strip() for _ in names] == names
        assert len(quay.held(pool)) == 1
        out, err = process.communicate("\n", SECONDS)
    assert (process.returncode, out) == (0, ""), err
    assert quay.held(pool) == []
    assert not (quay.folder / "leases").exists()


def test_another_step_releases(quay: Quay) -> None:
    """With the scope test, the default, the shared folder keeps names until they are released."""
    pool = quay.harbour.pool(limit=3)
    assert (
        quay.shell(f"lease__acquire -t {pool} -c 2 >/dev/null; lease__acquire --type {pool}")[0]
        == 0
    )
    names = (quay.folder / "leases").read_text().splitlines()
    assert len(set(names)) == 3
    code, out, err = quay.shell("lease__release --scope=test; lease__release --scope=test")
    assert (code, out) == (0, "")
    assert err == f"{','.join(names)} released\n"
    assert quay.held(pool) == []
    assert (quay.folder / "leases").read_text() == ""


def test_release_by_name(quay: Quay) -> None:
    """Names with commas; a second release succeeds; an unknown name fails."""
    pool = quay.harbour.pool(limit=2)
    handle = quay.shell(f"lease__acquire --type={pool} --count=2")[1]
    code, out, _ = quay.shell(f"lease__cat --handle={handle} --format=csv")
    assert code == 0
    assert quay.shell(f"lease__release --names={out}")[0] == 0
    assert quay.held(pool) == []
    assert quay.shell(f"lease__release --names {out}")[0] == 0
    code, _, err = quay.shell("lease__release --names=nobody-knows-it")
    assert code == 1
    assert "Failed to release" in err


def test_what_is_released_is_not_released_again_with_the_test(quay: Quay) -> None:
    """Slots' names are reused: the present holder keeps its slot, whatever the test did before."""
    pool = "slotted"
    handles = [quay.shell(f"lease__acquire --type={pool}")[1] for _ in range(3)]
    by_handle, by_name, kept = (Path(handle).read_text() for handle in handles)
    assert quay.shell(f"lease__release --handle={handles[0]}")[0] == 0
    assert quay.shell(f"lease__release --names={by_name}")[0] == 0
    assert (quay.folder / "leases").read_text() == f"{kept}\n"
    others = quay.shell(f"lease__acquire --type={pool} --count=2 --scope=step")[1]
    assert set(Path(others).read_text().split()) == {by_handle, by_name}
    assert quay.shell("lease__release --scope=test")[0] == 0
    (held,) = quay.held(pool)
    assert set(held.slots[pool]) == {by_handle, by_name}


def test_exit_codes(quay: Quay) -> None:
    """Exit code 2: no such type, 1: other errors; a captured handle is then empty."""
    for code, words in (
        (2, "--type=no/such/type"),
        (1, ""),
        (1, "--type=x --count=-1"),
        (1, "--type=x --scope=job"),
        (1, "--type=x --jitter=1h"),
        (1, "--type=x --jitter=10"),
    ):
        script = f'code=0; h=$(lease__acquire {words}) || code=$?; echo "[$h]"; exit $code'
        got, out, err = quay.shell(script)
        assert (got, out) == (code, "[]\n"), words
        assert err.count("\n") == 1
    pool = quay.harbour.pool()
    assert quay.shell(f"lease__acquire --type={pool} --count=2")[0] == 1
    assert quay.shell(f"lease__acquire --type={pool}", SHARED_DIR="")[0] == 1
    assert quay.held(pool) == []
    for words in ("", "--names=a --scope=test", "--handle=h --names=a", "--scope=step"):
        assert quay.shell(f"lease__release {words}")[0] == 1, words
    assert quay.shell("lease__release --handle=")[0] == 0


def test_nothing_is_asked_for(quay: Quay) -> None:
    """A count of 0 succeeds and prints nothing."""
    pool = quay.harbour.pool()
    assert quay.shell(f"lease__acquire --type={pool} --count=0") == (0, "", "")


def test_a_dry_run(quay: Quay) -> None:
    """Without a proxy acquire prints a mark, and everything succeeds."""
    script = "lease__acquire --type=x; lease__release --names=a; lease__release --handle="
    code, out, err = quay.shell(script, LEASE_PROXY_SERVER_URL="")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "LEASE_PROXY_SERVER_URL-not-set-dry-run-mode"
    code, _, err = quay.shell("lease__acquire", LEASE_PROXY_SERVER_URL="")
    assert (code, err.count("\n")) == (1, 1)


def test_who_is_limited(quay: Quay) -> None:
    """Only the profile sets of the organisation are."""
    for code, name in ((0, "openshift-org-aws"), (1, "openshift-org-"), (1, "other"), (1, "")):
        script = "lease__install_lease_eligible"
        assert quay.shell(script, CLUSTER_PROFILE_SET_NAME=name)[0] == code
    assert quay.shell("lease__install_lease_eligible")[0] == 1


def test_it_waits_for_its_turn(quay: Quay) -> None:
    """It waits until the unit is released; a script that ends while it waits leaves nothing."""
    pool = quay.harbour.pool()
    handle = quay.shell(f"lease__acquire --type={pool}")[1]
    with quay.started(f"lease__acquire --type={pool}") as gone:
        quay.harbour.waiting(pool)
        (python,) = eventually(lambda: children(gone.pid) or None)
        gone.kill()
        os.kill(python, 9)
        quay.harbour.waiting(pool, 0)
    with quay.started(f"lease__acquire --type={pool}") as waiter:
        quay.harbour.waiting(pool)
        assert quay.shell(f"lease__release --handle={handle}")[0] == 0
        assert waiter.communicate(timeout=SECONDS)[0]
        assert waiter.returncode == 0
    assert len(quay.held(pool)) == 1


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def test_a_delayed_release_ends_with_its_shell(quay: Quay) -> None:
    """When the shell that was to release later is killed, none of its processes is left."""
    pool = quay.harbour.pool()
    handle = quay.shell(f"lease__acquire --type={pool}")[1]
    with quay.started(f"lease__release --handle={handle} --delay=20m; echo done") as shell:
        (python,) = eventually(lambda: children(shell.pid) or None)
        shell.kill()
        eventually(lambda: True if gone(python) else None)
    assert len(quay.held(pool)) == 1
    assert Path(handle).exists()


def test_a_handle_is_released_once(quay: Quay) -> None:
    """Two release the same handle at once: one does, the other finds nothing to do."""
    pool = quay.harbour.pool(limit=2)
    handle = quay.shell(f"lease__acquire --type={pool} --count=2")[1]
    code, _, err = quay.shell(
        f"lease__release --handle={handle} & lease__release --handle={handle}; wait $!"
    )
    assert (code, err.count("released")) == (0, 1)
    assert quay.held(pool) == []


def test_a_proxy_that_asks_for_a_password(tmp_path: Path) -> None:
    """User and password are in its URL, as for curl; with wrong ones nothing is acquired."""
    config, passwords = tmp_path / "boskos.yaml", tmp_path / "passwords"
    config.write_text("resources:\n- {type: slotted, state: free, names: [s1]}\n")
    write_private(passwords, "ci:p@ss:w0rd\n")
    door = ("--boskos-listen", "127.0.0.1:0", "--boskos-config", str(config))
    secured = ("--boskos-password-file", str(passwords))
    with harbour(tmp_path, *door, *secured) as found:
        proxy = found.server.boskos_url
        quay = Quay(found, tmp_path, proxy.replace("://", "://ci:p%40ss:w0rd@"))
        wrong = {"LEASE_PROXY_SERVER_URL": proxy.replace("://", "://ci:other@")}
        code, handle, err = quay.shell("lease__acquire --type=slotted", **wrong)
        assert (code, handle, "403" in err) == (1, "", True)
        code, handle, err = quay.shell("lease__acquire --type=slotted")
        assert (code, err) == (0, "")
        assert len(quay.held("slotted")) == 1
        assert quay.shell(f"lease__release --handle={handle}")[0] == 0
        assert quay.held("slotted") == []


def test_a_redirect_is_not_followed(quay: Quay) -> None:
    """The server of the redirect gets no request, and above all no password."""
    with (
        socket.create_server(("127.0.0.1", 0)) as here,
        socket.create_server(("127.0.0.1", 0)) as there,
        ThreadPoolExecutor() as thread,
    ):
        there.settimeout(0)
        answer = f"HTTP/1.1 302 Found\r\nLocation: {at(there)}/x\r\nContent-Length: 0\r\n\r\n"
        heard = thread.submit(respond_once, here, answer.encode())
        where = {"LEASE_PROXY_SERVER_URL": at(here).replace("://", "://ci:secret@")}
        code, _, err = quay.shell("lease__acquire --type=p", **where)
        assert (code, "302" in err) == (1, True)
        assert b"Authorization: Basic" in heard.result()
        with pytest.raises(BlockingIOError):
            there.accept()


def at(listener: socket.socket) -> str:
    """Return the URL of a listener."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"
