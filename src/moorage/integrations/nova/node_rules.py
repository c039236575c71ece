"""The rules about nodes of Ironic: Ironic's, against the ledger's and Nova's. Pure."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from moorage.integrations.ironic.report.mapping import is_reserved
from moorage.integrations.nova.facts import Server
from moorage.integrations.nova.findings import Finding, about
from moorage.integrations.nova.ledger_view import Held
from moorage.integrations.nova.provider_rules import QUIET
from moorage.wire.providers import ProviderShown

Node = Mapping[str, Any]


def ghost_node(root: ProviderShown, node: Node | None) -> Finding | None:
    """ghost_node: a provider of a node for which Ironic answers 404."""
    if node is not None:
        return None
    return about(root, "ghost_node", "Ironic answers 404 for this node")


def node_without_provider(node: Node, provider: ProviderShown | None) -> Finding | None:
    """node_without_provider: a node that could be used is not in the ledger.

    Nova and the reporters leave out nodes without a resource class.
    """
    if provider is not None or not node.get("resource_class") or is_reserved(node):
        return None
    name = node.get("name")
    return Finding(
        code="node_without_provider",
        message="the node is available, and nobody can be placed on it",
        provider=str(node["uuid"]),
        host=name if isinstance(name, str) else str(node["uuid"]),
    )


def node_traits(root: ProviderShown, node: Node) -> Finding | None:
    """trait_without_owner: a custom trait that neither the node nor a reporter gives."""
    owned = {
        *(node.get("traits") or ()),
        *(one for group in root.reported.values() for one in group),
    }
    left = sorted(one for one in root.traits if one.startswith("CUSTOM_") and one not in owned)
    if not left:
        return None
    return about(
        root, "trait_without_owner", f"neither the node nor a reporter has {', '.join(left)}"
    )


def instance_disagrees(
    root: ProviderShown,
    node: Node,
    consumers: Collection[Held],
    servers: Collection[Server] | None,
    now: datetime,
) -> Finding | None:
    """instance_disagrees: Ironic's node names another server than the ledger, or than Nova.

    `consumers` are those of the provider that may be servers; `servers` are those of Nova's that
    anybody names here, None: Nova was not asked.
    """
    named = node.get("instance_uuid")
    if servers is not None:
        if not all(one.is_settled for one in servers):
            return None
        there = sorted(one.uuid for one in servers if one.node in (root.uuid, root.name))
        if there == ([named] if named else []):
            return None
        return _disagrees(root, f"Ironic says {named or 'none'}, Nova {', '.join(there) or 'none'}")
    held = sorted(one.uuid for one in consumers)
    if named is not None and named not in held:
        return _disagrees(root, f"Ironic says {named}, the ledger {', '.join(held) or 'none'}")
    # A server is claimed before its node is named: only a claim that is older is odd.
    if named is None and held and now - root.updated_at > QUIET and not is_reserved(node):
        return _disagrees(root, f"Ironic says none, the ledger {', '.join(held)}")
    return None


def _disagrees(root: ProviderShown, message: str) -> Finding:
    return about(root, "instance_disagrees", message)
