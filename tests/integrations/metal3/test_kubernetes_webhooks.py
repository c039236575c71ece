"""The double of Kubernetes calls webhooks over HTTPS, and does as their failure policy says."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.support.certificates import Certificate, certificate
from tests.support.kubernetes_client import Answered, Kubernetes, host, hosts_in, least_status
from tests.support.kubernetes_double.server import KubernetesDouble

ALL = hosts_in("metal3")
SERVICE = "hook.moorage.svc"
PAUSED = "baremetalhost.metal3.io/paused"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
Answer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """The certificate of the webhook."""
    return certificate(tmp_path_factory.mktemp("tls"), f"DNS:{SERVICE}")


@asynccontextmanager
async def webhook(
    double: KubernetesDouble, trusted: Certificate, answer: Answer
) -> AsyncIterator[None]:
    """Serve a webhook; the double finds it as a service."""

    async def handle(request: web.Request) -> web.Response:
        review = (await request.json())["request"]
        response = {"uid": review["uid"], **await answer(review)}
        kinds = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**kinds, "response": response})

    application = web.Application()
    application.router.add_post("/mutate", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=trusted.server()).start()
    double.admission.services["moorage", "hook"] = ("127.0.0.1", runner.addresses[0][1])
    try:
        yield
    finally:
        await runner.cleanup()


def configuration(trusted: Certificate, **more: Any) -> dict[str, Any]:
    """Return a configuration that sends hosts to the webhook."""
    service = {"name": "hook", "namespace": "moorage", "path": "/mutate"}
    rule = {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": ["metal3.io"],
        "apiVersions": ["v1alpha1"],
        "resources": ["baremetalhosts"],
    }
    hook = {
        "name": "pause.moorage.dev",
        "clientConfig": {"service": service, "caBundle": trusted.bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
        **more,
    }
    kinds = {"kind": "MutatingWebhookConfiguration"}
    return {**kinds, "metadata": {"name": "moorage"}, "webhooks": [hook]}


async def pausing(review: dict[str, Any]) -> dict[str, Any]:
    """Pause a host with an image."""
    found = review["object"]
    if "image" not in found["spec"]:
        return {"allowed": True}
    annotations = {**found["metadata"].get("annotations", {}), PAUSED: "moorage"}
    steps = [{"op": "add", "path": "/metadata/annotations", "value": annotations}]
    patch = base64.b64encode(json.dumps(steps).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def play(scene: Callable[[KubernetesDouble, Kubernetes], Awaitable[None]]) -> None:
    """Run a scene with a double and a client."""

    async def run() -> None:
        async with KubernetesDouble() as double, Kubernetes(double.url) as api:
            await asyncio.wait_for(scene(double, api), 20)

    asyncio.run(run())


def test_the_pause_is_in_the_very_write(trusted: Certificate) -> None:
    """What the webhook adds is stored with the image, at a create and at a patch; the webhook gets
    the old object; a write to the status is not its business.
    """
    seen = []

    async def answer(review: dict[str, Any]) -> dict[str, Any]:
        seen.append((review["operation"], review["name"], (review["oldObject"] or {}).get("spec")))
        return await pausing(review)

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        async with webhook(double, trusted, answer):
            await api.create(WEBHOOKS, configuration(trusted))
            plain = await api.create(ALL, host("a"))
            assert "annotations" not in plain["metadata"]
            image = {"spec": {"image": {"url": "http://image"}}}
            found = await api.merge(f"{ALL}/a", image)
            assert found["metadata"]["annotations"] == {PAUSED: "moorage"}
            versions = [
                change.object["metadata"].get("annotations")
                for change in double.storage.after(int(plain["metadata"]["resourceVersion"]))
                if "image" in change.object.get("spec", {})
            ]
            assert versions == [{PAUSED: "moorage"}]
            found = await api.create(ALL, host("b", image="http://image"))
            assert found["metadata"]["annotations"] == {PAUSED: "moorage"}
            await api.merge(f"{ALL}/a/status", {"status": least_status(poweredOn=True)})
        assert [one[:2] for one in seen] == [("CREATE", "a"), ("UPDATE", "a"), ("CREATE", "b")]
        assert seen[1][2] == plain["spec"]

    play(scene)


def test_denied(trusted: Certificate) -> None:
    """A denied write is refused with the words of the webhook, and nothing is stored."""

    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"allowed": False, "status": {"code": 403, "message": "not today"}}

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        async with webhook(double, trusted, answer):
            await api.create(WEBHOOKS, configuration(trusted))
            with pytest.raises(Answered) as caught:
                await api.create(ALL, host("a"))
        text = 'admission webhook "pause.moorage.dev" denied the request: not today'
        assert (caught.value.code, caught.value.body["message"]) == (403, text)
        assert (await api.get(ALL))["items"] == []

    play(scene)


@pytest.mark.parametrize("failure", ["refuses connections", "is too slow", "is not trusted"])
def test_failure_policy(trusted: Certificate, failure: str) -> None:
    """A webhook that cannot be called is ignored, or the write fails, as the policy says."""

    async def answer(review: dict[str, Any]) -> dict[str, Any]:
        if failure == "is too slow":
            await asyncio.Event().wait()
        return await pausing(review)

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        async with webhook(double, trusted, answer):
            wanted = configuration(trusted, failurePolicy="Fail")
            if failure == "refuses connections":
                double.admission.services["moorage", "hook"] = ("127.0.0.1", 1)
            if failure == "is not trusted":
                del wanted["webhooks"][0]["clientConfig"]["caBundle"]
            await api.create(WEBHOOKS, wanted)
            with pytest.raises(Answered) as caught:
                await api.create(ALL, host("a", image="http://image"))
            assert caught.value.code == 500
            text = 'Internal error occurred: failed calling webhook "pause.moorage.dev"'
            assert caught.value.body["message"].startswith(text)
            wanted["webhooks"][0]["failurePolicy"] = "Ignore"
            await api.merge(f"{WEBHOOKS}/moorage", {"webhooks": wanted["webhooks"]})
            found = await api.create(ALL, host("a", image="http://image"))
            assert "annotations" not in found["metadata"]

    play(scene)


def test_an_engine_evaluates_bound_policies() -> None:
    """A MutatingAdmissionPolicy changes objects once it has a binding, if a test has an engine."""

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        def engine(policy: Any, asked: Any, wanted: Any) -> Any:
            assert (policy["metadata"]["name"], asked.operation) == ("pause", "CREATE")
            wanted["metadata"]["annotations"] = {PAUSED: "moorage"}
            return wanted

        double.admission.engine = engine
        group = "/apis/admissionregistration.k8s.io/v1"
        await api.create(f"{group}/mutatingadmissionpolicies", {"metadata": {"name": "pause"}})
        assert "annotations" not in (await api.create(ALL, host("a")))["metadata"]
        binding = {"metadata": {"name": "pause"}, "spec": {"policyName": "pause"}}
        await api.create(f"{group}/mutatingadmissionpolicybindings", binding)
        assert (await api.create(ALL, host("b")))["metadata"]["annotations"]

    play(scene)


def test_writes_during_admission(trusted: Certificate) -> None:
    """A patch that was overtaken during its admission is made again; an update is a conflict."""
    overtaken = []

    async def scene(double: KubernetesDouble, api: Kubernetes) -> None:
        async def answer(review: dict[str, Any]) -> dict[str, Any]:
            if "image" in review["object"]["spec"] and review["object"]["spec"] not in overtaken:
                overtaken.append(review["object"]["spec"])
                status = least_status(errorCount=len(overtaken))
                await api.merge(f"{ALL}/a/status", {"status": status})
            return {"allowed": True}

        async with webhook(double, trusted, answer):
            await api.create(WEBHOOKS, configuration(trusted))
            first = await api.create(ALL, host("a"))
            found = await api.merge(f"{ALL}/a", {"spec": {"image": {"url": "http://image"}}})
            assert (found["spec"]["image"], found["status"]["errorCount"]) == (
                {"url": "http://image"},
                1,
            )
            assert found["metadata"]["generation"] == first["metadata"]["generation"] + 1
            with pytest.raises(Answered) as caught:
                await api.update(f"{ALL}/a", {**found, "spec": {**found["spec"], "online": False}})
            assert caught.value.code == 409

    play(scene)
