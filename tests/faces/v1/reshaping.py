"""A host whose units a plan moves to a child, while a guest has some of them."""

from typing import Any
from uuid import uuid4

from tests.faces.v1.native import Native, Response

PLACEMENT = {"OpenStack_API_Version": "placement 1.39"}


class Split:
    """A host with units and a guest on it, and the plan that moves all of them to a child."""

    def __init__(self, native: Native, named: str = "host") -> None:
        self.native = native
        self.host, self.child, self.guest = (str(uuid4()) for _ in range(3))
        name = f"{named} {self.host}"
        body: Any = {"name": name, "uuid": self.host}
        native.ask("POST", "/resource_providers", body, **PLACEMENT)
        stock = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 4}}}
        native.ask("PUT", f"/resource_providers/{self.host}/inventories", stock, **PLACEMENT)
        self.use(3, None)
        self.plan: dict[str, Any] = {
            "create": [
                {"uuid": self.child, "name": f"{named} child {self.child}", "parent": self.host}
            ],
            "moves": [
                {
                    "from": {"provider": self.host, "class": "VGPU"},
                    "to": {"provider": self.child, "class": "VGPU"},
                    "assign": {self.guest: {self.child: 3}},
                }
            ],
        }

    def use(self, units: int, generation: int | None) -> None:
        """Let the guest have units of the host."""
        body = {
            "allocations": {self.host: {"resources": {"VGPU": units}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }
        path = f"/allocations/{self.guest}"
        assert self.native.ask("PUT", path, body, **PLACEMENT).status == 204

    def shown(self) -> Response:
        """Preview the plan."""
        return self.native.ask("POST", "/v1/reshapes:plan", {"plan": self.plan})

    def committed(self, **more: Any) -> Response:
        """Commit the plan."""
        return self.native.ask("POST", "/v1/reshapes", {"plan": self.plan, **more})
