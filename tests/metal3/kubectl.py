"""kubectl does against the double what people do with hosts."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moorage.integrations.metal3.events import Event, State
from moorage.integrations.metal3.hosts import WAITING
from moorage.integrations.metal3.notes import text_of
from tests.support.certificates import Certificate
from tests.support.kubernetes_client import host
from tests.support.kubernetes_double.server import KubernetesDouble

TOKEN = "kubectl-token"
SECONDS = 60.0
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PAUSED = "baremetalhost.metal3.io/paused"


def kubeconfig(url: str, token: str, trusted: Certificate) -> dict[str, Any]:
    """Return a configuration of clients."""
    context = {"cluster": "double", "user": "double", "namespace": "metal3"}
    server = {"server": url, "certificate-authority-data": trusted.bundle}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "double",
        "clusters": [{"name": "double", "cluster": server}],
        "users": [{"name": "double", "user": {"token": token}}],
        "contexts": [{"name": "double", "context": context}],
    }


class Kubectl:
    """The command; each call returns its exit code and its output."""

    def __init__(self, command: str, folder: Path, url: str, trusted: Certificate) -> None:
        self._command, self._folder = command, folder
        (folder / "config").write_text(json.dumps(kubeconfig(url, TOKEN, trusted)))
        self._options = ["--kubeconfig", str(folder / "config"), "--cache-dir", str(folder / "c")]

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        """Start it."""
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *(self._command, *self._options, *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=asyncio.subprocess.STDOUT,
            env={"HOME": str(self._folder), "PATH": "/usr/bin:/bin"},
        )

    async def run(self, *words: str) -> tuple[int, str]:
        """Run it to its end."""
        process = await self.start(*words)
        output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        return process.returncode or 0, output.decode()

    def file(self, document: Any) -> str:
        """Write a manifest; return its path."""
        path = self._folder / "manifest.json"
        path.write_text(json.dumps(document))
        return str(path)

    async def created(self, name: str, waiting: str) -> bool:
        """Create a host with a note; return whether that was possible."""
        code, _ = await self.run(
            "create", "-f", self.file(host(name, annotations={WAITING: waiting}))
        )
        return code == 0

    @asynccontextmanager
    async def watching(self, *words: str) -> AsyncIterator[asyncio.StreamReader]:
        """Yield the output of a command that does not end by itself."""
        process = await self.start(*words)
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()


def annotations(double: KubernetesDouble, name: str) -> dict[str, str]:
    """Return what is stored; without what kubectl itself keeps there."""
    found = double.storage.get(("metal3.io", "baremetalhosts", "metal3", name))
    held = (found or {"metadata": {}})["metadata"].get("annotations") or {}
    return {key: value for key, value in held.items() if not key.startswith("kubectl.")}


async def steps(double: KubernetesDouble, kubectl: Kubectl) -> AsyncIterator[tuple[str, bool, str]]:
    """Yield each step: what must hold, whether it does, and what kubectl printed."""

    async def step(what: str, *words: str, shows: str = "", fails: bool = False) -> Any:
        code, text = await kubectl.run(*words)
        return what, (code != 0) is fails and shows in text, text

    first = kubectl.file(host("a", annotations={"mine": "1"}))
    yield await step("api-resources shows hosts", "api-resources", shows="baremetalhosts")
    yield await step("apply creates", "apply", "-f", first, shows="a created")
    yield await step("apply changes nothing", "apply", "-f", first, shows="a unchanged")
    second = kubectl.file(host("a", image="http://image", annotations={"mine": "2"}))
    yield await step("apply changes", "apply", "-f", second, shows="a configured")
    yield "apply has changed", annotations(double, "a") == {"mine": "2"}, ""
    third = kubectl.file(host("b", annotations={"mine": "1"}))
    served = ("apply", "--server-side", "-f", third)
    yield await step("apply on the server", *served, shows="serverside-applied")
    taken = ("annotate", "--overwrite", "bmh/b", "mine=3")
    yield await step("annotate takes a field over", *taken, shows="annotated")
    yield await step("apply on the server conflicts", *served, shows="conflict", fails=True)
    forced = (*served, "--force-conflicts")
    yield await step("apply on the server is forced", *forced, shows="serverside-applied")
    yield "it was", annotations(double, "b") == {"mine": "1"}, ""
    yield await step("get by a short name", "get", "bmh", shows="a ")
    yield await step("get all", "get", "bmh", "-A", "-o", "name", shows="metal3.io/b")
    path = ("-o", "jsonpath={.spec.image.url}")
    yield await step("get a field", "get", "baremetalhost", "a", *path, shows="http://image")
    yield await step("describe", "describe", "bmh", "a", shows="http://image")
    yield await described(double, kubectl)
    pausing = ("annotate", "bmh", "a", f"{PAUSED}=moorage")
    yield await step("annotate", *pausing, shows="annotated")
    yield "it is paused", annotations(double, "a") == {"mine": "2", PAUSED: "moorage"}, ""
    yield await step("annotate removes", "annotate", "bmh", "a", f"{PAUSED}-", shows="annotated")
    yield "it is not paused", annotations(double, "a") == {"mine": "2"}, ""
    merge = ("patch", "bmh", "a", "--type=merge", "-p", '{"spec":{"online":false}}')
    yield await step("patch", *merge, shows="a patched")
    wrong = '[{"op":"test","path":"/spec/online","value":true}]'
    refused = ("patch", "bmh", "a", "--type=json", "-p", wrong)
    yield await step("a JSON patch tests", *refused, shows="request is invalid", fails=True)
    yield await step("label", "label", "bmh", "a", "rack=1", shows="labeled")
    yield await step("select", "get", "bmh", "-l", "rack=1", "-o", "name", shows="metal3.io/a")
    ready = ("wait", "bmh/a", "--for=delete", "--timeout=30s")
    before = double.counts["watch", "baremetalhosts"]
    async with kubectl.watching(*ready) as output:
        await asyncio.wait_for(double.received("watch", "baremetalhosts", before + 1), SECONDS)
        yield await step("delete", "delete", "bmh", "a", "--wait=true", shows='"a" deleted')
        line = await asyncio.wait_for(output.readline(), SECONDS)
        yield "wait sees the delete", b"condition met" in line, line.decode()
    yield await step("get what is gone", "get", "bmh", "a", shows="NotFound", fails=True)
    yield await watched(double, kubectl)


async def described(double: KubernetesDouble, kubectl: Kubectl) -> tuple[str, bool, str]:
    """Describe a host that says why it waits: all of it is shown, and the event about it."""
    reason = "first in line; limit: 4 of 4 units of deploy are held by metal3/host-0 (1)," * 3
    note = {"place": 1, "eta_seconds": [40, 90], "reason": reason}
    stored = await kubectl.created("d", text_of(note, AT))
    read = double.storage.get(("metal3.io", "baremetalhosts", "metal3", "d"))
    if not stored or read is None:
        return "create a host that waits", False, ""
    event = Event(read, State.WAITING, "ticket", "Place 1 in line of deploy", AT).object()
    await kubectl.run("create", "-f", kubectl.file(event))
    _, text = await kubectl.run("describe", "bmh", "d")
    await kubectl.run("delete", "bmh", "d")
    shown = " ".join(text.split())
    right = (
        "place: 1 eta_seconds: [40, 90]" in shown
        and reason in shown
        and re.search(r"Normal Waiting \S+ moorage Place 1 in line of deploy", shown)
    )
    return "describe shows why a host waits", bool(right), text


async def watched(double: KubernetesDouble, kubectl: Kubectl) -> tuple[str, bool, str]:
    """Watch while hosts change."""
    before = double.counts["watch", "baremetalhosts"]
    async with kubectl.watching("get", "bmh", "-o", "name", "--watch") as output:
        await asyncio.wait_for(double.received("watch", "baremetalhosts", before + 1), SECONDS)
        await kubectl.run("apply", "-f", kubectl.file(host("c")))
        await kubectl.run("annotate", "bmh", "c", "more=1")
        lines = [await asyncio.wait_for(output.readline(), SECONDS) for _ in range(3)]
    text = b"".join(lines).decode()
    return "watch", text.count("metal3.io/b") == 1 and text.count("metal3.io/c") == 2, text
