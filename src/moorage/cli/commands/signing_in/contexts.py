"""`moorage login`: signs in to a server; `moorage context`: the servers that are signed in to."""

import os
import re
import sys
from typing import Any
from urllib.parse import urlsplit

import click

from moorage.cli.commands.signing_in import context_file
from moorage.cli.support.backend import refusals_translated
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import (
    CONFLICT,
    NOT_FOUND,
    USAGE,
    Failure,
    say,
    say_or_json,
    show_json,
    show_table,
)
from moorage.cli.support.tables import NOTHING
from moorage.client.contexts import NAME, NAME_FORM, Context, Contexts
from moorage.client.transport import Transport, server_url, shown_url, token_in, token_of
from moorage.wire.operations.admin import WHOAMI

FILE: dict[str, Any] = {"type": click.Path(), "metavar": "FILE"}


@click.command(
    epilog=example(
        "moorage login https://moorage.example",
        "moorage login https://moorage.example/lab --name lab --token-file ~/lab.token",
    )
)
@click.argument("url", metavar="URL")
@click.option("--name", help="Name of the context; by default the host of URL.")
@click.option(
    "--token-file",
    **FILE,
    help="File with the token, which stays there and is read for each command; by default the"
    " token is asked for, and stored in the file of contexts.",
)
@click.option("--certificate", **FILE, help="Trust only this server certificate (PEM).")
@click.option("--ca-file", **FILE, help="Trust only these certificate authorities (PEM).")
@json_option
def login(
    url: str,
    name: str | None,
    token_file: str | None,
    certificate: str | None,
    ca_file: str | None,
    as_json: bool,
) -> None:
    """Sign in to the server at URL, which then is the one that other commands address."""
    try:
        url = server_url(url).rstrip("/")
        files = [_absolute(path) for path in (token_file, certificate, ca_file)]
        name = _named(name, url)
        _check_free(context_file.known(), name, url)
        token = token_of(_asked(url), "what was typed") if files[0] is None else None
        transport = Transport(
            url,
            token if files[0] is None else token_in(files[0]),
            certificate=files[1],
            ca_file=files[2],
        )
    except OSError as error:
        raise Failure(USAGE, f"cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    with refusals_translated():
        caller = transport.request(WHOAMI.method, WHOAMI.address())

    made = Context(url, token, *files)

    def added(before: Contexts) -> Contexts:
        _check_free(before, name, url)
        return Contexts({**before.by_name, name: made}, name)

    context_file.change(added)
    say_or_json(
        as_json,
        {**_shown(name, made), "current": True, "caller": caller["name"]},
        f"signed in to {shown_url(url)} as {caller['name']} ({caller['role']});"
        f" the context is {name}",
    )


def _check_free(before: Contexts, name: str, url: str) -> None:
    """Raise Failure: 4, the name is that of another server."""
    other = before.by_name.get(name)
    if other is not None and other.url != url:
        where = shown_url(other.url)
        raise Failure(
            CONFLICT,
            f"context {name} is for {where}: choose another --name, or `moorage context delete"
            f" {name}` first",
        )


def _named(name: str | None, url: str) -> str:
    """Return the name of a context. Raises ValueError."""
    if name is None:
        parts = urlsplit(url)
        host = (parts.hostname or "") + (f"-{parts.port}" if parts.port else "") + parts.path
        name = re.sub("[^A-Za-z0-9.]+", "-", host).strip("-.")[:63]
    if not NAME.fullmatch(name):
        raise ValueError(f"--name must have {NAME_FORM}")
    return name


def _absolute(path: str | None) -> str | None:
    """Return the path of a file from everywhere. Raises OSError: it cannot be read."""
    if path is None:
        return None
    with open(path, "rb"):
        return os.path.abspath(path)


def _asked(url: str) -> str:
    """Ask for the token, without an echo. Raises Failure: nobody can be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Failure(USAGE, "there is no terminal to ask for the token: use --token-file")
    text: str = click.prompt(f"Token for {shown_url(url)}", hide_input=True, err=True)
    return text


@click.group("context")
def group() -> None:
    """List, choose and delete contexts: the servers that `moorage login` has signed in to."""


@group.command("list", epilog=example("moorage context list"))
@json_option
def list_(as_json: bool) -> None:
    """Print all contexts; * is the current one."""
    found = context_file.known()
    shown = [_shown(name, one) for name, one in sorted(found.by_name.items())]
    if as_json:
        show_json([{**one, "current": one["context"] == found.current} for one in shown])
        return
    if not shown:
        say("moorage: there are no contexts; sign in with `moorage login URL`", err=True)
    rows = [
        ["*" if one["context"] == found.current else "-", one["context"], one["url"], one["token"]]
        for one in shown
    ]
    show_table(["current", "context", "server", "token"], rows)


@group.command(epilog=example("moorage context show", "moorage context show lab --json"))
@click.argument("name", metavar="[NAME]", required=False)
@json_option
def show(name: str | None, as_json: bool) -> None:
    """Print a context without its token; by default the current one."""
    found = context_file.known()
    name = name or found.current
    if name is None:
        raise Failure(NOT_FOUND, "there is no current context: `moorage context use NAME` sets one")
    shown = _shown(name, _known(found, name))
    if as_json:
        show_json({**shown, "current": name == found.current})
        return
    shown["current"] = "yes" if name == found.current else "no"
    rows = [[key, value or NOTHING] for key, value in shown.items()]
    show_table(["property", "value"], rows)


@group.command(epilog=example("moorage context use lab", "moorage context use --none"))
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--none", "nothing", is_flag=True, help="Use none: commands find a local server.")
@json_option
def use(name: str | None, nothing: bool, as_json: bool) -> None:
    """Make the context NAME the current one."""
    if nothing == (name is not None):
        raise Failure(USAGE, "name a context, or use --none")

    def chosen(before: Contexts) -> Contexts:
        if name is not None:
            _known(before, name)
        return before._replace(current=name)

    context_file.change(chosen)
    said = "no context is current" if name is None else f"the current context is {name}"
    say_or_json(as_json, {"current": name}, said)


@group.command(epilog=example("moorage context delete lab"))
@click.argument("name", metavar="NAME")
@json_option
def delete(name: str, as_json: bool) -> None:
    """Delete the context NAME with its stored token; the token itself stays valid."""

    def rest(before: Contexts) -> Contexts:
        _known(before, name)
        kept = {other: one for other, one in before.by_name.items() if other != name}
        return Contexts(kept, None if before.current == name else before.current)

    context_file.change(rest)
    say_or_json(as_json, {"context": name, "deleted": True}, f"deleted context {name}")


def _known(found: Contexts, name: str) -> Context:
    """Return a context. Raises Failure: 7, there is none."""
    if name not in found.by_name:
        names = ", ".join(sorted(found.by_name)) or "none"
        raise Failure(NOT_FOUND, f"there is no context {name}; there are: {names}")
    return found.by_name[name]


def _shown(name: str, one: Context) -> dict[str, Any]:
    """Return a context without its secrets."""
    token = one.token_file or ("stored" if one.token else None)
    return {
        "context": name,
        "url": shown_url(one.url),
        "token": token,
        "certificate": one.certificate,
        "ca_file": one.ca_file,
    }
