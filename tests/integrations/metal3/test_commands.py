"""`moorage metal3`: what is printed, and what is wrong with a command line."""

import asyncio
import json
import os
import subprocess
import sys
import threading
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
WEBHOOK = ("metal3", "webhook", "--tls-cert")
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
        (2, INSTALL, "use --print"),
        (2, (*INSTALL, "--print", "--namespace", "A"), "--namespace must be a DNS label"),
        (2, (*INSTALL, "--print", "--rules", "/none"), "give either --pool or --rules"),
        (2, (*BARE, "--print"), "give either --pool or --rules"),
        (2, (*BARE, "--print", "--rules", "/none"), "cannot read /none"),
        (2, (*BARE, "--print", "--rules", "odd.toml"), "'conductor' is not a field of a host"),
        (2, UNINSTALL, "use --kubeconfig"),
        (2, (*UNINSTALL, "--context", "a"), "--context needs --kubeconfig, or KUBECONFIG"),
        (2, (*UNINSTALL, "--kubeconfig", "/none"), "there is no such file"),
        (2, (*UNINSTALL, "--kubeconfig", "config", "--context", "b"), "no context 'b'"),
        (2, (*UNINSTALL, "--kubeconfig", "/none", "--kubernetes", "http://m"), "give either"),
        (2, (*UNINSTALL, "--context", "a", "--kubernetes", "http://m"), "give either"),
        (2, (*UNINSTALL, "--ca-file", "/none", "--kubeconfig", "config"), "need --kubernetes"),
        (2, (*GOVERN, "--kubeconfig", "config", "--context", "b"), "no context 'b'"),
        (2, ("metal3", "uninstall", "--kubernetes", "ftp://m"), "ftp"),
        (
            2,
            ("metal3", "uninstall", "--kubernetes", "http://m", "--ca-file", "/none"),
            "/none: No such",
        ),
        (5, ("metal3", "uninstall", "--kubernetes", "http://127.0.0.1:9"), "no answer from"),
        (2, ("metal3", "uninstall", "--kubernetes", "http://m", "--ca-file", "config"), "config:"),
        (2, ("metal3", "webhook", "--tls-cert", "/none", "--tls-key", "/none"), "/none: No such"),
        (2, (*WEBHOOK, "config", "--tls-key", "config"), "config and config: this is not a cert"),
        (2, (*GOVERN, "--namespace", ""), "--namespace must be a DNS label"),
        (2, (*GOVERN, "--namespace", "../x"), "--namespace must be a DNS label"),
        (2, (*GOVERN, "--cluster-name", "a b"), "--cluster-name must have 1 to 63 letters"),
        (2, (*INSTALL, "--print", "--image", ""), "--image '' cannot stand in a manifest"),
    ],
)
def test_wrong_values(tmp_path: Path, code: int, words: tuple[str, ...], said: str) -> None:
    """Each ends the command with one line that says what to change."""
    (tmp_path / "odd.toml").write_text('[[rule]]\npool = "{conductor}"\n')
    (tmp_path / "config").write_text(kubeconfig("http://127.0.0.1:9"))
    assert said in refusal(code, *words, directory=tmp_path)


@pytest.mark.parametrize("command", [GOVERN, ("ironic", "govern")])
@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1", "x"])
def test_an_interval_is_a_number_of_seconds(command: tuple[str, ...], value: str) -> None:
    """Others are refused before anything else happens, also those that compare with no number."""
    words = (*command, "--interval", value)
    found = subprocess.run(
        [sys.executable, "-m", "moorage", *words], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert "Invalid value for '--interval'" in found.stderr


def test_the_webhook_does_not_ask_for_a_pass_phrase(tmp_path: Path) -> None:
    """A key with a pass phrase is refused in one line: nobody is there to type it."""
    command = "openssl req -x509 -newkey rsa:2048 -passout pass:x -keyout k.pem -out c.pem"
    subprocess.run(
        [*command.split(), "-subj", "/CN=x"], cwd=tmp_path, check=True, capture_output=True
    )
    said = refusal(2, *WEBHOOK, "c.pem", "--tls-key", "k.pem", directory=tmp_path)
    assert "c.pem and k.pem: this is not a certificate with its key" in said


@pytest.mark.parametrize("url", ["http://[2001:db8::1]:8778", "http://m:1/"])
def test_install_keeps_the_address(url: str) -> None:
    """The governor gets the address that was given, also one of IPv6."""
    done = moorage("metal3", "install", "--image", "i", "--pool", "p", "--url", url, "--print")
    assert done.returncode == 0, done.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert f"--url={url}" in container["command"]


def test_install_prints_the_rules_as_they_are(tmp_path: Path) -> None:
    """Tabs, letters of all languages and empty lines are in the ConfigMap as in the file."""
    rules = '# ä 桁\n[[rule]]\n\n\tpool\t=\t"deploy"\t\n'
    (tmp_path / "rules.toml").write_text(rules)
    done = moorage(*BARE, "--rules", "rules.toml", "--print", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    assert found["ConfigMap"]["data"]["rules.toml"] == rules.rstrip() + "\n"


def test_install_reads_the_rules_from_a_pipe(tmp_path: Path) -> None:
    """Rules that can be read only once are stored as they are."""
    pipe, rules = tmp_path / "pipe", '[[rule]]\npool = "deploy"\n'
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(rules,))
    writer.start()
    done = moorage(*BARE, "--print", "--rules", str(pipe))
    writer.join()
    assert done.returncode == 0, done.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    assert found["ConfigMap"]["data"] == {"rules.toml": rules}


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
