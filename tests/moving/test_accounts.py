"""An account that may write is warned of; what cannot be reached is named without its password."""

from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database, engine_of
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, silent
from moorage.integrations.placement.source_error import SourceError
from tests.e2e.support.server import serve
from tests.moving.support import engines
from tests.moving.support.commands import Importing
from tests.moving.support.pair import synced
from tests.support.cluster import Cluster


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


def test_a_database_of_postgresql_that_is_not_placements(tmp_path: Path) -> None:
    """The line says so, whatever is asked first."""
    plain = engines.fresh("postgresql", tmp_path).replace("+psycopg2:", ":", 1)
    assert source(plain).warnings() == []
    with pytest.raises(SourceError, match="is not a database of OpenStack Placement"):
        source(plain).read(Oddities(), silent)


def test_no_session_keeps_a_prepared_statement(tmp_path: Path) -> None:
    """Behind PgBouncer, the next transaction may be on a session that does not have it."""
    plain = engines.fresh("postgresql", tmp_path).replace("+psycopg2:", ":", 1)
    with engine_of(address_of(plain), "postgresql").connect() as connection:
        for _ in range(10):
            connection.execute(sa.text("SELECT 1"))
        prepared = connection.scalar(sa.text("SELECT count(*) FROM pg_prepared_statements"))
    assert prepared == 0


def test_a_read_only_server_of_mariadb_may_be_a_replica(tmp_path: Path) -> None:
    """People are warned; it may be the server itself, which refuses writes for the move."""
    url = synced(engines.fresh("mariadb", tmp_path))
    try:
        engines.mariadb().run("SET GLOBAL read_only = 1")
        *_, warning = source(url).warnings()
    finally:
        engines.mariadb().run("SET GLOBAL read_only = 0")
    assert "is read-only: if it is a replica" in warning
    assert source(url).behind() is None


def test_a_standby_is_copied_but_not_finished_from(tmp_path: Path) -> None:
    """What was committed on the primary a moment ago may be missing there, in every reading."""
    with Cluster() as primary:
        plain = primary.create("placement")
        synced(plain.replace("postgresql:", "postgresql+psycopg2:", 1))
        with (
            Cluster(primary=primary) as standby,
            serve(tmp_path / "m.sqlite", "--auth", "noauth2") as server,
        ):
            stale = Importing(tmp_path, standby.url("placement"), server.url)
            for options in ((), ("--finish",)):
                refused = stale.run(*options, code=1)
                assert "is a standby" in refused
                assert "finish with the address of its primary" in refused
            stale.run("--copy")
            stale.run("--abort")
            assert source(plain).behind() is None
            Importing(tmp_path, plain, server.url).run()
