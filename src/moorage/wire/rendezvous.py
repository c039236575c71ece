"""Which member of a group owns a node: the one function that servers and reporters share.

Rendezvous hashing: each member has a score for each node, and the highest score owns it. If a
member leaves, only its own nodes get other owners.
Source: docs/decisions/0030-reporters-share-a-group.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

SCORE_BYTES = 8


def score(member: str, node: str) -> int:
    """Return the score of a member for a node: 64 bits of BLAKE2b of `member|node` in UTF-8.

    Args:
        member: the name of the member.
        node: the UUID of the node's provider, in lower case with dashes.
    """
    digest = blake2b(f"{member}|{node}".encode(), digest_size=SCORE_BYTES).digest()
    return int.from_bytes(digest, "big")


def owner(node: str, members: Iterable[str], pin: str | None = None) -> str | None:
    """Return the member that owns a node; None: nobody does.

    Args:
        node: the UUID of the node's provider, in lower case with dashes.
        members: the live members. Of members with equal scores, the last one by name owns it.
        pin: the member to which the node is pinned, if it is; it need not be live.
    """
    if pin is not None:
        return pin
    return max(members, key=lambda member: (score(member, node), member), default=None)
