"""`moorage token`: manages the tokens of callers; `moorage whoami`: shows the caller's own."""

from datetime import datetime
from typing import Any, get_args

import click
import msgspec

from moorage.cli.support import completion, ids
from moorage.cli.support.command import (
    administering,
    administration,
    at_server,
    server_address,
    server_now,
)
from moorage.cli.support.durations import DurationType
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import example, json_option, wide_option
from moorage.cli.support.output import say_or_json, show_json, show_table
from moorage.cli.support.tables import NOTHING, Column, Row, show_rows
from moorage.cli.support.views.cells import (
    age_cell,
    as_it_came,
    end_cell,
    id_cells,
    state_cell,
    timed,
)
from moorage.client.admission import Admission
from moorage.wire.admin import RotationWanted, TokenWanted
from moorage.wire.enums import LadderRole, ScopedRole

ROLES = (*get_args(LadderRole), *get_args(ScopedRole))

COLUMNS = (
    Column("id"),
    Column("name", least=12),
    Column("role"),
    Column("for", dropped=3, least=16),
    Column("created", "age", dropped=2, right=True),
    Column("used", dropped=1),
    Column("expires"),
    Column("state"),
)

_DURATION = DurationType()


def _scope(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Any:
    scope: dict[str, list[str]] = {}
    for text in texts:
        field, equals, name = text.partition("=")
        if not (field and equals and name):
            raise click.BadParameter(
                f"{text!r} is not FIELD=NAME (for example pool=install/azure)", context, parameter
            )
        scope.setdefault(field, []).append(name)
    return scope


@click.group("token")
def group() -> None:
    """Create, list, rotate and revoke access tokens."""


@group.command(
    epilog=example(
        "moorage token create --name ci --role user --project shop --expires-in 90d",
        "moorage token create --name reaper --role janitor --for 'pool=install/*'",
    )
)
@administering
@click.option("--name", required=True, help="Name of the token's holder; shown in lists.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the token permits.")
@click.option("--project", help="Project of the token: required for user, optional for reader.")
@click.option(
    "--for",
    "scope",
    multiple=True,
    callback=_scope,
    metavar="KIND=NAME",
    help="Scope of a scoped role: pool=NAME, agent=UUID or group=NAME; PREFIX/* for all names"
    " below; may be repeated.",
)
@click.option(
    "--expires-in", type=_DURATION, help="How long the token is valid; by default forever."
)
@json_option
def create(
    name: str,
    role: str,
    project: str | None,
    scope: dict[str, list[str]],
    expires_in: float | None,
    as_json: bool,
) -> None:
    """Create a token and print its secret, which cannot be shown again."""
    wanted = TokenWanted(
        name=name, role=role, project_id=project, scope=scope, expires_in=expires_in
    )
    _show_secret(administration().token_create(wanted), as_json)


@group.command(
    epilog=example("moorage token rotate 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --grace 1h")
)
@administering
@click.argument("token_id", metavar="ID", shell_complete=completion.tokens)
@click.option(
    "--grace",
    type=_DURATION,
    default="24h",
    help="How long the old token stays valid; 24h by default.",
)
@click.option(
    "--expires-in",
    type=_DURATION,
    help="How long the new token is valid; by default as long as the old one was.",
)
@json_option
def rotate(token_id: str, grace: float, expires_in: float | None, as_json: bool) -> None:
    """Replace the token ID with a new one and print the new secret."""
    wanted = RotationWanted(grace=grace, expires_in=expires_in)
    target = administration()
    whole = ids.token_id(target.token_list(), token_id)
    _show_secret(target.token_rotate(whole, wanted), as_json)


@group.command("list", epilog=example("moorage token list"))
@administering
@wide_option
@json_option
def list_(wide: bool, as_json: bool) -> None:
    """Print all tokens, without their secrets."""
    tokens = administration().token_list()
    if as_json:
        show_json(tokens)
        return
    shown, now = id_cells(token["id"] for token in tokens), server_now()
    rows: list[Row] = [
        [
            shown[token["id"]],
            token["name"],
            token["role"],
            _bound(token),
            as_it_came(age_cell, token["created_at"], now),
            as_it_came(end_cell, token["used_at"], now),
            as_it_came(end_cell, token["expires_at"], now),
            state_cell(_state(token, now)),
        ]
        for token in tokens
    ]
    show_rows(COLUMNS, rows, wide=wide)


@group.command(epilog=example("moorage token revoke 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605"))
@administering
@click.argument("token_id", metavar="ID", shell_complete=completion.tokens)
@click.option(
    "--leases", is_flag=True, help="Revoke the leases of the token, too, not only its tickets."
)
@irreversible("token revoke")
@json_option
def revoke(token_id: str, leases: bool, sure: Ask, as_json: bool) -> None:
    """Revoke the token ID at once; its tickets end, unless a valid token has the same owner."""
    target = administration()
    whole = ids.token_id(target.token_list(), token_id, whole=True)
    sure(whole)
    target.token_revoke(whole, leases=leases)
    say_or_json(as_json, {"id": whole, "revoked": True}, f"revoked {whole}")


def _show_secret(made: dict[str, Any], as_json: bool) -> None:
    say_or_json(as_json, made, made["token"])


def _bound(token: dict[str, Any]) -> str:
    """Return what a token is bound to: a project, or the names in its scope."""
    names = [f"{field}={name}" for field, names in token["scope"].items() for name in names]
    if token["project_id"]:
        names.append(f"project={token['project_id']}")
    return ",".join(names) or "-"


def _state(token: dict[str, Any], now: datetime) -> str:
    if token["revoked_at"]:
        return "revoked"
    ends = token["expires_at"]
    if ends and datetime.fromisoformat(ends) <= now:
        return "expired"
    return "rotated" if token["rotated_at"] else "valid"


@click.command(epilog=example("moorage whoami"))
@administering
@json_option
def whoami(as_json: bool) -> None:
    """Print the caller's name, role, project, scope and expiry, and the server and its version."""
    with at_server(Admission) as admission:
        found = admission.whoami()
    url = server_address()
    if as_json:
        show_json({**msgspec.to_builtins(found), "url": url})
        return
    scope = " ".join(f"{field}={name}" for field, names in found.scope.items() for name in names)
    ends = found.expires_at
    rows = {
        "name": found.name,
        "role": found.role,
        "project": found.project_id,
        "scope": scope,
        "owner": found.owner,
        "token": found.token_id,
        "expires": None if ends is None else timed(end_cell(ends, server_now())),
        "server": url,
        "version": found.version,
    }
    show_table(["property", "value"], [[name, value or NOTHING] for name, value in rows.items()])
