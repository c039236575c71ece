"""What an idempotency key stands for: the digest of the request that first came with it."""

import hashlib
from typing import Any

import msgspec
from msgspec import structs

from moorage.wire.labels import DESCRIBING


def digests_of(wanted: Any) -> tuple[str, str | None]:
    """Return the digest of a `LeaseRequest`, and the one that older releases computed for it.

    The second one is None if it is the same.
    """
    # Without the key, so that a client can repeat a retry's request with the retry's new key.
    asked = msgspec.to_builtins(structs.replace(wanted, key=""), order="deterministic")
    del asked["reopen"]  # so that a lease can be asked for with and without it
    if not wanted.pull:
        del asked["pull"]  # as in digests that were stored before there were pull tickets
    whole = _digest(asked)
    if DESCRIBING.isdisjoint(wanted.labels):
        return whole, None
    # Another process that continues an attempt has its own host, user and process id.
    labels = asked["labels"].items()
    asked["labels"] = {name: value for name, value in labels if name not in DESCRIBING}
    return _digest(asked), whole


def _digest(asked: dict[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()
