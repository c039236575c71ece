"""A migration of a later release, planted beside the real ones."""

from typing import Literal

import pytest

from moorage.store.migrations import Migration, migrations


def plant(monkeypatch: pytest.MonkeyPatch, engine: Literal["sqlite", "postgres"], text: str) -> int:
    """Let an engine know one more migration, with this text; return its number."""
    known = migrations(engine)
    later = Migration(len(known) + 1, "planted", text)
    monkeypatch.setattr(f"moorage.store.{engine}.migrate.migrations", lambda _: [*known, later])
    return later.number
