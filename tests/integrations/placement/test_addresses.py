"""An address that cannot be used is refused in one line, which says what to change."""

import sqlite3
from pathlib import Path

import pytest

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, silent
from moorage.integrations.placement.source_error import SourceError

AT = "mysql+pymysql://u:SECRET@127.0.0.1:1/placement"

REFUSED = (
    ("mysql+pymysql://u:SE@CRET@127.0.0.1/placement", "@ as %40"),
    ("mysql+pymysql://u:SECRET@$my_ip/placement", "$my_ip stands for another option"),
    ("mysql+pymysql://u:SECRET@${database.host}:3306/p", "${database.host} stands for"),
    ("mysql+pymysql://u:SECRET@127.0.0.1/$name", "$name stands for another option"),
    (f"{AT}?ssl_mode=REQUIRED", "has no option 'ssl_mode'; leave it out of the address"),
    (f"{AT}?ssl_ca=/nowhere/ca.pem", "such as ssl_ca, cannot be used: No such file"),
    (f"{AT}?connect_timeout=long", "cannot open mysql://127.0.0.1:1/placement: "),
    ("mysql+pymysql://u:SECRET@[::1]:1/placement", "cannot connect to mysql://[::1]:1/placement: "),
    (AT, "cannot connect to mysql://127.0.0.1:1/placement: Can't connect to MySQL server"),
    ("postgresql://u:SECRET@127.0.0.1:1/placement?nonsense=1", 'option "nonsense"'),
    ("sqlite:////nowhere/placement.sqlite", "cannot connect to sqlite:////nowhere/placement"),
)


@pytest.mark.parametrize(("address", "said"), REFUSED)
def test_an_address_that_cannot_be_used(address: str, said: str) -> None:
    """The line has no part of the password."""
    with pytest.raises(SourceError) as refused:
        DatabaseSource(Database(address_of(address))).read(Oddities(), silent)
    line = str(refused.value)
    assert said in line
    assert "\n" not in line
    assert "CRET" not in line


def test_what_belongs_to_the_originals_sqlalchemy_is_left_out() -> None:
    """Devstack's dbcounter counts statements; other options stay, and so does the password."""
    url = address_of("mysql+pymysql://u:a%40b$c@h/placement?charset=utf8&plugin=dbcounter")
    assert dict(url.query) == {"charset": "utf8"}
    assert (url.password, url.host, url.database) == ("a@b$c", "h", "placement")


def test_the_database_of_novas_api_is_named(tmp_path: Path) -> None:
    """It has such tables as well; its address is in another section."""
    file = tmp_path / "nova_api.sqlite"
    with sqlite3.connect(file) as connection:
        for table in ("resource_providers", "cell_mappings"):
            connection.execute(f"CREATE TABLE {table} (id INTEGER)")
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('cdeec0c85668')")
    connection.close()
    source = DatabaseSource(Database(address_of(f"sqlite:///{file}")))
    with pytest.raises(SourceError, match=r"nova's API.* \[placement_database\]"):
        source.read(Oddities(), silent)
