"""An account that may write is warned of; what cannot be reached is named without its password."""

from pathlib import Path

import psycopg
import pytest

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, silent
from moorage.integrations.placement.source_error import SourceError
from tests.moving.support import engines
from tests.moving.support.pair import synced


def source(url: str) -> DatabaseSource:
    """Return an original at an address."""
    return DatabaseSource(Database(address_of(url)))


def test_accounts_of_mariadb(tmp_path: Path) -> None:
    """An account with SELECT is enough to read everything."""
    owner = synced(engines.fresh("mariadb", tmp_path))
    name = str(address_of(owner).database)
    maria = engines.mariadb()
    looks = maria.account("looks", "SELECT", name)
    assert "may write" in source(owner).warnings()[0]
    assert source(looks).warnings() == []
    assert source(looks).read(Oddities(), silent).rows.counts()["providers"] == 0
    for wrong in (looks.replace("PASSWORD", "SECRET"), looks.replace(name, "nothing")):
        with pytest.raises(SourceError) as refused:
            source(wrong).read(Oddities(), silent)
        assert "denied" in str(refused.value)
        assert "SECRET" not in str(refused.value)


def test_accounts_of_postgresql(tmp_path: Path) -> None:
    """As on MariaDB."""
    owner = synced(engines.fresh("postgresql", tmp_path))
    assert "may write" in source(owner).warnings()[0]
    plain = owner.replace("postgresql+psycopg2:", "postgresql:", 1)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("CREATE ROLE looks")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looks")
    looks = source(f"{plain}&options=-c%20role%3Dlooks")
    assert looks.warnings() == []
    assert looks.read(Oddities(), silent).rows.counts()["providers"] == 0
    with pytest.raises(SourceError, match="nothing"):
        source(plain.replace(str(address_of(plain).database), "nothing")).read(Oddities(), silent)
