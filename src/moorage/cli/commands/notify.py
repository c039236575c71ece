"""`moorage notify`: posts to webhooks that leases were granted or have ended."""

import os
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from typing import Any

import click

from moorage.cli.support.command import Words, with_server_options
from moorage.cli.support.options import example
from moorage.cli.support.output import FAILED, USAGE, Failure, say


@click.command(epilog=example("moorage notify --hooks hooks.toml --state /var/lib/moorage-notify"))
@with_server_options
@click.option(
    "--hooks",
    "path",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="TOML file with the addresses to post to, and what to post.",
)
@click.option(
    "--state",
    "folder",
    required=True,
    type=click.Path(),
    metavar="FOLDER",
    help="Folder for the place of each hook in the feed; it must last.",
)
def notify(path: str, folder: str, server: Words) -> None:
    """Post to webhooks when leases are granted or end, at least once, until stopped.

    It also waits in place of tickets that name a hook, if the hook says so.
    """
    from moorage.integrations.webhooks.cursor_files import InUseError, only_user_of
    from moorage.integrations.webhooks.hook_files import HooksError, hooks_in

    transport, stopped = _transport(server), threading.Event()
    with ExitStack() as held:
        try:
            hooks = hooks_in(path)
            held.enter_context(only_user_of(folder))
            work = _work(transport, hooks, folder, stopped)
        except InUseError as error:
            raise Failure(FAILED, str(error)) from None
        except (HooksError, ValueError) as error:
            raise Failure(USAGE, str(error)) from None
        except OSError as error:
            raise Failure(
                USAGE, f"cannot use {error.filename or folder}: {error.strerror}"
            ) from None
        # What is being posted then is posted again after the next start.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        failed = threading.Event()
        for one in work:
            threading.Thread(target=_supervised, args=(one, stopped, failed), daemon=True).start()
        say(f"moorage: posting to {', '.join(hook.name for hook in hooks)}", err=True)
        with suppress(KeyboardInterrupt):
            stopped.wait()
    if failed.is_set():
        raise Failure(FAILED, "it has ended by an error of its own, which stands above")


def _work(transport: Any, hooks: Any, folder: str, stopped: threading.Event) -> list[Any]:
    """Return what is to run, each part in a thread. Raises OSError, ValueError."""
    from moorage.integrations.webhooks.attending import Attending
    from moorage.integrations.webhooks.cursor_files import CursorFile
    from moorage.integrations.webhooks.following import Following

    work: list[Any] = []
    for hook in hooks:
        following = Following(transport, hook, CursorFile(folder, hook.name), stopped, _log)
        work.append(following)
        if hook.attend:
            work.append(Attending(transport, following, stopped, _log))
    return work


def _transport(server: Words) -> Any:
    """Return access to the server. Raises Failure."""
    from moorage.client.targets import UNSET, target_of

    try:
        target = target_of(server, os.environ)
        if target.url is None:
            raise Failure(USAGE, UNSET)
        return target.transport()
    except OSError as error:
        raise Failure(USAGE, f"cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None


def _log(text: str) -> None:
    say(f"moorage: {text}", err=True)


def _supervised(one: Any, stopped: threading.Event, failed: threading.Event) -> None:
    """Run a part; an error in it ends the process, whose supervisor then starts it again."""
    try:
        one.run()
    except BaseException:
        failed.set()
        sys.excepthook(*sys.exc_info())
    finally:
        stopped.set()
