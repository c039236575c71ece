"""The house rules hold in the real tree, and each check catches a planted violation."""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.floorplan import tidy
from tests.floorplan.tidy import ROOT, Source, sources

PACKAGE = "src/moorage"

OVERSIZE_ALLOWED: dict[str, int] = {}
"""What exceeds the bounds, with its present length; the list may only shrink."""

ASYNC_ALLOWED = (
    f"{PACKAGE}/cli/commands/audit/",  # integrations hold many requests at once
    f"{PACKAGE}/cli/commands/ironic/",
    f"{PACKAGE}/cli/commands/metal3/",
    f"{PACKAGE}/cli/commands/moving/",
    f"{PACKAGE}/cli/support/database.py",
    f"{PACKAGE}/cli/support/ironic.py",
    f"{PACKAGE}/cli/support/provisioning.py",
    f"{PACKAGE}/client/leasing/asynchronous.py",  # for programs that use asyncio
    f"{PACKAGE}/faces/",
    f"{PACKAGE}/integrations/",
    f"{PACKAGE}/serve/",
    f"{PACKAGE}/service/",
    f"{PACKAGE}/store/api.py",
    f"{PACKAGE}/store/sqlite/",
    f"{PACKAGE}/store/postgres/",
    f"{PACKAGE}/systemd/heartbeat.py",  # beats in the loops of others
)
TRANSACTIONS_ALLOWED = (
    f"{PACKAGE}/integrations/placement/",  # of databases that are not ours
    f"{PACKAGE}/service/batch/transactor.py",
    f"{PACKAGE}/store/sqlite/engine.py",
    f"{PACKAGE}/wire/pools/icalendar.py",  # BEGIN of calendars and events
    f"{PACKAGE}/store/sqlite/migrate.py",
    f"{PACKAGE}/store/postgres/engine.py",
    f"{PACKAGE}/store/postgres/probe.py",
)
CAPACITY_RULES = (
    f"{PACKAGE}/core/ledger/capacity.py",
    f"{PACKAGE}/integrations/placement/capacity_there.py",  # the original's, on its rows
)
BOUNDS_ALLOWED = (
    f"{PACKAGE}/service/batch/transactor.py",  # an internal error
    f"{PACKAGE}/service/compat/boskos_config.py",  # the rule of Kubernetes for names
)


def outside(allowed: tuple[str, ...]) -> list[Source]:
    """Return every file of the package that is not in the allowed places."""
    return [source for source in sources(PACKAGE) if not source.path.startswith(allowed)]


def complaints(rule: Callable[[Source], Iterable[str]], among: list[Source]) -> list[str]:
    """Return all complaints of a rule about these files."""
    return [complaint for source in among for complaint in rule(source)]


def test_sizes_only_shrink() -> None:
    """Files have at most 600 lines and functions at most 60, except for the listed ones."""
    found: dict[str, int] = {}
    for source in sources("src", "tests", "bench", "demo"):
        found |= tidy.oversize(source)
    assert found == OVERSIZE_ALLOWED


def test_async_only_at_the_edges() -> None:
    """Core and wire have no `async` functions; in store and client only few files have."""
    assert complaints(tidy.asynchronous, outside(ASYNC_ALLOWED)) == []


def test_transactions_in_one_place() -> None:
    """Only the transactor and the engines begin, commit or roll back."""
    assert complaints(tidy.transactions, outside(TRANSACTIONS_ALLOWED)) == []


def test_capacity_computed_once() -> None:
    """Only the capacity rule computes with reserved amounts and allocation ratios."""
    assert complaints(tidy.capacity_computed, outside(CAPACITY_RULES)) == []
    statements = [
        Source(str(path.relative_to(ROOT)), path.read_text())
        for path in sorted((ROOT / PACKAGE).rglob("*.sql"))
    ]
    assert complaints(tidy.capacity_computed_in_sql, statements) == []


def test_bounds_of_the_rules_are_together() -> None:
    """Bounds on what a caller may send are in `core/limits.py`, or are another project's."""
    places = tuple(f"{PACKAGE}/{floor}/" for floor in ("core", "service", "faces", "wire"))
    among = [one for one in sources(PACKAGE) if one.path.startswith(places)]
    foreign = [one for one in among if not one.path.startswith(BOUNDS_ALLOWED)]
    assert complaints(tidy.bounds_shown, foreign) == []


def test_statements_are_named_alike() -> None:
    """Every engine has exactly the SQL blocks that the store uses, each of them once."""
    used = set(complaints(tidy.statements_named, sources(f"{PACKAGE}/store")))
    written = {
        folder.name: complaints(
            tidy.statements_written,
            [Source(path.name, path.read_text()) for path in sorted(folder.glob("*.sql"))],
        )
        for folder in (ROOT / PACKAGE / "store/queries").iterdir()
    }
    common = written.pop("common")
    for engine, own in written.items():
        assert sorted(common + own) == sorted(used), engine


def test_exceptions_have_reasons() -> None:
    """Every comment that silences a check gives the reason on the same line."""
    assert complaints(tidy.unexplained_exceptions, sources("src", "tests", "bench", "demo")) == []


def test_tests_do_not_sleep() -> None:
    """Tests wait for events, not for time to pass."""
    assert complaints(tidy.sleeps, sources("tests")) == []


def _has_files(path: Path) -> bool:
    """Is this a folder, and not only what compiled files of a moved one have left?"""
    files = (found for found in path.rglob("*") if found.is_file())
    return path.is_dir() and any("__pycache__" not in found.parts for found in files)


def test_every_package_has_a_door_sign() -> None:
    """Each package's docstring names everything in its folder, and nothing else."""
    found: list[str] = []
    for source in sources(PACKAGE):
        folder = (ROOT / source.path).parent
        if source.path.endswith("/__init__.py"):
            beside = {path.name for path in folder.glob("*.py")}
            beside |= {f"{path.name}/" for path in folder.iterdir() if _has_files(path)}
            found += tidy.door_sign(source, beside)
        else:
            assert (folder / "__init__.py").exists(), f"{source.path}: in no package"
    assert found == []


def test_folders_are_small() -> None:
    """No folder of the package, the tests or the benchmarks has more than 25 Python files."""
    files = Counter(str(Path(s.path).parent) for s in sources("src", "tests", "bench", "demo"))
    assert list(tidy.crowded(files)) == []
    assert list(tidy.crowded({"a": 26, "b": 25})) == ["a: 26 files, at most 25"]


def test_configured_exceptions_have_reasons() -> None:
    """Every exemption from ruff and mypy in pyproject.toml is explained on the same line."""
    assert unexplained((ROOT / "pyproject.toml").read_text()) == []


def unexplained(text: str) -> list[str]:
    """Return the lines of a pyproject.toml that exempt something without a reason."""
    tomllib.loads(text)
    code = re.compile(r'"[A-Z]+[0-9]+"')
    exempting = re.compile(r"ignore_\w+ = true|ignore_errors|follow_imports")
    return [
        line
        for line in text.splitlines()
        if (code.search(line) or exempting.search(line))
        and not line.startswith("select = ")
        and not re.search(r"# \w+", line)
    ]


LONG_FUNCTION = "def long() -> None:\n" + "    pass\n" * 60

PLANTED = {
    "sizes: function": (tidy.oversize, LONG_FUNCTION),
    "sizes: file": (tidy.oversize, "x = 1\n" * 601),
    "async": (tidy.asynchronous, "class A:\n    async def wait(self):\n        pass\n"),
    "commit": (tidy.transactions, "def f(tx):\n    tx.commit()\n"),
    "begin in SQL": (tidy.transactions, "def f(c):\n    c.execute('BEGIN IMMEDIATE')\n"),
    "capacity": (tidy.capacity_computed, "def f(i):\n    return i.total - i.reserved\n"),
    "capacity in columns": (tidy.capacity_computed, "x = c['allocation_ratio'] * total\n"),
    "capacity in place": (tidy.capacity_computed, "free -= reserved[0]\n"),
    "capacity in SQL": (tidy.capacity_computed_in_sql, "WHERE (total - i.reserved) > 0\n"),
    "bound": (tidy.bounds_shown, "LINES_MAX = 3\nraise ValueError(f'at most {LINES_MAX} lines')\n"),
    "bare exception": (tidy.unexplained_exceptions, "import os  # noqa\n"),
    "exception without reason": (tidy.unexplained_exceptions, "import os  # noqa: F401\n"),
    "type without reason": (tidy.unexplained_exceptions, "x = f()  # type: ignore[arg-type]\n"),
    "type without code": (tidy.unexplained_exceptions, "x = f()  # type: ignore  # it is so\n"),
    "sleep": (tidy.sleeps, "import asyncio\nasync def f():\n    await asyncio.sleep(1)\n"),
    "short sleep": (tidy.sleeps, "import asyncio\nasync def f():\n    await asyncio.sleep(0.1)\n"),
    "sign without names": (lambda s: tidy.door_sign(s, {"a.py"}), '"""Things."""\n'),
    "sign with a wrong name": (lambda s: tidy.door_sign(s, {"a.py"}), '"""`a.py`, `b.py`."""\n'),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_violations_are_caught(name: str) -> None:
    """Every rule complains about a planted violation."""
    rule, text = PLANTED[name]
    assert list(rule(Source("planted.py", text)))


def test_planted_exemption_is_caught() -> None:
    """An unexplained exemption in pyproject.toml is found, an explained one is not."""
    assert unexplained('ignore = [\n "D105",\n]\n') == [' "D105",']
    assert unexplained('ignore = [\n "D105", # it is told elsewhere\n]\n') == []


def test_planted_block_names_are_found() -> None:
    """Blocks are found in Python and in SQL, and a computed name is reported."""
    python = Source("planted.py", "yield [Query('row_load'), Write(name, rows)]\n")
    assert list(tidy.statements_named(python)) == [
        "row_load",
        "planted.py:1: computes the name of its block",
    ]
    sql = Source("planted.sql", "-- name: row_load --\nSELECT 1;\n")
    assert tidy.statements_written(sql) == ["row_load"]


def test_explained_exceptions_pass() -> None:
    """An exception with a code and a reason is accepted."""
    text = (
        "import os  # noqa: F401 imported for its side effect\n"
        "x = f()  # type: ignore[arg-type]  # the stub is wrong\n"
    )
    assert list(tidy.unexplained_exceptions(Source("planted.py", text))) == []


def test_no_private_paths() -> None:
    """Lock files and the Makefile name no package index and no local path."""
    private = re.compile(r"https?://[^\s\"'`)]*(pypi|simple|index)[^\s\"'`)]*|file:///opt", re.I)
    texts = [ROOT / name for name in ("requirements.lock", "requirements-dev.lock", "Makefile")]
    texts += list((ROOT / "tests").rglob("requirements*"))
    found = [f"{path}: {hit[0]}" for path in texts for hit in [private.search(_text(path))] if hit]
    assert found == []


def _text(path: Path) -> str:
    return path.read_text()
