"""Admission: calls webhooks over HTTPS, and what a test installs in place of the CEL engine.

`matchConditions` of webhooks and their `reinvocationPolicy` are not evaluated: each that matches by
its rules and selectors is called once, in the order of the names.
"""

import base64
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aiohttp

from tests.support.kubernetes_double import kinds, patches, status
from tests.support.kubernetes_double.requests import Target
from tests.support.kubernetes_double.selectors import fits
from tests.support.kubernetes_double.storage import Object, Storage

DEFAULT_SECONDS = 10


@dataclass(frozen=True)
class Asked:
    """A write before it is carried out; `old` None: there is no such object yet."""

    operation: str
    target: Target
    user: str
    old: Object | None
    dry_run: bool
    manager: str = ""
    """The field manager that the request names; empty: it names none."""
    validation: str = ""


Engine = Callable[[Object, Asked, Object], Object]
"""Returns an object after a MutatingAdmissionPolicy (the first argument)."""


@dataclass
class Admission:
    """What changes or refuses objects before they are stored.

    `engine` evaluates policies that have a binding; without one, policies are only stored.
    `services` has the host and port of each service that a webhook names.
    """

    storage: Storage
    engine: Engine | None = None
    services: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    async def admit(self, asked: Asked, wanted: Object) -> Object:
        """Return the object to store. Raises Refused."""
        if asked.target.kind.group == kinds.ADMISSION:
            return wanted
        wanted = json.loads(json.dumps(wanted))
        if self.engine is not None:
            for policy in self._bound():
                wanted = self.engine(policy, asked, wanted)
        for configuration in self.storage.of(kinds.WEBHOOKS):
            for webhook in configuration.get("webhooks", ()):
                if self._concerns(webhook, asked, wanted):
                    wanted = await self._called(webhook, asked, wanted)
        return wanted

    def _bound(self) -> list[Object]:
        names = {binding["spec"]["policyName"] for binding in self.storage.of(kinds.BINDINGS)}
        policies = self.storage.of(kinds.POLICIES)
        return [policy for policy in policies if policy["metadata"]["name"] in names]

    def _concerns(self, webhook: Object, asked: Asked, wanted: Object) -> bool:
        labels = wanted["metadata"].get("labels") or {}
        space = self.storage.get(("", "namespaces", "", asked.target.namespace))
        space_labels = (space or {"metadata": {}})["metadata"].get("labels") or {}
        return (
            any(rule_fits(rule, asked) for rule in webhook.get("rules", ()))
            and fits(webhook.get("objectSelector"), labels)
            and (space is None or fits(webhook.get("namespaceSelector"), space_labels))
        )

    async def _called(self, webhook: Object, asked: Asked, wanted: Object) -> Object:
        try:
            answer = await self._review(webhook, asked, wanted)
            response = answer["response"]
            allowed = response["allowed"]
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError) as error:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                return wanted
            name = webhook["name"]
            text = f'failed calling webhook "{name}": failed to call webhook: {error!r}'
            raise status.Refused(500, f"Internal error occurred: {text}") from None
        if not allowed:
            why = response.get("status") or {}
            text = f'admission webhook "{webhook["name"]}" denied the request: '
            text += why.get("message", "without a reason")
            raise status.Refused(why.get("code", 403), text, why.get("reason", ""))
        if "patch" not in response:
            return wanted
        if response.get("patchType") != "JSONPatch":
            raise status.Refused(500, "Internal error occurred: the patchType is not JSONPatch")
        operations = json.loads(base64.b64decode(response["patch"]))
        changed: Object = patches.json_patched(wanted, operations)
        return changed

    async def _review(self, webhook: Object, asked: Asked, wanted: Object) -> Any:
        seconds = webhook.get("timeoutSeconds", DEFAULT_SECONDS)
        client = webhook["clientConfig"]
        trusted = base64.b64decode(client["caBundle"]).decode() if "caBundle" in client else None
        review = review_of(asked, wanted)
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session,
            session.post(
                self._url(client),
                params={"timeout": f"{seconds}s"},
                json=review,
                ssl=ssl.create_default_context(cadata=trusted),
                server_hostname=_server_name(client),
            ) as answer,
        ):
            if answer.status != 200:
                raise ValueError(f"the server answered {answer.status}")
            found = await answer.json()
        if found["response"]["uid"] != review["request"]["uid"]:
            raise ValueError("expected another response.uid")
        return found

    def _url(self, client: Object) -> str:
        if "url" in client:
            url: str = client["url"]
            return url
        service = client["service"]
        host, port = self.services[service["namespace"], service["name"]]
        return f"https://{host}:{port}{service.get('path', '/')}"


def _server_name(client: Object) -> str | None:
    """Return the name that the certificate of a webhook must have; None: that of the URL."""
    service = client.get("service")
    return f"{service['name']}.{service['namespace']}.svc" if service else None


def rule_fits(rule: Object, asked: Asked) -> bool:
    """Return whether a rule of a webhook is about a write."""
    kind = asked.target.kind
    resource = f"{kind.plural}/{asked.target.part}" if asked.target.part else kind.plural
    stars = {"*/*", "*"} if not asked.target.part else {"*/*", f"{kind.plural}/*"}
    return (
        not {asked.operation, "*"}.isdisjoint(rule["operations"])
        and not {kind.group, "*"}.isdisjoint(rule["apiGroups"])
        and not {kind.version, "*"}.isdisjoint(rule["apiVersions"])
        and not {resource, *stars}.isdisjoint(rule["resources"])
        and rule.get("scope", "*") in ("*", "Namespaced" if kind.namespaced else "Cluster")
    )


def review_of(asked: Asked, wanted: Object) -> Object:
    """Return the AdmissionReview of a write."""
    kind, target = asked.target.kind, asked.target
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    options = {
        "fieldManager": asked.manager,
        "fieldValidation": asked.validation,
        "dryRun": ["All"] if asked.dry_run else [],
    }
    request: Object = {
        "uid": str(uuid4()),
        "kind": named,
        "resource": resource,
        "requestKind": named,
        "requestResource": resource,
        **({"name": target.name} if target.name else {}),
        "namespace": target.namespace,
        "operation": asked.operation,
        "userInfo": {"username": asked.user},
        "object": wanted,
        "oldObject": asked.old,
        "dryRun": asked.dry_run,
        "options": {
            "kind": f"{asked.operation.title()}Options",
            "apiVersion": "meta.k8s.io/v1",
            **{name: one for name, one in options.items() if one},
        },
    }
    if target.part:
        request |= {"subResource": target.part, "requestSubResource": target.part}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
