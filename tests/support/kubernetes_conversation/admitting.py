"""Steps: a webhook changes and refuses hosts. Its reviews are compared, too.

The webhook adds an annotation to hosts that have `change`, and refuses those that have `refuse`.
"""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.support.certificates import Certificate, certificate
from tests.support.kubernetes_client import least_status
from tests.support.kubernetes_conversation.steps import (
    HOSTS,
    Ask,
    Of,
    Step,
    apply,
    create,
    delete,
    host,
    json_patch,
    merge,
    put,
)

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
ASKED = f"{HOSTS}/asked"
CHANGE = {"annotations": {"change": "1"}}

ADMITTED: tuple[Step, ...] = (
    create("asked", host("asked"), fieldManager="person"),
    create("asked and changed", host("changed", **CHANGE)),
    create("asked without a name", host("", generateName="gen-"), dryRun="All"),
    merge("asked about a merge", ASKED, {"spec": {"image": {"url": "u"}}, "metadata": CHANGE}),
    json_patch("asked about a patch", ASKED, [{"op": "remove", "path": "/spec/image"}]),
    put("asked about an update", ASKED, Of("asked about a patch", "", {"spec": {"online": False}})),
    put(
        "asked although it is old",
        ASKED,
        Of("asked", "", {"spec": {"online": False}}),
        fieldValidation="Strict",
    ),
    put(
        "asked although it is wrong",
        ASKED,
        Of("asked about an update", "", {"spec": {"online": 1}}),
    ),
    put(
        "asked about a status that is not stored",
        ASKED,
        Of("asked about an update", "", {"status": {"poweredOn": True}}),
    ),
    merge("not asked about a status", f"{ASKED}/status", {"status": least_status()}),
    apply("asked about an apply", ASKED, host("asked", spec={"description": "x"})),
    apply("asked about an applied new one", f"{HOSTS}/new-one", host("new-one")),
    merge("asked about nothing", ASKED, {}),
    merge("refused", ASKED, {"metadata": {"annotations": {"refuse": "1"}}}),
    create("asked before it is there already", host("asked")),
    create("not asked, there is no such namespace", host("a"), HOSTS.replace("talk", "nowhere")),
    delete("not asked about a delete", f"{HOSTS}/changed"),
    Ask("who manages the change", "GET", ASKED, fields=True),
)
END = delete("no webhook any more", f"{CONFIGURATIONS}/talk")


def configuration(url: str, bundle: str) -> Any:
    """Return the configuration of the webhook."""
    rule = {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": ["metal3.io"],
        "apiVersions": ["v1alpha1"],
        "resources": ["baremetalhosts"],
    }
    hook = {
        "name": "talk.moorage.dev",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    kinds = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
    }
    return {**kinds, "metadata": {"name": "talk"}, "webhooks": [hook]}


def answer(review: dict[str, Any]) -> dict[str, Any]:
    """Return what the webhook answers."""
    marks = review["object"]["metadata"].get("annotations") or {}
    found: dict[str, Any] = {"uid": review["uid"], "allowed": "refuse" not in marks}
    if not found["allowed"]:
        found["status"] = {"code": 403, "message": "it is marked"}
    elif "change" in marks:
        patch = [{"op": "add", "path": "/metadata/annotations/changed", "value": "yes"}]
        found |= {
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
        }
    return found


@asynccontextmanager
async def webhook(folder: Path) -> AsyncIterator[tuple[str, str, list[Any]]]:
    """Serve the webhook; yield its address, its authority and the reviews."""
    trusted: Certificate = certificate(folder, "IP:127.0.0.1")
    reviews: list[Any] = []

    async def handle(request: web.Request) -> web.Response:
        review = (await request.json())["request"]
        reviews.append(review)
        kinds = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**kinds, "response": answer(review)})

    application = web.Application()
    application.router.add_post("/mutate", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=trusted.server()).start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}/mutate", trusted.bundle, reviews
    finally:
        await runner.cleanup()


def in_force() -> Ask:
    """Return a step that ends when the webhook is asked."""
    marked = host("marked", annotations={"refuse": "1"})
    return Ask("in force", "POST", HOSTS, marked, query={"dryRun": "All"}, until=403)
