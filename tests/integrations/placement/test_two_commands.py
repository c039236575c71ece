"""Two commands import at the same time: the one that began last writes, the other is refused."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moorage.client.transport import RefusedError, Transport
from moorage.integrations.placement.difference import difference
from moorage.integrations.placement.importing import Import
from moorage.integrations.placement.ledger import Ledger
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, Reading, silent
from moorage.wire.imports import RowsWanted
from tests.e2e.support.server import Server, serve
from tests.integrations.placement.original_file import made, read, source_of

SECONDS = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An empty ledger."""
    file = tmp_path_factory.mktemp("two") / "m.sqlite"
    with serve(file, "--auth", "noauth2") as running:
        yield running


class Slow(Ledger):
    """A ledger that gets the rows of one command only when another one is about to finish."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.compared = threading.Event()
        self.goes_on = threading.Event()

    def write(self, rows: RowsWanted) -> None:
        """Write them late."""
        self.compared.set()
        assert self.goes_on.wait(SECONDS)
        super().write(rows)


class Checked(DatabaseSource):
    """An original that stands still; meanwhile the late rows are sent."""

    def __init__(self, source: DatabaseSource, late: Slow) -> None:
        super().__init__(source._database)
        self._late = late
        self.sent = threading.Event()

    def is_unchanged(self, reading: Reading) -> bool:
        """Wait until the other command has ended."""
        self._late.goes_on.set()
        assert self.sent.wait(SECONDS)
        return super().is_unchanged(reading)


def importing(source: DatabaseSource, ledger: Ledger) -> Import:
    """Return an import without choices."""
    return Import(source, ledger, Oddities, silent, lambda reading: None)


def test_rows_of_an_older_command_do_not_get_into_the_ledger(
    tmp_path: Path, server: Server
) -> None:
    """A follow reads, then another command finishes: what the follow has read is old by then."""
    transport = Transport(server.url, "admin")
    ledger, late = Ledger(transport), Slow(transport)
    importing(source_of(made(tmp_path)), ledger).copy()
    file = made(tmp_path, "UPDATE allocations SET used = 3")
    source = Checked(source_of(file), late)
    with ThreadPoolExecutor(1) as pool:
        follow = pool.submit(importing(source_of(file), late).follow)
        assert late.compared.wait(SECONDS)
        made(tmp_path, "UPDATE allocations SET used = 4")
        follow.add_done_callback(lambda _: source.sent.set())
        importing(source, ledger).finish()
    assert difference(read(file).rows, ledger.rows).example() == "none"
    with pytest.raises(RefusedError) as refused:
        follow.result()
    assert refused.value.code == "import_taken"
