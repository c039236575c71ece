"""`moorage dashboard`: a one-time link that signs a browser in to the dashboard."""

import html
import os
import sys

import click

from moorage.cli.support.command import administering, at_server, server_pages
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import NOT_FOUND, Failure, say, show_json
from moorage.client.admission import Admission
from moorage.wire.admin import SignInLink

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
"""Variables of a desktop. Without one, a browser would take over the terminal."""


@click.command("dashboard", epilog=example("moorage dashboard", "moorage dashboard --no-browser"))
@administering
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@json_option
def command(no_browser: bool, as_json: bool) -> None:
    """Print a link that signs a browser in to the dashboard, once; open it where there is one."""
    with at_server(Admission) as admission:
        made = admission.sign_in_link()
    pages = server_pages()
    if pages is None:
        raise Failure(NOT_FOUND, "this server has no dashboard: its setting `ui` is off")
    link = f"{pages}/sign-in#link={made.code}"
    if as_json:
        show_json({"url": link, "expires_at": made.expires_at})
        return
    say(link)
    if sys.stdout.isatty():
        _explain(made)
        if not no_browser and any(os.environ.get(name) for name in DISPLAYS):
            _open(link)


def _explain(made: SignInLink) -> None:
    until = made.expires_at.strftime("%H:%M:%S UTC")
    say(f"moorage: the link works once, until {until}: anyone who opens it acts as you", err=True)


def _open(link: str) -> None:
    """Open a link in the user's browser, by a file that only this user can read.

    The command line of the browser, which everybody on the machine sees, then has no code.
    """
    import webbrowser  # deferred, as the next ones: most of the time nothing is opened

    from moorage.client.run.private_file import write_private
    from moorage.ownership import UntrustedError, check_folder

    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # as the XDG Base Directory Specification has it
        state = os.path.expanduser("~/.local/state")
    path = os.path.join(state, "moorage", "dashboard.html")
    quoted = html.escape(link)
    text = (
        f'<!doctype html><meta http-equiv="refresh" content="0; url={quoted}">'
        f'<a href="{quoted}">Moorage</a>\n'
    )
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        check_folder(os.path.dirname(path), "name another folder with XDG_STATE_HOME")
        write_private(path, text)
        opened = webbrowser.open(f"file://{path}")
    except (OSError, UntrustedError, webbrowser.Error):
        opened = False
    if not opened:
        say("moorage: no browser could be opened: open the link yourself", err=True)
