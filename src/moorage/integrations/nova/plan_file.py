"""The file of what a heal would change: written by an audit, and read by people first."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from moorage.integrations.nova.findings import Finding

KIND: Final = "moorage heal, 1"


def document_of(findings: Iterable[Finding], of: str) -> dict[str, Any]:
    """Return the findings that can be healed; `of` names the cloud and the ledger."""
    return {"kind": KIND, "of": of, "heal": [_plain(one) for one in findings if one.is_healable]}


def _plain(one: Finding) -> dict[str, Any]:
    members = asdict(one)
    return {name: value for name, value in members.items() if value not in ("", (), {})}
