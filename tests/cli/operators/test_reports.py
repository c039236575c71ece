"""`moorage pool report --since`: on a time that the server keeps, and on a longer one."""

from pathlib import Path

from tests.cli.pooled import Cli
from tests.e2e.support.server import serve

CUT = "older leases are no longer kept, so the report does not cover 7d"


def test_a_report_names_the_time_it_covers(cli: Cli, tmp_path: Path) -> None:
    """A week is reported by a server that keeps a week; the other one says that it covers less."""
    folder = tmp_path / "week"
    folder.mkdir()
    database = folder / "moorage.sqlite"
    (folder / "moorage.toml").write_text(
        f'database = "sqlite:///{database}"\nended_leases_hours = 168\n'
    )
    with serve(database, "--no-access-log", "--ended-leases-hours", "168") as server:
        week = Cli(folder, server.url)
        for one, said in ((week, ["1 lease ended within the last 7d"]), (cli, None)):
            one.lines("pool", "create", "reported", "--limit", "1")
            one.lines("lease", "revoke", one.ask("reported"))
            lines = one.lines("pool", "report", "reported", "--since", "7d")
            expected = said or ["1 lease ended within the last 24 hours", CUT]
            assert lines[: len(expected)] == expected
            assert (CUT in lines) is (said is None)
            assert one.lines("pool", "report", "reported", "--since", "1h")[0].endswith(
                "last 1 hour"
            )


def test_a_time_that_is_too_long_is_refused(cli: Cli) -> None:
    """The longest time is named."""
    cli.lines("pool", "create", "bounded", "--limit", "1")
    assert "31622400" in cli.refusal(2, "pool", "report", "bounded", "--since", "367d")
