"""What somebody means who types the verbs of other programs, such as `get` and `describe`."""

from collections.abc import Collection, Sequence

import click

VERBS = {
    "add": ("create", "add"),
    "describe": ("show",),
    "edit": ("change",),
    "get": ("list", "show"),
    "info": ("show",),
    "inspect": ("show",),
    "ls": ("list",),
    "new": ("create",),
    "remove": ("delete", "remove", "revoke"),
    "rm": ("delete", "remove", "revoke"),
    "set": ("change",),
    "update": ("change",),
}
"""Verbs that no command has, and those of ours that may be meant."""

OURS = frozenset({"change", "create", "delete", "list", "show"})
"""Verbs of ours that stand after the noun."""


def hint(cli: click.Group, path: str, name: str, rest: Sequence[str]) -> str | None:
    """Return the commands that an unknown one may stand for; None: there are none.

    Args:
        cli: the group of all commands.
        path: the command before it, `moorage` or `moorage GROUP`.
        name: the unknown word.
        rest: what follows it, as far as it is known.
    """
    words = [word for word in rest if not word.startswith("-")]
    if name == "help":
        return _quoted([" ".join([path, *words[:2], "--help"])])
    nouns = path.split()[1:]
    if nouns:
        return _verbs(cli, nouns[0], name, words) if len(nouns) == 1 else _plural(cli, nouns, name)
    if name not in VERBS and name not in OURS:
        one = name.removesuffix("s")
        if one == name or one not in cli.list_commands(click.Context(cli)):
            return None
        return _verbs(cli, one, words[0] if words else "list", words[1:])
    for noun in (words[0].removesuffix("s"), words[0]) if words else ():
        if noun in cli.list_commands(click.Context(cli)):
            return _verbs(cli, noun, name, words[1:])
    return "the noun comes first, as in 'moorage pool list' and 'moorage lease show'"


def _plural(cli: click.Group, nouns: Sequence[str], name: str) -> str | None:
    """Return the command that lists what a group below a noun changes, such as `pool slots`."""
    noun, part = nouns
    group = cli.get_command(click.Context(cli), noun)
    if "list" not in VERBS.get(name, (name,)) or not isinstance(group, click.Group):
        return None
    lists = f"{part}s"
    is_one = lists in group.list_commands(click.Context(group))
    return _quoted([f"moorage {noun} {lists}"]) if is_one else None


def _verbs(cli: click.Group, noun: str, name: str, words: Sequence[str]) -> str | None:
    """Return the commands about a noun that a verb may mean."""
    group = cli.get_command(click.Context(cli), noun)
    if not isinstance(group, click.Group):
        return _quoted([f"moorage {noun}"])
    has: Collection[str] = group.list_commands(click.Context(group))
    verbs = [one for one in VERBS.get(name, (name,)) if one in has]
    if words and "show" in verbs:
        verbs = ["show"]
    return _quoted([f"moorage {noun} {verb}" for verb in verbs]) if verbs else None


def _quoted(commands: Sequence[str]) -> str:
    return "did you mean " + " or ".join(f"'{one}'" for one in commands) + "?"
