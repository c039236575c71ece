"""Installs what pauses hosts on a real API server, as the manifests of `moorage metal3 install`."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from urllib.parse import urlsplit

import yaml

from tests.cli.command import moorage
from tests.e2e.support.server import Server
from tests.kubernetes.cluster import KubernetesCluster
from tests.kubernetes.metal3.policies import admission
from tests.support.certificates import certificate

WORDS = ("--image", "registry.example/moorage:1.0", "--pool", "deploy")
ANSWERING = re.compile(r"answering reviews on (?P<url>https://\S+)")
SERVICE = "moorage-webhook"
CERT_MANAGER = ("Issuer", "Certificate")
"""There is no cert-manager here: the certificate is made by the test."""


def manifests(*options: str, url: str = "https://moorage.example") -> str:
    """Return what the command prints; by default with the policy in the version that is served."""
    words = ("--print", *WORDS, "--url", url, "--admission", admission(), *options)
    done = moorage("metal3", "install", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def applied(cluster: KubernetesCluster, text: str, *options: str) -> CompletedProcess[str]:
    """Apply documents with the strictest validation."""
    done = cluster.kubectl("apply", "--validate=strict", "-f", "-", *options, text=text)
    assert done.returncode == 0, done.stderr
    return done


def wait(cluster: KubernetesCluster) -> None:
    """Return when new hosts are paused."""
    done = moorage("metal3", "wait", "--kubeconfig", str(cluster.admin))
    assert done.returncode == 0, done.stderr


def uninstall(cluster: KubernetesCluster, *options: str) -> str:
    """Run the command; return what it prints."""
    done = moorage("metal3", "uninstall", "--kubeconfig", str(cluster.admin), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def policy(cluster: KubernetesCluster, *options: str) -> Iterator[None]:
    """Install the policy, with the governor's rights; it is in force."""
    applied(cluster, manifests(*options))
    wait(cluster)
    try:
        yield
    finally:
        uninstall(cluster)


@contextmanager
def webhook(cluster: KubernetesCluster, folder: Path) -> Iterator[Server]:
    """Install the webhook, and serve it by a process; yield that.

    The API server reaches it by its Service, which leads to this machine.
    """
    trusted = certificate(folder, f"DNS:{SERVICE}.moorage.svc")
    words = ["metal3", "webhook", "--listen", "127.0.0.1:0"]
    words += ["--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")]
    with Server(words, ready=ANSWERING, forked=True) as served:
        port = urlsplit(served.url).port
        documents = [
            one
            for one in yaml.safe_load_all(manifests("--admission", "webhook"))
            if one["kind"] not in CERT_MANAGER
        ]
        for one in documents:
            if one["kind"] == "Service":
                one["spec"] = {"type": "ExternalName", "externalName": "localhost"}
            if one["kind"] == "MutatingWebhookConfiguration":
                (hook,) = one["webhooks"]
                hook["clientConfig"]["caBundle"] = trusted.bundle
                hook["clientConfig"]["service"]["port"] = port
        applied(cluster, "\n---\n".join(json.dumps(one) for one in documents))
        wait(cluster)
        try:
            yield served
        finally:
            uninstall(cluster)
