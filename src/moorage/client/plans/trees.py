"""Providers below a provider."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.wire.providers import ProviderShown


def below(top: ProviderShown, providers: Iterable[ProviderShown]) -> list[ProviderShown]:
    """Return all providers below one, parents first; siblings are in the given order."""
    children: dict[str | None, list[ProviderShown]] = {}
    for one in providers:
        children.setdefault(one.parent, []).append(one)
    found = list(children.get(top.uuid, ()))
    for one in found:
        found += children.get(one.uuid, ())
    return found
