"""`moorage token`: who may call."""

import click

from moorage.cli.administering import administering, administration
from moorage.cli.options import json_option
from moorage.cli.output import show_json, show_table

ROLES = ("reader", "user", "service", "operator", "admin")


@click.group("token")
def group() -> None:
    """Make, list and revoke the tokens that callers show."""


@group.command()
@administering
@click.option("--name", required=True, help="Who will hold it; shown in lists.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What its holder may do.")
@click.option("--project", help="The project it is bound to; a user's must be.")
@json_option
def create(name: str, role: str, project: str | None, as_json: bool) -> None:
    """Make a token and print its secret; nobody can show it again."""
    made = administration().token_create(name, role, project)
    if as_json:
        show_json(made)
    else:
        click.echo(made["token"])


@group.command("list")
@administering
@json_option
def list_(as_json: bool) -> None:
    """Print all tokens, without their secrets."""
    tokens = administration().token_list()
    if as_json:
        show_json(tokens)
        return
    rows = [
        [
            token["id"],
            token["name"],
            token["role"],
            token["project_id"] or "-",
            token["created_at"],
            "revoked" if token["revoked_at"] else "valid",
        ]
        for token in tokens
    ]
    show_table(["id", "name", "role", "project", "created", "state"], rows)


@group.command()
@administering
@click.argument("token_id", metavar="ID")
@json_option
def revoke(token_id: str, as_json: bool) -> None:
    """Make the token ID worthless, at once."""
    administration().token_revoke(token_id)
    if as_json:
        show_json({"id": token_id, "revoked": True})
    else:
        click.echo(f"revoked {token_id}")
