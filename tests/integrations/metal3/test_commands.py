"""`moorage metal3`: what is printed, and what is wrong with a command line."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli.main import cli
from tests.cli.command import moorage, refusal
from tests.support.kubernetes_client import Kubernetes, host, hosts_in
from tests.support.kubernetes_double.access import ADMIN
from tests.support.kubernetes_double.server import KubernetesDouble

PAUSED = "baremetalhost.metal3.io/paused"

BARE = ("metal3", "install", "--image", "i:1", "--url", "http://m:1")
INSTALL = (*BARE, "--pool", "deploy")
UNINSTALL = ("metal3", "uninstall")
GOVERN = ("metal3", "govern", "--pool", "deploy", "--url", "http://127.0.0.1:9", "--token", "t")


def kubeconfig(server: str) -> str:
    """Return a configuration whose only context is `a`, which is not the current one."""
    content = {
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    return json.dumps(content)


def test_install_prints_documents_that_can_be_applied() -> None:
    """The output is YAML, and has the policy with its binding."""
    done = moorage(*INSTALL, "--print")
    assert done.returncode == 0, done.stderr
    kinds = [one["kind"] for one in yaml.safe_load_all(done.stdout)]
    assert kinds[0] == "Namespace"
    assert kinds[-2:] == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, INSTALL, "give --print"),
        (2, (*INSTALL, "--print", "--namespace", "A"), "--namespace must be a DNS label"),
        (2, (*INSTALL, "--print", "--rules", "/none"), "give either --pool or --rules"),
        (2, (*BARE, "--print"), "give either --pool or --rules"),
        (2, (*BARE, "--print", "--rules", "/none"), "cannot read /none"),
        (2, (*BARE, "--print", "--rules", "odd.toml"), "'conductor' is no field of a host"),
        (2, UNINSTALL, "Use --kubeconfig"),
        (2, (*UNINSTALL, "--context", "a"), "--context needs --kubeconfig, or KUBECONFIG"),
        (2, (*UNINSTALL, "--kubeconfig", "/none"), "there is no such file"),
        (2, (*UNINSTALL, "--kubeconfig", "config", "--context", "b"), "no context 'b'"),
        (2, (*UNINSTALL, "--kubeconfig", "/none", "--kubernetes", "http://m"), "give either"),
        (2, (*UNINSTALL, "--context", "a", "--kubernetes", "http://m"), "give either"),
        (2, (*UNINSTALL, "--ca-file", "/none", "--kubeconfig", "config"), "need --kubernetes"),
        (2, (*GOVERN, "--kubeconfig", "config", "--context", "b"), "no context 'b'"),
        (2, ("metal3", "uninstall", "--kubernetes", "ftp://m"), "ftp"),
        (2, ("metal3", "uninstall", "--kubernetes", "http://m", "--ca-file", "/none"), "No such"),
        (5, ("metal3", "uninstall", "--kubernetes", "http://127.0.0.1:9"), "no answer from"),
        (2, ("metal3", "webhook", "--tls-cert", "/none", "--tls-key", "/none"), "/none"),
    ],
)
def test_wrong_values(tmp_path: Path, code: int, words: tuple[str, ...], said: str) -> None:
    """Each ends the command with one line that says what to change."""
    (tmp_path / "odd.toml").write_text('[[rule]]\npool = "{conductor}"\n')
    (tmp_path / "config").write_text(kubeconfig("http://127.0.0.1:9"))
    assert said in refusal(code, *words, directory=tmp_path)


def test_install_prints_the_rules(tmp_path: Path) -> None:
    """The rules of a valid file are in a ConfigMap of the namespace, which the pods mount."""
    rules = '[[rule]]\npool = "deploy/{labels.rack}"\notherwise = "deploy/other"\n'
    (tmp_path / "rules.toml").write_text(rules)
    words = (*BARE, "--print", "--rules", "rules.toml", "--namespace", "ours")
    done = moorage(*words, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    assert found["ConfigMap"]["data"] == {"rules.toml": rules}
    assert found["ConfigMap"]["metadata"]["namespace"] == "ours"


def test_uninstall_by_a_kubeconfig_file(tmp_path: Path) -> None:
    """It uses the server and the token of the context, and names hosts that others still pause."""

    async def scene() -> None:
        async with (
            KubernetesDouble(accounts={"secret": ADMIN}) as double,
            Kubernetes(double.url, token="secret") as client,
        ):
            for name, pause in (("a", "moorage"), ("b", "metal3.io/capm3")):
                await client.create(hosts_in("metal3"), host(name, annotations={PAUSED: pause}))
            (tmp_path / "config").write_text(kubeconfig(double.url))
            words = (*UNINSTALL, "--kubeconfig", "config", "--context", "a")
            done = await asyncio.to_thread(moorage, *words, "--dry-run", directory=tmp_path)
            assert done.stdout.splitlines() == [
                "would remove: 0 admission objects, 1 pauses of hosts",
                "metal3/b stays paused by another controller: metal3.io/capm3",
            ]
            done = await asyncio.to_thread(moorage, *words, directory=tmp_path)
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("removed: 0 admission objects, 1 pauses of hosts\n")
            left = (await client.get(hosts_in("metal3")))["items"]
            assert [one["metadata"].get("annotations") or {} for one in left] == [
                {},
                {PAUSED: "metal3.io/capm3"},
            ]

    asyncio.run(scene())


def test_uninstall_shows_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a long run it says how many pauses are removed, of how many."""
    monkeypatch.setattr("moorage.cli.commands.metal3.uninstall.PROGRESS_SECONDS", 0.0)

    async def scene() -> None:
        async with KubernetesDouble() as double, Kubernetes(double.url) as client:
            for name in "abc":
                paused = host(name, annotations={PAUSED: "moorage"})
                await client.create(hosts_in("metal3"), paused)
            words = ["metal3", "uninstall", "--kubernetes", double.url]
            done = await asyncio.to_thread(CliRunner().invoke, cli, words)
            assert [line for line in done.output.splitlines() if line.startswith("removed")] == [
                *(f"removed {number} of 3 pauses of hosts" for number in (1, 2, 3)),
                "removed: 0 admission objects, 3 pauses of hosts",
            ]

    asyncio.run(scene())
