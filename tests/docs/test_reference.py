"""The reference documents every setting, error code, command, route and metric correctly."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from moorage.cli.main import cli
from moorage.cli.support.environment import ALSO
from moorage.client.run.variables import GIVEN, LEASE_PREFIX
from moorage.config.settings import FIELDS, Settings
from moorage.core.admission.forecast.why import CODES
from moorage.core.errors import Code
from moorage.faces.auth.token import ROLES
from moorage.faces.placement.policy import Profile
from moorage.faces.placement.problems import OUTCOMES
from moorage.faces.placement.routes import routes
from moorage.faces.v1.openapi import document
from moorage.serve.openstack_metrics import FAMILIES, PREFIX
from moorage.wire.changes import VALUES
from moorage.wire.operations import operations_by_id

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"


def rows(text: str) -> dict[str, list[str]]:
    """Return the rows of all tables of a text by their first cell, without its back-quotes."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            first, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
            assert first.strip("` ") not in found, f"{first} has two rows"
            found[first.strip("` ")] = rest
    return found


def formatted(default: Any) -> str:
    """Return a setting's default as the reference shows it."""
    if default is None or default == ():
        return "-"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_settings() -> None:
    """Every setting is documented with its default and the description from the code."""
    described = rows((REFERENCE / "settings.md").read_text().partition("\n## Other variables")[0])
    defaults = {field.name: field.default for field in msgspec.structs.fields(Settings)}
    expected = {name: [formatted(defaults[name]), meaning] for name, meaning in FIELDS.items()}
    assert described == expected


def test_variables() -> None:
    """All other environment variables are documented with the description from the code."""
    text = (REFERENCE / "settings.md").read_text().partition("\n## Other variables")[2]
    text, _, of_systemd = text.partition("\n## Variables of systemd")
    assert {name: cells[0] for name, cells in rows(text).items()} == ALSO
    sources = (path.read_text() for path in (ROOT / "src/moorage/systemd").glob("*.py"))
    read = {name for source in sources for name in re.findall(r'get\("([A-Z_]+)"', source)}
    assert {*rows(of_systemd)} == read
    assert len(read) > 3
    text = (REFERENCE / "cli.md").read_text().partition("in its environment:")[2]
    given = rows(text.partition("\n###")[0])
    assert {name: cells[0] for name, cells in given.items()} == {
        LEASE_PREFIX + name: meaning for name, meaning in GIVEN.items()
    }


def test_errors() -> None:
    """Every error code is documented with the status and code of the Placement API."""
    described = {
        code: cells[:2] for code, cells in rows((REFERENCE / "errors.md").read_text()).items()
    }
    expected = {
        str(code): [str(outcome.status), f"`{outcome.code}`"] for code, outcome in OUTCOMES.items()
    }
    assert set(expected) == {str(code) for code in Code}
    assert described == expected


def commands(group: click.Group, path: str = "moorage") -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield f"{path} {name}", command
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def options(command: click.Command) -> set[str]:
    """Return the names of a command's options that are not derived from settings."""
    return {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option) and not is_setting(parameter)
        for name in parameter.opts
    }


def is_setting(option: click.Option) -> bool:
    """Return whether an option is derived from a setting; others may have the same name."""
    meaning = FIELDS.get(option.name or "")
    return meaning is not None and (option.help or "").startswith(meaning)


def test_commands() -> None:
    """Every command has a section, and each of its options a row there or in a shared table."""
    text = (REFERENCE / "cli.md").read_text()
    parts = re.split(r"^#+ ", text, flags=re.M)
    sections = {title: body for title, _, body in (part.partition("\n") for part in parts)}
    shared = set(rows(sections["Commands for administrators"]))
    shared |= set(rows(sections["Commands with a lease"]))
    shared |= set(rows(sections["Commands for Ironic"]))
    found = dict(commands(cli))
    assert {title for title in sections if title.startswith("moorage ")} == set(found)
    for name, command in found.items():
        own = set(rows(sections[name]))
        missing = options(command) - own - shared
        assert name == "moorage serve" or missing == set(), name
        assert {option for option in own if option.startswith("--")} <= options(command), name


def test_roles() -> None:
    """Every role of a token is documented with the roles that a policy sees."""
    text = (REFERENCE / "cli.md").read_text()
    table = text.partition("| role |")[2].partition("### ")[0]
    described = {role: set(cells[0].split(", ")) for role, cells in rows(table).items()}
    assert described == {str(role): set(seen) for role, seen in ROLES.items()}


def test_routes() -> None:
    """Every route of the Placement API is documented with its first microversion and its rule."""
    text = (REFERENCE / "placement.md").read_text().partition("## Who may")[0]
    described = {route: (cells[0], cells[2]) for route, cells in rows(text).items()}
    expected: dict[str, tuple[str, str]] = {}
    for route in routes():
        rule = f"`placement:{route.rule}`" if route.rule else "-"
        expected.setdefault(f"{route.method} {route.path}", (f"1.{route.since}", rule))
    assert described == expected


def test_native_routes() -> None:
    """Every route of the native API is documented with its roles and its summary."""
    text = (REFERENCE / "native-api.md").read_text().partition("\n## ")[0]
    expected = {
        f"{one.method} {one.path}": [
            " or ".join([one.access.role, *one.access.scopes]) if one.access.role else "-",
            "yes" if one.access.projects else "-",
            one.summary,
        ]
        for one in operations_by_id().values()
    }
    assert rows(text) == expected


def test_native_description_is_current() -> None:
    """The committed document is the one a server returns; `make openapi` updates it."""
    assert (REFERENCE / "openapi.json").read_bytes() == document()


def test_kinds_of_changes() -> None:
    """The reference explains every kind of change."""
    text = (REFERENCE / "native-api.md").read_text().partition("| kind | key |")[2]
    assert set(rows(text)) == set(VALUES)


def test_codes_of_waiting() -> None:
    """Every code of waiting is explained with the text from the code."""
    text = (REFERENCE / "native-api.md").read_text().partition("| code of waiting |")[2]
    described = rows(text.partition("\n\n")[0])
    assert {code: cells[0] for code, cells in described.items()} == CODES


def test_policy_profiles() -> None:
    """The reference explains every policy profile."""
    text = (REFERENCE / "placement.md").read_text().partition("| profile |")[2]
    assert set(rows(text)) == set(get_args(Profile))


def test_metrics() -> None:
    """Exactly the metrics that the service exports are documented, each with its type."""
    files = ("metrics.py", "boskos.py", "openstack_metrics.py")
    source = "".join((ROOT / "src/moorage/serve" / name).read_text() for name in files)
    names = set(re.findall(r'"((?:moorage|boskos)_\w+)"', source))
    described = rows((REFERENCE / "metrics.md").read_text())
    exporters = {name for name in described if name.startswith(PREFIX)}
    assert exporters == {PREFIX + name for name in ("up", *dict(FAMILIES))}
    assert {described.pop(name)[0] for name in exporters} == {"gauge"}
    assert {name.removesuffix("_total") for name in described} == names
    for name, (kind, *_) in described.items():
        assert (kind == "counter") == name.endswith("_total"), name


def test_only_tables_count() -> None:
    """Only a row of a table counts as documentation, not a mention in a sentence."""
    text = "`listen` is a setting.\n\n| `auth` | `token` | Who. |\n"
    assert rows(text) == {"auth": ["`token`", "Who."]}
