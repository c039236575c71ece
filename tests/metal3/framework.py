"""kopf watches hosts of the double while watches are cut, history is forgotten, servers restart."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from tests.metal3.kubectl import kubeconfig
from tests.support.certificates import Certificate
from tests.support.kubernetes_client import Kubernetes, host, hosts_in
from tests.support.kubernetes_double.access import ADMIN
from tests.support.kubernetes_double.faults import DROP, Fault
from tests.support.kubernetes_double.kinds import HOSTS
from tests.support.kubernetes_double.server import KubernetesDouble

ALL = hosts_in("metal3")
TOKEN = "operator-token"
SECONDS = 60.0
NAMES = ("a", "b", "c")
SEEN = "test.moorage.dev/seen"
OPERATOR = Path(__file__).with_name("operator_process.py")

Disturb = Callable[[KubernetesDouble], Awaitable[None]]


async def nothing(_: KubernetesDouble) -> None:
    """Leave everything as it is."""


async def cut(double: KubernetesDouble) -> None:
    """Cut all watches."""
    double.drop_watches()


async def forget(double: KubernetesDouble) -> None:
    """Cut all watches and forget the history: each gets 410 when it continues."""
    double.drop_watches()
    for name in NAMES:
        double.storage.write(("metal3.io", "baremetalhosts", "metal3", name), _held(double, name))
    double.forget()


async def restart(double: KubernetesDouble) -> None:
    """Stop the server and start it again, with its storage, on the same port."""
    await double.stop()
    await double.start()


async def errors(double: KubernetesDouble) -> None:
    """Fail, throttle and drop the requests of a new watch."""
    double.faults.pending += [
        Fault("watch", HOSTS.plural, answer=503),
        Fault("list", HOSTS.plural, answer=429, retry_after=1),
        Fault("patch", HOSTS.plural, answer=500),
        Fault("patch", HOSTS.plural, answer=DROP, carry_out=True),
    ]
    double.drop_watches()


def _held(double: KubernetesDouble, name: str) -> dict[str, object] | None:
    return double.storage.get(("metal3.io", "baremetalhosts", "metal3", name))


@contextlib.asynccontextmanager
async def operator(python: str, url: str, trusted: Certificate) -> AsyncIterator[Path]:
    """Run the operator; yield the file with its output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config").write_text(json.dumps(kubeconfig(url, TOKEN, trusted)))
        with (folder / "out").open("wb") as output, (folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(python, "-m", "kopf", "run", "--standalone", "-n", "metal3", str(OPERATOR)),
                stdout=output,
                stderr=log,
                env={"KUBECONFIG": str(folder / "config"), "HOME": name, "PATH": "/usr/bin:/bin"},
            )
            try:
                yield folder
            finally:
                process.terminate()
                await asyncio.wait_for(process.wait(), SECONDS)


async def marked(double: KubernetesDouble, text: str) -> None:
    """Return when the operator has annotated all hosts with a text."""
    while True:
        found = [_held(double, name) for name in NAMES]
        marks = [one["metadata"].get("annotations", {}).get(SEEN) for one in found if one]  # type: ignore[attr-defined]  # JSON
        if marks == [text] * len(NAMES):
            return
        await double.storage.changed(1.0)


async def posted(double: KubernetesDouble, text: str) -> None:
    """Return when the operator has posted an event of each host with a text."""
    while True:
        found = {
            change.object["involvedObject"]["name"]
            for change in double.storage.after(0)
            if change.key[1] == "events" and text in change.object.get("message", "")
        }
        if found == {*NAMES}:
            return
        await double.storage.changed(1.0)


async def framework_problems(python: str, trusted: Certificate) -> tuple[int, list[str]]:
    """Return how many changes were seen, and what was not."""
    problems = []
    rounds = {
        "quiet": nothing,
        "cut": cut,
        "forgotten": forget,
        "restarted": restart,
        "failing": errors,
    }
    async with (
        KubernetesDouble(accounts={TOKEN: ADMIN}, tls=trusted.server()) as double,
        operator(python, double.url, trusted) as folder,
        Kubernetes(double.url, token=TOKEN, tls=trusted.client()) as api,
    ):
        for name in NAMES:
            await api.create(ALL, host(name))
        for text, disturb in rounds.items():
            for name in NAMES:
                await api.merge(f"{ALL}/{name}", {"spec": {"description": text}})
            await disturb(double)
            try:
                await asyncio.wait_for(marked(double, text), SECONDS)
                await asyncio.wait_for(posted(double, f"seen {text}"), SECONDS)
            except TimeoutError:
                log = (folder / "log").read_text()[-3000:]
                problems.append(f"FAILED kopf: {text}: not all changes were seen\n{log}")
        lines = {*(folder / "out").read_text().splitlines()}
        seen = [(name, text) for name in NAMES for text in rounds if _shown(lines, name, text)]
    return len(seen), problems


def _shown(lines: set[str], name: str, text: str) -> bool:
    return any(line.split(" ", 1)[1] == f"{name} {text}" for line in lines)
