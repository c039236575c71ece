"""An empty database of either engine."""

from tests.service.ledger.imports.conftest import database

__all__ = ["database"]
