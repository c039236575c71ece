"""The credentials of a cluster: what a kubeconfig file says, and what is wrong with one."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.integrations.kubernetes.api import KubernetesApi
from moorage.integrations.kubernetes.connection import UnusableError, by_kubeconfig, in_cluster
from tests.support.certificates import certificate
from tests.support.kubeconfig import kubeconfig
from tests.support.kubernetes_client import host, hosts_in
from tests.support.kubernetes_double.access import ADMIN, Access
from tests.support.kubernetes_double.server import KubernetesDouble

HOSTS = hosts_in("metal3")


def written(folder: Path, content: Any) -> str:
    """Write a file; return its path."""
    path = folder / "config"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_a_server_with_its_own_authority_and_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is trusted by the file's authority and gets its token; KUBECONFIG stays."""
    monkeypatch.setenv("KUBECONFIG", "/of/somebody/else")
    own = certificate(tmp_path, "IP:127.0.0.1")

    async def scene() -> None:
        async with KubernetesDouble(tls=own.server()) as double:
            double.access = Access({"secret": ADMIN})
            content = kubeconfig(
                double.url, {"token": "secret"}, **{"certificate-authority-data": own.bundle}
            )
            async with KubernetesApi(by_kubeconfig(written(tmp_path, content))) as api:
                await api.create(HOSTS, host("a"))
                assert [one["metadata"]["name"] for one in await api.all(HOSTS)] == ["a"]

    asyncio.run(scene())
    assert os.environ["KUBECONFIG"] == "/of/somebody/else"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (kubeconfig("http://x", {"exec": {"command": "aws"}}), "no token, password or certificate"),
        ({**kubeconfig("http://x", {"token": "a"}), "users": []}, "no 'me'"),
        ({"contexts": []}, "Current context is not set"),
        ("- a\n- b\n", "is not a kubeconfig file"),
        ("{", "is not a kubeconfig file"),
        (kubeconfig("http://x", {"token": "a"}) | {"clusters": [{"name": "one"}]}, "has no server"),
        (
            kubeconfig("https://x", {"token": "a"}, **{"certificate-authority": "/no"}),
            "no file /no",
        ),
        (
            kubeconfig("https://x", {"token": "a"}, **{"certificate-authority-data": "x"}),
            "certificate",
        ),
        (kubeconfig("https://x", {"client-certificate-data": "eA=="}), "certificate with its key"),
        (kubeconfig("http://x", {"tokenFile": "/token"}), "nor tokenFile is"),
        (kubeconfig("http://x", {"token": "a"}, **{"proxy-url": "http://p"}), "proxy-url"),
        (kubeconfig("x:6443", {"token": "a"}), "'x:6443' is not the URL of a server"),
        ({**kubeconfig("http://x", {"token": "a"}), "current-context": ""}, "names no context"),
    ],
)
def test_a_file_that_names_no_usable_cluster(tmp_path: Path, content: Any, words: str) -> None:
    """The error names the file and says what is wrong with it."""
    path = written(tmp_path, content)
    with pytest.raises(UnusableError, match=words) as refusal:
        by_kubeconfig(path)
    assert path in str(refusal.value)


ODD: tuple[Any, ...] = (None, "", "x", "eA==", 7, True, [], ["x"], {}, {"x": "x"}, "/no")


def odd_variants(content: Any) -> Iterator[Any]:
    """Yield a document again and again, each time with another part replaced, or missing."""
    yield from ODD
    if isinstance(content, dict):
        for name, value in content.items():
            yield {key: one for key, one in content.items() if key != name}
            yield from ({**content, name: one} for one in odd_variants(value))
    elif isinstance(content, list):
        yield from ([one] for one in odd_variants(content[0]))


def test_every_odd_file_is_usable_or_refused(tmp_path: Path) -> None:
    """Whatever a file has in place of a part: it is used, or refused by an error that names it."""
    own = certificate(tmp_path, "IP:127.0.0.1")
    user = {"token": "a", "username": "b", "password": "c", "client-certificate-data": own.bundle}
    full = kubeconfig("https://x", user, **{"certificate-authority-data": own.bundle})
    full["users"][0]["user"] |= {"client-certificate": "/a", "client-key": "/b"}
    full["clusters"][0]["cluster"] |= {"certificate-authority": "/c", "proxy-url": None}
    number = 0
    for content in (kubeconfig("https://x", {"token": "a"}), full):
        for one in odd_variants(content):
            path = written(tmp_path, json.dumps(one))
            number += 1
            try:
                found = by_kubeconfig(path)
            except UnusableError as refusal:
                assert path in str(refusal), one
                assert "\n" not in str(refusal), one
            else:
                assert found.server.startswith("http"), one
                assert all(isinstance(text, str) for text in found.headers().values()), one
    assert number > 200


def test_no_file_and_no_pod(tmp_path: Path) -> None:
    """A missing file is named; outside a pod, the error says which option to use."""
    with pytest.raises(UnusableError, match="there is no such file"):
        by_kubeconfig(str(tmp_path / "none"))
    with pytest.raises(UnusableError, match="--kubeconfig"):
        in_cluster()


def named(url: str, name: str, token: str) -> dict[str, Any]:
    """Return a configuration in which all names are the same, without a current context."""
    return {
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": token}}],
    }


def test_a_context_of_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context is found in any of the files, before their current one; an unknown one is named."""
    paths = []
    for name in ("one", "two"):
        content = {**named(f"http://{name}", name, f"of-{name}"), "current-context": "one"}
        (tmp_path / name).write_text(json.dumps(content))
        paths.append(str(tmp_path / name))
    both = os.pathsep.join(paths)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert by_kubeconfig(both).server == "http://one"
    found = by_kubeconfig(both, "two")
    assert (found.server, found.headers()["Authorization"]) == ("http://two", "Bearer of-two")
    with pytest.raises(UnusableError, match="there is no context 'three'"):
        by_kubeconfig(both, "three")
    with pytest.raises(UnusableError, match="none: there is no such file"):
        by_kubeconfig(os.pathsep.join([*paths, str(tmp_path / "none")]))
    assert "KUBECONFIG" not in os.environ
