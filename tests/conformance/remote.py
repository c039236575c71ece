"""The database helpers of Placement's functional fixtures, done over HTTP.

The fixture classes of the suite fill a database through the functions of a module they call `tb`
and through a few object classes. Here stand functions of the same names and arguments that ask a
running server instead. Provider generations come out as the database helpers leave them: an
inventory or a set of traits raises it by one, aggregates leave it (so they are written at 1.18,
the last microversion that leaves it, too).
"""

import uuid
from typing import Any

import httpx
from oslo_utils.fixture import uuidsentinel

ADMIN = {"x-auth-token": "admin"}
LATEST = "1.39"
AGGREGATES_WITHOUT_GENERATION = "1.18"
CONSUMER_WITHOUT_TYPE = "1.37"


class Remote:
    """One server under test, addressed as the administrator of the `noauth2` scheme."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, headers=ADMIN, verify=False, timeout=60)

    def ask(self, method: str, path: str, body: Any = None, version: str = LATEST) -> Any:
        """Send one request; return the JSON answer, or None for an empty one.

        Raises:
            RuntimeError: the server refused. A fixture that cannot be built is a failure.
        """
        headers = {"openstack-api-version": f"placement {version}"}
        answer = self.http.request(method, path, json=body, headers=headers)
        if not answer.is_success:
            raise RuntimeError(f"{method} {path} {body}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def exists(self, path: str) -> bool:
        """Say whether a GET of this path answers with success."""
        headers = {"openstack-api-version": f"placement {LATEST}"}
        return bool(self.http.get(path, headers=headers).is_success)

    def reset(self, policy: str, cors_origin: str | None) -> None:
        """Empty the server and switch its profile: the test-only endpoint."""
        self.ask("POST", "/_testing/reset", {"policy": policy, "cors_origin": cors_origin})


class Named:
    """Stands for a user or a project: it comes to be when a consumer first names it."""

    def __init__(self, _context: Any, external_id: str) -> None:
        self.external_id = external_id

    def create(self) -> None:
        """Nothing to do: see the class."""


class Consumer:
    """A consumer that is not written yet: it comes to be with its first allocation."""

    def __init__(self, user: Named, project: Named, consumer_id: str | None) -> None:
        self.uuid = consumer_id or str(uuid.uuid4())
        self.user = user
        self.project = project


class Provider:
    """A provider as the fixtures hold it."""

    def __init__(self, remote: Remote, provider: str) -> None:
        self.remote = remote
        self.uuid = provider
        self.path = f"/resource_providers/{provider}"

    def set_aggregates(self, aggregates: list[str]) -> None:
        """Replace its aggregates and leave its generation."""
        self.remote.ask(
            "PUT", f"{self.path}/aggregates", list(aggregates), AGGREGATES_WITHOUT_GENERATION
        )


class Helpers:
    """The functions of `tb`, by the same names; the database context they get is not used."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote

    def create_provider(self, _context: Any, name: str, *aggs: str, **more: str) -> Provider:
        """Create a provider; its uuid is the sentinel of its name unless `uuid` is given."""
        provider = more.get("uuid") or getattr(uuidsentinel, name)
        body = {"name": name, "uuid": provider}
        if more.get("parent"):
            body["parent_provider_uuid"] = more["parent"]
        self.remote.ask("POST", "/resource_providers", body)
        made = Provider(self.remote, provider)
        if aggs:
            made.set_aggregates(list(aggs))
        return made

    def ensure_class(self, name: str) -> None:
        """Make sure that a resource class exists; the standard ones do."""
        if not self.remote.exists(f"/resource_classes/{name}"):
            self.remote.ask("PUT", f"/resource_classes/{name}")

    def add_inventory(self, provider: Provider, name: str, total: int, **fields: Any) -> None:
        """Add one inventory; its max_unit is its total unless given."""
        self.ensure_class(name)
        body = {"resource_class": name, "total": total, "max_unit": total, **fields}
        self.remote.ask("POST", f"{provider.path}/inventories", body)

    def set_traits(self, provider: Provider, *traits: str) -> None:
        """Replace the traits of a provider; those that do not exist are made."""
        for trait in traits:
            if not self.remote.exists(f"/traits/{trait}"):
                self.remote.ask("PUT", f"/traits/{trait}")
        path = f"{provider.path}/traits"
        generation = self.remote.ask("GET", path)["resource_provider_generation"]
        body = {"traits": list(traits), "resource_provider_generation": generation}
        self.remote.ask("PUT", path, body)

    def create_user_and_project(self, context: Any, prefix: str = "fake") -> tuple[Named, Named]:
        """Name a user and a project."""
        return Named(context, f"{prefix}-user"), Named(context, f"{prefix}-project")

    def ensure_consumer(
        self, _context: Any, user: Named, project: Named, consumer_id: str | None = None
    ) -> Consumer:
        """Name a consumer; it is written with its first allocation."""
        return Consumer(user, project, consumer_id)

    def set_allocation(
        self, _context: Any, provider: Provider, consumer: Consumer, amounts: dict[str, int]
    ) -> None:
        """Write the first allocation of a consumer; it has no consumer type."""
        body = {
            "allocations": {provider.uuid: {"resources": amounts}},
            "project_id": consumer.project.external_id,
            "user_id": consumer.user.external_id,
            "consumer_generation": None,
        }
        self.remote.ask("PUT", f"/allocations/{consumer.uuid}", body, CONSUMER_WITHOUT_TYPE)

    def make_class(self, context: Any, name: str) -> "ResourceClass":
        """Stand for the class `rc_obj.ResourceClass`."""
        del context
        return ResourceClass(self.remote, name)


class ResourceClass:
    """A custom resource class that `create` writes."""

    def __init__(self, remote: Remote, name: str) -> None:
        self.remote = remote
        self.name = name

    def create(self) -> None:
        """Create it; it must not be there."""
        self.remote.ask("POST", "/resource_classes", {"name": self.name})
